// SPDX-License-Identifier: MIT OR Apache-2.0
//! One processor that tasks share, as the completely fair scheduler does it
//! (kernel/sched/fair.c, 5.0 to 6.5): who had least of it comes first, and who
//! slept is ahead of who computes.
//!
//! Who begins counts as a sleeper, too: kernel threads have been there for long,
//! and a session of its own, as fio makes of each job (`setsid`), is a group that
//! enters the queue as one that slept (`sched_autogroup_enabled`). Who is in the
//! kernel is not interrupted but by devices (`CONFIG_PREEMPT_VOLUNTARY`): a task
//! that computes is looked at when a piece of it is over.
//!
//! Left out: ticks, nice values but that of kblockd, control groups, real-time
//! classes.

use blklab_types::{IdVec, Span, TaskId, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Somebody who waits takes the processor from a task that is ahead of it by
/// more than this (`sysctl_sched_wakeup_granularity` on one processor).
const WAKEUP_GRANULARITY_NS: u64 = 1_000_000;

/// So far a sleeper may fall behind (half of `sysctl_sched_latency`).
const SLEEPER_CREDIT_NS: u64 = 3_000_000;

/// Share of a nice level of -20 against 0: 88761 to 1024.
const URGENT_WEIGHT: u64 = 87;

/// What the processor knows of a task.
#[derive(Clone, Copy, Debug, Default)]
struct Entity {
    /// Processor time had, weighted, in ns.
    vruntime: u64,
    /// What it is to compute, while it waits for the processor.
    left: Option<Span>,
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

/// What to do with a task that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It goes on with its program.
    Poll(TaskId),
    /// It begins to compute, which ends then.
    Compute(TaskId, Time),
}

/// The processor and who waits for it.
#[derive(Debug, Default)]
pub(crate) struct Cpu {
    entities: IdVec<TaskId, Entity>,
    /// Who computes, since when and until when.
    running: Option<(TaskId, Time, Time)>,
    waiting: BinaryHeap<Reverse<(u64, u64, TaskId)>>,
    seq: u64,
    /// Never behind any task that can run.
    min_vruntime: u64,
    /// What it takes to go back to a task that others went before.
    switch: Span,
    /// Who computed last.
    last: Option<TaskId>,
    /// The end of the interrupts so far.
    interrupted_until: Time,
}

impl Cpu {
    /// A processor where a change of tasks takes so long.
    pub(crate) fn new(switch: Span) -> Cpu {
        Cpu {
            switch,
            ..Cpu::default()
        }
    }

    fn entity(&mut self, task: TaskId) -> &mut Entity {
        self.entities.entry(task)
    }

    /// The task is a kernel thread of nice level -20.
    pub(crate) fn set_urgent(&mut self, task: TaskId) {
        self.entity(task).is_urgent = true;
    }

    /// An interrupt takes the processor for a span. Who computes goes on later:
    /// it, and when it ends now.
    pub(crate) fn interrupt(&mut self, now: Time, span: Span) -> Option<(TaskId, Time)> {
        self.interrupted_until = self.interrupted_until.max(now) + span;
        let (task, _, end) = self.running.as_mut()?;
        *end += span;
        Some((*task, *end))
    }

    /// Whether nobody computes.
    pub(crate) fn is_free(&self) -> bool {
        self.running.is_none()
    }

    /// The agenda named a task: true if its computation is over now and it is to
    /// be polled. Otherwise it has woken up and waits for the processor, or an
    /// interrupt has put its end off.
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
        let place = self.min_vruntime.saturating_sub(SLEEPER_CREDIT_NS);
        let entity = self.entity(task);
        entity.vruntime = entity.vruntime.max(place);
        self.enqueue(task);
        self.account(now);
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
        *since = now.max(*since);
        let task = *task;
        let entity = self.entity(task);
        entity.vruntime += entity.weighted(had);
        let vruntime = entity.vruntime;
        let first = self.waiting.peek().map_or(vruntime, |w| w.0.0);
        self.min_vruntime = self.min_vruntime.max(vruntime.min(first));
    }

    /// A task wants to compute: when that will end, or none if somebody else's
    /// turn comes first.
    pub(crate) fn begin(&mut self, task: TaskId, now: Time, span: Span) -> Option<Time> {
        let own = self.entity(task).vruntime;
        let first = self.waiting.peek().map(|w| w.0.2);
        if first.is_some_and(|first| self.entity(first).preempts(own)) {
            self.entity(task).left = Some(span);
            self.enqueue(task);
            return None;
        }
        Some(self.run(task, now, span))
    }

    /// The task computes once interrupts are through: its end.
    fn run(&mut self, task: TaskId, now: Time, span: Span) -> Time {
        let begin = now.max(self.interrupted_until);
        let end = begin + span;
        self.running = Some((task, begin, end));
        self.last = Some(task);
        end
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
                let is_back = self.last != Some(task);
                let switch = if is_back { self.switch } else { Span::ZERO };
                Some(Turn::Compute(task, self.run(task, now, left + switch)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TaskId = TaskId(0);
    const B: TaskId = TaskId(1);
    const KBLOCKD: TaskId = TaskId(2);

    fn us(n: u64) -> Time {
        Time(1000 * n)
    }

    fn cpu() -> Cpu {
        let mut cpu = Cpu::new(Span::from_us(2));
        cpu.set_urgent(KBLOCKD);
        cpu
    }

    /// The task computes from `begin` to `end` without others.
    fn computes(cpu: &mut Cpu, task: TaskId, begin: Time, end: Time) {
        assert_eq!(cpu.begin(task, begin, end.since(begin)), Some(end));
        cpu.end(end);
    }

    /// Both wake up in this order; who goes first.
    fn first_of(cpu: &mut Cpu, tasks: [TaskId; 2], now: Time) -> Option<Turn> {
        for task in tasks {
            assert!(!cpu.is_done_computing(task, now));
        }
        cpu.next(now)
    }

    #[test]
    fn kblockd_goes_before_a_task_that_computed_like_others() {
        let mut cpu = cpu();
        computes(&mut cpu, A, us(0), us(20));
        let first = first_of(&mut cpu, [A, KBLOCKD], us(500));
        assert_eq!(first, Some(Turn::Poll(KBLOCKD)));
    }

    #[test]
    fn who_had_little_is_as_far_behind_as_kblockd_and_goes_first_if_woken_first() {
        let mut cpu = cpu();
        computes(&mut cpu, A, us(0), us(20));
        // Another has had more than a sleeper may fall behind.
        computes(&mut cpu, B, us(20), us(5000));
        let first = first_of(&mut cpu, [A, KBLOCKD], us(6000));
        assert_eq!(first, Some(Turn::Poll(A)));
    }

    #[test]
    fn an_interrupt_puts_the_end_off_and_delays_who_begins() {
        let mut cpu = cpu();
        assert_eq!(cpu.interrupt(us(0), Span::from_us(1)), None);
        assert_eq!(cpu.begin(A, us(0), Span::from_us(10)), Some(us(11)));
        let later = cpu.interrupt(us(5), Span::from_us(1));
        assert_eq!(later, Some((A, us(12))));
        assert!(!cpu.is_done_computing(A, us(11)));
        assert!(cpu.is_done_computing(A, us(12)));
    }

    #[test]
    fn a_piece_is_not_interrupted_by_tasks_but_the_next_one_waits() {
        let mut cpu = cpu();
        assert_eq!(cpu.begin(A, us(0), Span::from_us(4000)), Some(us(4000)));
        assert!(!cpu.is_done_computing(KBLOCKD, us(10)));
        assert!(cpu.has_ended(A, us(4000)));
        cpu.end(us(4000));
        assert_eq!(cpu.begin(A, us(4000), Span::from_us(10)), None);
        assert_eq!(cpu.next(us(4000)), Some(Turn::Poll(KBLOCKD)));
        computes(&mut cpu, KBLOCKD, us(4000), us(4005));
        // Going back takes a change of tasks.
        assert_eq!(cpu.next(us(4005)), Some(Turn::Compute(A, us(4017))));
    }
}
