// SPDX-License-Identifier: MIT OR Apache-2.0
//! Disks as data: what differs from the defaults of [`super::PARAMS`].
//!
//! The older ones are the disks whose DiskSim models were validated against the
//! real drives; of these the figures of the published parameter files are used,
//! with a curve fitted to the measured seeks (its error is in the source line)
//! and with generated zones between the outermost and the innermost one. Buses
//! there are those of the measurement, about 5 MB/s. The laws of the controller are
//! those of disks made from the files where those are at hand (Atlas 10K, Cheetah
//! 4LP, IBM 18ES, HP C2490A); the longer head switch is taken over where it brings
//! the preset nearer to the measured disk (Cheetah 4LP, IBM 18ES).

use crate::info::{Build, DeviceInfo, Settings};
use crate::limits::DeviceLimits;
use crate::param;

type Values = &'static [(&'static str, &'static str)];

const fn disk(
    name: &'static str,
    queue_depth: u32,
    summary: &'static str,
    source: &'static str,
    preset: Values,
) -> DeviceInfo {
    DeviceInfo {
        name,
        summary,
        source,
        params: super::PARAMS,
        preset,
        queue_depth,
        limits: DeviceLimits::NONE,
        settings: Settings {
            limits: by_write_cache,
            ..Settings::NONE
        },
        build: Build::Plain(super::build),
    }
}

/// A disk whose cache is off says so, and is never sent a flush
/// (drivers/scsi/sd.c, `sd_set_flush_flag`; before, `sd_revalidate_disk`).
fn by_write_cache(values: &param::Values, limits: DeviceLimits) -> DeviceLimits {
    DeviceLimits {
        has_flush: values.on("write_cache"),
        ..limits
    }
}

const DATA_SHEETS_2008: &str = "typical figures of data sheets and reviews of 2008";

/// 3.5 inch, 500 GB: the defaults.
pub(crate) const SATA_7200_2008: DeviceInfo = disk(
    "sata-7200-2008",
    31,
    "3.5 inch SATA, 7200 rpm, 500 GB, 2008",
    DATA_SHEETS_2008,
    &[],
);

/// 3.5 inch, one platter.
pub(crate) const SATA_7200_2008_250G: DeviceInfo = disk(
    "sata-7200-2008-250g",
    31,
    "3.5 inch SATA, 7200 rpm, 250 GB on one platter, 2008",
    DATA_SHEETS_2008,
    &[
        ("capacity_sectors", "488397168"),
        ("surfaces", "2"),
        ("track_outer_sectors", "1270"),
        ("track_inner_sectors", "814"),
        ("buffer_bytes", "8MiB"),
        ("segments", "16"),
    ],
);

/// 3.5 inch, 1 TB.
pub(crate) const SATA_7200_2008_1TB: DeviceInfo = disk(
    "sata-7200-2008-1tb",
    31,
    "3.5 inch SATA, 7200 rpm, 1 TB, 2008",
    DATA_SHEETS_2008,
    &[
        ("capacity_sectors", "1953525168"),
        ("surfaces", "6"),
        ("track_outer_sectors", "1872"),
        ("track_inner_sectors", "895"),
        ("buffer_bytes", "32MiB"),
    ],
);

/// 3.5 inch, 2 TB.
pub(crate) const ST2000DM006: DeviceInfo = disk(
    "st2000dm006",
    31,
    "Seagate ST2000DM006, SATA, 7200 rpm, 2 TB, 2016",
    "figures measured on one drive that ublk-disksim publishes (fio through NTFS); seeks, \
     windows of the two queues and the rate are fitted, see the table of measured disks",
    &[
        ("capacity_sectors", "3907029168"),
        ("track_outer_sectors", "3900"),
        ("track_inner_sectors", "1950"),
        ("seek_min_ms", "1.2"),
        ("seek_avg_ms", "14.8"),
        ("seek_max_ms", "22"),
        ("buffer_bytes", "64MiB"),
        ("max_dirty_ranges", "128"),
        ("destage_window", "17"),
        ("selection", "sptf_window"),
        ("window", "8"),
        ("age_limit_ms", "500"),
    ],
);

/// 3.5 inch, 8 TB, shingled.
pub(crate) const SMR_8TB: DeviceInfo = disk(
    "smr-8tb",
    31,
    "3.5 inch SATA, 5900 rpm, 8 TB, shingled recording, 2014",
    "data sheet of the Seagate Archive class (rotation, rate, size); media cache, bands \
     and order of cleaning after Skylight (FAST 2015); nothing is fitted",
    &[
        ("capacity_sectors", "15628053168"),
        ("rpm", "5900"),
        ("surfaces", "12"),
        ("track_outer_sectors", "3770"),
        ("track_inner_sectors", "1790"),
        ("seek_avg_ms", "12"),
        ("seek_max_ms", "22"),
        ("buffer_bytes", "128MiB"),
        ("max_dirty_ranges", "128"),
        ("destage_window", "1"),
        ("media_cache_bytes", "25GB"),
    ],
);

