// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device that serves one command at a time and keeps the others waiting.
//!
//! The next command begins at the very instant at which one ends, chosen among
//! those that were there before: a driver that reacts to the completion comes
//! too late for that choice. Flushes and discards take their turn and no time.

use crate::device::{Command, Device, DeviceCx, EIO};
use blklab_types::{Op, Time};
use std::collections::VecDeque;

/// What distinguishes one serial device from another.
pub(crate) trait Service {
    /// The place in `waiting` (never empty, oldest first) of the command to
    /// serve next.
    fn choose(&self, _now: Time, _waiting: &VecDeque<Command>) -> usize {
        0
    }

    /// Serves a read or write from `now` on; says when it ends.
    fn serve(&mut self, now: Time, cmd: &Command) -> Time;

    /// Capacity in sectors, if there is an end.
    fn capacity_sectors(&self) -> Option<u64> {
        None
    }
}

/// One command at a time, by the law `S`.
#[derive(Clone, Debug)]
pub(crate) struct Server<S> {
    service: S,
    /// Handed over and not begun, oldest first.
    waiting: VecDeque<Command>,
    /// The command in service and when it began.
    current: Option<(Command, Time)>,
}

impl<S: Service> Server<S> {
    pub(crate) fn new(service: S, queue_depth: u32) -> Server<S> {
        let waiting = VecDeque::with_capacity(queue_depth as usize);
        Server {
            service,
            waiting,
            current: None,
        }
    }

    fn start_next(&mut self, cx: &mut DeviceCx<'_>) {
        if self.waiting.is_empty() {
            return;
        }
        let i = self.service.choose(cx.now, &self.waiting);
        let cmd = self.waiting.remove(i);
        let cmd = cmd.expect("a law chooses among the waiting commands");
        let end = match cmd.op {
            Op::Read | Op::Write => self.service.serve(cx.now, &cmd),
            Op::Flush | Op::Discard => cx.now,
        };
        self.current = Some((cmd, cx.now));
        cx.wake_at(end, 0);
    }
}

impl<S: Service + Clone + Send + Sync + 'static> Device for Server<S> {
    fn copy(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }

    fn submit(&mut self, cx: &mut DeviceCx<'_>, cmd: &Command) {
        if self
            .capacity_sectors()
            .is_some_and(|capacity| cmd.exceeds(capacity))
        {
            cx.fail(cmd.id, EIO);
            return;
        }
        self.waiting.push_back(*cmd);
        if self.current.is_none() {
            self.start_next(cx);
        }
    }

    fn wake(&mut self, cx: &mut DeviceCx<'_>, _token: u64) {
        if let Some((cmd, started)) = self.current.take() {
            cx.finish(cmd.id, started);
        }
        self.start_next(cx);
    }

    fn capacity_sectors(&self) -> Option<u64> {
        self.service.capacity_sectors()
    }
}
