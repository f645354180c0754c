// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a job runs at a steady rate, judged over a window of measurements.
//!
//! Behaviour of fio 3.33 (steadystate.c) and its output. Two differences: where
//! a slope needs two measurements and there is one, fio prints `-nan` and this
//! counts it as 0; of a mean of 0 no percentage is taken, where fio divides by it.

use std::collections::VecDeque;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteadyRate {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
}

/// When a rate counts as steady.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyCriterion {
    /// What is measured.
    pub rate: SteadyRate,
    /// The slope of a straight line through the window is judged instead of the
    /// largest deviation from its mean.
    pub is_slope: bool,
    /// What it must fall below: in percent of the mean, or 1/s, B/s, and for a
    /// slope these per measurement.
    pub limit: f64,
    /// Whether the limit is in percent.
    pub is_percent: bool,
    /// Measurements in the window, at least 1.
    pub window: usize,
}

impl SteadyCriterion {
    /// As written in a job file.
    pub(crate) fn name(&self) -> &'static str {
        match (self.rate, self.is_slope) {
            (SteadyRate::Iops, false) => "iops",
            (SteadyRate::Iops, true) => "iops_slope",
            (SteadyRate::Bandwidth, false) => "bw",
            (SteadyRate::Bandwidth, true) => "bw_slope",
        }
    }

    /// What follows limit and value.
    pub(crate) fn sign(&self) -> &'static str {
        if self.is_percent { "%" } else { "" }
    }
}

/// One measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SteadySample {
    /// I/Os per second.
    pub iops: u64,
    /// Bytes per second.
    pub bw: u64,
}

/// Judges a job, or all jobs of a group together.
///
/// ```
/// use blklab_fiostat::{SteadyCriterion, SteadyRate, SteadySample, SteadyState};
///
/// let mut state = SteadyState::new(SteadyCriterion {
///     rate: SteadyRate::Iops, is_slope: false, limit: 2.0, is_percent: true, window: 2,
/// });
/// let ended = [50, 100, 101].map(|iops| state.add(SteadySample { iops, bw: iops * 4096 }));
/// assert_eq!(ended, [false, false, true]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SteadyState {
    criterion: SteadyCriterion,
    /// The last measurements, oldest first.
    samples: VecDeque<SteadySample>,
    value: f64,
    deviation: f64,
    slope: f64,
    attained: bool,
}

impl SteadyState {
    /// Nothing is measured yet.
    pub fn new(criterion: SteadyCriterion) -> SteadyState {
        SteadyState {
            criterion,
            samples: VecDeque::new(),
            value: 0.0,
            deviation: 0.0,
            slope: 0.0,
            attained: false,
        }
    }

    /// A judgement as it was printed, with its window; zeros at the end of that were not
    /// measured.
    pub(crate) fn printed(
        criterion: SteadyCriterion,
        mut samples: VecDeque<SteadySample>,
        value: f64,
        attained: bool,
    ) -> SteadyState {
        while samples.back() == Some(&SteadySample::default()) {
            samples.pop_back();
        }
        samples.truncate(criterion.window);
        let mut state = SteadyState {
            samples,
            value,
            attained,
            ..SteadyState::new(criterion)
        };
        // What the judgement was made of follows from the window.
        if state.samples.len() == criterion.window && criterion.window > 0 {
            state.judge();
        }
        state
    }

