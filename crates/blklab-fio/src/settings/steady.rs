// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options that end a job at a steady state.

/// What is measured once a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteadyMeasure {
    /// I/Os completed per second.
    Iops,
    /// Bytes completed per second.
    Bandwidth,
}

/// When a job counts as steady (`steadystate` and its companions, fio 3.33).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyOptions {
    /// What is measured.
    pub measure: SteadyMeasure,
    /// The slope is judged instead of the largest deviation from the mean.
    pub is_slope: bool,
    /// What the criterion must fall below: in percent of the mean, or in I/Os
    /// or bytes per second (a slope: per second and second).
    pub limit: f64,
    /// Whether the limit is in percent of the mean.
    pub is_percent: bool,
    /// Time over which it is judged (`steadystate_duration`).
    pub duration_us: u64,
    /// Time before the first measurement (`steadystate_ramp_time`).
    pub ramp_us: u64,
}

impl SteadyOptions {
    /// Number of measurements that are judged together, one a second; 0 if the
    /// job does not look for a steady state.
    pub fn window(&self) -> u64 {
        self.duration_us / 1_000_000
    }
}

impl Default for SteadyOptions {
    fn default() -> Self {
        SteadyOptions {
            measure: SteadyMeasure::Iops,
            is_slope: true,
            limit: 0.01,
            is_percent: true,
            duration_us: 0,
            ramp_us: 0,
        }
    }
}
