// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is kept of a job while it runs: statistics as fio keeps them.

use crate::told::{EPOCH_MS, FIO_PID};
use blklab_fio::job::Job;
use blklab_fio::run::{Failure, IoOp, Outcome};
use blklab_fio::settings::Dir;
use blklab_fiostat::{Completion, Ddir, JobStats, SteadyState};
use blklab_target::{Figure, JobResult, stat_options};
use blklab_types::Time;
use std::cell::RefCell;
use std::rc::Rc;

/// Where a job's recording is, once it has begun.
pub(crate) type Slot = Rc<RefCell<Option<Recording>>>;

/// What is kept of a job while it runs.
pub(crate) struct Recording {
    pub(super) job: Rc<Job>,
    pub(crate) stats: JobStats,
    pub(super) started: Time,
    /// When what is counted began anew, after the ramp time.
    pub(crate) ramp_end: Option<Time>,
    /// The judgement on its steady state, if it is made at this job.
    pub(crate) steady: Option<SteadyState>,
    pub(crate) pass_start: Option<Time>,
    pub(crate) ended: Option<Time>,
    pub(super) active_since: [Option<Time>; 3],
    pub(crate) outcome: Outcome,
    pub(super) failures: Vec<Failure>,
    pub(super) iolog: Option<String>,
    /// What a program says in words.
    pub(crate) notes: Vec<String>,
    pub(crate) figures: Vec<Figure>,
}

impl Recording {
    /// The record of a job that starts now.
    pub(crate) fn new(job: Rc<Job>, now: Time) -> Recording {
        let stats = JobStats::new(stat_options(&job, now, EPOCH_MS), now.0);
        Recording {
            job,
            stats,
            started: now,
            ramp_end: None,
            steady: None,
            pass_start: None,
            ended: None,
            active_since: [None; 3],
            outcome: Outcome::default(),
            failures: Vec::new(),
            iolog: None,
            notes: Vec::new(),
            figures: Vec::new(),
        }
    }

    /// A pass over the data ends, if one has begun.
    pub(crate) fn end_pass(&mut self, now: Time) {
        let Some(start) = self.pass_start.take() else {
            return;
        };
        let moved = self.stats.end_pass(now.since(start).0);
        for (since, moved) in self.active_since.iter_mut().zip(moved) {
            if moved {
                since.get_or_insert(start);
            }
        }
    }

    /// The ramp time is over: what was counted so far is forgotten.
    pub(super) fn end_ramp(&mut self, now: Time) {
        self.stats.end_ramp(now.0);
        self.ramp_end = Some(now);
        self.active_since = [None; 3];
        self.pass_start = self.pass_start.map(|_| now);
    }

    /// Whether nothing counts yet.
    pub(crate) fn in_ramp(&self) -> bool {
        self.job.settings.ramp_time_us != 0 && self.ramp_end.is_none()
    }

    /// Since when things are counted.
    pub(crate) fn counts_since(&self) -> Time {
        self.ramp_end.unwrap_or(self.started)
    }

    /// The result, at the end of the run.
    pub(crate) fn finish(mut self, now: Time) -> JobResult {
        self.end_pass(now);
        let end = self.ended.unwrap_or(now);
        let (mut stat, logs) = self.stats.finish(end.0);
        stat.steady = self.steady;
        JobResult {
            pid: FIO_PID + self.job.thread,
            job: Rc::unwrap_or_clone(self.job),
            stat,
            logs,
            started: self.started,
            ended: self.ended,
            active_since: self.active_since,
            outcome: self.outcome,
            failures: self.failures,
            iolog: self.iolog,
            written: Vec::new(),
            figures: self.figures,
        }
    }
}

/// What a request record holds of the I/O it carries.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Record {
    pub(super) op: Option<IoOp>,
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) built: Time,
    pub(crate) issued: Time,
    pub(crate) ioprio: u16,
}

/// The direction as statistics have it.
pub(super) fn ddir(dir: Dir) -> Ddir {
    match dir {
        Dir::Read => Ddir::Read,
        Dir::Write => Ddir::Write,
        Dir::Trim => Ddir::Trim,
    }
}

/// Statistics of an I/O that is done now.
pub(crate) fn account(r: &mut Recording, now: Time, rec: &Record, error: i32, synchronous: bool) {
    let clat_ns = now.since(rec.issued).0;
    if error != 0 {
        r.stats.on_error(error);
        return;
    }
    match rec.op.and_then(IoOp::dir) {
        None => r.stats.on_sync_complete(clat_ns),
        Some(dir) => r.stats.on_complete(&Completion {
            offset: rec.offset,
            slat_ns: (!synchronous).then(|| rec.issued.since(rec.built).0),
            clat_ns,
            lat_ns: now.since(rec.built).0,
            now_ns: now.0,
            ioprio: rec.ioprio,
            ..Completion::new(ddir(dir), rec.length)
        }),
    }
}