/// 2.5 inch.
pub(crate) const LAPTOP_5400: DeviceInfo = disk(
    "laptop-5400",
    31,
    "2.5 inch SATA, 5400 rpm, 320 GB, 2008",
    "Hitachi Travelstar 5K320 OEM specification (typical seek times)",
    &[
        ("capacity_sectors", "625142448"),
        ("rpm", "5400"),
        ("track_outer_sectors", "1628"),
        ("track_inner_sectors", "825"),
        ("seek_min_ms", "1.0"),
        ("seek_avg_ms", "12"),
        ("seek_max_ms", "20"),
        ("head_switch_ms", "1.0"),
        ("buffer_bytes", "8MiB"),
        ("segments", "16"),
    ],
);

/// 10,000 rpm.
pub(crate) const SAS_10K: DeviceInfo = disk(
    "sas-10k",
    32,
    "3.5 inch SCSI or SAS, 10,000 rpm, 73 GB, 2005",
    "typical figures of data sheets of 2005",
    &[
        ("capacity_sectors", "143374744"),
        ("rpm", "10000"),
        ("surfaces", "4"),
        ("track_outer_sectors", "879"),
        ("track_inner_sectors", "527"),
        ("seek_min_ms", "0.4"),
        ("seek_avg_ms", "4.7"),
        ("seek_max_ms", "10"),
        ("head_switch_ms", "0.5"),
        ("write_settle_ms", "0.5"),
        ("buffer_bytes", "8MiB"),
        ("segments", "16"),
        ("write_cache", "off"),
    ],
);

/// 15,000 rpm.
pub(crate) const SAS_15K: DeviceInfo = disk(
    "sas-15k",
    64,
    "3.5 inch SCSI, FC or SAS, 15,000 rpm, 73 GB, 2005",
    "typical figures of data sheets of 2005",
    &[
        ("capacity_sectors", "143374744"),
        ("rpm", "15000"),
        ("surfaces", "4"),
        ("track_outer_sectors", "742"),
        ("track_inner_sectors", "453"),
        ("seek_min_ms", "0.3"),
        ("seek_avg_ms", "3.5"),
        ("seek_max_ms", "8"),
        ("head_switch_ms", "0.35"),
        ("write_settle_ms", "0.5"),
        ("write_cache", "off"),
    ],
);

/// 10,000 rpm with a serpentine layout.
pub(crate) const ATLAS_10K_V: DeviceInfo = disk(
    "atlas-10k-v",
    8,
    "Maxtor Atlas 10K V, SCSI, 10,001 rpm, 300 GB, 2004",
    "model extracted for DiskSim 4.0 (Western Digital's fork); seeks fitted, rms 0.12 ms; \
     buffer size of the data sheet",
    &[
        ("capacity_sectors", "585937499"),
        ("rpm", "10001"),
        ("surfaces", "8"),
        ("cylinders", "80512"),
        ("track_outer_sectors", "1170"),
        ("track_inner_sectors", "560"),
        ("layout", "serpentine"),
        ("head_skew", "0.24"),
        ("cylinder_skew", "0.24"),
        ("seek_curve", "three_part"),
        ("seek_a", "1.036"),
        ("seek_b", "0.02402"),
        ("seek_limit_cylinders", "24153"),
        ("seek_c", "3.034"),
        ("seek_e", "0.00007596"),
        ("head_switch_ms", "0.116"),
        ("write_settle_ms", "0.15"),
        ("overhead_read_hit_ms", "0.10"),
        ("overhead_read_miss_ms", "0.10"),
        ("overhead_write_hit_ms", "0.145"),
        ("overhead_write_miss_ms", "0.34"),
        ("buffer_bytes", "8MiB"),
        ("segments", "16"),
        ("read_ahead_sectors", "512"),
        ("write_cache", "off"),
        ("selection", "sptf"),
    ],
);

