// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks: coroutines that sleep where the kernel's tasks sleep.

use super::placement::Place;
use super::workers::PoolId;
use super::{Machine, World};
use blklab_block::{Pending, TaskTable};
use blklab_types::{IoPrio, Pid, Span, TaskId, Time};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

pub(super) type Body = Pin<Box<dyn Future<Output = ()>>>;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TaskState {
    /// Suspended and not made runnable since.
    pub(super) suspended: bool,
    /// Its sleeps are for I/O.
    pub(super) in_iowait: bool,
    /// The request pool has room for it.
    pub(super) request_granted: bool,
    /// Bios on their way, of a process that counts them.
    pub(super) outstanding: u32,
    /// It sleeps until there are fewer; 0 if it does not wait for bios.
    pub(super) awaits_below: u32,
    /// Processor time in the driver that it has not had yet.
    pub(super) owed: Span,
    /// Processor time of its requests that it has not had yet: it has it before its
    /// next bio.
    pub(super) debt: Span,
    /// Does the run go on for its sake?
    pub(super) foreground: bool,
    /// The bio that it submits when it has slept.
    pub(super) unsubmitted: Option<Pending>,
    /// The priority of the request that it hands over, if it has one of its own.
    pub(super) request_prio: Option<IoPrio>,
    /// The pool that it works for.
    pub(super) pool: Option<PoolId>,
    /// Where it runs.
    pub(super) place: Place,
}

impl World {
    pub(super) fn wake(&mut self, task: TaskId) {
        let state = &mut self.states[task.idx()];
        if !std::mem::take(&mut state.suspended) {
            return;
        }
        self.begins_to_run(task, self.running.cpu);
        match self.wake_time(task) {
            Span::ZERO => self.agenda.ready_task(task),
            time => self.agenda.wake_task_at(task, self.agenda.now() + time),
        }
        if !self.calls_processor_of(task) {
            self.charge_wake();
        }
    }
}

impl Machine {
    /// Adds a task that becomes runnable at `start`. The run ends when all
    /// foreground tasks have.
    pub fn spawn_at(
        &self,
        name: &str,
        pid: Pid,
        ioprio: IoPrio,
        foreground: bool,
        start: Time,
        body: impl Future<Output = ()> + 'static,
    ) -> TaskId {
        let mut w = self.inner.world.borrow_mut();
        let task = w.tasks.add(pid, ioprio);
        w.states.push(TaskState {
            foreground,
            ..TaskState::default()
        });
        w.nr_foreground += usize::from(foreground);
        let now = w.agenda.now();
        w.trace.process(now, pid, name);
        if start > now {
            w.agenda.wake_task_at(task, start);
        } else {
            w.agenda.ready_task(task);
        }
        w.spawned.push((task, Box::pin(body)));
        task
    }

    /// Adds a background task with the next free pid of kernel threads.
    pub fn spawn_kernel_thread(
        &self,
        name: &str,
        body: impl Future<Output = ()> + 'static,
    ) -> TaskId {
        let pid = {
            let mut w = self.inner.world.borrow_mut();
            w.next_kernel_pid += 1;
            w.next_kernel_pid
        };
        self.spawn_at(name, pid, IoPrio::default(), false, Time::ZERO, body)
    }

    /// Adds a background thread of a task: it inherits priority, nice value,
    /// CPU policy and control group, and has an io context of its own.
    pub fn spawn_thread(
        &self,
        name: &str,
        of: TaskId,
        body: impl Future<Output = ()> + 'static,
    ) -> TaskId {
        let task = self.spawn_kernel_thread(name, body);
        let mut w = self.inner.world.borrow_mut();
        let parent = *w.tasks.get(of);
        let own = w.tasks.get_mut(task);
        own.ioprio = parent.ioprio;
        own.nice = parent.nice;
        own.policy = parent.policy;
        own.group = parent.group;
        w.allow_as(task, of);
        task
    }

