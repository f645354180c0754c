// SPDX-License-Identifier: MIT OR Apache-2.0
//! BFQ, budget fair queueing: a queue of requests per process, served one after
//! another for a budget of sectors each.
//!
//! Source: block/bfq-iosched.c, block/bfq-wf2q.c and block/bfq-cgroup.c of 5.10,
//! 6.1 and 6.12. Which queue is next is a matter of weights and virtual time
//! (B-WF2Q+), within groups that are scheduled the same way. Around that are
//! rules for low latency (raised weights), for throughput (idling, injection,
//! merging of queues) and for budgets that follow the device's speed.
//!
//! Left out: several actuators per device (6.3), removal of groups.

mod arrive;
mod burst;
mod clock;
mod complete;
mod context;
mod cooperate;
mod depth;
mod dispatch;
mod entity;
mod expire;
mod features;
mod group;
mod group_id;
mod habits;
mod idle;
mod inject;
mod links;
mod merge;
mod peak;
mod prio;
mod queue;
mod queueing;
mod raising;
mod requests;
mod schedule;
mod settings;
mod sort;
mod split;
mod trees;
mod tunables;
mod waker;
mod weights;

use self::burst::Burst;
use self::clock::Jiffy;
use self::context::Context;
use self::entity::{Entities, VTime};
use self::features::Features;
use self::group::Groups;
use self::group_id::GroupId;
use self::idle::Idling;
use self::inject::Injected;
use self::links::{Chain, Links};
use self::peak::Peak;
use self::queue::{Queues, SHARED_PID};
use self::queueing::Queueing;
use self::requests::OfRequest;
use self::settings::Settings;
use self::weights::Weights;
use crate::bound::Bound;
use crate::positions::Positions;
use crate::queue_id::QueueId;
use crate::rbtree::RbNodes;
use crate::{Build, Make, ProcessorTime, Scheduler};
use blklab_block::mq::{Core, Elevator};
use blklab_block::{Cx, List, Merge, RqId, TreeNodes};
use blklab_engine::TimerId;
use blklab_kernel::KernelVersion;
use blklab_trace::truth::Kind;
use blklab_types::{Bio, IdVec, Pid, TaskId};

