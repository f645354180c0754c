// SPDX-License-Identifier: MIT OR Apache-2.0
//! What waiting requests wait for in general, over time: the plug, the device, or what the
//! scheduler decided last. [`WaitLabels`](blklab_trace::WaitLabels) says the same for each
//! request by itself.

use blklab_analysis::bins::{Bin, Bins};
use blklab_trace::truth::{Kind, NO_REQUEST, Truth, Why};
use blklab_types::{Pid, Time};
use std::collections::BTreeMap;

/// Changes that are kept one by one.
const CHANGES_MAX: usize = 60_000;

/// What is waited for, and the process that is served or waited for; 0: none.
pub type Decision = (Why, Pid);

/// What waiting requests waited for, over time.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    /// Length of an interval, ns; the first begins with the trace.
    pub interval_ns: u64,
    /// How long each held in each interval, ns.
    pub spent: Vec<BTreeMap<Decision, u64>>,
    /// Since the start of the trace, ns, what holds from then on; none where nothing waits.
    /// Nothing at all if there were more than 60,000.
    pub changes: Option<Vec<(u64, Option<Decision>)>>,
}

#[derive(Clone, Debug, Default)]
struct Spent(BTreeMap<Decision, u64>);

impl Bin for Spent {
    fn join(&mut self, other: Spent) {
        for (decision, ns) in other.0 {
            *self.0.entry(decision).or_default() += ns;
        }
    }
}

/// Where a request is that has not come to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Inserted,
    /// The driver was shown it.
    Issued,
}

/// Follows the records of a run.
#[derive(Debug)]
pub(crate) struct DecisionLog {
    start: Time,
    /// By slot.
    open: Vec<Option<Stage>>,
    nr_inserted: usize,
    nr_issued: usize,
    is_plugged: bool,
    /// While something waits that it passed over.
    decision: Option<Decision>,
    state: Option<Decision>,
    since: Time,
    bins: Bins<Spent>,
    changes: Option<Vec<(u64, Option<Decision>)>>,
}

impl DecisionLog {
    /// The trace begins at `start`.
    pub(crate) fn new(start: Time) -> DecisionLog {
        DecisionLog {
            start,
            open: Vec::new(),
            nr_inserted: 0,
            nr_issued: 0,
            is_plugged: false,
            decision: None,
            state: None,
            since: start,
            bins: Bins::new(start),
            changes: Some(Vec::new()),
        }
    }

    pub(crate) fn truth(&mut self, record: &Truth) {
        match record.kind {
            Kind::Wait(why) => {
                self.is_plugged = why == Why::Plugged;
                if !self.is_plugged && why != Why::DeviceFull && self.nr_inserted > 0 {
                    self.decision = Some((why, record.pid));
                }
            }
            _ if record.request == NO_REQUEST => return,
            Kind::Insert => self.set(record.request, Some(Stage::Inserted)),
            Kind::Issue => {
                if self.open.get(record.request as usize) == Some(&Some(Stage::Inserted)) {
                    self.set(record.request, Some(Stage::Issued));
                }
            }
            Kind::HandOver | Kind::Absorbed | Kind::Complete => self.set(record.request, None),
            _ => return,
        }
        self.follow(record.time);
    }

    fn set(&mut self, slot: u32, stage: Option<Stage>) {
        let slot = slot as usize;
        if self.open.len() <= slot {
            self.open.resize(slot + 1, None);
        }
        let before = std::mem::replace(&mut self.open[slot], stage);
        let counts = |s: Option<Stage>, which: Stage| usize::from(s == Some(which));
        self.nr_inserted += counts(stage, Stage::Inserted);
        self.nr_inserted -= counts(before, Stage::Inserted);
        self.nr_issued += counts(stage, Stage::Issued);
        self.nr_issued -= counts(before, Stage::Issued);
        if self.nr_inserted == 0 {
            self.decision = None;
        }
    }

    fn follow(&mut self, now: Time) {
        let state = match self.decision {
            _ if self.nr_inserted == 0 => (self.nr_issued > 0).then_some((Why::DeviceFull, 0)),
            _ if self.is_plugged => Some((Why::Plugged, 0)),
            None => Some((Why::DeviceFull, 0)),
            decision => decision,
        };
        if state == self.state {
            return;
        }
        self.spend(now);
        self.state = state;
        let after = now.since(self.start).0;
        if let Some(changes) = &mut self.changes {
            // Within an instant the last one counts.
            if changes.last().is_some_and(|(at, _)| *at == after) {
                changes.pop();
            }
            if changes.last().map(|(_, state)| *state) != Some(state) {
                changes.push((after, state));
            }
            if changes.len() > CHANGES_MAX {
                self.changes = None;
            }
        }
    }

    fn spend(&mut self, now: Time) {
        if let Some(state) = self.state.filter(|_| now > self.since) {
            self.bins.over([self.since, now], |bin, ns| {
                *bin.0.entry(state).or_default() += ns;
            });
        }
        self.since = now;
    }

    /// All of it.
    pub(crate) fn take(&mut self) -> Decisions {
        let log = std::mem::replace(self, DecisionLog::new(self.start));
        Decisions {
            interval_ns: log.bins.interval_ns(),
            spent: log.bins.into_bins().into_iter().map(|b| b.0).collect(),
            changes: log.changes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_types::Op;

    const A: Pid = 10;
    const B: Pid = 20;

    fn record(us: u64, kind: Kind, request: u32, pid: Pid) -> Truth {
        Truth {
            time: Time(us * 1024),
            kind,
            pid,
            op: Op::Read,
            sync: true,
            sector: 0,
            nr_sectors: 8,
            arg: 0,
            request,
        }
    }

    fn wait(us: u64, why: Why, pid: Pid) -> Truth {
        record(us, Kind::Wait(why), NO_REQUEST, pid)
    }

    /// A slice holds while the device works on it, idling counts when somebody waits for
    /// it to end, and where nothing waits there is nothing.
    #[test]
    fn slices_and_idling() {
        let mut log = DecisionLog::new(Time(0));
        for r in [
            record(0, Kind::Insert, 1, A),
            record(0, Kind::Insert, 2, B),
            wait(0, Why::Slice, A),
            record(0, Kind::Issue, 1, A),
            record(0, Kind::HandOver, 1, A),
            wait(1, Why::DeviceFull, 0),
            wait(5, Why::Idling, A),
            wait(9, Why::Slice, B),
            record(9, Kind::Issue, 2, B),
            record(9, Kind::HandOver, 2, B),
            wait(12, Why::Idling, B),
        ] {
            log.truth(&r);
        }
        let d = log.take();
        let at = |us: u64| us * 1024;
        let changes = [
            (at(0), Some((Why::Slice, A))),
            (at(5), Some((Why::Idling, A))),
            (at(9), None),
        ];
        assert_eq!(d.changes.as_deref(), Some(&changes[..]));
        let mut sums = Spent::default();
        d.spent.into_iter().for_each(|bin| sums.join(Spent(bin)));
        let sums: Vec<_> = sums.0.into_iter().collect();
        assert_eq!(sums, [((Why::Slice, A), at(5)), ((Why::Idling, A), at(4))]);
    }

    #[test]
    fn of_too_many_changes_none_is_kept() {
        let mut log = DecisionLog::new(Time(0));
        log.truth(&record(0, Kind::Insert, 1, A));
        for us in 0..=CHANGES_MAX as u64 + 1 {
            log.truth(&wait(us, Why::Slice, if us % 2 == 0 { A } else { B }));
        }
        let d = log.take();
        assert!(d.changes.is_none());
        assert!(d.spent.len() <= 512);
    }
}
