// SPDX-License-Identifier: MIT OR Apache-2.0
//! One processor that tasks share, as the completely fair scheduler does it
//! (kernel/sched/fair.c, 5.0 to 6.5): who had least of it comes first, and who
//! slept is ahead of who computes.
//!
//! Left out: ticks (a task that computes is looked at when it begins to compute
//! and when somebody wakes up), nice values, groups, real-time classes.

use blklab_types::{Span, TaskId, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Somebody who wakes up takes the processor from a task that is ahead of it by
/// more than this (`sysctl_sched_wakeup_granularity` on one processor).
const WAKEUP_GRANULARITY_NS: u64 = 1_000_000;

/// So far a sleeper may fall behind (half of `sysctl_sched_latency`).
const SLEEPER_CREDIT_NS: u64 = 3_000_000;

/// A new task begins so far ahead: it has had its first turn (`START_DEBIT`).
const START_DEBIT_NS: u64 = 3_000_000;

/// Share of a nice level of -20 against 0: 88761 to 1024.
const URGENT_WEIGHT: u64 = 87;

/// What the processor knows of a task.
#[derive(Clone, Copy, Debug, Default)]
struct Entity {
    /// Processor time had, weighted, in ns.
    vruntime: u64,
    /// It has run before.
    is_known: bool,
    /// Its computation has this left, while it waits for the processor.
    left: Option<Span>,
    /// A kernel thread of nice level -20.
    is_urgent: bool,
}

/// What to do with a task that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It goes on with its program.
    Poll(TaskId),
    /// It goes on with its computation, which ends then.
    Compute(TaskId, Time),
}

/// The processor and who waits for it.
#[derive(Debug, Default)]
pub(crate) struct Cpu {
    entities: Vec<Entity>,
    /// Who computes, since when and until when.
    running: Option<(TaskId, Time, Time)>,
    waiting: BinaryHeap<Reverse<(u64, u64, TaskId)>>,
    seq: u64,
    /// Never behind any task that can run.
    min_vruntime: u64,
}

impl Cpu {
    fn entity(&mut self, task: TaskId) -> &mut Entity {
        if self.entities.len() <= task.idx() {
            self.entities.resize(task.idx() + 1, Entity::default());
        }
        &mut self.entities[task.idx()]
    }

    /// The task is a kernel thread that goes before others; it has been there
    /// for long.
    pub(crate) fn set_urgent(&mut self, task: TaskId) {
        let entity = self.entity(task);
        entity.is_urgent = true;
        entity.is_known = true;
    }

    /// Whether nobody computes.
    pub(crate) fn is_free(&self) -> bool {
        self.running.is_none()
    }

    /// The agenda named a task: true if its computation is over now and it is to
    /// be polled. Otherwise it has woken up and waits for the processor, or this
    /// was the end of a computation that was interrupted.
    pub(crate) fn is_done_computing(&mut self, task: TaskId, now: Time) -> bool {
        if let Some((owner, _, end)) = self.running
            && owner == task
        {
            return now >= end;
        }
        if self.entity(task).left.is_none() {
            self.wake_up(task, now);
        }
        false
    }

    fn wake_up(&mut self, task: TaskId, now: Time) {
        let min = self.min_vruntime;
        let entity = self.entity(task);
        let place = if entity.is_known {
            min.saturating_sub(SLEEPER_CREDIT_NS)
        } else {
            entity.is_known = true;
            min + START_DEBIT_NS
        };
        entity.vruntime = entity.vruntime.max(place);
        let vruntime = entity.vruntime;
        self.enqueue(task);
        if let Some((owner, _, _)) = self.running {
            self.account(now);
            if self.entity(owner).vruntime > vruntime + WAKEUP_GRANULARITY_NS {
                self.interrupt(now);
            }
        }
    }

    fn enqueue(&mut self, task: TaskId) {
        self.seq += 1;
        let vruntime = self.entity(task).vruntime;
        self.waiting.push(Reverse((vruntime, self.seq, task)));
    }

    /// Charges who computes for what it had until now.
    fn account(&mut self, now: Time) {
        let Some((task, since, _)) = &mut self.running else {
            return;
        };
        let had = now.since(*since).ns();
        *since = now;
        let task = *task;
        let entity = self.entity(task);
        entity.vruntime += if entity.is_urgent {
            had / URGENT_WEIGHT
        } else {
            had
        };
        let vruntime = entity.vruntime;
        let first = self.waiting.peek().map_or(vruntime, |w| w.0.0);
        self.min_vruntime = self.min_vruntime.max(vruntime.min(first));
    }

    /// Who computes has to wait with what is left.
    fn interrupt(&mut self, now: Time) {
        if let Some((task, _, end)) = self.running.take() {
            self.entity(task).left = Some(end.since(now));
            self.enqueue(task);
        }
    }

    /// A task wants to compute: when that will end, or none if somebody else's
    /// turn comes first.
    pub(crate) fn begin(&mut self, task: TaskId, now: Time, span: Span) -> Option<Time> {
        let own = self.entity(task).vruntime;
        let first = self.waiting.peek().map(|w| w.0.0);
        if first.is_some_and(|v| v + WAKEUP_GRANULARITY_NS < own) {
            self.entity(task).left = Some(span);
            self.enqueue(task);
            return None;
        }
        let end = now + span;
        self.running = Some((task, now, end));
        Some(end)
    }

    /// Whether the computation that the task began is over.
    pub(crate) fn has_ended(&self, task: TaskId, now: Time) -> bool {
        matches!(self.running, Some((owner, _, end)) if owner == task && now >= end)
    }

    /// The task's computation is over.
    pub(crate) fn end(&mut self, now: Time) {
        self.account(now);
        self.running = None;
    }

    /// Whose turn it is, if the processor is free.
    pub(crate) fn next(&mut self, now: Time) -> Option<Turn> {
        if self.running.is_some() {
            return None;
        }
        let Reverse((vruntime, _, task)) = self.waiting.pop()?;
        self.min_vruntime = self.min_vruntime.max(vruntime);
        match self.entity(task).left.take() {
            None => Some(Turn::Poll(task)),
            Some(left) => {
                let end = now + left;
                self.running = Some((task, now, end));
                Some(Turn::Compute(task, end))
            }
        }
    }
}
