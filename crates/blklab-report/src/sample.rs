// SPDX-License-Identifier: MIT OR Apache-2.0
//! The requests that a page shows one by one: all of them, or of many those that
//! must not be missing and a fair sample of the others.
//!
//! None of these is ever left out: the slowest of the trace, and in each interval
//! the slowest of each direction. The others are drawn by a hash of their
//! number, so that the same trace gives the same page.

use crate::model::PHASES;
use blklab_analysis::bins::{Bin, Bins};
use blklab_trace::Rwbs;
use blklab_types::{Dev, Pid, Time, split_mix64};

/// Of so many requests at most, the share that goes to the slowest.
const SLOWEST_SHARE: usize = 6;

/// A request as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shown {
    pub(crate) number: u64,
    pub(crate) dev: Dev,
    pub(crate) pid: Pid,
    pub(crate) flags: Rwbs,
    pub(crate) sector: u64,
    pub(crate) sectors: u64,
    pub(crate) nr_bios: u32,
    pub(crate) is_sync: bool,
    /// When the block layer had it: its first Q, or the first that is known.
    pub(crate) start: Time,
    pub(crate) get: Option<Time>,
    pub(crate) insert: Option<Time>,
    pub(crate) issue: Option<Time>,
    pub(crate) complete: Option<Time>,
    /// By [`PHASES`], ns.
    pub(crate) phases: [u64; PHASES.len()],
    /// Why it waited from I to D.
    pub(crate) ahead: Blame,
    /// Why it waited from D to C.
    pub(crate) behind: Blame,
}

/// Whom a request waited behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Blame {
    /// Place in [`crate::model::REASONS`].
    pub(crate) reason: u8,
    /// The process that stands out among those it waited behind; 0: none.
    pub(crate) pid: Pid,
    /// How many requests were ahead.
    pub(crate) requests: u64,
}

impl Shown {
    /// From its beginning to C, ns; 0 if it did not end.
    pub(crate) fn whole_ns(&self) -> u64 {
        self.complete.map_or(0, |c| c.since(self.start).0)
    }
}

/// The slowest of an interval: reads, then all others.
#[derive(Clone, Debug, Default)]
struct Peak([Option<Shown>; 2]);

impl Bin for Peak {
    fn join(&mut self, other: Peak) {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            if let Some(other) = other {
                offer(own, &other);
            }
        }
    }
}

/// Keeps the slower one; of equals the first.
fn offer(place: &mut Option<Shown>, other: &Shown) {
    if place
        .as_ref()
        .is_none_or(|p| p.whole_ns() < other.whole_ns())
    {
        *place = Some(other.clone());
    }
}

/// Gathers requests, at most so many.
#[derive(Debug)]
pub(crate) struct Sample {
    max: usize,
    seen: u64,
    slowest: Vec<Shown>,
    /// Everything at least this slow is kept: what is not was pushed out.
    slowest_from_ns: u64,
    peaks: Bins<Peak>,
    drawn: Vec<Shown>,
    /// Those with a hash below it are drawn.
    threshold: u64,
}

impl Sample {
    pub(crate) fn new(start: Time, max: usize) -> Sample {
        Sample {
            max: max.max(64),
            seen: 0,
            slowest: Vec::new(),
            slowest_from_ns: 0,
            peaks: Bins::new(start),
            drawn: Vec::new(),
            threshold: u64::MAX,
        }
    }

    pub(crate) fn add(&mut self, r: Shown) {
        self.seen += 1;
        let side = usize::from(r.flags.op() != Some(blklab_types::Op::Read));
        offer(&mut self.peaks.at(r.start).0[side], &r);
        if r.whole_ns() >= self.slowest_from_ns {
            self.slowest.push(r.clone());
            if self.slowest.len() >= 2 * self.nr_slowest() {
                self.thin_slowest();
            }
        }
        if split_mix64(r.number) <= self.threshold {
            self.drawn.push(r);
            while self.drawn.len() > self.max - self.nr_slowest() {
                self.threshold /= 2;
                let threshold = self.threshold;
                self.drawn.retain(|r| split_mix64(r.number) <= threshold);
            }
        }
    }

