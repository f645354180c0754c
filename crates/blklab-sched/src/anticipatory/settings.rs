// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tunables of the anticipatory scheduler, and what changed between releases.
//!
//! Source: block/as-iosched.c of 2.6.16 to 2.6.32. The defaults are computed
//! in ticks; what is written is in ms and rounded up.

use crate::Build;
use blklab_block::sq::Kick;
use blklab_kernel::{KernelVersion, Tunable, Unit};

const FIRST: KernelVersion = KernelVersion::v2_6(16);
const INT_MAX: i64 = i32::MAX as i64;

const fn ms(name: &'static str, default: i64, help: &'static str) -> Tunable {
    Tunable {
        name,
        unit: Unit::Ms,
        default,
        range: (0, INT_MAX),
        since: FIRST,
        until: KernelVersion::FOREVER,
        help,
    }
}

pub(super) const TUNABLES: &[Tunable] = &[
    ms(
        "read_expire",
        125,
        "age at which the oldest sync request goes first; looked at once per this time",
    ),
    ms(
        "write_expire",
        250,
        "age at which the oldest async request goes first; looked at once per this time",
    ),
    ms(
        "antic_expire",
        6,
        "how long to wait for the next request of a process; 0: never",
    ),
    ms(
        "read_batch_expire",
        500,
        "length of a batch of sync requests while async ones wait",
    ),
    ms(
        "write_batch_expire",
        125,
        "length of a batch of async requests while sync ones wait",
    ),
];

/// Times in jiffies. Pairs are indexed by sync: async first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// Age at which a request expires.
    pub(super) fifo_expire: [u64; 2],
    /// Length of a batch.
    pub(super) batch_expire: [u64; 2],
    /// How long to wait for the next request of a process.
    pub(super) antic_expire: u64,
    /// Longest think time that counts.
    pub(super) max_think: u64,
    /// Ticks per second.
    pub(super) hz: u64,
    /// Length of the first sync batch: the kernel sets it up before anybody
    /// can write to the tunables.
    pub(super) first_batch: u64,
    /// Async requests of the first async batch, for the same reason.
    pub(super) first_write_count: i32,
}

impl Settings {
    pub(super) fn new(b: &Build<'_>) -> Settings {
        let hz = b.hz.0;
        Settings {
            fifo_expire: [
                b.jiffies("write_expire", hz / 4),
                b.jiffies("read_expire", hz / 8),
            ],
            batch_expire: [
                b.jiffies("write_batch_expire", hz / 8),
                b.jiffies("read_batch_expire", hz / 2),
            ],
            antic_expire: b.jiffies("antic_expire", (hz / 150).max(1)),
            max_think: u64::from(hz / 50).wrapping_sub(1),
            hz: u64::from(hz),
            first_batch: u64::from(hz / 2),
            first_write_count: i32::try_from(hz / 8 / 10).unwrap_or(i32::MAX).max(2),
        }
    }
}

/// What makes a write sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncBy {
    /// The submitting task is in a sync write (`PF_SYNCWRITE`).
    Task,
    /// The request carries the flag.
    Flag,
}

const SOURCE: &str = "block/as-iosched.c";

blklab_kernel::features! {
    /// What changed between releases.
    pub(super) struct Features {
        /// What makes a write sync: the flag from 2.6.18 on.
        pub(super) sync_by: SyncBy = SyncBy::Task,
        /// Two requests that become one swap their owners if the absorbed one was
        /// older (to 2.6.18).
        pub(super) merge_swaps_owners: bool = true,
        /// How long the wait has lasted is compared as a number of ms with limits
        /// in jiffies (to 2.6.21).
        pub(super) closeness_in_ms: bool = true,
        /// An async batch begins at the oldest request and counts as checked for
        /// expiry (2.6.24). Before, it goes on at the next request.
        pub(super) writes_begin_at_oldest: bool = false,
        /// A batch whose change had to wait for the device gets its time when the
        /// device has drained (2.6.26). Before, the old batch's end stays in place
        /// and an async batch may be over before its first request.
        pub(super) drained_batch_gets_time: bool = false,
        /// How kblockd calls the driver: in 2.6.31 `blk_run_queue` took the place
        /// of `blk_start_queueing`, and to 2.6.18 the driver was called directly.
        pub(super) kick: Kick = Kick::PlugStays,
    }

    /// What changed from release to release.
    pub(super) const CHANGES = {
        "2.6.18": "writes are sync by their flag, not by what their task does", SOURCE => {
            sync_by: SyncBy::Flag,
        }
        "2.6.19": "merging does not swap owners; kblockd removes the plug and calls the driver",
            SOURCE => {
            merge_swaps_owners: false,
            kick: Kick::Unplug,
        }
        "2.6.22": "the length of the wait is compared in jiffies", SOURCE => {
            closeness_in_ms: false,
        }
        "2.6.24": "an async batch begins at the oldest request", SOURCE => {
            writes_begin_at_oldest: true,
        }
        "2.6.26": "a batch that had to wait for the device gets its full time", SOURCE => {
            drained_batch_gets_time: true,
        }
        "2.6.31": "kblockd calls the driver only if something waits", SOURCE => {
            kick: Kick::UnplugIfWaiting,
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_engine::Timers;
    use blklab_kernel::{Patches, Tunables};
    use blklab_types::Hz;

    fn settings(hz: u32, written: &[(&str, i64)]) -> Settings {
        let version = KernelVersion::v2_6(28);
        let mut tunables = Tunables::defaults(TUNABLES, version);
        for (name, value) in written {
            tunables.set(name, *value).unwrap();
        }
        Settings::new(&Build {
            version,
            hz: Hz(hz),
            tunables: &tunables,
            patches: &Patches::default(),
            rotational: true,
            timers: &mut Timers::new(Hz(hz)),
            shared: &crate::Shared::default(),
        })
    }

    #[test]
    fn defaults_are_computed_in_ticks() {
        for (hz, fifo, batch, antic, think, count) in [
            (100, [25, 12], [12, 50], 1, 1, 2),
            (250, [62, 31], [31, 125], 1, 4, 3),
            (1000, [250, 125], [125, 500], 6, 19, 12),
        ] {
            let s = settings(hz, &[]);
            assert_eq!((s.fifo_expire, s.batch_expire), (fifo, batch), "HZ {hz}");
            assert_eq!((s.antic_expire, s.max_think), (antic, think), "HZ {hz}");
            assert_eq!(s.first_write_count, count, "HZ {hz}");
        }
    }

    #[test]
    fn what_is_written_is_rounded_up_and_leaves_the_first_batches_alone() {
        let s = settings(250, &[("write_batch_expire", 5), ("read_batch_expire", 1)]);
        assert_eq!(s.batch_expire, [2, 1]);
        assert_eq!((s.first_write_count, s.first_batch), (3, 125));
    }

    #[test]
    fn every_change_is_listed() {
        let era = KernelVersion::v2_6(16)..KernelVersion::v2_6(33);
        blklab_kernel::check_changes(CHANGES, era, Features::of);
    }
}
