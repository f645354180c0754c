// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons added up by process, and the requests that waited longest.

use crate::reason::{Cause, Reason, Words};
use crate::report::{Explained, Waiting};
use blklab_analysis::names::Names;
use blklab_types::Pid;
use std::collections::BTreeMap;

/// Processes that are told apart.
const PROCESSES_MAX: usize = 1 << 16;

/// Reasons of a process that are given.
const REASONS_MAX: usize = 8;

/// A request that agrees, before anything is put into words.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) event: u64,
    pub(crate) time_ns: u64,
    pub(crate) pid: Pid,
    pub(crate) is_sync: bool,
    pub(crate) rwbs: String,
    pub(crate) sector: u64,
    pub(crate) sectors: u32,
    pub(crate) wait_ns: u64,
    pub(crate) causes: Vec<(Cause, Pid, u64)>,
    pub(crate) notes: Vec<String>,
}

#[derive(Clone, Debug, Default)]
struct Sum {
    requests: u64,
    wait_ns: u64,
    worst_ns: u64,
    causes: BTreeMap<(Cause, Pid), u64>,
}

/// Adds up reasons.
#[derive(Debug)]
pub(crate) struct Account {
    sums: BTreeMap<(Pid, bool), Sum>,
    worst: Vec<Known>,
    worst_max: usize,
    pub(crate) nr_explained: u64,
}

impl Account {
    /// Keeps so many of the worst.
    pub(crate) fn new(worst_max: usize) -> Account {
        Account {
            sums: BTreeMap::new(),
            worst: Vec::new(),
            worst_max,
            nr_explained: 0,
        }
    }

    /// Counts a request. True if it is one of the worst so far.
    pub(crate) fn count(
        &mut self,
        (pid, is_sync): (Pid, bool),
        wait_ns: u64,
        causes: &[(Cause, Pid, u64)],
    ) -> bool {
        self.nr_explained += 1;
        if wait_ns == 0 {
            return false;
        }
        let key = (pid, is_sync);
        if self.sums.len() < PROCESSES_MAX || self.sums.contains_key(&key) {
            let sum = self.sums.entry(key).or_default();
            sum.requests += 1;
            sum.wait_ns = sum.wait_ns.saturating_add(wait_ns);
            sum.worst_ns = sum.worst_ns.max(wait_ns);
            for (cause, pid, ns) in causes {
                let all = sum.causes.entry((*cause, *pid)).or_default();
                *all = all.saturating_add(*ns);
            }
        }
        let key = (is_sync, wait_ns);
        let last = self.worst.last().map(|k| (k.is_sync, k.wait_ns));
        self.worst_max > 0 && (self.worst.len() < self.worst_max || last < Some(key))
    }

    /// One of the worst, in its place.
    pub(crate) fn keep(&mut self, known: Known) {
        let key = |k: &Known| (k.is_sync, k.wait_ns);
        let place = self.worst.partition_point(|k| key(k) >= key(&known));
        self.worst.insert(place, known);
        self.worst.truncate(self.worst_max);
    }

    /// In words.
    pub(crate) fn finish(self, words: &Words, names: &Names) -> (Vec<Waiting>, Vec<Explained>) {
        let mut all: Vec<Waiting> = self
            .sums
            .into_iter()
            .map(|((pid, is_sync), sum)| {
                let causes = sum.causes.into_iter().map(|((c, p), ns)| (c, p, ns));
                let mut causes: Vec<_> = causes.collect();
                causes.sort_by_key(|(_, _, ns)| std::cmp::Reverse(*ns));
                causes.truncate(REASONS_MAX);
                Waiting {
                    pid,
                    comm: names.get(pid).map(str::to_owned),
                    is_sync,
                    requests: sum.requests,
                    wait_ns: sum.wait_ns,
                    worst_ns: sum.worst_ns,
                    reasons: reasons(&causes, words, names),
                }
            })
            .collect();
        all.sort_by_key(|w| (std::cmp::Reverse((w.is_sync, w.wait_ns)), w.pid));
        let worst = self.worst.into_iter().map(|k| explained(k, words, names));
        (all, worst.collect())
    }
}

pub(crate) fn explained(k: Known, words: &Words, names: &Names) -> Explained {
    Explained {
        event: k.event,
        time_ns: k.time_ns,
        pid: k.pid,
        comm: names.get(k.pid).map(str::to_owned),
        rwbs: k.rwbs,
        sector: k.sector,
        sectors: k.sectors,
        wait_ns: k.wait_ns,
        reasons: reasons(&k.causes, words, names),
        notes: k.notes,
    }
}

fn reasons(causes: &[(Cause, Pid, u64)], words: &Words, names: &Names) -> Vec<Reason> {
    let reason = |(cause, pid, ns): &(Cause, Pid, u64)| Reason {
        cause: cause.name(),
        pid: Some(*pid).filter(|pid| *pid > 0),
        ns: *ns,
        words: words.cause(*cause, *pid, |pid| names.who(pid)),
    };
    causes.iter().map(reason).collect()
}
