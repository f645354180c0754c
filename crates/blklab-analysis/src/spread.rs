// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one median, and what lies around it.

use serde::Serialize;

/// One number over repetitions, or over anything else that has many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Median; the mean of the two in the middle if their number is even.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

impl Spread {
    /// That of some values; zeros if there are none.
    pub fn new(mut values: Vec<f64>) -> Spread {
        values.sort_by(f64::total_cmp);
        let n = values.len();
        match n {
            0 => Spread::default(),
            _ => Spread {
                median: (values[(n - 1) / 2] + values[n / 2]) / 2.0,
                min: values[0],
                max: values[n - 1],
            },
        }
    }
}

/// The value that so many percent of all, 0 to 99, do not exceed: none is made up
/// between two. None of no values.
pub fn percentile<T: Copy + Ord>(percent: usize, mut values: Vec<T>) -> Option<T> {
    values.sort_unstable();
    values.get(values.len() * percent / 100).copied()
}

/// The same in the middle of numbers: the larger of two. None of no values.
pub fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_number_of_values_has_its_median_between_two() {
        let spread = Spread::new(vec![4.0, 1.0, 3.0, 10.0]);
        assert_eq!((spread.min, spread.median, spread.max), (1.0, 3.5, 10.0));
        assert_eq!(Spread::new(vec![7.0, 1.0, 2.0]).median, 2.0);
        assert_eq!(Spread::new(Vec::new()), Spread::default());
        assert_eq!(percentile(99, (0..200).collect()), Some(198));
        assert_eq!(middle(vec![4.0, 1.0, 3.0, 10.0]), Some(4.0));
        assert_eq!(middle(Vec::new()), None);
    }
}
