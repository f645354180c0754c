// SPDX-License-Identifier: MIT OR Apache-2.0
//! CFQ of 2.6.16 to 2.6.21: busy queues on round-robin lists by priority.
//!
//! Every process has a queue for its sync requests; async requests go to
//! queues that processes share. A queue is served in rounds of a few requests
//! until its slice is over, and is waited for a little when it runs empty.

mod complete;
mod context;
mod dispatch;
mod features;
mod habits;
mod insert;
mod preempt;
mod queue;
mod roundrobin;
mod sequence;
mod settings;
mod slice;

pub(super) use self::features::CHANGES;

use self::context::Context;
use self::features::Features;
use self::queue::{AsyncQueues, Queue, QueueId};
use self::roundrobin::RoundRobin;
use self::settings::Settings;
use crate::Build;
use crate::bound::Bound;
use crate::cfq::clock::Clock;
use blklab_block::sq::{Core, Elevator, MayQueue};
use blklab_block::{Cx, Merge, RqId, TreeNodes};
use blklab_engine::TimerId;
use blklab_trace::truth::Kind;
use blklab_types::{Bio, IdVec, Slab, TaskId};

/// What belongs to a request (`struct cfq_rq`).
#[derive(Clone, Copy, Debug, Default)]
struct OfRequest {
    task: TaskId,
    sync: bool,
}

/// The scheduler's state (`struct cfq_data`).
#[derive(Debug)]
pub(super) struct Cfq {
    feat: Features,
    set: Settings,
    clock: Clock,
    queues: Slab<QueueId, Queue>,
    nr_made: u64,
    async_queues: AsyncQueues,
    /// By task.
    contexts: IdVec<TaskId, Context>,
    of_rq: Bound<OfRequest>,
    nodes: TreeNodes,
    rr: RoundRobin,
    active: Option<QueueId>,
    /// Process of the first request of the slice.
    active_task: Option<TaskId>,
    /// Requests moved in the slice.
    dispatch_slice: u32,
    rq_in_driver: u32,
    /// More than four requests were at the device once.
    hw_tag: bool,
    /// Where the head is taken to be, in sectors.
    last_position: u64,
    /// When a request of another class than idle completed last.
    last_end_request: u64,
    idle_slice_timer: TimerId,
    idle_class_timer: TimerId,
}

impl Cfq {
    /// Builds the scheduler.
    pub(super) fn new(b: &mut Build<'_>) -> Cfq {
        let feat = Features::of(b.version);
        Cfq {
            set: Settings::new(b, &feat),
            feat,
            clock: Clock::new(false, b.hz.0),
            queues: Slab::default(),
            nr_made: 0,
            async_queues: AsyncQueues::default(),
            contexts: IdVec::default(),
            of_rq: Bound::default(),
            nodes: TreeNodes::default(),
            rr: RoundRobin::new(),
            active: None,
            active_task: None,
            dispatch_slice: 0,
            rq_in_driver: 0,
            hw_tag: false,
            last_position: 0,
            last_end_request: 0,
            idle_slice_timer: b.timers.register("idle_slice_timer"),
            idle_class_timer: b.timers.register("idle_class_timer"),
        }
    }
}

impl Elevator for Cfq {
    fn name(&self) -> &'static str {
        "cfq"
    }

    fn batch_requests(&self) -> Option<u32> {
        self.feat.tunes_pool.then_some(self.set.batch_requests)
    }

    fn add(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        self.insert(q, cx, rq);
    }

    fn dispatch(&mut self, q: &mut Core, cx: &mut Cx<'_>, force: bool) -> usize {
        if self.rr.busy_queues == 0 {
            0
        } else if force {
            self.forced_dispatch(q, cx)
        } else {
            self.dispatch_rounds(q, cx)
        }
    }

    fn find_front_merge(&mut self, q: &Core, cx: &mut Cx<'_>, bio: &Bio) -> Option<RqId> {
        self.front_candidate(q, cx, bio)
    }

    fn allow_merge(&mut self, q: &Core, cx: &mut Cx<'_>, rq: RqId, bio: &Bio) -> bool {
        if bio.is_sync() && !q.rqs[rq].is_sync() {
            return false;
        }
        let own = self.goes_to_own(bio.op, bio.flags);
        self.find_queue(cx, bio.task, own) == Some(self.of_rq.queue(rq))
    }

    fn merged(&mut self, q: &mut Core, _: &mut Cx<'_>, rq: RqId, side: Merge) {
        if side == Merge::Front {
            self.reposition(q, rq);
        }
    }

    fn merge_requests(&mut self, q: &mut Core, _: &mut Cx<'_>, _rq: RqId, next: RqId) {
        self.remove_request(q, next);
    }

    fn check_conservation(&self) {
        assert_eq!(
            self.rq_in_driver, 0,
            "the driver has requests that nobody has"
        );
        for queue in self.queues.places() {
            queue.waiting.check_conservation();
            assert_eq!(
                (queue.allocated, queue.on_dispatch, queue.meta_pending),
                ([0; 2], [0; 2], 0),
                "a queue counts requests that are gone"
            );
        }
    }

    fn former(&self, _: &Core, rq: RqId) -> Option<RqId> {
        self.nodes.prev(rq)
    }

    fn latter(&self, _: &Core, rq: RqId) -> Option<RqId> {
        self.nodes.next(rq)
    }

    fn activate(&mut self, _: &mut Core, _: &mut Cx<'_>, _: RqId) {
        self.rq_in_driver += 1;
        self.hw_tag |= self.rq_in_driver > 4;
    }

    fn deactivate(&mut self, _: &mut Core, _: &mut Cx<'_>, _: RqId) {
        self.rq_in_driver -= 1;
    }

    fn completed(&mut self, _: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        self.completed_request(cx, rq);
    }

    fn may_queue(&mut self, _: &Core, cx: &mut Cx<'_>, bio: &Bio) -> MayQueue {
        self.may_allocate(cx, bio)
    }

    fn set_request(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId, bio: &Bio) {
        self.bind(q, cx, rq, bio);
    }

    fn put_request(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        self.unbind(q, cx, rq);
    }

    fn exit_task(&mut self, _: &mut Core, cx: &mut Cx<'_>, task: TaskId) {
        self.exit_context(cx, task);
    }

    fn timer(&mut self, _: &mut Core, cx: &mut Cx<'_>, timer: TimerId) -> bool {
        let (idle_slice, idle_class) = (
            timer == self.idle_slice_timer,
            timer == self.idle_class_timer,
        );
        if idle_slice || idle_class {
            cx.truth_note(Kind::TimerFire, 0, cx.timers.name(timer));
        }
        if idle_slice {
            self.idle_slice_timer_fired(cx);
        } else if idle_class {
            self.idle_class_timer_fired(cx);
        }
        idle_slice || idle_class
    }
}
