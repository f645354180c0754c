// SPDX-License-Identifier: MIT OR Apache-2.0
//! ext2 and ext3.

use super::{atime, flag, number};
use crate::fio::FIO_PID;
use blklab_experiment::Experiment;
use blklab_fs::{Barrier, CommitSync, DataMode, ExtFeatures, ExtOptions};

/// Block groups of 128 MiB.
const GROUP_SECTORS: u64 = 32_768 * 8;

/// The group of the files' directory if none is chosen. The kernel puts a
/// directory of the root into a random group (fs/ext3/ialloc.c,
/// `find_group_orlov`); the measured 2.6.28 had drawn this one. Not the root's
/// own, 0: there the first inodes of a block are taken.
const DIRECTORY_GROUP: u64 = 3;

/// The options of a volume of so many sectors, with a journal or without.
pub(super) fn options(e: &Experiment, sectors: u64, journal: bool) -> ExtOptions {
    let spec = &e.filesystem;
    let mut features = ExtFeatures::of_release(e.kernel.numbers());
    features.commit_sync = match spec.option("jbd_commit_sync") {
        Some("never") => CommitSync::Never,
        Some("always") => CommitSync::Always,
        Some("when_waited") => CommitSync::Waited,
        _ => features.commit_sync,
    };
    let mut o = ExtOptions::new(journal, features);
    let number = |key, default| number(spec, key, default);
    o.data = match spec.option("data") {
        Some("ordered") => DataMode::Ordered,
        Some("writeback") => DataMode::Writeback,
        Some("journal") => DataMode::Journal,
        _ => o.data,
    };
    o.barrier = Barrier::new(flag(spec, "barrier", features.barrier), features.flush_fua);
    o.atime = atime(spec, o.atime);
    o.inode_size = number("inode_size", o.inode_size);
    // e2fsprogs changed both in July 2008.
    let ratio = if o.inode_size == 128 {
        8192
    } else {
        o.inode_ratio
    };
    o.inode_ratio = number("inode_ratio", ratio);
    o.dir_index = flag(spec, "dir_index", true);
    o.seed = e.seed;
    o.journal_blocks = spec.number("journal_blocks");
    o.commit_s = number("commit_s", o.commit_s);
    let last_group = (sectors / GROUP_SECTORS).saturating_sub(1);
    o.directory_group = number("directory_group", DIRECTORY_GROUP.min(last_group) as u32);
    o.creator_pid = number("creator_pid", FIO_PID);
    o
}
