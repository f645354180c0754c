// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be chosen about an XFS volume, and what the kernel release decides
//! (fs/xfs/xfs_log.c, fs/xfs/linux-2.6/xfs_buf.c; mkfs.xfs of 2008).

use blklab_pagecache::Atime;
use blklab_types::{BioFlags, PAGE_BYTES};

blklab_kernel::features! {
    /// What differs between kernels.
    pub struct XfsFeatures {
        /// A thread pushes the tail of the log (2.6.25 and later); before, the task
        /// that needs space does it.
        pub tail_thread: bool = false,
        /// Log buffers are one piece of memory each (up to 2.6.24, as far as two
        /// traces tell); else of separate pages.
        pub contiguous_log_buffers: bool = true,
        /// Asynchronous metadata writes that somebody started are synchronous
        /// requests (up to 2.6.32); from then on they carry the metadata flag.
        pub sync_metadata: bool = true,
        /// Inodes that are pushed or written back are copied to their clusters, and
        /// these queued (2.6.34 and later); before, they are written at once.
        pub delayed_inodes: bool = false,
        /// The periodic sync flushes all inodes that it can (up to 2.6.28).
        pub syncd_flushes_inodes: bool = true,
        /// Synchronous writes say that no more will follow (2.6.30 and later).
        pub no_idle: bool = false,
        /// What a task has plugged goes to the queue when it sleeps, whatever for
        /// (2.6.39 and later).
        pub task_plugs: bool = false,
        /// Log records are written behind a flush and past the cache (2.6.37 and
        /// later); before they are barriers.
        pub flush_fua: bool = false,
        /// Log records are marked as metadata behind which more follows, which
        /// write-back throttling lets pass (5.4, "xfs: don't allow log IO to be
        /// throttled").
        pub marks_log: bool = false,
        /// Every buffer is read and written as metadata (3.1 and later: "block: separate
        /// priority boosting from REQ_META" names XFS as the one that marks without
        /// boosting).
        pub marks_buffers: bool = false,
        /// Delayed logging exists (2.6.35 and later).
        pub has_delayed_logging: bool = false,
        /// Delayed logging unless something else is asked for (2.6.39 and later).
        pub delayed_logging: bool = false,
        /// Files may be cached in large folios (5.18, "xfs: Support large folios").
        pub large_folios: bool = false,
        /// Access times if nothing is asked for.
        pub atime: Atime = Atime::Strict,
    }

    /// What releases changed.
    pub(super) const CHANGES = {
        "2.6.25": "a thread pushes the tail of the log; log buffers are separate pages (as far as two traces tell)",
            "fs/xfs/xfs_trans_ail.c, fs/xfs/linux-2.6/xfs_buf.c" => {
            tail_thread: true,
            contiguous_log_buffers: false,
        }
        "2.6.29": "the periodic sync flushes no inodes", "fs/xfs/linux-2.6/xfs_sync.c" => {
            syncd_flushes_inodes: false,
        }
        "2.6.30": "synchronous writes say that no more will follow; access times are relative by default",
            "fs/xfs/linux-2.6/xfs_buf.c, fs/namespace.c" => {
            no_idle: true,
            atime: Atime::Relative,
        }
        "2.6.33": "metadata that a task wrote without waiting are not synchronous, but marked as metadata",
            "fs/xfs/linux-2.6/xfs_buf.c" => {
            sync_metadata: false,
        }
        "2.6.34": "inodes are copied to their clusters, and these queued",
            "fs/xfs/xfs_inode.c, fs/xfs/linux-2.6/xfs_buf.c" => {
            delayed_inodes: true,
        }
        "2.6.35": "changes may be collected in memory (delaylog)", "fs/xfs/xfs_log_cil.c" => {
            has_delayed_logging: true,
        }
        "2.6.37": "log records are written behind a flush and with FUA instead of as barriers",
            "fs/xfs/linux-2.6/xfs_buf.c" => {
            flush_fua: true,
        }
        "2.6.39": "delayed logging by default; plugs belong to tasks",
            "fs/xfs/linux-2.6/xfs_super.c, block/blk-core.c" => {
            task_plugs: true,
            delayed_logging: true,
        }
        "3.1": "all buffers, those of the log too, are read and written as metadata",
            "fs/xfs/xfs_buf.c" => {
            marks_buffers: true,
        }
        "5.4": "log records say that more will follow, and write-back throttling lets them pass",
            "fs/xfs/xfs_log.c" => {
            marks_log: true,
        }
        "5.18": "read-ahead fills large folios", "fs/xfs/xfs_icache.c" => {
            large_folios: true,
        }
    };
}

