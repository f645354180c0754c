// SPDX-License-Identifier: MIT OR Apache-2.0
//! NILFS2.

use super::{atime, flag, number};
use blklab_experiment::Experiment;
use blklab_fs::{Barrier, ExtFeatures, NilfsOptions};

/// The options of a volume.
pub(super) fn options(e: &Experiment) -> NilfsOptions {
    let spec = &e.filesystem;
    let of_kernel = ExtFeatures::of_release(e.kernel.numbers());
    let d = NilfsOptions::default();
    let number = |key, default| number(spec, key, default);
    let flag = |key, default| flag(spec, key, default);
    NilfsOptions {
        interval_s: number("interval_s", d.interval_s),
        watermark_blocks: number("watermark_blocks", d.watermark_blocks),
        super_root_s: number("super_root_s", d.super_root_s),
        reserved_percent: number("reserved_percent", d.reserved_percent),
        cleaner: flag("cleaner", d.cleaner),
        cleaning_interval_s: number("cleaning_interval_s", d.cleaning_interval_s),
        segments_per_clean: number("segments_per_clean", d.segments_per_clean),
        protection_s: number("protection_s", d.protection_s),
        barrier: Barrier::new(flag("barrier", true), of_kernel.flush_fua),
        atime: atime(spec, of_kernel.atime),
        block_cost: e.cpu_time(d.block_cost),
        ..d
    }
}
