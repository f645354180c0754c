// SPDX-License-Identifier: MIT OR Apache-2.0
//! Submissions of tasks: bios, plugs, and sleeps for requests.

use super::{Machine, World};
use blklab_block::{Pending, Queue, QueueNo, Submit};
use blklab_types::{Bio, IoPrio, Span, TaskId};

/// What is left of a submission, for which its task has to sleep. The bio is the
/// task's `unsubmitted` (`TaskState`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsubmitted {
    /// The array has not seen the bio.
    ToArray,
    /// No request is free.
    WithoutRequest,
    /// It has a request, for which the task has the processor before it goes on.
    WithRequest,
    /// The queue has the bio, and the task owes processor time.
    Unpaid,
    /// The task would have to sleep, and does not: nobody has the bio.
    Refused,
    /// Nobody has the bio: first the task has the processor for so long, for its
    /// requests before.
    InDebt(Span),
}

impl World {
    /// The running task will submit this when it has slept.
    fn leave_unsubmitted(&mut self, pending: Pending) {
        let task = self.running.task.expect("only a task sleeps");
        self.states[task.idx()].unsubmitted = Some(pending);
    }
}

impl Machine {
    /// Submits a bio; sleeps while no request is free.
    pub async fn submit_bio(&self, bio: Bio) {
        if let Some(rest) = self.begin_bio(bio) {
            self.finish_bio(rest).await;
        }
    }

    /// Has the processor for as long as the running task owes for its requests, where it
    /// submits to a queue itself.
    pub(crate) async fn pay_debt(&self) {
        let debt = {
            let w = &mut *self.inner.world.borrow_mut();
            let task = w.running.task.expect("called in a task");
            std::mem::take(&mut w.states[task.idx()].debt)
        };
        if debt > Span::ZERO {
            self.compute(debt).await;
        }
    }

    /// Has the processor for as long as the task owes, if that is what a submission
    /// waits for, and goes on with it: what is left then.
    pub(crate) async fn settle(&self, rest: Unsubmitted) -> Option<Unsubmitted> {
        let Unsubmitted::InDebt(debt) = rest else {
            return Some(rest);
        };
        let bio = self.take_unsubmitted().bio;
        self.compute(debt).await;
        self.begin_bio(bio)
    }

    /// Submits a bio as far as that needs no sleep.
    #[inline(always)]
    pub(crate) fn begin_bio(&self, mut bio: Bio) -> Option<Unsubmitted> {
        let mut left = None;
        {
            let w = &mut *self.inner.world.borrow_mut();
            if let Some(task) = w.running.task {
                let state = &mut w.states[task.idx()];
                if let Some(prio) = state.request_prio {
                    bio.ioprio = prio;
                }
                let debt = std::mem::take(&mut state.debt);
                if debt > Span::ZERO && !self.skips(w, w.agenda.now() + debt) {
                    let queued = w.agenda.now();
                    w.leave_unsubmitted(Pending::new(bio, queued));
                    return Some(Unsubmitted::InDebt(debt));
                }
            }
            if self.has_array() {
                if w.enter_array(|a, cx| a.take_write(cx, bio)) != Some(true) {
                    let queued = w.agenda.now();
                    w.leave_unsubmitted(Pending::new(bio, queued));
                    return Some(Unsubmitted::ToArray);
                }
            } else {
                let (pending, what) = match w.enter(QueueNo::FIRST, |q, cx| q.submit(cx, bio)) {
                    Submit::Done => (None, None),
                    Submit::Sleeps(pending) => (Some(pending), Some(Unsubmitted::WithoutRequest)),
                    Submit::Pays(pending) => (Some(pending), Some(Unsubmitted::WithRequest)),
                    Submit::Refused => (None, Some(Unsubmitted::Refused)),
                };
                if let Some(pending) = pending {
                    w.leave_unsubmitted(pending);
                }
                left = what;
            }
        }
        self.route();
        left.or_else(|| self.shares_cpu().then_some(Unsubmitted::Unpaid))
    }

    /// Submits the rest; sleeps while no request is free.
    pub(crate) async fn finish_bio(&self, rest: Unsubmitted) {
        let Some(rest) = self.settle(rest).await else {
            return;
        };
        match rest {
            Unsubmitted::ToArray => self.submit_to_array(self.take_unsubmitted().bio).await,
            Unsubmitted::WithoutRequest => {
                let left = Submit::Sleeps(self.take_unsubmitted());
                self.finish_submission(QueueNo::FIRST, left).await;
            }
            Unsubmitted::WithRequest => {
                let left = Submit::Pays(self.take_unsubmitted());
                self.finish_submission(QueueNo::FIRST, left).await;
            }
            Unsubmitted::Unpaid => {}
            Unsubmitted::InDebt(_) => unreachable!("the debt is paid"),
            Unsubmitted::Refused => unreachable!("who does not sleep does not wait"),
        }
        if self.shares_cpu() {
            self.pay().await;
        }
    }

