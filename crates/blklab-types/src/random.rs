// SPDX-License-Identifier: MIT OR Apache-2.0
//! SplitMix64, a small generator of pseudo-random numbers (Steele, Lea and Flood,
//! "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).

/// A stream of SplitMix64; the field is its state, at first the seed.
///
/// Components of a simulation draw from named streams of `blklab-engine` instead,
/// which this seeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let out = split_mix64(self.0);
        self.0 = self.0.wrapping_add(GOLDEN_GAMMA);
        out
    }

    /// The `n`-th number from 0 on, which [`SplitMix64::next_u64`] would give in its turn.
    pub const fn nth(&self, n: u64) -> u64 {
        split_mix64(self.0.wrapping_add(n.wrapping_mul(GOLDEN_GAMMA)))
    }

    /// A number below `n` (0 if `n` is 0), without the bias that matters for any
    /// `n` below 2^48.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }
}

/// What SplitMix64 gives after state `x`: spreads numbers that follow each other evenly.
pub const fn split_mix64(x: u64) -> u64 {
    let mut z = x.wrapping_add(GOLDEN_GAMMA);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What the state grows by: 2^64 divided by the golden ratio.
const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::SplitMix64;

    /// The first numbers of seed 1234567, as the Java original and its ports print them.
    #[test]
    fn the_stream_is_the_published_one() {
        let mut stream = SplitMix64(1_234_567);
        let places = [0, 1, 2].map(|n| stream.nth(n));
        let drawn = [(); 3].map(|()| stream.next_u64());
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(drawn, published);
        assert_eq!(places, published);
    }

    #[test]
    fn numbers_stay_below_their_limit() {
        let mut stream = SplitMix64(0);
        assert!((1..1000).all(|n| stream.below(n) < n));
        assert_eq!(stream.below(0), 0);
    }
}
