// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the page cache did, as plain data.

use blklab_types::{Span, TaskId};

/// Counters since the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Clean pages that became dirty.
    pub pages_dirtied: u64,
    /// Pages written back.
    pub pages_written: u64,
    /// Pages read into the cache.
    pub pages_read: u64,
    /// Bios of pages written back.
    pub write_bios: u64,
    /// Bios of pages read.
    pub read_bios: u64,
    /// Bios of direct I/O.
    pub direct_bios: u64,
    /// Bios that failed.
    pub failed_bios: u64,
    /// Largest number of pages dirty or under write-back.
    pub dirty_or_writeback_max: u64,
    /// Pages dropped because memory was short.
    pub reclaimed_pages: u64,
    /// Sleeps of tasks that found nothing to drop.
    pub reclaim_waits: u64,
    /// pdflush threads started, those at boot included.
    pub pdflush_started: u64,
    /// Jobs refused because no pdflush thread was idle.
    pub pdflush_refused: u64,
    /// Throttling by task, an index.
    throttles: Vec<Throttled>,
}

/// What the dirty throttle did to one task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttled {
    /// Checks of the limits.
    pub checks: u64,
    /// Checks that found the task over its limit.
    pub exceeded: u64,
    /// Sleeps for the end of congestion.
    pub waits: u64,
    /// Pages that the task wrote itself.
    pub pages_written: u64,
    /// Time between the start and the end of checks.
    pub time: Span,
}

impl Stats {
    /// What the throttle did to a task.
    pub fn throttled(&self, task: TaskId) -> Throttled {
        self.throttles.get(task.idx()).copied().unwrap_or_default()
    }

    pub(crate) fn throttled_mut(&mut self, task: TaskId) -> &mut Throttled {
        if self.throttles.len() <= task.idx() {
            self.throttles.resize(task.idx() + 1, Throttled::default());
        }
        &mut self.throttles[task.idx()]
    }
}

/// Page counts at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Pages in the cache.
    pub cached: u64,
    /// Dirty pages not under write-back yet.
    pub dirty: u64,
    /// Pages under write-back.
    pub writeback: u64,
    /// Free pages.
    pub free: u64,
    /// Background limit.
    pub background_limit: u64,
    /// Dirty limit.
    pub dirty_limit: u64,
    /// Threads in the pdflush pool.
    pub pdflush_threads: u32,
}
