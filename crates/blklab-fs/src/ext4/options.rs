// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be chosen about an ext4 volume, and what the kernel release
//! decides (fs/ext4/{super,inode,mballoc,fsync,page-io}.c, fs/jbd2/commit.c;
//! 2.6.28 to 6.18).

use crate::jbd::{Barrier, CommitSync, DataMode, JournalRules, inode_read_flags, sync_flags};
use blklab_kernel::{Change, KernelVersion};
use blklab_pagecache::Atime;
use blklab_types::BioFlags;

/// What differs between kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ext4Features {
    /// Flags of commit's metadata.
    pub commit_sync: CommitSync,
    /// Checkpoints write synchronously (3.1 and later).
    pub sync_checkpoint: bool,
    /// Barriers are flush and FUA (2.6.37 and later).
    pub flush_fua: bool,
    /// Data go out in bios of many pages (2.6.37, "ext4: use bio layer instead
    /// of buffer layer in mpage_da_submit_io"); before, page by page.
    pub large_bios: bool,
    /// Pages that are given a place at a time (2048 from 3.11 on, "ext4:
    /// restructure writeback path"); before, a whole dirty range.
    pub range_pages: u64,
    /// Write-out of a file goes on up to so many pages, whatever the flusher
    /// asks for (32768 from 2.6.32, "ext4: Adjust ext4_da_writepages() to write
    /// out larger contiguous chunks", to 3.10).
    pub bump_pages: u64,
    /// Top-level directories are spread over flex groups, files' data keep out
    /// of the first group of theirs (2.6.30, "ext4: New inode/block allocation
    /// algorithms for flex_bg filesystems"); before, all goes to the parent's
    /// flex group until it is nearly full.
    pub spreads_directories: bool,
    /// Files that nobody has open get what they need and nothing set aside
    /// (2.6.32, "ext4: Avoid group preallocation for closed files").
    pub exact_if_closed: bool,
    /// fsync waits for the transaction that changed the inode (2.6.32); before,
    /// it commits what runs and flushes the disk's cache as well.
    pub fsync_by_transaction: bool,
    /// A file that was cut to nothing is allocated when it is closed (2.6.30,
    /// "ext4: Automatically allocate delay allocated blocks on close").
    pub allocates_on_close: bool,
    /// A commit only waits for newly allocated data on their way; before 4.7 it
    /// writes whatever of those files is dirty and has a place.
    pub commit_only_waits: bool,
    /// What a synchronous write of the journal carries.
    pub sync_flags: BioFlags,
    /// Flags of metadata reads.
    pub read_flags: BioFlags,
    /// Flags of all writes of the journal: META and IDLE from 6.8 on, with
    /// which write-back throttling lets them pass ("jbd2: increase the journal
    /// IO's priority").
    pub journal_mark: BioFlags,
    /// `dioread_nolock` if nothing is asked for (5.6, "ext4: make dioread_nolock the
    /// default").
    pub dioread_nolock: bool,
    /// Files may be cached in large folios (6.16, "ext4: enable large folio for
    /// regular file").
    pub large_folios: bool,
    /// Access times if nothing is asked for.
    pub atime: Atime,
    /// mke2fs of the time makes journals of up to 1 GiB, with checksums.
    pub large_journals: bool,
}

impl Ext4Features {
    /// The features of a release.
    pub fn of(kernel: KernelVersion) -> Ext4Features {
        Ext4Features {
            commit_sync: match () {
                () if kernel.since_2_6(39) => CommitSync::Always,
                () if kernel.since_2_6(30) => CommitSync::SyncHandle,
                () => CommitSync::Never,
            },
            sync_checkpoint: kernel.since(3, 1),
            flush_fua: kernel.since_2_6(37),
            large_bios: kernel.since_2_6(37),
            range_pages: if kernel.since(3, 11) { 2048 } else { 32768 },
            bump_pages: if kernel.since_2_6(32) && !kernel.since(3, 11) {
                32768
            } else {
                0
            },
            spreads_directories: kernel.since_2_6(30),
            exact_if_closed: kernel.since_2_6(32),
            fsync_by_transaction: kernel.since_2_6(32),
            allocates_on_close: kernel.since_2_6(30),
            commit_only_waits: kernel.since(4, 7),
            sync_flags: sync_flags(kernel),
            read_flags: inode_read_flags(kernel),
            journal_mark: if kernel.since(6, 8) {
                BioFlags::META | BioFlags::IDLE
            } else {
                BioFlags::NONE
            },
            dioread_nolock: kernel.since(5, 6),
            large_folios: kernel.since(6, 16),
            atime: if kernel.since_2_6(30) {
                Atime::Relative
            } else {
                Atime::Strict
            },
            large_journals: kernel.since(4, 9),
        }
    }
}

/// One entry for each release at which [`Ext4Features::of`] changes.
pub(super) const CHANGES: &[Change] = &[
    Change {
        release: KernelVersion::v2_6(30),
        what: "a commit with a synchronous handle writes synchronously; no more follows such writes; directories spread over flex groups; truncated files are allocated on close; access times are relative by default",
        source: "fs/jbd2/commit.c, fs/ext4/ialloc.c, fs/ext4/file.c, fs/namespace.c",
    },
    Change {
        release: KernelVersion::v2_6(32),
        what: "fsync waits for the transaction of the inode; closed files get what they need; a file is written on up to 32768 pages",
        source: "fs/ext4/fsync.c, fs/ext4/mballoc.c, fs/ext4/inode.c",
    },
    Change {
        release: KernelVersion::v2_6(37),
        what: "bios of many pages; flush and FUA instead of barriers",
        source: "fs/ext4/page-io.c, fs/jbd2/commit.c",
    },
    Change {
        release: KernelVersion::v2_6(39),
        what: "commits always write synchronously",
        source: "fs/jbd2/commit.c",
    },
    Change {
        release: KernelVersion::new(3, 1),
        what: "checkpoints write synchronously; reads of metadata go before others",
        source: "fs/jbd2/checkpoint.c, fs/ext4/inode.c, include/linux/blk_types.h",
    },
    Change {
        release: KernelVersion::new(3, 11),
        what: "2048 pages are given a place at a time, and as many written as the flusher asks for",
        source: "fs/ext4/inode.c",
    },
    Change {
        release: KernelVersion::new(4, 7),
        what: "a commit waits for new data, and does not write older ones",
        source: "fs/jbd2/commit.c, fs/ext4/inode.c",
    },
    Change {
        release: KernelVersion::new(4, 9),
        what: "journals of up to 1 GiB, with checksums, as mke2fs makes them by then",
        source: "mke2fs(8)",
    },
    Change {
        release: KernelVersion::new(5, 6),
        what: "new blocks are marked as unwritten, and a commit does not wait for their data",
        source: "fs/ext4/super.c, fs/ext4/inode.c, fs/ext4/page-io.c",
    },
    Change {
        release: KernelVersion::new(6, 8),
        what: "writes of the journal pass write-back throttling",
        source: "fs/jbd2/commit.c",
    },
    Change {
        release: KernelVersion::new(6, 16),
        what: "read-ahead fills large folios",
        source: "fs/ext4/inode.c",
    },
];

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

    #[test]
    fn every_change_is_in_the_table() {
        let era = KernelVersion::v2_6(28)..KernelVersion::FOREVER;
        blklab_kernel::check_changes(CHANGES, era, Ext4Features::of);
    }
}
