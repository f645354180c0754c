// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many pages may be dirty: mm/page-writeback.c, `get_dirty_limits`.
//!
//! Pure arithmetic, in pages and percent, truncating as the kernel does.
//! Left out: high memory, the extra quarter of real-time tasks, minimum and
//! maximum shares of a device (defaults 0 and 100).

use crate::features::{Features, LimitBase};
use blklab_types::PAGE_BYTES;

/// The part of memory that is kept back from 3.2 on, about the zones' high
/// watermarks and reserves: one hundredth.
const RESERVE_SHARE: u64 = 100;

/// The memory that the limits depend on, in pages (`determine_dirtyable_memory`,
/// later `global_dirtyable_memory`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// All memory that the kernel's own does not take.
    pub total_pages: u64,
    /// Anonymous pages and mapped file pages.
    pub mapped_pages: u64,
    /// Anonymous pages.
    pub anon_pages: u64,
    /// Whether anonymous pages can be given back.
    pub swap: bool,
}

impl Memory {
    /// Pages that cannot be given back.
    fn pinned(&self) -> u64 {
        if self.swap { 0 } else { self.anon_pages }
    }

    fn less(&self, pages: u64) -> u64 {
        self.total_pages.saturating_sub(pages) + 1
    }
}

/// Where background writing starts and where writers are stopped, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Background work runs above it.
    pub background: u64,
    /// Writers are throttled above it.
    pub dirty: u64,
}

impl Limits {
    /// The limits for two ratios in percent (`get_dirty_limits`, later
    /// `global_dirty_limits`).
    ///
    /// Ratios below the floor act as the floor; a background limit not below
    /// the dirty limit becomes half of that.
    pub fn new(features: &Features, memory: Memory, dirty: u32, background: u32) -> Limits {
        let (available, dirty) = match features.limit_base {
            LimitBase::AllMemory => {
                let mapped = (memory.mapped_pages * 100).checked_div(memory.total_pages);
                let unmapped = 100_u64.saturating_sub(mapped.unwrap_or(0));
                (memory.total_pages, u64::from(dirty).min(unmapped / 2))
            }
            // Free and LRU pages together do not change here: the page cache
            // and the anonymous pages are LRU pages, and the rest is free.
            LimitBase::FreeAndLru => (memory.total_pages + 1, u64::from(dirty)),
            LimitBase::FreeAndReclaimable => (memory.less(memory.pinned()), u64::from(dirty)),
            LimitBase::LessReserve => {
                let reserve = memory.total_pages / RESERVE_SHARE;
                (memory.less(memory.pinned() + reserve), u64::from(dirty))
            }
            LimitBase::FileOnly => {
                let reserve = memory.total_pages / RESERVE_SHARE;
                (memory.less(memory.anon_pages + reserve), u64::from(dirty))
            }
        };
        let dirty = dirty.max(u64::from(features.dirty_ratio_floor));
        let mut background = u64::from(background);
        let in_percent = matches!(
            features.limit_base,
            LimitBase::AllMemory | LimitBase::FreeAndLru
        );
        if in_percent && background >= dirty {
            background = dirty / 2;
        }
        Limits::checked(background * available / 100, dirty * available / 100)
    }

    /// The limits with byte values in place of ratios (`vm_dirty_bytes`,
    /// `dirty_background_bytes`): rounded up to pages, and a background limit not
    /// below the dirty limit becomes half of that.
    pub(crate) fn with_bytes(self, dirty: Option<u64>, background: Option<u64>) -> Limits {
        let pages = |bytes: u64| bytes.div_ceil(PAGE_BYTES);
        Limits::checked(
            background.map_or(self.background, pages),
            dirty.map_or(self.dirty, pages),
        )
    }

    fn checked(background: u64, dirty: u64) -> Limits {
        Limits {
            background: if background >= dirty {
                dirty / 2
            } else {
                background
            },
            dirty,
        }
    }

    /// Below the middle nobody is throttled (2.6.24 and later).
    pub fn freerun(&self) -> u64 {
        (self.background + self.dirty) / 2
    }

    /// A device's part of the dirty limit: its share of recent completions, but not
    /// more than is left of the global limit beside its own pages
    /// (`clip_bdi_dirty_limit`).
    pub fn of_device(&self, (num, den): (u64, u64), global_pages: u64, device_pages: u64) -> u64 {
        let share = u128::from(self.dirty) * u128::from(num) / u128::from(den.max(1));
        let left = self.dirty.saturating_sub(global_pages) + device_pages;
        u64::try_from(share).unwrap_or(u64::MAX).min(left)
    }
}

