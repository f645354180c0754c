// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is different about two experiments.

use super::read::Side;
use super::settings::Settings;
use blklab_experiment::{Experiment, Workload};
use serde::Serialize;

/// A setting that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Its name, with its table: `queue.nr_requests`; of a job file, `job`.
    pub key: String,
    /// On the side that is compared with; empty if it is not there.
    pub before: String,
    /// On the other.
    pub after: String,
}

/// The settings in which the experiments of two sides differ. Of recordings nothing is
/// known.
pub(super) fn between(before: &Side, after: &Side) -> Vec<Difference> {
    let (before, after) = (&before.runs[0], &after.runs[0]);
    let (Some(a), Some(b)) = (&before.experiment, &after.experiment) else {
        return Vec::new();
    };
    let mut differences = Vec::new();
    let (a_settings, b_settings) = (&before.settings, &after.settings);
    let mut keys: Vec<&String> = a_settings.keys().chain(b_settings.keys()).collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        let value = |of: &Settings| of.get(key).cloned().unwrap_or_default();
        differences.push((key.clone(), value(a_settings), value(b_settings)));
    }
    let (a_lines, b_lines) = (job_lines(a), job_lines(b));
    let missing = |from: &[String], other: &[String]| {
        let lines = from.iter().filter(|line| !other.contains(line));
        lines.cloned().collect::<Vec<_>>().join("; ")
    };
    differences.push((
        "job".to_owned(),
        missing(&a_lines, &b_lines),
        missing(&b_lines, &a_lines),
    ));
    differences.retain(|(_, a, b)| a != b);
    let named = differences
        .into_iter()
        .map(|(key, before, after)| Difference { key, before, after });
    named.collect()
}

/// The lines of a job file that say something.
fn job_lines(e: &Experiment) -> Vec<String> {
    let Workload::Fio { text, .. } = &e.workload else {
        return Vec::new();
    };
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|l| !l.is_empty() && !l.starts_with([';', '#']));
    lines.map(str::to_owned).collect()
}
