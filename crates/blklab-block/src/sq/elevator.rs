// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trait of single-queue schedulers: the kernel's `elevator_ops` with the
//! same points of call.

use crate::sq::Core;
use crate::{Cx, Merge, RqId};
use blklab_engine::TimerId;
use blklab_types::{Bio, TaskId};

/// Answer of [`Elevator::may_queue`] (`ELV_MQUEUE_NO`, `ELV_MQUEUE_MAY`,
/// `ELV_MQUEUE_MUST`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayQueue {
    /// Not now.
    No,
    /// If the pool has room.
    May,
    /// Even if the pool is full.
    Must,
}

/// How kblockd calls the driver when the scheduler asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kick {
    /// A plug stays, and then the driver does nothing; without one it is
    /// called if the scheduler holds requests.
    PlugStays,
    /// A plug is removed, the driver is called.
    Unplug,
    /// A plug is removed, the driver is called if anything waits.
    UnplugIfWaiting,
}

/// A single-queue I/O scheduler.
///
/// Hooks are called with the queue locked, so to say: nothing else happens
/// during a call. A hook that wants the driver to look for work when it
/// returns sets [`Core::run_requested`]; one that wants kblockd to do so
/// pushes [`crate::Effect::RunWork`].
///
/// Every request that a hook gets was allocated for a bio, with
/// [`set_request`](Elevator::set_request): what the queue makes for itself, the steps
/// of barriers and flushes, passes by the scheduler.
pub trait Elevator {
    /// Name in sysfs.
    fn name(&self) -> &'static str;

    /// A request enters the scheduler (`elevator_add_req_fn`; after its I event).
    /// Required.
    fn add(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId);

    /// Moves requests to the dispatch list with [`Core::dispatch_sort`] or
    /// [`Core::dispatch_add_tail`]; called only while that list is empty, or
    /// with `force` (every waiting request has to go, repeatedly until none
    /// is moved). Returns how many were moved. Required.
    fn dispatch(&mut self, q: &mut Core, cx: &mut Cx<'_>, force: bool) -> usize;

    /// Looks for a request that a bio could be put in front of
    /// (`elevator_merge_fn`); only requests that are [`Core::merge_ok`] count.
    /// Called when `last_merge` and the hash did not help.
    fn find_front_merge(&mut self, q: &Core, cx: &mut Cx<'_>, bio: &Bio) -> Option<RqId> {
        let _ = (q, cx, bio);
        None
    }

    /// Whether this scheduler kept a back-merge hash of its own before the
    /// core did (up to 2.6.18).
    fn has_own_merge_hash(&self) -> bool {
        true
    }

    /// Whether a bio may join a request that the core would accept
    /// (`elevator_allow_merge_fn`; 2.6.20).
    fn allow_merge(&mut self, q: &Core, cx: &mut Cx<'_>, rq: RqId, bio: &Bio) -> bool {
        let _ = (q, cx, rq, bio);
        true
    }

    /// Whether a request that leaves a task plug may be appended to one that
    /// waits (4.8: `elevator_allow_rq_merge_fn`).
    fn allow_request_merge(&self, q: &Core, rq: RqId, next: RqId) -> bool {
        let _ = (q, rq, next);
        true
    }

    /// A bio was merged and no request merge followed (`elevator_merged_fn`).
    fn merged(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId, side: Merge) {
        let _ = (q, cx, rq, side);
    }

    /// `rq` absorbed `next`, which is forgotten when this returns
    /// (`elevator_merge_req_fn`).
    fn merge_requests(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId, next: RqId);

    /// The waiting request before `rq` in the scheduler's order
    /// (`elevator_former_req_fn`).
    fn former(&self, q: &Core, rq: RqId) -> Option<RqId>;

    /// The waiting request behind `rq` in the scheduler's order
    /// (`elevator_latter_req_fn`).
    fn latter(&self, q: &Core, rq: RqId) -> Option<RqId>;

    /// The driver sees the request for the first time (`elevator_activate_req_fn`;
    /// before its D event).
    fn activate(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let _ = (q, cx, rq);
    }

    /// The driver gave the request back (`elevator_deactivate_req_fn`).
    fn deactivate(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let _ = (q, cx, rq);
    }

    /// A request finished (`elevator_completed_req_fn`; after its bios, before it
    /// is freed).
    fn completed(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let _ = (q, cx, rq);
    }

    /// Whether a task may allocate a request for this bio
    /// (`elevator_may_queue_fn`).
    fn may_queue(&mut self, q: &Core, cx: &mut Cx<'_>, bio: &Bio) -> MayQueue {
        let _ = (q, cx, bio);
        MayQueue::May
    }

    /// Length of allocation batches that the scheduler sets when it takes
    /// over the queue (`nr_batching`).
    fn batch_requests(&self) -> Option<u32> {
        None
    }

    /// A request was allocated for a bio of the running task
    /// (`elevator_set_req_fn`).
    fn set_request(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId, bio: &Bio) {
        let _ = (q, cx, rq, bio);
    }

    /// A request is about to be freed (`elevator_put_req_fn`).
    fn put_request(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let _ = (q, cx, rq);
    }

    /// A task's io context goes away.
    fn exit_task(&mut self, q: &mut Core, cx: &mut Cx<'_>, task: TaskId) {
        let _ = (q, cx, task);
    }

    /// A timer fired; returns false if it is not this scheduler's.
    fn timer(&mut self, q: &mut Core, cx: &mut Cx<'_>, timer: TimerId) -> bool {
        let _ = (q, cx, timer);
        false
    }

    /// How kblockd calls the driver on [`crate::Effect::RunWork`].
    fn kick(&self) -> Kick {
        Kick::Unplug
    }

    /// The queue has no request any more: a chance to assert that the scheduler
    /// counts none either.
    fn check_conservation(&self) {}

    /// What sysfs shows beside the tunables, read-only: file and content at
    /// this moment.
    fn shows(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}
