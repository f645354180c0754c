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
mod insert;
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
use crate::cfq::IS_BOUND;
use crate::cfq::clock::Clock;
use blklab_block::sq::{Core, Elevator, MayQueue};
use blklab_block::{Cx, Merge, RqId, TreeNodes};
use blklab_engine::TimerId;
use blklab_trace::truth::Kind;
use blklab_types::{Bio, IdVec, Slab, TaskId};

/// Requests in the pool for each that a queue may hold before its freed ones
/// wake nobody.
const POOL_SHARES: u32 = 4;

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

    /// The queue of a request that a task allocates.
    fn queue_for(&mut self, cx: &mut Cx<'_>, task: TaskId, own: bool) -> QueueId {
        let slot = usize::from(own && !self.feat.one_queue_per_context);
        if let Some(id) = self.enter_context(cx, task).queues[slot] {
            return id;
        }
        let id = self.get_queue(cx, task, own);
        self.contexts[task].queues[slot] = Some(id);
        id
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
        let id = if self.feat.front_merge_in_own_queue {
            self.own_queue(bio.task)?
        } else {
            let own = self.goes_to_own(bio.op, bio.flags);
            self.find_queue(cx, bio.task, own)?
        };
        self.queues[id].waiting.front_merge(&self.nodes, q, bio)
    }

    fn allow_merge(&mut self, q: &Core, cx: &mut Cx<'_>, rq: RqId, bio: &Bio) -> bool {
        if bio.is_sync() && !q.rqs[rq].is_sync() {
            return false;
        }
        let own = self.goes_to_own(bio.op, bio.flags);
        self.find_queue(cx, bio.task, own) == Some(self.of_rq.queue(rq))
    }

    fn merged(&mut self, q: &mut Core, _: &mut Cx<'_>, rq: RqId, side: Merge) {
        if side != Merge::Front {
            return;
        }
        let id = self.of_rq.queue(rq);
        if self.feat.chooses_after_dispatch && self.queues[id].waiting.next_rq == Some(rq) {
            let next = self.find_next_rq(q, id, rq);
            self.queues[id].waiting.next_rq = next;
        }
        let tree = &mut self.queues[id].waiting.sort;
        tree.remove(&mut self.nodes, rq);
        self.add_sorted(q, rq);
        if self.feat.chooses_after_dispatch {
            self.rechoose(q, rq);
        }
    }

    fn merge_requests(&mut self, q: &mut Core, _: &mut Cx<'_>, _rq: RqId, next: RqId) {
        self.remove_request(q, next);
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
        self.enter_context(cx, bio.task);
        self.changed_ioprio(cx, bio.task);
        let own = self.goes_to_own(bio.op, bio.flags);
        let queue = self.queue_for(cx, bio.task, own);
        self.hold_queue(queue);
        self.queues[queue].allocated[q.rqs[rq].data_dir()] += 1;
        let sync = self.counts_as_sync(bio.op, bio.flags);
        self.of_rq.bind(rq, queue);
        self.of_rq[rq] = OfRequest {
            task: bio.task,
            sync,
        };
    }

    fn put_request(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let (id, _) = self.of_rq.unbind(rq).expect(IS_BOUND);
        self.queues[id].allocated[q.rqs[rq].data_dir()] -= 1;
        if self.feat.tunes_pool {
            let most = q.limits.nr_requests / POOL_SHARES;
            q.wake_requested = self.queues[id].allocated.map(|n| n <= most);
        }
        self.put_queue(cx, id);
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
