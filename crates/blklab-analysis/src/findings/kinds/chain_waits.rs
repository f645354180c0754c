// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who waits for commits of a journal: who pauses for as long as one lasts, again and again.

use super::chains::{Chain, NEAR_NS, SLOW_NS, Writers};
use crate::findings::disk::Disk;
use blklab_trace::Action;
use blklab_types::{Pid, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Of ten pauses of a process so many have a commit in them, and of ten commits so many are in one,
/// if they take turns.
const TURNS_OF_TEN: usize = 9;

/// So often a process goes on after a chain, so that it waits for it.
const TIMES_MIN: u64 = 3;

/// A wait for a chain of another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waited {
    pub(super) chain: Chain,
    /// From the end of the process's last I/O.
    pub(super) ns: u64,
    /// From the beginning of its last write: what a call that writes and syncs takes.
    pub(super) with_write_ns: u64,
}

/// Processes that wait for chains of others, with each of these waits.
pub(super) fn waiters(
    disk: &Disk,
    chains: &[Chain],
    writers: &Writers,
) -> BTreeMap<Pid, Vec<Waited>> {
    let mut of_pid: BTreeMap<Pid, Vec<([Time; 2], bool)>> = BTreeMap::new();
    for r in &disk.requests {
        if let (Some(start), Some(end)) = (r.start(), r.life.complete) {
            let ios = of_pid.entry(r.pid).or_default();
            ios.push(([start, end], r.is_write()));
        }
    }
    let own: BTreeSet<Pid> = chains.iter().map(|c| c.pid).collect();
    // Who hands on what others have queued waits for nothing.
    of_pid.retain(|pid, _| !own.contains(pid) && !writers.hands_on(*pid));
    let shows_way = disk.has(Action::Queue);
    let mut waiters = BTreeMap::new();
    for (pid, mut ios) in of_pid {
        ios.sort_unstable();
        let pauses = Pauses::new(&ios, chains, shows_way);
        let is_near = pauses.near.len() as u64 >= TIMES_MIN && pauses.near.len() * 2 >= pauses.nr;
        if is_near {
            waiters.insert(pid, pauses.near);
        } else if pauses.take_turns(chains.len()) {
            waiters.insert(pid, pauses.all);
        }
    }
    waiters
}

/// The pauses between a process's I/Os in which commits are.
#[derive(Default)]
struct Pauses {
    /// All pauses.
    nr: usize,
    /// Those that a commit begins and ends.
    near: Vec<Waited>,
    /// Those in which there is a commit from its beginning to its end, behind which it goes on.
    all: Vec<Waited>,
}

impl Pauses {
    fn new(ios: &[([Time; 2], bool)], chains: &[Chain], shows_way: bool) -> Pauses {
        let mut pauses = Pauses::default();
        for pair in ios.windows(2) {
            let [([start, end], is_write), ([next, _], _)] = [pair[0], pair[1]];
            if next <= end || next.since(end).0 < SLOW_NS {
                continue;
            }
            pauses.nr += 1;
            let i = chains.partition_point(|c| c.end <= next);
            let chain = i.checked_sub(1).map(|i| chains[i]);
            let Some(chain) = chain.filter(|c| c.begin >= end) else {
                continue;
            };
            let from = if is_write { start } else { end };
            let waited = Waited {
                chain,
                ns: next.since(end).0,
                with_write_ns: next.since(from).0,
            };
            let is_near = |from: Time, to: Time| to.since(from).0 <= NEAR_NS;
            let goes_on = is_near(chain.end, next);
            if goes_on && is_near(end, chain.begin) {
                pauses.near.push(waited);
            }
            // Where no Q is shown, its next I/O may have waited for a request or tag.
            if goes_on || !shows_way {
                pauses.all.push(waited);
            }
        }
        pauses
    }

    /// Whether nearly every pause has a commit in it, and nearly every commit is in one: the process
    /// and the journal take turns. A commit need not begin at once: its thread may wait for a
    /// request or tag, too.
    fn take_turns(&self, nr_chains: usize) -> bool {
        let nearly = |all: usize| self.all.len() * 10 >= all * TURNS_OF_TEN;
        self.all.len() as u64 >= TIMES_MIN && nearly(self.nr) && nearly(nr_chains.saturating_sub(1))
    }
}
