// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be chosen about an ext4 volume, and what the kernel release
//! decides (fs/ext4/{super,inode,mballoc,fsync,page-io}.c, fs/jbd2/commit.c;
//! 2.6.28 to 6.18).

use crate::jbd::{Barrier, CommitSync, DataMode, JournalRules, READ_BEFORE_OTHERS, SYNC_NO_MORE};
use blklab_pagecache::Atime;
use blklab_types::BioFlags;

blklab_kernel::features! {
    /// What differs between kernels.
    pub struct Ext4Features {
        /// Flags of commit's metadata.
        pub commit_sync: CommitSync = CommitSync::Never,
        /// Checkpoints write synchronously (3.1 and later).
        pub sync_checkpoint: bool = false,
        /// Barriers are flush and FUA (2.6.37 and later).
        pub flush_fua: bool = false,
        /// Data go out in bios of many pages (2.6.37, "ext4: use bio layer instead
        /// of buffer layer in mpage_da_submit_io"); before, page by page.
        pub large_bios: bool = false,
        /// Pages that are given a place at a time (2048 from 3.11 on, "ext4:
        /// restructure writeback path"); before, a whole dirty range.
        pub range_pages: u64 = 32768,
        /// Write-out of a file goes on up to so many pages, whatever the flusher
        /// asks for (32768 from 2.6.32, "ext4: Adjust ext4_da_writepages() to write
        /// out larger contiguous chunks", to 3.10).
        pub bump_pages: u64 = 0,
        /// Top-level directories are spread over flex groups, files' data keep out
        /// of the first group of theirs (2.6.30, "ext4: New inode/block allocation
        /// algorithms for flex_bg filesystems"); before, all goes to the parent's
        /// flex group until it is nearly full.
        pub spreads_directories: bool = false,
        /// Files that nobody has open get what they need and nothing set aside
        /// (2.6.32, "ext4: Avoid group preallocation for closed files").
        pub exact_if_closed: bool = false,
        /// fsync waits for the transaction that changed the inode (2.6.32); before,
        /// it commits what runs and flushes the disk's cache as well.
        pub fsync_by_transaction: bool = false,
        /// A file that was cut to nothing is allocated when it is closed (2.6.30,
        /// "ext4: Automatically allocate delay allocated blocks on close").
        pub allocates_on_close: bool = false,
        /// A commit only waits for newly allocated data on their way; before 4.7 it
        /// writes whatever of those files is dirty and has a place.
        pub commit_only_waits: bool = false,
        /// What a synchronous write of the journal carries.
        pub sync_flags: BioFlags = BioFlags::SYNC,
        /// Flags of metadata reads.
        pub read_flags: BioFlags = BioFlags::META,
        /// Flags of all writes of the journal: META and IDLE from 6.8 on, with
        /// which write-back throttling lets them pass ("jbd2: increase the journal
        /// IO's priority").
        pub journal_mark: BioFlags = BioFlags::NONE,
        /// `dioread_nolock` if nothing is asked for (5.6, "ext4: make dioread_nolock the
        /// default").
        pub dioread_nolock: bool = false,
        /// Files may be cached in large folios (6.16, "ext4: enable large folio for
        /// regular file").
        pub large_folios: bool = false,
        /// Access times if nothing is asked for.
        pub atime: Atime = Atime::Strict,
        /// mke2fs of the time makes journals of up to 1 GiB, with checksums.
        pub large_journals: bool = false,
    }

    /// What releases changed.
    pub(super) const CHANGES = {
        "2.6.30": "a commit with a synchronous handle writes synchronously; no more follows such writes; directories spread over flex groups; truncated files are allocated on close; access times are relative by default",
            "fs/jbd2/commit.c, fs/ext4/ialloc.c, fs/ext4/file.c, fs/namespace.c" => {
            commit_sync: CommitSync::SyncHandle,
            spreads_directories: true,
            allocates_on_close: true,
            sync_flags: SYNC_NO_MORE,
            atime: Atime::Relative,
        }
        "2.6.32": "fsync waits for the transaction of the inode; closed files get what they need; a file is written on up to 32768 pages",
            "fs/ext4/fsync.c, fs/ext4/mballoc.c, fs/ext4/inode.c" => {
            bump_pages: 32768,
            exact_if_closed: true,
            fsync_by_transaction: true,
        }
        "2.6.37": "bios of many pages; flush and FUA instead of barriers",
            "fs/ext4/page-io.c, fs/jbd2/commit.c" => {
            flush_fua: true,
            large_bios: true,
        }
        "2.6.39": "commits always write synchronously", "fs/jbd2/commit.c" => {
            commit_sync: CommitSync::Always,
        }
        "3.1": "checkpoints write synchronously; reads of metadata go before others",
            "fs/jbd2/checkpoint.c, fs/ext4/inode.c, include/linux/blk_types.h" => {
            sync_checkpoint: true,
            read_flags: READ_BEFORE_OTHERS,
        }
        "3.11": "2048 pages are given a place at a time, and as many written as the flusher asks for",
            "fs/ext4/inode.c" => {
            range_pages: 2048,
            bump_pages: 0,
        }
        "4.7": "a commit waits for new data, and does not write older ones",
            "fs/jbd2/commit.c, fs/ext4/inode.c" => {
            commit_only_waits: true,
        }
        "4.9": "journals of up to 1 GiB, with checksums, as mke2fs makes them by then",
            "mke2fs(8)" => {
            large_journals: true,
        }
        "5.6": "new blocks are marked as unwritten, and a commit does not wait for their data",
            "fs/ext4/super.c, fs/ext4/inode.c, fs/ext4/page-io.c" => {
            dioread_nolock: true,
        }
        "6.8": "writes of the journal pass write-back throttling", "fs/jbd2/commit.c" => {
            journal_mark: BioFlags(BioFlags::META.0 | BioFlags::IDLE.0),
        }
        "6.16": "read-ahead fills large folios", "fs/ext4/inode.c" => {
            large_folios: true,
        }
    };
}

