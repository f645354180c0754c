// SPDX-License-Identifier: MIT OR Apache-2.0
//! A 64-bit digest of an event stream: two runs of one experiment must agree.

use crate::{Event, TraceSink};
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
    /// Mixes one word in: multiply by an odd constant and fold the high half
    /// of the 128-bit product into the low one.
    #[inline]
    pub fn word(&mut self, w: u64) {
        let product = u128::from(self.state ^ w) * 0x9e37_79b9_7f4a_7c15_u128;
        let folded = (product >> 64) as u64 ^ product as u64;
        self.state = folded.rotate_left(29).wrapping_add(0x2545_f491_4f6c_dd1d);
    }

    /// Mixes one event in, all fields.
    #[inline]
    pub fn event(&mut self, e: &Event) {
        let dev = |d: Dev| u64::from(d.major) << 16 | u64::from(d.minor);
        self.word(e.time.0);
        self.word(e.sector);
        self.word(u64::from(e.bytes) << 32 | u64::from(e.pid));
        self.word(e.arg ^ u64::from(e.cpu) << 48 ^ u64::from(e.error) << 32);
        self.word(
            (e.action as u64) << 56 ^ u64::from(e.rwbs.0) << 40 ^ dev(e.dev) << 4 ^ dev(e.from_dev),
        );
        self.nr_events += 1;
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

/// Passes a stream on and keeps its digest.
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

    fn message(&mut self, event: &Event, text: &str) {
        self.digest.event(event);
        for b in text.bytes() {
            self.digest.word(u64::from(b));
        }
        self.inner.message(event, text);
    }

    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        self.inner.process(time, pid, comm);
    }
}
