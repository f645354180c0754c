// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a job file issues: every I/O of every job, in issue order per job, as
//! if the device took no time.
//!
//! Jobs bound by time run on a clock that moves ten microseconds per I/O.

use crate::engine::InstantEngine;
use crate::job::Job;
use crate::parse::JobFile;
use crate::range::{FileState, Ranges, find_ranges, layouts};
use crate::run::{Answer, Completion, Io, IoOp, JobRun, Step};
use blklab_types::Error;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Steps without an I/O or a wait that can only be a fault.
const IDLE_STEPS_MAX: u32 = 1_000_000;

/// What one I/O takes on the clock.
const NS_PER_IO: u64 = 10_000;

/// One line of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Thread number of the job, from 1.
    pub thread: u32,
    /// Operation.
    pub op: IoOp,
    /// First byte; 0 for syncs.
    pub offset: u64,
    /// Length; 0 for syncs.
    pub length: u64,
    /// Name of the file.
    pub file: &'a str,
}

/// How much to list.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Lines per job; no limit if `None`.
    pub lines_per_job: Option<u64>,
}

/// The ranges of all jobs, set up one after another: a job sees the files that
/// earlier ones have laid out.
///
/// # Errors
/// The first job that cannot be set up.
pub fn set_up(file: &JobFile, state: impl Fn(&str) -> FileState) -> Result<Vec<Ranges>, Error> {
    let mut laid_out: BTreeMap<&str, u64> = BTreeMap::new();
    let mut out = Vec::with_capacity(file.jobs.len());
    for job in &file.jobs {
        let known = |name: &str| {
            laid_out
                .get(name)
                .map_or_else(|| state(name), |&size| FileState::Regular(size))
        };
        let ranges = match find_ranges(job, known) {
            Ok(ranges) => ranges,
            // What it works on is known to its engine alone.
            Err(_) if is_foreign(job) => Ranges {
                files: Vec::new(),
                size: 0,
            },
            Err(e) => return Err(e.at(&job.place)),
        };
        for layout in layouts(job, &ranges) {
            laid_out.insert(&job.files[layout.file as usize], layout.size_bytes());
        }
        out.push(ranges);
    }
    Ok(out)
}

/// Whether the job's engine does something else than reading and writing
/// files.
fn is_foreign(job: &Job) -> bool {
    job.engine().is_none_or(|engine| !engine.is_simulated())
}

/// Lists all jobs, one after another. A job whose engine is not modelled and
/// that does not say how much it transfers lists nothing. `state` says which files exist; the
/// visitor may stop the listing.
///
/// # Errors
/// A job that cannot be set up.
pub fn list(
    file: &JobFile,
    limits: Limits,
    state: impl Fn(&str) -> FileState,
    mut visit: impl FnMut(Line<'_>) -> ControlFlow<()>,
) -> Result<(), Error> {
    let ranges = set_up(file, state)?;
    for (job, ranges) in file.jobs.iter().zip(&ranges) {
        if ranges.files.is_empty() {
            continue;
        }
        let failed = |what| Error::new(what).at(&job.place);
        let mut ios = Listing::new(job.clone(), ranges).map_err(|e| e.at(&job.place))?;
        let limit = limits.lines_per_job.map_or(usize::MAX, |limit| {
            usize::try_from(limit).unwrap_or(usize::MAX)
        });
        for io in ios.by_ref().take(limit) {
            let data = io.op.dir().is_some();
            let line = Line {
                thread: job.thread,
                op: io.op,
                offset: if data { io.offset } else { 0 },
                length: if data { io.length } else { 0 },
                file: job.files.get(io.file as usize).map_or("", String::as_str),
            };
            if visit(line).is_break() {
                return Ok(());
            }
        }
        if ios.has_stalled() {
            return Err(failed(format!(
                "job '{}' makes no progress after {} s: a fault in blklab; please report the job \
                 file",
                job.name,
                ios.now_ns() / 1_000_000_000
            )));
        }
    }
    Ok(())
}

/// The I/Os of one job. One that the engine refuses is listed each time it is
/// tried, as fio logs it; not so with the null engine, which above depth 1
/// refuses every other request and would double the list.
#[derive(Clone, Debug)]
pub struct Listing {
    run: JobRun,
    engine: InstantEngine,
    hides_refused: bool,
    refused: bool,
    now_ns: u64,
    reaped: Vec<Completion>,
    /// Steps since the clock last moved.
    idle_steps: u32,
    stalled: bool,
}

impl Listing {
    /// The listing of a job whose files are set up.
    ///
    /// # Errors
    /// fio's message if it cannot start.
    pub fn new(job: Job, ranges: &Ranges) -> Result<Listing, Error> {
        let engine = InstantEngine::new(&job);
        let hides_refused = job.settings.ioengine == "null";
        Ok(Listing {
            run: JobRun::new(job, ranges)?,
            engine,
            hides_refused,
            refused: false,
            now_ns: 0,
            reaped: Vec::new(),
            idle_steps: 0,
            stalled: false,
        })
    }

    /// Whether the job went round without issuing anything or waiting: a fault
    /// of this library. The listing has ended then.
    pub fn has_stalled(&self) -> bool {
        self.stalled
    }

    /// Time on the listing's clock.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// The next step that the job takes, already carried out; `None` at its
    /// end.
    pub fn next_step(&mut self) -> Option<Step> {
        if self.stalled {
            return None;
        }
        let before_ns = self.now_ns;
        let step = self.run.step(self.now_ns);
        match step {
            Step::Issue(io) => {
                self.now_ns += NS_PER_IO;
                let answer = self.engine.queue(&io);
                self.refused = answer == Answer::Busy;
                self.run.answer(answer, self.now_ns);
            }
            // Jobs are listed one by one: no other is behind its share.
            Step::Flow => self.run.may_issue(true),
            Step::Commit => self.engine.commit(),
            Step::Reap { max, .. } => {
                self.engine.reap(max, &mut self.reaped);
                self.run.reaped(&self.reaped, self.now_ns);
            }
            Step::Wait { until_ns, .. } => self.now_ns = self.now_ns.max(until_ns),
            Step::Done(_) => return None,
            Step::Stalled => self.stalled = true,
            Step::Open { .. }
            | Step::Close { .. }
            | Step::FlowHeld { .. }
            | Step::Invalidate { .. }
            | Step::PassStart
            | Step::PassEnd
            | Step::VerifyStart
            | Step::VerifyEnd
            | Step::ResetStats => {}
        }
        self.idle_steps = if self.now_ns == before_ns {
            self.idle_steps + 1
        } else {
            0
        };
        self.stalled |= self.idle_steps >= IDLE_STEPS_MAX;
        Some(step)
    }
}

impl Iterator for Listing {
    type Item = Io;

    fn next(&mut self) -> Option<Io> {
        loop {
            if let Step::Issue(io) = self.next_step()?
                && !(self.hides_refused && self.refused)
            {
                return Some(io);
            }
        }
    }
}
