// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results as one table for programs: comma-separated values with a header, one
//! row per run, job name and direction, units in the names of columns.

use crate::job_rows::{JobRow, job_rows};
use crate::matrix::Cell;
use crate::metric::{DISK, DiskNumbers, JOBS, Metric};
use crate::run::RunOutput;
use blklab_experiment::Experiment;

type Runs<'a> = [(&'a Cell, &'a RunOutput)];

/// What every run has. Other settings that vary get a column each.
const LABELS: [&str; 11] = [
    "experiment",
    "variant",
    "kernel",
    "scheduler",
    "device",
    "md",
    "queue_depth",
    "filesystem",
    "patch",
    "repetition",
    "seed",
];

/// Who a row is about. `level` is job, for the jobs of one name; group, for all
/// of a group if they have several names; process, for explicit processes.
const WHO: [&str; 6] = ["level", "group", "job", "cgroup", "direction", "jobs"];

/// Of the whole run, the same in all its rows, behind [`DISK`].
const RUN: [&str; 3] = ["end_ns", "interrupted", "digest"];

/// All runs as one table.
pub fn csv_text(runs: &Runs<'_>) -> String {
    let varying = varying(runs);
    let mut out = csv::Writer::from_writer(Vec::new());
    let text = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    let columns = |metrics: &[Metric]| metrics.iter().map(Metric::column).collect();
    put(
        &mut out,
        [
            text(&LABELS),
            text(&varying),
            text(&WHO),
            columns(JOBS),
            columns(DISK),
            text(&RUN),
        ]
        .concat(),
    );
    for of @ (_, run) in runs {
        let labels = labels(of, &varying);
        let of_run = of_run(run);
        for row in job_rows(run) {
            put(&mut out, labels.iter().chain(&fields(&row)).chain(&of_run));
        }
    }
    let bytes = out.into_inner().expect("a Vec takes everything");
    String::from_utf8(bytes).expect("written from strings")
}

fn put<T: AsRef<[u8]>>(out: &mut csv::Writer<Vec<u8>>, row: impl IntoIterator<Item = T>) {
    out.write_record(row)
        .expect("a Vec takes rows of one length");
}

/// Settings that vary and have no column otherwise, in order.
fn varying<'a>(runs: &Runs<'a>) -> Vec<&'a str> {
    let mut varying: Vec<&str> = Vec::new();
    for (key, _) in runs.iter().flat_map(|(cell, _)| &cell.label) {
        if key != "file" && !LABELS.contains(&key.as_str()) && !varying.contains(&key.as_str()) {
            varying.push(key);
        }
    }
    varying
}

fn labels((cell, run): &(&Cell, &RunOutput), varying: &[&str]) -> Vec<String> {
    let e = &cell.experiment;
    let of_label = |key: &str| {
        let found = cell.label.iter().find(|(k, _)| k == key);
        found.map_or(String::new(), |(_, value)| value.clone())
    };
    let id = match of_label("file") {
        file if file.is_empty() => e.id.clone(),
        file => file,
    };
    let mut labels = vec![
        id,
        of_label("variant"),
        e.kernel.to_string(),
        e.scheduler.clone(),
        e.device.to_string(),
        e.md.map_or(String::new(), |md| md.to_string()),
        run.facts
            .queue_depth()
            .map_or(String::new(), |d| d.to_string()),
        filesystem(e),
        e.patches.join("+"),
        cell.repetition.to_string(),
        e.seed.to_string(),
    ];
    labels.extend(varying.iter().map(|key| of_label(key)));
    labels
}

/// As `--fs` takes it.
fn filesystem(e: &Experiment) -> String {
    let options = e.filesystem.options.iter();
    let options = options.map(|(key, value)| format!(",{key}={value}"));
    e.filesystem.name.clone() + &options.collect::<String>()
}

fn of_run(run: &RunOutput) -> Vec<String> {
    let disk = DiskNumbers::new(run);
    let mut fields: Vec<String> = DISK.iter().map(|m| shown(m.of_disk(&disk))).collect();
    fields.push(run.end.0.to_string());
    fields.push(run.interrupted.to_string());
    fields.push(format!("{:016x}", run.digest.value()));
    fields
}

/// Who a row is about, and its numbers.
fn fields(row: &JobRow) -> Vec<String> {
    let mut fields = vec![
        row.level.to_owned(),
        row.group.map_or(String::new(), |g| g.to_string()),
        row.job.clone().unwrap_or_default(),
        row.cgroup.clone().unwrap_or_default(),
        row.direction.to_owned(),
        row.numbers.jobs.to_string(),
    ];
    fields.extend(row.values().map(shown));
    fields
}

/// A value; nothing if there is none.
fn shown(value: Option<f64>) -> String {
    value.map_or(String::new(), |v| v.to_string())
}
