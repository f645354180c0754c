// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values in numbered places that are used again: no allocation once the
//! table is as large as the I/O in flight.

/// The number of a place.
pub(super) type Slot = u32;

/// Places that an empty table keeps.
pub(super) const KEPT_MAX: usize = 4096;

/// A [`blklab_types::Slab`] that gives its memory back after a burst.
#[derive(Debug)]
pub(super) struct Slab<T>(blklab_types::Slab<Slot, Option<T>>);

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab(blklab_types::Slab::default())
    }
}

/// Of a place that is used only while it is occupied.
const OCCUPIED: &str = "slots are used only while occupied";

impl<T> Slab<T> {
    #[inline(always)]
    pub(super) fn insert(&mut self, value: T) -> Slot {
        self.0.insert(Some(value))
    }

    /// The value of an occupied place.
    #[inline(always)]
    pub(super) fn get(&mut self, slot: Slot) -> &mut T {
        self.0[slot].as_mut().expect(OCCUPIED)
    }

    #[inline(always)]
    pub(super) fn remove(&mut self, slot: Slot) -> T {
        let value = self.0.remove(slot).take();
        self.shrink();
        value.expect(OCCUPIED)
    }

    /// The value of an occupied place is no longer needed.
    #[inline(always)]
    pub(super) fn free(&mut self, slot: Slot) {
        let value = self.0.remove(slot);
        debug_assert!(value.is_some());
        *value = None;
        self.shrink();
    }

    #[inline(always)]
    fn shrink(&mut self) {
        if self.0.is_empty() && self.0.nr_places() > KEPT_MAX {
            // A burst is over: other devices may have theirs.
            *self = Slab::default();
        }
    }

    /// All that is there, by place.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Slot, &T)> {
        let places = self.0.places().enumerate();
        places.filter_map(|(slot, value)| Some((slot as Slot, value.as_ref()?)))
    }
}
