// SPDX-License-Identifier: MIT OR Apache-2.0
//! What differs between kernels, by name.
//!
//! One [`Features`] value per range of releases. Nothing else in this crate
//! compares versions. Where a change has a name in quotes, it is the subject of
//! the kernel's commit. Three eras: a global pdflush pool (2.6.16 to 2.6.31), a
//! flusher thread per device beside writers that write (2.6.32 to 3.1), and
//! writers that only sleep (3.2 and later). Sources read by the specification:
//! 2.6.18, 2.6.24, 2.6.28.6, 2.6.32.71, 2.6.33, 3.7.2; the release of a change
//! between them is that of its commit. What is here of 5.0 to 6.18 are the
//! rules of 4.10 with the changes named at the presets; later changes of the
//! control laws were not read.

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
    /// Reads exactly what is asked for in one go (2.6.34,
    /// "readahead: introduce FMODE_RANDOM for POSIX_FADV_RANDOM").
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
    /// 3.0 to 3.7.
    const BATCHED: DiscardCall = DiscardCall {
        together: true,
        ..DiscardCall::FIRST
    };
    /// 3.8 to 4.6.
    const PLUGGED: DiscardCall = DiscardCall {
        plugs: true,
        ..DiscardCall::BATCHED
    };
    /// 4.7 to 4.11.
    const CHAINED: DiscardCall = DiscardCall {
        last_is_sync: true,
        ..DiscardCall::PLUGGED
    };
    /// 4.12 to 5.8.
    const COHERENT: DiscardCall = DiscardCall {
        drops_pages: true,
        ..DiscardCall::CHAINED
    };
    /// 5.9 and later.
    const ALIGNED: DiscardCall = DiscardCall {
        aligns_start: true,
        ..DiscardCall::COHERENT
    };
}

