// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table of things in progress, named by keys that are not reused.

/// A table whose free places are used again. A key holds the place and how
/// often it was used before, so that a stale key is recognised.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    places: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
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
    /// Adds a thing; returns its key.
    #[inline]
    pub fn insert(&mut self, value: T) -> u64 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            self.places.len() as u32 - 1
        });
        let (uses, slot) = &mut self.places[place as usize];
        *slot = Some(value);
        u64::from(*uses) << 32 | u64::from(place)
    }

    /// The thing of a key; none if it went.
    #[inline]
    pub fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        let (uses, slot) = self.places.get_mut(key as u32 as usize)?;
        if u64::from(*uses) == key >> 32 {
            slot.as_mut()
        } else {
            None
        }
    }

    /// Takes a thing out; none if it went.
    #[inline]
    pub fn remove(&mut self, key: u64) -> Option<T> {
        self.get_mut(key)?;
        let (uses, slot) = &mut self.places[key as u32 as usize];
        *uses = uses.wrapping_add(1);
        self.free.push(key as u32);
        slot.take()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter_map(|(_, thing)| thing.as_ref())
    }

    /// Places that [`Slab::iter`] looks at: the most things there ever were.
    pub(crate) fn nr_places(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
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
