// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flows that cannot end: a job that starts when another of its flow has ended
//! counts in the flow's weights from the beginning, so that the other is held
//! back for it. fio 3.33 spins for ever.

use super::JobFileError;
use crate::job::Job;

/// Refuses a job file with such a flow.
pub(super) fn check(jobs: &[Job]) -> Result<(), JobFileError> {
    for (at, later) in jobs.iter().enumerate() {
        if later.settings.flow == 0 {
            continue;
        }
        for (before, earlier) in jobs[..at].iter().enumerate() {
            let s = &earlier.settings;
            let together = s.flow != 0 && s.flow_id == later.settings.flow_id;
            let walled = jobs[before + 1..=at]
                .iter()
                .any(|job| job.settings.stonewall);
            let waits = later.settings.wait_for.as_ref() == Some(&earlier.name);
            if together && s.runtime_us == 0 && (walled || waits) {
                let message = format!(
                    "flow: job '{}' starts when job '{}' has ended, which its flow holds back for \
                     it for ever (as in fio): give them flow_ids of their own, or '{}' a runtime",
                    later.name, earlier.name, earlier.name
                );
                return Err(JobFileError {
                    dropped: Some(later.section.clone()),
                    no_jobs_in: None,
                    ..JobFileError::at(&later.place, message)
                });
            }
        }
    }
    Ok(())
}
