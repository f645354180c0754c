// SPDX-License-Identifier: MIT OR Apache-2.0
//! What changed between 2.6.33 and 4.20: the one place where versions are
//! compared.
//!
//! Source: block/cfq-iosched.c of 2.6.33, 2.6.34, 3.0, 3.7 and 4.19 as far as
//! the specification compares them. Where only two of these are known, a rule
//! takes effect at the release named beside it, which lies between them.
//! Such a release is likely, not certain.

use blklab_kernel::Patches;

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

const SOURCE: &str = "block/cfq-iosched.c";

blklab_kernel::features! {
    /// Named differences.
    pub(super) struct Features {
        /// The limit of requests at the device.
        pub(super) quantum_rule: QuantumRule = QuantumRule::Hard,
        /// That limit holds only with `low_latency` (a patch).
        pub(super) quantum_needs_low_latency: bool = false,
        /// A sync queue alone among busy sync queues has no hard limit (2.6.39).
        pub(super) promotes_lone_sync: bool = false,
        /// Draining counts the requests of async queues from dispatch on
        /// (2.6.34), not async requests that the driver has seen.
        pub(super) drains_by_queue: bool = false,
        /// Seekiness is a history of 32 requests (2.6.34), not a mean.
        pub(super) seek_history: bool = false,
        /// An idle-class queue has no cooperator (2.6.34).
        pub(super) idle_class_alone: bool = false,
        /// Forced dispatch makes each queue the active one in turn (2.6.34).
        pub(super) forced_is_active: bool = false,
        /// A queue without processes is not merged with (2.6.35).
        pub(super) merge_needs_processes: bool = false,
        /// Sync queues without idling may be served in the root group.
        pub(super) has_group_isolation: bool = true,
        /// Idling on a group (2.6.36); without `slice_idle` no queue idles.
        pub(super) group_idle: bool = false,
        /// Groups are charged by requests where nobody idles (2.6.36).
        pub(super) iops_mode: bool = false,
        /// A next request that does not want idling turns the window off (2.6.37);
        /// before, it was looked at when it completed.
        pub(super) noidle_in_window: bool = false,
        /// A deep seeking queue on a fast device loses its window (2.6.38).
        pub(super) drops_slow_deep: bool = false,
        /// No busy wait for a queue that has requests (2.6.38).
        pub(super) busy_wait_if_empty: bool = false,
        /// A queue that is preempted before its slice began gets all of it back
        /// (2.6.39).
        pub(super) unused_slice_is_kept: bool = false,
        /// Another class means another workload (2.6.39).
        pub(super) class_change_ends_workload: bool = false,
        /// Preemption by another type of queue ends the workload (2.6.39).
        pub(super) preemption_ends_workload: bool = false,
        /// An active queue that is empty and not worth waiting for can be
        /// preempted (2.6.39).
        pub(super) preempts_unidled: bool = false,
        /// Requests that start at the same sector wait side by side (3.1); before,
        /// the older one is dispatched.
        pub(super) keeps_equal_sectors: bool = false,
        /// Think time is kept for sync queues only, and for trees and groups too
        /// (3.1).
        pub(super) tree_think_time: bool = false,
        /// The boost of requests is a flag of its own (3.1), not that of metadata.
        pub(super) prio_flag: bool = false,
        /// Holders of file-system locks are boosted (to 3.0).
        pub(super) boosts_lock_holders: bool = true,
        /// Group weights count along the path from the root (3.9), each group
        /// standing beside its siblings.
        pub(super) hierarchical: bool = false,
        /// Smallest weight of a group: 100 up to 2.6.39, then 10.
        pub(super) weight_min: u32 = 100,
        /// The class and level of an async queue whose task has no priority come
        /// from the task's nice value (4.0).
        pub(super) async_by_nice: bool = false,
        /// `slice_idle` is 0 on devices that do not seek (4.2).
        pub(super) no_slice_idle_on_nonrot: bool = false,
        /// Every group has async queues of its own (4.3).
        pub(super) async_per_group: bool = false,
        /// Times are nanoseconds (4.8).
        pub(super) ns: bool = false,
        /// A request with the boost flag boosts its queue (4.8).
        pub(super) boosts_prio_requests: bool = false,
        /// A queue that has to dispatch is let through, and one with an expired
        /// request has to (4.8).
        pub(super) must_dispatch_passes: bool = false,
        /// Real time preempts before workloads are looked at, and a seeking queue
        /// preempts another however many there are (4.6).
        pub(super) rt_preempts_first: bool = false,
        /// Queues of a group can preempt those of the groups below it (4.6).
        pub(super) parent_preempts: bool = false,
        /// Only requests of one queue are merged (4.8).
        pub(super) merges_within_queue: bool = false,
        /// Sync requests without the idle hint want none (4.10); before, a flag
        /// of their own says so.
        pub(super) noidle_needs_sync_write: bool = false,
        /// An idle-class queue queues up behind the last of its class; in 4.14 and
        /// later always 200 ms from now.
        pub(super) idle_class_queues_up: bool = true,
        /// No group idling where the think time of the tree is long (4.6).
        pub(super) group_idle_asks_think: bool = false,
        /// Group idling is possible on queueing devices that do not seek, and
        /// only where group scheduling is compiled in (4.19).
        pub(super) group_idle_on_nonrot: bool = false,
        /// Messages name the kind of a queue and more.
        pub(super) long_messages: bool = false,
    }

    /// What changed from release to release.
    pub(in crate::cfq) const CHANGES = {
        "2.6.33": "groups, and a tree for each kind of workload; slices shrink to the target latency; queues merge and split",
            SOURCE => {}
        "2.6.34": "soft limit of half a quantum, quantum 8; seekiness by a history of 32 requests",
            SOURCE => {
            quantum_rule: QuantumRule::Soft,
            drains_by_queue: true,
            seek_history: true,
            idle_class_alone: true,
            forced_is_active: true,
        }
        "2.6.35": "queues without processes are not merged with", SOURCE => {
            merge_needs_processes: true,
        }
        "2.6.36": "idling on groups; charging by requests where the queue does not idle", SOURCE => {
            group_idle: true,
            iops_mode: true,
        }
        "2.6.37": "a next request that wants no idling turns the idle window off", SOURCE => {
            noidle_in_window: true,
        }
        "2.6.38": "deep seeking queues that are slow lose their idle window; group_isolation goes",
            SOURCE => {
            has_group_isolation: false,
            drops_slow_deep: true,
            busy_wait_if_empty: true,
        }
        "2.6.39": "a sync queue alone among sync queues has no limit; an unused slice is kept; preemption can end a workload",
            SOURCE => {
            promotes_lone_sync: true,
            unused_slice_is_kept: true,
            class_change_ends_workload: true,
            preemption_ends_workload: true,
            preempts_unidled: true,
        }
        "3.0": "group weights from 10 up", SOURCE => {
            weight_min: 10,
        }
        "3.1": "think time by tree and group; several requests at one sector; a boost flag of its own",
            SOURCE => {
            keeps_equal_sectors: true,
            tree_think_time: true,
            prio_flag: true,
            boosts_lock_holders: false,
        }
        "3.9": "weights of groups count along the path from the root; longer messages", SOURCE => {
            hierarchical: true,
            long_messages: true,
        }
        "4.0": "async queues of tasks without a priority follow the nice value", SOURCE => {
            async_by_nice: true,
        }
        "4.2": "slice_idle is 0 on devices that do not seek", SOURCE => {
            no_slice_idle_on_nonrot: true,
        }
        "4.3": "async queues per group", SOURCE => {
            async_per_group: true,
        }
        "4.6": "real time preempts before workloads are compared; queues of a group may preempt those of the groups below",
            SOURCE => {
            rt_preempts_first: true,
            parent_preempts: true,
            group_idle_asks_think: true,
        }
        "4.8": "times in nanoseconds; boosted requests boost their queue; a queue with an expired request passes the limits; requests of different queues never merge",
            SOURCE => {
            ns: true,
            boosts_prio_requests: true,
            must_dispatch_passes: true,
            merges_within_queue: true,
        }
        "4.10": "sync requests are idled for only if they say so", SOURCE => {
            noidle_needs_sync_write: true,
        }
        "4.14": "the idle class is filed 200 ms ahead", SOURCE => {
            idle_class_queues_up: false,
        }
        "4.19": "group idling on queueing devices that do not seek needs group scheduling",
            SOURCE => {
            group_idle_on_nonrot: true,
        }
    };
}

impl Features {
    /// These features with patches.
    pub(super) fn patched(mut self, patches: &Patches) -> Features {
        if let Some(rule) = patched_quantum_rule(patches) {
            self.quantum_rule = rule;
        }
        self.quantum_needs_low_latency = patches.has("quantum_tweak2");
        self
    }
}

/// The limit of requests at the device that a patch sets.
fn patched_quantum_rule(patches: &Patches) -> Option<QuantumRule> {
    let rules = [
        ("quantum_hard", QuantumRule::Hard),
        ("quantum_tweak1", QuantumRule::One),
        ("quantum_tweak", QuantumRule::Linear),
        ("quantum_log", QuantumRule::Log),
        ("quantum_sqrt", QuantumRule::Sqrt),
        ("quantum_soft", QuantumRule::Soft),
    ];
    let patched = rules.into_iter().find(|(name, _)| patches.has(name));
    patched.map(|(_, rule)| rule)
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_kernel::KernelVersion;

    #[test]
    fn every_change_is_listed() {
        let era = KernelVersion::v2_6(33)..KernelVersion::new(5, 0);
        blklab_kernel::check_changes(CHANGES, era, Features::of);
    }
}
