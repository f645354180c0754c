// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of a running job: which it survives, and what it says of them.
//!
//! Behaviour of fio 3.33: `continue_on_error` lets a job survive input/output
//! errors and wrong contents, `ignore_error` the errors that it lists in their
//! place. Every error counts, also the one that ends the job.

use super::records::Record;
use super::{IoOp, JobRun};
use crate::errno::{EILSEQ, EIO, ENOSPC};
use crate::settings::{ContinueOnError, Dir, PerDir};

/// Errors that a job survives unless it lists others.
const SURVIVED_BY_DEFAULT: [i32; 2] = [EIO, EILSEQ];
/// Most errors that are kept one by one.
const FAILURES_MAX: usize = 1000;

/// One thing that went wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failure {
    /// Linux error number.
    pub error: i32,
    /// When, in nanoseconds of the caller's clock.
    pub at_ns: u64,
    /// What happened.
    pub cause: Cause,
}

/// Why a job failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cause {
    /// An I/O returned the error.
    Io(FailedIo),
    /// An I/O took longer than it may.
    Latency {
        /// The I/O.
        io: FailedIo,
        /// What it took, ns.
        latency_ns: u64,
        /// What it may take, ns.
        limit_ns: u64,
    },
    /// Fewer bytes per second than `rate_min`.
    RateMin {
        /// What there should be, bytes per second.
        wanted: u64,
        /// What there was.
        got: u64,
    },
    /// Fewer I/Os per second than `rate_iops_min`.
    IopsMin {
        /// What there should be.
        wanted: u64,
        /// What there was.
        got: u64,
    },
}

/// The I/O that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedIo {
    /// Operation.
    pub op: IoOp,
    /// Index of the file in the job.
    pub file: u32,
    /// First byte.
    pub offset: u64,
    /// Length.
    pub length: u64,
}

impl FailedIo {
    pub(super) fn from_record(slot: &Record) -> FailedIo {
        FailedIo {
            op: slot.op,
            file: slot.file.unwrap_or(0),
            offset: slot.offset,
            length: slot.length,
        }
    }
}

/// The errors of a job so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Errors {
    /// The one that ends the job; 0 for none.
    pub(super) fatal: i32,
    /// All of them.
    pub(super) total: u64,
    /// The first.
    pub(super) first: i32,
    /// The first ones, one by one: those that end the job, and the others if it
    /// is to tell of them.
    pub(super) told: Vec<Failure>,
}

/// The kind of error that an operation's is, as `ignore_error` tells them
/// apart: of reads, of others, and wrong contents.
fn kind(op: IoOp, error: i32) -> Dir {
    match (error, op) {
        (EILSEQ, _) => Dir::Trim,
        (_, IoOp::Read) => Dir::Read,
        _ => Dir::Write,
    }
}

/// Whether a job with these options survives an error.
fn survives(on: ContinueOnError, ignored: &PerDir<Vec<i32>>, kind: Dir, error: i32) -> bool {
    let on = match kind {
        Dir::Read => on.reads,
        Dir::Write => on.writes,
        Dir::Trim => on.verify,
    };
    let list = &ignored[kind as usize];
    on && if list.is_empty() {
        SURVIVED_BY_DEFAULT.contains(&error)
    } else {
        list.contains(&error)
    }
}

impl JobRun {
    /// An I/O failed: the job ends unless it is to survive such errors.
    pub(super) fn failed(&mut self, op: IoOp, failure: Failure) {
        let error = failure.error;
        let settings = &self.job.settings;
        let survived = survives(
            settings.continue_on_error,
            &settings.ignore_error,
            kind(op, error),
            error,
        );
        if !survived && settings.fill_device && error == ENOSPC {
            self.terminated = true;
            return;
        }
        let tells = !survived || settings.error_dump;
        self.count_error(failure, tells);
        if !survived {
            self.end_by(error);
        }
    }

    /// The job is to end for a reason that it cannot survive.
    pub(super) fn fail(&mut self, failure: Failure) {
        self.count_error(failure, true);
        self.end_by(failure.error);
    }

    fn count_error(&mut self, failure: Failure, tells: bool) {
        let errors = &mut self.errors;
        if errors.total == 0 {
            errors.first = failure.error;
        }
        errors.total += 1;
        if tells && errors.told.len() < FAILURES_MAX {
            errors.told.push(failure);
        }
    }

    fn end_by(&mut self, error: i32) {
        if self.errors.fatal == 0 {
            self.errors.fatal = error;
        }
    }

    /// What went wrong so far, as far as the job is to tell: the first thousand
    /// errors.
    pub fn failures(&self) -> &[Failure] {
        &self.errors.told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_take_the_place_of_the_errors_survived_by_default() {
        let on = ContinueOnError {
            reads: true,
            writes: true,
            verify: false,
        };
        let none = [Vec::new(), Vec::new(), Vec::new()];
        assert!(survives(on, &none, Dir::Read, EIO));
        assert!(!survives(on, &none, Dir::Read, 22));
        assert!(!survives(on, &none, Dir::Trim, EILSEQ));
        let listed = [vec![22], Vec::new(), Vec::new()];
        assert!(survives(on, &listed, Dir::Read, 22));
        assert!(!survives(on, &listed, Dir::Read, EIO));
        assert!(survives(on, &listed, Dir::Write, EIO));
    }
}
