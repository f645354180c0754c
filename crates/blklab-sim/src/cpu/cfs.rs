// SPDX-License-Identifier: MIT OR Apache-2.0
//! The completely fair scheduler (kernel/sched/fair.c, 5.0 to 6.5): who had least
//! of the processor comes first, and who slept is ahead of who computes.
//!
//! The task that computes is looked at when somebody wakes up and at every tick, and
//! gives way at the end of its piece. The first that takes the processor from it in
//! this way is chosen even if another had a little less (`set_next_buddy`).
//!
//! Left out: the buddy of a task that was preempted (`set_last_buddy`: only among
//! eight tasks of one group), slices shorter than the granularity (before 5.13).

use blklab_types::{IdVec, TaskId};
use std::collections::BTreeSet;

/// Somebody who wakes up takes the processor from a task that is ahead of it by
/// more than this (`sysctl_sched_wakeup_granularity` on one processor).
const WAKEUP_GRANULARITY_NS: u64 = 1_000_000;

/// So far a sleeper may fall behind (half of `sysctl_sched_latency`).
const SLEEPER_CREDIT_NS: u64 = 3_000_000;

/// All tasks have their turn in this time if there are few
/// (`sysctl_sched_latency`), in so much each otherwise
/// (`sysctl_sched_min_granularity`).
const LATENCY_NS: u64 = 6_000_000;
const MIN_GRANULARITY_NS: u64 = 750_000;

/// Weights of the nice levels 0 and -20 (`sched_prio_to_weight`).
const WEIGHT: u64 = 1024;
const URGENT_WEIGHT: u64 = 88_761;

/// What the scheduler knows of a task.
#[derive(Clone, Copy, Debug)]
struct Entity {
    weight: u64,
    /// Processor time had, weighted, in ns.
    vruntime: u64,
    /// Its place among those that had as much, while it waits.
    seq: Option<u64>,
}

impl Default for Entity {
    fn default() -> Entity {
        Entity {
            weight: WEIGHT,
            vruntime: 0,
            seq: None,
        }
    }
}

impl Entity {
    /// A processor time as the scheduler counts it for this task
    /// (`calc_delta_fair`).
    fn weighted(&self, ns: u64) -> u64 {
        ns * WEIGHT / self.weight
    }

    /// Whether somebody with this much is ahead of it by more than the granularity
    /// (`wakeup_preempt_entity`).
    fn preempts(&self, vruntime: u64) -> bool {
        vruntime > self.vruntime + self.weighted(WAKEUP_GRANULARITY_NS)
    }
}

/// Tasks by what they had.
#[derive(Debug, Default)]
pub(super) struct Cfs {
    entities: IdVec<TaskId, Entity>,
    /// Who waits, by what it had.
    waiting: BTreeSet<(u64, u64, TaskId)>,
    /// Weights of those.
    load: u64,
    seq: u64,
    /// Whose turn it is, and what it had of it, in ns.
    current: Option<TaskId>,
    had: u64,
    /// Who took the processor from the current task when it woke up.
    buddy: Option<TaskId>,
    /// The current task is to give way (`TIF_NEED_RESCHED`).
    resched: bool,
    /// Never behind any task that can run.
    min_vruntime: u64,
}

impl Cfs {
    fn entity(&mut self, task: TaskId) -> &mut Entity {
        self.entities.entry(task)
    }

    pub(super) fn set_urgent(&mut self, task: TaskId) {
        self.entity(task).weight = URGENT_WEIGHT;
    }

    /// Where one that slept, or is new, is put at the earliest (`place_entity`).
    fn place(&self) -> u64 {
        self.min_vruntime.saturating_sub(SLEEPER_CREDIT_NS)
    }

    /// The task had the processor for itself before it did anything else.
    pub(super) fn has_had(&mut self, task: TaskId, ns: u64) {
        let place = self.place();
        let entity = self.entity(task);
        entity.vruntime = entity.vruntime.max(place) + entity.weighted(ns);
        let vruntime = entity.vruntime;
        self.min_vruntime = self.min_vruntime.max(vruntime);
    }

