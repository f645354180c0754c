// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is different about two experiments.

use super::read::Side;
use blklab_experiment::{Experiment, Workload};
use serde::Serialize;
use std::collections::BTreeMap;

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

/// What names an experiment, or differs between its repetitions.
const NAMES: [&str; 6] = ["format", "id", "title", "seed", "job_file", "published"];

/// The settings in which the experiments of two sides differ. Of recordings nothing is
/// known.
pub(super) fn between(before: &Side, after: &Side) -> Vec<Difference> {
    let experiment = |side: &Side| side.runs[0].experiment.clone();
    let (Some(a), Some(b)) = (experiment(before), experiment(after)) else {
        return Vec::new();
    };
    let mut differences = Vec::new();
    let (a_settings, b_settings) = (settings(&a), settings(&b));
    let mut keys: Vec<&String> = a_settings.keys().chain(b_settings.keys()).collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        let value = |of: &BTreeMap<String, String>| of.get(key).cloned().unwrap_or_default();
        differences.push((key.clone(), value(&a_settings), value(&b_settings)));
    }
    let (a_lines, b_lines) = (job_lines(&a), job_lines(&b));
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

/// Every setting of an experiment by its name, with the tables it is in.
fn settings(e: &Experiment) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let text = e.to_toml("job.fio").unwrap_or_default();
    if let Ok(table) = text.parse::<toml::Table>() {
        let names = table
            .into_iter()
            .filter(|(key, _)| !NAMES.contains(&key.as_str()));
        for (key, value) in names {
            flatten(&key, &value, &mut all);
        }
    }
    all
}

fn flatten(key: &str, value: &toml::Value, out: &mut BTreeMap<String, String>) {
    match value {
        toml::Value::Table(table) => {
            for (name, value) in table {
                flatten(&format!("{key}.{name}"), value, out);
            }
        }
        toml::Value::String(text) => {
            out.insert(key.to_owned(), text.clone());
        }
        value => {
            out.insert(key.to_owned(), value.to_string());
        }
    }
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
