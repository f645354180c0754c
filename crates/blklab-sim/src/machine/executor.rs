// SPDX-License-Identifier: MIT OR Apache-2.0
//! The agenda's loop: what is due next, and who it is for.

use super::pressure::Doing;
use super::tasks::Body;
use super::turns::{Next, Turns};
use super::{Disk, Machine, World};
use blklab_block::md::Array;
use blklab_block::{Cx, Queue, QueueNo, Running};
use blklab_engine::{Due, TimerId};
use blklab_trace::truth::Kind;
use blklab_types::{TaskId, Time};
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};

impl World {
    /// Whether nothing is on its way.
    pub(super) fn is_idle(&self) -> bool {
        self.disks.iter().all(|d| d.queue.is_idle())
            && self.array.as_ref().is_none_or(Array::is_idle)
    }

    /// The queue that a timer belongs to: timers are registered disk by disk,
    /// each queue's own last, and the array's after them.
    pub(super) fn queue_of_timer(&self, timer: TimerId) -> QueueNo {
        let has_timer = |d: &Disk| timer <= d.queue.last_timer();
        match self.disks.iter().position(has_timer) {
            Some(i) => QueueNo(i as u32),
            None => QueueNo::ARRAY,
        }
    }
}

impl Machine {
    /// Runs until every foreground task has ended and the queue is empty, or
    /// nothing is due any more, or `limit`, or virtual time stands still: see
    /// [`Machine::has_stalled`].
    pub fn run(&self, limit: Time) {
        self.inner.world.borrow_mut().limit = limit;
        self.run_to(limit);
        let mut w = self.inner.world.borrow_mut();
        w.trace.hand_over();
        let now = w.agenda.now();
        w.tell_counters(now);
    }

    fn run_to(&self, limit: Time) {
        let mut bodies: Vec<Option<Body>> = Vec::new();
        let mut context = Context::from_waker(Waker::noop());
        loop {
            match self.next_turn() {
                Some(Next::Poll(task)) => {
                    self.poll(&mut bodies, &mut context, task);
                    continue;
                }
                Some(Next::Interrupts(cpu)) => {
                    self.handle_interrupts(cpu);
                    continue;
                }
                None => {}
            }
            let due = {
                let mut w = self.inner.world.borrow_mut();
                if !w.spawned.is_empty() {
                    for (task, body) in w.spawned.drain(..) {
                        debug_assert_eq!(task.idx(), bodies.len(), "tasks are numbered in order");
                        bodies.push(Some(body));
                    }
                }
                if self.inner.stop.load(Ordering::Relaxed) || (w.nr_foreground == 0 && w.is_idle())
                {
                    return;
                }
                let before = w.agenda.now();
                let due = w.agenda.next(limit);
                if w.counters.is_some() && w.agenda.now() > before {
                    w.tell_counters(before);
                }
                if self.inner.progress.event(w.agenda.now()) {
                    return;
                }
                due
            };
            match due {
                None => return,
                Some(Due::Task(task)) => {
                    if self.goes_on(task) {
                        self.poll(&mut bodies, &mut context, task);
                    }
                }
                Some(Due::Device(device, token)) => self.device_due(QueueNo(device.0), token),
                Some(Due::Timer(timer)) => self.timer_due(timer),
                Some(Due::Work(work)) => {
                    let mut w = self.inner.world.borrow_mut();
                    if w.nr_computing > 0 {
                        w.held_work.push(work);
                    } else {
                        drop(w);
                        self.work_due(work);
                    }
                }
            }
        }
    }

    /// Whether the run came to a halt because virtual time stood still: a fault
    /// of a model or of this crate.
    pub fn has_stalled(&self) -> bool {
        self.inner.progress.has_stalled()
    }

    #[inline(always)]
    pub(super) fn poll(
        &self,
        bodies: &mut [Option<Body>],
        context: &mut Context<'_>,
        task: TaskId,
    ) {
        let Some(body) = bodies[task.idx()].as_mut() else {
            return;
        };
        {
            let mut w = self.inner.world.borrow_mut();
            let pid = w.tasks.get(task).pid;
            w.states[task.idx()].suspended = false;
            let cpu = w.cpu_of(task);
            // A timer of its own, which is on its processor.
            w.begins_to_run(task, cpu);
            w.running = Running {
                task: Some(task),
                pid,
                cpu: w.cpu_of(task),
            };
        }
        let ready = body.as_mut().poll(context).is_ready();
        if ready {
            bodies[task.idx()] = None;
            let mut w = self.inner.world.borrow_mut();
            for i in 0..w.disks.len() as u32 {
                w.enter(QueueNo(i), |q, cx| {
                    q.exit_task(cx, task);
                    if i == 0 {
                        cx.truth_note(Kind::Exit, 0, "");
                    }
                });
            }
            let foreground = w.states[task.idx()].foreground;
            w.nr_foreground -= usize::from(foreground);
            drop(w);
            self.route();
        }
        let mut w = self.inner.world.borrow_mut();
        if ready {
            w.task_is(task, Doing::Sleeps);
            w.stops_running(task);
        } else {
            w.gives_way(task);
        }
        w.running = Running::INTERRUPT;
        if w.nr_computing == 0 && !w.held_work.is_empty() {
            let World {
                agenda, held_work, ..
            } = &mut *w;
            held_work.drain(..).for_each(|work| agenda.ready_work(work));
        }
    }

    pub(super) fn timer_due(&self, timer: TimerId) {
        let no = {
            let w = &mut *self.inner.world.borrow_mut();
            w.turns.iter_mut().for_each(Turns::end);
            w.queue_of_timer(timer)
        };
        if no == QueueNo::ARRAY {
            self.with_array(Array::unplug_timeout);
            return;
        }
        self.interrupt_entry(no, Running::INTERRUPT, |q, cx| q.timer(cx, timer));
    }

    #[inline(always)]
    pub(super) fn device_due(&self, no: QueueNo, token: u64) {
        {
            let mut w = self.inner.world.borrow_mut();
            w.running = Running::INTERRUPT;
            w.with_device(no, |device, cx| device.wake(cx, token));
            if let Some(turns) = &mut w.turns {
                turns.end();
            } else if !w.done.is_empty() {
                w.interrupt(self.inner.cpu.costs().interrupt);
            }
        }
        self.route();
    }

    pub(super) fn interrupt_entry(
        &self,
        no: QueueNo,
        running: Running,
        f: impl FnOnce(&mut Queue, &mut Cx<'_>),
    ) {
        {
            let mut w = self.inner.world.borrow_mut();
            w.running = running;
            w.enter(no, f);
        }
        self.route();
        self.inner.world.borrow_mut().running = Running::INTERRUPT;
    }
}
