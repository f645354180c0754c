// SPDX-License-Identifier: MIT OR Apache-2.0
//! XFS.

use super::{atime, flag, number};
use blklab_block::md::Level;
use blklab_experiment::Experiment;
use blklab_fs::{XfsFeatures, XfsOptions};

/// Whether the device below carries out barriers: RAID 0 refuses them, RAID 1
/// asks its members.
fn orders_writes(e: &Experiment) -> bool {
    let striped = e.md.is_some_and(|md| md.level != Level::Raid1);
    !striped && e.sq_limits().is_ok_and(|l| l.ordered_writes)
}

/// The options of a volume.
pub(super) fn options(e: &Experiment) -> XfsOptions {
    let spec = &e.filesystem;
    let mut o = XfsOptions::new(XfsFeatures::of_release(e.kernel.numbers()));
    let number = |key, default| number(spec, key, default);
    let flag = |key, default| flag(spec, key, default);
    o.barrier = flag("barrier", o.barrier) && (o.features.flush_fua || orders_writes(e));
    o.log_buffers = number("logbufs", o.log_buffers);
    o.log_buffer_bytes = number("logbsize", o.log_buffer_bytes);
    o.log_blocks = spec.number("log_blocks");
    o.features.contiguous_log_buffers = match spec.option("log_memory") {
        Some(memory) => memory == "contiguous",
        None => o.features.contiguous_log_buffers,
    };
    o.ag_count = spec.number("agcount").and_then(|n| u32::try_from(n).ok());
    o.lazy_count = flag("lazy_count", o.lazy_count);
    o.delayed_logging = flag("delaylog", o.delayed_logging) && o.features.has_delayed_logging;
    o.atime = atime(spec, o.atime);
    o
}

/// What the mount says.
pub(super) fn notes(e: &Experiment) -> Vec<String> {
    let (o, spec) = (options(e), &e.filesystem);
    let mut notes = Vec::new();
    if !o.barrier && spec.number("barrier") != Some(0) {
        notes.push(
            "xfs: the device below refuses barriers: they are off after the trial at mount"
                .to_owned(),
        );
    }
    if !o.delayed_logging && spec.number("delaylog") == Some(1) {
        notes.push("xfs: this kernel has no delayed logging: delaylog does nothing".to_owned());
    }
    notes
}
