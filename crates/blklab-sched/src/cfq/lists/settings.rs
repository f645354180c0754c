// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tunables in the units and widths of the kernel.
//!
//! The kernel keeps all of them in 32 bits and computes with some as signed
//! numbers: a slice of 2^31 ticks or more is negative, so over before it
//! began, and a quantum of 2^31 or more still moves one request per round.
//! Source: block/cfq-iosched.c of 2.6.18.

use super::features::Features;
use crate::Build;
use blklab_kernel::tunables_of;

/// Levels of a class.
pub(super) const LEVELS: u8 = 8;

/// The level whose slice is the tunable's value.
const BASE_LEVEL: i32 = 4;

/// Levels differ by a fifth of the slice.
const SLICE_SCALE: i32 = 5;

#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// Most requests of a round.
    pub(super) quantum: i32,
    pub(super) max_depth: u32,
    /// Async and sync, in ticks.
    pub(super) fifo_expire_jiffies: [u64; 2],
    pub(super) back_max_sectors: u64,
    pub(super) back_penalty: u64,
    /// Async and sync, in ticks.
    slice_jiffies: [i32; 2],
    slice_async_rq: u32,
    pub(super) slice_idle_jiffies: u64,
    /// How long the disk must be quiet before the idle class is served.
    pub(super) idle_grace_jiffies: u64,
    /// 2 ms.
    pub(super) seeky_idle_jiffies: u64,
    /// Requests per allocation batch: the default of `queued`.
    pub(super) batch_requests: u32,
}

impl Settings {
    pub(super) fn new(b: &Build<'_>, feat: &Features) -> Settings {
        let hz = b.hz.0;
        // What was written comes in ms; defaults are computed in ticks.
        let ticks = |name, default: u32| b.jiffies(name, default) as u32;
        let number = |name| b.tunables.get(name) as u32;
        Settings {
            quantum: number("quantum") as i32,
            max_depth: if feat.max_depth {
                number("max_depth")
            } else {
                u32::MAX
            },
            fifo_expire_jiffies: [
                u64::from(ticks("fifo_expire_async", hz / 4)),
                u64::from(ticks("fifo_expire_sync", hz / 8)),
            ],
            back_max_sectors: u64::from(number("back_seek_max").wrapping_mul(2)),
            back_penalty: u64::from(number("back_seek_penalty")),
            slice_jiffies: [
                ticks("slice_async", (hz / 25).max(1)) as i32,
                ticks("slice_sync", hz / 10) as i32,
            ],
            slice_async_rq: number("slice_async_rq"),
            slice_idle_jiffies: u64::from(ticks("slice_idle", (hz / feat.idles_per_second).max(1))),
            idle_grace_jiffies: u64::from(hz / 10),
            seeky_idle_jiffies: b.hz.from_ms(2),
            batch_requests: default_queued(b),
        }
    }

    /// Length of a slice in ticks, as the kernel adds it to the tick counter:
    /// possibly "negative".
    pub(super) fn slice_jiffies(&self, sync: bool, level: u8) -> u64 {
        let base = self.slice_jiffies[usize::from(sync)];
        let steps = BASE_LEVEL - i32::from(level);
        let length = base.wrapping_add((base / SLICE_SCALE).wrapping_mul(steps));
        i64::from(length) as u64
    }

    /// Requests of a slice after which an async queue expires
    /// (`cfq_prio_to_maxrq`).
    pub(super) fn prio_to_maxrq(&self, level: u8) -> u32 {
        let above = u32::from(LEVELS.saturating_sub(1).saturating_sub(level));
        let r = self.slice_async_rq;
        r.wrapping_add(r.wrapping_mul(above)).wrapping_mul(2)
    }
}

