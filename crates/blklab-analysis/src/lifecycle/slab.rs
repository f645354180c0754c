// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values in numbered places that are used again: no allocation once the
//! table is as large as the I/O in flight.

/// The number of a place.
pub(super) type Slot = u32;

/// Places that an empty table keeps.
const KEPT_MAX: usize = 4096;

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
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    #[inline]
    pub(super) fn insert(&mut self, value: T) -> Slot {
        if let Some(slot) = self.free.pop() {
            self.places[slot as usize] = Some(value);
            return slot;
        }
        self.places.push(Some(value));
        (self.places.len() - 1) as Slot
    }

    /// The value of an occupied place.
    #[inline]
    pub(super) fn get(&mut self, slot: Slot) -> &mut T {
        self.places[slot as usize]
            .as_mut()
            .expect("slots are used only while occupied")
    }

    pub(super) fn remove(&mut self, slot: Slot) -> T {
        let value = self.places[slot as usize].take();
        self.vacate(slot);
        value.expect("slots are used only while occupied")
    }

    /// The value of an occupied place is no longer needed.
    #[inline]
    pub(super) fn free(&mut self, slot: Slot) {
        debug_assert!(self.places[slot as usize].is_some());
        self.places[slot as usize] = None;
        self.vacate(slot);
    }

    #[inline]
    fn vacate(&mut self, slot: Slot) {
        self.free.push(slot);
        if self.free.len() == self.places.len() && self.places.len() > KEPT_MAX {
            // A burst is over: other devices may have theirs.
            *self = Slab::default();
        }
    }

    /// Places, occupied or free: as many as there ever were things at a time.
    pub(super) fn nr_places(&self) -> usize {
        self.places.len()
    }

    /// All that is there, by place.
    pub(super) fn each(&self, mut f: impl FnMut(Slot, &T)) {
        for (slot, value) in self.places.iter().enumerate() {
            if let Some(value) = value {
                f(slot as Slot, value);
            }
        }
    }

    /// Empties all places, in order.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        std::mem::take(self).places.into_iter().flatten()
    }
}
