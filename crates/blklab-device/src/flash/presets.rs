// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flash drives as data.
//!
//! Nobody outside knows the inside of a drive. Structure and times of the cells
//! are those of published simulator configurations; what the data sheet says
//! from outside fixes the rest: `command_us` from the most reads per second, the
//! firmware times from the latencies at depth 1, `program_us` from the rate of
//! sequential writes, the spare from the usable size and a power of two of raw
//! flash. Random writes in the steady state and everything at other depths are
//! predictions.

use super::PARAMS;
use crate::info::{Build, DeviceInfo, Settings};
use crate::limits::DeviceLimits;
use crate::param::Values;

/// There is nothing to flush where the buffer survives a loss of power.
pub(super) fn by_protection(values: &Values, limits: DeviceLimits) -> DeviceLimits {
    let protected = values.on("power_loss_protection");
    DeviceLimits {
        has_flush: !protected,
        has_fua: limits.has_fua && !protected,
        ..limits
    }
}

pub(super) const SETTINGS: Settings = Settings {
    limits: by_protection,
    ..Settings::NONE
};

/// Intel DC P4500, 2 TB: the defaults.
pub(crate) const NVME_DATACENTER: DeviceInfo = DeviceInfo {
    name: "nvme-datacenter",
    summary: "NVMe SSD for servers, 2 TB, protected buffer, written full (Intel DC P4500 class)",
    source: "data sheet figures of the Intel DC P4500 2 TB (2017); structure, erase and \
             suspension of MQSim's default configuration",
    params: PARAMS,
    preset: &[],
    queue_depth: 1023,
    limits: DeviceLimits {
        max_sectors: Some(256),
        ..DeviceLimits::NVME
    },
    settings: SETTINGS,
    build: Build::Plain(super::build),
};

/// Samsung 970 PRO, 512 GB.
pub(crate) const NVME_CONSUMER: DeviceInfo = DeviceInfo {
    name: "nvme-consumer",
    summary: "NVMe SSD for desktops, 512 GB, volatile buffer, fresh (Samsung 970 PRO class)",
    source: "NVMeVirt's configuration for the Samsung 970 PRO (times, structure, buffer); \
             command_us from the data sheet's most commands per second",
    preset: &[
        ("capacity_sectors", "1000215216"),
        ("channels", "8"),
        ("ways", "2"),
        ("dies", "1"),
        ("planes", "1"),
        ("page_bytes", "32KiB"),
        ("read_us", "29.8"),
        ("read_slow_us", "41.8"),
        ("program_us", "185"),
        ("erase_us", "0"),
        ("suspend_program", "off"),
        ("suspend_erase", "off"),
        ("channel_mb_per_s", "800"),
        ("link_mb_per_s", "3360"),
        ("command_us", "2"),
        ("read_overhead_us", "21.5"),
        ("read_large_overhead_us", "30.5"),
        ("write_overhead_us", "4.46"),
        ("buffer_bytes", "1MiB"),
        ("power_loss_protection", "off"),
        ("spare_pct", "7"),
        ("state", "fresh"),
    ],
    limits: DeviceLimits::NVME,
    ..NVME_DATACENTER
};

/// Intel DC S4500, 960 GB.
pub(crate) const SATA_SSD: DeviceInfo = DeviceInfo {
    name: "sata-ssd",
    summary: "SATA SSD for servers, 960 GB, protected buffer, written full (Intel DC S4500 class)",
    source: "product specification of the Intel DC S4500 (2017); cells as nvme-datacenter, half \
             of the dies",
    preset: &[
        ("capacity_sectors", "1875385008"),
        ("ways", "2"),
        ("link_mb_per_s", "500"),
        ("link", "half_duplex"),
        ("command_us", "13.9"),
        ("read_overhead_us", "20"),
        ("write_overhead_us", "30"),
        ("buffer_bytes", "8MiB"),
        ("spare_pct", "14.5"),
    ],
    queue_depth: 31,
    limits: DeviceLimits::SATA_FLASH,
    ..NVME_DATACENTER
};

