// SPDX-License-Identifier: MIT OR Apache-2.0
//! Count, extremes, mean and deviation of a series, in one pass.
//!
//! Welford's update, in the order of operations of fio's `stat.c`, so that the
//! last digits agree too. Units are those of the samples.

/// Running summary of a series of unsigned samples (fio's `struct io_stat`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IoStat {
    /// How many samples.
    pub samples: u64,
    /// Smallest sample; `u64::MAX` while there is none.
    pub min: u64,
    /// Largest sample.
    pub max: u64,
    /// Mean of the samples.
    pub mean: f64,
    /// Sum of squared differences from the mean.
    pub s: f64,
}

impl Default for IoStat {
    fn default() -> Self {
        IoStat {
            samples: 0,
            min: u64::MAX,
            max: 0,
            mean: 0.0,
            s: 0.0,
        }
    }
}

impl IoStat {
    /// Takes in one sample.
    pub fn add(&mut self, sample: u64) {
        self.max = self.max.max(sample);
        self.min = self.min.min(sample);
        let value = sample as f64;
        let delta = value - self.mean;
        if delta != 0.0 {
            self.mean += delta / (self.samples as f64 + 1.0);
            self.s += delta * (value - self.mean);
        }
        self.samples += 1;
    }

    /// Takes in another series, as if its samples had been added here.
    pub fn merge(&mut self, other: &IoStat) {
        if other.samples == 0 {
            return;
        }
        if self.samples == 0 {
            *self = *other;
            return;
        }
        let (n1, n2) = (self.samples as f64, other.samples as f64);
        let n = n1 + n2;
        let delta = other.mean - self.mean;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.mean = (other.mean * n2 + self.mean * n1) / n;
        self.s = other.s + self.s + delta.powi(2) * (n1 * n2) / n;
        self.samples = self.samples.saturating_add(other.samples);
    }

    /// Adds a rate that was sustained at the same time: extremes, means,
    /// deviations and counts are summed.
    pub fn merge_concurrent(&mut self, other: &IoStat) {
        if other.samples == 0 {
            return;
        }
        if self.samples == 0 {
            *self = *other;
            return;
        }
        self.min = self.min.saturating_add(other.min);
        self.max = self.max.saturating_add(other.max);
        self.mean += other.mean;
        self.s += other.s;
        self.samples = self.samples.saturating_add(other.samples);
    }

    /// Sample standard deviation; 0 for fewer than two samples.
    pub fn stddev(&self) -> f64 {
        if self.samples > 1 {
            (self.s / (self.samples as f64 - 1.0)).sqrt()
        } else {
            0.0
        }
    }

    /// Smallest sample, or 0 if there is none.
    pub fn min_or_zero(&self) -> u64 {
        if self.samples == 0 { 0 } else { self.min }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(samples: &[u64]) -> IoStat {
        let mut stat = IoStat::default();
        samples.iter().for_each(|&s| stat.add(s));
        stat
    }

    #[test]
    fn known_series() {
        let stat = stat(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!((stat.samples, stat.min, stat.max), (8, 2, 9));
        assert_eq!(stat.mean, 5.0);
        assert!((stat.stddev() - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn one_sample_has_no_deviation() {
        assert_eq!(stat(&[77]).stddev(), 0.0);
        assert_eq!(IoStat::default().min_or_zero(), 0);
    }

    #[test]
    fn merging_equals_adding() {
        let (a, b) = ([5, 9, 1000, 3], [70, 2, 2, 8, 5000]);
        let mut merged = stat(&a);
        merged.merge(&stat(&b));
        let whole = stat(&[&a[..], &b[..]].concat());
        assert_eq!(
            (merged.samples, merged.min, merged.max),
            (whole.samples, whole.min, whole.max)
        );
        assert!((merged.mean - whole.mean).abs() < 1e-9);
        assert!((merged.stddev() - whole.stddev()).abs() < 1e-9);
    }

    #[test]
    fn concurrent_rates_are_summed() {
        let mut sum = stat(&[100, 200]);
        sum.merge_concurrent(&stat(&[10, 30]));
        assert_eq!(
            (sum.samples, sum.min, sum.max, sum.mean),
            (4, 110, 230, 170.0)
        );
        assert_eq!(sum.s, 5000.0 + 200.0);
    }
}
