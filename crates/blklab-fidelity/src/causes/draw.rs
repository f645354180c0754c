// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is drawn at random for a scenario, or for a testbed.

use std::ops::RangeInclusive;

/// A stream of random numbers that depends on a seed and a name alone, so that a new
/// cause moves no other's scenarios (SplitMix64, Steele and others, OOPSLA 2014).
pub(crate) struct Draw(u64);

impl Draw {
    /// The stream of a scenario.
    pub(crate) fn new(seed: u64, name: &str, number: u64) -> Draw {
        // FNV-1a of the name.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut draw = Draw(seed ^ hash);
        draw.0 = draw.next().wrapping_add(number);
        draw
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A whole number.
    pub(crate) fn number(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (low, high) = (*range.start(), *range.end());
        low + self.next() % (high - low + 1)
    }

    /// One of some.
    pub(super) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.number(0..=of.len() as u64 - 1) as usize]
    }

    /// Yes once in so many times.
    pub(super) fn once_in(&mut self, times: u64) -> bool {
        self.number(1..=times) == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_seed_name_and_number_and_stay_in_range() {
        let some = |seed, name, number| {
            let mut draw = Draw::new(seed, name, number);
            [draw.next(), draw.next()]
        };
        assert_eq!(some(1, "a", 2), some(1, "a", 2));
        for other in [some(2, "a", 2), some(1, "b", 2), some(1, "a", 3)] {
            assert_ne!(some(1, "a", 2), other);
        }
        let mut draw = Draw::new(0, "range", 0);
        let drawn: Vec<u64> = (0..1000).map(|_| draw.number(3..=7)).collect();
        assert_eq!(drawn.iter().min(), Some(&3));
        assert_eq!(drawn.iter().max(), Some(&7));
    }
}
