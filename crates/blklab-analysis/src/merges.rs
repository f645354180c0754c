// SPDX-License-Identifier: MIT OR Apache-2.0
//! Missed merges: a request is inserted right behind one of the same direction that
//! still waits, and both go to the device one after the other.
//!
//! Writers of neighbouring pages on several processors, and plugs that are flushed
//! between neighbouring bios, leave such pairs (linux-kernel, October 2008, on cfq and
//! ext3's journal). The block layer tries to merge a bio into a waiting request, from
//! its own process's requests or by the scheduler's hash, and two waiting requests when
//! one has grown up to the other; where it does not, the device gets a command more.

use crate::lifecycle::RequestLife;
use blklab_types::{Dev, Op, Time};
use std::collections::{BTreeMap, VecDeque};

/// Requests of a device among which pairs are found, counted back from the latest
/// that has ended.
const WINDOW: usize = 1 << 16;

/// A request that has ended: place in sectors, times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First sector.
    pub begin: u64,
    /// Behind the last.
    pub end: u64,
    /// I.
    pub insert: Time,
    /// D.
    pub issue: Time,
}

impl Extent {
    /// Its length in sectors.
    pub fn sectors(&self) -> u64 {
        self.end - self.begin
    }

    /// Whether `behind` was inserted while this one waited.
    fn waited_for(&self, behind: &Extent) -> bool {
        both_waited(Some(self.insert), Some(self.issue), Some(behind.insert))
    }
}

/// Whether a second request was inserted while the first, whose I and D these are, waited
/// to be issued: what a missed merge is, for figures of studies and for the finding. Times
/// that are not known say no.
pub(crate) fn both_waited(insert: Option<Time>, issue: Option<Time>, second: Option<Time>) -> bool {
    insert.is_some() && insert < second && second < issue
}

/// A request and the one inserted right behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The device.
    pub dev: Dev,
    /// The one that waited.
    pub first: Extent,
    /// The one that was inserted behind it.
    pub second: Extent,
}

/// A request that has ended, and whether it is the second of a pair.
#[derive(Clone, Copy, Debug)]
struct Ended {
    number: u64,
    extent: Extent,
    is_second: bool,
}

/// Requests of one device and direction; those of one place in order of their ends.
#[derive(Clone, Debug, Default)]
struct Side {
    by_begin: BTreeMap<u64, Vec<Ended>>,
    by_end: BTreeMap<u64, Vec<Ended>>,
    ended: VecDeque<(u64, Extent)>,
}

impl Side {
    /// Takes in a request that has ended; returns the pairs that it belongs to, at
    /// most one with it as the second.
    fn pairs_with(&mut self, number: u64, extent: Extent) -> Vec<(Extent, Extent)> {
        let mut pairs = Vec::new();
        let before = self.by_end.get(&extent.begin).into_iter().flatten();
        let first = before.map(|e| e.extent).find(|e| e.waited_for(&extent));
        pairs.extend(first.map(|e| (e, extent)));
        let behind = self.by_begin.get_mut(&extent.end).into_iter().flatten();
        for e in behind.filter(|e| !e.is_second && extent.waited_for(&e.extent)) {
            e.is_second = true;
            pairs.push((extent, e.extent));
        }
        let ended = Ended {
            number,
            extent,
            is_second: first.is_some(),
        };
        self.by_begin.entry(extent.begin).or_default().push(ended);
        self.by_end.entry(extent.end).or_default().push(ended);
        self.ended.push_back((number, extent));
        if self.ended.len() > WINDOW {
            self.forget_oldest();
        }
        pairs
    }

    fn forget_oldest(&mut self) {
        let Some((number, extent)) = self.ended.pop_front() else {
            return;
        };
        for (places, at) in [
            (&mut self.by_begin, extent.begin),
            (&mut self.by_end, extent.end),
        ] {
            if let Some(ended) = places.get_mut(&at) {
                ended.retain(|e| e.number != number);
                if ended.is_empty() {
                    places.remove(&at);
                }
            }
        }
    }
}

/// Finds missed merges.
#[derive(Clone, Debug, Default)]
pub struct MissedMerges {
    sides: BTreeMap<(Dev, Option<Op>), Side>,
    nr_ended: u64,
    pairs: Vec<Pair>,
}

impl MissedMerges {
    /// What was found so far.
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// Takes in a request that has ended.
    pub fn add(&mut self, r: &RequestLife) {
        let (Some(insert), Some(issue)) = (r.insert, r.issue) else {
            return;
        };
        let new = Extent {
            begin: r.sector,
            end: r.end(),
            insert,
            issue,
        };
        let side = self.sides.entry((r.dev, r.rwbs.op())).or_default();
        let found = side.pairs_with(self.nr_ended, new);
        self.nr_ended += 1;
        for (first, second) in found {
            self.pairs.push(Pair {
                dev: r.dev,
                first,
                second,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_trace::Rwbs;
    use blklab_types::SECTOR_BYTES;

    fn request(number: u64, sector: u64, sectors: u64, insert: u64, issue: u64) -> RequestLife {
        RequestLife {
            number,
            dev: Dev { major: 8, minor: 0 },
            pid: 1,
            rwbs: Rwbs::WRITE,
            sector,
            bytes: sectors * SECTOR_BYTES,
            get: Some(Time(insert)),
            insert: Some(Time(insert)),
            issue: Some(Time(issue)),
            complete: Some(Time(issue + 5)),
            error: 0,
            nr_bios: 1,
            nr_back_merges: 0,
            nr_front_merges: 0,
            nr_absorbed: 0,
            nr_silent_merges: 0,
            nr_requeues: 0,
        }
    }

    fn sizes(requests: &[RequestLife]) -> Vec<(u64, u64)> {
        let mut all = MissedMerges::default();
        for r in requests {
            all.add(r);
        }
        let sizes = |p: &Pair| (p.first.sectors(), p.second.sectors());
        all.pairs().iter().map(sizes).collect()
    }

    #[test]
    fn a_request_behind_a_waiting_one_is_a_missed_merge() {
        let waits = request(0, 1000, 376, 10, 50);
        let behind = request(1, 1376, 248, 20, 55);
        assert_eq!(sizes(&[waits, behind]), [(376, 248)]);
        // In whichever order they end.
        assert_eq!(sizes(&[behind, waits]), [(376, 248)]);
        // Behind one that was at the disk already, before it, a read behind a write.
        let late = request(2, 1376, 8, 60, 70);
        let early = request(3, 1376, 8, 5, 70);
        let read = RequestLife {
            rwbs: Rwbs::READ,
            ..behind
        };
        for other in [late, early, read] {
            assert_eq!(sizes(&[waits, other]), []);
        }
    }

    #[test]
    fn requests_that_ended_long_ago_are_forgotten() {
        let mut side = Side::default();
        let extent = |n: u64| Extent {
            begin: n * 8,
            end: n * 8 + 8,
            insert: Time(n),
            issue: Time(n),
        };
        for n in 0..WINDOW as u64 + 10 {
            assert!(side.pairs_with(n, extent(n)).is_empty());
        }
        assert_eq!((side.by_begin.len(), side.by_end.len()), (WINDOW, WINDOW));
    }
}
