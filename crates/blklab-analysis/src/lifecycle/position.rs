// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is at which sector. Several things of a kind may be at the same one;
//! they are found in the order in which they came to be of that kind.
//!
//! Nearly every event names the exact sector of what it is about, so sectors are
//! hashed, and a bio that becomes a request, or a request that is issued, stays
//! where it is. Nearly every sector has one thing, which then needs no lists. Things
//! between two sectors are only asked for by parts and by merges that the trace does
//! not show. Few things are then looked through; many get an index in order, which is
//! kept until all of them are gone.

use super::sectors::{Place, Sectors};
use super::slab::{KEPT_MAX, Slot};
use std::collections::BTreeSet;

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

/// No slot: the end of a list.
const NONE: Slot = Slot::MAX;

/// What is at a sector.
#[derive(Clone, Copy, Debug)]
enum Spot {
    /// One thing.
    One(Kind, Slot),
    /// A crowd, by its place: several things, or one that was among several.
    Crowd(u32),
}

/// The oldest and the latest thing of a kind.
#[derive(Clone, Copy, Debug)]
struct Ends {
    first: Slot,
    last: Slot,
}

/// Things at one sector: a list of each kind.
#[derive(Clone, Copy, Debug)]
struct Crowd {
    nr_things: u32,
    kinds: [Ends; NR_KINDS],
}

const EMPTY: Crowd = Crowd {
    nr_things: 0,
    kinds: [Ends {
        first: NONE,
        last: NONE,
    }; NR_KINDS],
};

/// How a thing of a crowd is linked with the others of its kind.
#[derive(Clone, Copy, Debug)]
struct Link {
    before: Slot,
    after: Slot,
    kind: Kind,
}

/// Sectors that have things of each kind.
type InOrder = [BTreeSet<u64>; NR_KINDS];

/// Things by position.
#[derive(Debug, Default)]
pub(super) struct Positions {
    spots: Sectors<Spot>,
    /// The sector of the last event and its place: many events are about the same
    /// sector as the one before.
    last: Option<(u64, Place)>,
    crowds: Vec<Crowd>,
    free_crowds: Vec<u32>,
    /// By slot; only those of things in crowds mean anything.
    links: Vec<Link>,
    /// How many there are of each kind.
    len: [usize; NR_KINDS],
    /// Since they were many and somebody wanted to know.
    in_order: Option<Box<InOrder>>,
}

impl Positions {
    /// A thing comes to be, under a slot that no other one has.
    #[inline(always)]
    pub(super) fn insert(&mut self, kind: Kind, sector: u64, slot: Slot) {
        self.len[kind as usize] += 1;
        let (place, is_first) = self.spots.insert(sector, Spot::One(kind, slot));
        self.last = Some((sector, place));
        if !is_first {
            self.join(place, kind, slot);
        }
        if let Some(in_order) = &mut self.in_order {
            in_order[kind as usize].insert(sector);
        }
    }

    /// A thing becomes one of another kind at the same sector.
    #[inline(always)]
    pub(super) fn turn(&mut self, sector: u64, slot: Slot, kind: Kind) {
        let place = self
            .place_of(sector)
            .expect("things are where they were put");
        let before = match self.spots.get(place).1 {
            Spot::One(now, one) => {
                assert!(*one == slot, "another thing is there");
                std::mem::replace(now, kind)
            }
            Spot::Crowd(crowd) => {
                let crowd = *crowd;
                let before = self.unlink(crowd, slot);
                self.link(crowd, kind, slot);
                before
            }
        };
        self.len[before as usize] -= 1;
        self.len[kind as usize] += 1;
        if self.in_order.is_some() {
            self.keep_order(sector, before);
            self.keep_order(sector, kind);
        }
    }

    /// A thing is no more.
    #[inline(always)]
    pub(super) fn remove(&mut self, sector: u64, slot: Slot) {
        let place = self
            .place_of(sector)
            .expect("things are where they were put");
        let before = match *self.spots.get(place).1 {
            Spot::One(kind, one) => {
                assert!(one == slot, "another thing is there");
                self.vacate(place);
                kind
            }
            Spot::Crowd(crowd) => self.leave(place, crowd, slot),
        };
        self.len[before as usize] -= 1;
        if self.in_order.is_some() {
            self.keep_order(sector, before);
        }
        if self.spots.len() == 0 {
            self.emptied();
        }
    }

