// SPDX-License-Identifier: MIT OR Apache-2.0
//! What differs between kernels, by name.
//!
//! A row for each release that changed something; nothing else in this crate
//! compares versions. Where a change has a name in quotes, it is the subject of
//! the kernel's commit. Three eras: a global pdflush pool (2.6.16 to 2.6.31), a
//! flusher thread per device beside writers that write (2.6.32 to 3.1), and
//! writers that only sleep (3.2 and later). Sources read by the specification:
//! 2.6.18, 2.6.24, 2.6.28.6, 2.6.32.71, 2.6.33, 3.7.2; the release of a change
//! between them is that of its commit. What is here of 5.0 and later are the
//! rules of 4.10 with the changes of the rows; later changes of the control laws
//! were not read.

use blklab_kernel::KernelVersion;
use blklab_types::BioFlags;
use std::fmt;

/// What the dirty percentages are taken of (mm/page-writeback.c,
/// `get_dirty_limits`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitBase {
    /// All memory; the ratio is capped at half of the unmapped share (2.6.18).
    AllMemory,
    /// Free memory plus all LRU pages, whatever is mapped (2.6.28).
    FreeAndLru,
    /// Free memory plus the LRU pages that can be given back: anonymous ones
    /// only where there is swap (2.6.32).
    FreeAndReclaimable,
    /// The same less a reserve of about 1 % (3.2, "mm: exclude reserved pages
    /// from dirtyable memory").
    LessReserve,
    /// The same without any anonymous pages (3.15, "mm/page-writeback.c: do
    /// not count anon pages as dirtyable memory").
    FileOnly,
}

/// Who is held back, and by which limit (`balance_dirty_pages`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttle {
    /// One limit for the machine (up to 2.6.23).
    Global,
    /// A floating share of it per device (2.6.24, "mm: per device
    /// dirty threshold").
    PerDevice,
    /// Writers never write themselves but sleep, each as long as its share of
    /// the device's bandwidth demands (3.2, "writeback: IO-less
    /// balance_dirty_pages()").
    SleepOnly,
}

/// What a writer over its limit waits for when it has nothing to write
/// (`balance_dirty_pages`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverLimit {
    /// The end of congestion, at most 100 ms (up to 2.6.31).
    Congestion,
    /// 1, 2, 4 ... ticks, up to a tenth of a second (2.6.32).
    Doubling,
}

/// How much a writer over its limit is asked to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteChunk {
    /// One and a half times the pages between checks (up to 2.6.31).
    Ratelimit,
    /// One and a half times what it dirtied, if that is more (2.6.32,
    /// "writeback: balance_dirty_pages() shall write more than dirtied pages").
    Dirtied,
}

/// Who writes in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flusher {
    /// A pool of threads for all devices; stops at congestion (up to 2.6.31).
    Pdflush,
    /// A thread per device that sleeps for requests instead (2.6.32,
    /// "writeback: switch to per-bdi threads for flushing data").
    PerDevice,
}

/// How counts of completions age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ageing {
    /// Halved after so many events (up to 3.5).
    Events,
    /// Halved every three seconds (3.6, "block: Convert BDI proportion
    /// calculations to flexible proportions").
    Time,
}

/// Which pages count for a task's share of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskShare {
    /// There is no such share (up to 2.6.23).
    None,
    /// Only pages dirtied through `set_page_dirty`, that is through mappings:
    /// `write` dirties pages through their buffers and is not counted
    /// (2.6.24 to 2.6.28,
    /// "mm: dirty balancing for tasks").
    Mapped,
    /// All of them (2.6.29, "mm: task dirty accounting fix").
    All,
}

/// Where an inode goes that was not written completely (fs/fs-writeback.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InodeLists {
    /// Dirty and io only; a periodic run keeps it the oldest (up to 2.6.23).
    Two,
    /// A third list, `more_io`, for those whose turn was used up (2.6.24).
    Three,
    /// Whoever used up its slice goes to `more_io`, periodic run or not
    /// (3.2; the rules of 3.7).
    Slices,
}

/// How the page walk ends (`write_cache_pages`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// Wraps to the start only if nothing was found; budget and congestion
    /// are noticed but the batch of 14 pages is finished; integrity walks
    /// stop at twice the cached pages (up to 2.6.28).
    Batched,
    /// Wraps once and stops at the old cursor; stops at the very page;
    /// integrity walks go to the end (2.6.29, "mm:
    /// write_cache_pages cyclic fix" and six more; in 2.6.28.6 as well).
    Exact,
}

