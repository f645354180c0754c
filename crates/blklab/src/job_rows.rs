// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who the metrics of a run are about, one row each: the jobs of a name, those of a
//! group, explicit processes. CSV and JSON have these rows.

use crate::metric::{JOBS, Numbers};
use crate::run::RunOutput;
use crate::summary::jobs::{JobKey, Part};
use crate::summary::{group_dirs, jobs_of, names};
use blklab_fiostat::Ddir;
use blklab_target::JobResult;
use blklab_types::Span;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Some jobs in one direction, or an explicit process.
#[derive(Clone, Debug)]
pub struct JobRow {
    /// job, for the jobs of one name; group, for all of a group if they have several
    /// names; process, for an explicit process.
    pub level: &'static str,
    /// Reporting group; none of an explicit process.
    pub group: Option<u32>,
    /// Name of the jobs or the process; none of a group.
    pub job: Option<String>,
    /// Control group, if the jobs name one.
    pub cgroup: Option<String>,
    /// read, write, trim, sync, or all of an explicit process.
    pub direction: &'static str,
    /// What the metrics are made of.
    pub numbers: Numbers,
}

impl JobRow {
    /// The values of [`JOBS`], in their order.
    pub fn values(&self) -> impl Iterator<Item = Option<f64>> {
        JOBS.iter().map(|m| m.of_jobs(&self.numbers))
    }

    /// As JSON, by the columns of CSV, and the bins of the completion latency: value in ns
    /// and count.
    pub fn to_json(&self) -> Value {
        let mut row: Map<String, Value> = Map::new();
        row.insert("level".to_owned(), json!(self.level));
        row.insert("group".to_owned(), json!(self.group));
        row.insert("job".to_owned(), json!(self.job));
        row.insert("cgroup".to_owned(), json!(self.cgroup));
        row.insert("direction".to_owned(), json!(self.direction));
        row.insert("jobs".to_owned(), json!(self.numbers.jobs));
        let values = JOBS.iter().zip(self.values());
        row.extend(values.map(|(m, value)| (m.column(), json!(value))));
        row.insert("clat_bins".to_owned(), json!(self.numbers.clat_bins()));
        Value::Object(row)
    }
}

/// The rows of a run.
pub fn job_rows(run: &RunOutput) -> Vec<JobRow> {
    if run.jobs.is_empty() {
        let processes = run.stats.processes.iter();
        return processes
            .map(|p| JobRow {
                level: "process",
                group: None,
                job: Some(p.comm.clone().unwrap_or_else(|| p.pid.to_string())),
                cgroup: None,
                direction: "all",
                numbers: Numbers::of_process(p, Span(run.end.0)),
            })
            .collect();
    }
    rows_of_jobs(&run.jobs)
}

/// The rows of fio jobs.
pub fn rows_of_jobs(jobs: &[JobResult]) -> Vec<JobRow> {
    let mut rows = Vec::new();
    let keys: BTreeSet<(u32, usize)> = group_dirs(jobs).collect();
    for (group, i) in keys {
        let dir = Ddir::ALL.get(i).copied();
        let names = names([jobs], group, i);
        for key in &names {
            let part = Part::new(vec![key.clone()]);
            rows.extend(row(jobs, group, dir, &part, Some(key)));
        }
        if names.len() > 1 {
            rows.extend(row(jobs, group, dir, &Part::new(names), None));
        }
    }
    rows
}

/// Some jobs in one direction; all of the group if they have no key. None if these
/// have no I/O of this kind.
fn row(
    jobs: &[JobResult],
    group: u32,
    dir: Option<Ddir>,
    part: &Part,
    key: Option<&JobKey>,
) -> Option<JobRow> {
    let numbers = Numbers::new(jobs_of(jobs, group, part), dir);
    (numbers.jobs > 0).then(|| JobRow {
        level: if key.is_some() { "job" } else { "group" },
        group: Some(group),
        job: key.map(|k| k.name.clone()),
        cgroup: key.and_then(|k| k.cgroup.clone()),
        direction: dir.map_or("sync", Ddir::name),
        numbers,
    })
}
