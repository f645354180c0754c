// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the single-queue block layer does differently by version: the one
//! place where versions are compared.

use blklab_kernel::{Change, KernelVersion};

/// When the queue is not plugged for a new request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlugPolicy {
    /// Every empty queue is plugged.
    Always,
    /// Not on non-rotational queues (2.6.29 alone).
    SkipNonrot,
    /// Not on non-rotational queues whose driver uses block-layer tags.
    SkipNonrotTagged,
    /// Not on non-rotational queues that have had more than four requests in
    /// flight (2.6.32 alone).
    SkipNonrotDeep,
}

/// How ordered writes are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordered {
    /// Barriers that drain the queue.
    Barrier,
    /// FLUSH/FUA sequences, one at a time at the head of the dispatch list.
    FlushSerial,
    /// FLUSH/FUA with double-buffered flushes.
    FlushDouble,
}

/// What a flush of FLUSH/FUA sequences is (`blk_kick_flush`, block/blk-flush.c),
/// which events show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushCommand {
    /// An empty sync write that asks for a flush: FWS.
    Write,
    /// An operation of its own, sync: FNS.
    Sync,
    /// An operation of its own: FN.
    Plain,
}

/// Which block-layer tags asynchronous requests may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsyncTags {
    /// All.
    All,
    /// Those above the first quarter.
    UpperThreeQuarters,
    /// At most depth - 2, in flight and by number.
    DepthMinusTwo,
}

/// Order in which a task plug is flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushSort {
    /// By queue, if it holds several; order of submission inside a queue.
    Queue,
    /// By queue and sector, if it holds requests of several queues.
    SectorIfSeveralQueues,
    /// By queue and sector, always.
    Sector,
}

/// Named differences between versions. Sources: the kernel trees named in the
/// comments, files block/ll_rw_blk.c (to 2.6.24), block/blk-core.c,
/// blk-merge.c, elevator.c, blk-flush.c, blk-tag.c.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// The core keeps the back-merge hash (2.6.19); before, each scheduler.
    pub core_merge_hash: bool,
    /// Schedulers may refuse a bio merge (2.6.20).
    pub allow_merge_hook: bool,
    /// Equal failfast bits are needed to merge, so read-ahead bios do not
    /// merge with requests made from read-ahead bios (2.6.31 alone).
    pub failfast_blocks_merge: bool,
    /// Request pools are split into async and sync (2.6.30), not by direction.
    pub pools_by_sync: bool,
    /// The sync flag also unplugs the queue (to 2.6.28).
    pub sync_unplugs: bool,
    /// Tasks hold their own plug (2.6.39), the queue none.
    pub task_plug: bool,
    /// When the queue plug is skipped.
    pub plug_policy: PlugPolicy,
    /// An unplug of a non-rotational queue that is not plugged calls the
    /// driver all the same (2.6.29 to 2.6.38, `__generic_unplug_device`).
    pub unplug_runs_nonrot: bool,
    /// The plug timer's 3 ms are rounded up to jiffies (2.6.33), not down.
    pub unplug_delay_rounds_up: bool,
    /// io_submit ends with an unplug of the queue (2.6.33 to 2.6.38, fs/aio.c).
    pub io_submit_unplugs: bool,
    /// How ordered writes are made.
    pub ordered: Ordered,
    /// What a double-buffered flush is.
    pub flush_command: FlushCommand,
    /// An empty barrier is drain and flush alone (2.6.29); before, its empty
    /// write proxy passes through the queue as well.
    pub empty_barrier_is_flush: bool,
    /// Flush commands count as requests in flight (2.6.36 alone).
    pub flushes_count: bool,
    /// The sorted dispatch list mixes directions (to 2.6.20).
    pub sort_mixes_directions: bool,
    /// I, D, C and R events show sync, meta and barrier flags (2.6.39).
    pub rq_events_show_flags: bool,
    /// Every allocation of a batching task is charged to its batch (3.3), not
    /// only those near a full pool.
    pub charge_always: bool,
    /// Which tags asynchronous requests may use.
    pub async_tags: AsyncTags,
    /// Highest value of `nomerges`: 0 before 2.6.26, 2 from 2.6.34.
    pub nomerges_max: u8,
    /// The scheduler is asked about merges into a task plug (to 3.2).
    pub plug_asks_allow_merge: bool,
    /// Plugged requests that make the next one flush the plug; 0: no limit
    /// (to 3.0).
    pub plug_max_requests: u32,
    /// Only requests of the same queue count towards that limit (3.2).
    pub plug_counts_own_queue: bool,
    /// A plug event follows such a flush (3.2).
    pub plug_event_after_flush: bool,
    /// A newest request of at least this many sectors makes the next one
    /// flush the plug (4.10: 128 KiB); 0: no such rule.
    pub plug_flush_sectors: u32,
    /// Order of a plug flush.
    pub flush_sort: FlushSort,
    /// `io_schedule()` flushes the plug the way `schedule()` does, leaving the
    /// driver to kblockd (4.11, kernel/sched/core.c, `io_schedule_prepare`).
    pub io_schedule_defers: bool,
    /// After an insertion merge the grown request is looked up again (3.8).
    pub insertion_merge_repeats: bool,
    /// The flush of a device that cannot queue it holds the scheduler back
    /// (3.0 series and later).
    pub flush_holds_queue: bool,
}

