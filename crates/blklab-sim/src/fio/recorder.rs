// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics of a program that is no fio job, kept as fio keeps its own: one
//! completion latency per call, run time from the first call to the last.

use super::recording::{Recording, Slot};
use crate::Machine;
use blklab_fio::job::Job;
use blklab_fio::run::Outcome;
use blklab_fiostat::{Completion, Ddir};
use blklab_target::Figure;
use blklab_types::{Span, Time};
use std::rc::Rc;

/// Keeps the statistics of one program.
pub(crate) struct Recorder<'a> {
    m: &'a Machine,
    slot: &'a Slot,
    /// Processor time of a system call.
    call: Span,
}

impl<'a> Recorder<'a> {
    /// Begins the job's record and its run time.
    pub(crate) fn start(m: &'a Machine, slot: &'a Slot, job: &Rc<Job>, call: Span) -> Recorder<'a> {
        let mut recording = Recording::new(Rc::clone(job), m.now());
        recording.pass_start = Some(m.now());
        *slot.borrow_mut() = Some(recording);
        Recorder { m, slot, call }
    }

    /// Processor time of a system call.
    pub(crate) fn call(&self) -> Span {
        self.call
    }

    /// Processor time of entering the kernel once.
    pub(crate) async fn system_call(&self) {
        // The call before has returned.
        self.m.return_to_program().await;
        self.m.sleep_until(self.m.now() + self.call).await;
    }

    /// A call that moved `bytes` and began at `begin` has ended just now.
    pub(crate) fn moved(&self, dir: Ddir, offset: u64, bytes: u64, begin: Time, error: i32) {
        let now = self.m.now();
        let latency_ns = now.since(begin).0;
        self.with(|r| {
            r.stats.on_issue(dir);
            r.stats.on_submit(1, 1);
            if error != 0 {
                r.stats.on_error(error);
            } else {
                r.stats.on_complete(&Completion {
                    offset,
                    slat_ns: None,
                    clat_ns: latency_ns,
                    lat_ns: latency_ns,
                    now_ns: now.0,
                    ..Completion::new(dir, bytes)
                });
            }
            r.stats.on_complete_batch(1);
        });
    }

    /// Says something in words, beside the result.
    pub(crate) fn say(&self, text: String) {
        self.with(|r| r.notes.push(text));
    }

    /// A number that the program prints at its end.
    pub(crate) fn measured(&self, figure: Figure) {
        self.with(|r| r.figures.push(figure));
    }

    /// The program has ended.
    pub(crate) fn end(&self) {
        let now = self.m.now();
        self.with(|r| {
            r.end_pass(now);
            r.ended = Some(now);
            r.outcome = Outcome::default();
        });
    }

    fn with(&self, f: impl FnOnce(&mut Recording)) {
        if let Some(recording) = self.slot.borrow_mut().as_mut() {
            f(recording);
        }
    }
}
