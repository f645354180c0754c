// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rank a percentile stands for, rounded as fio's machine code rounds it.
//!
//! fio asks whether a count has reached `p / 100.0 * n`, evaluated in the x86
//! 80-bit format with its 64-bit mantissa. Doubles give another rank for some
//! pairs (99.9 % of 1000 is 999 in doubles, and 1000 in fio, because 99.9 is
//! stored a little too large), so the two operations are done here on integers.

/// The smallest count that reaches percentile `p` of `n` values.
///
/// A `p` that is not positive has rank 0.
pub(crate) fn percentile_rank(p: f64, n: u64) -> u64 {
    if p.is_nan() || p <= 0.0 || n == 0 {
        return 0;
    }
    let hundredth = Extended::of(p).div_100();
    hundredth.mul(n).ceil()
}

/// `mantissa * 2^exponent`, the mantissa normalised to 64 bits.
#[derive(Clone, Copy)]
struct Extended {
    mantissa: u64,
    exponent: i32,
}

impl Extended {
    fn of(value: f64) -> Extended {
        let bits = value.to_bits();
        let (field, fraction) = ((bits >> 52) as i32 & 0x7ff, bits & ((1 << 52) - 1));
        match field {
            0 => Extended::rounded(u128::from(fraction), false, -1074),
            _ => Extended::rounded(u128::from(fraction | 1 << 52), false, field - 1075),
        }
    }

    fn div_100(self) -> Extended {
        let wide = u128::from(self.mantissa) << 64;
        Extended::rounded(wide / 100, wide % 100 != 0, self.exponent - 64)
    }

    fn mul(self, n: u64) -> Extended {
        Extended::rounded(
            u128::from(self.mantissa) * u128::from(n),
            false,
            self.exponent,
        )
    }

    /// Rounds `wide * 2^exponent` to 64 bits, half to even. `inexact` says that
    /// the true value lies a little above `wide`.
    fn rounded(wide: u128, inexact: bool, exponent: i32) -> Extended {
        if wide == 0 {
            return Extended {
                mantissa: 0,
                exponent: 0,
            };
        }
        let excess = 64 - wide.leading_zeros() as i32;
        if excess <= 0 {
            let mantissa = (wide << -excess) as u64;
            return Extended {
                mantissa,
                exponent: exponent + excess,
            };
        }
        let (kept, rest) = (wide >> excess, wide & ((1 << excess) - 1));
        let half = 1u128 << (excess - 1);
        let up = rest > half || (rest == half && (inexact || kept & 1 == 1));
        match u64::try_from(kept + u128::from(up)) {
            Ok(mantissa) => Extended {
                mantissa,
                exponent: exponent + excess,
            },
            Err(_) => Extended {
                mantissa: 1 << 63,
                exponent: exponent + excess + 1,
            },
        }
    }

    fn ceil(self) -> u64 {
        match self.exponent {
            _ if self.mantissa == 0 => 0,
            1.. => u64::MAX,
            0 => self.mantissa,
            -63..=-1 => {
                let whole = self.mantissa >> -self.exponent;
                let fraction = self.mantissa & ((1 << -self.exponent) - 1);
                whole + u64::from(fraction != 0)
            }
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected ranks were computed with C's `long double` on x86-64.
    #[test]
    fn ranks_of_the_80_bit_format() {
        for (p, n, rank) in RANKS {
            assert_eq!(percentile_rank(p, n), rank, "{p} % of {n}");
        }
    }

    #[test]
    fn degenerate_percentiles() {
        assert_eq!(percentile_rank(0.0, 10), 0);
        assert_eq!(percentile_rank(f64::NAN, 10), 0);
        assert_eq!(percentile_rank(50.0, 0), 0);
        assert_eq!(percentile_rank(1e-300, 10), 1);
        assert_eq!(percentile_rank(f64::MIN_POSITIVE / 4.0, 10), 1);
        assert_eq!(percentile_rank(1e300, 10), u64::MAX);
    }

    const RANKS: [(f64, u64, u64); 31] = [
        (1.0, 1, 1),
        (10.0, 7, 1),
        (99.0, 25, 25),
        (29.0, 50, 15),
        (99.95, 99, 99),
        (28.0, 100, 28),
        (60.0, 100, 61),
        (28.0, 200, 56),
        (60.0, 200, 121),
        (14.0, 300, 42),
        (60.0, 300, 180),
        (14.0, 700, 98),
        (33.0, 700, 232),
        (95.0, 700, 665),
        (99.9, 1_024, 1_023),
        (0.1, 2_000, 3),
        (14.0, 10_000, 1_400),
        (58.0, 10_000, 5_800),
        (5.0, 20_000, 1_000),
        (28.0, 20_000, 5_600),
        (0.1, 20_000, 21),
        (28.0, 100_000, 28_000),
        (60.0, 100_000, 60_001),
        (0.1, 100_000, 101),
        (99.95, 1_000_000, 999_501),
        (14.0, 3_000_000, 420_000),
        (33.0, 3_000_000, 990_001),
        (99.95, 3_000_000, 2_998_501),
        (14.0, 10_000_000_000, 1_400_000_000),
        (99.95, 10_000_000_000, 9_995_000_001),
        (57.0, 1_234_567_890_123, 703_703_697_371),
    ];
}