    /// A thread has the io context of its process (`CLONE_IO`).
    pub(crate) fn share_io_context(&self, thread: TaskId, of: TaskId) {
        self.inner.world.borrow_mut().tasks.get_mut(thread).shares = Some(of);
    }

    /// The pid of a task.
    pub(crate) fn pid_of(&self, task: TaskId) -> Pid {
        self.inner.world.borrow().tasks.get(task).pid
    }

    /// Sets a task's nice value, -20 to 19.
    pub fn set_nice(&self, task: TaskId, nice: i8) {
        self.inner.world.borrow_mut().tasks.get_mut(task).nice = nice;
    }

    /// Puts a task into a control group.
    pub fn set_group(&self, task: TaskId, group: u16) {
        self.inner.world.borrow_mut().tasks.get_mut(task).group = group;
    }

    /// The running task's control group; the root outside of tasks.
    pub(crate) fn group(&self) -> u16 {
        let w = self.inner.world.borrow();
        let group = |task| w.tasks.get(task).group;
        w.running.task.map_or(TaskTable::ROOT_GROUP, group)
    }

    /// The task that runs.
    ///
    /// # Panics
    /// Outside a task: a bug in the caller.
    pub fn current(&self) -> TaskId {
        self.inner
            .world
            .borrow()
            .running
            .task
            .expect("called in a task")
    }

    /// The process that runs; 0 outside of tasks.
    pub fn pid(&self) -> Pid {
        self.inner.world.borrow().running.pid
    }

    /// A step of the running task that may take no time. It goes no further if
    /// the run is to end, or if there were too many steps at this instant.
    pub(crate) async fn tick(&self) {
        if self.halts(self.now()) {
            std::future::pending::<()>().await;
        }
    }

    /// Counts a step of the running task: whether it is the last one.
    #[inline]
    pub(crate) fn halts(&self, now: Time) -> bool {
        let stops = self.inner.stop.load(Ordering::Relaxed);
        self.inner.progress.step(now) || stops
    }

    /// The running task found out that it makes no progress: the run ends.
    pub(crate) async fn stall(&self) {
        self.inner.progress.stall();
        std::future::pending::<()>().await;
    }

    /// Sleeps until woken. May return early: callers test their condition.
    pub async fn suspend(&self) {
        {
            let mut w = self.inner.world.borrow_mut();
            let task = w.running.task.expect("called in a task");
            w.states[task.idx()].suspended = true;
        }
        // What the plug holds may be what wakes the task.
        if self.inner.has_task_plugs {
            self.flush_task_plug();
        }
        if self.shares_cpu() {
            return self.suspend_in_turn().await;
        }
        let m = self;
        Sleep { m, polled: false }.await;
    }

    /// Makes a suspended task runnable.
    pub fn wake(&self, task: TaskId) {
        self.inner.world.borrow_mut().wake(task);
    }

    /// Sleeps until `time`; if that is not in the future, it is a step that
    /// takes no time.
    #[inline]
    pub fn sleep_until(&self, time: Time) -> SleepUntil<'_> {
        SleepUntil {
            m: self,
            time,
            begun: false,
        }
    }

    /// Lets a span pass if nothing else happens in it; the time when it is over, if
    /// the running task has to sleep until then.
    #[inline]
    pub(super) fn skip(&self, span: Span) -> Result<(), Time> {
        let mut w = self.inner.world.borrow_mut();
        let end = w.agenda.now() + span;
        if self.skips(&mut w, end) {
            Ok(())
        } else {
            Err(end)
        }
    }

    /// Moves the clock instead of going to sleep, if nothing happens until then and
    /// the run goes on: whether it did.
    #[inline]
    pub(super) fn skips(&self, w: &mut World, time: Time) -> bool {
        w.nr_foreground > 0
            && time <= w.limit
            && !self.shares_cpu()
            && !self.inner.stop.load(Ordering::Relaxed)
            && w.agenda.skip_to(time)
    }

    /// Sleeps until woken, at most until `time`.
    pub async fn suspend_until(&self, time: Time) {
        {
            let mut w = self.inner.world.borrow_mut();
            let task = w.running.task.expect("called in a task");
            w.agenda.wake_task_at(task, time);
        }
        self.suspend().await;
    }

    /// Sleeps until some queue leaves congestion, at most `timeout`.
    pub async fn congestion_wait(&self, timeout: Span) {
        let task = self.current();
        let deadline = self.now() + timeout;
        self.inner
            .world
            .borrow_mut()
            .congestion_waiters
            .push_back(task);
        self.inner
            .world
            .borrow_mut()
            .agenda
            .wake_task_at(task, deadline);
        self.suspend_for_io().await;
        self.inner
            .world
            .borrow_mut()
            .congestion_waiters
            .retain(|&t| t != task);
    }
}

