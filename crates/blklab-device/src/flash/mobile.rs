// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flash in phones and boards: few dies, a small buffer, and collecting that
//! nothing interrupts. That is where tails hurt most.
//!
//! No results with percentiles of such parts are at hand: rates are those of the
//! classes, stalls those that their standards allow or that are commonly seen.

use super::presets::{NVME_DATACENTER, SETTINGS};
use crate::info::DeviceInfo;
use crate::limits::DeviceLimits;
use blklab_types::DiscardLimits;

/// What such parts say of discards is not at hand: pages of 4 KiB, as many as a bio
/// can have, are assumed.
const ONE_QUEUE: DeviceLimits = DeviceLimits {
    rotational: Some(false),
    discard: Some(DiscardLimits {
        max_sectors: u32::MAX,
        granularity_sectors: 8,
    }),
    ..DeviceLimits::NONE
};

/// UFS 2.1.
pub(crate) const UFS: DeviceInfo = DeviceInfo {
    name: "ufs-2.1",
    summary: "UFS 2.1 of a phone, 128 GB, TLC, mostly full",
    source: "typical figures of data sheets (850 and 250 MB/s, 50,000 and 40,000 I/Os per second \
             fresh); gc_burst_bytes and cells are assumed, nothing is fitted",
    preset: &[
        ("capacity_sectors", "250000000"),
        ("channels", "2"),
        ("ways", "2"),
        ("dies", "1"),
        ("page_bytes", "16KiB"),
        ("pages_per_program", "3"),
        ("pages_per_block", "768"),
        ("read_us", "50"),
        ("read_middle_us", "55"),
        ("read_slow_us", "70"),
        ("program_us", "1450"),
        ("erase_us", "5000"),
        ("suspend_program", "off"),
        ("suspend_erase_us", "300"),
        ("reads_first", "off"),
        ("channel_mb_per_s", "667"),
        ("link_mb_per_s", "860"),
        ("command_us", "20"),
        ("read_overhead_us", "50"),
        ("write_command_us", "25"),
        ("write_overhead_us", "20"),
        ("buffer_bytes", "1MiB"),
        ("power_loss_protection", "off"),
        ("spare_pct", "7"),
        ("state", "used"),
        ("filled_pct", "80"),
        ("gc_burst_bytes", "4MiB"),
        ("gc_dies", "2"),
        ("gc_suspend", "off"),
        ("layout", "scattered"),
    ],
    queue_depth: 31,
    limits: ONE_QUEUE,
    settings: SETTINGS,
    ..NVME_DATACENTER
};

/// eMMC 5.1.
pub(crate) const EMMC: DeviceInfo = DeviceInfo {
    name: "emmc-5.1",
    summary: "eMMC 5.1 of a phone or board, 64 GB, TLC, mostly full, without command queue",
    source: "typical figures of data sheets (HS400: 300 MB/s; 6,000 and 10,000 I/Os per second); \
             gc_burst_bytes and cells are assumed, nothing is fitted",
    preset: &[
        ("capacity_sectors", "122142720"),
        ("channels", "1"),
        ("ways", "2"),
        ("dies", "1"),
        ("page_bytes", "16KiB"),
        ("pages_per_program", "3"),
        ("pages_per_block", "768"),
        ("read_us", "50"),
        ("read_middle_us", "55"),
        ("read_slow_us", "70"),
        ("program_us", "1450"),
        ("erase_us", "5000"),
        ("suspend_program", "off"),
        ("suspend_erase", "off"),
        ("reads_first", "off"),
        ("channel_mb_per_s", "667"),
        ("link_mb_per_s", "300"),
        ("link", "half_duplex"),
        ("command_us", "40"),
        ("read_overhead_us", "40"),
        ("write_command_us", "60"),
        ("write_overhead_us", "20"),
        ("buffer_bytes", "512KiB"),
        ("power_loss_protection", "off"),
        ("spare_pct", "7"),
        ("state", "used"),
        ("filled_pct", "80"),
        ("gc_burst_bytes", "12MiB"),
        ("gc_suspend", "off"),
        ("layout", "scattered"),
    ],
    queue_depth: 1,
    ..UFS
};

/// SD card of application class A1.
pub(crate) const SD_CARD: DeviceInfo = DeviceInfo {
    name: "sd-card-a1",
    summary: "SD card of class A1 (UHS-I), 64 GB, written full",
    source: "SD application performance class A1 (at least 1500 reads and 500 writes per second) \
             and the standard's longest busy time of a write, 250 ms; cells are assumed",
    preset: &[
        ("capacity_sectors", "122142720"),
        ("channels", "1"),
        ("ways", "1"),
        ("dies", "1"),
        ("page_bytes", "16KiB"),
        ("pages_per_program", "3"),
        ("pages_per_block", "768"),
        ("read_us", "50"),
        ("read_middle_us", "55"),
        ("read_slow_us", "70"),
        ("program_us", "2100"),
        ("erase_us", "5000"),
        ("suspend_program", "off"),
        ("suspend_erase", "off"),
        ("reads_first", "off"),
        ("channel_mb_per_s", "667"),
        ("link_mb_per_s", "90"),
        ("link", "half_duplex"),
        ("command_us", "60"),
        ("read_overhead_us", "330"),
        ("write_command_us", "200"),
        ("write_overhead_us", "20"),
        ("buffer_bytes", "192KiB"),
        ("power_loss_protection", "off"),
        ("spare_pct", "3"),
        ("gc_burst_bytes", "8MiB"),
        ("gc_suspend", "off"),
        ("layout", "scattered"),
    ],
    queue_depth: 1,
    ..UFS
};