/// A volume. Blocks are 4096 bytes, sectors 512, inodes 256 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XfsOptions {
    /// What the kernel decides.
    pub features: XfsFeatures,
    /// Log records are ordered against the device's cache.
    pub barrier: bool,
    /// Log buffers in memory: 2 to 8.
    pub log_buffers: u32,
    /// Bytes of each: 16, 32, 64, 128 or 256 KiB.
    pub log_buffer_bytes: u32,
    /// Blocks of the log; by the size of the disk if not given.
    pub log_blocks: Option<u64>,
    /// Allocation groups; by the size of the disk if not given.
    pub ag_count: Option<u32>,
    /// Counters of the superblock are not logged with every change.
    pub lazy_count: bool,
    /// Changes are collected in memory and logged together.
    pub delayed_logging: bool,
    /// Access times.
    pub atime: Atime,
}

impl XfsOptions {
    /// The defaults of a release: 8 log buffers of 32 KiB.
    pub fn new(features: XfsFeatures) -> XfsOptions {
        XfsOptions {
            features,
            barrier: true,
            log_buffers: 8,
            log_buffer_bytes: 32 << 10,
            log_blocks: None,
            ag_count: None,
            lazy_count: false,
            delayed_logging: features.delayed_logging,
            atime: features.atime,
        }
    }

    fn sync_flags(&self) -> BioFlags {
        if self.features.no_idle {
            BioFlags::SYNC | BioFlags::UNPLUG | BioFlags::NOIDLE
        } else {
            BioFlags::SYNC | BioFlags::UNPLUG
        }
    }

    /// Flags of a log record.
    pub(crate) fn log_flags(&self) -> BioFlags {
        let sync = if self.features.marks_log {
            BioFlags::SYNC | BioFlags::META | BioFlags::IDLE
        } else {
            self.sync_flags() | self.buffer_mark()
        };
        match (self.barrier, self.features.flush_fua) {
            (false, _) => sync,
            (true, false) => BioFlags::BARRIER,
            (true, true) => sync | BioFlags::FLUSH | BioFlags::FUA,
        }
    }

    /// Flags of a metadata buffer that is written at once, by whoever does not
    /// wait for it or does.
    pub(crate) fn metadata_flags(&self) -> BioFlags {
        if self.features.sync_metadata {
            self.sync_flags()
        } else {
            BioFlags::META | BioFlags::UNPLUG
        }
    }

    /// What every buffer that is read or written carries (`_xfs_buf_ioapply`).
    pub(crate) fn buffer_mark(&self) -> BioFlags {
        if self.features.marks_buffers {
            BioFlags::META
        } else {
            BioFlags::NONE
        }
    }

    /// Segments of a log record's bio: a buffer in one piece counts as one per
    /// 64 KiB, separate pages one each.
    pub(crate) fn log_segments(&self, nr_sectors: u32) -> u16 {
        let piece = if self.features.contiguous_log_buffers {
            64 << 10
        } else {
            PAGE_BYTES as u32
        };
        u16::try_from((nr_sectors * 512).div_ceil(piece)).unwrap_or(u16::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_kernel::KernelVersion;

    #[test]
    fn log_records_are_barriers_or_synchronous_writes() {
        let mut o = XfsOptions::new(XfsFeatures::of(KernelVersion::v2_6(26)));
        assert_eq!(o.log_flags(), BioFlags::BARRIER);
        o.barrier = false;
        assert_eq!(o.log_flags(), BioFlags::SYNC | BioFlags::UNPLUG);
        assert_eq!(o.log_segments(128), 16);
        let o = XfsOptions::new(XfsFeatures::of(KernelVersion::v2_6(37)));
        assert!(o.log_flags().has(BioFlags::FLUSH | BioFlags::FUA));
        assert!(!o.log_flags().any(BioFlags::IDLE | BioFlags::META));
        assert_eq!(o.buffer_mark(), BioFlags::NONE);
        let o = XfsOptions::new(XfsFeatures::of(KernelVersion::new(3, 7)));
        assert_eq!(o.buffer_mark(), BioFlags::META);
        assert!(
            o.log_flags()
                .has(BioFlags::SYNC | BioFlags::NOIDLE | BioFlags::META)
        );
        let o = XfsOptions::new(XfsFeatures::of(KernelVersion::new(5, 10)));
        let marked = BioFlags::SYNC | BioFlags::META | BioFlags::IDLE;
        assert_eq!(o.log_flags(), marked | BioFlags::FLUSH | BioFlags::FUA);
        let o = XfsOptions::new(XfsFeatures::of(KernelVersion::v2_6(24)));
        assert_eq!(o.log_segments(128), 1);
        assert!(!o.features.tail_thread);
    }

    #[test]
    fn every_change_is_in_the_table() {
        let era = KernelVersion::v2_6(16)..KernelVersion::FOREVER;
        blklab_kernel::check_changes(CHANGES, era, XfsFeatures::of);
    }
}
