// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be chosen about an XFS volume, and what the kernel release decides
//! (fs/xfs/xfs_log.c, fs/xfs/linux-2.6/xfs_buf.c; mkfs.xfs of 2008).

use blklab_kernel::{Change, KernelVersion};
use blklab_pagecache::Atime;
use blklab_types::{BioFlags, PAGE_BYTES};

/// What differs between kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XfsFeatures {
    /// A thread pushes the tail of the log (2.6.25 and later); before, the task
    /// that needs space does it.
    pub tail_thread: bool,
    /// Log buffers are one piece of memory each (up to 2.6.24, as far as two
    /// traces tell); else of separate pages.
    pub contiguous_log_buffers: bool,
    /// Asynchronous metadata writes that somebody started are synchronous
    /// requests (up to 2.6.32); from then on they carry the metadata flag.
    pub sync_metadata: bool,
    /// Inodes that are pushed or written back are copied to their clusters, and
    /// these queued (2.6.34 and later); before, they are written at once.
    pub delayed_inodes: bool,
    /// The periodic sync flushes all inodes that it can (up to 2.6.28).
    pub syncd_flushes_inodes: bool,
    /// Synchronous writes say that no more will follow (2.6.30 and later).
    pub no_idle: bool,
    /// What a task has plugged goes to the queue when it sleeps, whatever for
    /// (2.6.39 and later).
    pub task_plugs: bool,
    /// Log records are written behind a flush and past the cache (2.6.37 and
    /// later); before they are barriers.
    pub flush_fua: bool,
    /// Log records are marked as metadata behind which more follows, which
    /// write-back throttling lets pass (5.4, "xfs: don't allow log IO to be
    /// throttled").
    pub marks_log: bool,
    /// Every buffer is read and written as metadata (3.1 and later: "block: separate
    /// priority boosting from REQ_META" names XFS as the one that marks without
    /// boosting).
    pub marks_buffers: bool,
    /// Delayed logging exists (2.6.35 and later).
    pub has_delayed_logging: bool,
    /// Delayed logging unless something else is asked for (2.6.39 and later).
    pub delayed_logging: bool,
    /// Files may be cached in large folios (5.18, "xfs: Support large folios").
    pub large_folios: bool,
    /// Access times if nothing is asked for.
    pub atime: Atime,
}

impl XfsFeatures {
    /// The features of a release.
    pub fn of(kernel: KernelVersion) -> XfsFeatures {
        XfsFeatures {
            tail_thread: kernel.since_2_6(25),
            contiguous_log_buffers: !kernel.since_2_6(25),
            sync_metadata: !kernel.since_2_6(33),
            delayed_inodes: kernel.since_2_6(34),
            syncd_flushes_inodes: !kernel.since_2_6(29),
            no_idle: kernel.since_2_6(30),
            task_plugs: kernel.since_2_6(39),
            flush_fua: kernel.since_2_6(37),
            marks_log: kernel.since(5, 4),
            marks_buffers: kernel.since(3, 1),
            has_delayed_logging: kernel.since_2_6(35),
            delayed_logging: kernel.since_2_6(39),
            large_folios: kernel.since(5, 18),
            atime: if kernel.since_2_6(30) {
                Atime::Relative
            } else {
                Atime::Strict
            },
        }
    }
}

/// One entry for each release at which [`XfsFeatures::of`] changes.
pub(super) const CHANGES: &[Change] = &[
    Change {
        release: KernelVersion::v2_6(25),
        what: "a thread pushes the tail of the log; log buffers are separate pages (as far as two traces tell)",
        source: "fs/xfs/xfs_trans_ail.c, fs/xfs/linux-2.6/xfs_buf.c",
    },
    Change {
        release: KernelVersion::v2_6(29),
        what: "the periodic sync flushes no inodes",
        source: "fs/xfs/linux-2.6/xfs_sync.c",
    },
    Change {
        release: KernelVersion::v2_6(30),
        what: "synchronous writes say that no more will follow; access times are relative by default",
        source: "fs/xfs/linux-2.6/xfs_buf.c, fs/namespace.c",
    },
    Change {
        release: KernelVersion::v2_6(33),
        what: "metadata that somebody wrote without waiting are not synchronous, but marked as metadata",
        source: "fs/xfs/linux-2.6/xfs_buf.c",
    },
    Change {
        release: KernelVersion::v2_6(34),
        what: "inodes are copied to their clusters, and these queued",
        source: "fs/xfs/xfs_inode.c, fs/xfs/linux-2.6/xfs_buf.c",
    },
    Change {
        release: KernelVersion::v2_6(35),
        what: "changes may be collected in memory (delaylog)",
        source: "fs/xfs/xfs_log_cil.c",
    },
    Change {
        release: KernelVersion::v2_6(37),
        what: "log records are written behind a flush and with FUA instead of as barriers",
        source: "fs/xfs/linux-2.6/xfs_buf.c",
    },
    Change {
        release: KernelVersion::v2_6(39),
        what: "delayed logging by default; plugs belong to tasks",
        source: "fs/xfs/linux-2.6/xfs_super.c, block/blk-core.c",
    },
    Change {
        release: KernelVersion::new(3, 1),
        what: "all buffers, those of the log too, are read and written as metadata",
        source: "fs/xfs/xfs_buf.c",
    },
    Change {
        release: KernelVersion::new(5, 4),
        what: "log records say that more will follow, and write-back throttling lets them pass",
        source: "fs/xfs/xfs_log.c",
    },
    Change {
        release: KernelVersion::new(5, 18),
        what: "read-ahead fills large folios",
        source: "fs/xfs/xfs_icache.c",
    },
];

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
