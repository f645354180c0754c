// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the dirty throttle of 3.2 and later knows of a device: how fast it
//! writes, and at which rate its writers may dirty pages.
//!
//! mm/page-writeback.c, 3.7 (`__bdi_update_bandwidth`,
//! `bdi_update_write_bandwidth`, `bdi_update_dirty_ratelimit`). Integers only,
//! truncating as the kernel's do; rates are pages per second, times ticks.

use crate::position::Position;
use blklab_types::{Hz, Jiffies};

/// Bandwidth that a device is taken to have before it is known: 100 MiB/s
/// (`INIT_BW`).
const INIT_PAGES_PER_S: u64 = 100 << (20 - 12);

/// Estimates of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bandwidth {
    /// Pages written per second, over about three seconds (`write_bandwidth`).
    pub(crate) write: u64,
    /// The same, smoothed (`avg_write_bandwidth`).
    pub(crate) avg_write: u64,
    /// Pages per second that each writer may dirty, before its position is
    /// looked at.
    pub(crate) dirty_ratelimit: u64,
    /// The rate at which writing and dirtying would have been even
    /// (`balanced_dirty_ratelimit`).
    pub(crate) balanced_ratelimit: u64,
    dirtied_stamp: u64,
    written_stamp: u64,
    /// `bw_time_stamp`.
    stamp: Jiffies,
}

/// Counters of a device, and the present.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    /// Clean pages that ever became dirty.
    pub(crate) dirtied: u64,
    /// Pages whose writes ever ended.
    pub(crate) written: u64,
    pub(crate) now: Jiffies,
    pub(crate) hz: Hz,
}

impl Bandwidth {
    /// Estimates of a device that has done nothing yet.
    pub(crate) fn new() -> Bandwidth {
        Bandwidth {
            write: INIT_PAGES_PER_S,
            avg_write: INIT_PAGES_PER_S,
            dirty_ratelimit: INIT_PAGES_PER_S,
            balanced_ratelimit: INIT_PAGES_PER_S,
            dirtied_stamp: 0,
            written_stamp: 0,
            stamp: Jiffies(0),
        }
    }

    /// Updates the estimates if 200 ms have passed (`__bdi_update_bandwidth`, later
    /// `__wb_update_bandwidth`). `started`: when the caller's check or round began;
    /// after a quiet second that began later only the stamps move. `position`: of a
    /// throttled writer; the flusher gives none and updates the bandwidth alone.
    /// Returns whether the time had come and it was not quiet.
    pub(crate) fn update(
        &mut self,
        counts: Counts,
        started: Jiffies,
        position: Option<&Position>,
    ) -> bool {
        let hz = u64::from(counts.hz.0);
        let elapsed = counts.now.0 - self.stamp.0;
        if elapsed < (hz / 5).max(1) {
            return false;
        }
        let quiet = elapsed > hz && self.stamp < started;
        if !quiet {
            if let Some(position) = position {
                let dirtied = counts.dirtied - self.dirtied_stamp;
                self.update_ratelimit(position, dirtied * hz / elapsed);
            }
            self.update_write(counts.written - self.written_stamp, elapsed, hz);
        }
        self.dirtied_stamp = counts.dirtied;
        self.written_stamp = counts.written;
        self.stamp = counts.now;
        !quiet
    }

    /// `bdi_update_write_bandwidth`, later `wb_update_write_bandwidth`.
    fn update_write(&mut self, written: u64, elapsed: u64, hz: u64) {
        let period = (3 * hz).next_power_of_two();
        if elapsed > period {
            self.write = written * hz / elapsed;
            self.avg_write = self.write;
            return;
        }
        let old = self.write;
        let new = (written * hz + old * (period - elapsed)) / period;
        if self.avg_write > old && old >= new {
            self.avg_write -= (self.avg_write - old) / 8;
        }
        if self.avg_write < old && old <= new {
            self.avg_write += (old - self.avg_write) / 8;
        }
        self.write = new;
    }