/// The read-ahead algorithm (mm/readahead.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readahead {
    /// Current and ahead window (2.6.9 to 2.6.22).
    TwoWindow,
    /// On demand, by markers (2.6.23, "readahead: on-demand readahead
    /// logic").
    OnDemandV1,
    /// The same with context and two windows at the start (2.6.31,
    /// "readahead: introduce context readahead algorithm").
    OnDemandV2,
    /// Context counts only if it is longer than the request (3.12,
    /// "readahead: make context readahead more conservative").
    OnDemandV3,
    /// A first window of the largest size is read alone, without the next one
    /// ("readahead: stricter check for bdi io_pages", of 4.19; here from 5.0
    /// on).
    OnDemandV4,
    /// Windows end where their folios do, of which the first has those of one page (6.17,
    /// "mm/readahead: terminate async readahead on natural boundary").
    Aligned,
}

/// What a fault on a missing page reads (`do_sync_mmap_readahead`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultReadahead {
    /// A window around it (up to 2.6.31).
    Around,
    /// As `read` would, if the page before was the last one touched; else a
    /// window around it (2.6.32 at the latest, "readahead: sequential mmap
    /// readahead").
    AroundOrSequential,
    /// A window around it whose last quarter carries the marker (3.0,
    /// "readahead: trigger mmap sequential readahead on PG_readahead").
    AroundMarked,
}

/// What bounds a read-ahead window besides the device's setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowCap {
    /// Nothing (up to 2.6.31).
    None,
    /// Half of the inactive and the free memory (2.6.32 to 3.14).
    Memory,
    /// 2 MiB (3.15 to 4.3, "mm/readahead.c: fix readahead failure for
    /// memoryless NUMA nodes and limit readahead pages").
    TwoMib,
    /// The device's setting also bounds what was asked for explicitly (4.4,
    /// "mm: use only per-device readahead limit").
    Device,
    /// Large requests may be as large as the device's largest request (4.10,
    /// "mm: don't cap request size based on read-ahead setting").
    Request,
}

/// Direct I/O on a block device (fs/block_dev.c, later block/fops.c) that a task
/// plug covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DevicePlug {
    /// All, while its bios are submitted (up to 4.9; here up to 4.20).
    Submission,
    /// A write to its very end, and a read of several bios while they are
    /// submitted (`__blkdev_direct_IO_simple` of 4.10; here from 5.0 on).
    Writes,
    /// What takes several bios, while they are submitted (6.6: writes no longer
    /// go through `__generic_file_write_iter`).
    SeveralBios,
}

/// What ends a bio that could hold more pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BioBound {
    /// The queue's largest request and most segments (fs/mpage.c,
    /// `bio_get_nr_vecs`, up to 4.2; here up to 4.20).
    Queue,
    /// Its 256 vectors: the block layer splits what is too large for the queue
    /// ("block: remove bio_get_nr_vecs()", of 4.3; here from 5.0 on).
    Vectors,
}

/// What `POSIX_FADV_RANDOM` does to reads (mm/fadvise.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FadviseRandom {
    /// Turns read-ahead off, and with it reading more than one page at a time.
    PageByPage,
    /// Reads exactly what is asked for in one go (2.6.34 and the first update of
    /// 2.6.33, "readahead: introduce FMODE_RANDOM for POSIX_FADV_RANDOM").
    WholeRequest,
}

/// Whether `fsync` on a block device empties the disk's cache (fs/block_dev.c,
/// later block/fops.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceFlush {
    /// It only writes pages (`block_fsync`, up to 2.6.32).
    Never,
    /// With the inode's mutex held, so that one task flushes at a time (2.6.33,
    /// "blkdev: flush disk cache on ->fsync").
    UnderMutex,
    /// Tasks flush beside each other (2.6.34, "fs/block_dev.c: fix performance
    /// regression in O_DIRECT writes to md block devices").
    Together,
}

/// How a queued direct write with `O_SYNC` or `O_DSYNC` reaches the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuedSync {
    /// Not at all (up to 2.6.32).
    Never,
    /// The submitter does the sync's work as soon as the write is submitted,
    /// that is before it has ended (2.6.33, `generic_file_aio_write`).
    AtSubmission,
    /// A worker does it when the write has ended, and reports the end only then
    /// (3.12, "direct-io: Handle O_(D)SYNC AIO").
    InWorker,
    /// The write carries FUA, which the block layer makes a flush behind it where
    /// the disk does not know FUA. Block devices: always (4.10,
    /// `dio_bio_write_op`). Files: `O_DSYNC` that overwrites, on disks that know
    /// FUA; else in a worker (4.18, "iomap: Use FUA for pure data O_DSYNC DIO
    /// writes").
    ForcedAccess,
}

