// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers that no block event carries: pages of the cache, requests and tags in use.
//!
//! They are a stream of their own beside the events, told only where somebody wants it, and
//! no part of the digest.

use blklab_types::{Dev, Time};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// A number of the machine or of a queue, which changes in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    /// Dirty pages that are not under write-back (`Dirty` of /proc/meminfo).
    DirtyPages,
    /// Pages under write-back (`Writeback`).
    WritebackPages,
    /// Dirty pages from which on write-back begins in the background.
    BackgroundLimitPages,
    /// Dirty pages at which writers are made to wait.
    DirtyLimitPages,
    /// Pages in the page cache (`Cached`).
    CachedPages,
    /// Requests of a single queue's pool of reads (`rl->count[READ]`, to 2.6.29).
    ReadRequests,
    /// Of its pool of writes.
    WriteRequests,
    /// Requests of its asynchronous pool (`rl->count[BLK_RW_ASYNC]`, from 2.6.30 on).
    AsyncRequests,
    /// Of its synchronous pool.
    SyncRequests,
    /// What each pool has (`nr_requests`); a batching process may exceed it by half.
    PoolRequests,
    /// Scheduler tags in use, of all hardware queues.
    SchedulerTags,
    /// Scheduler tags that there are.
    SchedulerTagsAll,
    /// Driver tags in use, of all hardware queues.
    DriverTags,
    /// Driver tags that there are.
    DriverTagsAll,
}

impl Counter {
    /// All, in order.
    pub const ALL: [Counter; 14] = [
        Counter::DirtyPages,
        Counter::WritebackPages,
        Counter::BackgroundLimitPages,
        Counter::DirtyLimitPages,
        Counter::CachedPages,
        Counter::ReadRequests,
        Counter::WriteRequests,
        Counter::AsyncRequests,
        Counter::SyncRequests,
        Counter::PoolRequests,
        Counter::SchedulerTags,
        Counter::SchedulerTagsAll,
        Counter::DriverTags,
        Counter::DriverTagsAll,
    ];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Counter::DirtyPages => "dirty_pages",
            Counter::WritebackPages => "writeback_pages",
            Counter::BackgroundLimitPages => "background_limit_pages",
            Counter::DirtyLimitPages => "dirty_limit_pages",
            Counter::CachedPages => "cached_pages",
            Counter::ReadRequests => "read_requests",
            Counter::WriteRequests => "write_requests",
            Counter::AsyncRequests => "async_requests",
            Counter::SyncRequests => "sync_requests",
            Counter::PoolRequests => "pool_requests",
            Counter::SchedulerTags => "scheduler_tags",
            Counter::SchedulerTagsAll => "scheduler_tags_all",
            Counter::DriverTags => "driver_tags",
            Counter::DriverTagsAll => "driver_tags_all",
        }
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Consumer of counters, in order of time.
pub trait CounterSink {
    /// A counter has a new value: one of the machine, or of the queue of a device. Each is
    /// told with the value that it begins with, too. Of several values within an instant the
    /// last one counts, and is the only one that is told.
    fn counter(&mut self, time: Time, dev: Option<Dev>, counter: Counter, value: u32);
}

impl<S: CounterSink> CounterSink for Rc<RefCell<S>> {
    fn counter(&mut self, time: Time, dev: Option<Dev>, counter: Counter, value: u32) {
        self.borrow_mut().counter(time, dev, counter, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = Counter::ALL.iter().map(|c| c.name()).collect();
        assert_eq!(names.len(), Counter::ALL.len());
        assert!(Counter::ALL.is_sorted());
    }
}
