// SPDX-License-Identifier: MIT OR Apache-2.0
//! ext4.

use super::options::CHANGES;
use super::{Ext4Features, Ext4Options};
use crate::jbd::{Barrier, DataMode};
use crate::kind::{
    ATIME, BARRIER, COMMIT_S, INODE_SIZE, JOURNAL_BLOCKS, Kind, Mounting, switch, words,
};
use blklab_kernel::KernelVersion;

/// ext4.
pub(crate) const EXT4: Kind<Ext4Options> = Kind {
    name: "ext4",
    summary: "ext4, from 2.6.28 on: extents, delayed allocation, jbd2",
    page: Some("ext4"),
    since: KernelVersion::v2_6(28),
    options: &[
        words(
            "data",
            &["ordered", "writeback", "journal"],
            "ordered",
            "what is written before a transaction commits",
        ),
        BARRIER,
        INODE_SIZE,
        JOURNAL_BLOCKS,
        COMMIT_S,
        ATIME,
        switch(
            "delalloc",
            "1",
            "blocks are allocated when they are written; no effect with data=journal",
        ),
        switch(
            "dioread_nolock",
            "by release: 0, then 1 from 5.6 on",
            "new blocks count as unwritten until their data are on the disk; no effect without delalloc",
        ),
        switch(
            "auto_da_alloc",
            "1",
            "data that replace a file are written at once; from 2.6.30 on",
        ),
        words(
            "inode_readahead_blks",
            &["0", "1", "2", "4", "8", "16", "32", "64", "128", "256"],
            "32",
            "blocks of inodes that are read together",
        ),
    ],
    changes: CHANGES,
    choose: options,
    ..Kind::PLAIN
};

/// The options of a volume.
fn options(m: &Mounting<'_>) -> Ext4Options {
    let features = Ext4Features::of(m.kernel);
    let mut o = Ext4Options::new(features);
    let number = |key, default| m.number_or(key, default);
    let switch = |key| m.flag(key, true);
    o.data = match m.option("data") {
        Some("writeback") => DataMode::Writeback,
        Some("journal") => DataMode::Journal,
        _ => o.data,
    };
    o.barrier = Barrier::new(switch("barrier"), features.flush_fua);
    o.atime = m.atime(o.atime);
    o.delalloc = switch("delalloc");
    o.dioread_nolock = m.flag("dioread_nolock", o.dioread_nolock);
    o.auto_da_alloc = switch("auto_da_alloc");
    o.inode_size = number("inode_size", o.inode_size);
    o.journal_blocks = m.number("journal_blocks");
    o.commit_s = number("commit_s", o.commit_s);
    let blocks = m.number("inode_readahead_blks");
    o.inode_readahead_blocks = blocks.unwrap_or(o.inode_readahead_blocks);
    o
}