    /// Moves the rate a step towards the one at which writing and dirtying, here
    /// `dirty_rate` pages per second, would be even (`bdi_update_dirty_ratelimit`,
    /// later `wb_update_dirty_ratelimit`).
    fn update_ratelimit(&mut self, position: &Position, dirty_rate: u64) {
        let rate = self.dirty_ratelimit;
        let task_rate = task_ratelimit(rate, position.ratio(self.avg_write)) + 1;
        let even = u128::from(task_rate) * u128::from(self.avg_write) / u128::from(dirty_rate | 1);
        let even = u64::try_from(even).unwrap_or(u64::MAX).min(self.avg_write);
        let step = if position.pages < position.setpoint() {
            let target = self.balanced_ratelimit.min(even).min(task_rate);
            target.saturating_sub(rate)
        } else {
            let target = self.balanced_ratelimit.max(even).max(task_rate);
            rate.saturating_sub(target)
        };
        // The farther away, the larger the part of the way; at most an eighth.
        let shift = rate / step.saturating_mul(2).saturating_add(1);
        let step = if shift < 64 { step >> shift } else { 0 }.div_ceil(8);
        self.dirty_ratelimit = if rate < even {
            rate + step
        } else {
            rate.saturating_sub(step)
        }
        .max(1);
        self.balanced_ratelimit = even;
    }
}

/// The rate of a writer: the device's, corrected by a position ratio.
pub(crate) fn task_ratelimit(dirty_ratelimit: u64, ratio: u64) -> u64 {
    let rate = (u128::from(dirty_ratelimit) * u128::from(ratio)) >> crate::position::RATIO_BITS;
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::tests::at as position;

    fn counts(dirtied: u64, written: u64, now: u64) -> Counts {
        Counts {
            dirtied,
            written,
            now: Jiffies(now),
            hz: Hz(250),
        }
    }

    #[test]
    fn the_bandwidth_follows_over_three_seconds_and_the_average_later() {
        let mut b = Bandwidth::new();
        assert!(!b.update(counts(0, 0, 49), Jiffies(0), None));
        // 50 ticks, 4000 pages; the period is 1024 ticks.
        assert!(b.update(counts(0, 4000, 50), Jiffies(0), None));
        assert_eq!(b.write, (4000 * 250 + 25600 * 974) / 1024);
        assert_eq!(b.avg_write, 25_600, "the value before was not above it");
        let first = b.write;
        assert!(b.update(counts(0, 8000, 100), Jiffies(0), None));
        assert_eq!(b.avg_write, 25_600 - (25_600 - first) / 8);
        // More than the period without a second of quiet before a new round.
        assert!(b.update(counts(0, 48_000, 2_100), Jiffies(0), None));
        assert_eq!((b.write, b.avg_write), (40_000 * 250 / 2000, 5000));
    }

    #[test]
    fn a_quiet_second_teaches_nothing() {
        let mut b = Bandwidth::new();
        assert!(!b.update(counts(10, 10, 300), Jiffies(299), None));
        assert_eq!((b.write, b.dirty_ratelimit), (25_600, 25_600));
        assert!(b.update(counts(10, 10, 350), Jiffies(299), None));
        assert_eq!(b.write, 25_600 * 974 / 1024);
    }

    #[test]
    fn the_rate_moves_towards_the_even_one_in_small_steps() {
        // At the setpoint, dirtied twice as fast as written.
        let mut b = Bandwidth {
            avg_write: 10_000,
            balanced_ratelimit: 10_000,
            dirty_ratelimit: 20_000,
            ..Bandwidth::new()
        };
        let p = position(35_000);
        let ratio = p.ratio(10_000);
        let task = task_ratelimit(20_000, ratio) + 1;
        let even = (task * 10_000 / 20_001).min(10_000);
        let target = 10_000.max(even).max(task);
        let step: u64 = 20_000_u64.saturating_sub(target);
        let step = step
            .checked_shr((20_000 / (2 * step + 1)) as u32)
            .unwrap_or(0);
        b.update_ratelimit(&p, 20_000);
        assert_eq!(b.dirty_ratelimit, 20_000 - step.div_ceil(8));
        assert_eq!(b.balanced_ratelimit, even);

        // Far above its limit, with a ratio of 0: task rate 1, even rate 0.
        let mut b = Bandwidth {
            balanced_ratelimit: 100,
            ..Bandwidth::new()
        };
        b.update_ratelimit(&position(40_000), 25_600);
        // step 25500, shifted by 25600 / 51001 = 0, an eighth of it.
        assert_eq!(b.dirty_ratelimit, 25_600 - 3_188);
        assert_eq!(b.balanced_ratelimit, 25_600 / 25_601);
    }

    #[test]
    fn the_rate_never_leaves_one_and_the_bandwidth() {
        let mut b = Bandwidth::new();
        let mut seed = 7_u64;
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let p = position((seed >> 33) % 50_000);
            b.avg_write = (seed >> 20) % 100_000 + 1;
            b.update_ratelimit(&p, (seed >> 40) % 200_000);
            assert!(b.dirty_ratelimit >= 1 && b.balanced_ratelimit <= b.avg_write);
            assert!(b.dirty_ratelimit <= 100_000, "{b:?}");
        }
    }
}
