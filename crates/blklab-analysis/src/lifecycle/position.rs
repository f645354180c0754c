// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is at which sector. Several things of a kind may be at the same one;
//! they are found in the order in which they came to be of that kind.
//!
//! Nearly every event names the exact sector of what it is about, so sectors are
//! hashed, and a bio that becomes a request, or a request that is issued, stays
//! where it is. Things between two sectors are only asked for by parts and
//! by merges that the trace does not show. Few things are then looked through;
//! many get an index in order, which is kept until all of them are gone.

use super::slab::Slot;
use foldhash::fast::RandomState;
use std::collections::{BTreeMap, HashMap};

/// Things at one sector that are looked at. Real traces have a few; a made-up
/// one with a million at the same would take the square of that.
const SAME_SECTOR_MAX: usize = 64;
/// Things within one request that are looked at: no request has more bios.
const WITHIN_MAX: usize = super::REQUEST_BIOS_MAX as usize;
/// Places that are looked through; the things of more are put in order.
pub(super) const UNORDERED_MAX: usize = 256;

/// What a thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A bio without a request.
    Queued,
    /// A request before D.
    Waiting,
    /// A request between D and C.
    Issued,
}

const NR_KINDS: usize = 3;

/// Where a thing was put, to change it or to take it away again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place(u32);

/// No place: the end of a list.
const NONE: u32 = u32::MAX;

/// A thing, linked with the others of its kind at its sector. A free place
/// links to the next free one.
#[derive(Clone, Copy, Debug)]
struct Thing {
    /// When it became what it is, counted from 1; 0: the place is free.
    serial: u64,
    kind: Kind,
    slot: Slot,
    spot: u32,
    before: u32,
    after: u32,
}

/// The oldest and the latest thing of a kind.
#[derive(Clone, Copy, Debug)]
struct Ends {
    first: u32,
    last: u32,
}

/// A sector with things. The next one of a free spot is its `sector`.
#[derive(Clone, Copy, Debug)]
struct Spot {
    sector: u64,
    nr_things: u32,
    kinds: [Ends; NR_KINDS],
}

/// Things by sector and age.
type InOrder = BTreeMap<(u64, u64), Slot>;

/// Things by position.
#[derive(Debug, Default)]
pub(super) struct Positions {
    by_sector: HashMap<u64, u32, RandomState>,
    spots: Vec<Spot>,
    free_spots: Vec<u32>,
    /// The spot of the last event: many are about the same sector as the one
    /// before.
    last: Option<(u64, u32)>,
    things: Vec<Thing>,
    free_things: Vec<u32>,
    /// How many there are of each kind.
    len: [usize; NR_KINDS],
    nr_changes: u64,
    /// All of each kind, since they were many and somebody wanted to know.
    in_order: Option<Box<[InOrder; NR_KINDS]>>,
    /// Of a few things: sector, age, slot. Needed only during one search.
    scratch: Vec<(u64, u64, Slot)>,
}

impl Positions {
    pub(super) fn insert(&mut self, kind: Kind, sector: u64, slot: Slot) -> Place {
        let spot = match self.spot_of(sector) {
            Some(spot) => spot,
            None => self.new_spot(sector),
        };
        self.spots[spot as usize].nr_things += 1;
        let thing = Thing {
            serial: 0,
            kind,
            slot,
            spot,
            before: NONE,
            after: NONE,
        };
        let at = match self.free_things.pop() {
            Some(at) => {
                self.things[at as usize] = thing;
                at
            }
            None => {
                self.things.push(thing);
                (self.things.len() - 1) as u32
            }
        };
        self.link(at);
        Place(at)
    }

    /// A thing becomes another one at the same sector.
    pub(super) fn turn(&mut self, place: Place, kind: Kind, slot: Slot) {
        self.unlink(place.0);
        let thing = &mut self.things[place.0 as usize];
        (thing.kind, thing.slot) = (kind, slot);
        self.link(place.0);
    }

