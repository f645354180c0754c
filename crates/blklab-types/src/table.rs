// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables by id: one value for each id, and values that get their ids here.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A small number that names one thing among its like.
pub trait Id: Copy {
    /// The id of a place.
    ///
    /// # Panics
    /// If there are more things than the id has numbers.
    fn from_idx(idx: usize) -> Self;

    /// The place that it names.
    fn idx(self) -> usize;
}

macro_rules! plain_ids {
    ($($number:ty),*) => {$(
        impl Id for $number {
            fn from_idx(idx: usize) -> $number {
                <$number>::try_from(idx).expect("places fit the id")
            }

            #[inline]
            fn idx(self) -> usize {
                self as usize
            }
        }
    )*};
}

plain_ids!(u16, u32, usize);

/// Makes a tuple struct around a number an [`Id`].
#[macro_export]
macro_rules! impl_id {
    ($id:ident($number:ty)) => {
        impl $crate::Id for $id {
            fn from_idx(idx: usize) -> $id {
                $id(<$number as $crate::Id>::from_idx(idx))
            }

            #[inline]
            fn idx(self) -> usize {
                $crate::Id::idx(self.0)
            }
        }
    };
}

/// What somebody notes about each thing of another's: one value by id, the
/// default until it is written. Grows to the highest id and never shrinks.
#[derive(Clone, Debug)]
pub struct IdVec<I, T> {
    values: Vec<T>,
    ids: PhantomData<fn(I)>,
}

impl<I, T> Default for IdVec<I, T> {
    fn default() -> IdVec<I, T> {
        IdVec {
            values: Vec::new(),
            ids: PhantomData,
        }
    }
}

impl<I: Id, T> IdVec<I, T> {
    /// The value of an id, unless the table has not grown that far.
    #[inline]
    pub fn get(&self, id: I) -> Option<&T> {
        self.values.get(id.idx())
    }

    /// The same, to change it.
    #[inline]
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.values.get_mut(id.idx())
    }

    /// All values by ascending id.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }
}

impl<I: Id, T: Default> IdVec<I, T> {
    /// The value of an id; the table grows if need be.
    #[inline]
    pub fn entry(&mut self, id: I) -> &mut T {
        let idx = id.idx();
        if idx < self.values.len() {
            return &mut self.values[idx];
        }
        self.grow(idx)
    }

    #[cold]
    fn grow(&mut self, idx: usize) -> &mut T {
        self.values.resize_with(idx + 1, T::default);
        &mut self.values[idx]
    }
}

/// A value that was written.
impl<I: Id, T> Index<I> for IdVec<I, T> {
    type Output = T;
    #[inline]
    fn index(&self, id: I) -> &T {
        &self.values[id.idx()]
    }
}

impl<I: Id, T> IndexMut<I> for IdVec<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.values[id.idx()]
    }
}

/// Places that a table makes room for, at least.
const PLACES_MIN: usize = 16;

/// Values that come and go. The place of one that went is used again, the last
/// first, so the table is as long as the most that there were at once, and no
/// allocation happens after that.
///
/// An id of a value that went must not be used: debug builds panic. The value
/// itself stays where it is until its place is used again, so `T` should own
/// nothing that matters.
#[derive(Clone, Debug)]
pub struct Slab<I, T> {
    values: Vec<T>,
    free: Vec<I>,
    /// By place; not kept where nobody asks.
    #[cfg(debug_assertions)]
    is_live: Vec<bool>,
}

impl<I, T> Default for Slab<I, T> {
    fn default() -> Slab<I, T> {
        Slab {
            values: Vec::new(),
            free: Vec::new(),
            #[cfg(debug_assertions)]
            is_live: Vec::new(),
        }
    }
}

impl<I: Id, T> Slab<I, T> {
    /// An empty table with room for so many.
    pub fn with_capacity(capacity: usize) -> Slab<I, T> {
        Slab {
            values: Vec::with_capacity(capacity),
            free: Vec::with_capacity(capacity),
            ..Slab::default()
        }
    }

