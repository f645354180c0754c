// SPDX-License-Identifier: MIT OR Apache-2.0
//! Named random streams.
//!
//! Every component draws from its own stream, derived from the run's seed and
//! the component's name, so that adding a component never shifts another.
//! Generator: xoshiro256** of Blackman and Vigna (2018), seeded by SplitMix64.

use blklab_types::{SplitMix64, split_mix64};

/// A stream of pseudo-random numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    s: [u64; 4],
}

impl Stream {
    /// The stream of component `name` in a run with `seed`.
    pub fn named(seed: u64, name: &str) -> Stream {
        let mut x = seed;
        for b in name.bytes() {
            x = split_mix64(x ^ u64::from(b));
        }
        let mut words = SplitMix64(x);
        Stream {
            s: [(); 4].map(|()| words.next_u64()),
        }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let out = self.s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = self.s[1] << 17;
        self.s[2] ^= self.s[0];
        self.s[3] ^= self.s[1];
        self.s[1] ^= self.s[2];
        self.s[0] ^= self.s[3];
        self.s[2] ^= t;
        self.s[3] = self.s[3].rotate_left(45);
        out
    }

    /// A number below `n` (0 if `n` is 0), without the bias that matters for
    /// any `n` below 2^48.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }
}
