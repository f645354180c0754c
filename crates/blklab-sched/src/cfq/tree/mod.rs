// SPDX-License-Identifier: MIT OR Apache-2.0
//! CFQ with one service tree: 2.6.22 to 2.6.32.
//!
//! Source: block/cfq-iosched.c of these releases. Busy queues are kept in one
//! tree by class and by the jiffy at which each should be served; the first
//! gets a slice of time, which starts with its first completion. Up to 2.6.29
//! a whole quantum of requests goes to the dispatch list at once and cannot
//! be called back; from 2.6.30 it is one request at a time. With 2.6.32 came
//! `low_latency`.

mod complete;
mod context;
mod cooperators;
mod dispatch;
mod features;
mod habits;
mod idle;
mod insert;
mod merging;
mod preempt;
mod queue;
mod select;
mod service;
mod settings;
mod slice;
mod sort;

use self::context::Context;
pub(super) use self::features::CHANGES;
use self::features::Features;
use self::queue::{QueueId, Queues};
use self::service::ServiceTree;
use self::settings::Settings;
use crate::Build;
use crate::bound::Bound;
use crate::cfq::NR_ASYNC_QUEUES;
use crate::cfq::clock::Clock;
use crate::positions::Positions;
use blklab_block::sq::{Core, Elevator, MayQueue};
use blklab_block::{Cx, Merge, RqId, TreeNodes};
use blklab_engine::TimerId;
use blklab_trace::truth::Kind;
use blklab_types::{Bio, IdVec, TaskId};

/// What CFQ notes of a request.
#[derive(Clone, Copy, Debug, Default)]
struct OfRequest {
    /// From then on the request is old.
    fifo_time: u64,
}

/// The scheduler's state (`struct cfq_data`).
#[derive(Debug)]
pub(super) struct Cfq {
    feat: Features,
    set: Settings,
    clock: Clock,
    queues: Queues,
    /// By task.
    contexts: IdVec<TaskId, Context>,
    of_rq: Bound<OfRequest>,
    /// Nodes of the queues' requests by sector.
    nodes: TreeNodes,
    service: ServiceTree,
    positions: Positions,
    async_queues: [Option<QueueId>; NR_ASYNC_QUEUES],

    /// The queue that has the slice.
    active: Option<QueueId>,
    /// Process of the first request moved in the slice.
    active_task: Option<TaskId>,
    busy_queues: u32,
    /// Wraps as the kernel's when classes change meanwhile.
    busy_rt_queues: u32,
    /// Requests activated and not completed, async and sync.
    rq_in_driver: [u32; 2],
    /// Requests of sync queues on the dispatch list or at the device.
    sync_flight: u32,
    /// Requests in queues. Signed: `preempt_pullback_minimal` takes requests
    /// back without counting them.
    rq_queued: i64,

    /// The device queues commands, as far as is known.
    hw_tag: bool,
    hw_tag_samples: u32,
    rq_in_driver_peak: u32,
    /// End of the request that was activated last.
    last_position: u64,
    /// Last completion of anything but the idle class.
    last_end_request: u64,
    /// Last completion of a sync request.
    last_end_sync_rq: u64,
    /// Last completion of a sync request that was late.
    last_delayed_sync: u64,

    idle_slice_timer: TimerId,
    idle_class_timer: Option<TimerId>,
    /// Scratch for taking back.
    pulled: Vec<RqId>,
}

impl Cfq {
    pub(super) fn new(b: &mut Build<'_>) -> Cfq {
        let feat = Features::of(b.version).patched(b.patches);
        let set = Settings::new(b);
        let clock = Clock::new(false, b.hz.0);
        let start = clock.at(b.timers.jiffies());
        let idle_slice_timer = b.timers.register("idle_slice_timer");
        let idle_class_timer = feat
            .idle_class_waits
            .then(|| b.timers.register("idle_class_timer"));
        Cfq {
            feat,
            set,
            clock,
            queues: Queues::default(),
            contexts: IdVec::default(),
            of_rq: Bound::default(),
            nodes: TreeNodes::default(),
            service: ServiceTree::new(feat.front_is_relative),
            positions: Positions::default(),
            async_queues: [None; NR_ASYNC_QUEUES],
            active: None,
            active_task: None,
            busy_queues: 0,
            busy_rt_queues: 0,
            rq_in_driver: [0; 2],
            sync_flight: 0,
            rq_queued: 0,
            hw_tag: feat.hw_tag_sampled,
            hw_tag_samples: 0,
            rq_in_driver_peak: 0,
            last_position: 0,
            last_end_request: start,
            last_end_sync_rq: start,
            last_delayed_sync: start.wrapping_sub(set.second_jiffies),
            idle_slice_timer,
            idle_class_timer,
            pulled: Vec::new(),
        }
    }

    fn nr_in_driver(&self) -> u32 {
        self.rq_in_driver[0].saturating_add(self.rq_in_driver[1])
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
        } else if self.feat.single_dispatch {
            self.dispatch_one(q, cx)
        } else {
            self.dispatch_rounds(q, cx)
        }
    }

    fn find_front_merge(&mut self, q: &Core, _: &mut Cx<'_>, bio: &Bio) -> Option<RqId> {
        self.front_candidate(q, bio)
    }

    fn allow_merge(&mut self, q: &Core, _: &mut Cx<'_>, rq: RqId, bio: &Bio) -> bool {
        let sync = bio.is_sync();
        let id = self.queue_of(bio.task, sync);
        (!sync || q.rqs[rq].is_sync()) && id == Some(self.of_rq.queue(rq))
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
        assert_eq!(
            (self.rq_in_driver, self.sync_flight),
            ([0; 2], 0),
            "the driver has requests that nobody has"
        );
        for queue in self.queues.places() {
            queue.waiting.check_conservation();
            assert_eq!(queue.dispatched, 0, "a queue counts requests that are gone");
        }
    }

    fn former(&self, _: &Core, rq: RqId) -> Option<RqId> {
        self.nodes.prev(rq)
    }

    fn latter(&self, _: &Core, rq: RqId) -> Option<RqId> {
        self.nodes.next(rq)
    }

    fn activate(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let kind = usize::from(q.rqs[rq].is_sync());
        self.rq_in_driver[kind] += 1;
        self.note_depth();
        let pid = self.queues[self.of_rq.queue(rq)].pid;
        let drv = self.nr_in_driver();
        q.message(cx, format_args!("cfq{pid} activate rq, drv={drv}"));
        self.last_position = q.rqs[rq].end();
    }

    fn deactivate(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let kind = usize::from(q.rqs[rq].is_sync());
        self.rq_in_driver[kind] -= 1;
        let pid = self.queues[self.of_rq.queue(rq)].pid;
        let drv = self.nr_in_driver();
        q.message(cx, format_args!("cfq{pid} deactivate rq, drv={drv}"));
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
        if timer == self.idle_slice_timer {
            cx.truth_note(Kind::TimerFire, 0, cx.timers.name(timer));
            self.idle_slice_timer_fired(q, cx);
        } else if self.idle_class_timer == Some(timer) {
            cx.truth_note(Kind::TimerFire, 0, cx.timers.name(timer));
            self.idle_class_timer_fired(q, cx);
        } else {
            return false;
        }
        true
    }
}
