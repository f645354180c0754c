// SPDX-License-Identifier: MIT OR Apache-2.0
//! Room for new pages.
//!
//! When free memory falls below the low watermark, clean pages are dropped up
//! to the high one; this costs no time (the kernel's kswapd keeps up with any
//! disk). A task that finds nothing to drop asks pdflush to write and sleeps
//! for congestion to end, at most 100 ms at a time (mm/vmscan.c, 2.6.28,
//! `do_try_to_free_pages`); where there is no congestion, for these 100 ms.

use crate::cache::PageCache;
use crate::ops::Host;
use crate::state::State;
use crate::state::pdflush::Job;
use crate::state::sleeps::Sleep;
use blklab_types::Span;

/// Longest sleep for the end of congestion (`HZ/10`).
pub(crate) const CONGESTION_TIMEOUT: Span = Span::from_ms(100);

/// Free pages at which dropping starts and ends, by size of memory
/// (mm/page_alloc.c, `init_per_zone_pages_min`).
fn watermarks(memory_bytes: u64) -> (u64, u64) {
    let min_kib = (memory_bytes / 1024 * 16).isqrt().clamp(128, 65_536);
    let min = min_kib / 4;
    (min + min / 4, min + min / 2)
}

impl<H: Host> PageCache<H> {
    /// Sleeps until there is room for so many more pages.
    pub async fn make_room(&self, pages: u64) {
        let capacity = self.config.cache_pages();
        let pages = pages.min(capacity / 2);
        let (low, high) = watermarks(self.config.memory_bytes);
        let (low, high) = (low.min(capacity / 8), high.min(capacity / 4));
        let full = |s: &mut State| {
            let after = s.nr_cached + pages;
            if after + low <= capacity {
                return false;
            }
            let freed = s
                .lru
                .reclaim(&mut s.files, s.nr_cached, after + high - capacity);
            s.nr_cached -= freed;
            s.stats.reclaimed_pages += freed;
            let full = s.nr_cached + pages > capacity;
            s.stats.reclaim_waits += u64::from(full);
            full
        };
        while self.with(full) {
            self.offer(Job::Background {
                min_pages: self.config.max_writeback_pages as i64,
            });
            if self.config.features.congestion {
                let wait = self.host.congestion_wait(CONGESTION_TIMEOUT);
                self.sleeping(Sleep::Memory, wait).await;
            } else {
                let wait = self.host.sleep(CONGESTION_TIMEOUT);
                self.sleeping(Sleep::Memory, wait).await;
            }
        }
    }

    /// Drops all clean pages of all files, and names and inodes that nobody
    /// uses (`echo 3 > drop_caches`); dirty pages and pages in flight stay.
    /// Returns how many pages were dropped.
    pub fn drop_caches(&self) -> u64 {
        self.with(|s| {
            let root = s.root;
            for (i, file) in s.files.iter_mut().enumerate() {
                let used = file.nr_open > 0 || file.inode_dirty || i == root.idx();
                file.in_memory &= used;
            }
            self.drop_filesystem_caches(s);
            let dropped = s.lru.drop_all_clean(&mut s.files);
            s.nr_cached -= dropped;
            dropped
        })
    }
}