    fn nr_slowest(&self) -> usize {
        self.max / SLOWEST_SHARE
    }

    fn thin_slowest(&mut self) {
        let n = self.nr_slowest();
        let key = |r: &Shown| (std::cmp::Reverse(r.whole_ns()), r.number);
        self.slowest.sort_unstable_by_key(key);
        self.slowest.truncate(n);
        self.slowest_from_ns = self.slowest.last().map_or(0, Shown::whole_ns);
    }

    /// Those that are shown, in order of their beginning, what there were, and the
    /// latency from which on none is missing; 0 if all are there.
    pub(crate) fn finish(mut self) -> (Vec<Shown>, u64, u64) {
        let is_whole = self.threshold == u64::MAX;
        if self.slowest.len() > self.nr_slowest() {
            self.thin_slowest();
        }
        let mut all = self.drawn;
        all.append(&mut self.slowest);
        all.extend(
            self.peaks
                .into_bins()
                .into_iter()
                .flat_map(|p| p.0)
                .flatten(),
        );
        all.sort_by_key(|r| (r.start, r.number));
        all.dedup_by_key(|r| r.number);
        // Of those exactly as slow as the limit some may have been pushed out.
        let complete_from = if is_whole {
            0
        } else {
            self.slowest_from_ns.saturating_add(1)
        };
        (all, self.seen, complete_from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(number: u64, start: u64, took: u64) -> Shown {
        Shown {
            number,
            dev: Dev::default(),
            pid: 1,
            flags: Rwbs::READ,
            sector: 8 * number,
            sectors: 8,
            nr_bios: 1,
            is_sync: true,
            start: Time(start),
            get: None,
            insert: None,
            issue: Some(Time(start)),
            complete: Some(Time(start + took)),
            phases: [0; PHASES.len()],
            ahead: Blame::default(),
            behind: Blame::default(),
        }
    }

    #[test]
    fn few_are_all_there() {
        let mut sample = Sample::new(Time(0), 1000);
        (0..500).for_each(|n| sample.add(request(n, n * 1000, 10)));
        let (shown, seen, from) = sample.finish();
        assert_eq!((shown.len(), seen, from), (500, 500, 0));
    }

    /// However many there are: the longest of all and the longest near any moment are
    /// shown, and so is all that is as slow as the sample says.
    #[test]
    fn no_maximum_is_hidden() {
        let mut sample = Sample::new(Time(0), 2000);
        let took =
            |n: u64| 10_000 + split_mix64(n) % 1_000_000 + u64::from(n == 77_777) * 5_000_000;
        let all: Vec<Shown> = (0..200_000)
            .map(|n| request(n, n * 1000, took(n)))
            .collect();
        all.iter().for_each(|r| sample.add(r.clone()));
        let (shown, seen, from) = sample.finish();
        assert_eq!(seen, 200_000);
        assert!(
            shown.len() <= 2000 + 2 * blklab_analysis::bins::BINS_MAX,
            "{}",
            shown.len()
        );
        assert!(shown.len() > 1000);
        assert!(shown.iter().any(|r| r.number == 77_777));
        let slow = |r: &&Shown| r.whole_ns() >= from;
        assert!(from > 0 && all.iter().filter(slow).count() > 100);
        assert_eq!(
            all.iter().filter(slow).count(),
            shown.iter().filter(slow).count()
        );
        // 200 ms are 382 intervals of this length.
        let interval = |r: &Shown| r.start.0 / (1024 << 9);
        for window in all.chunk_by(|a, b| interval(a) == interval(b)) {
            let worst = window.iter().map(Shown::whole_ns).max();
            let near = shown.iter().filter(|r| interval(r) == interval(&window[0]));
            assert_eq!(near.map(Shown::whole_ns).max(), worst);
        }
    }
}