    /// Adds a value.
    #[inline]
    pub fn insert(&mut self, value: T) -> I {
        if let Some(id) = self.free.pop() {
            self.values[id.idx()] = value;
            #[cfg(debug_assertions)]
            {
                self.is_live[id.idx()] = true;
            }
            return id;
        }
        if self.values.len() == self.values.capacity() {
            self.grow();
        }
        self.values.push(value);
        #[cfg(debug_assertions)]
        self.is_live.push(true);
        I::from_idx(self.values.len() - 1)
    }

    /// Makes room for a quarter more: values may be large, and there may be a million.
    #[cold]
    fn grow(&mut self) {
        let more = (self.values.len() / 4).max(PLACES_MIN);
        self.values.reserve_exact(more);
    }

    /// Gives a value up and shows it once more.
    #[inline]
    pub fn remove(&mut self, id: I) -> &mut T {
        self.check(id);
        #[cfg(debug_assertions)]
        {
            self.is_live[id.idx()] = false;
        }
        self.free.push(id);
        &mut self.values[id.idx()]
    }

    /// The value of a place, whether or not it went; none if there is no such place.
    #[inline]
    pub fn place_mut(&mut self, id: I) -> Option<&mut T> {
        self.values.get_mut(id.idx())
    }

    /// Places: the most values that there ever were at once.
    pub fn nr_places(&self) -> usize {
        self.values.len()
    }

    /// The values of all places, by place: also of those that went.
    pub fn places(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }

    /// Values that there are.
    pub fn len(&self) -> usize {
        self.values.len() - self.free.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn check(&self, _id: I) {
        #[cfg(debug_assertions)]
        assert!(self.is_live[_id.idx()], "the value of this id went");
    }
}

impl<I: Id, T> Index<I> for Slab<I, T> {
    type Output = T;
    #[inline]
    fn index(&self, id: I) -> &T {
        self.check(id);
        &self.values[id.idx()]
    }
}

impl<I: Id, T> IndexMut<I> for Slab<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        self.check(id);
        &mut self.values[id.idx()]
    }
}

#[cfg(test)]
mod tests {
    use super::{IdVec, Slab};
    use crate::TaskId;

    #[test]
    fn places_are_used_again_last_first() {
        let mut slab: Slab<u32, char> = Slab::default();
        let [a, b, c] = ['a', 'b', 'c'].map(|v| slab.insert(v));
        assert_eq!((*slab.remove(a), *slab.remove(c)), ('a', 'c'));
        assert_eq!((slab.len(), slab[b]), (1, 'b'));
        assert_eq!([slab.insert('d'), slab.insert('e')], [c, a]);
        assert_eq!(slab.insert('f'), 3);
        assert_eq!((slab[a], slab[b], slab[c]), ('e', 'b', 'd'));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "the value of this id went")]
    fn an_id_is_of_no_use_after_its_value() {
        let mut slab: Slab<u32, char> = Slab::default();
        let a = slab.insert('a');
        slab.remove(a);
        let _ = slab[a];
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "the value of this id went")]
    fn a_value_goes_once() {
        let mut slab: Slab<u32, char> = Slab::default();
        let a = slab.insert('a');
        slab.remove(a);
        slab.remove(a);
    }

    #[test]
    #[should_panic(expected = "places fit the id")]
    fn more_values_than_ids() {
        let mut slab: Slab<u16, ()> = Slab::default();
        for _ in 0..=u32::from(u16::MAX) + 1 {
            slab.insert(());
        }
    }

    #[test]
    fn notes_are_the_default_until_they_are_written() {
        let mut notes: IdVec<TaskId, u32> = IdVec::default();
        assert_eq!(notes.get(TaskId(0)), None);
        *notes.entry(TaskId(2)) += 7;
        assert_eq!((notes[TaskId(1)], notes[TaskId(2)]), (0, 7));
        notes[TaskId(1)] = 5;
        *notes.entry(TaskId(2)) += 1;
        assert_eq!(notes.values().copied().collect::<Vec<_>>(), [0, 5, 8]);
    }
}
