// SPDX-License-Identifier: MIT OR Apache-2.0
//! A number that changes in steps, over time: mean and maximum of equal
//! intervals. There are at most [`INTERVALS_MAX`] intervals; their length
//! doubles whenever the trace outgrows them, so memory does not grow with it.

use blklab_types::Time;
use serde::Serialize;

/// Most intervals kept.
pub const INTERVALS_MAX: usize = 256;
/// Length of an interval at first.
const FIRST_INTERVAL_NS: u64 = 1024;

/// A step function of time, being recorded.
#[derive(Clone, Debug)]
pub struct Timeline {
    interval_ns: u64,
    intervals: Vec<Interval>,
    start: Option<Time>,
    now: Time,
    value: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    /// Value times ns.
    area: u128,
    max: u32,
}

/// What a [`Timeline`] recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Profile {
    /// Length of an interval.
    pub interval_ns: u64,
    /// Mean over time of each interval; the last one may be shorter.
    pub means: Vec<f64>,
    /// Highest value in each interval.
    pub maxima: Vec<u32>,
    /// Mean over time of all.
    pub mean: f64,
    /// Highest value of all.
    pub max: u32,
}

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline {
            interval_ns: FIRST_INTERVAL_NS,
            intervals: Vec::new(),
            start: None,
            now: Time::ZERO,
            value: 0,
        }
    }
}

impl Timeline {
    /// The value changes at `time`; the first change begins the record. A time
    /// before the last change counts as that.
    pub fn set(&mut self, time: Time, value: u32) {
        self.go_to(time);
        self.value = value;
        if let Some(interval) = self.intervals.last_mut() {
            interval.max = interval.max.max(value);
        }
    }

    /// Extends the record to `time`.
    fn go_to(&mut self, time: Time) {
        let start = *self.start.get_or_insert(time);
        self.now = self.now.max(start);
        let end_ns = time.max(self.now).since(start).ns();
        while end_ns / self.interval_ns >= INTERVALS_MAX as u64 {
            self.halve();
        }
        let mut at_ns = self.now.since(start).ns();
        let last = (end_ns / self.interval_ns) as usize;
        let mut idx = (at_ns / self.interval_ns) as usize;
        while idx <= last {
            if idx >= self.intervals.len() {
                self.intervals.push(Interval::default());
            }
            let until_ns = end_ns.min((idx as u64 + 1).saturating_mul(self.interval_ns));
            let interval = &mut self.intervals[idx];
            if until_ns > at_ns {
                interval.area += u128::from(until_ns - at_ns) * u128::from(self.value);
                interval.max = interval.max.max(self.value);
            }
            at_ns = until_ns;
            idx += 1;
        }
        self.now = time.max(self.now);
    }

    /// Makes one interval of two.
    fn halve(&mut self) {
        let joined = self.intervals.chunks(2).map(|pair| Interval {
            area: pair.iter().map(|i| i.area).sum(),
            max: pair.iter().map(|i| i.max).max().unwrap_or(0),
        });
        self.intervals = joined.collect();
        self.interval_ns = self.interval_ns.saturating_mul(2);
    }

    /// What was recorded so far.
    pub fn profile(&self) -> Profile {
        let Some(start) = self.start else {
            return Profile::default();
        };
        let length_ns = self.now.since(start).ns();
        let mean = |area: u128, ns: u64| {
            if ns == 0 {
                0.0
            } else {
                area as f64 / ns as f64
            }
        };
        let means = self.intervals.iter().enumerate().map(|(idx, interval)| {
            let from_ns = idx as u64 * self.interval_ns;
            mean(interval.area, (length_ns - from_ns).min(self.interval_ns))
        });
        Profile {
            interval_ns: self.interval_ns,
            means: means.collect(),
            maxima: self.intervals.iter().map(|i| i.max).collect(),
            mean: mean(self.intervals.iter().map(|i| i.area).sum(), length_ns),
            max: self.intervals.iter().map(|i| i.max).max().unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_maxima() {
        let mut t = Timeline::default();
        t.set(Time(5000), 2);
        t.set(Time(5512), 4);
        t.set(Time(6024), 0);
        t.set(Time(7048), 1);
        let p = t.profile();
        assert_eq!((p.interval_ns, &p.means[..2]), (1024, &[3.0, 0.0][..]));
        assert_eq!(p.maxima, [4, 0, 1]);
        assert_eq!((p.mean, p.max), (1.5, 4));
    }

    #[test]
    fn memory_is_bounded_and_nothing_is_lost() {
        let mut t = Timeline::default();
        for k in 0..10_000_u64 {
            t.set(Time(k * 1_000_003), (k % 3) as u32);
        }
        let p = t.profile();
        assert!(p.means.len() <= INTERVALS_MAX && p.means.len() > INTERVALS_MAX / 4);
        assert!((p.mean - 1.0).abs() < 1e-3, "{}", p.mean);
        assert_eq!(p.max, 2);
        t.set(Time(u64::MAX), 7);
        t.set(Time(0), 9);
        assert!(t.profile().means.len() <= INTERVALS_MAX);
        assert_eq!(t.profile().max, 9);
    }
}
