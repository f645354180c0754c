// SPDX-License-Identifier: MIT OR Apache-2.0
//! What changed in CFQ between 2.6.16 and 2.6.21.
//!
//! Source: block/cfq-iosched.c of 2.6.16 (as described), 2.6.17, 2.6.18 and
//! 2.6.20. 2.6.19 and 2.6.21 are taken as 2.6.20, apart from what the block
//! layer of 2.6.19 cannot do yet.

/// What the sync flag of a write means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncFlag {
    /// The submitter is in the middle of fsync, O_SYNC or direct I/O
    /// (`PF_SYNCWRITE`): the write is sync and goes to the process's queue.
    /// The same from 2.6.20, by the flag of the bio.
    Sync,
    /// Nothing: every write is async (2.6.18 alone).
    Ignored,
    /// The write is sync, but in the async queue (2.6.19 alone: the flag is
    /// not there yet when the queue is chosen).
    LateSync,
}

/// Whether requests that queue up at the device turn idling off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DepthRule {
    /// Never.
    None,
    /// For every queue (2.6.17).
    AllQueues,
    /// For processes that seek.
    SeekyProcesses,
}

/// How a queue is put into its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filing {
    /// By time of last service; preempted queues and those with requests in
    /// flight at the head (2.6.16).
    ServiceHead,
    /// By time of last service; preempted queues before the last element,
    /// those with requests in flight at the tail (2.6.17 and 2.6.18).
    ServiceBeforeLast,
    /// At the tail; preempted queues, and new ones that were never served,
    /// before the last of the new ones that lead the list (2.6.19).
    NewFirst,
}

/// How a queue preempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preemption {
    /// It expires itself and becomes active, also if no queue is (to 2.6.17).
    ExpiresItself,
    /// It expires the active queue and becomes active (2.6.18).
    TakesOver,
    /// It expires the active queue and is next in the current list (2.6.19).
    NextInLine,
}

const SOURCE: &str = "block/cfq-iosched.c";

blklab_kernel::features! {
    /// Named differences between releases.
    pub(super) struct Features {
        /// What the sync flag of a write means.
        pub(super) sync_flag: SyncFlag = SyncFlag::Sync,
        /// All requests of a process go to the queue of its first one (2.6.16).
        pub(super) one_queue_per_context: bool = true,
        /// The lookup of a task whose priority is unset finds any queue (2.6.17).
        /// Before, it finds none, so each process has an async queue of its own.
        pub(super) unset_prio_finds_any: bool = false,
        /// The front-merge lookup looks into the process's own queue whatever the
        /// direction and priority (2.6.16).
        pub(super) front_merge_in_own_queue: bool = true,
        /// Seek distances are kept (2.6.17).
        pub(super) seek_stats: bool = false,
        /// How queueing at the device turns idling off.
        pub(super) depth_rule: DepthRule = DepthRule::None,
        /// A seeky process is waited for exactly two ticks (2.6.17), not at most
        /// 2 ms.
        pub(super) seeky_idle_is_two_ticks: bool = true,
        /// `max_depth` holds back queues on which CFQ does not idle (2.6.16).
        pub(super) max_depth: bool = true,
        /// A dispatch call serves one queue (to 2.6.17).
        pub(super) one_queue_per_call: bool = true,
        /// An empty active queue is kept while it has requests in flight; idling
        /// begins at completion; queues without idling expire after every round
        /// (2.6.18). Before, idling begins when the driver asks for more.
        pub(super) idles_at_completion: bool = false,
        /// Queues with requests in flight are served when there are no others
        /// (2.6.17).
        pub(super) busy_queues_serve: bool = false,
        /// How a queue is put into its list.
        pub(super) filing: Filing = Filing::ServiceHead,
        /// How a queue preempts.
        pub(super) preemption: Preemption = Preemption::ExpiresItself,
        /// The position of the head is known (2.6.18); before, it is always 0.
        pub(super) knows_head: bool = false,
        /// The next request is chosen anew after every dispatch, and after a
        /// front merge (to 2.6.18); later only if the next one itself leaves.
        pub(super) chooses_after_dispatch: bool = true,
        /// Metadata goes first (2.6.19).
        pub(super) metadata: bool = false,
        /// An async request of the process that is waited for ends the wait
        /// (2.6.17).
        pub(super) async_ends_wait: bool = false,
        /// The idle timer is armed although no process is known (2.6.16).
        pub(super) arms_without_context: bool = true,
        /// The idle timer arms itself again while nobody else waits (to 2.6.17).
        pub(super) idle_timer_repeats: bool = true,
        /// A freed request wakes a reader and a writer if its queue holds no more
        /// than a quarter of the pool, and batches are `queued` long (to 2.6.17).
        pub(super) tunes_pool: bool = true,
        /// A change of priority is noticed before a request is allocated (to
        /// 2.6.18), not after.
        pub(super) notices_prio_early: bool = true,
        /// A change of priority re-files the sync queue at once (to 2.6.17), not
        /// at its next insertion.
        pub(super) applies_prio_at_once: bool = true,
        /// The default of `slice_idle` is a second through this.
        pub(super) idles_per_second: u32 = 100,
    }

    /// What changed from release to release.
    pub(in crate::cfq) const CHANGES = {
        "2.6.17": "a sync and an async queue per process, async ones shared; seek distances; no \
               max_depth", SOURCE => {
            one_queue_per_context: false,
            unset_prio_finds_any: true,
            front_merge_in_own_queue: false,
            seek_stats: true,
            depth_rule: DepthRule::AllQueues,
            max_depth: false,
            busy_queues_serve: true,
            filing: Filing::ServiceBeforeLast,
            async_ends_wait: true,
            arms_without_context: false,
            idles_per_second: 70,
        }
        "2.6.18": "idling begins at completion; queues without idling expire after a round; the \
               position of the head counts; every write is async", SOURCE => {
            sync_flag: SyncFlag::Ignored,
            depth_rule: DepthRule::SeekyProcesses,
            seeky_idle_is_two_ticks: false,
            one_queue_per_call: false,
            idles_at_completion: true,
            preemption: Preemption::TakesOver,
            knows_head: true,
            idle_timer_repeats: false,
            tunes_pool: false,
            applies_prio_at_once: false,
            idles_per_second: 125,
        }
        "2.6.19": "new queues before served ones, no order by time of service; metadata first",
            SOURCE => {
            sync_flag: SyncFlag::LateSync,
            filing: Filing::NewFirst,
            preemption: Preemption::NextInLine,
            chooses_after_dispatch: false,
            metadata: true,
            notices_prio_early: false,
        }
        "2.6.20": "sync writes go to the queue of their process", SOURCE => {
            sync_flag: SyncFlag::Sync,
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_kernel::KernelVersion;

    #[test]
    fn every_change_is_listed() {
        let era = KernelVersion::v2_6(16)..KernelVersion::v2_6(22);
        blklab_kernel::check_changes(CHANGES, era, Features::of);
    }
}