/// The table entry.
pub const SCHEDULER: Scheduler = Scheduler {
    name: "bfq",
    summary: "a queue and a budget of sectors per process, by weight; low latency for interactive tasks",
    since: KernelVersion::new(5, 0),
    until: KernelVersion::FOREVER,
    tunables: tunables::TUNABLES,
    changes: &[features::CHANGES],
    processor_time: ProcessorTime::BFQ,
    make: Make::Mq(|b: &mut Build<'_>| Box::new(Bfq::new(b))),
};

/// What messages show for pointers, as the kernel does while it has too little
/// randomness to hash them.
const PTR: &str = "(____ptrval____)";

/// The scheduler's state (`struct bfq_data`).
#[derive(Debug)]
struct Bfq {
    feat: Features,
    set: Settings,
    /// Whether the device seeks.
    rotational: bool,

    queues: Queues,
    ents: Entities,
    groups: Groups,
    /// By task.
    contexts: IdVec<TaskId, Context>,
    of_rq: Bound<OfRequest>,
    /// Nodes of the queues' requests by sector.
    nodes: TreeNodes,
    /// Nodes of all service trees.
    rb: RbNodes<VTime>,
    positions: Positions,
    weights: Weights,
    /// Groups with pending requests (`num_groups_with_pending_rqs`).
    pending_groups: u32,
    /// Queues in active trees, and those that others wake.
    active: Chain,
    active_links: Links,
    woken_links: Links,
    burst: Burst,

    /// Requests that go out first.
    dispatch: List,
    /// `in_service_queue`.
    in_service: Option<QueueId>,
    /// Requests in queues, and at the driver.
    queued: u32,
    /// `rq_in_driver`.
    in_driver: u32,
    /// Busy queues by class, and raised ones. The former wrap as the kernel's
    /// when classes change meanwhile (`busy_queues`).
    busy: [u32; 3],
    /// `wr_busy_queues`.
    wr_busy: u32,
    /// Weight of the slots so far, up to 256.
    budgets_assigned: u32,
    /// Largest budget in sectors (`bfq_max_budget`).
    max_budget: i64,
    peak: Peak,
    /// Whether the device queues commands.
    queueing: Queueing,

    /// End of the request that was dispatched last, and of the last one of the
    /// queue in service.
    last_position: u64,
    in_serv_last_pos: u64,
    /// Start of the slot (`last_budget_start`).
    slot_start_ns: u64,
    /// `last_completion`.
    last_completion_ns: u64,
    /// Queue of the last completion, unless it is shared
    /// (`last_completed_rq_bfqq`).
    last_completed: Option<QueueId>,

    idling: Idling,
    injected: Injected,

    /// Requests inserted and not done, by hardware queue (up to 5.11).
    by_hctx: IdVec<u16, u32>,
}

impl Bfq {
    fn new(b: &mut Build<'_>) -> Bfq {
        let set = Settings::new(b);
        let idle_timer = b.timers.register("idle_slice_timer");
        let mut groups = Groups::new();
        let start = b.timers.jiffies().0 as Jiffy;
        groups[GroupId::ROOT].sched.last_idle_class = start;
        let mut this = Bfq {
            feat: Features::of(b.version).patched(b.patches),
            set,
            rotational: b.rotational,
            queues: Queues::default(),
            ents: Entities::default(),
            groups,
            contexts: IdVec::default(),
            of_rq: Bound::default(),
            nodes: TreeNodes::default(),
            rb: RbNodes::default(),
            positions: Positions::default(),
            weights: Weights::default(),
            pending_groups: 0,
            active: Chain::default(),
            active_links: Links::default(),
            woken_links: Links::default(),
            burst: Burst::default(),
            dispatch: List::EMPTY,
            in_service: None,
            queued: 0,
            in_driver: 0,
            busy: [0; 3],
            wr_busy: 0,
            budgets_assigned: 0,
            max_budget: settings::DEFAULT_MAX_BUDGET,
            peak: Peak::new(b.rotational),
            queueing: Queueing::new(b.rotational),
            last_position: 0,
            in_serv_last_pos: 0,
            slot_start_ns: 0,
            last_completion_ns: 0,
            last_completed: None,
            idling: Idling::new(idle_timer, start),
            injected: Injected::default(),
            by_hctx: IdVec::default(),
        };
        if set.user_max_budget > 0 {
            this.max_budget = set.user_max_budget;
        } else if set.budget_from_rate {
            this.max_budget = this.budget_at_peak_rate();
        }
        this
    }

    /// A message about a queue, if anybody reads it.
    #[inline]
    fn say(&self, q: &Core, cx: &mut Cx<'_>, id: QueueId, text: std::fmt::Arguments<'_>) {
        if cx.wants_messages() {
            self.write_message(q, cx, id, text);
        }
    }

    #[cold]
    fn write_message(&self, q: &Core, cx: &mut Cx<'_>, id: QueueId, text: std::fmt::Arguments<'_>) {
        let x = &self.queues[id];
        let kind = if x.sync { 'S' } else { 'A' };
        if x.pid == SHARED_PID {
            q.message(cx, format_args!("bfqSHARED-{kind} {text}"));
        } else {
            q.message(cx, format_args!("bfq{}{kind} {text}", x.pid));
        }
    }

    /// Process that truth records name; 0 for shared queues.
    fn pid_of(&self, id: QueueId) -> Pid {
        Pid::try_from(self.queues[id].pid).unwrap_or(0)
    }

    fn count_for_hctx(&mut self, hctx: u16, by: i32) {
        let count = self.by_hctx.entry(hctx);
        *count = count.saturating_add_signed(by);
    }
}

impl Elevator for Bfq {
    fn name(&self) -> &'static str {
        "bfq"
    }

    fn limit_depth(&mut self, q: &Core, cx: &mut Cx<'_>, bio: &Bio) -> Option<u32> {
        self.depth_for(q, cx, bio)
    }

    fn min_shallow_depth(&self, q: &Core) -> Option<u32> {
        Some(self.least_depth(q))
    }

    fn before_insert(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId, _: bool) {
        self.bind(q, cx, rq);
        self.count_for_hctx(q.rqs[rq].hctx, 1);
    }

    fn add(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId, at_head: bool) {
        if at_head {
            self.dispatch.push_front(&mut q.rqs, rq);
        } else {
            self.insert(q, cx, rq);
        }
    }

    fn dispatch(&mut self, q: &mut Core, cx: &mut Cx<'_>, _: u16) -> Option<RqId> {
        self.next_request(q, cx)
    }

    fn has_work(&self, _: &Core, hctx: u16) -> bool {
        if self.feat.runs_as_one {
            !self.dispatch.is_empty() || self.queued > 0
        } else {
            self.by_hctx.get(hctx).is_some_and(|&n| n > 0)
                && (!self.dispatch.is_empty() || self.nr_busy() > 0)
        }
    }

    fn find_front_merge(&mut self, q: &mut Core, cx: &mut Cx<'_>, bio: &Bio) -> Option<RqId> {
        self.front_candidate(q, cx, bio)
    }

    fn allow_merge(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId, bio: &Bio) -> bool {
        self.may_join(q, cx, rq, bio)
    }

    fn merged(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId, side: Merge) {
        if side == Merge::Front && self.waits(rq) {
            self.reposition(q, cx, rq);
        }
    }

    fn merge_requests(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId, next: RqId, _: bool) {
        self.absorb(q, cx, rq, next);
    }

    fn check_conservation(&self) {
        assert!(
            self.dispatch.is_empty(),
            "a request is gone that goes first"
        );
        assert_eq!(self.queued, 0, "a request is gone that waits");
        assert_eq!(self.in_driver, 0, "the driver has requests that nobody has");
        for queue in self.queues.places() {
            queue.check_conservation();
        }
    }

    fn former(&self, _: &Core, rq: RqId) -> Option<RqId> {
        self.waits(rq).then(|| self.nodes.prev(rq)).flatten()
    }

    fn latter(&self, _: &Core, rq: RqId) -> Option<RqId> {
        self.waits(rq).then(|| self.nodes.next(rq)).flatten()
    }

    fn requeued(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        self.finished(q, cx, rq);
    }

    fn finished(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        if self.of_rq.queue_if_any(rq).is_some() {
            self.count_for_hctx(q.rqs[rq].hctx, -1);
        }
        self.release(q, cx, rq);
    }

    fn exit_task(&mut self, q: &mut Core, cx: &mut Cx<'_>, task: TaskId) {
        self.exit(q, cx, task);
    }

    fn timer(&mut self, q: &mut Core, cx: &mut Cx<'_>, timer: TimerId) -> bool {
        if timer != self.idling.timer {
            return false;
        }
        cx.truth_note(Kind::TimerFire, 0, cx.timers.name(timer));
        self.idle_timer_fired(q, cx);
        true
    }

    fn is_single_queue(&self) -> bool {
        self.feat.runs_as_one
    }

    fn replaces_wbt(&self) -> bool {
        true
    }
}
