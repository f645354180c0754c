// SPDX-License-Identifier: MIT OR Apache-2.0
//! ext4.

use super::{atime, flag, number};
use blklab_experiment::Experiment;
use blklab_fs::{Barrier, DataMode, Ext4Features, Ext4Options};

/// The options of a volume.
pub(super) fn options(e: &Experiment) -> Ext4Options {
    let spec = &e.filesystem;
    let features = Ext4Features::of_release(e.kernel.numbers());
    let mut o = Ext4Options::new(features);
    let number = |key, default| number(spec, key, default);
    let switch = |key| flag(spec, key, true);
    o.data = match spec.option("data") {
        Some("writeback") => DataMode::Writeback,
        Some("journal") => DataMode::Journal,
        _ => o.data,
    };
    o.barrier = Barrier::new(switch("barrier"), features.flush_fua);
    o.atime = atime(spec, o.atime);
    o.delalloc = switch("delalloc");
    o.auto_da_alloc = switch("auto_da_alloc");
    o.inode_size = number("inode_size", o.inode_size);
    o.journal_blocks = spec.number("journal_blocks");
    o.commit_s = number("commit_s", o.commit_s);
    let blocks = spec.number("inode_readahead_blks");
    o.inode_readahead_blocks = blocks.unwrap_or(o.inode_readahead_blocks);
    o
}