    /// Nothing is left at a sector.
    #[inline(always)]
    fn vacate(&mut self, place: Place) {
        self.spots.remove(place);
        self.last = None;
    }

    /// Nothing is left anywhere: what was for many things goes.
    #[inline]
    fn emptied(&mut self) {
        if self.in_order.is_some() || self.spots.nr_places() > KEPT_MAX {
            self.clear();
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Positions::default();
    }

    /// Where a sector is that has things.
    #[inline(always)]
    fn place_of(&mut self, sector: u64) -> Option<Place> {
        if let Some((last, place)) = self.last
            && last == sector
        {
            return Some(place);
        }
        let place = self.spots.find(sector)?;
        self.last = Some((sector, place));
        Some(place)
    }

    // Crowds -----------------------------------------------------------------

    /// Another thing at a sector that has some.
    #[cold]
    fn join(&mut self, place: Place, kind: Kind, slot: Slot) {
        let crowd = match *self.spots.get(place).1 {
            Spot::Crowd(crowd) => crowd,
            Spot::One(kind, one) => {
                let crowd = self.new_crowd();
                *self.spots.get(place).1 = Spot::Crowd(crowd);
                self.crowds[crowd as usize].nr_things += 1;
                self.link(crowd, kind, one);
                crowd
            }
        };
        self.crowds[crowd as usize].nr_things += 1;
        self.link(crowd, kind, slot);
    }

    fn new_crowd(&mut self) -> u32 {
        self.free_crowds.pop().unwrap_or_else(|| {
            self.crowds.push(EMPTY);
            (self.crowds.len() - 1) as u32
        })
    }

    /// A thing of a crowd is no more: what it was.
    #[cold]
    fn leave(&mut self, place: Place, crowd: u32, slot: Slot) -> Kind {
        let before = self.unlink(crowd, slot);
        let left = &mut self.crowds[crowd as usize];
        left.nr_things -= 1;
        if left.nr_things == 0 {
            self.free_crowds.push(crowd);
            self.vacate(place);
        }
        before
    }

    /// Puts a thing behind the others of its kind.
    #[cold]
    fn link(&mut self, crowd: u32, kind: Kind, slot: Slot) {
        let ends = &mut self.crowds[crowd as usize].kinds[kind as usize];
        let link = Link {
            before: std::mem::replace(&mut ends.last, slot),
            after: NONE,
            kind,
        };
        if slot as usize >= self.links.len() {
            self.links.resize(slot as usize + 1, link);
        }
        self.links[slot as usize] = link;
        match link.before {
            NONE => ends.first = slot,
            before => self.links[before as usize].after = slot,
        }
    }

    /// Takes a thing from among the others of its kind: which that was.
    #[cold]
    fn unlink(&mut self, crowd: u32, slot: Slot) -> Kind {
        let link = self.links[slot as usize];
        let ends = &mut self.crowds[crowd as usize].kinds[link.kind as usize];
        match link.before {
            NONE => ends.first = link.after,
            before => self.links[before as usize].after = link.after,
        }
        match link.after {
            NONE => ends.last = link.before,
            after => self.links[after as usize].before = link.before,
        }
        link.kind
    }

    // Questions --------------------------------------------------------------

    /// The oldest and the latest of a kind at `sector`.
    #[inline(always)]
    fn ends(&mut self, kind: Kind, sector: u64) -> Option<(Ends, bool)> {
        if self.len[kind as usize] == 0 {
            return None;
        }
        let place = self.place_of(sector)?;
        match *self.spots.get(place).1 {
            Spot::One(now, slot) if now == kind => {
                let (first, last) = (slot, slot);
                Some((Ends { first, last }, true))
            }
            Spot::One(..) => None,
            Spot::Crowd(crowd) => Some((self.crowds[crowd as usize].kinds[kind as usize], false)),
        }
    }

    /// All of a kind at `sector`, the oldest first.
    #[inline(always)]
    fn all_at(&mut self, kind: Kind, sector: u64) -> impl Iterator<Item = Slot> + '_ {
        let (mut next, links) = match self.ends(kind, sector) {
            None => (NONE, &[][..]),
            Some((ends, true)) => (ends.first, &[][..]),
            Some((ends, false)) => (ends.first, &self.links[..]),
        };
        std::iter::from_fn(move || {
            let slot = next;
            next = links.get(slot as usize).map_or(NONE, |link| link.after);
            (slot != NONE).then_some(slot)
        })
    }

