// SPDX-License-Identifier: MIT OR Apache-2.0
//! glibc's POSIX AIO: requests on one descriptor are executed one at a time,
//! in order, by a thread; descriptors run side by side.
//!
//! io_uring's workers for buffered I/O are hashed by file and do the same.
//!
//! Source: glibc's rt library, 2007 state. Left out: the limit of 20 threads,
//! the cost of creating them, and their end after a second of idleness.

use super::engine::perform;
use crate::Machine;
use blklab_fio::run::{Completion, Io};
use blklab_fs::{Fd, PageCache};
use blklab_types::TaskId;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Requests of one descriptor and the thread that executes them.
#[derive(Debug, Default)]
struct Chain {
    requests: VecDeque<Io>,
}

/// The asynchronous requests of one job.
#[derive(Clone, Debug, Default)]
pub(crate) struct PosixAio {
    chains: Vec<(Fd, TaskId, Rc<RefCell<Chain>>)>,
    done: Rc<RefCell<VecDeque<Completion>>>,
}

impl PosixAio {
    /// Takes a request; its descriptor's thread goes on if it slept.
    pub(crate) fn enqueue(
        &mut self,
        m: &Machine,
        cache: &PageCache<Machine>,
        io: &Io,
        fd: Fd,
        direct: bool,
        owner: TaskId,
    ) {
        let at = self
            .chains
            .iter()
            .position(|c| c.0 == fd)
            .unwrap_or_else(|| {
                let chain = Rc::new(RefCell::new(Chain::default()));
                let body = worker(
                    m.clone(),
                    cache.clone(),
                    fd,
                    direct,
                    owner,
                    Rc::clone(&chain),
                    Rc::clone(&self.done),
                );
                let task = m.spawn_thread("fio", owner, body);
                self.chains.push((fd, task, chain));
                self.chains.len() - 1
            });
        let (_, task, chain) = &self.chains[at];
        chain.borrow_mut().requests.push_back(*io);
        m.wake(*task);
    }

    /// Appends up to `max` completions to `out`; sleeps until `min` are there.
    pub(crate) async fn reap(
        &self,
        m: &Machine,
        min: usize,
        max: usize,
        out: &mut Vec<Completion>,
    ) {
        while self.done.borrow().len() < min {
            m.suspend().await;
        }
        let mut done = self.done.borrow_mut();
        let n = done.len().min(max);
        out.extend(done.drain(..n));
    }
}

async fn worker(
    m: Machine,
    cache: PageCache<Machine>,
    fd: Fd,
    direct: bool,
    owner: TaskId,
    chain: Rc<RefCell<Chain>>,
    done: Rc<RefCell<VecDeque<Completion>>>,
) {
    loop {
        let next = chain.borrow_mut().requests.pop_front();
        let Some(io) = next else {
            m.suspend().await;
            continue;
        };
        let error = i32::from(perform(&cache, &io, fd, direct).await.is_err()) * 5;
        done.borrow_mut().push_back(Completion {
            record: io.record,
            error,
        });
        m.wake(owner);
    }
}
