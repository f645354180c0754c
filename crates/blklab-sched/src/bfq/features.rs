// SPDX-License-Identifier: MIT OR Apache-2.0
//! What changed in BFQ.

use super::inject::Injection;
use blklab_kernel::Patches;

const SOURCE: &str = "block/bfq-iosched.c";

blklab_kernel::features! {
    /// What a release does.
    pub(super) struct Features {
        /// What goes out while the queue in service is empty and waited for: up to 5.1 by
        /// service, from 5.2 on by service times.
        pub(super) injection: Injection = Injection::ByService,
        /// The queues of the lowest weight are not idled for (5.2).
        pub(super) spares_lowest_weight: bool = false,
        /// A process is I/O-bound by the part of the time in which it has requests
        /// (5.12). Before, by a series of arrivals in time, until a slot is hardly
        /// used.
        pub(super) intensity_by_time: bool = false,
        /// Think time is sampled only while the queue has nothing, and is short up
        /// to half of the idle time (5.12). Before, always, and up to all of it.
        pub(super) think_needs_idleness: bool = false,
        /// Only queues of the default weight are raised (5.12).
        pub(super) raises_only_normal_weights: bool = false,
        /// A queue that becomes busy ends idling that is of no use any more (5.12).
        pub(super) arrival_ends_useless_idling: bool = false,
        /// Idling for the only busy queue is needed (5.12).
        pub(super) idles_for_only_queue: bool = false,
        /// When interactive raising ends, the queue may be soft real-time at once
        /// (5.12).
        pub(super) end_of_raising_allows_soft_rt: bool = false,
        /// A soft real-time queue that seeks becomes interactive again, if it was
        /// (5.12). Before, its raising ends.
        pub(super) seeky_soft_rt_turns_interactive: bool = false,
        /// At the end of a slot an interactive queue gets no soft real-time start
        /// (up to 5.11).
        pub(super) interactive_is_no_soft_rt: bool = true,
        /// Requests of queues that the one in service wakes are injected (5.12).
        pub(super) injects_woken: bool = false,
        /// Requests of the queue that wakes the one in service are injected (5.12). Before,
        /// the kernel asks whether the one in service has a request, where it has none.
        pub(super) injects_wakers: bool = false,
        /// Merged queues and split ones get the waker of the other (5.12).
        pub(super) shares_wakers: bool = false,
        /// A split queue gets idle times, injection state and raised service back
        /// (5.12).
        pub(super) saves_all: bool = false,
        /// New queues are merged with one just created (5.13).
        pub(super) stable_merge: bool = false,
        /// Wakers and time alone are looked at when the process has no other
        /// request (5.14). Before, when the queue has no other.
        pub(super) counts_process_requests: bool = false,
        /// Processes whose queues and groups have their share of requests get no
        /// more (5.17).
        pub(super) limits_allocation: bool = false,
        /// All hardware queues are run as one, while requests wait (5.12). Before,
        /// each while requests that were inserted for it are not done, as long as
        /// queues are busy.
        pub(super) runs_as_one: bool = false,
        /// Groups count as active by their queues, the root among them (6.2).
        pub(super) groups_count_by_queues: bool = false,
        /// On a device without seeks large requests are injected only while nothing
        /// is at the driver (6.3).
        pub(super) large_injected_only_alone: bool = false,
        /// The injection limit of a new queue was just lowered, so to say (6.3).
        pub(super) new_limit_is_young: bool = false,
        /// Limits are parts of the queue's `async_depth` (7.0). Before, of all tags.
        pub(super) limits_are_of_queue: bool = false,
    }

    /// What changed, release by release. Read were 5.10, 6.1, 6.12 and 7.3, and of 4.20 what the
    /// commit on injection says (d0edc2473be9); at which
    /// release between them a change came is taken from the history of the files as
    /// far as it is known.
    pub(super) const CHANGES = {
        "5.2": "requests of others are injected as long as the service times of the queue in service \
               stay short; queues of the lowest weight are not idled for", SOURCE => {
            injection: Injection::ByTime,
            spares_lowest_weight: true,
        }
        "5.12": "I/O intensity by time, shorter think times, other rules for raising, wakers and idling",
            SOURCE => {
            intensity_by_time: true,
            think_needs_idleness: true,
            raises_only_normal_weights: true,
            arrival_ends_useless_idling: true,
            idles_for_only_queue: true,
            end_of_raising_allows_soft_rt: true,
            seeky_soft_rt_turns_interactive: true,
            interactive_is_no_soft_rt: false,
            injects_woken: true,
            injects_wakers: true,
            shares_wakers: true,
            saves_all: true,
            runs_as_one: true,
        }
        "5.13": "queues of processes that start together are merged", SOURCE => {
            stable_merge: true,
        }
        "5.14": "wakers and injection look at the requests of the process, not of its queue",
            SOURCE => {
            counts_process_requests: true,
        }
        "5.17": "queues and groups are limited to their share of requests", SOURCE => {
            limits_allocation: true,
        }
        "6.2": "groups count as active by queues with pending requests, the root included",
            "block/bfq-iosched.c, block/bfq-wf2q.c" => {
            groups_count_by_queues: true,
        }
        "6.3": "large requests are injected on flash only while the driver has none", SOURCE => {
            large_injected_only_alone: true,
            new_limit_is_young: true,
        }
        "7.0": "limits are parts of the queue's async_depth; until that or nr_requests is written, \
               of what it was before BFQ was chosen", SOURCE => {
            limits_are_of_queue: true,
        }
    };
}

impl Features {
    /// These features with patches.
    pub(super) fn patched(mut self, patches: &Patches) -> Features {
        if patches.has("bfq_no_inject") {
            self.injection = Injection::None;
        }
        self
    }

    /// Groups with pending requests that do not make the device's load uneven.
    pub(super) fn pending_groups_allowed(self) -> u32 {
        u32::from(self.groups_count_by_queues)
    }
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
