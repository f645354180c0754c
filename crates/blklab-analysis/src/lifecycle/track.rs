// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tracker: finds the device of an event.

use super::table::{Device, Out};
use super::{DEVICES_MAX, IN_FLIGHT_MAX, LifeSink, Unmatched};
use crate::index::Index;
use blklab_trace::{Action, Event, Rwbs, TraceSink};
use blklab_types::{Dev, Time};

/// Follows bios and requests through a trace; see the
/// [module](crate::lifecycle) for the rules.
#[derive(Debug)]
pub struct Lifecycles<S> {
    devices: Vec<Device>,
    places: Index<Dev>,
    /// Events until there may be too many bios and requests under way: none adds more
    /// than one.
    events_until_full: usize,
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
            events_until_full: IN_FLIGHT_MAX,
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
    #[inline(always)]
    pub(crate) fn event_at(&mut self, place: Option<usize>, event: &Event) {
        self.last_time = event.time;
        let Some(place) = place else {
            self.out.unmatched.beyond_devices += 1;
            return;
        };
        if place == self.devices.len() {
            self.devices.push(Device::new(event.dev));
        }
        self.devices[place].event(event, &mut self.out);
        self.events_until_full -= 1;
        if self.events_until_full == 0 {
            self.limit();
        }
    }

    /// Takes an event of a command that was passed through to the device.
    #[cold]
    pub(crate) fn passed_through(&mut self, event: &Event) {
        self.last_time = event.time;
        self.out.unmatched.passed_through += 1;
    }

    /// Looks whether more is under way than can be followed: then what the device with
    /// most of it has is not. Often that is one in front of others, of which old kernels
    /// show no completion; theirs are matched all the same.
    #[cold]
    fn limit(&mut self) {
        let in_flight = |devices: &[Device]| devices.iter().map(Device::in_flight).sum();
        let mut now: usize = in_flight(&self.devices);
        while now >= IN_FLIGHT_MAX {
            let most = self.devices.iter_mut().max_by_key(|d| d.in_flight());
            let device = most.expect("what is under way is a device's");
            device.finish(self.last_time, &mut self.out);
            now = in_flight(&self.devices);
        }
        // Looking takes as long as there are devices: not more often than that.
        self.events_until_full = (IN_FLIGHT_MAX - now).max(self.devices.len());
    }

    /// The trace ends: gives the lives that have not.
    pub fn finish(mut self) -> (S, Unmatched) {
        for device in &mut self.devices {
            device.finish(self.last_time, &mut self.out);
        }
        (self.out.sink, self.out.unmatched)
    }
}

impl<S: LifeSink> Lifecycles<S> {
    #[inline(always)]
    fn follow(&mut self, event: &Event) {
        if event.rwbs.has(Rwbs::PC) {
            return self.passed_through(event);
        }
        let place = self.place(event.dev);
        self.event_at(place, event);
    }
}

impl<S: LifeSink> TraceSink for Lifecycles<S> {
    fn event(&mut self, event: &Event) {
        self.follow(event);
    }

    /// What the block layer recorded, without the messages of its schedulers.
    fn events(&mut self, events: &[Event]) {
        for event in events.iter().filter(|e| e.action != Action::Message) {
            self.follow(event);
        }
    }

    /// What is under way is not heard of again.
    fn new_recording(&mut self) {
        for device in self.devices.iter_mut().filter(|d| d.in_flight() > 0) {
            device.finish(self.last_time, &mut self.out);
        }
        self.events_until_full = IN_FLIGHT_MAX;
    }
}
