// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rank a percentile stands for, to the last value.
//!
//! fio asks whether a count has reached `p / 100 * n`. Debian's fio 3.33 on
//! x86-64 answers as exact arithmetic on the stored double does: 60 % of 50 is 30,
//! and 99.9 % of 1000 is 1000, because 99.9 is stored a little too large. Doubles
//! come to other ranks for both kinds of pairs, so this is done on integers.

/// The smallest count that reaches percentile `p` of `n` values.
///
/// 0 for a `p` that is not positive; `u64::MAX` for one far above 100.
pub(crate) fn percentile_rank(p: f64, n: u64) -> u64 {
    if p.is_nan() || p <= 0.0 || n == 0 {
        return 0;
    }
    let (mantissa, exponent) = parts(p);
    let product = u128::from(mantissa) * u128::from(n);
    match exponent {
        0.. => u64::MAX,
        // 100 * 2^120 still fits; beyond, the quotient is below 1.
        -120..=-1 => u64::try_from(product.div_ceil(100 << -exponent)).unwrap_or(u64::MAX),
        _ => 1,
    }
}

/// A positive number as `mantissa * 2^exponent`.
fn parts(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let (field, fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
    match field {
        0 => (fraction, -1074),
        _ => (fraction | 1 << 52, field - 1075),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks that fio 3.33 was seen to use, out of runs of `n` I/Os in which doubles
    /// or the 80-bit format would have given another percentile.
    #[test]
    fn ranks_fio_uses() {
        let observed = [
            (0.1, 1_000, 2),
            (0.1, 2_000, 3),
            (7.0, 100, 7),
            (7.0, 200, 14),
            (7.0, 300, 21),
            (7.0, 700, 49),
            (14.0, 100, 14),
            (14.0, 700, 98),
            (28.0, 50, 14),
            (28.0, 100, 28),
            (28.0, 700, 196),
            (60.0, 50, 30),
            (60.0, 700, 420),
            (99.9, 1_000, 1_000),
            (99.9, 2_000, 1_999),
            (99.9, 10_000, 9_991),
            (99.9, 20_000, 19_981),
            (99.95, 2_000, 2_000),
            (99.95, 10_000, 9_996),
            (99.95, 20_000, 19_991),
        ];
        for (p, n, rank) in observed {
            assert_eq!(percentile_rank(p, n), rank, "{p} % of {n}");
        }
    }

    #[test]
    fn degenerate_percentiles() {
        assert_eq!(percentile_rank(0.0, 10), 0);
        assert_eq!(percentile_rank(-1.0, 10), 0);
        assert_eq!(percentile_rank(f64::NAN, 10), 0);
        assert_eq!(percentile_rank(50.0, 0), 0);
        assert_eq!(percentile_rank(1e-300, u64::MAX), 1);
        assert_eq!(percentile_rank(f64::MIN_POSITIVE / 4.0, 10), 1);
        assert_eq!(percentile_rank(100.0, u64::MAX), u64::MAX);
        assert_eq!(percentile_rank(1e300, 10), u64::MAX);
        assert_eq!(percentile_rank(f64::INFINITY, 10), u64::MAX);
    }
}