/// The page cache of one range of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// Name of the preset.
    pub name: &'static str,
    /// Default of `vm.dirty_ratio`, percent.
    pub dirty_ratio: u32,
    /// Default of `vm.dirty_background_ratio`, percent.
    pub dirty_background_ratio: u32,
    /// Base of the percentages.
    pub limit_base: LimitBase,
    /// Dirty ratios below it act as it, percent (5 up to 2.6.36; 0 since
    /// 2.6.37, "writeback: remove the internal 5% low bound on dirty_ratio").
    pub dirty_ratio_floor: u32,
    /// The dirty throttle.
    pub throttle: Throttle,
    /// What a writer over its limit waits for.
    pub over_limit: OverLimit,
    /// What a writer over its limit writes.
    pub write_chunk: WriteChunk,
    /// How the device's share of completions ages.
    pub ageing: Ageing,
    /// Who writes in the background.
    pub flusher: Flusher,
    /// The flusher sleeps without a timer while nothing is dirty; the first
    /// dirty page starts one (2.6.36, "writeback: prevent unnecessary bdi
    /// threads wakeups").
    pub flusher_sleeps_when_clean: bool,
    /// One task plug over whole rounds of the flusher (4.3, "writeback: plug
    /// writeback in wb_writeback() and writeback_inodes_wb()"); before, one
    /// per inode.
    pub flusher_plugs_rounds: bool,
    /// The task's share of the device's limit.
    pub task_share: TaskShare,
    /// A throttled task writes only while the dirty pages alone are over its
    /// limit; before, while there are any (2.6.31, "mm: prevent
    /// balance_dirty_pages() from doing too much work").
    pub writes_above_limit_only: bool,
    /// Bookkeeping of dirty inodes.
    pub inode_lists: InodeLists,
    /// Page walk of one inode.
    pub walk: Walk,
    /// Integrity walks write what was dirty when they began (2.6.36,
    /// "mm: implement writeback livelock avoidance using page tagging").
    pub integrity_tags: bool,
    /// Background work waits, rather than ends, when inodes are left on
    /// `more_io` (2.6.25).
    pub more_io_waits: bool,
    /// Background work that wrote less than it could sleeps before it ends
    /// (up to 2.6.24).
    pub background_always_waits: bool,
    /// Read-ahead.
    pub readahead: Readahead,
    /// Bounds of its windows.
    pub window_cap: WindowCap,
    /// Flags of its bios (AHEAD: "mpage: mpage_readpages() should submit IO as
    /// read-ahead", of 4.19; here from 5.0 on).
    pub readahead_flags: BioFlags,
    /// A window of a file whose filesystem has them is cached in folios of several
    /// pages (mm/readahead.c, `page_cache_ra_order`, of 5.18).
    pub large_folios: bool,
    /// Read-ahead of page faults.
    pub fault_readahead: FaultReadahead,
    /// `POSIX_FADV_RANDOM`.
    pub fadvise_random: FadviseRandom,
    /// `write` waits for a page under write-back before it changes it (3.0).
    pub stable_pages: bool,
    /// Flags of data written for fsync and the like (SYNC from 2.6.30 on,
    /// "block_write_full_page: Use synchronous writes for WBC_SYNC_ALL
    /// writebacks": filesystems that write through buffers). The contrary of
    /// NOIDLE, IDLE, has taken its place in 4.10; the single-queue path still
    /// gets the old one.
    pub integrity_flags: BioFlags,
    /// Flags of data that the flusher writes because it is old or because there
    /// is much of it (BACKGROUND from 4.10 on, "writeback: mark background
    /// writeback as such", include/linux/writeback.h).
    pub background_flags: BioFlags,
    /// What ends a bio.
    pub bio_bound: BioBound,
    /// The disk opened as a file is written through its buffers, a bio of a page
    /// for each (fs/buffer.c, `block_write_full_page`; measured on 6.1, here
    /// from 5.0 on).
    pub device_buffers: bool,
    /// A sleep of so many ticks ends with the tick behind them, not with the
    /// last of them ("timers: Switch to a non-cascading wheel", of 4.8; here
    /// from 5.0 on).
    pub sleeps_past_tick: bool,
    /// Queues report congestion, and advice, read-ahead and tasks without
    /// memory look at it (up to 4.20: the multi-queue layer does not report
    /// any).
    pub congestion: bool,
    /// A write with `O_SYNC` writes all that is dirty of the file, not only its
    /// own range (up to 2.6.32).
    pub o_sync_whole_file: bool,
    /// fsync waits for the data before the filesystem's step, not after it
    /// (from 2.6.39 on at the latest).
    pub fsync_waits_first: bool,
    /// Flags of the empty bio that flushes the disk's cache
    /// (`blkdev_issue_flush`): a barrier up to 2.6.36, a write with FLUSH since.
    pub flush_flags: BioFlags,
    /// fsync on a block device.
    pub device_flush: DeviceFlush,
    /// fsync flushes on filesystems without a journal (3.16, "fs/libfs.c: add
    /// generic data flush to fsync").
    pub file_flush: bool,
    /// Queued direct writes with `O_SYNC` to a block device.
    pub device_queued_sync: QueuedSync,
    /// The same to a file.
    pub file_queued_sync: QueuedSync,
    /// Flags of direct writes: without UNPLUG since 2.6.33 ("aio: implement
    /// request batching"), where `io_submit` unplugs at its end; with IDLE
    /// since 4.10 ("block: replace REQ_NOIDLE with REQ_IDLE").
    pub direct_write_flags: BioFlags,
    /// Direct I/O on a block device that a task plug covers.
    pub device_plug: DevicePlug,
    /// Discards of block devices; none: the kernel has no such request (up to
    /// 2.6.27).
    pub discard: Option<DiscardCall>,
}

