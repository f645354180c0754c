// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two Tausworthe generators that fio draws from.
//!
//! Source: P. L'Ecuyer, "Maximally Equidistributed Combined Tausworthe
//! Generators" (1996) and "Tables of Maximally Equidistributed Combined LFSR
//! Generators" (1999); seeding as in fio 3.33.

/// A generator of 32-bit or 64-bit numbers.
#[derive(Clone, Debug)]
pub enum Rng {
    /// Three words, 32 bits.
    Taus88([u32; 3]),
    /// Five words, 64 bits.
    Taus258([u64; 5]),
}

/// Outputs dropped after seeding.
const WARM_UP: u32 = 6;

impl Rng {
    /// A generator with that seed; `wide` for the 64-bit one, which alone uses
    /// all of the seed's bits.
    pub fn new(seed: u64, wide: bool) -> Rng {
        let mut rng = if wide {
            Rng::Taus258(seed_258(seed))
        } else {
            Rng::Taus88(seed_88(seed as u32))
        };
        for _ in 0..WARM_UP {
            rng.draw();
        }
        rng
    }

    /// The next output.
    pub fn draw(&mut self) -> u64 {
        match self {
            Rng::Taus88(words) => u64::from(step_88(words)),
            Rng::Taus258(words) => step_258(words),
        }
    }

    /// The largest possible output.
    pub fn max(&self) -> u64 {
        match self {
            Rng::Taus88(_) => u64::from(u32::MAX),
            Rng::Taus258(_) => u64::MAX,
        }
    }

    /// The next output divided by the number of possible ones. The wide
    /// generator can round up to 1.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        match self {
            Rng::Taus88(words) => f64::from(step_88(words)) / (f64::from(u32::MAX) + 1.0),
            Rng::Taus258(words) => step_258(words) as f64 / (u64::MAX as f64 + 1.0),
        }
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        let span = high.wrapping_sub(low).wrapping_add(1) as f64;
        low.wrapping_add((span * self.unit()) as u64)
    }

    /// A number below `count` (at most `count`, with the wide generator).
    #[inline]
    pub fn below(&mut self, count: u64) -> u64 {
        (count as f64 * self.unit()) as u64
    }
}

fn seed_88(seed: u32) -> [u32; 3] {
    let mut value: u32 = 53;
    [1, 7, 15].map(|least| {
        let mixed = value.wrapping_mul(69069) ^ seed;
        value = if mixed < least { mixed + least } else { mixed };
        value
    })
}

fn seed_258(seed: u64) -> [u64; 5] {
    let mut value: u64 = 53;
    [1, 7, 15, 33, 49].map(|least| {
        let mixed = value.wrapping_mul(6_906_969_069) ^ seed;
        value = if mixed < least { mixed + least } else { mixed };
        value
    })
}

#[inline]
fn step_88(words: &mut [u32; 3]) -> u32 {
    const PARAMETERS: [(u32, u32, u32, u32); 3] = [
        (13, 19, 4_294_967_294, 12),
        (2, 25, 4_294_967_288, 4),
        (3, 11, 4_294_967_280, 17),
    ];
    for (word, (a, b, mask, d)) in words.iter_mut().zip(PARAMETERS) {
        *word = ((*word & mask) << d) ^ (((*word << a) ^ *word) >> b);
    }
    words[0] ^ words[1] ^ words[2]
}

fn step_258(words: &mut [u64; 5]) -> u64 {
    const PARAMETERS: [(u32, u32, u64, u32); 5] = [
        (1, 53, 18_446_744_073_709_551_614, 10),
        (24, 50, 18_446_744_073_709_551_104, 5),
        (3, 23, 18_446_744_073_709_547_520, 29),
        (5, 24, 18_446_744_073_709_420_544, 23),
        (3, 33, 18_446_744_073_701_163_008, 8),
    ];
    for (word, (a, b, mask, d)) in words.iter_mut().zip(PARAMETERS) {
        *word = ((*word & mask) << d) ^ (((*word << a) ^ *word) >> b);
    }
    words.iter().fold(0, |all, word| all ^ word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first<const N: usize>(seed: u64, wide: bool) -> [u64; N] {
        let mut rng = Rng::new(seed, wide);
        std::array::from_fn(|_| rng.draw())
    }

    #[test]
    fn known_outputs() {
        assert_eq!(
            first(1, false),
            [2_634_262_343, 4_072_702_554, 2_367_269_570, 3_770_928_454]
        );
        assert_eq!(
            first(137, false),
            [4_195_301_155, 3_725_684_139, 3_310_918_406]
        );
        assert_eq!(
            first(2_978_585_581, false),
            [259_043_585, 3_179_521_932, 3_621_444_214]
        );
        assert_eq!(
            first(1, true),
            [11_128_779_724_671_416_100, 6_550_831_460_819_418_398]
        );
        assert_eq!(
            first(2_978_585_581, true),
            [17_311_067_694_306_724_737, 485_009_114_434_689_783]
        );
    }

    #[test]
    fn between_reaches_both_ends() {
        let mut rng = Rng::new(5, false);
        let drawn: Vec<u64> = (0..10).map(|_| rng.between(1, 100)).collect();
        assert_eq!(drawn, [13, 100, 70, 33, 1, 39, 88, 53, 39, 1]);
    }
}