impl Features {
    /// The features of a release.
    pub fn of(v: KernelVersion) -> Features {
        Features {
            core_merge_hash: v.since_2_6(19),
            allow_merge_hook: v.since_2_6(20),
            failfast_blocks_merge: v == KernelVersion::v2_6(31),
            pools_by_sync: v.since_2_6(30),
            sync_unplugs: !v.since_2_6(29),
            task_plug: v.since_2_6(39),
            plug_policy: if v == KernelVersion::v2_6(29) {
                PlugPolicy::SkipNonrot
            } else if v == KernelVersion::v2_6(32) {
                PlugPolicy::SkipNonrotDeep
            } else if v.since_2_6(30) {
                PlugPolicy::SkipNonrotTagged
            } else {
                PlugPolicy::Always
            },
            unplug_runs_nonrot: v.since_2_6(29) && !v.since_2_6(39),
            unplug_delay_rounds_up: v.since_2_6(33),
            io_submit_unplugs: v.since_2_6(33) && !v.since_2_6(39),
            ordered: if v.since_2_6(39) {
                Ordered::FlushDouble
            } else if v.since_2_6(37) {
                Ordered::FlushSerial
            } else {
                Ordered::Barrier
            },
            flush_command: if v.since(4, 10) {
                FlushCommand::Plain
            } else if v.since(4, 8) {
                FlushCommand::Sync
            } else {
                FlushCommand::Write
            },
            empty_barrier_is_flush: v.since_2_6(29),
            flushes_count: v == KernelVersion::v2_6(36),
            sort_mixes_directions: !v.since_2_6(21),
            rq_events_show_flags: v.since_2_6(39),
            charge_always: v.since(3, 3),
            async_tags: if v.since_2_6(31) {
                AsyncTags::DepthMinusTwo
            } else if v.since_2_6(28) {
                AsyncTags::UpperThreeQuarters
            } else {
                AsyncTags::All
            },
            nomerges_max: if v.since_2_6(34) {
                2
            } else {
                u8::from(v.since_2_6(26))
            },
            plug_asks_allow_merge: !v.since(3, 3),
            plug_max_requests: if v.since(3, 1) { 16 } else { 0 },
            plug_counts_own_queue: v.since(3, 2),
            plug_event_after_flush: v.since(3, 2),
            plug_flush_sectors: if v.since(4, 10) { 256 } else { 0 },
            flush_sort: if v.since(3, 9) {
                FlushSort::Sector
            } else if v.since(3, 7) {
                FlushSort::SectorIfSeveralQueues
            } else {
                FlushSort::Queue
            },
            io_schedule_defers: v.since(4, 11),
            insertion_merge_repeats: v.since(3, 8),
            flush_holds_queue: v.since(3, 7),
        }
    }
}