/// 10,000 rpm.
pub(crate) const ATLAS_10K: DeviceInfo = disk(
    "atlas-10k",
    1,
    "Quantum Atlas 10K, SCSI, 10,025 rpm, 9 GB, 1999",
    "DiskSim 4.0 validation; seeks fitted, rms 0.30 ms; DiskSim's own error 0.268 ms",
    &[
        ("capacity_sectors", "17938986"),
        ("rpm", "10025"),
        ("surfaces", "6"),
        ("zones", "24"),
        ("cylinders", "10042"),
        ("track_outer_sectors", "334"),
        ("track_inner_sectors", "229"),
        ("head_skew", "0.1886"),
        ("cylinder_skew", "0.3383"),
        ("seek_curve", "three_part"),
        ("seek_a", "1.312"),
        ("seek_b", "0.0821"),
        ("seek_limit_cylinders", "1506"),
        ("seek_c", "3.306"),
        ("seek_e", "0.000725"),
        ("head_switch_ms", "0.176"),
        ("write_settle_ms", "0.487"),
        ("zero_latency", "on"),
        ("overhead_read_hit_ms", "0.184"),
        ("overhead_read_miss_ms", "0"),
        ("overhead_write_hit_ms", "0.186"),
        ("overhead_write_miss_ms", "0.345"),
        ("bus_mb_per_s", "5.172"),
        ("buffer_bytes", "1914880"),
        ("segments", "10"),
        ("read_ahead_sectors", "354"),
        ("read_ahead_resume", "off"),
        ("dirty_limit_bytes", "191488"),
        ("max_dirty_ranges", "1"),
        ("selection", "fcfs"),
        ("partial_hits", "on"),
        ("write_segments", "keep"),
    ],
);

/// 10,000 rpm.
pub(crate) const CHEETAH_9LP: DeviceInfo = disk(
    "cheetah-9lp",
    1,
    "Seagate ST39102LW Cheetah 9LP, SCSI, 10,045 rpm, 9 GB, 1998",
    "DiskSim 4.0 validation; seeks fitted, rms 0.06 ms; DiskSim's own error 0.107 ms",
    &[
        ("capacity_sectors", "17783240"),
        ("rpm", "10045"),
        ("surfaces", "12"),
        ("zones", "11"),
        ("cylinders", "6962"),
        ("track_outer_sectors", "254"),
        ("track_inner_sectors", "167"),
        ("head_skew", "0.3819"),
        ("cylinder_skew", "0.5236"),
        ("seek_curve", "three_part"),
        ("seek_a", "1.082"),
        ("seek_b", "0.0967"),
        ("seek_limit_cylinders", "1044"),
        ("seek_c", "3.108"),
        ("seek_e", "0.001080"),
        ("head_switch_ms", "0.03"),
        ("write_settle_ms", "0.461"),
        ("overhead_read_hit_ms", "0.07"),
        ("overhead_read_miss_ms", "0.28"),
        ("overhead_write_hit_ms", "0.75"),
        ("overhead_write_miss_ms", "0.91"),
        ("bus_mb_per_s", "4.876"),
        ("buffer_bytes", "861696"),
        ("segments", "3"),
        ("read_ahead_resume", "off"),
        ("write_cache", "off"),
        ("selection", "fcfs"),
    ],
);

/// 10,000 rpm.
pub(crate) const CHEETAH_4LP: DeviceInfo = disk(
    "cheetah-4lp",
    1,
    "Seagate ST34501N Cheetah 4LP, SCSI, 10,033 rpm, 4.5 GB, 1997",
    "DiskSim 4.0 validation; seeks fitted, rms 0.14 ms; DiskSim's own error 0.318 ms",
    &[
        ("capacity_sectors", "8887200"),
        ("rpm", "10033"),
        ("surfaces", "8"),
        ("zones", "7"),
        ("cylinders", "6581"),
        ("track_outer_sectors", "195"),
        ("track_inner_sectors", "131"),
        ("head_skew", "0.1128"),
        ("cylinder_skew", "0.1897"),
        ("seek_curve", "three_part"),
        ("seek_a", "1.025"),
        ("seek_b", "0.1639"),
        ("seek_limit_cylinders", "789"),
        ("seek_c", "4.187"),
        ("seek_e", "0.001809"),
        ("head_switch_ms", "0.572"),
        ("write_settle_ms", "0"),
        ("overhead_read_hit_ms", "0.068"),
        ("overhead_read_miss_ms", "0.608"),
        ("overhead_write_hit_ms", "0.474"),
        ("overhead_write_miss_ms", "0.431"),
        ("bus_mb_per_s", "4.83"),
        ("buffer_bytes", "433152"),
        ("segments", "3"),
        ("read_ahead_resume", "off"),
        ("dirty_limit_bytes", "144384"),
        ("max_dirty_ranges", "1"),
        ("selection", "fcfs"),
        ("partial_hits", "on"),
        ("reads_make_room", "on"),
        ("write_segments", "keep"),
    ],
);