    /// The running thread of a mirror submits what it has taken, until a queue asks for
    /// something, or has no request: which, and for what the thread has to sleep there.
    pub(crate) fn submit_writes(&self, thread: TaskId) -> Option<(QueueNo, Submit)> {
        let mut left = None;
        {
            let w = &mut *self.inner.world.borrow_mut();
            while !w.has_left_something() && w.states[thread.idx()].debt == Span::ZERO {
                let next = w.array.as_mut().and_then(|a| a.next_write(thread));
                let Some(part) = next else {
                    break;
                };
                let no = QueueNo(part.member);
                let state = w.enter(no, |q, cx| q.submit_from(cx, part.bio, None));
                if state != Submit::Done {
                    left = Some((no, state));
                    break;
                }
            }
        }
        self.route();
        left
    }

    fn take_unsubmitted(&self) -> Pending {
        let w = &mut *self.inner.world.borrow_mut();
        let task = w.running.task.expect("called in a task");
        let left = w.states[task.idx()].unsubmitted.take();
        left.expect("the submission left its bio")
    }

    /// Goes on with a bio that a queue was given: sleeps while no request is free for it,
    /// and has the processor for one that it has.
    pub(crate) async fn finish_submission(&self, no: QueueNo, mut left: Submit) {
        let task = self.current();
        loop {
            let pending = match left {
                Submit::Done => return,
                Submit::Sleeps(pending) => {
                    self.worker_sleeps();
                    while !self.is_granted(task) {
                        self.suspend_for_io().await;
                    }
                    self.worker_runs();
                    pending
                }
                Submit::Pays(pending) => {
                    self.pay_debt().await;
                    pending
                }
                Submit::Refused => unreachable!("who goes on may sleep"),
            };
            left = self.with_queue(no, |q, cx| q.resume(cx, pending));
        }
    }

    /// Whether a task that sleeps for a request was woken for one since it asked.
    fn is_granted(&self, task: TaskId) -> bool {
        std::mem::take(&mut self.inner.world.borrow_mut().states[task.idx()].request_granted)
    }

    /// The bios that the running task submits from here on have this priority
    /// (`aio_reqprio` of io_submit(2) from 4.18 on, `ioprio` of io_uring).
    pub(crate) fn set_request_prio(&self, prio: Option<IoPrio>) {
        let w = &mut *self.inner.world.borrow_mut();
        if let Some(task) = w.running.task {
            w.states[task.idx()].request_prio = prio;
        }
    }

    /// Opens a task plug for the running task (2.6.39 and later; nothing
    /// before). Calls nest.
    pub(crate) fn start_plug(&self) {
        self.start_plug_for(1);
    }

    /// The same, for about so many requests.
    pub(crate) fn start_plug_for(&self, nr_ios: u32) {
        if !self.inner.has_task_plugs {
            return;
        }
        let mut w = self.inner.world.borrow_mut();
        let task = w.running.task.expect("called in a task");
        for disk in &mut w.disks {
            disk.queue.start_plug_for(task, nr_ios);
        }
    }

    /// Closes the running task's plug.
    #[inline]
    pub(crate) fn finish_plug(&self) {
        if self.inner.has_task_plugs {
            self.finish_task_plug();
        }
    }

    fn finish_task_plug(&self) {
        {
            let mut w = self.inner.world.borrow_mut();
            let task = w.running.task.expect("called in a task");
            for i in 0..w.disks.len() as u32 {
                w.enter(QueueNo(i), |q, cx| q.finish_plug(cx, task));
            }
        }
        self.route();
    }

    /// Unplugs the device that tasks use.
    pub(crate) fn unplug(&self) {
        if self.has_array() {
            self.unplug_array();
        } else {
            self.with_queue(QueueNo::FIRST, Queue::unplug);
        }
    }

    /// What the running task's plug holds goes to the queues, because the task
    /// sleeps (`schedule`, 2.6.39 and later).
    pub(crate) fn flush_task_plug(&self) {
        let task = self.current();
        for i in 0..self.nr_disks() {
            self.with_queue(QueueNo(i), |q, cx| q.flush_plug_to_sleep(cx, task));
        }
    }

    /// Counts a bio that the running process submits itself.
    pub(crate) fn count_submission(&self, task: TaskId) {
        self.inner.world.borrow_mut().states[task.idx()].outstanding += 1;
    }

    /// The running process sleeps until fewer than `n` of its bios are on
    /// their way. The completion that brings it there wakes it, no earlier one.
    pub(crate) async fn outstanding_below(&self, n: u32) {
        let task = self.current();
        self.inner.world.borrow_mut().states[task.idx()].awaits_below = n;
        while self.outstanding(task) >= n {
            self.suspend_for_io().await;
        }
        self.inner.world.borrow_mut().states[task.idx()].awaits_below = 0;
    }

    /// Bios on their way, of a process that counts them.
    pub(crate) fn outstanding(&self, task: TaskId) -> u32 {
        self.inner.world.borrow().states[task.idx()].outstanding
    }
}
