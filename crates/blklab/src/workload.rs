// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a job file issues, as if the device took no time.

use crate::job::{self, job_file_of, parse_jobs};
use crate::memory::{self, Estimate};
use blklab_experiment::{Experiment, ExperimentError};
use blklab_fio::parse::JobFile;
use blklab_fio::range::FileState;
use std::ops::ControlFlow;

pub use blklab_fio::workload::{Limits, Line};

/// The jobs of an experiment.
///
/// # Errors
/// If they cannot be parsed or take too much memory, or there is no fio job.
pub fn jobs(e: &Experiment) -> Result<JobFile, ExperimentError> {
    match job_file_of(&e.workload) {
        Some((name, text)) => {
            let jobs = parse_jobs(e, name, &text)?;
            let estimate = Estimate::of(e, Some(&jobs), blklab_sim::fio::disk_bytes(e)?);
            memory::check(&[estimate], 1).map_err(|err| err.in_file(name))?;
            Ok(jobs)
        }
        None => Err(ExperimentError::new(
            "explicit processes, no fio job: their bios stand in the file itself",
        )
        .in_file(&e.file)),
    }
}

/// What a reader of the listing should know: what the jobs ask for that has no
/// effect here or another one.
///
/// # Errors
/// If a job reads or writes only beyond the end of the disk.
pub fn notes(e: &Experiment, jobs: &JobFile) -> Result<Vec<String>, ExperimentError> {
    let mut notes: Vec<String> = jobs.notes.iter().map(ToString::to_string).collect();
    notes.extend(job::notes(e, jobs)?);
    notes.extend(e.remarks.iter().cloned());
    Ok(notes)
}

/// Lists the I/Os of all jobs, in order of issue per job, on disks as large as
/// that of the experiment.
///
/// # Errors
/// If a job cannot be set up.
pub fn list(
    e: &Experiment,
    jobs: &JobFile,
    limits: Limits,
    visit: impl FnMut(Line<'_>) -> ControlFlow<()>,
) -> Result<(), ExperimentError> {
    let disk_bytes = blklab_sim::fio::disk_bytes(e)?;
    let state = |name: &str| {
        if name.starts_with("/dev/") {
            FileState::Device(disk_bytes)
        } else {
            FileState::Missing
        }
    };
    let listed = blklab_fio::workload::list(jobs, limits, state, visit);
    listed.map_err(|err| ExperimentError::new(err.to_string()))
}
