// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which pages are in the write buffer, and how often: a table of fixed size
//! with open addressing, twice as large as what can be in it.

/// Number of a page plus one, so that 0 is an empty place, and how often.
type Place = (u64, u32);

#[derive(Clone, Debug)]
pub(super) struct Pages {
    /// A power of two of places.
    places: Vec<Place>,
}

impl Pages {
    /// For at most so many pages at a time.
    pub(super) fn for_slots(slots: u32) -> Pages {
        let places = (slots as usize * 2).next_power_of_two();
        Pages {
            places: vec![(0, 0); places],
        }
    }

    /// Where the search for a page begins.
    fn home(&self, key: u64) -> usize {
        let bits = self.places.len().trailing_zeros();
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & ((1 << bits) - 1)
    }

    fn next(&self, i: usize) -> usize {
        (i + 1) & (self.places.len() - 1)
    }

    /// The place of a page, or the empty one where it would be.
    fn find(&self, key: u64) -> usize {
        let mut i = self.home(key);
        while self.places[i].0 != 0 && self.places[i].0 != key {
            i = self.next(i);
        }
        i
    }

    pub(super) fn holds(&self, page: u64) -> bool {
        self.places[self.find(page + 1)].0 != 0
    }

    pub(super) fn add(&mut self, page: u64) {
        let i = self.find(page + 1);
        self.places[i] = (page + 1, self.places[i].1 + 1);
    }

    /// Takes one of a page that is there away.
    pub(super) fn remove(&mut self, page: u64) {
        let mut hole = self.find(page + 1);
        self.places[hole].1 -= 1;
        if self.places[hole].1 > 0 {
            return;
        }
        // What follows moves up unless its search begins behind the hole.
        let mut i = self.next(hole);
        while self.places[i].0 != 0 {
            let home = self.home(self.places[i].0);
            let from_home = i.wrapping_sub(home) & (self.places.len() - 1);
            let from_hole = i.wrapping_sub(hole) & (self.places.len() - 1);
            if from_home >= from_hole {
                self.places[hole] = self.places[i];
                hole = i;
            }
            i = self.next(i);
        }
        self.places[hole] = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn agrees_with_a_plain_map() {
        let (mut pages, mut model) = (Pages::for_slots(16), BTreeMap::new());
        let mut random = 1u64;
        for _ in 0..20_000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let page = (random >> 40) % 24;
            let there: u32 = model.values().sum();
            if random >> 63 == 0 && there < 16 {
                pages.add(page);
                *model.entry(page).or_insert(0) += 1;
            } else if let Some(n) = model.get_mut(&page) {
                pages.remove(page);
                *n -= 1;
                model.retain(|_, n| *n > 0);
            }
            for page in 0..24 {
                assert_eq!(pages.holds(page), model.contains_key(&page));
            }
        }
    }
}
