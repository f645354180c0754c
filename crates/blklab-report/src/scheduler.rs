// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the scheduler had requests wait for, by groups of processes.

use crate::model::{Held, Member, Scheduler};
use blklab::explain::{Decision, Decisions, ReEnacted};
use blklab_trace::truth::Why;
use std::collections::BTreeMap;

/// In the words of a line of the band.
fn what(why: Why) -> &'static str {
    match why {
        Why::Slice => "slice",
        Why::Order => "scheduler's order",
        Why::InFlight => "requests in flight",
        why => why.text(),
    }
}

impl Member {
    /// Takes over what a re-enactment says; of more changes than `changes_max` the
    /// intervals alone.
    pub fn explain(&mut self, mut again: Box<ReEnacted>, changes_max: usize) {
        let decisions = std::mem::take(&mut again.decisions);
        if !decisions.spent.is_empty() {
            self.scheduler = Some(self.scheduler(&again.dev.to_string(), &decisions, changes_max));
        }
        self.re_enacted = Some(again);
    }

    fn key(&self, (why, pid): Decision) -> (&'static str, Option<usize>) {
        let group = (pid != 0).then(|| self.places.get(&pid).copied()).flatten();
        (what(why), group)
    }

    fn scheduler(&self, dev: &str, d: &Decisions, changes_max: usize) -> Scheduler {
        let mut sums: BTreeMap<(&'static str, Option<usize>), Vec<u64>> = BTreeMap::new();
        for (i, bin) in d.spent.iter().enumerate() {
            for (decision, ns) in bin {
                let all = sums.entry(self.key(*decision));
                all.or_insert_with(|| vec![0; d.spent.len()])[i] += ns;
            }
        }
        let mut lines: Vec<Held> = sums
            .into_iter()
            .map(|((what, group), ns)| Held {
                what,
                group,
                total_ns: ns.iter().sum(),
                share: 0.0,
                ns,
            })
            .collect();
        lines.sort_by_key(|l| std::cmp::Reverse(l.total_ns));
        let all: u64 = lines.iter().map(|l| l.total_ns).sum();
        for line in &mut lines {
            line.share = line.total_ns as f64 / all.max(1) as f64 * 100.0;
        }
        let mut own = Scheduler {
            dev: dev.to_owned(),
            interval_ns: d.interval_ns,
            lines,
            change_after: Vec::new(),
            change_line: Vec::new(),
        };
        let changes = d.changes.as_deref().unwrap_or_default();
        if changes.len() <= changes_max {
            let mut before = 0;
            for (at, state) in changes {
                let key = state.map(|s| self.key(s));
                let place = own
                    .lines
                    .iter()
                    .position(|l| Some((l.what, l.group)) == key);
                let place = place.map_or(-1, |p| p as i64);
                if own.change_line.last() != Some(&place) {
                    own.change_after.push(at - before);
                    own.change_line.push(place);
                    before = *at;
                }
            }
        }
        own
    }
}
