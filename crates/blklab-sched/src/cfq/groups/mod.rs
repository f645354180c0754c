// SPDX-License-Identifier: MIT OR Apache-2.0
//! CFQ of 2.6.33 to 4.20: groups, workloads, queues.
//!
//! Source: block/cfq-iosched.c of those releases. A group of tasks is served
//! in turns of workloads, a workload in turns of queues, a queue for a slice
//! of time. The device is left idle for a while when the served queue is about
//! to issue more; one request is dispatched per call.
//!
//! ```text
//! select ── active queue: keep / wait / expire
//!        └─ group (virtual time) ─ class ─ kind (oldest) ─ queue (key)
//! ```

mod complete;
mod context;
mod cooperators;
mod dispatch;
mod features;
mod group;
mod habits;
mod idle;
mod insert;
mod preempt;
mod queue;
mod select;
mod service;
mod settings;
mod slice;
mod workload;

#[cfg(test)]
mod tests;

use self::context::Context;
pub(super) use self::features::CHANGES;
use self::features::Features;
use self::group::{GroupId, Groups};
use self::queue::{QueueId, Queues};
use self::settings::Settings;
use self::workload::Serving;
use crate::Build;
use crate::bound::Bound;
use crate::cfq::clock::Clock;
use crate::positions::Positions;
use crate::rbtree::RbNodes;
use blklab_block::sq::{Core, Elevator, MayQueue};
use blklab_block::{Cx, Merge, RqId, TreeNodes};
use blklab_engine::TimerId;
use blklab_types::{Bio, IdVec, TaskId};

/// What CFQ keeps of a request.
#[derive(Clone, Copy, Debug, Default)]
struct OfRequest {
    group: GroupId,
    /// When it is to be dispatched out of order.
    fifo_time: u64,
}

/// The scheduler's state (`struct cfq_data`).
pub(super) struct Cfq {
    feat: Features,
    set: Settings,
    clock: Clock,
    hz: u64,
    idle_slice_timer: TimerId,

    of_rq: Bound<OfRequest>,
    nodes: TreeNodes,
    queues: Queues,
    service_nodes: RbNodes,
    /// Busy queues by the position of their next request, a tree per level.
    positions: Positions,
    contexts: IdVec<TaskId, Context>,
    groups: Groups,

    active: Option<QueueId>,
    /// The task whose request was dispatched first in this turn.
    active_task: Option<TaskId>,
    serving: Serving,

    /// Queues on a tree; those of them that are sync.
    busy_queues: u32,
    busy_sync_queues: u32,
    /// Waiting requests.
    rq_queued: u32,
    /// Requests of async and sync queues from dispatch to completion.
    rq_in_flight: [u32; 2],
    /// Requests that the driver has seen, and the async ones among them.
    rq_in_driver: u32,
    async_in_driver: u32,
    /// End of the request that the driver saw last.
    last_position: u64,
    /// When a sync request last finished late.
    last_delayed_sync: u64,

    /// Whether the device takes several requests: -1 is not known, and counts
    /// as yes.
    hw_tag: i8,
    hw_tag_est_depth: u32,
    hw_tag_samples: u32,
}

impl Cfq {
    pub(super) fn new(b: &mut Build<'_>) -> Cfq {
        let feat = Features::of(b.version).patched(b.patches);
        let clock = Clock::new(feat.ns, b.hz.0);
        let name = if feat.ns {
            "idle_slice_hrtimer"
        } else {
            "idle_slice_timer"
        };
        Cfq {
            set: Settings::new(b, &feat, clock),
            idle_slice_timer: b.timers.register(name),
            hz: u64::from(b.hz.0),
            of_rq: Bound::default(),
            nodes: TreeNodes::default(),
            queues: Queues::default(),
            service_nodes: RbNodes::default(),
            positions: Positions::default(),
            contexts: IdVec::default(),
            groups: Groups::new(feat.hierarchical, feat.weight_min, clock),
            active: None,
            active_task: None,
            serving: Serving::nothing(clock.start()),
            busy_queues: 0,
            busy_sync_queues: 0,
            rq_queued: 0,
            rq_in_flight: [0; 2],
            rq_in_driver: 0,
            async_in_driver: 0,
            last_position: 0,
            last_delayed_sync: clock.start() - clock.second(),
            hw_tag: -1,
            hw_tag_est_depth: 0,
            hw_tag_samples: 0,
            feat,
            clock,
        }
    }
}

