// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bios and requests of one direction that have not gone to the device, as a trace shows them.

use blklab_trace::Event;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// What was submitted, or granted a request, and has no D yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Open {
    /// Queued, not yet dispatched: from sector to sector.
    queued: BTreeMap<u64, u64>,
    /// What was queued while something else waited at its first sector.
    queued_again: BTreeMap<u64, Vec<u64>>,
    /// Requests that were granted and have not been dispatched, by their first sector.
    granted: BTreeMap<u64, Granted>,
    nr_granted: usize,
}

/// Requests of one first sector that were granted.
#[derive(Clone, Copy, Debug, Default)]
struct Granted {
    nr: u32,
    /// Those of them whose Q is in the trace for sure.
    nr_queued: u32,
}

impl Open {
    /// A bio was submitted.
    pub(crate) fn queue(&mut self, e: &Event) {
        match self.queued.entry(e.sector) {
            Entry::Vacant(place) => {
                place.insert(e.end_sector());
            }
            Entry::Occupied(_) => {
                let again = self.queued_again.entry(e.sector).or_default();
                again.push(e.end_sector());
            }
        }
    }

    /// What was queued last at its sector went nowhere.
    pub(crate) fn refuse(&mut self, e: &Event) {
        let again = self.queued_again.get_mut(&e.sector);
        if again.and_then(Vec::pop).is_none() {
            self.queued.remove(&e.sector);
        }
    }

    /// A bio got a request; whether its Q is in the trace for sure.
    pub(crate) fn grant(&mut self, e: &Event, is_queued: bool) {
        let there = self.granted.entry(e.sector).or_default();
        there.nr += 1;
        there.nr_queued += u32::from(is_queued);
        self.nr_granted += 1;
    }

    /// Requests that were granted and have not been dispatched.
    pub(crate) fn nr_granted(&self) -> usize {
        self.nr_granted
    }

    /// Whether a request of this first sector was granted.
    pub(crate) fn has_granted(&self, sector: u64) -> bool {
        self.granted.contains_key(&sector)
    }

    /// The most that waits at one place, or at all.
    pub(crate) fn len_at(&self, sector: u64) -> usize {
        let again = self.queued_again.get(&sector).map_or(0, Vec::len);
        again.max(self.queued.len()).max(self.nr_granted)
    }

    /// What was queued goes to the device. False if nothing was.
    pub(crate) fn take(&mut self, from: u64, to: u64) -> bool {
        let mut found = self.take_granted(from, to);
        if let Some((&start, &end)) = self.queued.range(..from).next_back()
            && end > from
        {
            found = true;
            self.queued.insert(start, from);
            if end > to {
                self.queued.insert(to, end);
            }
        }
        while let Some((&start, &end)) = self.queued.range(from..to).next() {
            found = true;
            self.queued.remove(&start);
            if end > to {
                let rest = self.queued.entry(to).or_default();
                *rest = (*rest).max(end);
            }
        }
        if let Some(ends) = self.queued_again.get_mut(&from) {
            if let Some(end) = ends.pop() {
                self.queued.insert(from, end);
            }
            if ends.is_empty() {
                self.queued_again.remove(&from);
            }
        }
        found
    }

    /// A request goes to the device, with those that were merged into it; another one at its
    /// first sector stays. Whether its Q is in the trace for sure.
    fn take_granted(&mut self, from: u64, to: u64) -> bool {
        let sectors: Vec<u64> = self.granted.range(from..to).map(|(s, _)| *s).collect();
        let mut is_queued = false;
        for sector in sectors {
            let there = self.granted.remove(&sector).unwrap_or_default();
            self.nr_granted -= there.nr as usize;
            if sector != from {
                continue;
            }
            is_queued = there.nr_queued > 0;
            if there.nr > 1 {
                let left = Granted {
                    nr: there.nr - 1,
                    nr_queued: there.nr_queued.saturating_sub(1),
                };
                self.granted.insert(sector, left);
                self.nr_granted += left.nr as usize;
            }
        }
        is_queued
    }
}