    /// Takes in the measurement of another second. Returns whether the rate is
    /// steady with it, which it can be once the window is full.
    pub fn add(&mut self, sample: SteadySample) -> bool {
        if self.samples.len() == self.criterion.window {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        if self.samples.len() < self.criterion.window {
            return false;
        }
        match self.judge() {
            Some(value) => {
                self.value = value;
                self.attained = value.abs() < self.criterion.limit;
            }
            None => self.attained = false,
        }
        self.attained
    }

    /// Another job's judgement ends this one's group.
    pub fn end(&mut self) {
        self.attained = true;
    }

    /// The slope or the deviation; none if it is a percentage of nothing.
    fn judge(&mut self) -> Option<f64> {
        let sum: u64 = self.rates().sum();
        let mean = sum as f64 / self.samples.len() as f64;
        let (value, of) = if self.criterion.is_slope {
            self.slope = slope(self.rates(), mean);
            // fio cuts the mean to an integer here.
            (self.slope, mean.trunc())
        } else {
            let off = self.rates().map(|rate| (rate as f64 - mean).abs());
            self.deviation = off.fold(0.0, f64::max);
            (self.deviation, mean)
        };
        if self.criterion.is_percent {
            (of > 0.0).then(|| 100.0 * value / of)
        } else {
            Some(value)
        }
    }

    fn rates(&self) -> impl Iterator<Item = u64> {
        let rate = self.criterion.rate;
        self.samples.iter().map(move |sample| match rate {
            SteadyRate::Iops => sample.iops,
            SteadyRate::Bandwidth => sample.bw,
        })
    }

    /// What is judged.
    pub fn criterion(&self) -> &SteadyCriterion {
        &self.criterion
    }

    /// Whether the rate was steady at last.
    pub fn attained(&self) -> bool {
        self.attained
    }

    /// The slope or the deviation, in percent if the limit is; 0 before the window is full.
    pub fn value(&self) -> f64 {
        self.value
    }

    /// Largest deviation from the mean; 0 if the slope is judged.
    pub fn deviation(&self) -> f64 {
        self.deviation
    }

    /// Slope; 0 if the deviation is judged.
    pub fn slope(&self) -> f64 {
        self.slope
    }

    /// The window, oldest first. What is not yet measured follows as zeros.
    pub fn window(&self) -> impl Iterator<Item = SteadySample> {
        let missing = self.criterion.window - self.samples.len();
        let zeros = std::iter::repeat_n(SteadySample::default(), missing);
        self.samples.iter().copied().chain(zeros)
    }

    /// Mean over the window, cut to integers; what is not yet measured counts as 0.
    pub fn mean(&self) -> SteadySample {
        let mean = |rate: fn(&SteadySample) -> u64| {
            self.samples.iter().map(rate).sum::<u64>() / self.criterion.window as u64
        };
        SteadySample {
            iops: mean(|sample| sample.iops),
            bw: mean(|sample| sample.bw),
        }
    }
}

/// Least squares through equally spaced measurements, per measurement; 0 of one.
fn slope(rates: impl Iterator<Item = u64>, mean: f64) -> f64 {
    let rates: Vec<f64> = rates.map(|rate| rate as f64 - mean).collect();
    let middle = (rates.len() as f64 - 1.0) / 2.0;
    let (mut products, mut squares) = (0.0, 0.0);
    for (at, rate) in rates.iter().enumerate() {
        let x = at as f64 - middle;
        products += x * rate;
        squares += x * x;
    }
    if squares == 0.0 {
        return 0.0;
    }
    products / squares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(rate: SteadyRate, is_slope: bool, limit: f64, is_percent: bool) -> SteadyState {
        SteadyState::new(SteadyCriterion {
            rate,
            is_slope,
            limit,
            is_percent,
            window: 4,
        })
    }

    fn add(state: &mut SteadyState, iops: &[u64]) -> Vec<bool> {
        let sample = |&iops: &u64| SteadySample {
            iops,
            bw: iops * 4096,
        };
        iops.iter().map(|iops| state.add(sample(iops))).collect()
    }

    /// Values that fio 3.33 printed for these measurements.
    #[test]
    fn deviations_from_the_mean() {
        let mut percent = state(SteadyRate::Iops, false, 5.0, true);
        let ended = add(&mut percent, &[2002, 1996, 2004, 2003]);
        assert_eq!(ended, [false, false, false, true]);
        assert_eq!(percent.deviation(), 5.25);
        assert_eq!(format!("{:.6}", percent.value() as f32), "0.262336");
        assert_eq!(percent.mean().iops, 2001);
        assert_eq!(percent.slope(), 0.0);

        let mut bytes = state(SteadyRate::Bandwidth, false, 1.0, false);
        bytes.criterion.window = 3;
        for bw in [4_079_616, 4_128_768, 4_108_300] {
            assert!(!bytes.add(SteadySample { iops: 0, bw }));
        }
        assert_eq!(format!("{:.6}", bytes.deviation()), "25945.333333");
        assert_eq!(format!("{:.6}", bytes.value() as f32), "25945.333984");
    }

    #[test]
    fn slopes() {
        let mut percent = state(SteadyRate::Iops, true, 90.0, true);
        percent.criterion.window = 3;
        assert_eq!(add(&mut percent, &[998, 996, 992]), [false, false, true]);
        assert_eq!(percent.slope(), -3.0);
        assert_eq!(format!("{:.6}", percent.value()), "-0.301508");

        let mut rising = state(SteadyRate::Iops, true, 10.0, false);
        let ended = add(&mut rising, &[10, 20, 30, 40, 41, 42]);
        assert_eq!(ended, [false, false, false, false, true, true]);
        assert!((rising.slope() - 3.7).abs() < 1e-9, "{}", rising.slope());
    }

    /// Only the last measurements count, and a slope falls in both directions.
    #[test]
    fn the_window_moves_on() {
        let mut state = state(SteadyRate::Iops, false, 1.0, false);
        let ended = add(&mut state, &[0, 500, 90, 90, 90, 90]);
        assert_eq!(ended, [false, false, false, false, false, true]);
        assert_eq!(state.window().map(|s| s.iops).collect::<Vec<_>>(), [90; 4]);

        let mut falling = self::state(SteadyRate::Bandwidth, true, 5.0, true);
        assert!(!add(&mut falling, &[400, 300, 200, 100])[3]);
        assert_eq!(falling.value(), -40.0);
    }

    #[test]
    fn a_window_that_is_not_full_judges_nothing() {
        let mut state = state(SteadyRate::Iops, true, 100.0, true);
        assert_eq!(add(&mut state, &[10, 10]), [false, false]);
        assert_eq!((state.value(), state.mean().iops), (0.0, 5));
        let shown: Vec<u64> = state.window().map(|sample| sample.bw).collect();
        assert_eq!(shown, [40_960, 40_960, 0, 0]);
    }

    #[test]
    fn nothing_has_no_percentage() {
        for is_slope in [false, true] {
            let mut idle = state(SteadyRate::Iops, is_slope, 5.0, true);
            assert!(!add(&mut idle, &[0, 0, 0, 0])[3]);
            let mut absolute = state(SteadyRate::Iops, is_slope, 5.0, false);
            assert!(add(&mut absolute, &[0, 0, 0, 0])[3]);
        }
        let mut single = state(SteadyRate::Iops, true, 5.0, true);
        single.criterion.window = 1;
        assert_eq!(add(&mut single, &[7]), [true]);
        assert_eq!(single.slope(), 0.0);
    }
}
