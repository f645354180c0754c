// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of `/sys/block/X/queue` and the driver's settings beside them, on
//! either path.

use blklab_kernel::{KernelVersion, Tunable, Unit};

/// One row of a table of settings.
const fn row(
    name: &'static str,
    unit: Unit,
    default: i64,
    range: (i64, i64),
    since: KernelVersion,
    until: KernelVersion,
    help: &'static str,
) -> Tunable {
    Tunable {
        name,
        unit,
        default,
        range,
        since,
        until,
        help,
    }
}

const FIRST: KernelVersion = KernelVersion::v2_6(16);
const MULTI_QUEUE: KernelVersion = KernelVersion::new(5, 0);
const NO_END: KernelVersion = KernelVersion::FOREVER;
const NO_DIFFERENCE: &str = "makes no difference in the model";

/// Files of `/sys/block/X/queue` that the model knows, and settings of the driver
/// beside them. Defaults are those of `sata-7200-2008` with the kernel's default
/// scheduler; devices have their own. A default outside the range is that of what
/// is not set.
///
/// Releases: block/blk-sysfs.c and the dates in Documentation/ABI/stable/sysfs-block.
#[rustfmt::skip]
pub const QUEUE_TUNABLES: &[Tunable] = &[
    row("nr_requests", Unit::Count, 128, (4, 100_000), FIRST, MULTI_QUEUE,
        "requests in each of the two pools"),
    row("nr_requests", Unit::Count, 62, (4, 100_000), MULTI_QUEUE, NO_END,
        "requests of a hardware queue: twice the queue depth, of which 128 count at most; without a scheduler the queue depth"),
    row("max_sectors_kb", Unit::KiB, 512, (4, 32_767), FIRST, MULTI_QUEUE,
        "largest request, if the device does not say"),
    row("max_sectors_kb", Unit::KiB, 1280, (4, 32_767), MULTI_QUEUE, KernelVersion::new(6, 17),
        "largest request, if the device does not say"),
    row("max_sectors_kb", Unit::KiB, 4096, (4, 32_767), KernelVersion::new(6, 17), NO_END,
        "largest request, if the device does not say"),
    row("max_segments", Unit::Count, 128, (1, 65_535), FIRST, NO_END,
        "scatter/gather segments of a request; a driver's limit (cciss 31)"),
    // The driver's flag is of 2.6.28, the file of 2.6.29.
    row("rotational", Unit::Bool, 1, (0, 1), KernelVersion::v2_6(28), NO_END,
        "whether the device seeks"),
    row("nomerges", Unit::Count, 0, (0, 1), KernelVersion::v2_6(26), KernelVersion::v2_6(34),
        "1: merge only with the last merged request"),
    row("nomerges", Unit::Count, 0, (0, 2), KernelVersion::v2_6(34), NO_END,
        "1: merge only with the last merged request; 2: never"),
    row("queue_depth", Unit::Count, 31, (1, 1024), FIRST, NO_END,
        "commands the device takes at once (device/queue_depth)"),
    row("read_ahead_kb", Unit::KiB, 128, (0, 65_536), FIRST, NO_END,
        "largest readahead window"),
    row("write_cache", Unit::Bool, 1, (0, 1), KernelVersion::new(4, 7), NO_END,
        "'write back' (1): the kernel flushes the device's cache; 'write through' (0): it does not"),
    row("wbt_lat_usec", Unit::Us, 0, (0, u32::MAX as i64), KernelVersion::new(4, 10), MULTI_QUEUE,
        "read latency that write-back throttling aims at; before 5.0 it makes no difference in the model"),
    row("wbt_lat_usec", Unit::Us, 75_000, (0, u32::MAX as i64), MULTI_QUEUE, NO_END,
        "read latency that write-back throttling aims at (2000 without seeks, off beside bfq); 0: off"),
    row("rq_affinity", Unit::Count, 1, (0, 1), KernelVersion::v2_6(28), KernelVersion::new(3, 1), NO_DIFFERENCE),
    row("rq_affinity", Unit::Count, 1, (0, 2), KernelVersion::new(3, 1), NO_END, NO_DIFFERENCE),
    row("iostats", Unit::Bool, 1, (0, 1), KernelVersion::v2_6(29), NO_END, NO_DIFFERENCE),
    row("add_random", Unit::Bool, 1, (0, 1), KernelVersion::v2_6(36), NO_END, NO_DIFFERENCE),
    row("partition_start", Unit::Count, 0, (0, u32::MAX as i64), FIRST, NO_END,
        "first sector of the partition in use (63 in 2008): traces show A events; 0: the whole disk"),
    row("partition_sectors", Unit::Count, 0, (8, u32::MAX as i64), FIRST, NO_END,
        "length of that partition; to the end of the disk if not set"),
];
