// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bandwidth and IOPS samples at fixed intervals.
//!
//! fio's helper thread wakes up once per interval and divides what was done
//! since by the time that passed. Here the intervals are exact, and closed when
//! something happens after their end, which gives the same samples without a
//! timer. As in fio, an interval without progress in a direction gives no
//! sample, and an interval cut short by the end of the job gives none either.

use crate::thread_stat::per_second;

/// Progress per second, by direction.
pub(crate) type Rates = [Option<u64>; 3];

/// Cuts running totals into samples.
#[derive(Clone, Debug)]
pub(crate) struct RateSampler {
    interval_ms: u64,
    /// End of the current interval; `u64::MAX` if there are none.
    end_ns: u64,
    totals: [u64; 3],
}

const NS_PER_MS: u64 = 1_000_000;

impl RateSampler {
    /// Samples every `interval_ms` from `start_ns`; never if that is 0.
    pub(crate) fn new(interval_ms: u64, start_ns: u64) -> RateSampler {
        let mut sampler = RateSampler {
            interval_ms,
            end_ns: u64::MAX,
            totals: [0; 3],
        };
        sampler.restart(start_ns);
        sampler
    }

    /// Whether `now_ns` has left the current interval behind.
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.end_ns
    }

    /// Ends the intervals that `now_ns` has left behind. All progress in
    /// `totals` was made in the first of them; the others are empty.
    ///
    /// Returns the end of that interval and the progress per second of each
    /// direction that made some.
    pub(crate) fn close(&mut self, now_ns: u64, totals: [u64; 3]) -> Option<(u64, Rates)> {
        if !self.is_due(now_ns) {
            return None;
        }
        let end_ns = self.end_ns;
        let interval_ns = self.interval_ms.saturating_mul(NS_PER_MS);
        let empty_intervals = (now_ns - end_ns).checked_div(interval_ns)?;
        let rates = std::array::from_fn(|dir| {
            let progress = totals[dir].saturating_sub(self.totals[dir]);
            (progress > 0).then(|| per_second(progress, self.interval_ms))
        });
        self.end_ns = end_ns.saturating_add((empty_intervals + 1).saturating_mul(interval_ns));
        self.totals = totals;
        Some((end_ns, rates))
    }

    /// Begins the first interval anew.
    pub(crate) fn restart(&mut self, now_ns: u64) {
        self.end_ns = match self.interval_ms.saturating_mul(NS_PER_MS) {
            0 => u64::MAX,
            interval_ns => now_ns.saturating_add(interval_ns),
        };
        self.totals = [0; 3];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn one_sample_per_interval() {
        let mut sampler = RateSampler::new(500, 0);
        assert_eq!(sampler.close(499 * MS, [10, 0, 0]), None);
        assert_eq!(
            sampler.close(500 * MS, [10, 0, 3]),
            Some((500 * MS, [Some(20), None, Some(6)]))
        );
        assert_eq!(sampler.close(501 * MS, [11, 0, 3]), None);
        assert_eq!(
            sampler.close(1000 * MS, [12, 0, 3]),
            Some((1000 * MS, [Some(4), None, None]))
        );
    }

    #[test]
    fn idle_intervals_are_skipped() {
        let mut sampler = RateSampler::new(500, 7 * MS);
        let first = sampler.close(5_300 * MS, [100, 0, 0]);
        assert_eq!(first, Some((507 * MS, [Some(200), None, None])));
        assert_eq!(sampler.close(5_506 * MS, [200, 0, 0]), None);
        assert_eq!(
            sampler.close(5_507 * MS, [200, 0, 0]),
            Some((5_507 * MS, [Some(200), None, None]))
        );
    }

    #[test]
    fn slow_progress_is_a_sample_of_zero() {
        let mut sampler = RateSampler::new(5000, 0);
        let sample = sampler.close(5_000 * MS, [0, 4, 0]);
        assert_eq!(sample, Some((5_000 * MS, [None, Some(0), None])));
    }

    #[test]
    fn interval_zero_never_samples() {
        assert_eq!(RateSampler::new(0, 0).close(u64::MAX, [1, 1, 1]), None);
    }
}
