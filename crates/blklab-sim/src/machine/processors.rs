// SPDX-License-Identifier: MIT OR Apache-2.0
//! How tasks share processors, and the time that they take of them.

use super::pressure::Doing;
use super::tasks::{Suspend, TaskState};
use super::turns::Next;
use super::{Machine, World};
use crate::cpu::{Mode, Turn};
use blklab_block::mq::Work;
use blklab_block::{QueueNo, RqId};
use blklab_types::{PAGE_SECTORS, Span, TaskId, Time};

/// How tasks share processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CpuSharing {
    /// Every task has its own.
    #[default]
    None,
    /// The same, but the block layer's thread waits while a task that slept
    /// computes: one processor, as the single-queue kernels are modelled.
    HoldsKblockd,
    /// There is one, and they take turns.
    One(CpuCosts),
    /// There are several, of which one runs at a time, and tasks of a processor take turns.
    InTurn(CpuCosts),
    /// Every task has its own; a task that is woken gets going after some time.
    Several(WakeTimes),
}

/// From the wake-up of a task until it runs, where there are several processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakeTimes {
    /// The task was woken on its own processor.
    pub own: Span,
    /// What it takes more on the average if another processor woke it, which has to call
    /// for its processor first (`ttwu_queue_wakelist`): from half as long, where that one
    /// has just gone idle, to half as long again.
    pub remote: Span,
}

/// What takes time of the one processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuCosts {
    /// Who slept, or was interrupted by another, takes this long to get going
    /// again.
    pub switch: Span,
    /// An interrupt of a device, for each command that ends.
    pub interrupt: Span,
    /// To wake a task that sleeps, for whoever does it.
    pub wake: Span,
    /// A request that a task brings to the scheduler.
    pub insert: Span,
    /// A request from the scheduler to the driver.
    pub dispatch: Span,
    /// A run of the block layer's thread, beside its requests.
    pub worker: Span,
    /// From one request that the block layer's thread hands over in a run to the next.
    pub gap: Span,
    /// A page that the driver copies.
    pub copy: Span,
}

impl CpuCosts {
    /// What the driver takes for a request.
    pub(super) fn of_request(&self, nr_sectors: u32) -> Span {
        let pages = u64::from(nr_sectors) / PAGE_SECTORS;
        self.dispatch + Span(self.copy.ns() * pages)
    }
}

impl CpuSharing {
    /// What takes time: nothing, where tasks do not share.
    pub(super) fn costs(self) -> CpuCosts {
        match self {
            CpuSharing::One(costs) | CpuSharing::InTurn(costs) => costs,
            _ => CpuCosts::default(),
        }
    }

    /// From a wake-up until the task runs: no time, where that costs processor time
    /// instead.
    pub(super) fn wake_times(self) -> WakeTimes {
        match self {
            CpuSharing::Several(times) => times,
            _ => WakeTimes::default(),
        }
    }
}

/// Longer than this no task is favoured for having slept
/// (`sysctl_sched_wakeup_granularity`, 2.6.28).
const COMPUTES_AT_MOST: Span = Span::from_ms(5);

impl World {
    /// Who calls the driver owes the processor time that this takes.
    pub(super) fn charge_request(&mut self, no: QueueNo, rq: RqId, costs: &CpuCosts) {
        if let Some(task) = self.running.task {
            let nr_sectors = self.disks[no.idx()].queue.requests()[rq].nr_sectors;
            let owed = &mut self.states[task.idx()].owed;
            *owed += costs.of_request(nr_sectors);
        }
    }

    /// How much later than now the device gets the next request that the running task
    /// hands over, if that is the block layer's thread in a run.
    pub(super) fn hand_over_delay(&mut self) -> Span {
        if self.costs.gap == Span::ZERO || !self.is_kblockd(self.running.task) {
            return Span::ZERO;
        }
        let now = self.agenda.now();
        let (last, nr) = self.handed_over;
        let nr = if last == now { nr + 1 } else { 0 };
        self.handed_over = (now, nr);
        Span(self.costs.gap.ns() * u64::from(nr))
    }

