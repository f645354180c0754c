// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be chosen about an ext2 or ext3 volume, and what the kernel
//! release decides (fs/jbd/commit.c, fs/ext3/{super,inode}.c; 2.6.18 to 3.7).

use crate::jbd::{Barrier, CommitSync, DataMode, JournalRules, inode_read_flags, sync_flags};
use blklab_kernel::{Change, KernelVersion};
use blklab_pagecache::Atime;
use blklab_types::BioFlags;

/// What differs between kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtFeatures {
    /// Flags of commit's data and metadata.
    pub commit_sync: CommitSync,
    /// Commit blocks are synchronous requests (2.6.28 and later).
    pub sync_commit_block: bool,
    /// What a synchronous write of the journal carries.
    pub sync_flags: BioFlags,
    /// What a read of an inode or of a directory carries.
    pub read_flags: BioFlags,
    /// Checkpoints write synchronously (3.3 and later).
    pub sync_checkpoint: bool,
    /// Write-out of every page opens a handle (up to 2.6.36; in which release
    /// it ended is not known here).
    pub handle_per_page: bool,
    /// The data mode if none is asked for.
    pub data: DataMode,
    /// Access times if nothing is asked for.
    pub atime: Atime,
    /// Whether barriers are flush and FUA.
    pub flush_fua: bool,
    /// Whether barriers are on if nothing is asked for.
    pub barrier: bool,
}

impl ExtFeatures {
    /// The features of a release.
    pub fn of(kernel: KernelVersion) -> ExtFeatures {
        ExtFeatures {
            commit_sync: match () {
                () if kernel.since(3, 5) => CommitSync::Waited,
                () if kernel.since_2_6(37) => CommitSync::Always,
                () if kernel.since_2_6(30) => CommitSync::SyncHandle,
                () => CommitSync::Never,
            },
            sync_commit_block: kernel.since_2_6(28),
            sync_flags: sync_flags(kernel),
            read_flags: inode_read_flags(kernel),
            sync_checkpoint: kernel.since(3, 3),
            handle_per_page: !kernel.since_2_6(37),
            data: if kernel.since_2_6(30) && !kernel.since_2_6(36) {
                DataMode::Writeback
            } else {
                DataMode::Ordered
            },
            atime: if kernel.since_2_6(30) {
                Atime::Relative
            } else {
                Atime::Strict
            },
            flush_fua: kernel.since_2_6(37),
            barrier: kernel.since(3, 1),
        }
    }
}

/// One entry for each release at which [`ExtFeatures::of`] changes.
pub(super) const CHANGES: &[Change] = &[
    Change {
        release: KernelVersion::v2_6(19),
        what: "reads of inodes and directories are marked as metadata",
        source: "fs/ext3/inode.c, fs/ext3/namei.c",
    },
    Change {
        release: KernelVersion::v2_6(28),
        what: "commit blocks are synchronous requests",
        source: "fs/jbd/commit.c, fs/buffer.c",
    },
    Change {
        release: KernelVersion::v2_6(30),
        what: "a commit with a synchronous handle writes synchronously; no more follows such writes; data are written back, access times relative by default",
        source: "fs/jbd/commit.c, include/linux/fs.h, fs/ext3/Kconfig, fs/namespace.c",
    },
    Change {
        release: KernelVersion::v2_6(36),
        what: "data are ordered by default",
        source: "fs/ext3/Kconfig",
    },
    Change {
        release: KernelVersion::v2_6(37),
        what: "commits always write synchronously, and are flush and FUA instead of barriers; writing a page opens no handle (the release is taken)",
        source: "fs/jbd/commit.c, fs/ext3/inode.c",
    },
    Change {
        release: KernelVersion::new(3, 1),
        what: "barriers are on by default; reads of inodes and directories go before others",
        source: "fs/ext3/super.c, fs/ext3/inode.c, include/linux/blk_types.h",
    },
    Change {
        release: KernelVersion::new(3, 3),
        what: "checkpoints write synchronously",
        source: "fs/jbd/checkpoint.c",
    },
    Change {
        release: KernelVersion::new(3, 5),
        what: "only commits that somebody waits for write synchronously",
        source: "fs/jbd/commit.c",
    },
];

/// Where mke2fs puts the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalPlace {
    /// The first free blocks of the volume: up to e2fsprogs 1.41.0, and again by
    /// 1.47.0, where files have no extents.
    Front,
    /// From a group in the middle on: from 1.41.1 (September 2008).
    Middle,
}

/// A volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtOptions {
    /// ext3; without a journal it is ext2.
    pub journal: bool,
    /// What the kernel decides.
    pub features: ExtFeatures,
    /// Data mode.
    pub data: DataMode,
    /// Commit blocks.
    pub barrier: Barrier,
    /// Access times.
    pub atime: Atime,
    /// Bytes of an inode: 128 before e2fsprogs 1.41, 256 from then on.
    pub inode_size: u32,
    /// Bytes of disk per inode: 8192 by default before July 2008, 16384 from
    /// then on.
    pub inode_ratio: u32,
    /// Directories of more than one block have an index (`dir_index`), and
    /// listings are in order of hashes.
    pub dir_index: bool,
    /// Draws the groups of the root's directories.
    pub seed: u64,
    /// Blocks of the journal; by the size of the disk if not given.
    pub journal_blocks: Option<u64>,
    /// Where it lies.
    pub journal_place: JournalPlace,
    /// Seconds between commits.
    pub commit_s: u32,
    /// The block group of the directory that holds the files from before the
    /// run.
    pub directory_group: u32,
    /// The process that laid the files out: its number chooses where in a
    /// group a file begins.
    pub creator_pid: u32,
}

impl ExtOptions {
    /// The defaults of a release.
    pub fn new(journal: bool, features: ExtFeatures) -> ExtOptions {
        ExtOptions {
            journal,
            features,
            data: features.data,
            barrier: Barrier::new(features.barrier, features.flush_fua),
            atime: features.atime,
            inode_size: 256,
            inode_ratio: 16384,
            dir_index: true,
            seed: 0,
            journal_blocks: None,
            journal_place: JournalPlace::Middle,
            commit_s: 5,
            directory_group: 0,
            creator_pid: 1000,
        }
    }

    /// Whether commits write file data.
    pub(crate) fn ordered(&self) -> bool {
        self.journal && self.data == DataMode::Ordered
    }

    /// Whether data go through the journal.
    pub(crate) fn journals_data(&self) -> bool {
        self.journal && self.data == DataMode::Journal
    }

    /// What the journal goes by.
    pub(crate) fn journal_rules(&self) -> JournalRules {
        let f = &self.features;
        JournalRules {
            commit_sync: f.commit_sync,
            sync: f.sync_flags,
            commit_block: self
                .barrier
                .commit_block_flags(f.sync_commit_block.then_some(f.sync_flags)),
            mark: BioFlags::NONE,
            sync_checkpoint: f.sync_checkpoint,
            commit_s: self.commit_s,
            batch: JournalRules::BATCH,
            writes_inodes: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_in_the_table() {
        let era = KernelVersion::v2_6(16)..KernelVersion::FOREVER;
        blklab_kernel::check_changes(CHANGES, era, ExtFeatures::of);
    }
}