/// What a discard of a range of a block device does (`BLKDISCARD`;
/// block/ioctl.c, `blk_ioctl_discard`, and block/blk-lib.c,
/// `blkdev_issue_discard`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscardCall {
    /// Its bios are submitted one behind the other and waited for together (3.0,
    /// "blkdev: Submit discard bio in batches in blkdev_issue_discard()"); before,
    /// each is waited for before the next.
    pub together: bool,
    /// Under a task plug (3.8, "block: add plug for blkdev_issue_discard").
    pub plugs: bool,
    /// The last bio is synchronous, since the caller waits for it and it for those
    /// before it (4.7, "block: add __blkdev_issue_discard"; `submit_bio_wait`).
    pub last_is_sync: bool,
    /// The pages of the range are dropped first, dirty ones too (4.12, "block:
    /// Invalidate cache on discard v2").
    pub drops_pages: bool,
    /// A range that does not begin at the granularity has a bio up to there (5.9,
    /// "block: improve discard bio alignment in __blkdev_issue_discard()").
    pub aligns_start: bool,
}

impl DiscardCall {
    /// 2.6.28, "Add BLKDISCARD ioctl to allow userspace to discard sectors".
    const FIRST: DiscardCall = DiscardCall {
        together: false,
        plugs: false,
        last_is_sync: false,
        drops_pages: false,
        aligns_start: false,
    };
}

