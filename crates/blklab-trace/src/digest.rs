// SPDX-License-Identifier: MIT OR Apache-2.0
//! A 64-bit digest of an event stream: two runs of one experiment must agree.

use crate::{Action, Event, KernelEvent, TraceSink};
use blklab_types::{Dev, Pid, Time};

/// Order-dependent digest over 64-bit words. Stable across machines and
/// versions of the compiler; not meant against an adversary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    state: u64,
    nr_events: u64,
}

impl Default for Digest {
    fn default() -> Digest {
        Digest {
            state: 0x6c62_6c6b_6c61_6221,
            nr_events: 0,
        }
    }
}

impl Digest {
    /// Mixes two words in: their product with the state, high half folded
    /// into the low one.
    #[inline]
    fn pair(&mut self, a: u64, b: u64) {
        let product = u128::from(self.state ^ a) * u128::from(b ^ 0x9e37_79b9_7f4a_7c15);
        let folded = (product >> 64) as u64 ^ product as u64;
        self.state = folded.rotate_left(29).wrapping_add(0x2545_f491_4f6c_dd1d);
    }

    /// Mixes one event in, all fields.
    #[inline]
    pub fn event(&mut self, e: &Event) {
        let dev = |d: Dev| u64::from(u32::from(d.major) << 16 | u32::from(d.minor));
        self.pair(e.time.0, e.sector);
        let place = u64::from(e.cpu) << 48 ^ u64::from(e.error) << 32;
        self.pair(u64::from(e.bytes) << 32 | u64::from(e.pid), e.arg ^ place);
        let kind = (e.action as u64) << 56 ^ u64::from(e.rwbs.0) << 40;
        self.pair(kind ^ dev(e.dev), dev(e.from_dev));
        self.nr_events += 1;
    }

    /// Mixes events in, all but messages.
    pub fn events(&mut self, events: &[Event]) {
        for event in events.iter().filter(|e| e.action != Action::Message) {
            self.event(event);
        }
    }

    /// The digest so far.
    pub fn value(&self) -> u64 {
        self.state
    }

    /// Number of events mixed in.
    pub fn nr_events(&self) -> u64 {
        self.nr_events
    }
}

/// Passes a stream on and keeps its digest. Messages are commentary, written
/// only where somebody reads them, and not part of the digest.
#[derive(Debug, Default)]
pub struct DigestSink<S> {
    /// The digest so far.
    pub digest: Digest,
    /// Where the events go.
    pub inner: S,
}

impl<S: TraceSink> TraceSink for DigestSink<S> {
    fn event(&mut self, event: &Event) {
        self.digest.event(event);
        self.inner.event(event);
    }

    fn events(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.digest.event(event));
        self.inner.events(events);
    }

    fn message(&mut self, event: &Event, text: &str) {
        self.inner.message(event, text);
    }

    fn wants_messages(&self) -> bool {
        self.inner.wants_messages()
    }

    fn kernel_event(&mut self, event: &KernelEvent) {
        self.inner.kernel_event(event);
    }

    fn stack(&mut self, time: Time, pid: Pid, functions: &str) {
        self.inner.stack(time, pid, functions);
    }

    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        self.inner.process(time, pid, comm);
    }

    fn new_recording(&mut self) {
        self.inner.new_recording();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rwbs;

    fn event() -> Event {
        Event {
            time: Time(1),
            sector: 2,
            arg: 3,
            bytes: 4096,
            pid: 5,
            dev: Dev { major: 8, minor: 0 },
            from_dev: Dev::default(),
            error: 0,
            cpu: 0,
            rwbs: Rwbs::READ,
            action: Action::Queue,
        }
    }

    fn digest(events: &[Event]) -> u64 {
        let mut d = Digest::default();
        events.iter().for_each(|e| d.event(e));
        d.value()
    }

    #[test]
    fn a_batch_is_its_events_without_the_messages() {
        let e = event();
        let message = Event {
            action: Action::Message,
            ..e
        };
        let mut batch = Digest::default();
        batch.events(&[e, message, e]);
        assert_eq!(batch.value(), digest(&[e, e]));
        assert_eq!(batch.nr_events(), 2);
    }

    #[test]
    fn every_field_and_the_order_count() {
        let e = event();
        let changed = [
            Event { time: Time(2), ..e },
            Event { sector: 3, ..e },
            Event { arg: 4, ..e },
            Event { bytes: 512, ..e },
            Event { pid: 6, ..e },
            Event {
                dev: Dev { major: 8, minor: 1 },
                ..e
            },
            Event {
                from_dev: Dev { major: 8, minor: 1 },
                ..e
            },
            Event { error: 5, ..e },
            Event { cpu: 1, ..e },
            Event {
                rwbs: Rwbs::WRITE,
                ..e
            },
            Event {
                action: Action::Issue,
                ..e
            },
        ];
        let mut all: Vec<u64> = changed.iter().map(|c| digest(&[*c])).collect();
        all.push(digest(&[e]));
        all.push(digest(&[e, changed[0]]));
        all.push(digest(&[changed[0], e]));
        all.push(digest(&[]));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
