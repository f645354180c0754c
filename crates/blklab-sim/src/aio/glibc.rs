// SPDX-License-Identifier: MIT OR Apache-2.0
//! glibc's POSIX AIO: requests on one descriptor form a chain that is executed
//! one at a time, in order; a limited number of threads serves the chains.
//!
//! A thread takes the head of a chain, executes it, puts the chain's next
//! request behind those of other chains that wait for a thread, and takes the
//! first of these: with several descriptors the threads change between them
//! after every request. A thread without work stays for a second.
//!
//! io_uring's workers for buffered I/O are hashed by file and do the same
//! ([`Params::kernel_workers`]).
//!
//! Source: glibc's rt library, state of 2007 (`aio_misc.c`, `lio_listio.c`), as
//! described. Left out: priorities, cancelling, contention for the library's
//! one lock beyond a time per request.

use super::{Execute, Params};
use crate::Machine;
use blklab_fio::run::Completion;
use blklab_pagecache::Fd;
use blklab_types::{Span, TaskId};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Most requests that `aio_suspend` is asked to watch (fio's posixaio).
const WATCHED_MAX: usize = 8;

/// How completions are collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reap {
    /// Every outstanding request is asked in the order of its index, and some
    /// are watched until one of them is done.
    ByIndex,
    /// From a queue, in order of completion.
    ByTime,
}

#[derive(Clone, Copy, Debug)]
struct Request<Op> {
    record: u32,
    op: Op,
    /// Whether it is the last of its list, whose end is what is told.
    last: bool,
}

#[derive(Debug)]
struct Chain<Op> {
    fd: Fd,
    /// Only for this record: its requests wait for no others of the descriptor.
    alone: Option<u32>,
    /// The first one is being executed, or waits for a thread.
    requests: VecDeque<Request<Op>>,
    /// An error within the list that is being executed.
    error: i32,
}

#[derive(Debug)]
struct State<Op> {
    chains: Vec<Chain<Op>>,
    /// Chains whose head no thread has taken.
    run_list: VecDeque<usize>,
    threads: u32,
    idle: VecDeque<TaskId>,
    /// Records handed in and not done, ascending.
    in_progress: Vec<u32>,
    done: VecDeque<Completion>,
    /// The highest record that the owner watches; none if it does not wait.
    watches: Option<u32>,
    /// Threads created so far.
    created: u64,
}

struct Shared<E: Execute> {
    m: Machine,
    execute: E,
    params: Params,
    reap: Reap,
    owner: TaskId,
    state: RefCell<State<E::Op>>,
}

/// The asynchronous requests of one process.
pub(crate) struct GlibcAio<E: Execute>(Rc<Shared<E>>);

/// What follows from putting a chain on the run list.
enum Help {
    Nobody,
    Wake(TaskId),
    Create,
}

impl<E: Execute> GlibcAio<E> {
    /// A process without requests; `owner` is the task that reaps.
    pub(crate) fn new(
        m: &Machine,
        execute: E,
        params: Params,
        reap: Reap,
        owner: TaskId,
    ) -> GlibcAio<E> {
        GlibcAio(Rc::new(Shared {
            m: m.clone(),
            execute,
            params,
            reap,
            owner,
            state: RefCell::new(State {
                chains: Vec::new(),
                run_list: VecDeque::new(),
                threads: 0,
                idle: VecDeque::new(),
                in_progress: Vec::new(),
                done: VecDeque::new(),
                watches: None,
                created: 0,
            }),
        }))
    }

    /// `aio_read`, `aio_write`, `aio_fsync`: takes one request.
    pub(crate) async fn enqueue(&self, record: u32, fd: Fd, op: E::Op) {
        self.enqueue_list(record, fd, &[op]).await;
    }

    /// Takes a request that does not wait for others on the descriptor, nor they
    /// for it.
    pub(crate) async fn enqueue_alone(&self, record: u32, fd: Fd, op: E::Op) {
        let chain = self.0.chain_of(fd, Some(record));
        self.append(chain, record, &[op]).await;
    }

    /// `lio_listio` on one descriptor: takes all entries; the record is done
    /// when the last one is, with the first error.
    pub(crate) async fn enqueue_list(&self, record: u32, fd: Fd, ops: &[E::Op]) {
        let chain = self.0.chain_of(fd, None);
        self.append(chain, record, ops).await;
    }

    /// Puts a record's requests behind those of a chain.
    async fn append(&self, chain: usize, record: u32, ops: &[E::Op]) {
        let shared = &self.0;
        let Some(last) = ops.len().checked_sub(1) else {
            return;
        };
        shared.note(record);
        for (i, op) in ops.iter().enumerate() {
            let length = shared.state.borrow().chains[chain].requests.len() as u64;
            let scan = Span(shared.params.scan.0.saturating_mul(length));
            shared.work(shared.params.enqueue).await;
            shared.work(scan).await;
            let request = Request {
                record,
                op: *op,
                last: i == last,
            };
            shared.insert(chain, request).await;
        }
    }

    /// Threads created so far.
    #[cfg(test)]
    pub(crate) fn threads_created(&self) -> u64 {
        self.0.state.borrow().created
    }

    /// Appends up to `max` completions to `out`; sleeps until `min` are there.
    pub(crate) async fn reap(&self, min: usize, max: usize, out: &mut Vec<Completion>) {
        let shared = &self.0;
        while shared.state.borrow().done.len() < min {
            shared.watch();
            shared.m.suspend().await;
        }
        let mut s = shared.state.borrow_mut();
        s.watches = None;
        if shared.reap == Reap::ByIndex {
            s.done.make_contiguous().sort_by_key(|c| c.record);
        }
        let n = s.done.len().min(max);
        out.extend(s.done.drain(..n));
    }
}

