// SPDX-License-Identifier: MIT OR Apache-2.0
//! What changed in the multi-queue block layer.

use blklab_kernel::{Change, KernelVersion};

/// Order in which a plug's requests leave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlugOrder {
    /// As they came, sorted if there are several queues or CPUs.
    Sorted,
    /// The newest is first on the list; groups for a scheduler are turned
    /// round again, what is issued directly is not.
    NewestFirst,
    /// As they came.
    OldestFirst,
}

/// Which requests of a plug a bio is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlugMerge {
    /// All of the queue, newest first.
    All,
    /// The newest of the queue alone.
    Newest,
}

/// What a kernel release does in the multi-queue path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// Requests of a plug that make the next one flush it.
    pub plug_max_requests: u32,
    /// That limit is doubled for a plug of several queues.
    pub plug_max_doubles: bool,
    /// A large request flushes the plug with merging switched off, too.
    pub plug_flush_ignores_nomerges: bool,
    /// Order of the plug's list.
    pub plug_order: PlugOrder,
    /// Where bios are merged in it.
    pub plug_merge: PlugMerge,
    /// Without a scheduler a plug may go straight to the driver when it is
    /// flushed.
    pub plug_issues_directly: bool,
    /// Without a scheduler, on several hardware queues, a plug holds one
    /// request.
    pub limited_plug: bool,
    /// Requests of a plug are allocated together.
    pub batch_allocation: bool,
    /// Every bio passes through a plug.
    pub implicit_plug: bool,
    /// The dispatch loop stops at the first request without a driver tag.
    pub loop_stops_without_tag: bool,
    /// A limited scheduler depth counts all tags, not those of a word.
    pub shallow_depth_is_total: bool,
    /// The scheduler is told of a new `nr_requests` before it is stored, and reads
    /// the old number.
    pub tells_depth_too_early: bool,
    /// Which sleepers freed tags wake.
    pub tag_wakes: TagWakes,
    /// Ordered requests are limited like others.
    pub flush_is_limited: bool,
    /// Data of ordered requests go through the scheduler.
    pub flush_data_is_ordinary: bool,
    /// Requests that have a class of their own: bios get the task's priority.
    pub bio_gets_task_prio: bool,
    /// Largest request unless the device takes less or was told otherwise, in
    /// sectors.
    pub max_sectors: u32,
    /// A requeued request goes behind those that were requeued before.
    pub requeue_at_tail: bool,
    /// `io.max` counts the remainder of a split bio as another I/O.
    pub throttle_counts_splits: bool,
    /// A bio over the limit of I/Os waits at least as long as one takes at that
    /// rate, not just until the slice ends.
    pub throttle_waits_for_one_io: bool,
    /// Metadata is not held back; what follows waits longer instead.
    pub throttle_lends_to_meta: bool,
}

impl Features {
    /// The features of a release.
    pub fn of(v: KernelVersion) -> Features {
        Features {
            plug_max_requests: if v.since(5, 16) { 32 } else { 16 },
            plug_max_doubles: v.since(5, 16),
            plug_flush_ignores_nomerges: !v.since(5, 16),
            plug_order: if v.since(6, 12) {
                PlugOrder::OldestFirst
            } else if v.since(5, 16) {
                PlugOrder::NewestFirst
            } else {
                PlugOrder::Sorted
            },
            plug_merge: if v.since(5, 16) {
                PlugMerge::Newest
            } else {
                PlugMerge::All
            },
            plug_issues_directly: v.since(5, 16),
            limited_plug: !v.since(5, 16),
            batch_allocation: v.since(5, 16),
            implicit_plug: v.since(6, 12),
            loop_stops_without_tag: v.since(5, 14),
            shallow_depth_is_total: v.since(6, 12),
            tells_depth_too_early: !v.since(6, 17),
            tag_wakes: if v.since(6, 2) {
                TagWakes::Spill
            } else if v.since(6, 1) {
                TagWakes::OneQueue
            } else {
                TagWakes::PerQueue
            },
            flush_is_limited: v.since(6, 12),
            flush_data_is_ordinary: v.since(6, 12),
            bio_gets_task_prio: v.since(5, 18),
            max_sectors: if v.since(6, 17) { 8192 } else { 2560 },
            requeue_at_tail: v.since(6, 12),
            throttle_counts_splits: v.since(6, 1),
            throttle_waits_for_one_io: v.since(6, 12),
            throttle_lends_to_meta: v.since(6, 12),
        }
    }
}

/// What changed, release by release: one entry for each release at which
/// [`Features::of`] differs from the one before. Read were 5.10, 6.1 and 6.12;
/// where a change between them came is taken from the history of the files as
/// far as it is known.
pub const CHANGES: &[Change] = &[
    Change {
        release: KernelVersion::new(5, 14),
        what: "dispatch loop stops at the first request without a driver tag",
        source: "block/blk-mq-sched.c",
    },
    Change {
        release: KernelVersion::new(5, 16),
        what: "plugs: 32 requests, newest first, allocated together; direct issue from plugs",
        source: "block/blk-mq.c, block/blk-merge.c",
    },
    Change {
        release: KernelVersion::new(5, 18),
        what: "bios get the priority of their task when they are submitted",
        source: "block/blk-mq.c",
    },
    Change {
        release: KernelVersion::new(6, 1),
        what: "freed tags are counted for all wait queues together (as in 6.1.192); io.max counts remainders of split bios",
        source: "lib/sbitmap.c, block/blk-throttle.c",
    },
    Change {
        release: KernelVersion::new(6, 2),
        what: "a batch of freed tags wakes tasks of several wait queues",
        source: "lib/sbitmap.c",
    },
    Change {
        release: KernelVersion::new(6, 12),
        what: "every bio is plugged, oldest first; limited depths count all tags; ordered data are ordinary requests; io.max does not hold metadata back (as in 6.12.117)",
        source: "block/blk-core.c, block/blk-mq.c, block/blk-flush.c, block/blk-throttle.c, lib/sbitmap.c",
    },
    Change {
        release: KernelVersion::new(6, 17),
        what: "requests of up to 4 MiB instead of 1280 KiB; schedulers are told of the new nr_requests, not of the one before",
        source: "block/blk-settings.c, block/blk-mq.c",
    },
];

/// Which sleepers freed tags wake. A batch is both: so many freed tags wake, and
/// so many tasks are woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagWakes {
    /// Freed tags count for the first wait queue with sleepers; each queue has a
    /// count of its own (lib/sbitmap.c, 5.10).
    PerQueue,
    /// One count; a batch wakes sleepers of one queue only, even if it has fewer
    /// (6.1.192).
    OneQueue,
    /// One count; what a queue has too few sleepers for goes to the next
    /// (6.12).
    Spill,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_in_the_table() {
        let era = KernelVersion::new(5, 0)..KernelVersion::FOREVER;
        blklab_kernel::check_changes(CHANGES, era, Features::of);
    }
}