fn default_queued(b: &Build<'_>) -> u32 {
    tunables_of(crate::cfq::tunables::TUNABLES, b.version)
        .find(|t| t.name == "queued")
        .map_or(0, |t| t.default as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cfq::tunables::TUNABLES;
    use blklab_engine::Timers;
    use blklab_kernel::{KernelVersion, Patches, Tunables};
    use blklab_types::Hz;

    fn settings(kernel: &str, hz: u32, written: &[(&str, i64)]) -> Settings {
        let version: KernelVersion = kernel.parse().expect("a version");
        let mut tunables = Tunables::defaults(TUNABLES, version);
        for (name, value) in written {
            tunables.set(name, *value).expect("a tunable");
        }
        let b = Build {
            version,
            hz: Hz(hz),
            tunables: &tunables,
            patches: &Patches::default(),
            rotational: true,
            timers: &mut Timers::new(Hz(hz)),
            shared: &crate::Shared::default(),
        };
        Settings::new(&b, &Features::of(version))
    }

    fn slices(s: &Settings, sync: bool) -> Vec<i64> {
        let length = |level| s.slice_jiffies(sync, level) as i64;
        (0..8).map(length).collect()
    }

    #[test]
    fn slices_of_the_levels() {
        let s = settings("2.6.18", 1000, &[]);
        assert_eq!(slices(&s, true), [180, 160, 140, 120, 100, 80, 60, 40]);
        assert_eq!(slices(&s, false), [72, 64, 56, 48, 40, 32, 24, 16]);
        let s = settings("2.6.18", 250, &[]);
        assert_eq!(slices(&s, true), [45, 40, 35, 30, 25, 20, 15, 10]);
        let s = settings("2.6.18", 100, &[]);
        assert_eq!(slices(&s, false), [4; 8]);
        let s = settings("2.6.18", 1000, &[("slice_sync", 50)]);
        assert_eq!(slices(&s, true), [90, 80, 70, 60, 50, 40, 30, 20]);
        let s = settings("2.6.18", 1000, &[("slice_sync", 3)]);
        assert_eq!(slices(&s, true), [3; 8]);
    }

    #[test]
    fn huge_numbers_become_negative_where_the_kernel_counts_with_signs() {
        let most = i64::from(u32::MAX);
        let s = settings(
            "2.6.18",
            1000,
            &[
                ("slice_sync", most),
                ("slice_idle", most),
                ("quantum", most),
                ("back_seek_max", 1 << 31),
                ("slice_async_rq", most),
            ],
        );
        assert_eq!(slices(&s, true), [-2; 8]);
        assert_eq!(s.slice_idle_jiffies, most as u64 - 1);
        assert_eq!((s.quantum, s.back_max_sectors), (-1, 0));
        assert_eq!(s.prio_to_maxrq(7), u32::MAX - 1);
    }

    #[test]
    fn maxrq_of_the_levels() {
        let maxrq = |s: &Settings| (0..8).map(|l| s.prio_to_maxrq(l)).collect::<Vec<_>>();
        let s = settings("2.6.18", 1000, &[]);
        assert_eq!(maxrq(&s), [32, 28, 24, 20, 16, 12, 8, 4]);
        let s = settings("2.6.18", 1000, &[("slice_async_rq", 1)]);
        assert_eq!(maxrq(&s), [16, 14, 12, 10, 8, 6, 4, 2]);
    }

    #[test]
    fn times_in_ticks() {
        let idle = |kernel, hz| settings(kernel, hz, &[]).slice_idle_jiffies;
        assert_eq!([1000, 250, 100].map(|hz| idle("2.6.16", hz)), [10, 2, 1]);
        assert_eq!([1000, 250, 100].map(|hz| idle("2.6.17", hz)), [14, 3, 1]);
        assert_eq!([1000, 250, 100].map(|hz| idle("2.6.18", hz)), [8, 2, 1]);
        let fifo = |hz, w: &[_]| settings("2.6.18", hz, w).fifo_expire_jiffies;
        assert_eq!(fifo(250, &[]), [62, 31]);
        assert_eq!(fifo(250, &[("fifo_expire_sync", 125)]), [62, 32]);
        assert_eq!(fifo(250, &[("fifo_expire_sync", 0)]), [62, 1]);
        let s = settings("2.6.18", 250, &[("slice_idle", 5)]);
        assert_eq!(s.slice_idle_jiffies, 2);
        let s = settings("2.6.18", 250, &[("slice_idle", 0), ("back_seek_max", 0)]);
        assert_eq!((s.slice_idle_jiffies, s.back_max_sectors), (0, 0));
    }
}
