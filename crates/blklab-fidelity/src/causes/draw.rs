// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is drawn at random for a scenario, or for a testbed.

use blklab_types::{SplitMix64, split_mix64};
use std::ops::RangeInclusive;

/// A stream of random numbers that depends on a seed and a name alone, so that a new
/// cause moves no other's scenarios.
pub(crate) struct Draw {
    numbers: SplitMix64,
    /// The one kernel that scenarios are drawn on, where one is asked for.
    kernel: Option<&'static str>,
}

impl Draw {
    /// The stream of a scenario.
    pub(crate) fn new(seed: u64, name: &str, number: u64) -> Draw {
        // FNV-1a of the name.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let first = split_mix64(seed ^ hash);
        Draw {
            numbers: SplitMix64(first.wrapping_add(number)),
            kernel: None,
        }
    }

    /// The same on this kernel alone.
    #[must_use]
    pub(super) fn on_kernel(self, kernel: Option<&'static str>) -> Draw {
        Draw { kernel, ..self }
    }

    /// The kernel that is asked for.
    pub(super) fn kernel(&self) -> Option<&'static str> {
        self.kernel
    }

    /// A whole number.
    pub(crate) fn number(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (low, high) = (*range.start(), *range.end());
        low + self.numbers.next_u64() % (high - low + 1)
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
            [draw.numbers.next_u64(), draw.numbers.next_u64()]
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
