// SPDX-License-Identifier: MIT OR Apache-2.0
//! PVFS2's replacement for glibc's AIO ("alt-aio"), 2006: every list gets a
//! thread of its own, which executes the entries in order, calls back and ends.
//!
//! No queues, no order between lists, no idle threads; as many lists at a time
//! as the storage layer allows (Trove: 16), further ones wait in order.
//!
//! Source: OrangeFS/PVFS2, alternative AIO implementation, as described.

use super::{Execute, Params};
use crate::Machine;
use blklab_fio::run::Completion;
use blklab_pagecache::Fd;
use blklab_types::TaskId;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

struct Waiting<Op> {
    record: u32,
    fd: Fd,
    ops: Vec<Op>,
}

struct Shared<E: Execute> {
    m: Machine,
    execute: E,
    params: Params,
    owner: TaskId,
    state: RefCell<State<E::Op>>,
}

struct State<Op> {
    running: u32,
    waiting: VecDeque<Waiting<Op>>,
    done: VecDeque<Completion>,
}

/// The lists of one process.
pub(crate) struct AltAio<E: Execute>(Rc<Shared<E>>);

impl<E: Execute> AltAio<E> {
    /// A process without lists; `params.threads_max` is the caller's limit.
    pub(crate) fn new(m: &Machine, execute: E, params: Params, owner: TaskId) -> AltAio<E> {
        AltAio(Rc::new(Shared {
            m: m.clone(),
            execute,
            params,
            owner,
            state: RefCell::new(State {
                running: 0,
                waiting: VecDeque::new(),
                done: VecDeque::new(),
            }),
        }))
    }

    /// Takes a list; its thread is created now, or when another ends.
    pub(crate) async fn enqueue_list(&self, record: u32, fd: Fd, ops: &[E::Op]) {
        let list = Waiting {
            record,
            fd,
            ops: ops.to_vec(),
        };
        let list = {
            let s = &mut *self.0.state.borrow_mut();
            if s.running >= self.0.params.threads_max {
                s.waiting.push_back(list);
                return;
            }
            s.running += 1;
            list
        };
        self.0.create(list).await;
    }

    /// Appends up to `max` completions to `out`; sleeps until `min` are there.
    pub(crate) async fn reap(&self, min: usize, max: usize, out: &mut Vec<Completion>) {
        while self.0.state.borrow().done.len() < min {
            self.0.m.suspend().await;
        }
        let mut s = self.0.state.borrow_mut();
        let n = s.done.len().min(max);
        out.extend(s.done.drain(..n));
    }
}

impl<E: Execute> Shared<E> {
    async fn create(self: &Rc<Self>, list: Waiting<E::Op>) {
        self.m.sleep_until(self.m.now() + self.params.create).await;
        let body = thread(Rc::clone(self), list);
        self.m.spawn_thread("alt-aio", self.owner, body);
    }
}

async fn thread<E: Execute>(shared: Rc<Shared<E>>, list: Waiting<E::Op>) {
    let mut error = 0;
    for op in &list.ops {
        let result = shared.execute.execute(list.fd, *op).await;
        if error == 0 {
            error = result;
        }
    }
    let next = {
        let s = &mut *shared.state.borrow_mut();
        s.done.push_back(Completion {
            record: list.record,
            error,
        });
        let next = s.waiting.pop_front();
        s.running -= u32::from(next.is_none());
        next
    };
    shared.m.wake(shared.owner);
    if let Some(next) = next {
        shared.create(next).await;
    }
}
