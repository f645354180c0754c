// SPDX-License-Identifier: MIT OR Apache-2.0
//! The completely fair scheduler (kernel/sched/fair.c, 5.0 to 6.5): who had least
//! of the processor comes first, and who slept is ahead of who computes.

use blklab_types::{IdVec, TaskId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Somebody who waits takes the processor from a task that is ahead of it by
/// more than this (`sysctl_sched_wakeup_granularity` on one processor).
const WAKEUP_GRANULARITY_NS: u64 = 1_000_000;

/// So far a sleeper may fall behind (half of `sysctl_sched_latency`).
const SLEEPER_CREDIT_NS: u64 = 3_000_000;

/// Share of a nice level of -20 against 0: 88761 to 1024.
const URGENT_WEIGHT: u64 = 87;

/// What the scheduler knows of a task.
#[derive(Clone, Copy, Debug, Default)]
struct Entity {
    /// Processor time had, weighted, in ns.
    vruntime: u64,
    /// A kernel thread of nice level -20.
    is_urgent: bool,
}

impl Entity {
    /// A processor time as the scheduler counts it for this task
    /// (`calc_delta_fair`).
    fn weighted(&self, ns: u64) -> u64 {
        if self.is_urgent {
            ns / URGENT_WEIGHT
        } else {
            ns
        }
    }

    /// Whether it takes the processor from a task with this much.
    fn preempts(&self, vruntime: u64) -> bool {
        vruntime > self.vruntime + self.weighted(WAKEUP_GRANULARITY_NS)
    }
}

/// Tasks by what they had.
#[derive(Debug, Default)]
pub(super) struct Cfs {
    entities: IdVec<TaskId, Entity>,
    waiting: BinaryHeap<Reverse<(u64, u64, TaskId)>>,
    seq: u64,
    /// Never behind any task that can run.
    min_vruntime: u64,
}

impl Cfs {
    fn entity(&mut self, task: TaskId) -> &mut Entity {
        self.entities.entry(task)
    }

    pub(super) fn set_urgent(&mut self, task: TaskId) {
        self.entity(task).is_urgent = true;
    }

    /// Where one that slept, or is new, is put at the earliest.
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

    /// The task can run again.
    pub(super) fn wake(&mut self, task: TaskId) {
        let place = self.place();
        let entity = self.entity(task);
        entity.vruntime = entity.vruntime.max(place);
        self.wait(task);
    }

    /// The task waits for its turn.
    pub(super) fn wait(&mut self, task: TaskId) {
        self.seq += 1;
        let vruntime = self.entity(task).vruntime;
        self.waiting.push(Reverse((vruntime, self.seq, task)));
    }

    /// Charges the task that computes.
    pub(super) fn charge(&mut self, task: TaskId, ns: u64) {
        let entity = self.entity(task);
        entity.vruntime += entity.weighted(ns);
        let vruntime = entity.vruntime;
        let first = self.waiting.peek().map_or(vruntime, |w| w.0.0);
        self.min_vruntime = self.min_vruntime.max(vruntime.min(first));
    }

    /// Whether somebody goes before a task that could go on.
    pub(super) fn yields(&mut self, task: TaskId) -> bool {
        let own = self.entity(task).vruntime;
        let first = self.waiting.peek().map(|w| w.0.2);
        first.is_some_and(|first| self.entity(first).preempts(own))
    }

    /// Whose turn it is: it waits no longer.
    pub(super) fn pick(&mut self) -> Option<TaskId> {
        let Reverse((vruntime, _, task)) = self.waiting.pop()?;
        self.min_vruntime = self.min_vruntime.max(vruntime);
        Some(task)
    }
}
