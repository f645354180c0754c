// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tracker: finds the device of an event.

use super::table::{Device, Out};
use super::{LifeSink, Unmatched};
use blklab_trace::{Event, Rwbs, TraceSink};
use blklab_types::{Dev, Time};

/// Follows bios and requests through a trace; see the
/// [module](crate::lifecycle) for the rules.
#[derive(Debug)]
pub struct Lifecycles<S> {
    devices: Vec<Device>,
    /// The device of the last event: mostly that of the next.
    current: usize,
    out: Out<S>,
    last_time: Time,
}

impl<S: LifeSink> Lifecycles<S> {
    /// Tells `sink`.
    pub fn new(sink: S) -> Lifecycles<S> {
        let unmatched = Unmatched::default();
        Lifecycles {
            devices: Vec::new(),
            current: 0,
            out: Out {
                sink,
                unmatched,
                nr_requests: 0,
            },
            last_time: Time::ZERO,
        }
    }

    /// Whom it tells.
    pub fn sink(&mut self) -> &mut S {
        &mut self.out.sink
    }

    fn device(&mut self, dev: Dev) -> usize {
        if self.devices.get(self.current).is_none_or(|d| d.dev != dev) {
            let known = self.devices.iter().position(|d| d.dev == dev);
            self.current = known.unwrap_or_else(|| {
                self.devices.push(Device::new(dev));
                self.devices.len() - 1
            });
        }
        self.current
    }

    /// The trace ends: gives the lives that have not.
    pub fn finish(mut self) -> (S, Unmatched) {
        for device in &mut self.devices {
            device.finish(self.last_time, &mut self.out);
        }
        (self.out.sink, self.out.unmatched)
    }
}

impl<S: LifeSink> TraceSink for Lifecycles<S> {
    fn event(&mut self, event: &Event) {
        self.last_time = event.time;
        if event.rwbs.has(Rwbs::PC) {
            self.out.unmatched.passed_through += 1;
            return;
        }
        let device = self.device(event.dev);
        self.devices[device].event(event, &mut self.out);
    }
}
