// SPDX-License-Identifier: MIT OR Apache-2.0
//! NILFS2.

use super::NilfsOptions;
use crate::jbd::Barrier;
use crate::kind::{ATIME, BARRIER, Kind, Mounting, numbers, switch};
use crate::vfs::VfsFeatures;
use blklab_types::Unit;

/// NILFS2.
pub(crate) const NILFS2: Kind<NilfsOptions> = Kind {
    name: "nilfs2",
    summary: "NILFS2: everything is appended to a log",
    page: Some("nilfs2"),
    options: &[
        numbers(
            "interval_s",
            (1, 3600),
            Unit::S,
            "5",
            "from the first change to the next checkpoint",
        ),
        numbers(
            "watermark_blocks",
            (1, 1_048_576),
            Unit::Blocks,
            "3600",
            "dirty blocks above which files are written at once",
        ),
        numbers(
            "super_root_s",
            (1, 3600),
            Unit::S,
            "30",
            "time after which logs without a checkpoint are followed by one",
        ),
        numbers(
            "reserved_percent",
            (1, 49),
            Unit::Percent,
            "5",
            "share of the segments that writers cannot fill, at least 8 segments",
        ),
        switch("cleaner", "1", "whether the cleaner runs"),
        numbers(
            "cleaning_interval_s",
            (1, 3600),
            Unit::S,
            "5",
            "between passes of the cleaner",
        ),
        numbers(
            "segments_per_clean",
            (1, 32),
            Unit::Count,
            "2",
            "segments that a pass cleans",
        ),
        numbers(
            "protection_s",
            (0, 31_536_000),
            Unit::S,
            "3600",
            "time for which a written segment is not cleaned",
        ),
        BARRIER,
        ATIME,
    ],
    choose: options,
    ..Kind::PLAIN
};

/// The options of a volume.
fn options(m: &Mounting<'_>) -> NilfsOptions {
    let vfs = VfsFeatures::of(m.kernel);
    let d = NilfsOptions::default();
    let number = |key, default| m.number_or(key, default);
    let flag = |key, default| m.flag(key, default);
    NilfsOptions {
        interval_s: number("interval_s", d.interval_s),
        watermark_blocks: number("watermark_blocks", d.watermark_blocks),
        super_root_s: number("super_root_s", d.super_root_s),
        reserved_percent: number("reserved_percent", d.reserved_percent),
        cleaner: flag("cleaner", d.cleaner),
        cleaning_interval_s: number("cleaning_interval_s", d.cleaning_interval_s),
        segments_per_clean: number("segments_per_clean", d.segments_per_clean),
        protection_s: number("protection_s", d.protection_s),
        barrier: Barrier::new(flag("barrier", true), vfs.flush_fua),
        atime: m.atime(vfs.atime),
        block_cost: (m.cpu_time)(d.block_cost),
        ..d
    }
}
