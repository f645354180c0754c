// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each request waited for between its insertion and the device.
//!
//! The truth stream says what is waited for in general: the plug, the device,
//! or what the scheduler decided. For one request that means:
//!
//! * While the queue is plugged it waits for the plug.
//! * What the scheduler decided while it was there passed it over: it waits
//!   for that, also while the device works on what was chosen.
//! * It waits for the device if the driver has been shown it, or if nothing
//!   was decided since it came.
//! * In the slice of its own process it waits behind others of that process
//!   ([`Why::Order`] in place of [`Why::Slice`]); and so do async requests in
//!   the slice of an async queue, which belongs to no process.
//!
//! Requests that become part of another one end there, and those that others
//! stand in for (barriers, flushes) when they complete; neither is reported.

use crate::truth::{Kind, NO_REQUEST, Truth, TruthSink, Why};
use blklab_types::{Pid, Span, Time};
use std::collections::VecDeque;

/// One reason and how long it held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The reason.
    pub why: Why,
    /// The process that is served or waited for, 0 if there is none.
    pub pid: Pid,
    /// How long.
    pub span: Span,
}

/// A request that came to the device.
#[derive(Clone, Copy, Debug)]
pub struct Waited<'a> {
    /// The record of its hand-over: owner, place, time.
    pub request: &'a Truth,
    /// When it entered the scheduler.
    pub inserted: Time,
    /// What it waited for, in order; the spans fill the time from insertion
    /// to hand-over. Empty if it did not wait.
    pub labels: &'a [Label],
}

/// A change of what is waited for.
#[derive(Clone, Copy, Debug)]
struct Change {
    time: Time,
    why: Why,
    pid: Pid,
}

/// What stops the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Driver {
    Free,
    Plugged,
    DeviceFull,
}

impl Driver {
    fn at(why: Why) -> Driver {
        match why {
            Why::Plugged => Driver::Plugged,
            Why::DeviceFull => Driver::DeviceFull,
            _ => Driver::Free,
        }
    }
}

/// A request on its way to the device.
#[derive(Clone, Copy, Debug)]
struct Open {
    inserted: Time,
    /// At its insertion.
    driver: Driver,
    /// Number of the first change after its insertion.
    first_change: u64,
    /// When the driver was shown it.
    issued: Option<Time>,
}

/// Turns truth records into the waits of requests, and calls a function with
/// each request that is handed over.
#[derive(Debug)]
pub struct WaitLabels<F> {
    report: F,
    /// By slot.
    open: Vec<Option<Open>>,
    nr_open: usize,
    /// Changes that some open request may need; the first has this number.
    changes: VecDeque<Change>,
    first: u64,
    /// Length of `changes` at which the oldest are dropped.
    drop_at: usize,
    driver: Driver,
    labels: Vec<Label>,
}

/// Changes kept without looking whether they are needed.
const CHANGES_KEPT: usize = 1024;

