// SPDX-License-Identifier: MIT OR Apache-2.0
//! `io_submit_mode=offload`: worker threads of a job, each with one I/O at a
//! time and an engine of its own.
//!
//! Behaviour of fio 3.33 (workqueue.c, rate-submit.c): as many workers as
//! records; an I/O goes to the next idle one after the last that was chosen or
//! became idle, or, if none is, to the one that got work longest ago. A worker
//! submits and waits, with asynchronous engines too. What overlaps an I/O in
//! flight of any job with workers and `serialize_overlap` waits for it. The
//! latency of an I/O begins when the job has built it, its completion latency
//! when the worker submits it.
//!
//! Left out: the processor time of handing work over.

use super::call::CallCost;
use super::engine::Engine;
use super::recording::{Record, Slot, account};
use crate::Machine;
use blklab_fio::run::{Answer, Completion, Io};
use blklab_pagecache::Fd;
use blklab_types::TaskId;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Ranges in flight of all jobs that look for overlaps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlaps(Rc<RefCell<Ranges>>);

#[derive(Debug, Default)]
struct Ranges {
    in_flight: Vec<(u64, u64)>,
    waiting: Vec<TaskId>,
}

impl Overlaps {
    /// Waits until nothing in flight overlaps the range, which then is in flight.
    async fn enter(&self, m: &Machine, range: (u64, u64)) {
        let overlaps = |other: &(u64, u64)| range.0 < other.1 && other.0 < range.1;
        while self.0.borrow().in_flight.iter().any(overlaps) {
            self.0.borrow_mut().waiting.push(m.current());
            m.suspend().await;
        }
        self.0.borrow_mut().in_flight.push(range);
    }

    fn leave(&self, m: &Machine, range: (u64, u64)) {
        let mut ranges = self.0.borrow_mut();
        if let Some(at) = ranges.in_flight.iter().position(|other| *other == range) {
            ranges.in_flight.swap_remove(at);
        }
        ranges.waiting.drain(..).for_each(|task| m.wake(task));
    }
}

/// One I/O for a worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) io: Io,
    pub(crate) fd: Option<Fd>,
    /// What the statistics need of it.
    pub(crate) record: Record,
}

#[derive(Debug)]
struct Worker {
    task: TaskId,
    work: VecDeque<Work>,
    idle: bool,
    /// When it last got work, by count.
    sequence: u64,
}

#[derive(Debug, Default)]
struct State {
    /// Those that have had work; the others are idle.
    workers: Vec<Worker>,
    next_free: usize,
    sequence: u64,
    done: Vec<Completion>,
    /// Given out and not in `done`.
    outstanding: u32,
    over: bool,
}

impl State {
    /// A worker has nothing to do; whether it is to end.
    fn rest(&mut self, index: usize) -> bool {
        let worker = &mut self.workers[index];
        if !self.over && !worker.idle {
            worker.idle = true;
            self.next_free = index;
        }
        self.over
    }

    fn finished(&mut self, record: u32, error: i32) {
        self.outstanding -= 1;
        self.done.push(Completion { record, error });
    }
}

/// What the workers of a job are made of.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) m: Machine,
    pub(crate) slot: Slot,
    /// Makes an engine of depth 1 in the running task.
    pub(crate) engine: Rc<dyn Fn() -> Engine>,
    pub(crate) is_direct: bool,
    /// Processor time of the system calls of one direct I/O.
    pub(crate) call_cost: CallCost,
    /// None unless the job serializes overlaps.
    pub(crate) overlaps: Option<Overlaps>,
    /// Name of the threads.
    pub(crate) name: String,
}

/// The workers of a job.
pub(crate) struct Pool {
    setup: Setup,
    owner: TaskId,
    depth: usize,
    state: Rc<RefCell<State>>,
}

impl Pool {
    /// Workers of the running task.
    pub(crate) fn new(setup: Setup, depth: u32) -> Pool {
        Pool {
            owner: setup.m.current(),
            setup,
            depth: depth as usize,
            state: Rc::default(),
        }
    }

    /// Gives an I/O to a worker.
    pub(crate) fn enqueue(&self, work: Work) {
        let index = self.choose();
        if index == self.state.borrow().workers.len() {
            self.start(index);
        }
        let mut state = self.state.borrow_mut();
        state.sequence += 1;
        state.outstanding += 1;
        let sequence = state.sequence;
        let worker = &mut state.workers[index];
        worker.work.push_back(work);
        worker.idle = false;
        worker.sequence = sequence;
        self.setup.m.wake(worker.task);
    }

