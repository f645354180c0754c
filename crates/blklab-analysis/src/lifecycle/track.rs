// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tracker: finds the device of an event.

use super::table::{Device, Out};
use super::{DEVICES_MAX, IN_FLIGHT_MAX, LifeSink, Unmatched};
use crate::index::Index;
use blklab_trace::{Event, Rwbs, TraceSink};
use blklab_types::{Dev, Time};

/// Follows bios and requests through a trace; see the
/// [module](crate::lifecycle) for the rules.
#[derive(Debug)]
pub struct Lifecycles<S> {
    devices: Vec<Device>,
    places: Index<Dev>,
    /// Bios and requests under way, of all devices.
    in_flight: usize,
    out: Out<S>,
    last_time: Time,
}

impl<S: LifeSink> Lifecycles<S> {
    /// Tells `sink`.
    pub fn new(sink: S) -> Lifecycles<S> {
        let unmatched = Unmatched::default();
        Lifecycles {
            devices: Vec::new(),
            places: Index::new(DEVICES_MAX),
            in_flight: 0,
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

    /// What could not be matched so far.
    pub fn unmatched(&self) -> &Unmatched {
        &self.out.unmatched
    }

    /// The place of a device, in order of their first events; none if it is not
    /// followed.
    #[inline]
    pub(crate) fn place(&mut self, dev: Dev) -> Option<usize> {
        self.places.place(dev)
    }

    /// Takes an event of the device at `place`.
    #[inline]
    pub(crate) fn event_at(&mut self, place: Option<usize>, event: &Event) {
        self.last_time = event.time;
        let Some(place) = place else {
            self.out.unmatched.beyond_devices += 1;
            return;
        };
        if place == self.devices.len() {
            self.devices.push(Device::new(event.dev));
        }
        let device = &mut self.devices[place];
        let before = device.in_flight();
        device.event(event, &mut self.out);
        self.in_flight = self.in_flight - before + device.in_flight();
        if self.in_flight >= IN_FLIGHT_MAX {
            self.give_up();
        }
    }

    /// Takes an event of a command that was passed through to the device.
    pub(crate) fn passed_through(&mut self, event: &Event) {
        self.last_time = event.time;
        self.out.unmatched.passed_through += 1;
    }

    /// More is under way than can be followed: what the device with most of it has is
    /// not. Often that is one in front of others, of which old kernels show no
    /// completion; theirs are matched all the same.
    #[cold]
    fn give_up(&mut self) {
        let most = self.devices.iter_mut().max_by_key(|d| d.in_flight());
        let device = most.expect("what is under way is a device's");
        self.in_flight -= device.in_flight();
        device.finish(self.last_time, &mut self.out);
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
        if event.rwbs.has(Rwbs::PC) {
            return self.passed_through(event);
        }
        let place = self.place(event.dev);
        self.event_at(place, event);
    }

    /// What is under way is not heard of again.
    fn new_recording(&mut self) {
        for device in self.devices.iter_mut().filter(|d| d.in_flight() > 0) {
            device.finish(self.last_time, &mut self.out);
        }
        self.in_flight = 0;
    }
}
