// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trait of multi-queue schedulers: the kernel's `elevator_mq_ops` with
//! the same points of call.

use crate::mq::Core;
use crate::{Cx, List, Merge, RqId};
use blklab_engine::TimerId;
use blklab_types::{Bio, TaskId};

/// A multi-queue I/O scheduler.
///
/// Hooks are called with the scheduler locked, so to say: nothing else happens
/// during a call. A hook that wants hardware queues run says so with
/// [`Core::run_all`] or [`Core::run_hctx`]; kblockd does it afterwards.
pub trait Elevator {
    /// Name in sysfs.
    fn name(&self) -> &'static str;

    /// Most scheduler tags that a request for this bio may share, in tags per
    /// word or in all ([`Core::shallow_depth_is_total`]); none: no limit. Asked
    /// once, before the request exists: who sleeps for a tag keeps the limit.
    fn limit_depth(&mut self, q: &Core, cx: &mut Cx<'_>, bio: &Bio) -> Option<u32> {
        let _ = (q, cx, bio);
        None
    }

    /// Smallest limit that [`Elevator::limit_depth`] can name: wake-ups of tasks
    /// that wait for a tag are batched by it (`sbitmap_queue_min_shallow_depth`).
    fn min_shallow_depth(&self, q: &Core) -> Option<u32> {
        let _ = q;
        None
    }

    /// The number of requests changed, or the scheduler has just been set up.
    fn depth_updated(&mut self, q: &Core) {
        let _ = q;
    }

    /// A request was allocated for the scheduler (`prepare_request`).
    fn prepare(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let _ = (q, cx, rq);
    }

    /// A request is about to be inserted, before anything is tried to append
    /// it to.
    fn before_insert(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId, at_head: bool) {
        let _ = (q, cx, rq, at_head);
    }

    /// Whether a request that is inserted may be appended to a waiting one, and
    /// bios are merged by hash and [`Elevator::find_front_merge`]. If not,
    /// [`Elevator::software_list`] says where bios may be merged.
    fn merges_by_hash(&self) -> bool {
        true
    }

    /// A request enters the scheduler (`insert_requests`; after its I event; it is
    /// on no list). The core puts it into the merge hash afterwards, unless
    /// `at_head`.
    fn add(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId, at_head: bool);

    /// The next request for a hardware queue, on no list any more
    /// (`dispatch_request`); the core takes it out of the merge hash.
    fn dispatch(&mut self, q: &mut Core, cx: &mut Cx<'_>, hctx: u16) -> Option<RqId>;

    /// Whether it is worth to ask for a request.
    fn has_work(&self, q: &Core, hctx: u16) -> bool;

    /// The list of the CPU `ctx` in which a bio may be merged, newest last (Kyber's
    /// `bio_merge`).
    fn software_list(&self, ctx: u16, bio: &Bio) -> Option<List> {
        let _ = (ctx, bio);
        None
    }

    /// Looks for a request that a bio could be put in front of (`request_merge`).
    /// Called when `last_merge` and the hash did not help.
    fn find_front_merge(&mut self, q: &mut Core, cx: &mut Cx<'_>, bio: &Bio) -> Option<RqId> {
        let _ = (q, cx, bio);
        None
    }

    /// Whether a bio may join a request that the core would accept.
    /// Not asked for merges into plugs and software lists.
    fn allow_merge(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId, bio: &Bio) -> bool {
        let _ = (q, cx, rq, bio);
        true
    }

    /// A bio was merged and no request merge followed (`request_merged`).
    fn merged(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId, side: Merge) {
        let _ = (q, cx, rq, side);
    }

    /// `rq`, which waits in the scheduler, absorbed `next` (`requests_merged`): one
    /// that waits too and leaves now, or one that was about to be inserted (`next`
    /// has seen [`Elevator::before_insert`] but not [`Elevator::add`]; `next_waits`
    /// is false). Its [`Elevator::finished`] follows.
    fn merge_requests(
        &mut self,
        q: &mut Core,
        cx: &mut Cx<'_>,
        rq: RqId,
        next: RqId,
        next_waits: bool,
    ) {
        let _ = (q, cx, rq, next, next_waits);
    }

    /// The waiting request before `rq` in the scheduler's order (`former_request`).
    fn former(&self, q: &Core, rq: RqId) -> Option<RqId> {
        let _ = (q, rq);
        None
    }

    /// The waiting request behind `rq` in the scheduler's order (`next_request`).
    fn latter(&self, q: &Core, rq: RqId) -> Option<RqId> {
        let _ = (q, rq);
        None
    }

    /// The driver gave a started request back (`requeue_request`).
    fn requeued(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let _ = (q, cx, rq);
    }

    /// A request finished at the device (`completed_request`): statistics only.
    fn completed(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let _ = (q, cx, rq);
    }

    /// A request that was [prepared](Elevator::prepare) is about to be freed
    /// (`finish_request`): done, absorbed, or never used.
    fn finished(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let _ = (q, cx, rq);
    }

    /// A task's io context goes away (`exit_icq`).
    fn exit_task(&mut self, q: &mut Core, cx: &mut Cx<'_>, task: TaskId) {
        let _ = (q, cx, task);
    }

    /// A timer fired; returns false if it is not this scheduler's.
    fn timer(&mut self, q: &mut Core, cx: &mut Cx<'_>, timer: TimerId) -> bool {
        let _ = (q, cx, timer);
        false
    }

    /// Whether it serves all hardware queues as one: a run of all of them is
    /// one of the current CPU's.
    fn is_single_queue(&self) -> bool {
        true
    }

    /// Whether it switches the default write-back throttling off (BFQ).
    fn replaces_wbt(&self) -> bool {
        false
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