/// 7200 rpm.
pub(crate) const IBM_18ES: DeviceInfo = disk(
    "ibm-18es",
    1,
    "IBM DNES-309170 (Ultrastar 18ES), SCSI, 7200 rpm, 9 GB, 1998",
    "DiskSim 4.0 validation; seeks fitted, rms 0.53 ms; DiskSim's own error 0.135 ms",
    &[
        ("capacity_sectors", "17916240"),
        ("surfaces", "5"),
        ("zones", "55"),
        ("cylinders", "11474"),
        ("track_outer_sectors", "390"),
        ("track_inner_sectors", "247"),
        ("head_skew", "0.1487"),
        ("cylinder_skew", "0.2590"),
        ("seek_curve", "three_part"),
        ("seek_a", "1.325"),
        ("seek_b", "0.1460"),
        ("seek_limit_cylinders", "573"),
        ("seek_c", "4.444"),
        ("seek_e", "0.000747"),
        ("head_switch_ms", "0.956"),
        ("write_settle_ms", "0.126"),
        ("overhead_read_hit_ms", "0.082"),
        ("overhead_read_miss_ms", "0.252"),
        ("overhead_write_hit_ms", "0.083"),
        ("overhead_write_miss_ms", "0.494"),
        ("bus_mb_per_s", "5.069"),
        ("buffer_bytes", "1831424"),
        ("segments", "7"),
        ("read_ahead_resume", "off"),
        ("dirty_limit_bytes", "261632"),
        ("max_dirty_ranges", "1"),
        ("read_hits_on_writes", "off"),
        ("selection", "fcfs"),
        ("partial_hits", "on"),
    ],
);

/// 7200 rpm.
pub(crate) const ATLAS_III: DeviceInfo = disk(
    "atlas-iii",
    1,
    "Quantum Atlas III, SCSI, 7200 rpm, 9 GB, 1998",
    "DiskSim 4.0 validation; seeks fitted, rms 0.12 ms; DiskSim's own error 0.378 ms",
    &[
        ("capacity_sectors", "17783250"),
        ("surfaces", "10"),
        ("zones", "9"),
        ("cylinders", "8057"),
        ("track_outer_sectors", "256"),
        ("track_inner_sectors", "168"),
        ("head_skew", "0.2930"),
        ("cylinder_skew", "0.3359"),
        ("seek_curve", "three_part"),
        ("seek_a", "1.911"),
        ("seek_b", "0.1412"),
        ("seek_limit_cylinders", "966"),
        ("seek_c", "5.028"),
        ("seek_e", "0.001297"),
        ("head_switch_ms", "0.999"),
        ("write_settle_ms", "0"),
        ("overhead_read_hit_ms", "0.37"),
        ("overhead_read_miss_ms", "0"),
        ("overhead_write_hit_ms", "0.41"),
        ("overhead_write_miss_ms", "0.48"),
        ("bus_mb_per_s", "4.83"),
        ("buffer_bytes", "196608"),
        ("segments", "6"),
        ("read_ahead_resume", "off"),
        ("write_cache", "off"),
        ("selection", "fcfs"),
        ("read_ahead_after", "1"),
    ],
);

/// 7200 rpm.
pub(crate) const BARRACUDA_4LP: DeviceInfo = disk(
    "barracuda-4lp",
    1,
    "Seagate ST32171W Barracuda 4LP, SCSI, 7200 rpm, 2 GB, 1996",
    "DiskSim 4.0 validation; seeks fitted, rms 0.25 ms; DiskSim's own error 0.349 ms",
    &[
        ("capacity_sectors", "4110000"),
        ("surfaces", "5"),
        ("zones", "11"),
        ("cylinders", "5172"),
        ("track_outer_sectors", "186"),
        ("track_inner_sectors", "119"),
        ("head_skew", "0.1989"),
        ("cylinder_skew", "0.2796"),
        ("seek_curve", "three_part"),
        ("seek_a", "2.029"),
        ("seek_b", "0.1937"),
        ("seek_limit_cylinders", "1293"),
        ("seek_c", "5.975"),
        ("seek_e", "0.002146"),
        ("head_switch_ms", "0.1"),
        ("write_settle_ms", "0"),
        ("overhead_read_hit_ms", "0.08"),
        ("overhead_read_miss_ms", "0.61"),
        ("overhead_write_hit_ms", "1.01"),
        ("overhead_write_miss_ms", "1.05"),
        ("bus_mb_per_s", "3.821"),
        ("buffer_bytes", "431616"),
        ("segments", "3"),
        ("read_ahead_resume", "off"),
        ("write_cache", "off"),
        ("selection", "fcfs"),
    ],
);