/// Samsung 980 PRO, 1 TB, as the experiments of ICPE 2024 had it.
pub(crate) const SAMSUNG_980_PRO: DeviceInfo = DeviceInfo {
    name: "samsung-980-pro",
    summary: "Samsung 980 PRO 1 TB (2020, TLC) on PCIe 3.0, in the steady state of random writes",
    source: "raw fio results of the artefact of \"BFQ, Multiqueue-Deadline, or Kyber?\" (ICPE \
             2024); structure: 32 dies of 256 Gb, six planes' pages of 16 KiB programmed at once, \
             stripes over half of the dies",
    preset: &[
        ("capacity_sectors", "1953525168"),
        ("channels", "8"),
        ("ways", "4"),
        ("dies", "1"),
        ("planes", "2"),
        ("page_bytes", "16KiB"),
        ("pages_per_program", "3"),
        ("stripe_dies", "16"),
        ("pages_per_block", "768"),
        ("read_us", "28.5"),
        ("read_middle_us", "29"),
        ("read_slow_us", "42"),
        ("read_large_us", "16"),
        ("program_us", "1450"),
        ("erase_us", "3500"),
        ("suspend_program", "off"),
        ("suspend_erase_us", "300"),
        ("reads_first", "off"),
        ("read_burst", "6"),
        ("channel_mb_per_s", "1200"),
        ("link_mb_per_s", "3240"),
        ("command_us", "1"),
        ("read_overhead_us", "21"),
        ("read_large_overhead_us", "46"),
        ("read_large_mb_per_s", "2200"),
        ("read_slots", "224"),
        ("write_command_us", "3.73"),
        ("write_overhead_us", "0.6"),
        ("buffer_bytes", "5MiB"),
        ("power_loss_protection", "off"),
        ("state", "used"),
        ("filled_pct", "85"),
        ("gc_burst_bytes", "12MiB"),
        ("layout", "scattered"),
    ],
    limits: DeviceLimits::NVME,
    ..NVME_DATACENTER
};

/// Samsung 970 PRO, 512 GB, as `iocost-benchmarks` measured it.
pub(crate) const SAMSUNG_970_PRO: DeviceInfo = DeviceInfo {
    name: "samsung-970-pro",
    summary: "Samsung 970 PRO 512 GB (2018, MLC), half of it written at random",
    source: "as nvme-consumer; write_command_us and link_mb_per_s from the results of \
             iocost-benchmarks (Linux 6.0)",
    preset: &[
        ("capacity_sectors", "1000215216"),
        ("channels", "8"),
        ("ways", "2"),
        ("dies", "1"),
        ("planes", "1"),
        ("page_bytes", "32KiB"),
        ("read_us", "29.8"),
        ("read_slow_us", "41.8"),
        ("program_us", "185"),
        ("erase_us", "0"),
        ("suspend_program", "off"),
        ("suspend_erase", "off"),
        ("channel_mb_per_s", "800"),
        ("link_mb_per_s", "3470"),
        ("command_us", "2"),
        ("read_overhead_us", "21.5"),
        ("read_large_overhead_us", "30.5"),
        ("write_command_us", "3.95"),
        ("write_overhead_us", "4.46"),
        ("buffer_bytes", "1MiB"),
        ("power_loss_protection", "off"),
        ("spare_pct", "7"),
        ("state", "used"),
        ("filled_pct", "50"),
    ],
    limits: DeviceLimits::NVME,
    ..NVME_DATACENTER
};

/// Micron 7300 PRO, 960 GB.
pub(crate) const MICRON_7300_PRO: DeviceInfo = DeviceInfo {
    name: "micron-7300-pro",
    summary: "Micron 7300 PRO 960 GB (2019, TLC) for servers, protected buffer, written full",
    source: "a reader beside a writer in the steady state (published p50, p99, p99.9); structure as \
             samsung-980-pro. pages_per_block is fitted: erases stand for all that a die does and \
             no read interrupts",
    preset: &[
        ("capacity_sectors", "1875385008"),
        ("ways", "4"),
        ("dies", "1"),
        ("page_bytes", "16KiB"),
        ("pages_per_program", "3"),
        ("pages_per_block", "96"),
        ("read_us", "52"),
        ("read_middle_us", "55"),
        ("read_slow_us", "70"),
        ("program_us", "2100"),
        ("erase_us", "3200"),
        ("suspend_program_us", "10"),
        ("suspend_erase", "off"),
        ("suspend_max", "1000"),
        ("channel_mb_per_s", "1200"),
        ("command_us", "2"),
        ("read_overhead_us", "12"),
        ("write_overhead_us", "14"),
        ("buffer_bytes", "8MiB"),
        ("spare_pct", "14.5"),
    ],
    limits: DeviceLimits::NVME,
    ..NVME_DATACENTER
};

