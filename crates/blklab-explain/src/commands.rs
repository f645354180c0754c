// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands that a device has, as a trace shows them.

use blklab_trace::Event;
use blklab_types::{Op, SECTOR_BYTES};
use std::collections::BTreeMap;

/// Commands at a device; several may be of the same sectors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Commands {
    /// Their lengths in bytes, by first sector and direction.
    lengths: BTreeMap<(u64, Op), Vec<u32>>,
    nr: usize,
}

/// What a completion ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// A command, from its first sector on, of so many bytes.
    Whole(u64, u32),
    /// Sectors of one of which the rest ends later.
    Part,
    /// Nothing that the device is known to have.
    Unknown,
}

impl Commands {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.nr
    }

    /// Whether there is one with this first sector.
    pub(crate) fn has(&self, sector: u64, op: Op) -> bool {
        self.lengths.contains_key(&(sector, op))
    }

    /// One goes to the device.
    pub(crate) fn add(&mut self, e: &Event, op: Op) {
        let there = self.lengths.entry((e.sector, op)).or_default();
        there.push(e.bytes);
        self.nr += 1;
    }

    /// One comes back from the device.
    pub(crate) fn requeue(&mut self, e: &Event, op: Op) {
        self.take((e.sector, op), |_| true);
    }

    /// A completion: it ends the command that begins at its first sector, or next before it, and
    /// ends where it does.
    pub(crate) fn complete(&mut self, e: &Event, op: Op) -> Ended {
        let mut places = self.lengths.range(..=(e.sector, op)).rev();
        let Some((&(sector, _), lengths)) = places.find(|((_, o), _)| *o == op) else {
            return Ended::Unknown;
        };
        let end = |bytes: u32| sector + u64::from(bytes) / SECTOR_BYTES;
        let reaches = lengths.iter().any(|bytes| end(*bytes) > e.sector);
        match self.take((sector, op), |bytes| end(bytes) == e.end_sector()) {
            Some(bytes) => Ended::Whole(sector, bytes),
            None if reaches => Ended::Part,
            None => Ended::Unknown,
        }
    }

    /// Takes the first of such a length.
    fn take(&mut self, key: (u64, Op), is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let there = self.lengths.get_mut(&key)?;
        let bytes = there.remove(there.iter().position(|bytes| is_it(*bytes))?);
        if there.is_empty() {
            self.lengths.remove(&key);
        }
        self.nr -= 1;
        Some(bytes)
    }
}
