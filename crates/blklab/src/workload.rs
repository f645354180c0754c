// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a job file issues, as if the device took no time.

use blklab_experiment::Experiment;
use blklab_fio::range::find_ranges;
use blklab_target::{JobText, Planner, Site, Work, memory};
use blklab_types::Error;
use std::ops::ControlFlow;
use std::sync::Arc;

pub use blklab_fio::workload::{Limits, Line};

/// The jobs of an experiment whose site is known.
///
/// # Errors
/// If they cannot be parsed or take too much memory, or there is no fio job.
pub fn jobs(planner: &Planner, e: &Experiment, site: &Site) -> Result<Arc<JobText>, Error> {
    let Some(text) = planner.jobs(e)? else {
        return Err(Error::new(
            "explicit processes, no fio job: their bios stand in the file itself",
        )
        .in_file(&e.file));
    };
    let estimate = planner.memory(e, Work::Jobs(&text.jobs), site)?;
    memory::check(&[estimate], 1).map_err(|err| err.in_file(&text.name))?;
    Ok(text)
}

/// What a reader of the listing should know: what the jobs ask for that has no
/// effect here or another one.
///
/// # Errors
/// If a job reads or writes only beyond the end of the disk.
pub fn notes(e: &Experiment, text: &JobText, site: &Site) -> Result<Vec<String>, Error> {
    let mut notes: Vec<String> = text.jobs.notes.iter().map(ToString::to_string).collect();
    let jobs = text.jobs.jobs.iter();
    let ranges = jobs.map(|job| find_ranges(job, |name| site.file_state(name)).ok());
    notes.extend(text.notes(e, site, ranges)?);
    notes.extend(e.remarks.iter().cloned());
    Ok(notes)
}

/// Lists the I/Os of all jobs, in order of issue per job, on disks as large as
/// that of the experiment.
///
/// # Errors
/// If a job cannot be set up.
pub fn list(
    text: &JobText,
    site: &Site,
    limits: Limits,
    visit: impl FnMut(Line<'_>) -> ControlFlow<()>,
) -> Result<(), Error> {
    let state = |name: &str| site.file_state(name);
    blklab_fio::workload::list(&text.jobs, limits, state, visit)
}
