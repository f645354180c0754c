// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits and settings of a queue and its driver.

use blklab_kernel::{KernelVersion, Patches, Tunable, Unit};
use blklab_types::Hz;

/// When the driver looks at the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Fetch {
    /// It takes the next request from the scheduler first and then finds the
    /// device full: SCSI, libata, cciss. One request more than the queue
    /// depth has left the scheduler.
    #[default]
    PeekThenCheck,
    /// It looks only when the device has room: the older IDE driver.
    CheckThenPeek,
}

/// Settings of one queue and its driver.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Size of each request pool.
    pub nr_requests: u32,
    /// Largest request in sectors.
    pub max_sectors: u32,
    /// Most segments of a request.
    pub max_segments: u32,
    /// Whether the device seeks (`queue/rotational`).
    pub rotational: bool,
    /// `queue/nomerges`: 1 leaves only `last_merge`, 2 nothing.
    pub nomerges: u8,
    /// Waiting requests that make a plugged queue start.
    pub unplug_thresh: u32,
    /// Commands the device takes at once.
    pub queue_depth: u32,
    /// When the driver looks at the next request.
    pub fetch: Fetch,
    /// A completion removes the plug (SCSI); cciss leaves it.
    pub completion_unplugs: bool,
    /// The driver uses block-layer tags.
    pub tagged: bool,
    /// The device has a volatile write cache that must be flushed.
    pub has_flush: bool,
    /// The device writes through on request.
    pub has_fua: bool,
    /// The driver can order writes (cciss cannot: barriers fail).
    pub ordered_writes: bool,
    /// Other commands may be queued beside a flush.
    pub flush_queueable: bool,
    /// Requests per allocation batch.
    pub batch_requests: u32,
    /// First sector of the partition that bios come from (event A); none if
    /// the whole disk is used.
    pub partition_start: Option<u64>,
    /// Validity of a batch granted for a read and for a write, in jiffies.
    pub batch_jiffies: [u64; 2],
    /// Bios that may join `last_merge` in a row; no limit if none.
    pub cached_merge_limit: Option<u32>,
}

impl Limits {
    /// The kernel's defaults for a SCSI disk with a write cache.
    pub fn new(hz: Hz) -> Limits {
        Limits {
            nr_requests: 128,
            max_sectors: 1024,
            max_segments: 128,
            rotational: true,
            nomerges: 0,
            unplug_thresh: 4,
            queue_depth: 31,
            fetch: Fetch::PeekThenCheck,
            completion_unplugs: true,
            tagged: false,
            has_flush: true,
            has_fua: false,
            ordered_writes: true,
            flush_queueable: false,
            batch_requests: 32,
            partition_start: None,
            batch_jiffies: [u64::from(hz.0 / 50); 2],
            cached_merge_limit: None,
        }
    }
}

impl Limits {
    /// What historical patches change. `batch_patch`: batches of 16, valid for
    /// two seconds if granted for a read. `cached_merge_limit`: 128 bios.
    pub fn patch(&mut self, patches: &Patches, hz: Hz) {
        if patches.has("batch_patch") {
            self.batch_requests = 16;
            self.batch_jiffies = [2 * u64::from(hz.0), u64::from(hz.0 / 50)];
        }
        if patches.has("cached_merge_limit") {
            self.cached_merge_limit = Some(128);
        }
    }
}

/// Files of `/sys/block/X/queue` that the model honours.
pub const QUEUE_TUNABLES: &[Tunable] = &[
    Tunable {
        name: "nr_requests",
        unit: Unit::Count,
        default: 128,
        range: (4, 100_000),
        since: KernelVersion::v2_6(16),
        until: KernelVersion::FOREVER,
        help: "requests in each of the two pools; of a hardware queue (5.0: twice the depth, without a scheduler the depth)",
    },
    Tunable {
        name: "max_sectors_kb",
        unit: Unit::KiB,
        default: 512,
        range: (4, 32_767),
        since: KernelVersion::v2_6(16),
        until: KernelVersion::FOREVER,
        help: "largest request (5.0: 1280, 6.17: 4096, or what the device takes)",
    },
    Tunable {
        name: "max_segments",
        unit: Unit::Count,
        default: 128,
        range: (1, 65_535),
        since: KernelVersion::v2_6(16),
        until: KernelVersion::FOREVER,
        help: "scatter/gather segments of a request; a driver's limit (cciss 31)",
    },
    Tunable {
        name: "rotational",
        unit: Unit::Bool,
        default: 1,
        range: (0, 1),
        since: KernelVersion::v2_6(28),
        until: KernelVersion::FOREVER,
        help: "whether the device seeks",
    },
    Tunable {
        name: "nomerges",
        unit: Unit::Count,
        default: 0,
        range: (0, 2),
        since: KernelVersion::v2_6(26),
        until: KernelVersion::FOREVER,
        help: "1: merge only with the last merged request; 2 (2.6.34): never",
    },
    Tunable {
        name: "queue_depth",
        unit: Unit::Count,
        default: 31,
        range: (1, 1024),
        since: KernelVersion::v2_6(16),
        until: KernelVersion::FOREVER,
        help: "commands the device takes at once (device/queue_depth)",
    },
    Tunable {
        name: "read_ahead_kb",
        unit: Unit::KiB,
        default: 128,
        range: (0, 65_536),
        since: KernelVersion::v2_6(16),
        until: KernelVersion::FOREVER,
        help: "largest readahead window",
    },
    Tunable {
        name: "wbt_lat_usec",
        unit: Unit::Us,
        default: 75_000,
        range: (0, u32::MAX as i64),
        since: KernelVersion::new(5, 0),
        until: KernelVersion::FOREVER,
        help: "read latency that write-back throttling aims at (2000 without seeks); 0: off",
    },
    Tunable {
        name: "partition_start",
        unit: Unit::Count,
        default: 0,
        range: (0, u32::MAX as i64),
        since: KernelVersion::v2_6(16),
        until: KernelVersion::FOREVER,
        help: "first sector of the partition in use (63 in 2008): traces show A events",
    },
    Tunable {
        name: "partition_sectors",
        unit: Unit::Count,
        default: 0,
        range: (8, u32::MAX as i64),
        since: KernelVersion::v2_6(16),
        until: KernelVersion::FOREVER,
        help: "length of that partition; to the end of the disk if not set",
    },
];
