// SPDX-License-Identifier: MIT OR Apache-2.0
//! The multi-queue path (blk-mq), 5.0 and later.
//!
//! ```text
//! submit ── split ── merge ──┬─ merged
//!   ▲ │ io.max               └─ tag ── plug ──┬─ insert ─► scheduler or
//!  kthrotld                    (may sleep)    │            software queue
//!                                             │ direct issue     │
//!                                             ▼                  ▼
//! complete ◄── device ◄── driver ◄── hardware queue's list ◄── run
//! ```
//!
//! Source: block/blk-mq.c, blk-mq-sched.c, blk-merge.c, blk-flush.c of 5.10,
//! 6.1 and 6.12.

mod affinity;
mod byte_budget;
mod complete;
mod core;
mod elevator;
mod features;
mod flush;
mod insert;
mod issue;
mod limits;
mod merge;
mod moved;
mod plug;
mod qos;
mod release;
mod run;
mod split;
mod submit;
mod tag_sets;
mod tags;

pub use self::affinity::RqAffinity;
pub use self::core::{Core, Work};
pub use self::elevator::Elevator;
pub use self::features::{CHANGES, Features, PlugMerge, PlugOrder, TagWakes};
pub use self::limits::{Limits, Refusal};
pub use self::moved::GroupMoved;
pub use self::qos::GroupPolicies;
pub use self::qos::wbt::{Wbt, WbtAdmit, WbtSettings, WbtStatus, WbtWindow};
pub use self::tags::{TagRules, Tags};
pub use crate::qos::WbtClass;

use crate::mq::byte_budget::ByteBudget;
use crate::mq::flush::FlushQueue;
use crate::mq::plug::Plug;
use crate::mq::qos::Chain;

use crate::mq::split::Chains;
use crate::mq::submit::Step;
use crate::mq::tag_sets::TagSets;
use crate::{Cx, Effect, Gate, List, Pending, RqId};
use blklab_engine::{TimerId, Timers};
use blklab_trace::Counter;
use blklab_types::{Dev, IdVec, Jiffies, TaskId};

/// A hardware queue (`blk_mq_hw_ctx`).
#[derive(Debug)]
pub(crate) struct Hctx {
    /// Requests that left the scheduler, or go past it, and wait for the driver.
    dispatch: List,
    /// How often the driver was busy lately: a decaying mean.
    dispatch_busy: u8,
    /// The next request that is freed runs the queue (`BLK_MQ_S_SCHED_RESTART`).
    restart: bool,
    /// The wait queue for tags that the next one joins, task or this (`wait_index`).
    next_wait: u8,
    /// The driver takes nothing at present (`BLK_MQ_S_STOPPED`).
    stopped: bool,
    /// The software queue to be looked at first.
    dispatch_from: u16,
    /// A run in a few milliseconds.
    delayed_run: TimerId,
    flush: FlushQueue,
    /// Where kblockd runs it next, and how often there (`next_cpu`, `next_cpu_batch`).
    next_cpu: u16,
    runs_there: u8,
}

/// kblockd runs a hardware queue so often on a processor before it goes on to the next one
/// (`BLK_MQ_CPU_WORK_BATCH`).
const RUNS_ON_A_CPU: u8 = 8;

/// What a task holds.
#[derive(Debug, Default)]
struct Submitter {
    plug: Plug,
    /// How far a bio came whose task sleeps.
    step: Step,
    /// The wait queue for tags that it joins next.
    wait_queue: u8,
    /// What is left of a bio that was split.
    rest: Option<Pending>,
}

/// A block device's software and hardware queues, its scheduler and driver.
pub struct Queue {
    core: Core,
    elv: Option<Box<dyn Elevator>>,
    hctxs: Vec<Hctx>,
    tags: TagSets,
    /// Software queues by CPU, used without a scheduler (`blk_mq_ctx`).
    ctxs: Vec<List>,
    submitters: IdVec<TaskId, Submitter>,
    chains: Chains,
    /// What may hold bios back before they get a request.
    policies: Chain,
    /// Groups have policies.
    has_group_policies: bool,
    /// What groups move is counted.
    counts_groups: bool,
    /// By group.
    moved: Vec<GroupMoved>,
    /// Limits of groups, and what waits for them.
    gate: Gate,
    /// Commands at the device.
    device_busy: u32,
    /// What is in use of the driver's budget.
    budget_used: u32,
    /// None: the driver has no limit of bandwidth.
    byte_budget: Option<ByteBudget>,
    /// Requests to be inserted again by kblockd (`requeue_list`).
    requeue: List,
    requeue_kicked: bool,
    /// The hardware queue that kblockd begins with, where they share something.
    first_run: u16,
    /// Emptied and kept for its capacity.
    wakes: Vec<TaskId>,
    /// A task has the processor for each of its requests before that goes on.
    pays_for_requests: bool,
    /// Who hands over a command loses the processor.
    stops_after_one: bool,
}