/// 5400 rpm.
pub(crate) const HP_C3323A: DeviceInfo = disk(
    "hp-c3323a",
    1,
    "HP C3323A, SCSI, 5396 rpm, 1 GB, 1994",
    "DiskSim 4.0 validation; seeks fitted, rms 0.15 ms; DiskSim's own error 0.306 ms; \
     bus rate assumed",
    &[
        ("capacity_sectors", "2056008"),
        ("rpm", "5396"),
        ("surfaces", "7"),
        ("zones", "8"),
        ("cylinders", "2982"),
        ("track_outer_sectors", "120"),
        ("track_inner_sectors", "72"),
        ("head_skew", "0.1417"),
        ("cylinder_skew", "0.2833"),
        ("seek_curve", "three_part"),
        ("seek_a", "1.620"),
        ("seek_b", "0.2694"),
        ("seek_limit_cylinders", "596"),
        ("seek_c", "5.764"),
        ("seek_e", "0.004164"),
        ("head_switch_ms", "0.65"),
        ("write_settle_ms", "0.07"),
        ("overhead_read_hit_ms", "0.35"),
        ("overhead_read_miss_ms", "2.50"),
        ("overhead_write_hit_ms", "3.29"),
        ("overhead_write_miss_ms", "3.29"),
        ("bus_mb_per_s", "10"),
        ("buffer_bytes", "524288"),
        ("segments", "2"),
        ("read_ahead_resume", "off"),
        ("write_cache", "off"),
        ("selection", "fcfs"),
    ],
);

/// 6400 rpm.
pub(crate) const HP_C2490A: DeviceInfo = disk(
    "hp-c2490a",
    1,
    "HP C2490A, SCSI, 6398 rpm, 2 GB, 1993",
    "DiskSim 4.0 validation; seeks fitted, rms 0.20 ms; DiskSim's own error 0.254 ms; \
     bus rate assumed",
    &[
        ("capacity_sectors", "4165272"),
        ("rpm", "6398"),
        ("surfaces", "18"),
        ("zones", "11"),
        ("cylinders", "2629"),
        ("track_outer_sectors", "108"),
        ("track_inner_sectors", "68"),
        ("head_skew", "0.1667"),
        ("cylinder_skew", "0.3333"),
        ("seek_curve", "three_part"),
        ("seek_a", "1.915"),
        ("seek_b", "0.2967"),
        ("seek_limit_cylinders", "210"),
        ("seek_c", "5.317"),
        ("seek_e", "0.004611"),
        ("head_switch_ms", "0.992"),
        ("write_settle_ms", "0"),
        ("overhead_read_hit_ms", "1.42"),
        ("overhead_read_miss_ms", "2.356"),
        ("overhead_write_hit_ms", "3.28"),
        ("overhead_write_miss_ms", "3.28"),
        ("bus_mb_per_s", "3.45"),
        ("buffer_bytes", "131072"),
        ("segments", "1"),
        ("read_ahead_sectors", "128"),
        ("write_cache", "off"),
        ("selection", "fcfs"),
        ("partial_hits", "on"),
        ("reads_make_room", "on"),
        ("write_segments", "keep"),
    ],
);

/// 5400 rpm.
pub(crate) const DEC_RZ26: DeviceInfo = disk(
    "dec-rz26",
    1,
    "DEC RZ26, SCSI, 5360 rpm, 1 GB, 1992",
    "DiskSim 4.0 validation; seeks fitted, rms 0.16 ms; DiskSim's own error 0.340 ms; \
     bus rate assumed",
    &[
        ("capacity_sectors", "2050860"),
        ("rpm", "5360"),
        ("surfaces", "14"),
        ("track_outer_sectors", "58"),
        ("track_inner_sectors", "58"),
        ("head_skew", "0.1207"),
        ("cylinder_skew", "0.4310"),
        ("seek_curve", "three_part"),
        ("seek_a", "1.731"),
        ("seek_b", "0.3688"),
        ("seek_limit_cylinders", "259"),
        ("seek_c", "6.454"),
        ("seek_e", "0.004897"),
        ("head_switch_ms", "0.865"),
        ("write_settle_ms", "0"),
        ("overhead_read_hit_ms", "1.23"),
        ("overhead_read_miss_ms", "1.49"),
        ("overhead_write_hit_ms", "2.17"),
        ("overhead_write_miss_ms", "2.17"),
        ("bus_mb_per_s", "10"),
        ("buffer_bytes", "291840"),
        ("segments", "10"),
        ("read_ahead_resume", "off"),
        ("write_cache", "off"),
        ("selection", "fcfs"),
    ],
);
