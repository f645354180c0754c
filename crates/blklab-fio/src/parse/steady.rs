// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks of the options about steady states that need all jobs.

use super::{JobFileError, Note};
use crate::job::Job;
use crate::settings::SteadyOptions;

/// Most measurements of one window: eleven days.
const WINDOW_MAX: u64 = 1_000_000;

/// Refuses jobs of one group that disagree, whether they are reported together
/// or not (fio 3.33), and windows whose result nobody could read.
pub(super) fn check(jobs: &[Job]) -> Result<(), JobFileError> {
    // Without a window the other options count for nothing.
    let judged = |job: &Job| -> Option<SteadyOptions> {
        let steady = job.settings.steady;
        (steady.window() > 0).then_some(steady)
    };
    let agree = |a: &Job, b: &Job| match (judged(a), judged(b)) {
        (Some(a), Some(b)) => {
            let whole = |options: SteadyOptions| SteadyOptions {
                duration_us: options.window(),
                ..options
            };
            whole(a) == whole(b)
        }
        (a, b) => a.is_none() && b.is_none(),
    };
    for (at, job) in jobs.iter().enumerate() {
        let refused = |message: String| {
            Err(JobFileError {
                dropped: Some(job.section.clone()),
                no_jobs_in: None,
                ..JobFileError::at(&job.place, message)
            })
        };
        if job.settings.steady.window() > WINDOW_MAX {
            return refused(format!(
                "steadystate_duration: {} s is too long: at most {WINDOW_MAX} s",
                job.settings.steady.window()
            ));
        }
        // Groups are runs of jobs.
        let before = at.checked_sub(1).map(|before| &jobs[before]);
        if let Some(other) = before.filter(|other| other.group == job.group && !agree(other, job)) {
            return refused(format!(
                "job rejected: steadystate options must be consistent within reporting groups: \
                 job '{}' has others than job '{}'; new_group begins another group",
                job.name, other.name
            ));
        }
    }
    Ok(())
}

/// Says where a criterion is given and nothing judges by it.
pub(super) fn notes(jobs: &[Job], notes: &mut Vec<Note>) {
    const OPTIONS: [&str; 3] = [
        "steadystate_duration",
        "steadystate",
        "steadystate_ramp_time",
    ];
    for job in jobs.iter().filter(|job| job.settings.steady.window() == 0) {
        let given = OPTIONS.into_iter().find(|name| job.settings.is_given(name));
        let Some(option) = given else { continue };
        let note = Note {
            place: job.place.clone(),
            option,
            text: "the job is not ended at a steady state: steadystate_duration is below one \
                   second, or not given"
                .to_owned(),
        };
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
}
