// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is drawn at random for a scenario, or for a testbed.

use blklab_types::{SplitMix64, split_mix64};
use std::ops::RangeInclusive;

/// A stream of random numbers that depends on a seed and a name alone, so that a new
/// cause moves no other's scenarios.
pub(crate) struct Draw(SplitMix64);

impl Draw {
    /// The stream of a scenario.
    pub(crate) fn new(seed: u64, name: &str, number: u64) -> Draw {
        // FNV-1a of the name.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let first = split_mix64(seed ^ hash);
        Draw(SplitMix64(first.wrapping_add(number)))
    }

    /// A whole number.
    pub(crate) fn number(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (low, high) = (*range.start(), *range.end());
        low + self.0.next_u64() % (high - low + 1)
    }

    /// One of some.
    pub(crate) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.number(0..=of.len() as u64 - 1) as usize]
    }

    /// Yes once in so many times.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.number(1..=times) == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_seed_name_and_number_and_stay_in_range() {
        let drawn = |seed, name, number| {
            let mut draw = Draw::new(seed, name, number);
            [draw.0.next_u64(), draw.0.next_u64()]
        };
        assert_eq!(drawn(1, "a", 2), drawn(1, "a", 2));
        for other in [drawn(2, "a", 2), drawn(1, "b", 2), drawn(1, "a", 3)] {
            assert_ne!(drawn(1, "a", 2), other);
        }
        let mut draw = Draw::new(0, "range", 0);
        let drawn: Vec<u64> = (0..1000).map(|_| draw.number(3..=7)).collect();
        assert_eq!(drawn.iter().min(), Some(&3));
        assert_eq!(drawn.iter().max(), Some(&7));
    }
}
