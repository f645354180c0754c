// SPDX-License-Identifier: MIT OR Apache-2.0
//! What changed in CFQ between 2.6.16 and 2.6.21.
//!
//! Source: block/cfq-iosched.c of 2.6.16 (as described), 2.6.17, 2.6.18 and
//! 2.6.20. 2.6.19 and 2.6.21 are taken as 2.6.20, apart from what the block
//! layer of 2.6.19 cannot do yet.

use blklab_kernel::{Change, KernelVersion};

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

/// Named differences between releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Features {
    /// What the sync flag of a write means.
    pub(super) sync_flag: SyncFlag,
    /// All requests of a process go to the queue of its first one (2.6.16).
    pub(super) one_queue_per_context: bool,
    /// The lookup of a task whose priority is unset finds any queue (2.6.17).
    /// Before, it finds none, so each process has an async queue of its own.
    pub(super) unset_prio_finds_any: bool,
    /// The front-merge lookup looks into the process's own queue whatever the
    /// direction and priority (2.6.16).
    pub(super) front_merge_in_own_queue: bool,
    /// Seek distances are kept (2.6.17).
    pub(super) seek_stats: bool,
    /// How queueing at the device turns idling off.
    pub(super) depth_rule: DepthRule,
    /// A seeky process is waited for exactly two ticks (2.6.17), not at most
    /// 2 ms.
    pub(super) seeky_idle_is_two_ticks: bool,
    /// `max_depth` holds back queues on which CFQ does not idle (2.6.16).
    pub(super) max_depth: bool,
    /// A dispatch call serves one queue (to 2.6.17).
    pub(super) one_queue_per_call: bool,
    /// An empty active queue is kept while it has requests in flight; idling
    /// begins at completion; queues without idling expire after every round
    /// (2.6.18). Before, idling begins when the driver asks for more.
    pub(super) idles_at_completion: bool,
    /// Queues with requests in flight are served when there are no others
    /// (2.6.17).
    pub(super) busy_queues_serve: bool,
    /// How a queue is put into its list.
    pub(super) filing: Filing,
    /// How a queue preempts.
    pub(super) preemption: Preemption,
    /// The position of the head is known (2.6.18); before, it is always 0.
    pub(super) knows_head: bool,
    /// The next request is chosen anew after every dispatch, and after a
    /// front merge (to 2.6.18); later only if the next one itself leaves.
    pub(super) chooses_after_dispatch: bool,
    /// Metadata goes first (2.6.19).
    pub(super) metadata: bool,
    /// An async request of the process that is waited for ends the wait
    /// (2.6.17).
    pub(super) async_ends_wait: bool,
    /// The idle timer is armed although no process is known (2.6.16).
    pub(super) arms_without_context: bool,
    /// The idle timer arms itself again while nobody else waits (to 2.6.17).
    pub(super) idle_timer_repeats: bool,
    /// A freed request wakes a reader and a writer if its queue holds no more
    /// than a quarter of the pool, and batches are `queued` long (to 2.6.17).
    pub(super) tunes_pool: bool,
    /// A change of priority is noticed before a request is allocated (to
    /// 2.6.18), not after.
    pub(super) notices_prio_early: bool,
    /// A change of priority re-files the sync queue at once (to 2.6.17), not
    /// at its next insertion.
    pub(super) applies_prio_at_once: bool,
    /// The default of `slice_idle` is a second through this.
    pub(super) idles_per_second: u32,
}

impl Features {
    pub(super) fn of(v: KernelVersion) -> Features {
        Features {
            sync_flag: if v.since_2_6(20) || !v.since_2_6(18) {
                SyncFlag::Sync
            } else if v.since_2_6(19) {
                SyncFlag::LateSync
            } else {
                SyncFlag::Ignored
            },
            one_queue_per_context: !v.since_2_6(17),
            unset_prio_finds_any: v.since_2_6(17),
            front_merge_in_own_queue: !v.since_2_6(17),
            seek_stats: v.since_2_6(17),
            depth_rule: if v.since_2_6(18) {
                DepthRule::SeekyProcesses
            } else if v.since_2_6(17) {
                DepthRule::AllQueues
            } else {
                DepthRule::None
            },
            seeky_idle_is_two_ticks: !v.since_2_6(18),
            max_depth: !v.since_2_6(17),
            one_queue_per_call: !v.since_2_6(18),
            idles_at_completion: v.since_2_6(18),
            busy_queues_serve: v.since_2_6(17),
            filing: if v.since_2_6(19) {
                Filing::NewFirst
            } else if v.since_2_6(17) {
                Filing::ServiceBeforeLast
            } else {
                Filing::ServiceHead
            },
            preemption: if v.since_2_6(19) {
                Preemption::NextInLine
            } else if v.since_2_6(18) {
                Preemption::TakesOver
            } else {
                Preemption::ExpiresItself
            },
            knows_head: v.since_2_6(18),
            chooses_after_dispatch: !v.since_2_6(19),
            metadata: v.since_2_6(19),
            async_ends_wait: v.since_2_6(17),
            arms_without_context: !v.since_2_6(17),
            idle_timer_repeats: !v.since_2_6(18),
            tunes_pool: !v.since_2_6(18),
            notices_prio_early: !v.since_2_6(19),
            applies_prio_at_once: !v.since_2_6(18),
            idles_per_second: if v.since_2_6(18) {
                125
            } else if v.since_2_6(17) {
                70
            } else {
                100
            },
        }
    }
}

const SOURCE: &str = "block/cfq-iosched.c";

/// What changed from release to release.
pub(in crate::cfq) const CHANGES: &[Change] = &[
    Change {
        release: KernelVersion::v2_6(17),
        what: "a sync and an async queue per process, async ones shared; seek distances; no \
               max_depth",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::v2_6(18),
        what: "idling begins at completion; queues without idling expire after a round; the \
               position of the head counts; every write is async",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::v2_6(19),
        what: "new queues before served ones, no order by time of service; metadata first",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::v2_6(20),
        what: "sync writes go to the queue of their process",
        source: SOURCE,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_listed() {
        let era = KernelVersion::v2_6(16)..KernelVersion::v2_6(22);
        blklab_kernel::check_changes(CHANGES, era, Features::of);
    }
}
