// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C library's 48-bit generator, which fio drew from in 2009.
//!
//! Source: POSIX.1-2008, `drand48` (multiplier, addend, seeding by `srand48`,
//! the upper 31 bits of the state as output of `lrand48`).

/// A linear congruential generator modulo 2^48.
#[derive(Clone, Debug)]
pub struct Rng48 {
    state: u64,
}

const MULTIPLIER: u64 = 0x5_deec_e66d;
const ADDEND: u64 = 0xb;
const MASK: u64 = (1 << 48) - 1;
/// Below the seed's 32 bits.
const LOW_BITS: u64 = 0x330e;
/// Number of possible outputs.
const OUTPUTS: u64 = 1 << 31;

impl Rng48 {
    /// A generator with that seed, of which 32 bits count.
    pub fn new(seed: u64) -> Rng48 {
        Rng48 {
            state: (seed & 0xffff_ffff) << 16 | LOW_BITS,
        }
    }

    /// The next output, from 0 to 2^31 - 1.
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(ADDEND) & MASK;
        self.state >> 17
    }
}

/// An output's share of `count`, rounded down, in floating point as in fio.
pub fn share(output: u64, count: u64) -> u64 {
    (count as f64 * (output as f64 / OUTPUTS as f64)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_those_of_lrand48() {
        let mut rng = Rng48::new(0);
        let drawn: Vec<u64> = (0..3).map(|_| rng.draw()).collect();
        assert_eq!(drawn, [366_850_414, 1_610_402_240, 206_956_554]);
    }
}
