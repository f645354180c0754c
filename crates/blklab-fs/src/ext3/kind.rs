// SPDX-License-Identifier: MIT OR Apache-2.0
//! ext2 and ext3.

use super::options::{CHANGES, JournalPlace};
use super::{ExtFeatures, ExtOptions};
use crate::jbd::{Barrier, CommitSync, DataMode};
use crate::kind::{
    ATIME, BARRIER, COMMIT_S, INODE_SIZE, JOURNAL_BLOCKS, Kind, MountOption, Mounting, numbers,
    switch, words,
};
use blklab_types::Unit;

/// ext2.
pub(crate) const EXT2: Kind<ExtOptions> = Kind {
    name: "ext2",
    summary: "ext2: block groups, no journal",
    page: Some("ext3"),
    options: &[
        INODE_SIZE,
        INODE_RATIO,
        DIR_INDEX,
        ATIME,
        DIRECTORY_GROUP_OPTION,
        CREATOR_PID,
    ],
    choose: |m| options(m, false),
    ..Kind::PLAIN
};

/// ext3.
pub(crate) const EXT3: Kind<ExtOptions> = Kind {
    name: "ext3",
    summary: "ext3: journal, ordered, writeback or journalled data",
    page: Some("ext3"),
    options: &[
        DATA,
        BARRIER,
        INODE_SIZE,
        INODE_RATIO,
        DIR_INDEX,
        JOURNAL_BLOCKS,
        JOURNAL_PLACE,
        COMMIT_S,
        ATIME,
        words(
            "jbd_commit_sync",
            &["never", "always", "when_waited"],
            "by release",
            "which commit blocks are written as sync",
        ),
        DIRECTORY_GROUP_OPTION,
        CREATOR_PID,
    ],
    changes: CHANGES,
    choose: |m| options(m, true),
    ..Kind::PLAIN
};

const DATA: MountOption = words(
    "data",
    &["ordered", "writeback", "journal"],
    "ordered; writeback in 2.6.30 to 2.6.35",
    "what is written before a transaction commits",
);
const JOURNAL_PLACE: MountOption = words(
    "journal_place",
    &["front", "middle"],
    "middle",
    "where mke2fs put the journal: front before 1.41.1 (September 2008)",
);
const INODE_RATIO: MountOption = numbers(
    "inode_ratio",
    (1024, 67_108_864),
    Unit::Bytes,
    "16384; 8192 with inodes of 128 bytes",
    "bytes of disk for each inode",
);
const DIR_INDEX: MountOption = switch("dir_index", "1", "directories have a hash index");
const DIRECTORY_GROUP_OPTION: MountOption = numbers(
    "directory_group",
    (0, 131_071),
    Unit::Count,
    "3",
    "group of 128 MiB that has the directory of files from before the run",
);
const CREATOR_PID: MountOption = numbers(
    "creator_pid",
    (0, 4_194_304),
    Unit::Count,
    "fio's",
    "process that made the files from before the run",
);

/// Block groups of 128 MiB.
const GROUP_SECTORS: u64 = 32_768 * 8;

/// The group of the files' directory if none is chosen. The kernel puts a
/// directory of the root into a random group (fs/ext3/ialloc.c,
/// `find_group_orlov`); the measured 2.6.28 had drawn this one. Not the root's
/// own, 0: there the first inodes of a block are taken.
const DIRECTORY_GROUP: u64 = 3;

/// The options of a volume of so many sectors, with a journal or without.
fn options(m: &Mounting<'_>, journal: bool) -> ExtOptions {
    let mut features = ExtFeatures::of(m.kernel);
    features.commit_sync = match m.option("jbd_commit_sync") {
        Some("never") => CommitSync::Never,
        Some("always") => CommitSync::Always,
        Some("when_waited") => CommitSync::Waited,
        _ => features.commit_sync,
    };
    let mut o = ExtOptions::new(journal, features);
    let number = |key, default| m.number_or(key, default);
    o.data = match m.option("data") {
        Some("ordered") => DataMode::Ordered,
        Some("writeback") => DataMode::Writeback,
        Some("journal") => DataMode::Journal,
        _ => o.data,
    };
    o.barrier = Barrier::new(m.flag("barrier", features.barrier), features.flush_fua);
    o.atime = m.atime(o.atime);
    o.inode_size = number("inode_size", o.inode_size);
    // e2fsprogs changed both in July 2008.
    let ratio = if o.inode_size == 128 {
        8192
    } else {
        o.inode_ratio
    };
    o.inode_ratio = number("inode_ratio", ratio);
    o.dir_index = m.flag("dir_index", true);
    o.seed = m.seed;
    o.journal_blocks = m.number("journal_blocks");
    o.journal_place = match m.option("journal_place") {
        Some("front") => JournalPlace::Front,
        Some("middle") => JournalPlace::Middle,
        _ => o.journal_place,
    };
    o.commit_s = number("commit_s", o.commit_s);
    let last_group = (m.sectors / GROUP_SECTORS).saturating_sub(1);
    o.directory_group = number("directory_group", DIRECTORY_GROUP.min(last_group) as u32);
    o.creator_pid = number("creator_pid", m.creator_pid);
    o
}
