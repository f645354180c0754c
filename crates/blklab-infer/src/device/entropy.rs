// SPDX-License-Identifier: MIT OR Apache-2.0
//! How surprising numbers are.

/// The entropy of the distribution that `values` are drawn from, in nats for each of them, by
/// the distances between sorted values (O. Vasicek, "A test for normality based on sample
/// entropy", J. R. Stat. Soc. B 38, 1976). Differences below `resolution` do not count. Sorts
/// the values.
pub(super) fn of_values(values: &mut [f64], resolution: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len();
    // Of few values the distances say little; their range counts.
    let m = ((n as f64).sqrt() / 2.0).ceil() as usize;
    let logs = (0..n).map(|i| {
        let (low, high) = (i.saturating_sub(m), (i + m).min(n - 1));
        let distance = values[high] - values[low] + resolution;
        (n as f64 * distance / (high - low).max(1) as f64).ln()
    });
    logs.sum::<f64>() / n.max(1) as f64
}

/// Nats for each of many choices of which this share was the unexpected one.
pub(super) fn of_choice(share: f64) -> f64 {
    let term = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
    term(share) + term(1.0 - share)
}
