// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much faster or slower than the device's rate writers may go, by how
//! many pages are dirty, and for how long they pause (3.2 and later).
//!
//! mm/page-writeback.c, 3.7 (`bdi_position_ratio`, `bdi_max_pause`,
//! `bdi_min_pause`, `dirty_poll_interval`). Pure integer arithmetic in pages,
//! ticks and ratios of 1024; divisions truncate, shifts round downwards.
//! Left out: the estimated errors of per-CPU counters, which are exact here.

use blklab_types::Hz;

/// Fraction bits of a ratio.
pub(crate) const RATIO_BITS: u32 = 10;

/// Pages that are worth a pause (`DIRTY_POLL_THRESH`, 128 KiB).
pub(crate) const POLL_PAGES: u64 = 32;

/// Where the dirty pages stand between their limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// Background limit.
    pub(crate) background: u64,
    /// Dirty limit.
    pub dirty: u64,
    /// The larger one of the dirty limit and its slow follower.
    pub(crate) limit: u64,
    /// Pages dirty or under write-back on all devices.
    pub pages: u64,
    /// The device's share of the dirty limit (`bdi_thresh`, later `wb_thresh`).
    pub(crate) device_limit: u64,
    /// Pages dirty or under write-back on the device.
    pub(crate) device_pages: u64,
}

impl Position {
    /// Below it nobody is held back (`dirty_freerun_ceiling`).
    pub(crate) fn freerun(&self) -> u64 {
        (self.background + self.dirty) / 2
    }

    /// Where the number of pages is meant to be.
    pub(crate) fn setpoint(&self) -> u64 {
        (self.freerun() + self.limit) / 2
    }

    /// Whether both the device and the machine are over their limits.
    pub(crate) fn exceeded(&self) -> bool {
        self.device_pages > self.device_limit && self.pages > self.dirty
    }

    /// The position ratio for a device of that bandwidth (`bdi_position_ratio`,
    /// later `wb_position_ratio`): 1024 at the setpoints, about 2048 at the
    /// free-run limit, 0 at the hard limit.
    pub(crate) fn ratio(&self, avg_write: u64) -> u64 {
        if self.pages >= self.limit {
            return 0;
        }
        let ratio = self.global_ratio();
        let (setpoint, span, device_limit) = self.device_line(avg_write);
        let intercept = setpoint + span;
        let pages = u128::from(self.device_pages);
        let ratio = if pages < intercept - span / 4 {
            ratio * (intercept - pages) / (intercept - setpoint + 1)
        } else {
            ratio / 4
        };
        let ratio = refill(ratio, pages, device_limit / 2);
        u64::try_from(ratio).unwrap_or(u64::MAX)
    }

    /// The cubic curve through the free-run limit, the setpoint and the limit
    /// (later `pos_ratio_polynom`).
    fn global_ratio(&self) -> u128 {
        let (setpoint, limit) = (i128::from(self.setpoint()), i128::from(self.limit));
        let x = ((setpoint - i128::from(self.pages)) << RATIO_BITS) / (limit - setpoint + 1);
        let cube = ((x * x) >> RATIO_BITS) * x;
        let ratio = (cube >> RATIO_BITS) + (1 << RATIO_BITS);
        u128::try_from(ratio).unwrap_or(0)
    }

    /// Setpoint and span of the device's line, and the limit behind them.
    fn device_line(&self, avg_write: u64) -> (u128, u128, u128) {
        let device_limit = self
            .device_limit
            .min(self.dirty)
            .max((self.limit - self.pages) / 8);
        let device_limit = u128::from(device_limit);
        let dirty = u128::from(self.dirty);
        let part = (device_limit << 16) / (dirty + 1);
        let setpoint = (u128::from(self.setpoint()) * part) >> 16;
        let wide = dirty.saturating_sub(device_limit) + 8 * u128::from(avg_write);
        let span = (wide * part) >> 16;
        (setpoint, span, device_limit)
    }
}

/// A device with few dirty pages gets more, so that it does not run idle.
fn refill(ratio: u128, pages: u128, reserve: u128) -> u128 {
    if pages >= reserve {
        ratio
    } else if pages > reserve / 8 {
        ratio * reserve / pages
    } else {
        ratio * 8
    }
}

/// Pages that a task may dirty before it looks again, while there is room: about
/// the square root of what is free (`dirty_poll_interval`).
pub(crate) fn poll_interval(pages: u64, dirty: u64) -> u64 {
    match dirty.saturating_sub(pages) {
        0 => 1,
        free => 1 << (free.ilog2() / 2),
    }
}

/// The longest pause of a writer, in ticks (`bdi_max_pause`, later `wb_max_pause`):
/// about an eighth of the time in which the device writes what it has, at most 200
/// ms.
pub(crate) fn max_pause(device_pages: u64, avg_write: u64, hz: Hz) -> u64 {
    let hz = u64::from(hz.0);
    let per_eighth = avg_write / (1 + hz / 8).next_power_of_two();
    (device_pages / (1 + per_eighth) + 1).min((hz / 5).max(1))
}

/// The pause to aim at, in ticks, and the pages to dirty between pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// A shorter pause is saved up.
    pub(crate) min_pause: u64,
    /// Pages until the next check.
    pub pages: u64,
}

