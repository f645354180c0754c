// SPDX-License-Identifier: MIT OR Apache-2.0
//! What differs between kernels, by name.
//!
//! One [`Features`] value per range of releases. Nothing else in this crate
//! compares versions. Where a change has a name in quotes, it is the subject of
//! the kernel's commit. Modelled so far: 2.6.16 to 2.6.31, the kernels with a
//! global pdflush pool. The per-device flusher threads of 2.6.32 and the
//! sleeping throttle of 3.2 are not modelled, so there is no preset for them.

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
}

/// Who is held back, and by which limit (`balance_dirty_pages`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttle {
    /// One limit for the machine (up to 2.6.23).
    Global,
    /// A floating share of it per device (2.6.24, "mm: per device
    /// dirty threshold").
    PerDevice,
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
    /// The dirty throttle.
    pub throttle: Throttle,
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
    /// Background work waits, rather than ends, when inodes are left on
    /// `more_io` (2.6.25).
    pub more_io_waits: bool,
    /// Background work that wrote less than it could sleeps before it ends
    /// (up to 2.6.24).
    pub background_always_waits: bool,
    /// Read-ahead.
    pub readahead: Readahead,
    /// `POSIX_FADV_RANDOM`.
    pub fadvise_random: FadviseRandom,
    /// `write` waits for a page under write-back before it changes it (3.0).
    pub stable_pages: bool,
    /// Flags of data written for fsync and the like (SYNC from 2.6.30 on,
    /// "block_write_full_page: Use synchronous writes for WBC_SYNC_ALL
    /// writebacks": filesystems that write through buffers).
    pub integrity_flags: BioFlags,
    /// Flags of direct writes.
    pub direct_write_flags: BioFlags,
}

/// A release without a preset here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsupportedRelease(pub [u16; 4]);

impl fmt::Display for UnsupportedRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = self.0;
        write!(
            f,
            "no page cache model for Linux {a}.{b}.{c}.{d}: 2.6.16 to 2.6.31 are modelled"
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
        throttle: Throttle::Global,
        task_share: TaskShare::None,
        writes_above_limit_only: false,
        inode_lists: InodeLists::Two,
        walk: Walk::Batched,
        more_io_waits: false,
        background_always_waits: true,
        readahead: Readahead::TwoWindow,
        fadvise_random: FadviseRandom::PageByPage,
        stable_pages: false,
        integrity_flags: BioFlags::NONE,
        direct_write_flags: BioFlags(BioFlags::SYNC.0 | BioFlags::UNPLUG.0),
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

    /// 2.6.25 to 2.6.28.
    pub const K2628: Features = Features {
        name: "2.6.28",
        more_io_waits: true,
        background_always_waits: false,
        ..Features::K2624
    };

    /// 2.6.28.6, with the corrected page walk. In which stable release
    /// between 2.6.28.1 and this one it came is not known here.
    pub const K26286: Features = Features {
        name: "2.6.28.6",
        walk: Walk::Exact,
        ..Features::K2628
    };

    /// 2.6.29: all dirtied pages count for the task's share.
    pub const K2629: Features = Features {
        name: "2.6.29",
        task_share: TaskShare::All,
        ..Features::K26286
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

    /// The features of a release, for example `[2, 6, 28, 0]`.
    ///
    /// # Errors
    /// Releases that are not modelled.
    pub fn of_release(release: [u16; 4]) -> Result<Features, UnsupportedRelease> {
        match release {
            [2, 6, 16..=21, _] => Ok(Features::K2616),
            [2, 6, 22, _] => Ok(Features::K2622),
            [2, 6, 23, _] => Ok(Features::K2623),
            [2, 6, 24, _] => Ok(Features::K2624),
            [2, 6, 25..=27, _] | [2, 6, 28, 0..=5] => Ok(Features::K2628),
            [2, 6, 28, _] => Ok(Features::K26286),
            [2, 6, 29, _] => Ok(Features::K2629),
            [2, 6, 30, _] => Ok(Features::K2630),
            [2, 6, 31, _] => Ok(Features::K2631),
            _ => Err(UnsupportedRelease(release)),
        }
    }

    /// What stands in for a release that is not modelled: 2.6.31 with the few
    /// later changes that are.
    pub fn stand_in(release: [u16; 4]) -> Features {
        Features {
            fadvise_random: if release >= [2, 6, 34, 0] {
                FadviseRandom::WholeRequest
            } else {
                FadviseRandom::PageByPage
            },
            stable_pages: ([3, 0, 0, 0]..[3, 9, 0, 0]).contains(&release),
            ..Features::K2631
        }
    }
}