    /// The oldest of a kind at `sector` of which `wanted` is true.
    #[inline(always)]
    pub(super) fn find(
        &mut self,
        kind: Kind,
        sector: u64,
        mut wanted: impl FnMut(Slot) -> bool,
    ) -> Option<Slot> {
        if self.len[kind as usize] == 0 {
            return None;
        }
        let place = self.place_of(sector)?;
        match *self.spots.get(place).1 {
            Spot::One(now, slot) => (now == kind && wanted(slot)).then_some(slot),
            Spot::Crowd(_) => self.at(kind, sector).find(|slot| wanted(*slot)),
        }
    }

    /// All of a kind at `sector`, the oldest first, but not too many.
    #[inline(always)]
    pub(super) fn at(&mut self, kind: Kind, sector: u64) -> impl Iterator<Item = Slot> + '_ {
        self.all_at(kind, sector).take(SAME_SECTOR_MAX)
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
        let inside: Vec<u64> = match self.index(kind) {
            Some(in_order) => in_order
                .range(start..end)
                .take(WITHIN_MAX)
                .copied()
                .collect(),
            None => {
                let inside = self.with_kind(kind).filter(|s| (start..end).contains(s));
                let mut inside: Vec<u64> = inside.collect();
                inside.sort_unstable();
                inside
            }
        };
        let mut left = WITHIN_MAX;
        for sector in inside {
            let here = self.all_at(kind, sector).take(left);
            found.extend(here.inspect(|_| left -= 1).filter(|s| wanted(*s)));
        }
    }

    /// The last of a kind before `sector`.
    pub(super) fn before(&mut self, kind: Kind, sector: u64) -> Option<Slot> {
        if self.len[kind as usize] == 0 {
            return None;
        }
        let before = match self.index(kind) {
            Some(in_order) => in_order.range(..sector).next_back().copied(),
            None => self.with_kind(kind).filter(|s| *s < sector).max(),
        };
        self.ends(kind, before?).map(|(ends, _)| ends.last)
    }

    /// Whether there is something of a kind at a spot.
    fn has(&self, spot: Spot, kind: Kind) -> bool {
        match spot {
            Spot::One(now, _) => now == kind,
            Spot::Crowd(crowd) => self.crowds[crowd as usize].kinds[kind as usize].first != NONE,
        }
    }

    /// Sectors that have things of a kind, in no order.
    fn with_kind(&self, kind: Kind) -> impl Iterator<Item = u64> + '_ {
        let spots = self.spots.iter();
        spots
            .filter(move |(_, spot)| self.has(*spot, kind))
            .map(|(sector, _)| sector)
    }

    /// Sectors that have things of a kind in order, if all are too many to look
    /// through.
    fn index(&mut self, kind: Kind) -> Option<&BTreeSet<u64>> {
        if self.spots.nr_places() <= 4 * UNORDERED_MAX {
            return None;
        }
        if self.in_order.is_none() {
            let kinds = [Kind::Queued, Kind::Waiting, Kind::Issued];
            self.in_order = Some(Box::new(kinds.map(|kind| self.with_kind(kind).collect())));
        }
        self.in_order.as_ref().map(|all| &all[kind as usize])
    }

    /// Something of a kind came to a sector or went from it.
    #[cold]
    fn keep_order(&mut self, sector: u64, kind: Kind) {
        let place = self.place_of(sector);
        let has = place.is_some_and(|place| {
            let spot = *self.spots.get(place).1;
            self.has(spot, kind)
        });
        let in_order = self.in_order.as_mut().expect("there is an order to keep");
        if has {
            in_order[kind as usize].insert(sector)
        } else {
            in_order[kind as usize].remove(&sector)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same by definition: a list in order of change.
    #[derive(Default)]
    struct Listed(Vec<(u64, Kind, Slot)>);

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
                    positions.insert(kind, sector, slot);
                    listed.0.push((sector, kind, slot));
                } else if !listed.0.is_empty() {
                    let at = sector as usize % listed.0.len();
                    let thing = listed.0.remove(at);
                    if step < 10 {
                        positions.remove(thing.0, thing.2);
                    } else {
                        positions.turn(thing.0, thing.2, kind);
                        listed.0.push((thing.0, kind, thing.2));
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
