// SPDX-License-Identifier: MIT OR Apache-2.0
//! NILFS2.

use blklab_experiment::Experiment;
use blklab_fs::{Atime, ExtFeatures, NilfsOptions, barrier};

/// The options of a volume.
pub(super) fn options(e: &Experiment) -> NilfsOptions {
    let spec = &e.filesystem;
    let of_kernel = ExtFeatures::of_release(e.kernel.numbers());
    let d = NilfsOptions::default();
    let number = |key, default: u32| {
        let value = spec.number(key).and_then(|n| u32::try_from(n).ok());
        value.unwrap_or(default)
    };
    let flag = |key, default: bool| spec.number(key).map_or(default, |n| n != 0);
    NilfsOptions {
        interval_s: number("interval_s", d.interval_s),
        watermark_blocks: number("watermark_blocks", d.watermark_blocks),
        super_root_s: number("super_root_s", d.super_root_s),
        reserved_percent: number("reserved_percent", d.reserved_percent),
        cleaner: flag("cleaner", d.cleaner),
        cleaning_interval_s: number("cleaning_interval_s", d.cleaning_interval_s),
        segments_per_clean: number("segments_per_clean", d.segments_per_clean),
        protection_s: number("protection_s", d.protection_s),
        barrier: barrier(flag("barrier", true), of_kernel),
        atime: match spec.option("atime") {
            Some("strict") => Atime::Strict,
            Some("relative") => Atime::Relative,
            Some("never") => Atime::Never,
            _ => of_kernel.atime,
        },
        block_cost: e.cpu_time(d.block_cost),
        ..d
    }
}
