// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asynchronous I/O made of threads that execute ordinary system calls:
//! glibc's, and PVFS2's replacement for it.

mod alt;
mod glibc;

pub(crate) use alt::AltAio;
pub(crate) use glibc::{GlibcAio, Reap};

use blklab_pagecache::Fd;
use blklab_types::Span;
use blklab_workload::scenario::Notification;

/// Executes one operation as a system call of the running task.
pub(crate) trait Execute: 'static {
    /// What is executed.
    type Op: Copy + 'static;

    /// Does it; returns its error number.
    fn execute(&self, fd: Fd, op: Self::Op) -> impl Future<Output = i32>;
}

/// Limits and processor times of a thread library.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Params {
    /// Most threads.
    pub(crate) threads_max: u32,
    /// How long a thread without work stays; for ever if none.
    pub(crate) idle: Option<Span>,
    /// Creating a thread.
    pub(crate) create: Span,
    /// Taking a request: allocation, lock, queues.
    pub(crate) enqueue: Span,
    /// Passing one request of a chain when another is put behind it.
    pub(crate) scan: Span,
    /// Lock traffic and context switches of a request on its way to a thread
    /// and back.
    pub(crate) hand_over: Span,
    /// Sending a signal.
    pub(crate) signal: Span,
    /// How completions are told.
    pub(crate) notify: Notification,
}

impl Params {
    /// glibc's defaults, on a machine of 2006. Source: aio_init(3); the times
    /// are estimates (15 to 40 us, 3 us, 10 ns, 10 to 30 us).
    pub(crate) fn glibc() -> Params {
        Params {
            threads_max: 20,
            idle: Some(Span::from_ms(1000)),
            create: Span::from_us(25),
            enqueue: Span::from_us(3),
            scan: Span(10),
            hand_over: Span::from_us(25),
            signal: Span::from_us(3),
            notify: Notification::None,
        }
    }

    /// Threads of the kernel that are there already and cost nothing.
    pub(crate) fn kernel_workers() -> Params {
        Params {
            threads_max: u32::MAX,
            idle: None,
            create: Span(0),
            enqueue: Span(0),
            scan: Span(0),
            hand_over: Span(0),
            signal: Span(0),
            notify: Notification::None,
        }
    }

    /// What telling one completion costs the thread that does it.
    pub(crate) fn notify_cost(&self) -> Span {
        match self.notify {
            Notification::None => Span(0),
            Notification::Signal => self.signal,
            Notification::Thread => self.create,
        }
    }
}

#[cfg(test)]
mod tests;
