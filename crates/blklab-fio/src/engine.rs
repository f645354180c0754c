// SPDX-License-Identifier: MIT OR Apache-2.0
//! Engines that complete every request as soon as they may: what fio's engines
//! answer when the device takes no time.
//!
//! Behaviour of fio 3.33's engines sync, null, libaio, io_uring, posixaio and
//! vsync. Completions come back in the order of submission.

use crate::job::Job;
use crate::option::Queueing;
use crate::run::{Answer, Completion, Io, IoOp};
use std::collections::VecDeque;

/// Which engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Everything at once.
    Synchronous,
    /// Refuses while completions wait to be reaped, which come all together.
    Null,
    /// Syncs and trims are done at once, but only while nothing is held.
    Libaio,
    /// Trims are done at once, but only while nothing is held.
    IoUring,
    /// Trims are done at once, but only while nothing is in flight.
    PosixAio,
    /// Adjacent requests are collected.
    Vsync,
}

/// An engine in front of a device that takes no time.
#[derive(Clone, Debug)]
pub struct InstantEngine {
    kind: Kind,
    iodepth: usize,
    /// Requests not yet submitted.
    held: VecDeque<u32>,
    /// Requests completed and not reaped.
    done: VecDeque<u32>,
    /// File, operation and end of the last request collected.
    last: Option<(u32, IoOp, u64)>,
}

/// The engine of that name, one of those that queue requests.
fn asynchronous(name: &str) -> Kind {
    match name {
        "libaio" => Kind::Libaio,
        "io_uring" => Kind::IoUring,
        "posixaio" => Kind::PosixAio,
        "vsync" => Kind::Vsync,
        other => unreachable!("the table says that {other} queues requests, and not how"),
    }
}

impl InstantEngine {
    /// The engine of a job; engines that are not modelled count as
    /// synchronous.
    pub fn new(job: &Job) -> InstantEngine {
        let kind = match job.engine() {
            // Each worker waits for its I/O.
            Some(_) if job.settings.offload => Kind::Synchronous,
            Some(engine) => match engine.queueing {
                Queueing::Asynchronous => asynchronous(engine.name),
                Queueing::ByDepth if job.settings.iodepth > 1 => Kind::Null,
                Queueing::ByDepth
                | Queueing::Synchronous
                | Queueing::NoData
                | Queueing::NotModelled => Kind::Synchronous,
            },
            None => Kind::Synchronous,
        };
        InstantEngine {
            kind,
            iodepth: job.settings.iodepth as usize,
            held: VecDeque::new(),
            done: VecDeque::new(),
            last: None,
        }
    }

    /// Takes, completes or refuses a request.
    pub fn queue(&mut self, io: &Io) -> Answer {
        let sync = io.op.dir().is_none();
        let at_once = match self.kind {
            Kind::Synchronous => return Answer::Completed { error: 0 },
            Kind::Null if !self.done.is_empty() => return Answer::Busy,
            Kind::Null => false,
            Kind::Libaio => sync || io.op == IoOp::Trim,
            Kind::IoUring | Kind::PosixAio => io.op == IoOp::Trim,
            Kind::Vsync => return self.collect(io, sync),
        };
        let in_flight = if self.kind == Kind::PosixAio {
            self.done.len()
        } else {
            0
        };
        let held = self.held.len() + in_flight;
        match (at_once, held) {
            (true, 0) => Answer::Completed { error: 0 },
            (true, _) => Answer::Busy,
            (false, held) if held >= self.iodepth => Answer::Busy,
            (false, _) => {
                self.hold(io.record);
                Answer::Queued
            }
        }
    }

    fn hold(&mut self, record: u32) {
        match self.kind {
            // Every request is its own system call.
            Kind::PosixAio => self.done.push_back(record),
            _ => self.held.push_back(record),
        }
    }

    fn collect(&mut self, io: &Io, sync: bool) -> Answer {
        let adjacent = !sync && self.last == Some((io.file, io.op, io.offset));
        if !adjacent && !self.held.is_empty() || self.held.len() == self.iodepth {
            return Answer::Busy;
        }
        if sync {
            return Answer::Completed { error: 0 };
        }
        self.last = Some((io.file, io.op, io.offset.wrapping_add(io.length)));
        self.hold(io.record);
        Answer::Queued
    }

    /// Submits what is held.
    pub fn commit(&mut self) {
        if self.kind != Kind::Null || self.done.is_empty() {
            self.done.append(&mut self.held);
        }
    }

    /// Completions, after submitting what is held.
    pub fn reap(&mut self, max: u32, out: &mut Vec<Completion>) {
        self.commit();
        let all = matches!(self.kind, Kind::Null | Kind::Vsync);
        let count = if all {
            self.done.len()
        } else {
            self.done.len().min(max as usize)
        };
        out.clear();
        out.extend(
            self.done
                .drain(..count)
                .map(|record| Completion { record, error: 0 }),
        );
    }
}