    pub(super) fn remove(&mut self, place: Place) {
        self.unlink(place.0);
        let thing = &mut self.things[place.0 as usize];
        thing.serial = 0;
        let at = thing.spot;
        self.free_things.push(place.0);
        let spot = &mut self.spots[at as usize];
        spot.nr_things -= 1;
        if spot.nr_things > 0 {
            return;
        }
        self.by_sector.remove(&spot.sector);
        self.free_spots.push(at);
        self.last = None;
        if self.by_sector.is_empty() {
            self.things.clear();
            self.free_things.clear();
            self.spots.clear();
            self.free_spots.clear();
            self.in_order = None;
        }
    }

    /// The spot of a sector that has things.
    #[inline]
    fn spot_of(&mut self, sector: u64) -> Option<u32> {
        if let Some((last, spot)) = self.last
            && last == sector
        {
            return Some(spot);
        }
        let spot = *self.by_sector.get(&sector)?;
        self.last = Some((sector, spot));
        Some(spot)
    }

    fn new_spot(&mut self, sector: u64) -> u32 {
        let nothing = Ends {
            first: NONE,
            last: NONE,
        };
        let spot = Spot {
            sector,
            nr_things: 0,
            kinds: [nothing; NR_KINDS],
        };
        let at = match self.free_spots.pop() {
            Some(at) => {
                self.spots[at as usize] = spot;
                at
            }
            None => {
                self.spots.push(spot);
                (self.spots.len() - 1) as u32
            }
        };
        self.by_sector.insert(sector, at);
        self.last = Some((sector, at));
        at
    }

    /// Puts a thing behind the others of its kind.
    #[inline]
    fn link(&mut self, at: u32) {
        self.nr_changes += 1;
        let thing = &mut self.things[at as usize];
        let kind = thing.kind as usize;
        let spot = &mut self.spots[thing.spot as usize];
        let ends = &mut spot.kinds[kind];
        let before = std::mem::replace(&mut ends.last, at);
        thing.serial = self.nr_changes;
        (thing.before, thing.after) = (before, NONE);
        self.len[kind] += 1;
        if let Some(in_order) = &mut self.in_order {
            in_order[kind].insert((spot.sector, thing.serial), thing.slot);
        }
        match before {
            NONE => ends.first = at,
            before => self.things[before as usize].after = at,
        }
    }

    /// Takes a thing from among the others of its kind.
    #[inline]
    fn unlink(&mut self, at: u32) {
        let thing = self.things[at as usize];
        assert!(thing.serial > 0, "a thing is taken away once");
        let kind = thing.kind as usize;
        let spot = &mut self.spots[thing.spot as usize];
        let ends = &mut spot.kinds[kind];
        match thing.before {
            NONE => ends.first = thing.after,
            before => self.things[before as usize].after = thing.after,
        }
        match thing.after {
            NONE => ends.last = thing.before,
            after => self.things[after as usize].before = thing.before,
        }
        self.len[kind] -= 1;
        if let Some(in_order) = &mut self.in_order {
            in_order[kind].remove(&(spot.sector, thing.serial));
        }
    }