impl<F: FnMut(&Waited<'_>)> WaitLabels<F> {
    /// Calls `report` with every request that is handed to the device.
    pub fn new(report: F) -> WaitLabels<F> {
        WaitLabels {
            report,
            open: Vec::new(),
            nr_open: 0,
            changes: VecDeque::new(),
            first: 0,
            drop_at: CHANGES_KEPT,
            driver: Driver::Free,
            labels: Vec::new(),
        }
    }

    fn insert(&mut self, record: &Truth) {
        let slot = record.request as usize;
        self.close(slot);
        if self.open.len() <= slot {
            self.open.resize(slot + 1, None);
        }
        self.open[slot] = Some(Open {
            inserted: record.time,
            driver: self.driver,
            first_change: self.first + self.changes.len() as u64,
            issued: None,
        });
        self.nr_open += 1;
    }

    fn issue(&mut self, record: &Truth) {
        if let Some(Some(open)) = self.open.get_mut(record.request as usize) {
            open.issued.get_or_insert(record.time);
        }
    }

    fn close(&mut self, slot: usize) -> Option<Open> {
        let open = self.open.get_mut(slot)?.take()?;
        self.nr_open -= 1;
        Some(open)
    }

    fn hand_over(&mut self, record: &Truth) {
        let Some(open) = self.close(record.request as usize) else {
            return;
        };
        self.label(&open, record);
        (self.report)(&Waited {
            request: record,
            inserted: open.inserted,
            labels: &self.labels,
        });
    }

    /// Fills `labels` for a request that is handed over.
    fn label(&mut self, open: &Open, record: &Truth) {
        self.labels.clear();
        let mut state = State {
            driver: open.driver,
            decision: None,
        };
        let mut from = open.inserted;
        let skip = open.first_change.saturating_sub(self.first);
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        for change in self.changes.iter().skip(skip) {
            if open.issued.is_some_and(|issued| issued < change.time) {
                break;
            }
            push(&mut self.labels, state.label(record), from, change.time);
            from = change.time;
            state.follow(change);
        }
        if let Some(issued) = open.issued {
            push(&mut self.labels, state.label(record), from, issued);
            push(&mut self.labels, (Why::DeviceFull, 0), issued, record.time);
        } else {
            push(&mut self.labels, state.label(record), from, record.time);
        }
    }

    fn change(&mut self, record: &Truth, why: Why) {
        self.driver = Driver::at(why);
        if self.nr_open == 0 {
            self.first += self.changes.len() as u64;
            self.changes.clear();
            return;
        }
        self.changes.push_back(Change {
            time: record.time,
            why,
            pid: record.pid,
        });
        if self.changes.len() >= self.drop_at {
            self.drop_unneeded();
        }
    }

    fn drop_unneeded(&mut self) {
        let needed = self.open.iter().flatten().map(|o| o.first_change).min();
        let needed = needed.unwrap_or(u64::MAX);
        while self.first < needed && self.changes.pop_front().is_some() {
            self.first += 1;
        }
        self.drop_at = CHANGES_KEPT.max(2 * self.changes.len());
    }
}

/// What one request waits for.
#[derive(Clone, Copy, Debug)]
struct State {
    driver: Driver,
    /// What the scheduler decided last, if anything while it was there.
    decision: Option<(Why, Pid)>,
}

impl State {
    fn follow(&mut self, change: &Change) {
        self.driver = Driver::at(change.why);
        if self.driver == Driver::Free {
            self.decision = Some((change.why, change.pid));
        }
    }

    fn label(&self, request: &Truth) -> (Why, Pid) {
        match self.decision {
            _ if self.driver == Driver::Plugged => (Why::Plugged, 0),
            Some((Why::Slice, pid)) if pid == request.pid || (pid == 0 && !request.sync) => {
                (Why::Order, pid)
            }
            Some(decision) => decision,
            None if self.driver == Driver::DeviceFull => (Why::DeviceFull, 0),
            None => (Why::Order, 0),
        }
    }
}

/// Appends a label, or lengthens the last one.
fn push(labels: &mut Vec<Label>, (why, pid): (Why, Pid), from: Time, to: Time) {
    let span = to.since(from);
    match labels.last_mut() {
        _ if span == Span::ZERO => {}
        Some(last) if last.why == why && last.pid == pid => last.span += span,
        _ => labels.push(Label { why, pid, span }),
    }
}

