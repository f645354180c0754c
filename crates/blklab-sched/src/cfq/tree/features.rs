// SPDX-License-Identifier: MIT OR Apache-2.0
//! What changed between the releases of the one service tree: the one place
//! where versions are compared.
//!
//! Source: block/cfq-iosched.c of 2.6.22 to 2.6.32.

use blklab_kernel::{Change, KernelVersion, Patches};

/// How async depth is held down after sync requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AsyncRamp {
    /// Not at all (to 2.6.31).
    Off,
    /// By the time since the last sync completion, if the tunable
    /// `low_latency` is on (2.6.32).
    SinceSync,
    /// By the time since a sync request was late (2.6.33, here as a patch).
    SinceDelayedSync,
}

/// What a preempted queue takes back from the dispatch list (a patch).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pullback {
    /// Nothing.
    Off,
    /// What the driver has not seen, counted and hashed as if it were new.
    Full,
    /// The same without counting and hashing.
    Minimal,
}

/// Named differences between releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Features {
    /// The idle class waits for a quiet disk and is sorted by time like the
    /// others (to 2.6.24).
    pub(super) idle_class_waits: bool,
    /// A queue without a priority of its own follows the task's CPU policy
    /// (2.6.25).
    pub(super) policy_counts: bool,
    /// Idling needs an empty driver (2.6.27).
    pub(super) arm_needs_empty_driver: bool,
    /// No idling on devices that neither seek nor are slow to queue (2.6.28).
    pub(super) arm_skips_nonrot: bool,
    /// Whether the device queues commands is sampled (2.6.28); before, more
    /// than four at once settled it for good.
    pub(super) hw_tag_sampled: bool,
    /// A real-time request preempts other classes (2.6.29).
    pub(super) rt_preempts: bool,
    /// Real-time queues end the slices of others (2.6.29 to 2.6.31).
    pub(super) rt_cuts_in: bool,
    /// A queue without rivals may have four times its quantum at the device
    /// (not in 2.6.29, where it has no limit).
    pub(super) lone_limit: bool,
    /// One request per call of dispatch (2.6.30).
    pub(super) single_dispatch: bool,
    /// A small request for which CFQ idled does not end the idling; the flag
    /// `must_dispatch` then lets its queue outlive its slice (2.6.30).
    pub(super) keeps_idling: bool,
    /// Queues that work close to the head are served together (2.6.30).
    pub(super) cooperators: bool,
    /// Requests may ask not to be idled for (2.6.30).
    pub(super) noidle: bool,
    /// Allocation looks at the sync queue for reads (2.6.30); before, at the
    /// async queue.
    pub(super) reads_allocate_as_sync: bool,
    /// A cooperator by preemption stays one over the next choice (2.6.32).
    pub(super) coop_preempt: bool,
    /// Queues that idle wait until the async requests at the device are done
    /// (2.6.32).
    pub(super) drain_async: bool,
    /// How async depth is held down.
    pub(super) async_ramp: AsyncRamp,
    /// What is left of a slice moves the queue forward (2.6.32); before,
    /// backward by mistake.
    pub(super) rest_moves_forward: bool,
    /// A preempting queue is filed a second before the first, and keys are
    /// compared with regard to wrapping (2.6.32); before, its key is 0.
    pub(super) front_is_relative: bool,
    /// The next request follows the last one moved, whichever that was
    /// (2.6.32); before, a request taken for its age left it alone.
    pub(super) next_follows_every_move: bool,
    /// Age is counted from insertion, and merging hands it on (2.6.32).
    pub(super) age_from_insertion: bool,
    /// The first request of a process has no seek distance (2.6.32); before,
    /// it counts from sector 0.
    pub(super) first_seek_is_free: bool,
    /// With low latency, seeking alone does not end idling (2.6.32).
    pub(super) idles_for_seekers: bool,
    /// No idling near the end of a slice (2.6.32).
    pub(super) arm_weighs_think_time: bool,
    /// What a preempted queue takes back.
    pub(super) pullback: Pullback,
}

impl Features {
    /// The features of a release with its patches.
    pub(super) fn of(v: KernelVersion, patches: &Patches) -> Features {
        Features {
            idle_class_waits: !v.since_2_6(25),
            policy_counts: v.since_2_6(25),
            arm_needs_empty_driver: v.since_2_6(27),
            arm_skips_nonrot: v.since_2_6(28),
            hw_tag_sampled: v.since_2_6(28),
            rt_preempts: v.since_2_6(29),
            rt_cuts_in: v.since_2_6(29) && !v.since_2_6(32),
            lone_limit: !v.since_2_6(29) || v.since_2_6(30),
            single_dispatch: v.since_2_6(30) || patches.has("single_dispatch"),
            keeps_idling: v.since_2_6(30),
            cooperators: v.since_2_6(30),
            noidle: v.since_2_6(30),
            reads_allocate_as_sync: v.since_2_6(30),
            coop_preempt: v.since_2_6(32),
            drain_async: v.since_2_6(32) || patches.has("drain_async"),
            async_ramp: if patches.has("async_ramp_delayed") {
                AsyncRamp::SinceDelayedSync
            } else if v.since_2_6(32) || patches.has("async_ramp") {
                AsyncRamp::SinceSync
            } else {
                AsyncRamp::Off
            },
            rest_moves_forward: v.since_2_6(32),
            front_is_relative: v.since_2_6(32),
            next_follows_every_move: v.since_2_6(32),
            age_from_insertion: v.since_2_6(32),
            first_seek_is_free: v.since_2_6(32),
            idles_for_seekers: v.since_2_6(32),
            arm_weighs_think_time: v.since_2_6(32),
            pullback: if patches.has("preempt_pullback") {
                Pullback::Full
            } else if patches.has("preempt_pullback_minimal") {
                Pullback::Minimal
            } else {
                Pullback::Off
            },
        }
    }
}

const SOURCE: &str = "block/cfq-iosched.c";

/// What changed from release to release.
pub(in crate::cfq) const CHANGES: &[Change] = &[
    Change {
        release: KernelVersion::v2_6(22),
        what: "one tree of busy queues, sorted by time; slices begin at the first completion",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::v2_6(25),
        what: "the idle class is sorted behind the others and waits 200 ms; an unset class follows the CPU policy",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::v2_6(27),
        what: "idling needs an empty driver",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::v2_6(28),
        what: "no idling on queueing devices that do not seek; whether a device queues is sampled",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::v2_6(29),
        what: "real time preempts other classes; no limit for a queue alone",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::v2_6(30),
        what: "one request per dispatch call; close queues are served together; requests may ask not to be idled for",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::v2_6(32),
        what: "low_latency: async depth is held down after sync I/O; what is left of a slice counts for the queue, not against it",
        source: SOURCE,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_listed() {
        let era = KernelVersion::v2_6(22)..KernelVersion::v2_6(33);
        blklab_kernel::check_changes(CHANGES, era, |v| Features::of(v, &Patches::default()));
    }
}