impl Elevator for Cfq {
    fn name(&self) -> &'static str {
        "cfq"
    }

    fn add(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        self.insert(q, cx, rq);
    }

    fn dispatch(&mut self, q: &mut Core, cx: &mut Cx<'_>, force: bool) -> usize {
        if self.busy_queues == 0 {
            0
        } else if force {
            self.forced_dispatch(q, cx)
        } else {
            self.dispatch_one(q, cx)
        }
    }

    fn find_front_merge(&mut self, q: &Core, _: &mut Cx<'_>, bio: &Bio) -> Option<RqId> {
        self.front_candidate(q, bio)
    }

    fn allow_merge(&mut self, q: &Core, _: &mut Cx<'_>, rq: RqId, bio: &Bio) -> bool {
        let sync = bio.is_sync();
        let queue = self.queue_of(bio.task, sync);
        (!sync || q.rqs[rq].is_sync()) && queue == Some(self.of_rq.queue(rq))
    }

    fn allow_request_merge(&self, _: &Core, rq: RqId, next: RqId) -> bool {
        !self.feat.merges_within_queue || self.of_rq.queue(rq) == self.of_rq.queue(next)
    }

    fn merged(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId, side: Merge) {
        if side == Merge::Front {
            self.reposition(q, cx, rq);
        }
    }

    fn merge_requests(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId, next: RqId) {
        self.absorb(q, cx, rq, next);
    }

    fn check_conservation(&self) {
        assert_eq!(self.rq_queued, 0, "a request is gone that waits");
        assert_eq!(
            (self.rq_in_driver, self.async_in_driver, self.rq_in_flight),
            (0, 0, [0; 2]),
            "the driver has requests that nobody has"
        );
        for queue in self.queues.places() {
            queue.check_conservation();
        }
    }

    fn former(&self, _: &Core, rq: RqId) -> Option<RqId> {
        self.nodes.prev(rq)
    }

    fn latter(&self, _: &Core, rq: RqId) -> Option<RqId> {
        self.nodes.next(rq)
    }

    fn activate(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        self.rq_in_driver += 1;
        self.async_in_driver += u32::from(!q.rqs[rq].is_sync());
        let seen = self.rq_in_driver;
        let id = self.of_rq.queue(rq);
        self.say(q, cx, id, format_args!("activate rq  drv={seen}"));
        self.last_position = q.rqs[rq].end();
    }

    fn deactivate(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        self.rq_in_driver -= 1;
        self.async_in_driver -= u32::from(!q.rqs[rq].is_sync());
        let seen = self.rq_in_driver;
        let id = self.of_rq.queue(rq);
        self.say(q, cx, id, format_args!("deactivate rq  drv={seen}"));
    }

    fn completed(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        self.completed_request(q, cx, rq);
    }

    fn may_queue(&mut self, _: &Core, cx: &mut Cx<'_>, bio: &Bio) -> MayQueue {
        self.may_allocate(cx, bio)
    }

    fn set_request(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId, _: &Bio) {
        self.bind(q, cx, rq);
    }

    fn put_request(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        self.unbind(q, cx, rq);
    }

    fn exit_task(&mut self, q: &mut Core, cx: &mut Cx<'_>, task: TaskId) {
        self.exit_context(q, cx, task);
    }

    fn timer(&mut self, q: &mut Core, cx: &mut Cx<'_>, timer: TimerId) -> bool {
        let mine = timer == self.idle_slice_timer;
        if mine {
            self.idle_slice_timer_fired(q, cx);
        }
        mine
    }
}
