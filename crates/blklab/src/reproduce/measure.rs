// SPDX-License-Identifier: MIT OR Apache-2.0
//! The number that a study asks for, from the result of a run.

use super::study::{Metric, Number};
use crate::run::RunOutput;
use blklab_fiostat::Ddir;

/// The value; none if no job did what the number is about.
pub(super) fn value(run: &RunOutput, n: &Number) -> Option<f64> {
    let jobs = run.jobs.iter().filter(|j| j.job.group == n.group);
    let stats = jobs.map(|j| j.stat.dir(n.direction));
    let moved: Vec<_> = stats.filter(|d| d.total_ios > 0).collect();
    let runtimes = moved.iter().map(|d| d.runtime_ms);
    let longest_ms = runtimes.clone().max()?;
    Some(match n.metric {
        Metric::RuntMinMs => runtimes.min()? as f64,
        Metric::RuntMaxMs => longest_ms as f64,
        Metric::BandwidthMbS => {
            let bytes: u64 = moved.iter().map(|d| d.io_bytes).sum();
            bytes as f64 / 1e3 / longest_ms.max(1) as f64
        }
    })
}

/// read or write.
pub(super) fn direction(name: &str) -> Option<Ddir> {
    Ddir::ALL.into_iter().find(|d| d.name() == name)
}