/// How long and how often a writer of that rate is to pause (`bdi_min_pause`, later
/// `wb_min_pause`).
pub(crate) fn target_pause(
    max_pause: u64,
    task_rate: u64,
    dirty_ratelimit: u64,
    avg_write: u64,
    hz: Hz,
) -> Target {
    let hz = u64::from(hz.0);
    let per_tick = |rate: u64, ticks: u64| rate * ticks / hz.next_power_of_two();
    let mut ticks = (hz / 100).max(1);
    let (device, task) = (avg_write.max(1).ilog2(), dirty_ratelimit.max(1).ilog2());
    if device > task {
        // There are 2 to that power writers: longer pauses for each.
        ticks += u64::from(device - task) * (10 * hz) / 1024;
    }
    ticks = ticks.min(1 + max_pause / 2);
    let mut pages = per_tick(dirty_ratelimit, ticks);
    if pages < POLL_PAGES {
        ticks = max_pause;
        pages = per_tick(dirty_ratelimit, ticks);
        if pages > POLL_PAGES {
            pages = POLL_PAGES;
            ticks = hz * POLL_PAGES / dirty_ratelimit.max(1);
        }
    }
    if hz * pages / (task_rate + 1) > max_pause {
        ticks = max_pause;
        pages = per_tick(task_rate, ticks);
    }
    Target {
        min_pause: if pages >= POLL_PAGES {
            1 + ticks / 2
        } else {
            ticks
        },
        pages,
    }
}

/// The slow follower of the dirty limit (`update_dirty_limit`): up at once, down by
/// a 32nd of the distance, and not below what is dirty.
pub(crate) fn follow_limit(limit: u64, dirty: u64, pages: u64) -> u64 {
    if limit < dirty {
        return dirty;
    }
    limit - limit.saturating_sub(dirty.max(pages)) / 32
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A device that has all dirty pages, below a limit of 40,000.
    pub(crate) fn at(pages: u64) -> Position {
        Position {
            background: 20_000,
            dirty: 40_000,
            limit: 40_000,
            pages,
            device_limit: 40_000,
            device_pages: pages,
        }
    }

    #[test]
    fn the_ratio_falls_from_two_to_nothing() {
        assert_eq!((at(0).freerun(), at(0).setpoint()), (30_000, 35_000));
        let got = [30_000, 33_750, 36_000, 40_000].map(|d| at(d).ratio(25_600));
        assert_eq!(got, [2094, 1045, 1011, 0]);
        let mut last = u64::MAX;
        for pages in (30_000..=40_000).step_by(10) {
            let ratio = at(pages).ratio(25_600);
            assert!(ratio <= last, "{pages}: {ratio} after {last}");
            last = ratio;
        }
    }

    #[test]
    fn a_device_short_of_pages_gets_more() {
        let short = |device_pages| Position {
            device_pages,
            ..at(35_000)
        };
        let full = short(35_000).ratio(25_600);
        let half = short(10_000).ratio(25_600);
        let none = short(100).ratio(25_600);
        assert!(full < half && half * 2 < none, "{full} {half} {none}");
    }

    #[test]
    fn polls_are_rarer_the_more_room_there_is() {
        assert_eq!(poll_interval(39_000, 40_000), 16);
        assert_eq!(poll_interval(0, 50_000), 128);
        assert_eq!(poll_interval(40_000, 40_000), 1);
        assert_eq!(poll_interval(50_000, 40_000), 1);
    }

    #[test]
    fn pauses_are_bounded_and_about_ten_milliseconds_for_one_writer() {
        let hz = Hz(1000);
        assert_eq!(max_pause(1_000_000, 25_600, hz), 200);
        assert_eq!(max_pause(0, 25_600, hz), 1);
        // 25600 / 128 = 200; 2010 / 201 + 1 = 11.
        assert_eq!(max_pause(2_010, 25_600, hz), 11);
        // 10 ticks: 25600 * 10 / 1024 = 250 pages, 1 + 10 / 2 at least.
        let one = target_pause(200, 25_600, 25_600, 25_600, hz);
        assert_eq!((one.pages, one.min_pause), (250, 6));
        // One of about eight: 2^14 / 2^11, 3 * 10000 / 1024 = 29 ticks more.
        let many = target_pause(200, 3_200, 3_200, 25_600, hz);
        assert_eq!((many.pages, many.min_pause), (3_200 * 39 / 1024, 1 + 19));
        // A slow device: 32 pages would take 64 ticks.
        let slow = target_pause(200, 500, 500, 500, hz);
        assert_eq!((slow.pages, slow.min_pause), (32, 33));
        // Far behind the device's rate: as long as allowed.
        let behind = target_pause(200, 10, 25_600, 25_600, hz);
        assert_eq!((behind.pages, behind.min_pause), (1, 200));
    }

    #[test]
    fn the_limit_jumps_up_and_creeps_down() {
        assert_eq!(follow_limit(100, 200, 0), 200);
        assert_eq!(follow_limit(1_000, 200, 0), 1_000 - 800 / 32);
        assert_eq!(follow_limit(1_000, 200, 900), 1_000 - 100 / 32);
        assert_eq!(follow_limit(1_000, 200, 5_000), 1_000);
    }
}