impl<F: FnMut(&Waited<'_>)> TruthSink for WaitLabels<F> {
    fn truth(&mut self, record: &Truth, _: &str) {
        match record.kind {
            Kind::Wait(why) => self.change(record, why),
            _ if record.request == NO_REQUEST => {}
            Kind::Insert => self.insert(record),
            Kind::Issue => self.issue(record),
            Kind::HandOver => self.hand_over(record),
            Kind::Absorbed | Kind::Complete => {
                self.close(record.request as usize);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_types::Op;

    const A: Pid = 10;
    const B: Pid = 20;

    fn record(ms: u64, kind: Kind, request: u32, pid: Pid) -> Truth {
        Truth {
            time: Time(ms * 1_000_000),
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

    fn wait(ms: u64, why: Why, pid: Pid) -> Truth {
        record(ms, Kind::Wait(why), NO_REQUEST, pid)
    }

    /// `slot: reason pid ms, ...` of every request that was handed over.
    fn labels(records: &[Truth]) -> Vec<String> {
        let mut shown = Vec::new();
        let mut labels = WaitLabels::new(|w: &Waited<'_>| {
            let waits = w.labels.iter().map(|l| {
                let ms = l.span.0 / 1_000_000;
                format!("{} {} {ms}", l.why.text(), l.pid)
            });
            let waits: Vec<String> = waits.collect();
            shown.push(format!("{}: {}", w.request.request, waits.join(", ")));
            let sum: u64 = w.labels.iter().map(|l| l.span.0).sum();
            assert_eq!(sum, w.request.time.since(w.inserted).0);
        });
        for r in records {
            labels.truth(r, "");
        }
        shown
    }

    #[test]
    fn plug_then_decisions_then_the_device() {
        let got = labels(&[
            wait(0, Why::Plugged, 0),
            record(0, Kind::Insert, 1, A),
            record(1, Kind::Insert, 2, B),
            wait(3, Why::Slice, A),
            record(3, Kind::Issue, 1, A),
            record(3, Kind::HandOver, 1, A),
            wait(3, Why::DeviceFull, 0),
            wait(10, Why::Idling, A),
            wait(18, Why::Slice, B),
            record(18, Kind::Issue, 2, B),
            wait(18, Why::DeviceFull, 0),
            record(20, Kind::HandOver, 2, B),
        ]);
        assert_eq!(
            got,
            [
                "1: plugged 0 3",
                "2: plugged 0 2, other queue's slice 10 7, idling 10 8, device full 0 2",
            ]
        );
    }

    #[test]
    fn who_came_after_the_decision_waits_for_the_device() {
        let got = labels(&[
            wait(0, Why::Slice, A),
            wait(0, Why::DeviceFull, 0),
            record(2, Kind::Insert, 7, B),
            wait(5, Why::Slice, A),
            wait(5, Why::DeviceFull, 0),
            wait(9, Why::Slice, B),
            record(9, Kind::HandOver, 7, B),
        ]);
        assert_eq!(got, ["7: device full 0 3, other queue's slice 10 4"]);
    }

    #[test]
    fn within_the_slice_of_its_own_process_a_request_is_behind_others() {
        let mut async_write = record(0, Kind::Insert, 3, B);
        async_write.sync = false;
        let mut handed_over = record(6, Kind::HandOver, 3, B);
        handed_over.sync = false;
        let got = labels(&[
            record(0, Kind::Insert, 1, A),
            record(0, Kind::Insert, 2, B),
            async_write,
            wait(0, Why::Slice, A),
            record(4, Kind::HandOver, 1, A),
            wait(4, Why::Slice, 0),
            record(6, Kind::HandOver, 2, B),
            handed_over,
        ]);
        assert_eq!(
            got,
            [
                "1: behind others 10 4",
                "2: other queue's slice 10 4, other queue's slice 0 2",
                "3: other queue's slice 10 4, behind others 0 2",
            ]
        );
    }

    #[test]
    fn absorbed_and_replaced_requests_are_not_reported_and_slots_are_reused() {
        let got = labels(&[
            record(0, Kind::Insert, 1, A),
            record(0, Kind::Insert, 2, A),
            record(1, Kind::RequestMerge, 1, A),
            record(1, Kind::Absorbed, 2, A),
            record(2, Kind::Insert, 2, B),
            record(2, Kind::Insert, 3, B),
            record(3, Kind::Complete, 3, B),
            wait(3, Why::ReadBatch, 0),
            record(5, Kind::HandOver, 1, A),
            record(5, Kind::HandOver, 2, B),
            // Refused by the device, and taken at the second attempt.
            record(6, Kind::Insert, 2, B),
            wait(6, Why::DeviceFull, 0),
            record(8, Kind::HandOver, 2, B),
        ]);
        assert_eq!(
            got,
            [
                "1: behind others 0 3, read batch 0 2",
                "2: behind others 0 1, read batch 0 2",
                "2: device full 0 2",
            ]
        );
    }

    #[test]
    fn old_changes_are_dropped_while_something_is_always_open() {
        let (mut slots, mut reported) = ([0_u32, 1], 0_u32);
        let mut labels = WaitLabels::new(|w: &Waited<'_>| {
            reported += 1;
            assert_eq!(w.labels.len(), 1);
        });
        labels.truth(&record(0, Kind::Insert, 0, A), "");
        for ms in 0..10_000_u64 {
            labels.truth(&wait(ms, Why::Slice, B), "");
            if ms % 10 == 9 {
                labels.truth(&record(ms, Kind::Insert, slots[1], A), "");
                labels.truth(&wait(ms, Why::Slice, B), "");
                labels.truth(&record(ms + 1, Kind::HandOver, slots[0], A), "");
                slots.reverse();
            }
            assert!(labels.changes.len() <= CHANGES_KEPT);
        }
        assert_eq!(reported, 1000);
    }
}
