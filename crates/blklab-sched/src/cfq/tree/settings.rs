// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tunables as CFQ keeps them: times in jiffies, all cut to 32 bits.

use crate::Build;
use crate::cfq::tunables::TUNABLES;
use blklab_types::Hz;

/// Shortest time that idling for a seeking process is worth, in ms
/// (`CFQ_MIN_TT`).
const MIN_THINK_MS: u64 = 2;

/// Values of one device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) quantum: u32,
    /// Age that puts a request first, by sync.
    pub(super) fifo_expire_jiffies: [u32; 2],
    /// Farthest reach behind the head.
    pub(super) back_max_sectors: u64,
    pub(super) back_penalty: u64,
    /// Slice at level 4, by sync.
    pub(super) slice_jiffies: [u32; 2],
    pub(super) slice_async_rq: u32,
    pub(super) slice_idle_jiffies: u32,
    pub(super) low_latency: bool,
    /// Fifth of a second: what an idle-class queue is put back by.
    pub(super) idle_delay_jiffies: u64,
    /// Tenth of a second without other I/O before the idle class is served.
    pub(super) idle_grace_jiffies: u64,
    /// Length of idling for a seeking process.
    pub(super) min_think_jiffies: u64,
    /// One second.
    pub(super) second_jiffies: u64,
}

impl Settings {
    pub(super) fn new(b: &Build<'_>) -> Settings {
        let Hz(hz) = b.hz;
        let count = |name| u32::try_from(b.tunables.get(name)).unwrap_or(u32::MAX);
        // The kernel keeps these in unsigned int.
        let ticks = |name, default| b.jiffies(name, default) as u32;
        let has_low_latency = TUNABLES
            .iter()
            .any(|t| t.name == "low_latency" && t.is_in(b.version));
        Settings {
            quantum: count("quantum"),
            fifo_expire_jiffies: [
                ticks("fifo_expire_async", hz / 4),
                ticks("fifo_expire_sync", hz / 8),
            ],
            back_max_sectors: u64::from(count("back_seek_max").wrapping_mul(2)),
            back_penalty: u64::from(count("back_seek_penalty")),
            slice_jiffies: [
                ticks("slice_async", (hz / 25).max(1)),
                ticks("slice_sync", hz / 10),
            ],
            slice_async_rq: count("slice_async_rq"),
            slice_idle_jiffies: ticks("slice_idle", (hz / 125).max(1)),
            // As a patch, the ramp has no tunable.
            low_latency: !has_low_latency || b.tunables.get("low_latency") != 0,
            idle_delay_jiffies: u64::from(hz / 5),
            idle_grace_jiffies: u64::from(hz / 10),
            min_think_jiffies: b.hz.from_ms(MIN_THINK_MS),
            second_jiffies: u64::from(hz),
        }
    }
}