impl Queue {
    /// A queue for `dev`, with a scheduler or without. Registers its timers.
    pub fn new(
        dev: Dev,
        feat: Features,
        limits: Limits,
        mut elv: Option<Box<dyn Elevator>>,
        timers: &mut Timers,
    ) -> Queue {
        let core = Core::new(dev, feat, limits, elv.is_some(), timers.hz());
        let nr_cpus = core.limits.nr_cpus;
        if let Some(elv) = &mut elv {
            elv.depth_updated(&core);
        }
        let tags = TagSets::new(&core, elv.as_deref());
        let replaced = elv.as_ref().is_some_and(|e| e.replaces_wbt());
        let wbt = WbtSettings::new(&core.limits, core.nr_requests, replaced, core.hz)
            .map(|settings| Wbt::new(settings, timers));
        let byte_budget = core.limits.bytes_per_tick;
        let phase = core.limits.tick_phase;
        let byte_budget = byte_budget.map(|bytes| ByteBudget::new(bytes, phase, timers));
        let hctx = |first_cpu: u16, timers: &mut Timers| Hctx {
            dispatch: List::EMPTY,
            dispatch_busy: 0,
            restart: false,
            next_wait: 0,
            stopped: false,
            dispatch_from: 0,
            delayed_run: timers.register("hctx_run"),
            flush: FlushQueue::default(),
            next_cpu: first_cpu,
            runs_there: RUNS_ON_A_CPU,
        };
        let hctxs = (0..core.limits.nr_hw_queues.max(1))
            .map(|h| hctx(h, timers))
            .collect();
        Queue {
            ctxs: vec![List::EMPTY; usize::from(nr_cpus.max(1))],
            core,
            elv,
            hctxs,
            tags,
            submitters: IdVec::default(),
            chains: Chains::default(),
            policies: Chain::new(wbt),
            has_group_policies: false,
            counts_groups: false,
            moved: Vec::new(),
            gate: Gate::default(),
            device_busy: 0,
            budget_used: 0,
            byte_budget,
            requeue: List::EMPTY,
            requeue_kicked: false,
            first_run: 0,
            wakes: Vec::new(),
            pays_for_requests: false,
            stops_after_one: false,
        }
    }

    /// A task has the processor for each of its requests before that goes on
    /// ([`Submit::Pays`](crate::Submit::Pays)).
    pub fn pay_for_requests(&mut self) {
        self.pays_for_requests = true;
    }

    /// Whether who hands over a command now loses the processor by that: what the scheduler
    /// still has is left to who comes next.
    pub fn stop_after_one(&mut self, stops: bool) {
        self.stops_after_one = stops;
    }

    /// What schedulers see of the queue.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// The scheduler, if there is one.
    pub fn elevator(&self) -> Option<&dyn Elevator> {
        self.elv.as_deref()
    }

    /// The next search for a scheduler tag begins at this one ([`Tags::begin_at`]).
    pub fn begin_search_at(&mut self, tag: u32) {
        self.tags.begin_search_at(tag);
    }

    /// Commands at the device.
    pub fn device_busy(&self) -> u32 {
        self.device_busy
    }

    /// Whether nothing waits, is held back or is at the device.
    ///
    /// # Panics
    /// If a request is gone that is still counted somewhere.
    pub fn is_idle(&self) -> bool {
        if self.core.rqs.nr_alive() > 0 {
            return false;
        }
        self.check_conservation();
        !self.gate.holds_bios()
    }

    /// Tells how many tags are in use, and how many there are, over all hardware queues.
    pub(crate) fn counters(&self, mut tell: impl FnMut(Counter, u32)) {
        if self.elv.is_some() {
            let tags = self.tags.all_sched().iter();
            tell(Counter::SchedulerTags, tags.clone().map(Tags::busy).sum());
            tell(Counter::SchedulerTagsAll, tags.map(Tags::depth).sum());
        }
        let tags = self.tags.all_driver().iter();
        tell(Counter::DriverTags, tags.clone().map(Tags::busy).sum());
        tell(Counter::DriverTagsAll, tags.map(Tags::depth).sum());
    }