/// Samsung 860 EVO, 250 GB.
pub(crate) const SAMSUNG_860_EVO: DeviceInfo = DeviceInfo {
    name: "samsung-860-evo",
    summary: "Samsung 860 EVO 250 GB (2018, SATA, TLC with SLC cache), more than half full",
    source: "link, command_us and write_command_us from the results of iocost-benchmarks (Linux \
             6.0); data sheet: 12 GB of SLC, 520 MB/s into it, 300 past it, 10,000 reads per \
             second at depth 1",
    preset: &[
        ("capacity_sectors", "488397168"),
        ("ways", "1"),
        ("dies", "1"),
        ("page_bytes", "16KiB"),
        ("pages_per_program", "3"),
        ("pages_per_block", "768"),
        ("read_us", "50"),
        ("read_middle_us", "53"),
        ("read_slow_us", "68"),
        ("program_us", "2500"),
        ("erase_us", "4000"),
        ("suspend_program", "off"),
        ("suspend_erase_us", "300"),
        ("reads_first", "off"),
        ("link_mb_per_s", "572"),
        ("link", "half_duplex"),
        ("command_us", "10.15"),
        ("read_overhead_us", "18"),
        ("write_command_us", "11.2"),
        ("write_overhead_us", "5"),
        ("flush_queued", "off"),
        ("buffer_bytes", "4MiB"),
        ("power_loss_protection", "off"),
        ("state", "used"),
        ("filled_pct", "60"),
        ("gc_suspend", "off"),
        ("slc_bytes", "12GB"),
        ("slc_program_us", "900"),
        ("layout", "scattered"),
    ],
    queue_depth: 31,
    limits: DeviceLimits::SATA_FLASH,
    ..NVME_DATACENTER
};

/// Samsung 850 EVO, 250 GB.
pub(crate) const SAMSUNG_850_EVO: DeviceInfo = DeviceInfo {
    name: "samsung-850-evo",
    summary: "Samsung 850 EVO 250 GB (2014, SATA, TLC with SLC cache), nearly full",
    source: "figures measured on one drive that ublk-disksim publishes (fio through NTFS): times of \
             pages by percentiles of reads at depth 1, flush_overhead_us by writes with fsync; \
             command_us and write_command_us of the 860 EVO; data sheet: 3 GB of SLC",
    preset: &[
        ("capacity_sectors", "488397168"),
        ("ways", "1"),
        ("dies", "1"),
        ("page_bytes", "16KiB"),
        ("pages_per_program", "3"),
        ("pages_per_block", "768"),
        ("read_us", "40"),
        ("read_middle_us", "47"),
        ("read_slow_us", "59"),
        ("program_us", "2500"),
        ("erase_us", "4000"),
        ("suspend_program", "off"),
        ("suspend_erase_us", "300"),
        ("reads_first", "off"),
        ("link_mb_per_s", "600"),
        ("link", "half_duplex"),
        ("command_us", "10.15"),
        ("read_overhead_us", "12"),
        ("write_command_us", "11.2"),
        ("write_overhead_us", "5"),
        ("flush_queued", "off"),
        ("flush_overhead_us", "2200"),
        ("buffer_bytes", "4MiB"),
        ("power_loss_protection", "off"),
        ("state", "used"),
        ("filled_pct", "95"),
        ("gc_suspend", "off"),
        ("slc_bytes", "3GB"),
        ("slc_program_us", "900"),
        ("layout", "scattered"),
    ],
    queue_depth: 31,
    limits: DeviceLimits::SATA_FLASH,
    ..NVME_DATACENTER
};
