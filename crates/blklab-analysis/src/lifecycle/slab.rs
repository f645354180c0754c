// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values in numbered places that are used again: no allocation once the
//! table is as large as the I/O in flight.

/// The number of a place.
pub(super) type Slot = u32;

/// Places that an empty table keeps.
pub(super) const KEPT_MAX: usize = 4096;

/// Places of a table that is not empty, at least.
const PLACES_MIN: usize = 16;

/// Places for `T`.
#[derive(Debug)]
pub(super) struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<Slot>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab {
            places: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    #[inline(always)]
    pub(super) fn insert(&mut self, value: T) -> Slot {
        if let Some(slot) = self.free.pop() {
            self.places[slot as usize] = Some(value);
            return slot;
        }
        if self.places.len() == self.places.capacity() {
            self.grow();
        }
        self.places.push(Some(value));
        (self.places.len() - 1) as Slot
    }

    /// Makes room for a quarter more: places are large, and there may be a million.
    #[cold]
    fn grow(&mut self) {
        let more = (self.places.len() / 4).max(PLACES_MIN);
        self.places.reserve_exact(more);
    }

    /// The value of an occupied place.
    #[inline(always)]
    pub(super) fn get(&mut self, slot: Slot) -> &mut T {
        self.places[slot as usize]
            .as_mut()
            .expect("slots are used only while occupied")
    }

    #[inline(always)]
    pub(super) fn remove(&mut self, slot: Slot) -> T {
        let value = self.places[slot as usize].take();
        self.vacate(slot);
        value.expect("slots are used only while occupied")
    }

    /// The value of an occupied place is no longer needed.
    #[inline(always)]
    pub(super) fn free(&mut self, slot: Slot) {
        debug_assert!(self.places[slot as usize].is_some());
        self.places[slot as usize] = None;
        self.vacate(slot);
    }

    #[inline(always)]
    fn vacate(&mut self, slot: Slot) {
        self.free.push(slot);
        if self.free.len() == self.places.len() && self.places.len() > KEPT_MAX {
            // A burst is over: other devices may have theirs.
            *self = Slab::default();
        }
    }

    /// All that is there, by place.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Slot, &T)> {
        let places = self.places.iter().enumerate();
        places.filter_map(|(slot, value)| Some((slot as Slot, value.as_ref()?)))
    }
}