blklab_kernel::features! {
    /// The page cache of a release.
    pub struct Features {
        /// Default of `vm.dirty_ratio`, percent.
        pub dirty_ratio: u32 = 40,
        /// Default of `vm.dirty_background_ratio`, percent.
        pub dirty_background_ratio: u32 = 10,
        /// Base of the percentages.
        pub limit_base: LimitBase = LimitBase::AllMemory,
        /// Dirty ratios below it act as it, percent (5 up to 2.6.36; 0 since
        /// 2.6.37, "writeback: remove the internal 5% low bound on dirty_ratio").
        pub dirty_ratio_floor: u32 = 5,
        /// The dirty throttle.
        pub throttle: Throttle = Throttle::Global,
        /// What a writer over its limit waits for.
        pub over_limit: OverLimit = OverLimit::Congestion,
        /// What a writer over its limit writes.
        pub write_chunk: WriteChunk = WriteChunk::Ratelimit,
        /// How the device's share of completions ages.
        pub ageing: Ageing = Ageing::Events,
        /// Who writes in the background.
        pub flusher: Flusher = Flusher::Pdflush,
        /// The flusher sleeps without a timer while nothing is dirty; the first
        /// dirty page starts one (2.6.36, "writeback: prevent unnecessary bdi
        /// threads wakeups").
        pub flusher_sleeps_when_clean: bool = false,
        /// One task plug over whole rounds of the flusher (4.3, "writeback: plug
        /// writeback in wb_writeback() and writeback_inodes_wb()"); before, one
        /// per inode.
        pub flusher_plugs_rounds: bool = false,
        /// The task's share of the device's limit.
        pub task_share: TaskShare = TaskShare::None,
        /// A throttled task writes only while the dirty pages alone are over its
        /// limit; before, while there are any (2.6.31, "mm: prevent
        /// balance_dirty_pages() from doing too much work").
        pub writes_above_limit_only: bool = false,
        /// Bookkeeping of dirty inodes.
        pub inode_lists: InodeLists = InodeLists::Two,
        /// Page walk of one inode.
        pub walk: Walk = Walk::Batched,
        /// Integrity walks write what was dirty when they began (2.6.36,
        /// "mm: implement writeback livelock avoidance using page tagging").
        pub integrity_tags: bool = false,
        /// Background work waits, rather than ends, when inodes are left on
        /// `more_io` (2.6.25).
        pub more_io_waits: bool = false,
        /// Background work that wrote less than it could sleeps before it ends
        /// (up to 2.6.24).
        pub background_always_waits: bool = true,
        /// Read-ahead.
        pub readahead: Readahead = Readahead::TwoWindow,
        /// Bounds of its windows.
        pub window_cap: WindowCap = WindowCap::None,
        /// Flags of its bios (AHEAD: "mpage: mpage_readpages() should submit IO as
        /// read-ahead", of 4.19; here from 5.0 on).
        pub readahead_flags: BioFlags = BioFlags::NONE,
        /// A window of a file whose filesystem has them is cached in folios of several
        /// pages (mm/readahead.c, `page_cache_ra_order`, of 5.18).
        pub large_folios: bool = false,
        /// The same of the block device itself.
        pub device_large_folios: bool = false,
        /// Read-ahead of page faults.
        pub fault_readahead: FaultReadahead = FaultReadahead::Around,
        /// `POSIX_FADV_RANDOM`.
        pub fadvise_random: FadviseRandom = FadviseRandom::PageByPage,
        /// `write` waits for a page under write-back before it changes it (3.0).
        pub stable_pages: bool = false,
        /// Flags of data written for fsync and the like (SYNC from 2.6.30 on,
        /// "block_write_full_page: Use synchronous writes for WBC_SYNC_ALL
        /// writebacks": filesystems that write through buffers). The contrary of
        /// NOIDLE, IDLE, has taken its place in 4.10; the single-queue path still
        /// gets the old one.
        pub integrity_flags: BioFlags = BioFlags::NONE,
        /// Flags of data that the flusher writes because it is old or because there
        /// is much of it (BACKGROUND from 4.10 on, "writeback: mark background
        /// writeback as such", include/linux/writeback.h).
        pub background_flags: BioFlags = BioFlags::NONE,
        /// What ends a bio.
        pub bio_bound: BioBound = BioBound::Queue,
        /// The disk opened as a file is written through its buffers, a bio of a page
        /// for each (fs/buffer.c, `block_write_full_page`; measured on 6.1, here
        /// from 5.0 on).
        pub device_buffers: bool = false,
        /// A sleep of so many ticks ends with the tick behind them, not with the
        /// last of them ("timers: Switch to a non-cascading wheel", of 4.8; here
        /// from 5.0 on).
        pub sleeps_past_tick: bool = false,
        /// Queues report congestion, and advice, read-ahead and tasks without
        /// memory look at it (up to 4.20: the multi-queue layer does not report
        /// any).
        pub congestion: bool = true,
        /// A write with `O_SYNC` writes all that is dirty of the file, not only its
        /// own range (up to 2.6.32).
        pub o_sync_whole_file: bool = true,
        /// fsync waits for the data before the filesystem's step, not after it
        /// (from 2.6.39 on at the latest).
        pub fsync_waits_first: bool = false,
        /// Flags of the empty bio that flushes the disk's cache
        /// (`blkdev_issue_flush`): a barrier up to 2.6.36, a write with FLUSH since.
        pub flush_flags: BioFlags = BioFlags::BARRIER,
        /// fsync on a block device.
        pub device_flush: DeviceFlush = DeviceFlush::Never,
        /// fsync flushes on filesystems without a journal (3.16, "fs/libfs.c: add
        /// generic data flush to fsync").
        pub file_flush: bool = false,
        /// Queued direct writes with `O_SYNC` to a block device.
        pub device_queued_sync: QueuedSync = QueuedSync::Never,
        /// The same to a file.
        pub file_queued_sync: QueuedSync = QueuedSync::Never,
        /// Flags of direct writes: without UNPLUG since 2.6.33 ("aio: implement
        /// request batching"), where `io_submit` unplugs at its end; with IDLE
        /// since 4.10 ("block: replace REQ_NOIDLE with REQ_IDLE").
        pub direct_write_flags: BioFlags = BioFlags(BioFlags::SYNC.0 | BioFlags::UNPLUG.0),
        /// Direct I/O on a block device that a task plug covers.
        pub device_plug: DevicePlug = DevicePlug::Submission,
        /// Block devices can be discarded.
        pub has_discard: bool = false,
        /// How: what a discard of a block device does.
        pub discard: DiscardCall = DiscardCall::FIRST,
    }

    /// What releases changed in the page cache.
    pub const CHANGES = {
        // "change default dirty-writeback limits"
        "2.6.22": "the ratios are 10 and 5", "mm/page-writeback.c" => {
            dirty_ratio: 10,
            dirty_background_ratio: 5,
        }
        "2.6.23": "read-ahead on demand instead of two windows", "mm/readahead.c" => {
            readahead: Readahead::OnDemandV1,
        }
        "2.6.24": "a dirty limit per device; three lists of inodes",
            "mm/page-writeback.c, fs/fs-writeback.c" => {
            limit_base: LimitBase::FreeAndLru,
            throttle: Throttle::PerDevice,
            task_share: TaskShare::Mapped,
            inode_lists: InodeLists::Three,
        }
        "2.6.25": "background work waits, rather than ends, while inodes are left on more_io; it does not sleep before it ends",
            "fs/fs-writeback.c, mm/page-writeback.c" => {
            more_io_waits: true,
            background_always_waits: false,
        }
        "2.6.28": "block devices can be discarded", "block/ioctl.c" => {
            has_discard: true,
        }
        "2.6.29": "all pages that a task dirties count for its share; a walk stops at the very page",
            "mm/page-writeback.c" => {
            task_share: TaskShare::All,
            walk: Walk::Exact,
        }
        // "writeback: double the dirty thresholds"
        "2.6.30": "the ratios are 20 and 10; integrity writes are synchronous",
            "mm/page-writeback.c, fs/fs-writeback.c" => {
            dirty_ratio: 20,
            dirty_background_ratio: 10,
            integrity_flags: BioFlags(BioFlags::SYNC.0 | BioFlags::NOIDLE.0),
        }
        "2.6.31": "read-ahead looks at the pages before a read; throttled writers write only above their limit",
            "mm/readahead.c, mm/page-writeback.c" => {
            writes_above_limit_only: true,
            readahead: Readahead::OnDemandV2,
        }
        "2.6.32": "a flusher thread per device; writers over their limit wait by the clock",
            "fs/fs-writeback.c, mm/backing-dev.c, mm/page-writeback.c" => {
            limit_base: LimitBase::FreeAndReclaimable,
            over_limit: OverLimit::Doubling,
            write_chunk: WriteChunk::Dirtied,
            flusher: Flusher::PerDevice,
            window_cap: WindowCap::Memory,
            fault_readahead: FaultReadahead::AroundOrSequential,
        }
        "2.6.33": "O_SYNC writes its range; direct writes do not unplug one by one; fsync on a block device flushes",
            "mm/filemap.c, fs/direct-io.c, fs/block_dev.c" => {
            o_sync_whole_file: false,
            device_flush: DeviceFlush::UnderMutex,
            device_queued_sync: QueuedSync::AtSubmission,
            file_queued_sync: QueuedSync::AtSubmission,
            direct_write_flags: BioFlags::SYNC,
        }
        "2.6.33.1": "under the advice of random access whole requests are read",
            "mm/readahead.c, mm/fadvise.c" => {
            fadvise_random: FadviseRandom::WholeRequest,
        }
        "2.6.34": "fsyncs of a block device flush beside each other", "fs/block_dev.c" => {
            device_flush: DeviceFlush::Together,
        }
        "2.6.36": "integrity walks tag their pages; the flusher sleeps while nothing is dirty",
            "mm/page-writeback.c, fs/fs-writeback.c" => {
            flusher_sleeps_when_clean: true,
            integrity_tags: true,
        }
        "2.6.37": "no floor below the dirty ratio; FLUSH instead of barriers",
            "mm/page-writeback.c, block/blk-flush.c" => {
            dirty_ratio_floor: 0,
            flush_flags: BioFlags(BioFlags::SYNC.0 | BioFlags::FLUSH.0),
        }
        "2.6.39": "fsync waits for the data before the filesystem's step",
            "fs/sync.c, fs/ext4/fsync.c" => {
            fsync_waits_first: true,
        }
        "3.0": "pages under write-back are not changed; faults mark where read-ahead goes on; the bios of a discard are waited for together",
            "mm/filemap.c, block/blk-lib.c" => {
            fault_readahead: FaultReadahead::AroundMarked,
            stable_pages: true,
            discard.together: true,
        }
        "3.2": "writers sleep, and only the flusher writes, in slices",
            "mm/page-writeback.c, fs/fs-writeback.c" => {
            limit_base: LimitBase::LessReserve,
            throttle: Throttle::SleepOnly,
            task_share: TaskShare::None,
            inode_lists: InodeLists::Slices,
        }
        "3.6": "proportions age by time", "mm/page-writeback.c, lib/flex_proportions.c" => {
            ageing: Ageing::Time,
        }
        "3.8": "the bios of a discard are plugged", "block/blk-lib.c" => {
            discard.plugs: true,
        }
        // No device here asks for it.
        "3.9": "pages are stable only where the device asks for it", "mm/page-writeback.c" => {
            stable_pages: false,
        }
        "3.12": "cautious read-ahead by context; workers end queued writes with O_SYNC",
            "mm/readahead.c, fs/direct-io.c" => {
            readahead: Readahead::OnDemandV3,
            device_queued_sync: QueuedSync::InWorker,
            file_queued_sync: QueuedSync::InWorker,
        }
        "3.15": "anonymous memory does not count for the limits; windows are at most 2 MiB",
            "mm/page-writeback.c, mm/readahead.c" => {
            limit_base: LimitBase::FileOnly,
            window_cap: WindowCap::TwoMib,
        }
        "3.16": "fsync flushes without a journal, too", "fs/libfs.c, fs/ext4/fsync.c" => {
            file_flush: true,
        }
        "4.3": "a plug over whole rounds of the flusher", "fs/fs-writeback.c" => {
            flusher_plugs_rounds: true,
        }
        "4.4": "windows are as large as the device says", "mm/readahead.c" => {
            window_cap: WindowCap::Device,
        }
        "4.7": "the last bio of a discard is synchronous", "block/blk-lib.c" => {
            discard.last_is_sync: true,
        }
        "4.10": "background and direct writes are marked for write-back throttling; direct O_DSYNC writes to block devices carry FUA",
            "fs/fs-writeback.c, fs/block_dev.c, mm/readahead.c" => {
            window_cap: WindowCap::Request,
            background_flags: BioFlags::BACKGROUND,
            direct_write_flags: BioFlags(BioFlags::SYNC.0 | BioFlags::IDLE.0),
            device_queued_sync: QueuedSync::ForcedAccess,
        }
        "4.12": "a discard drops the pages of its range", "block/ioctl.c" => {
            discard.drops_pages: true,
        }
        "4.18": "direct O_DSYNC writes that overwrite a file carry FUA", "fs/iomap.c" => {
            file_queued_sync: QueuedSync::ForcedAccess,
        }
        "5.0": "devices split bios themselves and are never congested",
            "block/blk-merge.c, mm/readahead.c, fs/block_dev.c" => {
            readahead: Readahead::OnDemandV4,
            readahead_flags: BioFlags::AHEAD,
            integrity_flags: BioFlags::SYNC,
            bio_bound: BioBound::Vectors,
            device_buffers: true,
            sleeps_past_tick: true,
            congestion: false,
            device_plug: DevicePlug::Writes,
        }
        "5.9": "a discard that does not begin at the granularity has a bio up to there",
            "block/blk-lib.c" => {
            discard.aligns_start: true,
        }
        "5.18": "read-ahead fills large folios, of filesystems that have them",
            "mm/readahead.c" => {
            large_folios: true,
        }
        "6.6": "direct writes to block devices are plugged like reads", "block/fops.c" => {
            device_plug: DevicePlug::SeveralBios,
        }
        "6.15": "read-ahead fills large folios of block devices, too", "block/bdev.c" => {
            device_large_folios: true,
        }
        "6.17": "read-ahead windows end where their folios do", "mm/readahead.c" => {
            readahead: Readahead::Aligned,
        }
    };
}

