// SPDX-License-Identifier: MIT OR Apache-2.0
//! What changed between 2.6.33 and 4.20: the one place where versions are
//! compared.
//!
//! Source: block/cfq-iosched.c of 2.6.33, 2.6.34, 3.0, 3.7 and 4.19 as far as
//! the specification compares them. Where only two of these are known, a rule
//! takes effect at the release named beside it, which lies between them.
//! Such a release is likely, not certain.

use blklab_kernel::{Change, KernelVersion, Patches};

/// How many requests of a queue may be at the device beside other queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuantumRule {
    /// `quantum`, always (2.6.33).
    Hard,
    /// `quantum` once the slice ends within one `slice_idle`.
    One,
    /// `quantum` once the slice ends within `slice_idle` per request.
    Linear,
    /// As `Linear`, per power of two.
    Log,
    /// As `Linear`, per power of four.
    Sqrt,
    /// Half of `quantum` as `Linear`, `quantum` always (2.6.34).
    Soft,
}

/// Named differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Features {
    /// The limit of requests at the device.
    pub(super) quantum_rule: QuantumRule,
    /// That limit holds only with `low_latency` (a patch).
    pub(super) quantum_needs_low_latency: bool,
    /// A sync queue alone among busy sync queues has no hard limit (2.6.39).
    pub(super) promotes_lone_sync: bool,
    /// Draining counts the requests of async queues from dispatch on
    /// (2.6.34), not async requests that the driver has seen.
    pub(super) drains_by_queue: bool,
    /// Seekiness is a history of 32 requests (2.6.34), not a mean.
    pub(super) seek_history: bool,
    /// An idle-class queue has no cooperator (2.6.34).
    pub(super) idle_class_alone: bool,
    /// Forced dispatch makes each queue the active one in turn (2.6.34).
    pub(super) forced_is_active: bool,
    /// A queue without processes is not merged with (2.6.35).
    pub(super) merge_needs_processes: bool,
    /// Sync queues without idling may be served in the root group.
    pub(super) has_group_isolation: bool,
    /// Idling on a group (2.6.36); without `slice_idle` no queue idles.
    pub(super) group_idle: bool,
    /// Groups are charged by requests where nobody idles (2.6.36).
    pub(super) iops_mode: bool,
    /// A next request that does not want idling turns the window off (2.6.37);
    /// before, it was looked at when it completed.
    pub(super) noidle_in_window: bool,
    /// A deep seeking queue on a fast device loses its window (2.6.38).
    pub(super) drops_slow_deep: bool,
    /// No busy wait for a queue that has requests (2.6.38).
    pub(super) busy_wait_if_empty: bool,
    /// A queue that is preempted before its slice began gets all of it back
    /// (2.6.39).
    pub(super) unused_slice_is_kept: bool,
    /// Another class means another workload (2.6.39).
    pub(super) class_change_ends_workload: bool,
    /// Preemption by another type of queue ends the workload (2.6.39).
    pub(super) preemption_ends_workload: bool,
    /// An active queue that is empty and not worth waiting for can be
    /// preempted (2.6.39).
    pub(super) preempts_unidled: bool,
    /// Requests that start at the same sector wait side by side (3.1); before,
    /// the older one is dispatched.
    pub(super) keeps_equal_sectors: bool,
    /// Think time is kept for sync queues only, and for trees and groups too
    /// (3.1).
    pub(super) tree_think_time: bool,
    /// The boost of requests is a flag of its own (3.1), not that of metadata.
    pub(super) prio_flag: bool,
    /// Holders of file-system locks are boosted (to 3.0).
    pub(super) boosts_lock_holders: bool,
    /// Group weights count along the path from the root (3.9), each group
    /// standing beside its siblings.
    pub(super) hierarchical: bool,
    /// Smallest weight of a group: 100 up to 2.6.39, then 10.
    pub(super) weight_min: u32,
    /// The class and level of an async queue whose task has no priority come
    /// from the task's nice value (4.0).
    pub(super) async_by_nice: bool,
    /// `slice_idle` is 0 on devices that do not seek (4.2).
    pub(super) no_slice_idle_on_nonrot: bool,
    /// Every group has async queues of its own (4.3).
    pub(super) async_per_group: bool,
    /// Times are nanoseconds (4.8).
    pub(super) ns: bool,
    /// A request with the boost flag boosts its queue (4.8).
    pub(super) boosts_prio_requests: bool,
    /// A queue that has to dispatch is let through, and one with an expired
    /// request has to (4.8).
    pub(super) must_dispatch_passes: bool,
    /// Real time preempts before workloads are looked at, and a seeking queue
    /// preempts another however many there are (4.6).
    pub(super) rt_preempts_first: bool,
    /// Queues of a group can preempt those of the groups below it (4.6).
    pub(super) parent_preempts: bool,
    /// Only requests of one queue are merged (4.8).
    pub(super) merges_within_queue: bool,
    /// Sync requests without the idle hint want none (4.10); before, a flag
    /// of their own says so.
    pub(super) noidle_needs_sync_write: bool,
    /// An idle-class queue queues up behind the last of its class; in 4.14 and
    /// later always 200 ms from now.
    pub(super) idle_class_queues_up: bool,
    /// No group idling where the think time of the tree is long (4.6).
    pub(super) group_idle_asks_think: bool,
    /// Group idling is possible on queueing devices that do not seek, and
    /// only where group scheduling is compiled in (4.19).
    pub(super) group_idle_on_nonrot: bool,
    /// Messages name the kind of a queue and more.
    pub(super) long_messages: bool,
}

