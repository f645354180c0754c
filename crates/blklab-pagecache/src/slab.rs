// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table of things in progress, named by keys that are not reused.

/// A [`blklab_types::Slab`] whose keys hold the place and a number of their own, so that a
/// stale key is recognised.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    places: blklab_types::Slab<u32, Place<T>>,
    /// Things that there were; wraps.
    nr_inserted: u32,
}

#[derive(Clone, Debug)]
struct Place<T> {
    /// That of the last key of the place.
    number: u32,
    thing: Option<T>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab {
            places: blklab_types::Slab::default(),
            nr_inserted: 0,
        }
    }
}

impl<T> Slab<T> {
    /// Adds a thing; returns its key.
    #[inline]
    pub fn insert(&mut self, value: T) -> u64 {
        let number = self.nr_inserted;
        self.nr_inserted = number.wrapping_add(1);
        let thing = Some(value);
        let place = self.places.insert(Place { number, thing });
        u64::from(number) << 32 | u64::from(place)
    }

    /// The thing of a key; none if it went.
    #[inline]
    pub fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        let place = self.places.place_mut(key as u32)?;
        if u64::from(place.number) == key >> 32 {
            place.thing.as_mut()
        } else {
            None
        }
    }

    /// Takes a thing out; none if it went.
    #[inline]
    pub fn remove(&mut self, key: u64) -> Option<T> {
        self.get_mut(key)?;
        self.places.remove(key as u32).thing.take()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.places
            .places()
            .filter_map(|place| place.thing.as_ref())
    }

    /// Places that [`Slab::iter`] looks at: the most things there ever were.
    pub(crate) fn nr_places(&self) -> usize {
        self.places.nr_places()
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_keys_name_nothing() {
        let mut slab = Slab::default();
        let a = slab.insert('a');
        assert_eq!(slab.remove(a), Some('a'));
        let b = slab.insert('b');
        assert_ne!(a, b);
        assert_eq!(slab.get_mut(a), None);
        assert_eq!((slab.remove(a), slab.remove(77)), (None, None));
        assert_eq!(slab.get_mut(b), Some(&mut 'b'));
        assert_eq!(slab.len(), 1);
    }
}
