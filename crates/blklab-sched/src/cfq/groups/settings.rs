// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tunables in the clock's unit.
//!
//! Source: `cfq_init`, `cfq_init_queue` and the store routines of
//! block/cfq-iosched.c of 2.6.33 to 4.19.

use super::features::Features;
use crate::Build;
use crate::cfq::clock::Clock;

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