impl<E: Execute> Shared<E> {
    /// Processor time; none takes no turn.
    async fn work(&self, span: Span) {
        if span.0 > 0 {
            self.m.sleep_until(self.m.now() + span).await;
        }
    }

    fn chain_of(&self, fd: Fd, alone: Option<u32>) -> usize {
        let mut s = self.state.borrow_mut();
        let is_it = |c: &Chain<E::Op>| c.fd == fd && c.alone == alone;
        s.chains.iter().position(is_it).unwrap_or_else(|| {
            s.chains.push(Chain {
                fd,
                alone,
                requests: VecDeque::new(),
                error: 0,
            });
            s.chains.len() - 1
        })
    }

    fn note(&self, record: u32) {
        let mut s = self.state.borrow_mut();
        let at = s.in_progress.partition_point(|&r| r < record);
        s.in_progress.insert(at, record);
    }

    /// The owner is about to wait for one of the requests it may watch.
    fn watch(&self) {
        let mut s = self.state.borrow_mut();
        s.watches = match self.reap {
            Reap::ByTime => Some(u32::MAX),
            Reap::ByIndex => s.in_progress.iter().take(WATCHED_MAX).next_back().copied(),
        };
    }

    /// Puts a request behind the others of its chain; the head of a new chain
    /// goes to a new thread, or waits for one.
    async fn insert(self: &Rc<Self>, chain: usize, request: Request<E::Op>) {
        let first = {
            let s = &mut *self.state.borrow_mut();
            let requests = &mut s.chains[chain].requests;
            requests.push_back(request);
            if requests.len() > 1 {
                return;
            }
            let create = s.threads < self.params.threads_max && s.idle.is_empty();
            if create {
                s.threads += 1;
                s.created += 1;
            } else {
                s.run_list.push_back(chain);
            }
            create
        };
        if first {
            self.work(self.params.create).await;
            self.spawn(Some(chain));
        } else if let Some(task) = self.next_idle() {
            self.m.wake(task);
        }
    }

    fn next_idle(&self) -> Option<TaskId> {
        self.state.borrow_mut().idle.pop_front()
    }

    fn spawn(self: &Rc<Self>, chain: Option<usize>) {
        let body = thread(Rc::clone(self), chain);
        self.m.spawn_thread("aio", self.owner, body);
    }

    /// Executes the head of a chain.
    async fn serve(&self, chain: usize) {
        let (fd, request) = {
            let s = self.state.borrow();
            let c = &s.chains[chain];
            (c.fd, c.requests[0])
        };
        self.work(self.params.hand_over).await;
        let error = self.execute.execute(fd, request.op).await;
        if request.last {
            self.work(self.params.notify_cost()).await;
        }
        self.finish(chain, &request, error);
    }

    fn finish(&self, chain: usize, request: &Request<E::Op>, error: i32) {
        let wake = {
            let s = &mut *self.state.borrow_mut();
            let c = &mut s.chains[chain];
            c.requests.pop_front();
            if c.error == 0 {
                c.error = error;
            }
            let error = c.error;
            if !c.requests.is_empty() {
                s.run_list.push_back(chain);
            }
            if !request.last {
                return;
            }
            s.chains[chain].error = 0;
            s.in_progress.retain(|&r| r != request.record);
            s.done.push_back(Completion {
                record: request.record,
                error,
            });
            s.watches.is_some_and(|highest| request.record <= highest)
        };
        if wake {
            self.m.wake(self.owner);
        }
    }

    /// The next chain for a thread, and who may help with those behind it.
    fn take(&self) -> Option<(usize, Help)> {
        let s = &mut *self.state.borrow_mut();
        let chain = s.run_list.pop_front()?;
        if s.run_list.is_empty() {
            return Some((chain, Help::Nobody));
        }
        let help = match s.idle.pop_front() {
            Some(task) => Help::Wake(task),
            None if s.threads < self.params.threads_max => {
                s.threads += 1;
                s.created += 1;
                Help::Create
            }
            None => Help::Nobody,
        };
        Some((chain, help))
    }

    /// Waits for work; whether there may be some.
    async fn idle(&self) -> bool {
        let me = self.m.current();
        self.state.borrow_mut().idle.push_back(me);
        let until = self.params.idle.map(|span| self.m.now() + span);
        loop {
            match until {
                Some(time) => self.m.suspend_until(time).await,
                None => self.m.suspend().await,
            }
            let s = &mut *self.state.borrow_mut();
            let Some(at) = s.idle.iter().position(|&t| t == me) else {
                return true;
            };
            if until.is_some_and(|time| self.m.now() >= time) {
                s.idle.remove(at);
                s.threads -= 1;
                return false;
            }
        }
    }
}

/// A thread of the library, with a chain to begin with if one was given.
async fn thread<E: Execute>(shared: Rc<Shared<E>>, mut chain: Option<usize>) {
    loop {
        if let Some(chain) = chain.take() {
            shared.serve(chain).await;
        }
        match shared.take() {
            Some((next, help)) => {
                match help {
                    Help::Nobody => {}
                    Help::Wake(task) => shared.m.wake(task),
                    Help::Create => {
                        shared.work(shared.params.create).await;
                        shared.spawn(None);
                    }
                }
                chain = Some(next);
            }
            None => {
                if !shared.idle().await {
                    return;
                }
            }
        }
    }
}
