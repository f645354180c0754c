// SPDX-License-Identifier: MIT OR Apache-2.0
//! Blocks written and still to be read back for verification.
//!
//! Behaviour of fio 3.33: with a random map blocks are read back in the order
//! written; otherwise sorted by file and offset, where a later write removes
//! the records it overlaps.

use std::collections::{BTreeMap, VecDeque};

/// One block that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) file: u32,
    pub(super) offset: u64,
    pub(super) length: u64,
    /// Whether its write has not completed.
    in_flight: bool,
    id: u64,
}

/// All blocks to read back.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    in_order: VecDeque<Written>,
    sorted: BTreeMap<(u32, u64), Written>,
    next_id: u64,
}

impl History {
    pub(super) fn len(&self) -> usize {
        self.in_order.len() + self.sorted.len()
    }

    pub(super) fn clear(&mut self) {
        self.in_order.clear();
        self.sorted.clear();
    }

    /// Records a write about to be issued; returns its id.
    pub(super) fn add(&mut self, file: u32, offset: u64, length: u64, in_order: bool) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let written = Written {
            file,
            offset,
            length,
            in_flight: true,
            id,
        };
        if in_order {
            self.in_order.push_back(written);
            return id;
        }
        let end = offset.saturating_add(length);
        let before = self.sorted.range(..(file, offset)).next_back();
        let overlapped =
            before.filter(|((f, _), w)| *f == file && w.offset.saturating_add(w.length) > offset);
        if let Some(key) = overlapped.map(|(key, _)| *key) {
            self.sorted.remove(&key);
        }
        while let Some(key) = self
            .sorted
            .range((file, offset)..(file, end))
            .next()
            .map(|(key, _)| *key)
        {
            self.sorted.remove(&key);
        }
        self.sorted.insert((file, offset), written);
        id
    }

    /// A write has completed: its block may be read back.
    pub(super) fn completed(&mut self, id: u64, file: u32, offset: u64) {
        if let Some(written) = self.find(id, file, offset) {
            written.in_flight = false;
        }
    }

    /// A write was refused or failed: it never happened.
    pub(super) fn remove(&mut self, id: u64, file: u32, offset: u64) {
        if let Ok(at) = self
            .in_order
            .binary_search_by_key(&id, |written| written.id)
        {
            self.in_order.remove(at);
        } else if self
            .sorted
            .get(&(file, offset))
            .is_some_and(|written| written.id == id)
        {
            self.sorted.remove(&(file, offset));
        }
    }

    /// The next block to read back, unless its write is still in flight.
    pub(super) fn take_next(&mut self) -> Option<Written> {
        if let Some(mut entry) = self.sorted.first_entry() {
            return if entry.get_mut().in_flight {
                None
            } else {
                Some(entry.remove())
            };
        }
        if self.in_order.front()?.in_flight {
            None
        } else {
            self.in_order.pop_front()
        }
    }

    fn find(&mut self, id: u64, file: u32, offset: u64) -> Option<&mut Written> {
        match self
            .in_order
            .binary_search_by_key(&id, |written| written.id)
        {
            Ok(at) => self.in_order.get_mut(at),
            Err(_) => self
                .sorted
                .get_mut(&(file, offset))
                .filter(|written| written.id == id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(history: &mut History) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| history.take_next())
            .map(|w| (w.offset, w.length))
            .collect()
    }

    #[test]
    fn overlapped_records_go() {
        let mut history = History::default();
        for (offset, length) in [(0, 8), (8, 8), (16, 8), (4, 8), (20, 2)] {
            let id = history.add(0, offset, length, false);
            history.completed(id, 0, offset);
        }
        assert_eq!(drain(&mut history), [(4, 8), (20, 2)]);
    }

    #[test]
    fn a_write_in_flight_holds_back_what_follows() {
        let mut history = History::default();
        let first = history.add(0, 8, 4, true);
        let second = history.add(0, 0, 4, true);
        history.completed(second, 0, 0);
        assert!(history.take_next().is_none());
        history.completed(first, 0, 8);
        assert_eq!(drain(&mut history), [(8, 4), (0, 4)]);
        let refused = history.add(0, 8, 4, true);
        history.remove(refused, 0, 8);
        assert_eq!(history.len(), 0);
    }
}
