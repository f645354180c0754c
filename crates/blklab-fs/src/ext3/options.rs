// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be chosen about an ext2 or ext3 volume, and what the kernel
//! release decides (fs/jbd/commit.c, fs/ext3/{super,inode}.c; 2.6.18 to 3.7).

use crate::jbd::{Barrier, CommitSync, DataMode, JournalRules, READ_BEFORE_OTHERS, SYNC_NO_MORE};
use blklab_pagecache::Atime;
use blklab_types::BioFlags;

blklab_kernel::features! {
    /// What differs between kernels.
    pub struct ExtFeatures {
        /// Flags of commit's data and metadata.
        pub commit_sync: CommitSync = CommitSync::Never,
        /// Commit blocks are synchronous requests (2.6.28 and later).
        pub sync_commit_block: bool = false,
        /// What a synchronous write of the journal carries.
        pub sync_flags: BioFlags = BioFlags::SYNC,
        /// What a read of an inode or of a directory carries.
        pub read_flags: BioFlags = BioFlags::NONE,
        /// Checkpoints write synchronously (3.3 and later).
        pub sync_checkpoint: bool = false,
        /// Write-out of every page opens a handle (up to 2.6.36; in which release
        /// it ended is not known here).
        pub handle_per_page: bool = true,
        /// The data mode if none is asked for.
        pub data: DataMode = DataMode::Ordered,
        /// Access times if nothing is asked for.
        pub atime: Atime = Atime::Strict,
        /// Whether barriers are flush and FUA.
        pub flush_fua: bool = false,
        /// Whether barriers are on if nothing is asked for.
        pub barrier: bool = false,
    }

    /// What releases changed.
    pub(super) const CHANGES = {
        "2.6.19": "reads of inodes and directories are marked as metadata",
            "fs/ext3/inode.c, fs/ext3/namei.c" => {
            read_flags: BioFlags::META,
        }
        "2.6.28": "commit blocks are synchronous requests", "fs/jbd/commit.c, fs/buffer.c" => {
            sync_commit_block: true,
        }
        "2.6.30": "a commit with a synchronous handle writes synchronously; no more follows such writes; data are written back, access times relative by default",
            "fs/jbd/commit.c, include/linux/fs.h, fs/ext3/Kconfig, fs/namespace.c" => {
            commit_sync: CommitSync::SyncHandle,
            sync_flags: SYNC_NO_MORE,
            data: DataMode::Writeback,
            atime: Atime::Relative,
        }
        "2.6.36": "data are ordered by default", "fs/ext3/Kconfig" => {
            data: DataMode::Ordered,
        }
        "2.6.37": "commits always write synchronously, and are flush and FUA instead of barriers; writing a page opens no handle (the release is taken)",
            "fs/jbd/commit.c, fs/ext3/inode.c" => {
            commit_sync: CommitSync::Always,
            handle_per_page: false,
            flush_fua: true,
        }
        "3.1": "barriers are on by default; reads of inodes and directories go before others",
            "fs/ext3/super.c, fs/ext3/inode.c, include/linux/blk_types.h" => {
            read_flags: READ_BEFORE_OTHERS,
            barrier: true,
        }
        "3.3": "checkpoints write synchronously", "fs/jbd/checkpoint.c" => {
            sync_checkpoint: true,
        }
        "3.5": "only commits that a task waits for write synchronously", "fs/jbd/commit.c" => {
            commit_sync: CommitSync::Waited,
        }
    };
}

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
    use blklab_kernel::KernelVersion;

    #[test]
    fn every_change_is_in_the_table() {
        let era = KernelVersion::v2_6(16)..KernelVersion::FOREVER;
        blklab_kernel::check_changes(CHANGES, era, ExtFeatures::of);
    }
}