/// What changed in the block layer, release by release: one entry for each
/// release at which [`Features::of`] differs from the one before.
pub const CHANGES: &[Change] = &[
    Change {
        release: KernelVersion::v2_6(19),
        what: "the core keeps the back-merge hash; before, each scheduler did",
        source: "block/elevator.c",
    },
    Change {
        release: KernelVersion::v2_6(20),
        what: "schedulers may refuse a bio merge; writes can be sync",
        source: "block/elevator.c, block/ll_rw_blk.c",
    },
    Change {
        release: KernelVersion::v2_6(21),
        what: "the sorted dispatch list keeps reads and writes apart",
        source: "block/elevator.c",
    },
    Change {
        release: KernelVersion::v2_6(26),
        what: "queue/nomerges",
        source: "block/blk-sysfs.c",
    },
    Change {
        release: KernelVersion::v2_6(28),
        what: "async requests may use only the upper three quarters of block-layer tags",
        source: "block/blk-tag.c",
    },
    Change {
        release: KernelVersion::v2_6(29),
        what: "sync and unplug become two flags; no plug on non-rotational queues; an empty barrier is drain and flush",
        source: "include/linux/bio.h, block/blk-core.c, block/blk-barrier.c",
    },
    Change {
        release: KernelVersion::v2_6(30),
        what: "request pools by sync and async instead of direction; no plug on non-rotational queues with tags",
        source: "block/blk-core.c",
    },
    Change {
        release: KernelVersion::v2_6(31),
        what: "async requests use at most depth - 2 tags; read-ahead does not merge with read-ahead",
        source: "block/blk-tag.c, block/elevator.c",
    },
    Change {
        release: KernelVersion::v2_6(32),
        what: "read-ahead merges again; no plug on non-rotational queues that have been deep",
        source: "block/blk-core.c",
    },
    Change {
        release: KernelVersion::v2_6(33),
        what: "the plug timer rounds up; io_submit unplugs; no plug on non-rotational queues with tags",
        source: "block/blk-settings.c, fs/aio.c",
    },
    Change {
        release: KernelVersion::v2_6(34),
        what: "nomerges=2",
        source: "block/blk-sysfs.c",
    },
    Change {
        release: KernelVersion::v2_6(36),
        what: "flush commands count as requests in flight",
        source: "block/blk-barrier.c",
    },
    Change {
        release: KernelVersion::v2_6(37),
        what: "FLUSH and FUA instead of draining barriers, one flush at a time",
        source: "block/blk-flush.c",
    },
    Change {
        release: KernelVersion::v2_6(39),
        what: "plugs belong to tasks; flushes are double-buffered; events show sync and meta flags",
        source: "block/blk-core.c, block/blk-flush.c",
    },
    Change {
        release: KernelVersion::new(3, 1),
        what: "a task plug holds at most 16 requests",
        source: "block/blk-core.c",
    },
    Change {
        release: KernelVersion::new(3, 2),
        what: "that limit counts only the own queue",
        source: "block/blk-core.c",
    },
    Change {
        release: KernelVersion::new(3, 3),
        what: "every allocation of a batching task is charged; merging into a plug does not ask the scheduler",
        source: "block/blk-core.c",
    },
    Change {
        release: KernelVersion::new(3, 7),
        what: "a plug flush sorts by sector if it holds several queues; a flush holds the scheduler back",
        source: "block/blk-core.c, block/blk-flush.c",
    },
    Change {
        release: KernelVersion::new(3, 8),
        what: "a request that grew at insertion is looked up again",
        source: "block/elevator.c",
    },
    Change {
        release: KernelVersion::new(3, 9),
        what: "a plug flush always sorts by sector",
        source: "block/blk-core.c",
    },
    Change {
        release: KernelVersion::new(4, 8),
        what: "the flush command is an operation of its own, no write",
        source: "block/blk-flush.c",
    },
    Change {
        release: KernelVersion::new(4, 10),
        what: "a request of 128 KiB makes the next one flush the plug; the flush command is not marked sync",
        source: "block/blk-core.c, block/blk-flush.c",
    },
    Change {
        release: KernelVersion::new(4, 11),
        what: "a task that waits for I/O leaves its plug to kblockd",
        source: "kernel/sched/core.c",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_in_the_table() {
        let era = KernelVersion::v2_6(16)..KernelVersion::new(5, 0);
        blklab_kernel::check_changes(CHANGES, era, Features::of);
    }
}
