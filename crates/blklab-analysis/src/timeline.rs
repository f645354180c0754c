// SPDX-License-Identifier: MIT OR Apache-2.0
//! A number that changes in steps, over time: mean and maximum of equal
//! intervals. There are at most [`INTERVALS_MAX`] intervals; their length
//! doubles whenever the trace outgrows them, so memory does not grow with it.

use blklab_types::Time;
use serde::{Deserialize, Serialize};

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
    /// The latest time that was told.
    now: Time,
    /// Up to where the intervals are filled: since then the value is the same.
    filled: Time,
    /// Where the last interval ends.
    end: Time,
    value: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    /// Value times ns.
    area: u128,
    max: u32,
}

impl Interval {
    #[inline]
    fn add(&mut self, ns: u64, value: u32) {
        if ns > 0 {
            self.area += u128::from(ns) * u128::from(value);
            self.max = self.max.max(value);
        }
    }
}

/// What a [`Timeline`] recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
            filled: Time::ZERO,
            end: Time::ZERO,
            value: 0,
        }
    }
}

impl Timeline {
    /// The value changes at `time`; the first change begins the record. A time
    /// before the last one counts as that.
    #[inline]
    pub fn set(&mut self, time: Time, value: u32) {
        let is_later = time > self.now;
        if is_later {
            self.now = time;
        }
        if value != self.value || self.start.is_none() {
            self.fill();
            if !is_later {
                // It was told just now, too.
                self.touch();
            }
            self.value = value;
            self.touch();
        }
    }

    /// Time goes on to `time`, and the value stays.
    pub fn proceed(&mut self, time: Time) {
        self.set(time, self.value);
    }

    /// The last interval has the value, for however short a time.
    #[inline]
    fn touch(&mut self) {
        if let Some(interval) = self.intervals.last_mut() {
            interval.max = interval.max.max(self.value);
        }
    }

    /// Fills the intervals up to the present.
    #[inline]
    fn fill(&mut self) {
        if self.now < self.end
            && let Some(interval) = self.intervals.last_mut()
        {
            interval.add(self.now.since(self.filled).ns(), self.value);
            self.filled = self.now;
        } else {
            self.fill_several();
        }
    }

    /// The same, beyond the end of the last interval.
    #[cold]
    fn fill_several(&mut self) {
        if self.start.is_none() {
            (self.start, self.filled) = (Some(self.now), self.now);
        }
        let start = self.start.unwrap_or_default();
        let end_ns = self.now.since(start).ns();
        while end_ns / self.interval_ns >= INTERVALS_MAX as u64 {
            self.halve();
        }
        let mut at_ns = self.filled.since(start).ns();
        let last = (end_ns / self.interval_ns) as usize;
        let mut idx = (at_ns / self.interval_ns) as usize;
        while idx <= last {
            if idx >= self.intervals.len() {
                self.intervals.push(Interval::default());
            }
            let until_ns = end_ns.min((idx as u64 + 1).saturating_mul(self.interval_ns));
            self.intervals[idx].add(until_ns - at_ns, self.value);
            at_ns = until_ns;
            idx += 1;
        }
        self.filled = self.now;
        let length_ns = (last as u64 + 1).saturating_mul(self.interval_ns);
        self.end = Time(start.0.saturating_add(length_ns));
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
    pub fn profile(&mut self) -> Profile {
        let Some(start) = self.start else {
            return Profile::default();
        };
        self.fill();
        self.touch();
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

    /// A value that is told again changes nothing but how far the record goes;
    /// of several at the instant at which an interval begins all count.
    #[test]
    fn values_told_again() {
        let mut t = Timeline::default();
        for (time, value) in [(0, 3), (500, 3), (1024, 3), (1024, 1), (2048, 1)] {
            t.set(Time(time), value);
        }
        t.set(Time(2000), 5);
        t.set(Time(2049), 0);
        let p = t.profile();
        assert_eq!(p.maxima, [3, 3, 5]);
        assert_eq!(p.means, [3.0, 1.0, 5.0]);
        t.set(Time(3072), 0);
        assert_eq!(t.profile().maxima, [3, 3, 5, 0]);
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
