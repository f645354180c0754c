// SPDX-License-Identifier: MIT OR Apache-2.0
//! What changed in the multi-queue block layer.

use crate::Counting;

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

blklab_kernel::features! {
    /// What a kernel release does in the multi-queue path.
    pub struct Features {
        /// Requests of a plug that make the next one flush it.
        pub plug_max_requests: u32 = 16,
        /// That limit is doubled for a plug of several queues.
        pub plug_max_doubles: bool = false,
        /// A large request flushes the plug with merging switched off, too.
        pub plug_flush_ignores_nomerges: bool = true,
        /// Order of the plug's list.
        pub plug_order: PlugOrder = PlugOrder::Sorted,
        /// Where bios are merged in it.
        pub plug_merge: PlugMerge = PlugMerge::All,
        /// Without a scheduler a plug may go straight to the driver when it is
        /// flushed.
        pub plug_issues_directly: bool = false,
        /// Without a scheduler, on several hardware queues, a plug holds one
        /// request.
        pub limited_plug: bool = true,
        /// Requests of a plug are allocated together.
        pub batch_allocation: bool = false,
        /// Hardware queues with driver tags in common have those of the scheduler in common,
        /// too.
        pub shares_sched_tags: bool = false,
        /// Every bio passes through a plug (6.12 to 7.1).
        pub implicit_plug: bool = false,
        /// The dispatch loop stops at the first request without a driver tag.
        pub loop_stops_without_tag: bool = false,
        /// A limited scheduler depth counts all tags, not those of a word.
        pub shallow_depth_is_total: bool = false,
        /// The scheduler is told of a new `nr_requests` before it is stored, and reads
        /// the old number.
        pub tells_depth_too_early: bool = true,
        /// Which sleepers freed tags wake.
        pub tag_wakes: TagWakes = TagWakes::PerQueue,
        /// Ordered requests are limited like others.
        pub flush_is_limited: bool = false,
        /// Data of ordered requests go through the scheduler.
        pub flush_data_is_ordinary: bool = false,
        /// Requests that have a class of their own: bios get the task's priority.
        pub bio_gets_task_prio: bool = false,
        /// Largest request unless the device takes less or was told otherwise, in
        /// sectors.
        pub max_sectors: u32 = 2560,
        /// Read-ahead of a device that seeks is twice its largest request.
        pub long_read_ahead: bool = false,
        /// A requeued request goes behind those that were requeued before.
        pub requeue_at_tail: bool = false,
        /// A bio whose submitter does not sleep is refused rather than split.
        pub refuses_to_split: bool = false,
        /// `io.max` counts the remainder of a split bio as another I/O.
        pub throttle_counts_splits: bool = false,
        /// A bio over the limit of I/Os waits at least as long as one takes at that
        /// rate, not just until the slice ends.
        pub throttle_waits_for_one_io: bool = false,
        /// Metadata is not held back; what follows waits longer instead.
        pub throttle_lends_to_meta: bool = false,
        /// `none-to-rt` of `io.prio.class` means `promote-to-rt`.
        pub none_to_rt_promotes: bool = false,
        /// `io.latency` joins the policies when a target is written, not with the disk.
        pub latency_joins_late: bool = false,
        /// Its time begins for each part of a bio, not with the submission.
        pub latency_begins_in_queue: bool = false,
        /// `io.cost`: while tasks wait for requests the rate falls below `min`.
        pub cost_falls_below_min: bool = true,
        /// `io.cost`: a flush without data costs what a page does.
        pub cost_charges_empty: bool = true,
        /// `io.cost`: a change of the device's class resets its rate for good.
        pub cost_class_resets_rate: bool = false,
        /// `io.cost`: a period in which nothing ended leaves the busy level as it is.
        pub cost_waits_for_ends: bool = false,
    }

    /// What changed, release by release: one entry for each release at which
    /// [`Features::of`] differs from the one before. Read were 5.10, 6.1, 6.12 and 7.3;
    /// where a change between them came is taken from the history of the files as
    /// far as it is known.
    pub const CHANGES = {
        "5.14": "dispatch loop stops at the first request without a driver tag; io.cost keeps its rate above min while tasks wait for requests",
            "block/blk-mq-sched.c, block/blk-iocost.c" => {
            loop_stops_without_tag: true,
            cost_falls_below_min: false,
        }
        "5.16": "plugs: 32 requests, newest first, allocated together; direct issue from plugs; one set of scheduler tags where driver tags are one",
            "block/blk-mq.c, block/blk-merge.c, block/blk-mq-sched.c" => {
            shares_sched_tags: true,
            plug_max_requests: 32,
            plug_max_doubles: true,
            plug_flush_ignores_nomerges: false,
            plug_order: PlugOrder::NewestFirst,
            plug_merge: PlugMerge::Newest,
            plug_issues_directly: true,
            limited_plug: false,
            batch_allocation: true,
        }
        "5.18": "bios get the priority of their task when they are submitted", "block/blk-mq.c" => {
            bio_gets_task_prio: true,
        }
        "6.1": "freed tags are counted for all wait queues together (as in 6.1.192); io.max counts remainders of split bios; REQ_NOWAIT bios are not split (as in 6.1.176)",
            "lib/sbitmap.c, block/blk-throttle.c, block/blk-merge.c" => {
            tag_wakes: TagWakes::OneQueue,
            refuses_to_split: true,
            throttle_counts_splits: true,
        }
        "6.2": "a batch of freed tags wakes tasks of several wait queues", "lib/sbitmap.c" => {
            tag_wakes: TagWakes::Spill,
        }
        "6.3": "io.latency joins the queue's policies at its first target", "block/blk-iolatency.c" => {
            latency_joins_late: true,
        }
        "6.5": "io.prio.class has promote-to-rt, and none-to-rt means the same",
            "block/blk-ioprio.c" => {
            none_to_rt_promotes: true,
        }
        "6.12": "every bio is plugged, oldest first; limited depths count all tags; ordered data are ordinary requests; io.max does not hold metadata back; io.cost does not charge empty flushes, and a change of class resets its rate (as in 6.12.117)",
            "block/blk-core.c, block/blk-mq.c, block/blk-flush.c, block/blk-throttle.c, block/blk-iocost.c, lib/sbitmap.c" => {
            cost_charges_empty: false,
            cost_class_resets_rate: true,
            plug_order: PlugOrder::OldestFirst,
            implicit_plug: true,
            shallow_depth_is_total: true,
            flush_is_limited: true,
            flush_data_is_ordinary: true,
            requeue_at_tail: true,
            throttle_waits_for_one_io: true,
            throttle_lends_to_meta: true,
        }
        "6.17": "requests of up to 4 MiB instead of 1280 KiB; read-ahead of devices that seek is twice their largest request; schedulers are told of the new nr_requests, not of the one before",
            "block/blk-settings.c, block/blk-mq.c" => {
            tells_depth_too_early: false,
            max_sectors: 8192,
            long_read_ahead: true,
        }
        "6.18": "io.cost leaves its busy level as it is while nothing ends; the time of io.latency begins for each part of a bio (between 6.13 and 7.3)",
            "block/blk-iocost.c, block/blk-iolatency.c, block/blk-mq.c" => {
            latency_begins_in_queue: true,
            cost_waits_for_ends: true,
        }
        "7.2": "a bio outside of a task's plug is not plugged (7.1.13 plugs it, 7.2.12 does not)",
            "block/blk-core.c" => {
            implicit_plug: false,
        }
    };
}

impl Features {
    /// How limits of groups count.
    pub fn throttle_counting(&self) -> Counting {
        Counting {
            splits: self.throttle_counts_splits,
            waits_for_one_io: self.throttle_waits_for_one_io,
            lends_to_meta: self.throttle_lends_to_meta,
            ..Counting::default()
        }
    }
}

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
    use blklab_kernel::KernelVersion;

    #[test]
    fn every_change_is_in_the_table() {
        let era = KernelVersion::new(5, 0)..KernelVersion::FOREVER;
        blklab_kernel::check_changes(CHANGES, era, Features::of);
    }
}
