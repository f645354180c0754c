// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is at which sector. Several things may be at the same one; they are
//! found in the order they came.

use super::slab::Slot;
use std::collections::BTreeMap;

/// Things at one sector that are looked at. Real traces have a few; a made-up
/// one with a million at the same would take the square of that.
const SAME_SECTOR_MAX: usize = 64;
/// Things within one request that are looked at: no request has more bios.
const WITHIN_MAX: usize = super::REQUEST_BIOS_MAX as usize;

/// Things by position.
#[derive(Debug, Default)]
pub(super) struct Positions {
    by_sector: BTreeMap<(u64, u64), Slot>,
    nr_inserted: u64,
}

/// Where a thing was put, to take it away again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) sector: u64,
    serial: u64,
}

impl Positions {
    pub(super) fn insert(&mut self, sector: u64, slot: Slot) -> Place {
        let serial = self.nr_inserted;
        self.nr_inserted += 1;
        self.by_sector.insert((sector, serial), slot);
        Place { sector, serial }
    }

    pub(super) fn remove(&mut self, place: Place) {
        self.by_sector.remove(&(place.sector, place.serial));
    }

    /// All at `sector`, the oldest first.
    #[inline]
    pub(super) fn at(&self, sector: u64) -> impl Iterator<Item = Slot> + '_ {
        self.by_sector
            .range((sector, 0)..=(sector, u64::MAX))
            .take(SAME_SECTOR_MAX)
            .map(|(_, slot)| *slot)
    }

    /// All from `start` to before `end`, by sector.
    pub(super) fn within(&self, start: u64, end: u64) -> impl Iterator<Item = Slot> + '_ {
        let end = end.max(start);
        self.by_sector
            .range((start, 0)..(end, 0))
            .take(WITHIN_MAX)
            .map(|(_, slot)| *slot)
    }

    /// The last before `sector`.
    pub(super) fn before(&self, sector: u64) -> Option<Slot> {
        self.by_sector
            .range(..(sector, 0))
            .next_back()
            .map(|(_, slot)| *slot)
    }

    pub(super) fn clear(&mut self) {
        self.by_sector.clear();
    }
}