/// A task's part of the device's limit (`task_dirty_limit`): less, the more of the
/// recently dirtied pages are its own, down to seven eighths.
pub(crate) fn of_task(limit: u64, (num, den): (u64, u64)) -> u64 {
    let off = u128::from(limit >> 3) * u128::from(num) / u128::from(den.max(1));
    limit
        .saturating_sub(u64::try_from(off).unwrap_or(u64::MAX))
        .max(limit / 2)
}

/// Pages that one CPU may dirty between two checks (`set_ratelimit`).
pub(crate) fn ratelimit_pages(total_pages: u64, cpus: u32) -> u64 {
    (total_pages / (u64::from(cpus.max(1)) * 32)).clamp(16, 1024)
}

/// The same from 3.2 on: a share of the dirty limit.
pub(crate) fn ratelimit_of_limit(dirty_pages: u64, cpus: u32) -> u64 {
    (dirty_pages / (u64::from(cpus.max(1)) * 32)).max(16)
}

/// Pages that a throttled task is asked to write (`sync_writeback_pages`).
pub(crate) fn write_chunk(ratelimit: u64) -> u64 {
    ratelimit + ratelimit / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::rules_of;

    fn check(release: &str, memory: (u64, u64), ratios: (u32, u32), want: (u64, u64)) -> Limits {
        let memory = Memory {
            total_pages: memory.0,
            mapped_pages: memory.1,
            anon_pages: memory.1,
            swap: false,
        };
        let got = Limits::new(&rules_of(release), memory, ratios.0, ratios.1);
        assert_eq!((got.background, got.dirty), want);
        got
    }

    #[test]
    fn rate_limits_of_small_and_large_machines() {
        assert_eq!(
            (ratelimit_pages(131_072, 1), write_chunk(1024)),
            (1024, 1536)
        );
        assert_eq!((ratelimit_pages(16_384, 1), write_chunk(512)), (512, 768));
        assert_eq!(ratelimit_pages(16_384, 64), 16);
    }

    #[test]
    fn limits_of_2_6_18_are_clipped_by_the_unmapped_share() {
        check("2.6.16", (262_144, 26_214), (40, 10), (26_214, 104_857));
        check("2.6.16", (262_144, 26_214), (1, 10), (5_242, 13_107));
        check("2.6.16", (262_144, 131_072), (40, 10), (26_214, 65_536));
        check("2.6.16", (262_144, 262_144), (40, 10), (5_242, 13_107));
    }

    #[test]
    fn later_limits_leave_out_what_cannot_be_given_back() {
        // 100000 pages, of which 20000 are anonymous, without swap.
        let memory = (100_000, 20_000);
        check("2.6.31", memory, (20, 10), (10_000, 20_000));
        check("2.6.32", memory, (20, 10), (8_000, 16_000));
        check("2.6.32", memory, (1, 0), (0, 4_000));
        check("2.6.32", memory, (20, 50), (8_000, 16_000));
        check("3.2", memory, (20, 10), (7_900, 15_800));
        check("3.2", memory, (1, 10), (395, 790));
        let swap = Memory {
            total_pages: 100_000,
            mapped_pages: 20_000,
            anon_pages: 20_000,
            swap: true,
        };
        let dirty = |k| Limits::new(&k, swap, 20, 10).dirty;
        assert_eq!(
            [rules_of("2.6.32"), rules_of("3.2"), rules_of("3.15")].map(dirty),
            [20_000, 19_800, 15_800]
        );
    }

    #[test]
    fn limits_of_2_6_24_with_device_and_task_share() {
        let l = check("2.6.24", (262_144, 0), (10, 5), (13_107, 26_214));
        assert_eq!(l.freerun(), 19_660);
        let device = l.of_device((1, 1), 20_000, 20_000);
        assert_eq!(device, 26_214);
        assert_eq!(of_task(device, (1, 1)), 22_938);
        assert_eq!(l.of_device((1, 2), 0, 0), 13_107);
        assert_eq!(
            l.of_device((1, 1), 30_000, 100),
            100,
            "others used up the global limit"
        );
    }
}
