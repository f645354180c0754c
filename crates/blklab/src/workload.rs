// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a job file issues, without a device behind it.

use crate::job::parse_jobs;
use blklab_experiment::{ExperimentError, Workload, load as load_experiment};
use blklab_fio::parse::JobFile;
use blklab_fio::range::FileState;
use std::ops::ControlFlow;
use std::path::Path;

pub use blklab_fio::workload::{Limits, Line, SetupError};

/// Disks in /dev are as large as the default device.
const DEVICE_BYTES: u64 = 500_107_862_016;

/// Reads a job file (or the job of an experiment file); `fio` is the release
/// that it follows, if another than the file says.
///
/// # Errors
/// If it cannot be read or parsed, or holds no fio job.
pub fn load(
    path: &Path,
    sections: &[String],
    fio: Option<&str>,
) -> Result<JobFile, ExperimentError> {
    let mut e = load_experiment(path)?;
    if let Some(release) = fio {
        e.set("fio", release)?;
    }
    if !sections.is_empty() {
        e.sections = sections.to_vec();
    }
    match &e.workload {
        Workload::Fio { name, text } => parse_jobs(&e, name, text),
        Workload::Scenario(s) => parse_jobs(&e, s.spec().name, &s.job_text()),
        Workload::Processes(_) => Err(ExperimentError::new(
            "explicit processes, no fio job: their bios stand in the file itself",
        )
        .in_file(&path.display().to_string())),
    }
}

/// Lists the I/Os of all jobs, in order of issue per job.
///
/// # Errors
/// If a job cannot be set up.
pub fn list(
    jobs: &JobFile,
    limits: Limits,
    visit: impl FnMut(Line<'_>) -> ControlFlow<()>,
) -> Result<(), SetupError> {
    let state = |name: &str| {
        if name.starts_with("/dev/") {
            FileState::Device(DEVICE_BYTES)
        } else {
            FileState::Missing
        }
    };
    blklab_fio::workload::list(jobs, limits, state, visit)
}