/// A volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ext4Options {
    /// What the kernel decides.
    pub features: Ext4Features,
    /// Data mode.
    pub data: DataMode,
    /// Commit blocks.
    pub barrier: Barrier,
    /// Access times.
    pub atime: Atime,
    /// Blocks are given to files when they are written out (`delalloc`).
    pub delalloc: bool,
    /// New blocks are marked as unwritten until their data are on the disk
    /// (`dioread_nolock`), where allocation is delayed.
    pub dioread_nolock: bool,
    /// Bytes of an inode: 128 or 256.
    pub inode_size: u32,
    /// Bytes of disk per inode.
    pub inode_ratio: u32,
    /// Blocks of the journal; by the size of the disk if not given.
    pub journal_blocks: Option<u64>,
    /// Seconds between commits.
    pub commit_s: u32,
    /// Blocks of inodes that are read together (`inode_readahead_blks`), a
    /// power of two; 0 for one at a time.
    pub inode_readahead_blocks: u64,
    /// `auto_da_alloc`: files that were cut to nothing are allocated at close.
    pub auto_da_alloc: bool,
}

impl Ext4Options {
    /// The defaults of a release.
    pub fn new(features: Ext4Features) -> Ext4Options {
        Ext4Options {
            features,
            data: DataMode::Ordered,
            barrier: Barrier::new(true, features.flush_fua),
            atime: features.atime,
            delalloc: true,
            dioread_nolock: features.dioread_nolock,
            inode_size: 256,
            inode_ratio: 16384,
            journal_blocks: None,
            commit_s: 5,
            inode_readahead_blocks: 32,
            auto_da_alloc: true,
        }
    }

    /// What the journal goes by.
    pub(super) fn journal_rules(&self) -> JournalRules {
        let f = &self.features;
        JournalRules {
            commit_sync: f.commit_sync,
            sync: f.sync_flags,
            commit_block: self
                .barrier
                .commit_block_flags((f.commit_sync != CommitSync::Never).then_some(f.sync_flags)),
            mark: f.journal_mark,
            sync_checkpoint: f.sync_checkpoint,
            commit_s: self.commit_s,
            // Tags of 16 bytes, where they carry checksums, instead of 8.
            batch: if f.large_journals {
                JournalRules::BATCH / 2
            } else {
                JournalRules::BATCH
            },
            writes_inodes: !f.commit_only_waits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_kernel::KernelVersion;

    #[test]
    fn every_change_is_in_the_table() {
        let era = KernelVersion::v2_6(28)..KernelVersion::FOREVER;
        blklab_kernel::check_changes(CHANGES, era, Ext4Features::of);
    }
}
