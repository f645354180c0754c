// SPDX-License-Identifier: MIT OR Apache-2.0
//! A hash table by sector, made for few steps per event: entries lie in one list, at
//! the place of their hash or behind it, and move up when one before them goes.
//! Hashes are seeded: traces come from others.

use foldhash::fast::RandomState;
use std::hash::BuildHasher as _;

/// Places of a table that is not empty, at least.
const PLACES_MIN: usize = 16;

/// Where an entry is, until something is inserted or removed.
pub(super) type Place = usize;

/// Values by sector.
#[derive(Debug)]
pub(super) struct Sectors<T> {
    /// A power of two of them, half or more of them empty.
    entries: Vec<Option<(u64, T)>>,
    len: usize,
    hashing: RandomState,
}

impl<T> Default for Sectors<T> {
    fn default() -> Sectors<T> {
        Sectors {
            entries: Vec::new(),
            len: 0,
            hashing: RandomState::default(),
        }
    }
}

impl<T: Copy> Sectors<T> {
    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Number of places, which looking at all entries goes through.
    pub(super) fn nr_places(&self) -> usize {
        self.entries.len()
    }

    /// Where the search for a sector begins.
    #[inline(always)]
    fn home(&self, sector: u64) -> Place {
        let mask = self.entries.len().wrapping_sub(1);
        self.hashing.hash_one(sector) as usize & mask
    }

    #[inline(always)]
    fn after(&self, place: Place) -> Place {
        (place + 1) & (self.entries.len() - 1)
    }

    /// The entry of a sector.
    #[inline(always)]
    pub(super) fn find(&self, sector: u64) -> Option<Place> {
        let mut place = self.home(sector);
        while let Some((found, _)) = self.entries.get(place)? {
            if *found == sector {
                return Some(place);
            }
            place = self.after(place);
        }
        None
    }

    /// Adds the entry of a sector, unless it has one: where that is, and whether it
    /// is new.
    #[inline(always)]
    pub(super) fn insert(&mut self, sector: u64, value: T) -> (Place, bool) {
        if self.len * 2 >= self.entries.len() {
            self.grow();
        }
        let mut place = self.home(sector);
        while let Some((found, _)) = self.entries[place] {
            if found == sector {
                return (place, false);
            }
            place = self.after(place);
        }
        self.entries[place] = Some((sector, value));
        self.len += 1;
        (place, true)
    }

    #[cold]
    fn grow(&mut self) {
        let nr_places = (self.entries.len() * 2).max(PLACES_MIN);
        let old = std::mem::replace(&mut self.entries, vec![None; nr_places]);
        self.len = 0;
        for (sector, value) in old.into_iter().flatten() {
            self.insert(sector, value);
        }
    }

    /// The sector and value of an entry.
    #[inline(always)]
    pub(super) fn get(&mut self, place: Place) -> (u64, &mut T) {
        let (sector, value) = self.entries[place].as_mut().expect("an entry is there");
        (*sector, value)
    }

    /// Removes an entry; those behind it that were pushed away from their homes move up.
    #[inline(always)]
    pub(super) fn remove(&mut self, place: Place) {
        let mask = self.entries.len() - 1;
        let (mut hole, mut next) = (place, self.after(place));
        while let Some((sector, _)) = self.entries[next] {
            let from_home = next.wrapping_sub(self.home(sector)) & mask;
            let from_hole = next.wrapping_sub(hole) & mask;
            if from_home >= from_hole {
                self.entries[hole] = self.entries[next];
                hole = next;
            }
            next = self.after(next);
        }
        self.entries[hole] = None;
        self.len -= 1;
    }

    /// All entries, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, T)> + '_ {
        self.entries.iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// As in an ordered map; few sectors, so that many collide and move.
        #[test]
        fn holds_what_a_map_holds(
            steps in prop::collection::vec((any::<bool>(), 0_u64..300, any::<u32>()), 1..2000),
        ) {
            let mut table = Sectors::default();
            let mut map = BTreeMap::new();
            for (adds, sector, value) in steps {
                match (table.find(sector), adds) {
                    (None, true) => {
                        let (place, is_new) = table.insert(sector, value);
                        prop_assert!(is_new);
                        prop_assert_eq!(table.get(place), (sector, &mut value.clone()));
                        map.insert(sector, value);
                    }
                    (Some(place), true) => {
                        let before = *table.get(place).1;
                        let (place, is_new) = table.insert(sector, value);
                        prop_assert_eq!((*table.get(place).1, is_new), (before, false));
                        *table.get(place).1 = value;
                        map.insert(sector, value);
                    }
                    (Some(place), false) => {
                        table.remove(place);
                        map.remove(&sector);
                    }
                    (None, false) => prop_assert!(!map.contains_key(&sector)),
                }
                prop_assert_eq!(table.len(), map.len());
            }
            let mut all: Vec<(u64, u32)> = table.iter().collect();
            all.sort_unstable();
            prop_assert_eq!(all, map.into_iter().collect::<Vec<_>>());
        }
    }
}