/// A release without a preset here.
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
    /// 2.6.16 to 2.6.21: global limit of 40 %, two-window read-ahead.
    pub const K2616: Features = Features {
        name: "2.6.16",
        dirty_ratio: 40,
        dirty_background_ratio: 10,
        limit_base: LimitBase::AllMemory,
        dirty_ratio_floor: 5,
        throttle: Throttle::Global,
        over_limit: OverLimit::Congestion,
        write_chunk: WriteChunk::Ratelimit,
        ageing: Ageing::Events,
        flusher: Flusher::Pdflush,
        flusher_sleeps_when_clean: false,
        flusher_plugs_rounds: false,
        task_share: TaskShare::None,
        writes_above_limit_only: false,
        inode_lists: InodeLists::Two,
        walk: Walk::Batched,
        integrity_tags: false,
        more_io_waits: false,
        background_always_waits: true,
        readahead: Readahead::TwoWindow,
        window_cap: WindowCap::None,
        readahead_flags: BioFlags::NONE,
        large_folios: false,
        fault_readahead: FaultReadahead::Around,
        fadvise_random: FadviseRandom::PageByPage,
        stable_pages: false,
        integrity_flags: BioFlags::NONE,
        background_flags: BioFlags::NONE,
        bio_bound: BioBound::Queue,
        device_buffers: false,
        sleeps_past_tick: false,
        congestion: true,
        o_sync_whole_file: true,
        fsync_waits_first: false,
        flush_flags: BioFlags::BARRIER,
        device_flush: DeviceFlush::Never,
        file_flush: false,
        device_queued_sync: QueuedSync::Never,
        file_queued_sync: QueuedSync::Never,
        direct_write_flags: BioFlags(BioFlags::SYNC.0 | BioFlags::UNPLUG.0),
        device_plug: DevicePlug::Submission,
        discard: None,
    };

    /// 2.6.22: ratios 10 and 5 ("change default dirty-writeback limits").
    pub const K2622: Features = Features {
        name: "2.6.22",
        dirty_ratio: 10,
        dirty_background_ratio: 5,
        ..Features::K2616
    };

    /// 2.6.23: on-demand read-ahead.
    pub const K2623: Features = Features {
        name: "2.6.23",
        readahead: Readahead::OnDemandV1,
        ..Features::K2622
    };

    /// 2.6.24: a limit per device, three inode lists.
    pub const K2624: Features = Features {
        name: "2.6.24",
        limit_base: LimitBase::FreeAndLru,
        throttle: Throttle::PerDevice,
        task_share: TaskShare::Mapped,
        inode_lists: InodeLists::Three,
        ..Features::K2623
    };

    /// 2.6.25 to 2.6.27.
    pub const K2625: Features = Features {
        name: "2.6.25",
        more_io_waits: true,
        background_always_waits: false,
        ..Features::K2624
    };

    /// 2.6.28: block devices can be discarded.
    pub const K2628: Features = Features {
        name: "2.6.28",
        discard: Some(DiscardCall::FIRST),
        ..Features::K2625
    };

    /// 2.6.29: all dirtied pages count for the task's share.
    pub const K2629: Features = Features {
        name: "2.6.29",
        task_share: TaskShare::All,
        walk: Walk::Exact,
        ..Features::K2628
    };

    /// 2.6.30: ratios 20 and 10 ("writeback: double the dirty thresholds"), integrity writes are sync.
    pub const K2630: Features = Features {
        name: "2.6.30",
        dirty_ratio: 20,
        dirty_background_ratio: 10,
        integrity_flags: BioFlags(BioFlags::SYNC.0 | BioFlags::NOIDLE.0),
        ..Features::K2629
    };

    /// 2.6.31: read-ahead with context.
    pub const K2631: Features = Features {
        name: "2.6.31",
        writes_above_limit_only: true,
        readahead: Readahead::OnDemandV2,
        ..Features::K2630
    };

    /// 2.6.32: a flusher thread per device; writers over their limit wait by
    /// the clock.
    pub const K2632: Features = Features {
        name: "2.6.32",
        limit_base: LimitBase::FreeAndReclaimable,
        over_limit: OverLimit::Doubling,
        write_chunk: WriteChunk::Dirtied,
        flusher: Flusher::PerDevice,
        window_cap: WindowCap::Memory,
        fault_readahead: FaultReadahead::AroundOrSequential,
        ..Features::K2631
    };

    /// 2.6.33: direct writes do not unplug one by one; `O_SYNC` writes its
    /// range; fsync on a block device flushes.
    pub const K2633: Features = Features {
        name: "2.6.33",
        o_sync_whole_file: false,
        device_flush: DeviceFlush::UnderMutex,
        device_queued_sync: QueuedSync::AtSubmission,
        file_queued_sync: QueuedSync::AtSubmission,
        direct_write_flags: BioFlags::SYNC,
        ..Features::K2632
    };

    /// 2.6.34 and 2.6.35 (and 2.6.33 from its first stable update on): the
    /// advice of random access reads whole requests.
    pub const K2634: Features = Features {
        name: "2.6.34",
        fadvise_random: FadviseRandom::WholeRequest,
        device_flush: DeviceFlush::Together,
        ..Features::K2633
    };

    /// 2.6.36: integrity walks tag, the flusher sleeps when there is nothing
    /// to do.
    pub const K2636: Features = Features {
        name: "2.6.36",
        flusher_sleeps_when_clean: true,
        integrity_tags: true,
        ..Features::K2634
    };

    /// 2.6.37 and 2.6.38: no floor below the dirty ratio; FLUSH instead of
    /// barriers.
    pub const K2637: Features = Features {
        name: "2.6.37",
        dirty_ratio_floor: 0,
        flush_flags: BioFlags(BioFlags::SYNC.0 | BioFlags::FLUSH.0),
        ..Features::K2636
    };

    /// 2.6.39.
    pub const K2639: Features = Features {
        name: "2.6.39",
        fsync_waits_first: true,
        ..Features::K2637
    };

    /// 3.0 and 3.1: pages under write-back are not changed; discards are waited for
    /// together.
    pub const K300: Features = Features {
        name: "3.0",
        fault_readahead: FaultReadahead::AroundMarked,
        stable_pages: true,
        discard: Some(DiscardCall::BATCHED),
        ..Features::K2639
    };

    /// 3.2 to 3.5: writers sleep, only the flusher writes.
    pub const K302: Features = Features {
        name: "3.2",
        limit_base: LimitBase::LessReserve,
        throttle: Throttle::SleepOnly,
        task_share: TaskShare::None,
        inode_lists: InodeLists::Slices,
        ..Features::K300
    };

    /// 3.6 and 3.7: proportions age by time.
    pub const K306: Features = Features {
        name: "3.6",
        ageing: Ageing::Time,
        ..Features::K302
    };

    /// 3.8: discards are plugged.
    pub const K308: Features = Features {
        name: "3.8",
        discard: Some(DiscardCall::PLUGGED),
        ..Features::K306
    };

    /// 3.9 to 3.11: pages are stable only where the device asks for it, which
    /// none here does.
    pub const K309: Features = Features {
        name: "3.9",
        stable_pages: false,
        ..Features::K308
    };

    /// 3.12 to 3.14: cautious context read-ahead; workers end queued writes with
    /// `O_SYNC`.
    pub const K312: Features = Features {
        name: "3.12",
        readahead: Readahead::OnDemandV3,
        device_queued_sync: QueuedSync::InWorker,
        file_queued_sync: QueuedSync::InWorker,
        ..Features::K309
    };

    /// 3.15: anonymous memory does not count for the limits.
    pub const K315: Features = Features {
        name: "3.15",
        limit_base: LimitBase::FileOnly,
        window_cap: WindowCap::TwoMib,
        ..Features::K312
    };

    /// 3.16 to 4.2: fsync flushes without a journal, too.
    pub const K316: Features = Features {
        name: "3.16",
        file_flush: true,
        ..Features::K315
    };

    /// 4.3: a plug over whole rounds of the flusher.
    pub const K403: Features = Features {
        name: "4.3",
        flusher_plugs_rounds: true,
        ..Features::K316
    };

    /// 4.4 to 4.6.
    pub const K404: Features = Features {
        name: "4.4",
        window_cap: WindowCap::Device,
        ..Features::K403
    };

    /// 4.7 to 4.9: the last bio of a discard is synchronous.
    pub const K407: Features = Features {
        name: "4.7",
        discard: Some(DiscardCall::CHAINED),
        ..Features::K404
    };

    /// 4.10 and 4.11: background and direct writes are marked for write-back
    /// throttling; direct writes with `O_DSYNC` to block devices carry FUA.
    pub const K410: Features = Features {
        name: "4.10",
        window_cap: WindowCap::Request,
        background_flags: BioFlags::BACKGROUND,
        direct_write_flags: BioFlags(BioFlags::SYNC.0 | BioFlags::IDLE.0),
        device_queued_sync: QueuedSync::ForcedAccess,
        ..Features::K407
    };

    /// 4.12 to 4.17: a discard drops the pages of its range.
    pub const K412: Features = Features {
        name: "4.12",
        discard: Some(DiscardCall::COHERENT),
        ..Features::K410
    };

    /// 4.18 to 4.20: those that overwrite a file do as well.
    pub const K418: Features = Features {
        name: "4.18",
        file_queued_sync: QueuedSync::ForcedAccess,
        ..Features::K412
    };

    /// 5.0 to 5.8: multi-queue devices only, which are never congested and
    /// split bios themselves.
    pub const K500: Features = Features {
        name: "5.0",
        readahead: Readahead::OnDemandV4,
        readahead_flags: BioFlags::AHEAD,
        integrity_flags: BioFlags::SYNC,
        bio_bound: BioBound::Vectors,
        device_buffers: true,
        sleeps_past_tick: true,
        congestion: false,
        device_plug: DevicePlug::Writes,
        ..Features::K418
    };

    /// 5.9 to 5.17: discards that do not begin at the granularity have a bio up to
    /// there.
    pub const K509: Features = Features {
        name: "5.9",
        discard: Some(DiscardCall::ALIGNED),
        ..Features::K500
    };

    /// 5.18 to 6.5: read-ahead fills large folios.
    pub const K518: Features = Features {
        name: "5.18",
        large_folios: true,
        ..Features::K509
    };

    /// 6.6 to 6.18: direct writes to block devices are plugged like reads.
    pub const K606: Features = Features {
        name: "6.6",
        device_plug: DevicePlug::SeveralBios,
        ..Features::K518
    };

    /// All presets, oldest first.
    pub const ALL: [Features; 33] = [
        Features::K2616,
        Features::K2622,
        Features::K2623,
        Features::K2624,
        Features::K2625,
        Features::K2628,
        Features::K2629,
        Features::K2630,
        Features::K2631,
        Features::K2632,
        Features::K2633,
        Features::K2634,
        Features::K2636,
        Features::K2637,
        Features::K2639,
        Features::K300,
        Features::K302,
        Features::K306,
        Features::K308,
        Features::K309,
        Features::K312,
        Features::K315,
        Features::K316,
        Features::K403,
        Features::K404,
        Features::K407,
        Features::K410,
        Features::K412,
        Features::K418,
        Features::K500,
        Features::K509,
        Features::K518,
        Features::K606,
    ];

    /// The presets, by the release that each begins with.
    const SINCE: &[(KernelVersion, Features)] = &[
        (KernelVersion::v2_6(16), Features::K2616),
        (KernelVersion::v2_6(22), Features::K2622),
        (KernelVersion::v2_6(23), Features::K2623),
        (KernelVersion::v2_6(24), Features::K2624),
        (KernelVersion::v2_6(25), Features::K2625),
        (KernelVersion::v2_6(28), Features::K2628),
        (KernelVersion::v2_6(29), Features::K2629),
        (KernelVersion::v2_6(30), Features::K2630),
        (KernelVersion::v2_6(31), Features::K2631),
        (KernelVersion::v2_6(32), Features::K2632),
        (KernelVersion::v2_6(33), Features::K2633),
        (KernelVersion::v2_6(34), Features::K2634),
        (KernelVersion::v2_6(36), Features::K2636),
        (KernelVersion::v2_6(37), Features::K2637),
        (KernelVersion::v2_6(39), Features::K2639),
        (KernelVersion::new(3, 0), Features::K300),
        (KernelVersion::new(3, 2), Features::K302),
        (KernelVersion::new(3, 6), Features::K306),
        (KernelVersion::new(3, 8), Features::K308),
        (KernelVersion::new(3, 9), Features::K309),
        (KernelVersion::new(3, 12), Features::K312),
        (KernelVersion::new(3, 15), Features::K315),
        (KernelVersion::new(3, 16), Features::K316),
        (KernelVersion::new(4, 3), Features::K403),
        (KernelVersion::new(4, 4), Features::K404),
        (KernelVersion::new(4, 7), Features::K407),
        (KernelVersion::new(4, 10), Features::K410),
        (KernelVersion::new(4, 12), Features::K412),
        (KernelVersion::new(4, 18), Features::K418),
        (KernelVersion::new(5, 0), Features::K500),
        (KernelVersion::new(5, 9), Features::K509),
        (KernelVersion::new(5, 18), Features::K518),
        (KernelVersion::new(6, 6), Features::K606),
    ];

    /// The features of a release.
    ///
    /// # Errors
    /// Releases that are not modelled.
    pub fn of(kernel: KernelVersion) -> Result<Features, UnsupportedRelease> {
        let after = Features::SINCE.partition_point(|(since, _)| *since <= kernel);
        match Features::SINCE[..after].last() {
            Some((_, features)) if kernel <= KernelVersion::NEWEST => Ok(*features),
            _ => Err(UnsupportedRelease(kernel)),
        }
    }
}
