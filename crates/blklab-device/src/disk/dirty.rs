// SPDX-License-Identifier: MIT OR Apache-2.0
//! The dirty data of a write cache: disjoint ranges in order of address.
//!
//! A write that touches or overlaps ranges becomes one range with them. The
//! search for the nearest range goes outwards from the head's cylinder and stops
//! where the seek alone takes longer than the best found: with 1024 ranges over
//! a whole disk it looks at a few dozen. A drive that sorts less chooses among the
//! ranges that were begun first.

use super::geometry::Place;
use super::mechanism::{Mechanism, Moment};
use blklab_types::Time;

/// Dirty sectors `[start, end)`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// When the oldest part was written.
    since: Time,
    /// Its number in the order in which ranges were begun.
    order: u64,
    /// Where `start` is.
    place: Place,
}

/// All dirty ranges.
#[derive(Clone, Debug)]
pub(crate) struct DirtySet {
    ranges: Vec<Range>,
    sectors: u64,
    /// When the oldest data was written, while there is any.
    oldest: Time,
    /// Ranges begun so far.
    begun: u64,
    /// Space to look for the ranges begun first.
    orders: Vec<u64>,
}

impl DirtySet {
    pub(crate) fn with_capacity(ranges: usize) -> DirtySet {
        DirtySet {
            ranges: Vec::with_capacity(ranges),
            sectors: 0,
            oldest: Time::MAX,
            begun: 0,
            orders: Vec::with_capacity(ranges),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(crate) fn nr_ranges(&self) -> usize {
        self.ranges.len()
    }

    pub(crate) fn sectors(&self) -> u64 {
        self.sectors
    }

    /// When the oldest data was written; [`Time::MAX`] if there is none.
    pub(crate) fn oldest(&self) -> Time {
        self.oldest
    }

    /// Whether all of `[start, end)` is dirty.
    pub(crate) fn contains(&self, start: u64, end: u64) -> bool {
        let i = self.ranges.partition_point(|r| r.end <= start);
        self.ranges
            .get(i)
            .is_some_and(|r| r.start <= start && end <= r.end)
    }

    /// Adds `[start, end)`, written at `now`.
    pub(crate) fn insert(&mut self, mech: &Mechanism, start: u64, end: u64, now: Time) {
        let first = self.ranges.partition_point(|r| r.end < start);
        let after = first + self.ranges[first..].partition_point(|r| r.start <= end);
        self.oldest = self.oldest.min(now);
        let order = self.begun;
        self.begun += 1;
        if first == after {
            let place = mech.geometry.place(start);
            self.ranges.insert(
                first,
                Range {
                    start,
                    end,
                    since: now,
                    order,
                    place,
                },
            );
            self.sectors += end - start;
            return;
        }
        let joined = &self.ranges[first..after];
        let before: u64 = joined.iter().map(|r| r.end - r.start).sum();
        let since = joined.iter().map(|r| r.since).min().unwrap_or(now);
        let order = joined.iter().map(|r| r.order).min().unwrap_or(order);
        let (old_start, old_end) = (joined[0].start, joined[joined.len() - 1].end);
        let place = if start < old_start {
            mech.geometry.place(start)
        } else {
            joined[0].place
        };
        let range = Range {
            start: start.min(old_start),
            end: end.max(old_end),
            since,
            order,
            place,
        };
        self.ranges[first] = range;
        self.ranges.drain(first + 1..after);
        self.sectors += range.end - range.start - before;
    }

    /// The range with the shortest positioning time among the `window` that were
    /// begun first, and that time.
    pub(crate) fn nearest_of(
        &mut self,
        window: usize,
        mech: &Mechanism,
        moment: Moment,
    ) -> Option<(usize, u32)> {
        if self.ranges.len() <= window {
            return self.nearest(mech, moment);
        }
        self.orders.clear();
        self.orders.extend(self.ranges.iter().map(|r| r.order));
        let last = *self.orders.select_nth_unstable(window.max(1) - 1).1;
        let begun_first = |(_, r): &(usize, &Range)| r.order <= last;
        let cost = |(i, r): (usize, &Range)| (i, mech.positioning_ns(moment, &r.place, true));
        let all = self.ranges.iter().enumerate();
        all.filter(begun_first).map(cost).min_by_key(|(_, ns)| *ns)
    }

    /// The range with the shortest positioning time, and that time.
    pub(crate) fn nearest(&self, mech: &Mechanism, moment: Moment) -> Option<(usize, u32)> {
        let head = mech.head_cylinder();
        let disorder = mech.geometry.disorder_cylinders();
        let middle = self.ranges.partition_point(|r| r.place.cylinder < head);
        let mut best: Option<(usize, u32)> = None;
        let mut look = |i: usize, beyond: u32| -> bool {
            let least_ns = mech.seek.floor_ns(beyond.saturating_sub(disorder));
            if best.is_some_and(|(_, ns)| ns <= least_ns) {
                return false;
            }
            let ns = mech.positioning_ns(moment, &self.ranges[i].place, true);
            if best.is_none_or(|(_, best_ns)| ns < best_ns) {
                best = Some((i, ns));
            }
            true
        };
        for i in middle..self.ranges.len() {
            if !look(i, self.ranges[i].place.cylinder.saturating_sub(head)) {
                break;
            }
        }
        for i in (0..middle).rev() {
            if !look(i, head.saturating_sub(self.ranges[i].place.cylinder)) {
                break;
            }
        }
        best
    }

    /// Takes up to `max` sectors from the begin of range `i`.
    pub(crate) fn take(&mut self, mech: &Mechanism, i: usize, max: u64) -> (u64, u64, Place) {
        let range = &mut self.ranges[i];
        let (start, place) = (range.start, range.place);
        let end = range.end.min(start + max);
        self.sectors -= end - start;
        if end < range.end {
            range.start = end;
            range.place = mech.geometry.place(end);
            return (start, end, place);
        }
        let since = range.since;
        self.ranges.remove(i);
        if since == self.oldest {
            self.oldest = self
                .ranges
                .iter()
                .map(|r| r.since)
                .min()
                .unwrap_or(Time::MAX);
        }
        (start, end, place)
    }

    /// Forgets whatever of `[start, end)` is dirty: newer data goes to the
    /// medium by itself. A range with a hole becomes two.
    pub(crate) fn remove(&mut self, mech: &Mechanism, start: u64, end: u64) {
        let mut i = self.ranges.partition_point(|r| r.end <= start);
        while let Some(range) = self.ranges.get(i).copied().filter(|r| r.start < end) {
            self.sectors -= range.end.min(end) - range.start.max(start);
            let head = Range {
                end: start,
                ..range
            };
            let tail = Range {
                start: end,
                place: mech.geometry.place(end.min(range.end - 1)),
                ..range
            };
            match (range.start < start, end < range.end) {
                (true, true) => {
                    self.ranges[i] = head;
                    self.ranges.insert(i + 1, tail);
                    i += 1;
                }
                (true, false) => self.ranges[i] = head,
                (false, true) => self.ranges[i] = tail,
                (false, false) => {
                    self.ranges.remove(i);
                    continue;
                }
            }
            i += 1;
        }
        if self.ranges.is_empty() {
            self.oldest = Time::MAX;
        }
    }
}
