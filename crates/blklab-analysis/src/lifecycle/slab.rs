// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values in numbered places that are used again: no allocation once the
//! table is as large as the I/O in flight.

/// The number of a place.
pub(super) type Slot = u32;

/// Places that an empty table keeps.
pub(super) const KEPT_MAX: usize = 4096;

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

    #[inline]
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

    /// All that is there, by place.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Slot, &T)> {
        let places = self.places.iter().enumerate();
        places.filter_map(|(slot, value)| Some((slot as Slot, value.as_ref()?)))
    }
}

/// Values beside those of a [`Slab`], under the same slots: for what not all of
/// them have.
#[derive(Debug)]
pub(super) struct Beside<T>(Vec<Option<T>>);

impl<T> Default for Beside<T> {
    fn default() -> Beside<T> {
        Beside(Vec::new())
    }
}

impl<T> Beside<T> {
    #[inline(always)]
    pub(super) fn put(&mut self, slot: Slot, value: T) {
        let slot = slot as usize;
        if slot >= self.0.len() {
            self.0.resize_with(slot + 1, || None);
        }
        self.0[slot] = Some(value);
    }

    #[inline]
    pub(super) fn get(&self, slot: Slot) -> Option<&T> {
        self.0.get(slot as usize)?.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut T> {
        self.0.get_mut(slot as usize)?.as_mut()
    }

    #[inline]
    pub(super) fn take(&mut self, slot: Slot) -> Option<T> {
        self.0.get_mut(slot as usize)?.take()
    }

    /// The value, if there is one, is no longer needed.
    #[inline]
    pub(super) fn free(&mut self, slot: Slot) {
        if let Some(place) = self.0.get_mut(slot as usize) {
            *place = None;
        }
    }

    /// Gives the memory of a burst back, when all values are gone.
    pub(super) fn shrink(&mut self) {
        if self.0.len() > KEPT_MAX {
            *self = Beside::default();
        }
    }
}