impl Features {
    /// The features of a release with its patches.
    pub(super) fn of(v: KernelVersion, patches: &Patches) -> Features {
        Features {
            quantum_rule: quantum_rule(patches, v.since_2_6(34)),
            quantum_needs_low_latency: patches.has("quantum_tweak2"),
            promotes_lone_sync: v.since_2_6(39),
            drains_by_queue: v.since_2_6(34),
            seek_history: v.since_2_6(34),
            idle_class_alone: v.since_2_6(34),
            forced_is_active: v.since_2_6(34),
            merge_needs_processes: v.since_2_6(35),
            has_group_isolation: !v.since_2_6(38),
            group_idle: v.since_2_6(36),
            iops_mode: v.since_2_6(36),
            noidle_in_window: v.since_2_6(37),
            drops_slow_deep: v.since_2_6(38),
            busy_wait_if_empty: v.since_2_6(38),
            unused_slice_is_kept: v.since_2_6(39),
            class_change_ends_workload: v.since_2_6(39),
            preemption_ends_workload: v.since_2_6(39),
            preempts_unidled: v.since_2_6(39),
            keeps_equal_sectors: v.since(3, 1),
            tree_think_time: v.since(3, 1),
            prio_flag: v.since(3, 1),
            boosts_lock_holders: !v.since(3, 1),
            hierarchical: v.since(3, 9),
            weight_min: if v.since(3, 0) { 10 } else { 100 },
            async_by_nice: v.since(4, 0),
            no_slice_idle_on_nonrot: v.since(4, 2),
            async_per_group: v.since(4, 3),
            ns: v.since(4, 8),
            boosts_prio_requests: v.since(4, 8),
            must_dispatch_passes: v.since(4, 8),
            rt_preempts_first: v.since(4, 6),
            parent_preempts: v.since(4, 6),
            merges_within_queue: v.since(4, 8),
            noidle_needs_sync_write: v.since(4, 10),
            idle_class_queues_up: !v.since(4, 14),
            group_idle_asks_think: v.since(4, 6),
            group_idle_on_nonrot: v.since(4, 19),
            long_messages: v.since(3, 9),
        }
    }
}

fn quantum_rule(patches: &Patches, soft: bool) -> QuantumRule {
    let rules = [
        ("quantum_hard", QuantumRule::Hard),
        ("quantum_tweak1", QuantumRule::One),
        ("quantum_tweak", QuantumRule::Linear),
        ("quantum_log", QuantumRule::Log),
        ("quantum_sqrt", QuantumRule::Sqrt),
        ("quantum_soft", QuantumRule::Soft),
    ];
    let patched = rules.into_iter().find(|(name, _)| patches.has(name));
    match patched {
        Some((_, rule)) => rule,
        None if soft => QuantumRule::Soft,
        None => QuantumRule::Hard,
    }
}

const SOURCE: &str = "block/cfq-iosched.c";

/// What changed from release to release.
pub(in crate::cfq) const CHANGES: &[Change] = &[
    Change {
        release: KernelVersion::v2_6(33),
        what: "groups, and a tree for each kind of workload; slices shrink to the target latency; queues merge and split",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::v2_6(34),
        what: "soft limit of half a quantum, quantum 8; seekiness by a history of 32 requests",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::v2_6(35),
        what: "queues without processes are not merged with",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::v2_6(36),
        what: "idling on groups; charging by requests where nobody idles",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::v2_6(37),
        what: "a next request that wants no idling turns the idle window off",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::v2_6(38),
        what: "deep seeking queues that are slow lose their idle window; group_isolation goes",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::v2_6(39),
        what: "a sync queue alone among sync queues has no limit; an unused slice is kept; preemption can end a workload",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::new(3, 0),
        what: "group weights from 10 up",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::new(3, 1),
        what: "think time by tree and group; several requests at one sector; a boost flag of its own",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::new(3, 9),
        what: "weights of groups count along the path from the root; longer messages",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::new(4, 0),
        what: "async queues of tasks without a priority follow the nice value",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::new(4, 2),
        what: "slice_idle is 0 on devices that do not seek",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::new(4, 3),
        what: "async queues per group",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::new(4, 6),
        what: "real time preempts before workloads are compared; queues of a group may preempt those of the groups below",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::new(4, 8),
        what: "times in nanoseconds; boosted requests boost their queue; a queue with an expired request passes the limits; requests of different queues never merge",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::new(4, 10),
        what: "sync requests are idled for only if they say so",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::new(4, 14),
        what: "the idle class is filed 200 ms ahead",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::new(4, 19),
        what: "group idling on queueing devices that do not seek needs group scheduling",
        source: SOURCE,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_listed() {
        let era = KernelVersion::v2_6(33)..KernelVersion::new(5, 0);
        blklab_kernel::check_changes(CHANGES, era, |v| Features::of(v, &Patches::default()));
    }
}
