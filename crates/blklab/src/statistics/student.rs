// SPDX-License-Identifier: MIT OR Apache-2.0
//! Student's distribution: tests of a difference, and what it says about few runs.

use statrs::distribution::{ContinuousCDF as _, Normal, StudentsT};

fn student(freedom: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, freedom).expect("one or more degrees of freedom")
}

/// Mean and variance of some values, two or more.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
    (mean, squares / (n - 1.0))
}

/// Half the width of the interval of a mean, in terms of the mean: 0 of values that are all
/// the same; none of fewer than two values, or of a mean of 0.
pub fn half_width(values: &[f64], confidence: f64) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    if values.iter().all(|v| *v == values[0]) {
        return Some(0.0);
    }
    let (mean, variance) = moments(values);
    let n = values.len() as f64;
    let t = student(n - 1.0).inverse_cdf(1.0 - (1.0 - confidence) / 2.0);
    (mean != 0.0).then(|| t * (variance / n).sqrt() / mean.abs())
}

/// The share of draws of a bootstrap of so many runs that lies beyond each end of its
/// interval.
pub(crate) fn tail_of_percentiles(runs: usize, confidence: f64) -> f64 {
    let n = runs as f64;
    let t = student(n - 1.0).inverse_cdf((1.0 - confidence) / 2.0);
    Normal::standard().cdf(t * (n / (n - 1.0)).sqrt())
}

/// The probability that sides which do not differ are as far apart as these, by the
/// t-test of pairs or by Welch's (Biometrika 34, 1947). None of fewer than two values.
pub(crate) fn probability(before: &[f64], after: &[f64], is_paired: bool) -> Option<f64> {
    if before.len().min(after.len()) < 2 {
        return None;
    }
    let (difference, variance, freedom) = if is_paired {
        let pairs = before.iter().zip(after);
        let differences: Vec<f64> = pairs.map(|(b, a)| a - b).collect();
        let (mean, variance) = moments(&differences);
        let n = differences.len() as f64;
        (mean, variance / n, n - 1.0)
    } else {
        let (mean_b, var_b) = moments(before);
        let (mean_a, var_a) = moments(after);
        let (n_b, n_a) = (before.len() as f64, after.len() as f64);
        let (b, a) = (var_b / n_b, var_a / n_a);
        let parts = b * b / (n_b - 1.0) + a * a / (n_a - 1.0);
        // Sides that do not vary have no say in it.
        let freedom = if parts > 0.0 {
            (b + a).powi(2) / parts
        } else {
            1.0
        };
        (mean_a - mean_b, b + a, freedom)
    };
    if difference == 0.0 {
        return Some(1.0);
    }
    if variance <= 0.0 {
        return Some(0.0);
    }
    let t = difference.abs() / variance.sqrt();
    Some(2.0 * student(freedom).cdf(-t))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against SciPy 1.17: `ttest_ind(equal_var=False)`, `ttest_rel`.
    #[test]
    fn probabilities_are_those_of_scipy() {
        let a = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9];
        let b = [27.1, 22.0, 20.8, 23.4, 23.4, 23.5];
        let welch = probability(&a, &b, false).expect("six values");
        assert!((welch - 0.234_861_75).abs() < 1e-7, "{welch}");
        let paired = probability(&a, &b, true).expect("six pairs");
        assert!((paired - 0.105_479_45).abs() < 1e-7, "{paired}");
        assert_eq!(probability(&a, &a, true), Some(1.0));
        assert_eq!(probability(&[1.0, 1.0], &[2.0, 2.0], false), Some(0.0));
        assert_eq!(probability(&[1.0], &b, false), None);
    }

    #[test]
    fn few_runs_have_wide_intervals() {
        // t of 4 degrees of freedom is 2.776.
        let width = half_width(&[8.0, 9.0, 10.0, 11.0, 12.0], 0.95).expect("five");
        let expected = 2.776 * (2.5_f64 / 5.0).sqrt() / 10.0;
        assert!((width - expected).abs() < 1e-4, "{width}");
        assert_eq!(half_width(&[1.0], 0.95), None);
        assert_eq!(half_width(&[0.0, 0.0], 0.95), Some(0.0));
        assert!(tail_of_percentiles(5, 0.95) < 0.002);
        assert!((tail_of_percentiles(1000, 0.95) - 0.025).abs() < 1e-3);
    }
}