    /// All of a kind at `sector`, the oldest first.
    #[inline]
    pub(super) fn at(&mut self, kind: Kind, sector: u64) -> impl Iterator<Item = Slot> + '_ {
        let spot = match self.len[kind as usize] {
            0 => None,
            _ => self.spot_of(sector),
        };
        let first = spot.map(|spot| self.spots[spot as usize].kinds[kind as usize].first);
        let mut next = first.unwrap_or(NONE);
        let things = std::iter::from_fn(move || {
            let thing = self.things.get(next as usize)?;
            next = thing.after;
            Some(thing.slot)
        });
        things.take(SAME_SECTOR_MAX)
    }

    /// Appends all of a kind from `start` to before `end`, by sector, of which
    /// `wanted` is true.
    pub(super) fn within(
        &mut self,
        kind: Kind,
        start: u64,
        end: u64,
        found: &mut Vec<Slot>,
        mut wanted: impl FnMut(Slot) -> bool,
    ) {
        if self.len[kind as usize] == 0 || start >= end {
            return;
        }
        if let Some(in_order) = self.index(kind) {
            let inside = in_order.range((start, 0)..(end, 0)).take(WITHIN_MAX);
            found.extend(inside.map(|(_, slot)| *slot).filter(|s| wanted(*s)));
            return;
        }
        let mut inside = std::mem::take(&mut self.scratch);
        inside.clear();
        inside.extend(self.all(kind).filter(|t| (start..end).contains(&t.0)));
        inside.sort_unstable();
        found.extend(inside.iter().map(|t| t.2).filter(|s| wanted(*s)));
        self.scratch = inside;
    }

    /// The last of a kind before `sector`.
    pub(super) fn before(&mut self, kind: Kind, sector: u64) -> Option<Slot> {
        if self.len[kind as usize] == 0 {
            return None;
        }
        if let Some(in_order) = self.index(kind) {
            let mut before = in_order.range(..(sector, 0));
            return before.next_back().map(|(_, slot)| *slot);
        }
        let before = self.all(kind).filter(|t| t.0 < sector);
        before.max().map(|t| t.2)
    }

    /// Sector, age and slot of all things of a kind.
    fn all(&self, kind: Kind) -> impl Iterator<Item = (u64, u64, Slot)> + '_ {
        let things = self.things.iter();
        let things = things.filter(move |t| t.serial > 0 && t.kind == kind);
        things.map(|t| (self.spots[t.spot as usize].sector, t.serial, t.slot))
    }

    /// The things of a kind in order, if all are too many to look through.
    fn index(&mut self, kind: Kind) -> Option<&InOrder> {
        if self.things.len() <= UNORDERED_MAX {
            return None;
        }
        if self.in_order.is_none() {
            let in_order = [Kind::Queued, Kind::Waiting, Kind::Issued].map(|kind| {
                let all = self.all(kind);
                all.map(|(sector, serial, slot)| ((sector, serial), slot))
                    .collect()
            });
            self.in_order = Some(Box::new(in_order));
        }
        self.in_order.as_ref().map(|all| &all[kind as usize])
    }

    pub(super) fn clear(&mut self) {
        *self = Positions::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same by definition: a list in order of change.
    #[derive(Default)]
    struct Listed(Vec<(u64, Kind, Slot, Place)>);

    impl Listed {
        fn slots(&self, kind: Kind, wanted: impl Fn(u64) -> bool) -> Vec<Slot> {
            let all = self.0.iter().filter(|t| t.1 == kind && wanted(t.0));
            let mut all: Vec<(u64, Slot)> = all.map(|t| (t.0, t.2)).collect();
            all.sort_by_key(|t| t.0);
            all.into_iter().map(|t| t.1).collect()
        }
    }

    const KINDS: [Kind; NR_KINDS] = [Kind::Queued, Kind::Waiting, Kind::Issued];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Few and many things, found by sector, range and neighbour.
        #[test]
        fn found_as_in_a_list(
            steps in prop::collection::vec((0_u8..12, 0_u64..600, 0_u64..40), 1..3000),
            growth in 5_u8..9,
        ) {
            let mut positions = Positions::default();
            let mut listed = Listed::default();
            for (slot, (step, sector, length)) in steps.into_iter().enumerate() {
                let slot = slot as Slot;
                let kind = KINDS[slot as usize % NR_KINDS];
                if step < growth {
                    let place = positions.insert(kind, sector, slot);
                    listed.0.push((sector, kind, slot, place));
                } else if !listed.0.is_empty() {
                    let at = sector as usize % listed.0.len();
                    let thing = listed.0.remove(at);
                    if step < 10 {
                        positions.remove(thing.3);
                    } else {
                        positions.turn(thing.3, kind, slot);
                        listed.0.push((thing.0, kind, slot, thing.3));
                    }
                }
                if length > 3 {
                    continue;
                }
                let kind = KINDS[sector as usize % NR_KINDS];
                let at: Vec<Slot> = positions.at(kind, sector).collect();
                let expected = listed.slots(kind, |s| s == sector);
                prop_assert_eq!(&at[..], &expected[..expected.len().min(SAME_SECTOR_MAX)]);
                let end = sector + length * 100;
                let mut within = Vec::new();
                positions.within(kind, sector, end, &mut within, |slot| slot % 3 > 0);
                let mut expected = listed.slots(kind, |s| (sector..end).contains(&s));
                expected.retain(|slot| slot % 3 > 0);
                prop_assert_eq!(within, expected);
                let before = listed.slots(kind, |s| s < sector);
                prop_assert_eq!(positions.before(kind, sector), before.last().copied());
            }
        }
    }
}
