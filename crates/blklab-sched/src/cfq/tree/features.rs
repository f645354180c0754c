// SPDX-License-Identifier: MIT OR Apache-2.0
//! What changed between the releases of the one service tree: the one place
//! where versions are compared.
//!
//! Source: block/cfq-iosched.c of 2.6.22 to 2.6.32.

use blklab_kernel::Patches;

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

const SOURCE: &str = "block/cfq-iosched.c";

blklab_kernel::features! {
    /// Named differences between releases.
    pub(super) struct Features {
        /// The idle class waits for a quiet disk and is sorted by time like the
        /// others (to 2.6.24).
        pub(super) idle_class_waits: bool = true,
        /// A queue without a priority of its own follows the task's CPU policy
        /// (2.6.25).
        pub(super) policy_counts: bool = false,
        /// Idling needs an empty driver (2.6.27).
        pub(super) arm_needs_empty_driver: bool = false,
        /// No idling on devices that neither seek nor are slow to queue (2.6.28).
        pub(super) arm_skips_nonrot: bool = false,
        /// Whether the device queues commands is sampled (2.6.28); before, more
        /// than four at once settled it for good.
        pub(super) hw_tag_sampled: bool = false,
        /// A real-time request preempts other classes (2.6.29).
        pub(super) rt_preempts: bool = false,
        /// Real-time queues end the slices of others (2.6.29 to 2.6.31).
        pub(super) rt_cuts_in: bool = false,
        /// A queue without rivals may have four times its quantum at the device
        /// (not in 2.6.29, where it has no limit).
        pub(super) lone_limit: bool = true,
        /// One request per call of dispatch (2.6.30).
        pub(super) single_dispatch: bool = false,
        /// A small request for which CFQ idled does not end the idling; the flag
        /// `must_dispatch` then lets its queue outlive its slice (2.6.30).
        pub(super) keeps_idling: bool = false,
        /// Queues that work close to the head are served together (2.6.30).
        pub(super) cooperators: bool = false,
        /// Requests may ask not to be idled for (2.6.30).
        pub(super) noidle: bool = false,
        /// Allocation looks at the sync queue for reads (2.6.30); before, at the
        /// async queue.
        pub(super) reads_allocate_as_sync: bool = false,
        /// A cooperator by preemption stays one over the next choice (2.6.32).
        pub(super) coop_preempt: bool = false,
        /// Queues that idle wait until the async requests at the device are done
        /// (2.6.32).
        pub(super) drain_async: bool = false,
        /// How async depth is held down.
        pub(super) async_ramp: AsyncRamp = AsyncRamp::Off,
        /// What is left of a slice moves the queue forward (2.6.32); before,
        /// backward by mistake.
        pub(super) rest_moves_forward: bool = false,
        /// A preempting queue is filed a second before the first, and keys are
        /// compared with regard to wrapping (2.6.32); before, its key is 0.
        pub(super) front_is_relative: bool = false,
        /// The next request follows the last one moved, whichever that was
        /// (2.6.32); before, a request taken for its age left it alone.
        pub(super) next_follows_every_move: bool = false,
        /// Age is counted from insertion, and merging hands it on (2.6.32).
        pub(super) age_from_insertion: bool = false,
        /// The first request of a process has no seek distance (2.6.32); before,
        /// it counts from sector 0.
        pub(super) first_seek_is_free: bool = false,
        /// With low latency, seeking alone does not end idling (2.6.32).
        pub(super) idles_for_seekers: bool = false,
        /// No idling near the end of a slice (2.6.32).
        pub(super) arm_weighs_think_time: bool = false,
        /// What a preempted queue takes back.
        pub(super) pullback: Pullback = Pullback::Off,
    }

    /// What changed from release to release.
    pub(in crate::cfq) const CHANGES = {
        "2.6.22": "one tree of busy queues, sorted by time; slices begin at the first completion",
            SOURCE => {}
        "2.6.25": "the idle class is sorted behind the others and waits 200 ms; an unset class follows the CPU policy",
            SOURCE => {
            idle_class_waits: false,
            policy_counts: true,
        }
        "2.6.27": "idling needs an empty driver", SOURCE => {
            arm_needs_empty_driver: true,
        }
        "2.6.28": "no idling on queueing devices that do not seek; whether a device queues is sampled",
            SOURCE => {
            arm_skips_nonrot: true,
            hw_tag_sampled: true,
        }
        "2.6.29": "real time preempts other classes; no limit for a queue alone", SOURCE => {
            rt_preempts: true,
            rt_cuts_in: true,
            lone_limit: false,
        }
        "2.6.30": "one request per dispatch call; close queues are served together; requests may ask not to be idled for",
            SOURCE => {
            lone_limit: true,
            single_dispatch: true,
            keeps_idling: true,
            cooperators: true,
            noidle: true,
            reads_allocate_as_sync: true,
        }
        "2.6.32": "low_latency: async depth is held down after sync I/O; what is left of a slice counts for the queue, not against it",
            SOURCE => {
            rt_cuts_in: false,
            coop_preempt: true,
            drain_async: true,
            async_ramp: AsyncRamp::SinceSync,
            rest_moves_forward: true,
            front_is_relative: true,
            next_follows_every_move: true,
            age_from_insertion: true,
            first_seek_is_free: true,
            idles_for_seekers: true,
            arm_weighs_think_time: true,
        }
    };
}

impl Features {
    /// These features with patches.
    pub(super) fn patched(mut self, patches: &Patches) -> Features {
        self.single_dispatch |= patches.has("single_dispatch");
        self.drain_async |= patches.has("drain_async");
        if patches.has("async_ramp_delayed") {
            self.async_ramp = AsyncRamp::SinceDelayedSync;
        } else if patches.has("async_ramp") {
            self.async_ramp = AsyncRamp::SinceSync;
        }
        if patches.has("preempt_pullback") {
            self.pullback = Pullback::Full;
        } else if patches.has("preempt_pullback_minimal") {
            self.pullback = Pullback::Minimal;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_kernel::KernelVersion;

    #[test]
    fn every_change_is_listed() {
        let era = KernelVersion::v2_6(22)..KernelVersion::v2_6(33);
        blklab_kernel::check_changes(CHANGES, era, Features::of);
    }
}
