// SPDX-License-Identifier: MIT OR Apache-2.0
//! What changed in BFQ.

use super::inject::Injection;
use blklab_kernel::{Change, KernelVersion, Patches};

/// What a release does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Features {
    /// What goes out while the queue in service is empty and waited for: up to 5.1 by
    /// service, from 5.2 on by service times.
    pub(super) injection: Injection,
    /// The queues of the lowest weight are not idled for (5.2).
    pub(super) spares_lowest_weight: bool,
    /// A process is I/O-bound by the part of the time in which it has requests
    /// (5.12). Before, by a series of arrivals in time, until a slot is hardly
    /// used.
    pub(super) intensity_by_time: bool,
    /// Think time is sampled only while the queue has nothing, and is short up
    /// to half of the idle time (5.12). Before, always, and up to all of it.
    pub(super) think_needs_idleness: bool,
    /// Only queues of the default weight are raised (5.12).
    pub(super) raises_only_normal_weights: bool,
    /// A queue that becomes busy ends idling that is of no use any more (5.12).
    pub(super) arrival_ends_useless_idling: bool,
    /// Idling for the only busy queue is needed (5.12).
    pub(super) idles_for_only_queue: bool,
    /// When interactive raising ends, the queue may be soft real-time at once
    /// (5.12).
    pub(super) end_of_raising_allows_soft_rt: bool,
    /// A soft real-time queue that seeks becomes interactive again, if it was
    /// (5.12). Before, its raising ends.
    pub(super) seeky_soft_rt_turns_interactive: bool,
    /// At the end of a slot an interactive queue gets no soft real-time start
    /// (up to 5.11).
    pub(super) interactive_is_no_soft_rt: bool,
    /// Requests of queues that the one in service wakes are injected (5.12).
    pub(super) injects_woken: bool,
    /// Merged queues and split ones get the waker of the other (5.12).
    pub(super) shares_wakers: bool,
    /// A waker is seen three times, within 4 ms of its completion (5.12).
    /// Before, twice, within 200 us.
    pub(super) wakers_need_three: bool,
    /// A split queue gets idle times, injection state and raised service back
    /// (5.12).
    pub(super) saves_all: bool,
    /// New queues are merged with one just created (5.13).
    pub(super) stable_merge: bool,
    /// Wakers and time alone are looked at when the process has no other
    /// request (5.14). Before, when the queue has no other.
    pub(super) counts_process_requests: bool,
    /// Processes whose queues and groups have their share of requests get no
    /// more (5.17).
    pub(super) limits_allocation: bool,
    /// All hardware queues are run as one, while requests wait (5.12). Before,
    /// each while requests that were inserted for it are not done, as long as
    /// queues are busy.
    pub(super) runs_as_one: bool,
    /// Groups count as active by their queues, the root among them (6.2).
    pub(super) groups_count_by_queues: bool,
    /// On a device without seeks large requests are injected only while nothing
    /// is at the driver (6.3).
    pub(super) large_injected_only_alone: bool,
    /// The injection limit of a new queue was just lowered, so to say (6.3).
    pub(super) new_limit_is_young: bool,
}

impl Features {
    /// The features of a release with its patches.
    pub(super) fn of(v: KernelVersion, patches: &Patches) -> Features {
        let injection = if patches.has("bfq_no_inject") {
            Injection::None
        } else if v.since(5, 2) {
            Injection::ByTime
        } else {
            Injection::ByService
        };
        Features {
            injection,
            spares_lowest_weight: v.since(5, 2),
            intensity_by_time: v.since(5, 12),
            think_needs_idleness: v.since(5, 12),
            raises_only_normal_weights: v.since(5, 12),
            arrival_ends_useless_idling: v.since(5, 12),
            idles_for_only_queue: v.since(5, 12),
            end_of_raising_allows_soft_rt: v.since(5, 12),
            seeky_soft_rt_turns_interactive: v.since(5, 12),
            interactive_is_no_soft_rt: !v.since(5, 12),
            injects_woken: v.since(5, 12),
            shares_wakers: v.since(5, 12),
            wakers_need_three: v.since(5, 12),
            saves_all: v.since(5, 12),
            stable_merge: v.since(5, 13),
            counts_process_requests: v.since(5, 14),
            limits_allocation: v.since(5, 17),
            runs_as_one: v.since(5, 12),
            groups_count_by_queues: v.since(6, 2),
            large_injected_only_alone: v.since(6, 3),
            new_limit_is_young: v.since(6, 3),
        }
    }

    /// Groups with pending requests that do not make the device's load uneven.
    pub(super) fn pending_groups_allowed(self) -> u32 {
        u32::from(self.groups_count_by_queues)
    }
}

const SOURCE: &str = "block/bfq-iosched.c";

/// What changed, release by release. Read were 5.10, 6.1 and 6.12, and of 4.20 what the
/// commit on injection says (d0edc2473be9); at which
/// release between them a change came is taken from the history of the files as
/// far as it is known.
pub(super) const CHANGES: &[Change] = &[
    Change {
        release: KernelVersion::new(5, 2),
        what: "requests of others are injected as long as the service times of the queue in service \
               stay short; queues of the lowest weight are not idled for",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::new(5, 12),
        what: "I/O intensity by time, shorter think times, other rules for raising, wakers and idling",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::new(5, 13),
        what: "queues of processes that start together are merged",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::new(5, 14),
        what: "wakers and injection look at the requests of the process, not of its queue",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::new(5, 17),
        what: "queues and groups are limited to their share of requests",
        source: SOURCE,
    },
    Change {
        release: KernelVersion::new(6, 2),
        what: "groups count as active by queues with pending requests, the root included",
        source: "block/bfq-iosched.c, block/bfq-wf2q.c",
    },
    Change {
        release: KernelVersion::new(6, 3),
        what: "large requests are injected on flash only while the driver has none",
        source: SOURCE,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_in_the_table() {
        let era = KernelVersion::new(5, 0)..KernelVersion::FOREVER;
        blklab_kernel::check_changes(CHANGES, era, |v| Features::of(v, &Patches::default()));
    }
}