/// A release that is newer than those that are modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsupportedRelease(pub KernelVersion);

impl fmt::Display for UnsupportedRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no page cache model for Linux {}: 2.6.16 to {} are modelled",
            self.0,
            KernelVersion::NEWEST
        )
    }
}

impl std::error::Error for UnsupportedRelease {}

impl Features {
    /// The features of a release, if the models know it.
    ///
    /// # Errors
    /// Releases that are not modelled.
    pub fn modelled(kernel: KernelVersion) -> Result<Features, UnsupportedRelease> {
        if !kernel.is_modelled() {
            return Err(UnsupportedRelease(kernel));
        }
        Ok(Features::of(kernel))
    }
}

/// The features of a release, for tests.
#[cfg(test)]
pub(crate) const fn rules_of(release: &str) -> Features {
    Features::of(KernelVersion::row(release))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_in_the_table() {
        let era = KernelVersion::v2_6(16)..KernelVersion::FOREVER;
        blklab_kernel::check_changes(CHANGES, era, Features::of);
    }

    #[test]
    fn releases_that_are_to_come_are_refused() {
        assert!(Features::modelled(KernelVersion::NEWEST).is_ok());
        let next = KernelVersion::new(7, 4);
        let error = Features::modelled(next).expect_err("it is not modelled");
        assert_eq!(
            error.to_string(),
            "no page cache model for Linux 7.4: 2.6.16 to 7.3 are modelled"
        );
    }
}
