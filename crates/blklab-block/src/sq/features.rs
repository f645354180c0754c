// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the single-queue block layer does differently by version: the one
//! place where versions are compared.

use crate::Counting;

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

blklab_kernel::features! {
    /// Named differences between versions. Sources: the kernel trees named in the
    /// comments, files block/ll_rw_blk.c (to 2.6.24), block/blk-core.c,
    /// blk-merge.c, elevator.c, blk-flush.c, blk-tag.c.
    pub struct Features {
        /// The core keeps the back-merge hash (2.6.19); before, each scheduler.
        pub core_merge_hash: bool = false,
        /// Schedulers may refuse a bio merge (2.6.20).
        pub allow_merge_hook: bool = false,
        /// Equal failfast bits are needed to merge, so read-ahead bios do not
        /// merge with requests made from read-ahead bios (2.6.31 alone).
        pub failfast_blocks_merge: bool = false,
        /// Request pools are split into async and sync (2.6.30), not by direction.
        pub pools_by_sync: bool = false,
        /// The sync flag also unplugs the queue (to 2.6.28).
        pub sync_unplugs: bool = true,
        /// Tasks hold their own plug (2.6.39), the queue none.
        pub task_plug: bool = false,
        /// When the queue plug is skipped.
        pub plug_policy: PlugPolicy = PlugPolicy::Always,
        /// An unplug of a non-rotational queue that is not plugged calls the
        /// driver all the same (2.6.29 to 2.6.38, `__generic_unplug_device`).
        pub unplug_runs_nonrot: bool = false,
        /// The plug timer's 3 ms are rounded up to jiffies (2.6.33), not down.
        pub unplug_delay_rounds_up: bool = false,
        /// io_submit ends with an unplug of the queue (2.6.33 to 2.6.38, fs/aio.c).
        pub io_submit_unplugs: bool = false,
        /// How ordered writes are made.
        pub ordered: Ordered = Ordered::Barrier,
        /// A bio over a limit of I/Os waits until so many may have passed since its slice began
        /// (as in 4.4), not until that ends (as in 4.19).
        pub throttle_waits_by_number: bool = true,
        /// A slice of a limit that is over begins anew even if bios are held in it (as in 4.4).
        pub throttle_restarts_with_held: bool = true,
        /// What a double-buffered flush is.
        pub flush_command: FlushCommand = FlushCommand::Write,
        /// An empty barrier is drain and flush alone (2.6.29); before, its empty
        /// write proxy passes through the queue as well.
        pub empty_barrier_is_flush: bool = false,
        /// Flush commands count as requests in flight (2.6.36 alone).
        pub flushes_count: bool = false,
        /// The sorted dispatch list mixes directions (to 2.6.20).
        pub sort_mixes_directions: bool = true,
        /// I, D, C and R events show sync, meta and barrier flags (2.6.39).
        pub rq_events_show_flags: bool = false,
        /// Every allocation of a batching task is charged to its batch (3.3), not
        /// only those near a full pool.
        pub charge_always: bool = false,
        /// Which tags asynchronous requests may use.
        pub async_tags: AsyncTags = AsyncTags::All,
        /// Highest value of `nomerges`: 0 before 2.6.26, 2 from 2.6.34.
        pub nomerges_max: u8 = 0,
        /// The scheduler is asked about merges into a task plug (to 3.2).
        pub plug_asks_allow_merge: bool = true,
        /// Plugged requests that make the next one flush the plug; 0: no limit
        /// (to 3.0).
        pub plug_max_requests: u32 = 0,
        /// Only requests of the same queue count towards that limit (3.2).
        pub plug_counts_own_queue: bool = false,
        /// A plug event follows such a flush (3.2).
        pub plug_event_after_flush: bool = false,
        /// A newest request of at least this many sectors makes the next one
        /// flush the plug (4.10: 128 KiB); 0: no such rule.
        pub plug_flush_sectors: u32 = 0,
        /// Order of a plug flush.
        pub flush_sort: FlushSort = FlushSort::Queue,
        /// `io_schedule()` flushes the plug the way `schedule()` does, leaving the
        /// driver to kblockd (4.11, kernel/sched/core.c, `io_schedule_prepare`).
        pub io_schedule_defers: bool = false,
        /// After an insertion merge the grown request is looked up again (3.8).
        pub insertion_merge_repeats: bool = false,
        /// The flush of a device that cannot queue it holds the scheduler back
        /// (3.0 series and later).
        pub flush_holds_queue: bool = false,
    }

    /// What changed in the block layer, release by release: one entry for each
    /// release at which [`Features::of`] differs from the one before.
    pub const CHANGES = {
        "2.6.19": "the core keeps the back-merge hash; before, each scheduler did",
            "block/elevator.c" => {
            core_merge_hash: true,
        }
        "2.6.20": "schedulers may refuse a bio merge; writes can be sync",
            "block/elevator.c, block/ll_rw_blk.c" => {
            allow_merge_hook: true,
        }
        "2.6.21": "the sorted dispatch list keeps reads and writes apart", "block/elevator.c" => {
            sort_mixes_directions: false,
        }
        "2.6.26": "queue/nomerges", "block/blk-sysfs.c" => {
            nomerges_max: 1,
        }
        "2.6.28": "async requests may use only the upper three quarters of block-layer tags",
            "block/blk-tag.c" => {
            async_tags: AsyncTags::UpperThreeQuarters,
        }
        "2.6.29": "sync and unplug become two flags; no plug on non-rotational queues; an empty barrier is drain and flush",
            "include/linux/bio.h, block/blk-core.c, block/blk-barrier.c" => {
            sync_unplugs: false,
            plug_policy: PlugPolicy::SkipNonrot,
            unplug_runs_nonrot: true,
            empty_barrier_is_flush: true,
        }
        "2.6.30": "request pools by sync and async instead of direction; no plug on non-rotational queues with tags",
            "block/blk-core.c" => {
            pools_by_sync: true,
            plug_policy: PlugPolicy::SkipNonrotTagged,
        }
        "2.6.31": "async requests use at most depth - 2 tags; read-ahead does not merge with read-ahead",
            "block/blk-tag.c, block/elevator.c" => {
            failfast_blocks_merge: true,
            async_tags: AsyncTags::DepthMinusTwo,
        }
        "2.6.32": "read-ahead merges again; no plug on non-rotational queues that have been deep",
            "block/blk-core.c" => {
            failfast_blocks_merge: false,
            plug_policy: PlugPolicy::SkipNonrotDeep,
        }
        "2.6.33": "the plug timer rounds up; io_submit unplugs; no plug on non-rotational queues with tags",
            "block/blk-settings.c, fs/aio.c" => {
            plug_policy: PlugPolicy::SkipNonrotTagged,
            unplug_delay_rounds_up: true,
            io_submit_unplugs: true,
        }
        "2.6.34": "nomerges=2", "block/blk-sysfs.c" => {
            nomerges_max: 2,
        }
        "2.6.36": "flush commands count as requests in flight", "block/blk-barrier.c" => {
            flushes_count: true,
        }
        "2.6.37": "FLUSH and FUA instead of draining barriers, one flush at a time",
            "block/blk-flush.c" => {
            ordered: Ordered::FlushSerial,
            flushes_count: false,
        }
        "2.6.39": "plugs belong to tasks; flushes are double-buffered; events show sync and meta flags",
            "block/blk-core.c, block/blk-flush.c" => {
            task_plug: true,
            unplug_runs_nonrot: false,
            io_submit_unplugs: false,
            ordered: Ordered::FlushDouble,
            rq_events_show_flags: true,
        }
        "3.1": "a task plug holds at most 16 requests", "block/blk-core.c" => {
            plug_max_requests: 16,
        }
        "3.2": "that limit counts only the own queue", "block/blk-core.c" => {
            plug_counts_own_queue: true,
            plug_event_after_flush: true,
        }
        "3.3": "every allocation of a batching task is charged; merging into a plug does not ask the scheduler",
            "block/blk-core.c" => {
            charge_always: true,
            plug_asks_allow_merge: false,
        }
        "3.7": "a plug flush sorts by sector if it holds several queues; a flush holds the scheduler back",
            "block/blk-core.c, block/blk-flush.c" => {
            flush_sort: FlushSort::SectorIfSeveralQueues,
            flush_holds_queue: true,
        }
        "3.8": "a request that grew at insertion is looked up again", "block/elevator.c" => {
            insertion_merge_repeats: true,
        }
        "3.9": "a plug flush always sorts by sector", "block/blk-core.c" => {
            flush_sort: FlushSort::Sector,
        }
        "4.8": "the flush command is an operation of its own, no write", "block/blk-flush.c" => {
            flush_command: FlushCommand::Sync,
        }
        "4.10": "a request of 128 KiB makes the next one flush the plug; the flush command is not marked sync",
            "block/blk-core.c, block/blk-flush.c" => {
            flush_command: FlushCommand::Plain,
            plug_flush_sectors: 256,
        }
        "4.11": "a task that waits for I/O leaves its plug to kblockd", "kernel/sched/core.c" => {
            io_schedule_defers: true,
        }
        "4.19": "a bio over a limit of I/Os waits until its slice ends, and a slice with held bios goes on (between 4.5 and 4.19)",
            "block/blk-throttle.c" => {
            throttle_waits_by_number: false,
            throttle_restarts_with_held: false,
        }
    };
}

impl Features {
    /// How limits of groups count.
    pub fn throttle_counting(&self) -> Counting {
        Counting {
            waits_by_number: self.throttle_waits_by_number,
            restarts_with_held: self.throttle_restarts_with_held,
            ..Counting::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_kernel::KernelVersion;

    #[test]
    fn every_change_is_in_the_table() {
        let era = KernelVersion::v2_6(16)..KernelVersion::new(5, 0);
        blklab_kernel::check_changes(CHANGES, era, Features::of);
    }
}