    /// The task can run again. If one computes, this may take the processor from it
    /// (`check_preempt_wakeup`).
    pub(super) fn wake(&mut self, task: TaskId, computes: bool) {
        if self.current == Some(task) {
            self.current = None;
        }
        if self.entity(task).seq.is_some() {
            return;
        }
        let place = self.place();
        let entity = self.entity(task);
        entity.vruntime = entity.vruntime.max(place);
        let woken = *entity;
        self.enqueue(task);
        if let Some(current) = self.current.filter(|_| computes && !self.resched)
            && woken.preempts(self.entities[current].vruntime)
        {
            self.resched = true;
            self.buddy = Some(task);
        }
    }

    /// The current task waits for its next turn.
    pub(super) fn wait(&mut self, task: TaskId) {
        if self.current == Some(task) {
            self.current = None;
        }
        self.enqueue(task);
    }

    fn enqueue(&mut self, task: TaskId) {
        self.seq += 1;
        let seq = self.seq;
        let entity = self.entity(task);
        entity.seq = Some(seq);
        let (vruntime, weight) = (entity.vruntime, entity.weight);
        self.waiting.insert((vruntime, seq, task));
        self.load += weight;
    }

    /// Charges the task that computes. At a tick its slice may be over
    /// (`check_preempt_tick`).
    pub(super) fn charge(&mut self, task: TaskId, ns: u64, ticks: bool) {
        let entity = self.entity(task);
        entity.vruntime += entity.weighted(ns);
        let vruntime = entity.vruntime;
        self.had += ns;
        let first = self.waiting.first().map(|w| w.0);
        let least = first.map_or(vruntime, |first| vruntime.min(first));
        self.min_vruntime = self.min_vruntime.max(least);
        let Some(first) = first.filter(|_| ticks) else {
            return;
        };
        let slice = self.slice(task);
        if self.had > slice {
            self.resched = true;
            self.buddy = self.buddy.filter(|&buddy| buddy != task);
        } else if self.had >= MIN_GRANULARITY_NS && vruntime > first + slice {
            self.resched = true;
        }
    }

    /// The current task's turn (`sched_slice`).
    fn slice(&self, task: TaskId) -> u64 {
        let nr = self.waiting.len() as u64 + 1;
        let period = LATENCY_NS.max(nr * MIN_GRANULARITY_NS);
        let weight = self.entities[task].weight;
        (period * weight / (self.load + weight)).max(MIN_GRANULARITY_NS)
    }

    /// Who is to run: the buddy, unless somebody had much less, else who had least
    /// (`pick_next_entity`).
    fn best(&self) -> Option<TaskId> {
        let key = |task: TaskId| self.entities[task].vruntime;
        let first = self.waiting.first().map(|w| w.2);
        let least = match (first, self.current) {
            (Some(first), Some(current)) if key(current) < key(first) => current,
            (first, current) => first.or(current)?,
        };
        let buddy = self
            .buddy
            .filter(|&b| !self.entities[least].preempts(key(b)));
        buddy.or(Some(least))
    }

    /// Whether somebody goes before a task that could go on.
    pub(super) fn yields(&mut self, task: TaskId) -> bool {
        std::mem::take(&mut self.resched) && self.best().is_some_and(|best| best != task)
    }

    /// Whose turn it is: it waits no longer. Who had its turn sleeps, unless it waits
    /// again.
    pub(super) fn pick(&mut self) -> Option<TaskId> {
        self.current = None;
        self.resched = false;
        let task = self.best()?;
        let entity = self.entity(task);
        let (vruntime, weight, seq) = (entity.vruntime, entity.weight, entity.seq.take()?);
        self.waiting.remove(&(vruntime, seq, task));
        self.load -= weight;
        self.min_vruntime = match self.waiting.first() {
            Some(first) => self.min_vruntime.max(vruntime.min(first.0)),
            None => self.min_vruntime.max(vruntime),
        };
        self.buddy = self.buddy.filter(|&buddy| buddy != task);
        self.current = Some(task);
        self.had = 0;
        Some(task)
    }
}