    /// How long a task takes to get going that is woken now: on the processor of the task
    /// that wakes it, or of the one whose request has just ended.
    #[inline]
    pub(super) fn wake_time(&mut self, task: TaskId) -> Span {
        let WakeTimes { own, remote } = self.wake_times;
        if self.running.cpu == self.cpu_of(task) || remote == Span::ZERO {
            return own;
        }
        own + self.call_time()
    }

    /// Whoever woke a task that slept has the processor for it (`try_to_wake_up`).
    pub(super) fn charge_wake(&mut self) {
        match self.running.task {
            Some(by) => self.states[by.idx()].owed += self.costs.wake,
            None => self.interrupt(self.costs.wake),
        }
    }

    /// Who called a queue owes the processor time of the requests that this made.
    #[inline]
    pub(super) fn charge_work(&mut self, no: QueueNo) {
        let work = self.disks[no.idx()].queue.take_work();
        if work == Work::default() {
            return;
        }
        let Some(task) = self.running.task else {
            return;
        };
        let cpu = self.cpu_of(task);
        let TaskState { owed, debt, .. } = &mut self.states[task.idx()];
        *owed += Span(self.costs.insert.ns() * u64::from(work.requests));
        let Some(time) = &mut self.disks[no.idx()].scheduler_time else {
            return;
        };
        let now = self.agenda.now();
        // What it owes already comes first.
        *debt = time.charge(now + *debt, cpu, work).since(now);
    }

    /// An interrupt holds up who computes.
    pub(super) fn interrupt(&mut self, span: Span) {
        if span == Span::ZERO {
            return;
        }
        let now = self.agenda.now();
        let cpu = &mut self.cpus[usize::from(self.running.cpu)];
        if let Some((task, end)) = cpu.interrupt(now, span) {
            self.agenda.wake_task_at(task, end);
        }
    }
}

impl Machine {
    /// A task is due: whether it goes on at once. Where tasks share a processor
    /// it does so when it is its turn.
    pub(super) fn goes_on(&self, task: TaskId) -> bool {
        if !self.shares_cpu() {
            return true;
        }
        let w = &mut *self.inner.world.borrow_mut();
        w.task_is(task, Doing::Runs);
        let cpu = w.cpu_of(task);
        if let Some(turns) = &mut w.turns
            && !w.states[task.idx()].place.is_awake()
        {
            // A timer of its own, which is on its processor.
            turns.end();
            w.begins_to_run(task, cpu);
        }
        let cpu = usize::from(w.cpu_of(task));
        w.cpus[cpu].is_done_computing(task, w.agenda.now())
    }

    /// Whose turn it is, once nothing else happens at this instant.
    pub(super) fn next_turn(&self) -> Option<Next> {
        if !self.shares_cpu() {
            return None;
        }
        let w = &mut *self.inner.world.borrow_mut();
        if !w.agenda.is_quiet() || !w.spawned.is_empty() {
            return None;
        }
        if w.turns.is_some() {
            return w.next_in_turn();
        }
        let cpu = &mut w.cpus[0];
        if !cpu.is_free() {
            return None;
        }
        match cpu.next(w.agenda.now())? {
            Turn::Poll(task) => Some(Next::Poll(task)),
            Turn::Compute(task, end) => {
                w.agenda.wake_task_at(task, end);
                None
            }
        }
    }

    /// A task that is about to begin has had so much of the processor already.
    pub(crate) fn has_had(&self, task: TaskId, span: Span) {
        if self.shares_cpu() && span > Span::ZERO {
            let w = &mut *self.inner.world.borrow_mut();
            let cpu = usize::from(w.cpu_of(task));
            w.cpus[cpu].has_had(task, span);
        }
    }

    /// Whether processors run one at a time.
    pub(crate) fn has_turns(&self) -> bool {
        matches!(self.inner.cpu, CpuSharing::InTurn(_))
    }

    pub(crate) fn shares_cpu(&self) -> bool {
        matches!(self.inner.cpu, CpuSharing::One(_) | CpuSharing::InTurn(_))
    }

    /// The next task is on the first processor, those after it by turns on the others.
    pub(crate) fn begin_with_first_processor(&self) {
        let w = &mut *self.inner.world.borrow_mut();
        w.first_task = w.states.len();
    }

