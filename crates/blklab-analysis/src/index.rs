// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers things in the order they appear, up to a limit.

use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::hash::Hash;

/// From keys to places in a list.
#[derive(Debug)]
pub(crate) struct Index<K> {
    places: HashMap<K, u32, RandomState>,
    /// What was asked for last: mostly that is asked for next.
    last: Option<(K, usize)>,
    limit: usize,
}

impl<K: Copy + Eq + Hash> Index<K> {
    /// For at most `limit` keys.
    pub(crate) fn new(limit: usize) -> Index<K> {
        Index {
            places: HashMap::default(),
            last: None,
            limit,
        }
    }

    /// The place of `key`: that of its first appearance, or the next one, which
    /// is for the caller to fill; none if all are taken by others.
    #[inline]
    pub(crate) fn place(&mut self, key: K) -> Option<usize> {
        match self.last {
            Some((last, place)) if last == key => Some(place),
            _ => self.look(key),
        }
    }

    fn look(&mut self, key: K) -> Option<usize> {
        let next = self.places.len();
        let place = match self.places.get(&key) {
            Some(place) => *place as usize,
            None if next < self.limit => {
                self.places.insert(key, next as u32);
                next
            }
            None => return None,
        };
        self.last = Some((key, place));
        Some(place)
    }

    /// The place of `key`, if it has one.
    pub(crate) fn known(&self, key: K) -> Option<usize> {
        self.places.get(&key).map(|place| *place as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_given_in_order_and_kept() {
        let mut index = Index::new(2);
        let asked = [7, 7, 3, 7, 9, 3].map(|key| index.place(key));
        let expected = [Some(0), Some(0), Some(1), Some(0), None, Some(1)];
        assert_eq!(asked, expected);
        assert_eq!((index.known(3), index.known(9)), (Some(1), None));
    }
}