/// The sleep of [`Machine::sleep_until`].
#[must_use = "a task sleeps only while it awaits this"]
pub struct SleepUntil<'a> {
    m: &'a Machine,
    time: Time,
    begun: bool,
}

impl Future for SleepUntil<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let mut w = self.m.inner.world.borrow_mut();
        let now = w.agenda.now();
        if self.begun {
            return if now < self.time {
                w.naps();
                Poll::Pending
            } else {
                Poll::Ready(())
            };
        }
        if self.time > now {
            if self.m.skips(&mut w, self.time) {
                w.has_slept(now);
                return Poll::Ready(());
            }
            let task = w.running.task.expect("called in a task");
            w.agenda.wake_task_at(task, self.time);
            w.naps();
        } else if self.m.halts(now) {
            self.time = Time::MAX;
        } else {
            return Poll::Ready(());
        }
        drop(w);
        self.begun = true;
        Poll::Pending
    }
}

/// The sleep of [`Machine::suspend`], and a step of the task when it is over.
struct Sleep<'a> {
    m: &'a Machine,
    polled: bool,
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if !std::mem::replace(&mut self.polled, true) || self.m.halts(self.m.now()) {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }
}

pub(super) struct Suspend {
    pub(super) polled: bool,
}

impl Future for Suspend {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.polled, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Machine, Sinks, build_machine};
    use blklab_experiment::{Experiment, Workload};
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    fn machine() -> Machine {
        let e = Experiment::new("x", Workload::Processes(Vec::new()));
        let sinks = Sinks::of_events(Box::new(blklab_trace::NullSink));
        build_machine(&e, sinks, Arc::new(AtomicBool::new(false))).expect("a machine")
    }

    type Log = Rc<RefCell<Vec<(Pid, u64)>>>;

    /// A task that sleeps so often for so long, and says when it is awake.
    fn sleeper(m: &Machine, log: &Log, pid: Pid, foreground: bool, nr: u32, ns: u64) {
        let (own, log) = (m.clone(), Rc::clone(log));
        let body = async move {
            for _ in 0..nr {
                own.sleep_until(own.now() + Span(ns)).await;
                log.borrow_mut().push((pid, own.now().ns()));
            }
        };
        m.spawn_at("a", pid, IoPrio::default(), foreground, Time::ZERO, body);
    }

    #[test]
    fn sleeps_that_overlap_end_in_the_order_in_which_they_began() {
        let (m, log) = (machine(), Log::default());
        sleeper(&m, &log, 1, true, 4, 30);
        sleeper(&m, &log, 2, true, 2, 60);
        m.run(Time::MAX);
        let all = [(1, 30), (2, 60), (1, 60), (1, 90), (2, 120), (1, 120)];
        assert_eq!(*log.borrow(), all);
    }

    #[test]
    fn the_clock_does_not_run_beyond_the_limit_or_the_last_foreground_task() {
        let (m, log) = (machine(), Log::default());
        sleeper(&m, &log, 1, true, 10, 10);
        m.run(Time(55));
        assert_eq!(m.now(), Time(50));
        let (m, log) = (machine(), Log::default());
        sleeper(&m, &log, 1, true, 3, 10);
        sleeper(&m, &log, 2, false, 1000, 7);
        m.run(Time::MAX);
        assert_eq!(m.now(), Time(30), "{log:?}");
    }
}