    /// Without requests nothing is counted any more.
    fn check_conservation(&self) {
        assert_eq!(self.core.nr_sorted, 0, "requests that nobody has wait");
        assert_eq!(
            (self.device_busy, self.budget_used),
            (0, 0),
            "the device has requests that nobody has"
        );
        assert!(self.requeue.is_empty(), "requeued requests are gone");
        let tags = self.tags.all_driver().iter().chain(self.tags.all_sched());
        assert_eq!(tags.map(Tags::busy).sum::<u32>(), 0, "a tag is lost");
        for hctx in &self.hctxs {
            assert!(hctx.dispatch.is_empty(), "a hardware queue lists nothing");
        }
        assert!(self.ctxs.iter().all(List::is_empty), "nor a software queue");
        assert!(self.core.last_merge.is_none(), "bios join what is gone");
        if let Some(elv) = &self.elv {
            elv.check_conservation();
        }
    }

    /// A task ended: its io context goes.
    pub fn exit_task(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        if let Some(elv) = &mut self.elv {
            elv.exit_task(&mut self.core, cx, task);
        }
        self.push_runs(cx);
    }

    /// One of the queue's or its scheduler's timers fired; false if it is not
    /// one of them.
    pub fn timer(&mut self, cx: &mut Cx<'_>, timer: TimerId) -> bool {
        if let Some(h) = self.hctxs.iter().position(|h| h.delayed_run == timer) {
            self.core.run_hctx(h as u16);
            self.push_runs(cx);
            return true;
        }
        if self.is_byte_budget_tick(cx, timer) {
            return true;
        }
        let wakes = &mut self.wakes;
        if self.policies.owns_timer(cx, timer, wakes) {
            self.push_wakes(cx);
            return true;
        }
        if self.gate.timer(cx, timer) {
            return true;
        }
        let known = match &mut self.elv {
            Some(elv) => elv.timer(&mut self.core, cx, timer),
            None => false,
        };
        self.push_runs(cx);
        known
    }

    /// A task slept because too much was dirty: buffered writes are urgent for a
    /// while.
    pub fn dirty_wait(&mut self, jiffies: Jiffies) {
        for policy in self.policies.each() {
            policy.dirty_wait(jiffies);
        }
    }

    pub(super) fn push_wakes(&mut self, cx: &mut Cx<'_>) {
        for task in self.wakes.drain(..) {
            cx.ask(Effect::Wake(task));
        }
    }

    /// The timer registered last.
    pub fn last_timer(&self) -> TimerId {
        let last = self.hctxs.last().expect("one hardware queue at least");
        last.delayed_run
    }

    /// What it did that takes processor time, since this was asked last.
    #[inline]
    pub fn take_work(&mut self) -> Work {
        std::mem::take(&mut self.core.work)
    }

    /// Whether tasks submit to one hardware queue.
    pub(crate) fn has_one_hctx(&self) -> bool {
        self.hctxs.len() == 1
    }

    /// Where kblockd runs a hardware queue that is asked for on a CPU: there, if the disk has
    /// one; otherwise on those of the hardware queue, by turns (`blk_mq_hctx_next_cpu`).
    pub fn kblockd_cpu(&mut self, h: u16, by: u16) -> u16 {
        let limits = &self.core.limits;
        if limits.nr_hw_queues.max(1) + limits.nr_poll_queues == 1 {
            return by;
        }
        let (nr_cpus, nr_hctxs) = (self.ctxs.len() as u16, self.hctxs.len() as u16);
        let hctx = self.hctx_mut(h);
        hctx.runs_there -= 1;
        if hctx.runs_there == 0 {
            hctx.runs_there = RUNS_ON_A_CPU;
            let next = hctx.next_cpu + nr_hctxs;
            hctx.next_cpu = if next < nr_cpus { next } else { h };
        }
        hctx.next_cpu
    }

    /// The hardware queue of a CPU (`blk_mq_map_queues`).
    fn hctx_of(&self, cpu: u16) -> u16 {
        cpu % self.core.limits.nr_hw_queues.max(1)
    }

    fn submitter(&mut self, task: TaskId) -> &mut Submitter {
        self.submitters.entry(task)
    }

    /// kblockd gets what hooks and completions asked for.
    fn push_runs(&mut self, cx: &mut Cx<'_>) {
        if self.core.runs_wanted != 0 {
            cx.ask(Effect::RunWork);
        }
    }

    /// Whether a request goes through the scheduler: all but flush sequences (in
    /// 6.12 `RQF_USE_SCHED`).
    fn is_scheduled(&self, rq: RqId) -> bool {
        self.core.rqs[rq].sched_tag.is_some() && self.core.rqs[rq].state.has(crate::RqState::POOLED)
    }
}