    /// The worker for the next I/O.
    fn choose(&self) -> usize {
        let mut state = self.state.borrow_mut();
        let started = state.workers.len();
        // Workers that have not started are idle; they start in order.
        let idle = |at: &usize| *at >= started || state.workers[*at].idle;
        let from = state.next_free;
        let found = (from..self.depth).chain(0..from).find(idle);
        let oldest = || (0..started).min_by_key(|at| state.workers[*at].sequence);
        let index = found.or_else(oldest).unwrap_or(0).min(started);
        if index == state.next_free {
            state.next_free = (index + 1) % self.depth;
        }
        index
    }

    fn start(&self, index: usize) {
        let body = serve(
            self.setup.clone(),
            Rc::clone(&self.state),
            index,
            self.owner,
        );
        let task = self
            .setup
            .m
            .spawn_thread(&self.setup.name, self.owner, body);
        self.state.borrow_mut().workers.push(Worker {
            task,
            work: VecDeque::new(),
            idle: true,
            sequence: 0,
        });
    }

    /// Whether workers have I/Os that the job has not been told of.
    pub(crate) fn is_busy(&self) -> bool {
        let state = self.state.borrow();
        state.outstanding > 0 || !state.done.is_empty()
    }

    /// Waits until so many I/Os are done that the job has not been told of, or
    /// all.
    pub(crate) async fn wait(&self, min: u32) {
        loop {
            {
                let state = self.state.borrow();
                if state.outstanding == 0 || state.done.len() >= min as usize {
                    return;
                }
            }
            self.setup.m.suspend().await;
        }
    }

    /// What has been done since the last call.
    pub(crate) fn collect(&self, out: &mut Vec<Completion>) {
        out.clear();
        out.append(&mut self.state.borrow_mut().done);
    }

    /// The threads end.
    pub(crate) fn end(&self) {
        let mut state = self.state.borrow_mut();
        state.over = true;
        for worker in &state.workers {
            self.setup.m.wake(worker.task);
        }
    }
}

/// The body of a worker.
async fn serve(setup: Setup, state: Rc<RefCell<State>>, index: usize, owner: TaskId) {
    let mut engine = (setup.engine)();
    loop {
        let next = state.borrow_mut().workers[index].work.pop_front();
        let Some(work) = next else {
            if state.borrow_mut().rest(index) {
                return;
            }
            setup.m.suspend().await;
            continue;
        };
        let error = perform(&setup, &mut engine, work).await;
        state.borrow_mut().finished(work.io.record, error);
        setup.m.wake(owner);
    }
}

/// Submits one I/O and waits for it; returns its error number.
async fn perform(setup: &Setup, engine: &mut Engine, work: Work) -> i32 {
    let m = &setup.m;
    let range = (
        work.io.offset,
        work.io.offset.saturating_add(work.io.length),
    );
    if let Some(overlaps) = &setup.overlaps {
        overlaps.enter(m, range).await;
    }
    // The engine has room for one.
    let io = Io {
        record: 0,
        ..work.io
    };
    let trims = work.fd.is_some() && engine.trims_now(&io);
    if trims {
        m.compute(setup.call_cost.span(1, 0)).await;
    } else if setup.is_direct {
        m.compute(setup.call_cost.span(1, io.length)).await;
    }
    let mut record = work.record;
    record.issued = m.now();
    let mut synchronous = engine.is_synchronous();
    let error = match engine.queue(&io, work.fd).await {
        Answer::Completed { error } => {
            synchronous = true;
            error
        }
        Answer::Queued | Answer::Busy => {
            engine.commit().await;
            record.issued = record.issued.max(m.now());
            let mut done = Vec::with_capacity(1);
            engine.reap(1, 1, &mut done).await;
            done.first().map_or(0, |done| done.error)
        }
    };
    if let Some(overlaps) = &setup.overlaps {
        overlaps.leave(m, range);
    }
    let mut slot = setup.slot.borrow_mut();
    let recording = slot.as_mut().expect("the recording outlives its workers");
    recording.stats.on_submit(1, 1);
    account(recording, m.now(), &record, error, synchronous);
    recording.stats.on_complete_batch(1);
    error
}
