// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a request of a stream is doing at a time.

use super::{TIE_NS, overlaps};
use blklab_trace::{Action, Event, Rwbs};
use blklab_types::{Dev, Pid, Time};
use std::collections::BTreeMap;

/// What a request is doing at the instant at which another is dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// No bio of it has come.
    NotCome,
    /// Its bio has come and has no request.
    Queued,
    /// It is a request, which the scheduler does not have.
    Plugged,
    /// It could be dispatched.
    Waiting,
}

/// The events of one device.
pub(super) struct Stream<'a> {
    events: Vec<&'a Event>,
    /// Where the dispatches are among them.
    places: Vec<usize>,
    start: Time,
}

impl<'a> Stream<'a> {
    pub(super) fn new(events: &'a [Event], dev: Dev, start: Time) -> Stream<'a> {
        // Commands passed through are no requests of anybody's bios.
        let own = |e: &&Event| e.dev == dev && !e.rwbs.has(Rwbs::PC);
        let events: Vec<&Event> = events.iter().filter(own).collect();
        let issued = |(i, e): (usize, &&Event)| (e.action == Action::Issue).then_some(i);
        Stream {
            places: events.iter().enumerate().filter_map(issued).collect(),
            events,
            start,
        }
    }

    /// The dispatches, in order.
    pub(super) fn dispatches(&self) -> Vec<Event> {
        self.places.iter().map(|at| *self.events[*at]).collect()
    }

    /// A dispatch.
    pub(super) fn number(&self, number: usize) -> &Event {
        self.events[self.places[number]]
    }

    pub(super) fn since_start(&self, time: Time) -> u64 {
        time.0.saturating_sub(self.start.0)
    }

    /// The events of a kind that belong to a dispatched request, the latest first.
    fn history(&self, number: usize, action: Action) -> impl Iterator<Item = &'a Event> {
        let own = *self.number(number);
        let before = &self.events[..self.places[number]];
        let mut alive = true;
        let back = before.iter().rev().copied().take_while(move |e| {
            // What was issued or ended there before is another one's.
            let is_earlier = e.action == Action::Issue && overlaps(e, &own);
            alive &= !is_earlier;
            alive
        });
        back.filter(move |e| e.action == action && belongs(e, &own))
    }

    /// The first of those.
    fn first(&self, number: usize, action: Action) -> Option<&'a Event> {
        self.history(number, action).last()
    }

    /// What a request that is dispatched as number `number` is doing at a time.
    pub(super) fn state(&self, number: usize, at: Time) -> State {
        let by = |action| self.first(number, action).is_some_and(|e| e.time <= at);
        if !by(Action::Queue) {
            return State::NotCome;
        }
        if !by(Action::GetRequest) {
            return State::Queued;
        }
        // Without a scheduler most requests go to the driver directly.
        match self.first(number, Action::Insert) {
            Some(insert) if insert.time <= at => State::Waiting,
            _ => State::Plugged,
        }
    }

    /// When the first bio of a request comes, in ns from the start.
    pub(super) fn comes(&self, number: usize) -> u64 {
        let first = self.first(number, Action::Queue);
        first.map_or(0, |e| self.since_start(e.time))
    }

    /// Whether two requests were made by processes that woke at one instant, or of bios of
    /// one instant.
    pub(super) fn tied(&self, a: usize, b: usize) -> bool {
        let (Some(a), Some(b)) = (self.first(a, Action::Queue), self.first(b, Action::Queue))
        else {
            return false;
        };
        if a.pid == b.pid {
            return false;
        }
        let near = |a: Time, b: Time| a.0.abs_diff(b.0) <= TIE_NS;
        let woken = |e: &Event| self.last_end(e.pid, e.time);
        match (woken(a), woken(b)) {
            (Some(x), Some(y)) => near(x, y),
            _ => near(a.time, b.time),
        }
    }

    /// Whether a request is of the first bio of its process.
    pub(super) fn is_first(&self, number: usize) -> bool {
        let Some(own) = self.first(number, Action::Queue) else {
            return false;
        };
        let of_process = |e: &&&Event| e.action == Action::Queue && e.pid == own.pid;
        let first = self.events.iter().find(of_process);
        first.is_some_and(|e| std::ptr::eq(*e, own))
    }

    /// Whether two requests came into the scheduler at one instant.
    pub(super) fn inserted_together(&self, a: usize, b: usize) -> bool {
        let inserted = |n| self.first(n, Action::Insert).map(|e| e.time);
        inserted(a).is_some_and(|t| inserted(b) == Some(t))
    }

    /// When an I/O of a process ended the last time before.
    fn last_end(&self, pid: Pid, before: Time) -> Option<Time> {
        let mut owners: BTreeMap<u64, Pid> = BTreeMap::new();
        let mut last = None;
        for e in self.events.iter().take_while(|e| e.time <= before) {
            match e.action {
                Action::Queue => {
                    owners.insert(e.sector, e.pid);
                }
                Action::Complete => {
                    let own = owners.range(e.sector..e.end_sector().max(e.sector + 1));
                    if own.into_iter().any(|(_, owner)| *owner == pid) {
                        last = Some(e.time);
                    }
                }
                _ => {}
            }
        }
        last
    }

    /// Whether a bio was refused before a time, since its process does not wait.
    pub(super) fn is_refused_before(&self, time: Time) -> bool {
        let mut before = self.events.iter().take_while(|e| e.time <= time);
        before.any(|e| e.is_refusal())
    }

    /// How many bios were merged into a request that is dispatched.
    pub(super) fn merges_into(&self, dispatched: &Event) -> usize {
        let is_it = |n: &usize| {
            let e = self.number(*n);
            (e.time, e.sector, e.bytes) == (dispatched.time, dispatched.sector, dispatched.bytes)
        };
        let Some(number) = (0..self.places.len()).find(is_it) else {
            return 0;
        };
        let back = self.history(number, Action::BackMerge).count();
        back + self.history(number, Action::FrontMerge).count()
    }
}

/// Whether an event is about sectors of a request, or about one without any, like it.
fn belongs(e: &Event, own: &Event) -> bool {
    if own.bytes == 0 {
        return e.rwbs.op() == own.rwbs.op() && e.bytes == 0;
    }
    overlaps(e, own)
}