    /// Binds a task that is new to processors (`sched_setaffinity`); it begins on the first.
    pub(crate) fn bind(&self, task: TaskId, first: u16, all: &[u16]) {
        self.inner.world.borrow_mut().allow(task, first, all);
    }

    /// The running task takes the processor time that it owes; whether it owed
    /// any.
    pub(super) async fn pay(&self) -> bool {
        if !self.shares_cpu() {
            return false;
        }
        let owed = self.take_owed();
        self.compute(owed).await;
        owed > Span::ZERO
    }

    pub(super) fn take_owed(&self) -> Span {
        let mut w = self.inner.world.borrow_mut();
        let task = w.running.task.expect("called in a task");
        std::mem::take(&mut w.states[task.idx()].owed)
    }

    /// The running task sleeps until woken, and takes its time to get going
    /// again. It does not sleep if it owed processor time: a wake-up may have
    /// come meanwhile.
    pub(super) async fn suspend_in_turn(&self) {
        if self.pay().await {
            return;
        }
        Suspend { polled: false }.await;
        self.compute(self.inner.cpu.costs().switch).await;
    }

    /// The running task has just been created: it takes its time to get going.
    pub(crate) async fn get_going(&self) {
        if self.shares_cpu() {
            self.compute(self.inner.cpu.costs().switch).await;
        }
    }

    /// Computes for a span, as a task that slept until just now. On a machine
    /// with one processor the process scheduler favours such a task: kblockd,
    /// which has slept too, does not preempt it (2.6.23 and later,
    /// `wakeup_preempt_entity` of kernel/sched_fair.c; no preemption in the
    /// kernel). So what a timer asks of kblockd meanwhile is done when the task
    /// sleeps.
    pub async fn compute(&self, span: Span) {
        if span == Span::ZERO {
            return self.tick().await;
        }
        if self.shares_cpu() {
            return self.compute_in_turn(span, Mode::Kernel).await;
        }
        let Err(end) = self.skip(span) else { return };
        match self.inner.cpu {
            CpuSharing::HoldsKblockd if span < COMPUTES_AT_MOST => {
                self.inner.world.borrow_mut().nr_computing += 1;
                self.sleep_until(end).await;
                self.inner.world.borrow_mut().nr_computing -= 1;
            }
            _ => self.spin_until(end).await,
        }
    }

    /// Lets time pass as a sleep does, but the task has its processor meanwhile.
    pub(crate) async fn spin_until(&self, time: Time) {
        let task = self.current();
        self.set_computes(task, true);
        self.sleep_until(time).await;
        self.set_computes(task, false);
    }

    /// A task has a processor, or waits for it, though it is not polled; or no longer.
    fn set_computes(&self, task: TaskId, does: bool) {
        let states = &mut self.inner.world.borrow_mut().states;
        states[task.idx()].place.computes = does;
    }

    /// Computes for a span in the program of the task: others may take the processor
    /// meanwhile, where tasks share one.
    pub(crate) async fn compute_in_program(&self, span: Span) {
        if self.shares_cpu() && span > Span::ZERO {
            self.compute_in_turn(span, Mode::User).await;
        } else {
            self.compute(span).await;
        }
    }

    /// Computes for a span if nothing else happens in it: whether that was so. If not,
    /// the task has to sleep for it ([`Machine::compute`]).
    #[inline]
    pub(crate) fn computes_at_once(&self, span: Span) -> bool {
        span > Span::ZERO && self.skip(span).is_ok()
    }

    /// Computes for a span of the processor's time.
    pub(super) async fn compute_in_turn(&self, span: Span, mode: Mode) {
        let task = self.current();
        let cpu = {
            let w = &mut *self.inner.world.borrow_mut();
            let cpu = usize::from(w.cpu_of(task));
            let now = w.agenda.now();
            if let Some(end) = w.cpus[cpu].begin(task, now, span, mode) {
                w.agenda.wake_task_at(task, end);
            }
            cpu
        };
        let has_ended = || self.inner.world.borrow().cpus[cpu].has_ended(task, self.now());
        self.set_computes(task, true);
        while !has_ended() {
            Suspend { polled: false }.await;
        }
        self.set_computes(task, false);
        let w = &mut *self.inner.world.borrow_mut();
        w.cpus[cpu].end(w.agenda.now());
    }
}
