// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tunables in the clock's unit, and the clock itself.
//!
//! Source: `cfq_init`, `cfq_init_queue` and the store routines of
//! block/cfq-iosched.c of 2.6.33 to 4.19. Up to 4.7 the clock counts ticks,
//! from 4.8 nanoseconds.

use super::features::Features;
use crate::Build;
use blklab_block::Cx;

/// The counter at the start of a run. The kernel's is large too: some rules
/// look at times before the start.
const START_JIFFIES: u64 = 1 << 32;
const START_NS: u64 = 4_294 * 1_000_000_000;

/// What CFQ reads the time from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    ns: bool,
    hz: u64,
}

impl Clock {
    pub(super) fn new(ns: bool, hz: u32) -> Clock {
        let hz = u64::from(hz).max(1);
        Clock { ns, hz }
    }

    /// Whether the unit is the nanosecond.
    pub(super) fn is_ns(self) -> bool {
        self.ns
    }

    pub(super) fn start(self) -> u64 {
        if self.ns { START_NS } else { START_JIFFIES }
    }

    pub(super) fn now(self, cx: &Cx<'_>) -> u64 {
        if self.ns {
            START_NS.saturating_add(cx.now.0)
        } else {
            START_JIFFIES.saturating_add(cx.jiffies.0)
        }
    }

    pub(super) fn second(self) -> u64 {
        if self.ns { 1_000_000_000 } else { self.hz }
    }

    /// One tick.
    pub(super) fn jiffy(self) -> u64 {
        if self.ns { 1_000_000_000 / self.hz } else { 1 }
    }

    /// Whether `a` lies before `b`. Ticks are compared so that the counter
    /// may wrap.
    pub(super) fn before(self, a: u64, b: u64) -> bool {
        if self.ns {
            a < b
        } else {
            (a.wrapping_sub(b) as i64) < 0
        }
    }

    pub(super) fn after(self, a: u64, b: u64) -> bool {
        self.before(b, a)
    }
}

/// Index of async and sync in what there are two of.
pub(super) const ASYNC: usize = 0;
pub(super) const SYNC: usize = 1;

/// The tunables.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) quantum: u32,
    /// By sync.
    pub(super) fifo_expire: [u64; 2],
    pub(super) back_max_sectors: u64,
    pub(super) back_penalty: u64,
    /// By sync.
    pub(super) slice: [u64; 2],
    pub(super) slice_async_rq: u32,
    pub(super) slice_idle: u64,
    /// What was written; none: the default, see [`Settings::group_idle`].
    group_idle: Option<u64>,
    group_idle_default: u64,
    pub(super) target_latency: u64,
    pub(super) low_latency: bool,
    pub(super) group_isolation: bool,
}

impl Settings {
    pub(super) fn new(b: &Build<'_>, feat: &Features, clock: Clock) -> Settings {
        let count = |name| u32::try_from(b.tunables.get(name)).unwrap_or(u32::MAX);
        let time = |name, name_us, default| written(b, clock, name, name_us).unwrap_or(default);
        let eighth = clock.second() / 125;
        let idle_default = if feat.no_slice_idle_on_nonrot && !b.rotational {
            0
        } else {
            eighth.max(1)
        };
        Settings {
            quantum: count("quantum"),
            fifo_expire: [
                time("fifo_expire_async", "", clock.second() / 4),
                time("fifo_expire_sync", "", clock.second() / 8),
            ],
            back_max_sectors: u64::from(count("back_seek_max")) * 2,
            back_penalty: u64::from(count("back_seek_penalty")),
            slice: [
                time("slice_async", "slice_async_us", clock.second() / 25).max(1),
                time("slice_sync", "slice_sync_us", clock.second() / 10).max(1),
            ],
            slice_async_rq: count("slice_async_rq"),
            slice_idle: time("slice_idle", "slice_idle_us", idle_default),
            group_idle: written(b, clock, "group_idle", "group_idle_us"),
            group_idle_default: if feat.group_idle { eighth.max(1) } else { 0 },
            target_latency: time(
                "target_latency",
                "target_latency_us",
                clock.second() * 3 / 10,
            ),
            low_latency: count("low_latency") != 0,
            group_isolation: !feat.has_group_isolation || count("group_isolation") != 0,
        }
    }

    /// `group_idle`, which is 0 where group scheduling is not compiled in.
    pub(super) fn group_idle(&self, group_scheduling: bool) -> u64 {
        match self.group_idle {
            Some(written) => written,
            None if group_scheduling => self.group_idle_default,
            None => 0,
        }
    }
}

/// A time that was written to one of its two names, in the clock's unit.
fn written(b: &Build<'_>, clock: Clock, name: &str, name_us: &str) -> Option<u64> {
    let (which, value) = b.tunables.written(&[name, name_us])?;
    let value = value.unsigned_abs();
    Some(if !clock.is_ns() {
        // Kept in an unsigned int.
        b.jiffies(name, 0).min(u64::from(u32::MAX))
    } else if which == name_us {
        value.saturating_mul(1_000)
    } else {
        value.saturating_mul(1_000_000)
    })
}
