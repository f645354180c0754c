// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results as one table for programs: comma-separated values with a header, one
//! row per run, job name and direction, units in the names of columns.

use crate::matrix::Cell;
use crate::run::RunOutput;
use crate::summary::jobs::{JobKey, Part};
use crate::summary::{DiskNumbers, Numbers, group_dirs, names};
use blklab_analysis::stats::ProcessStats;
use blklab_experiment::Experiment;
use blklab_fiostat::Ddir;
use std::collections::BTreeSet;

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

/// The columns of the table of `blklab run`, and a few more.
const NUMBERS: [&str; 13] = [
    "bytes",
    "ios",
    "runt_min_ms",
    "runt_max_ms",
    "ran_ms",
    "clat_mean_ns",
    "clat_p50_ns",
    "clat_p95_ns",
    "clat_p99_ns",
    "clat_p999_ns",
    "clat_max_ns",
    "bandwidth_bytes_per_s",
    "iops",
];

/// Of the whole run, the same in all its rows.
const RUN: [&str; 9] = [
    "disk_requests",
    "disk_merged_percent",
    "disk_q2d_mean_ns",
    "disk_d2c_mean_ns",
    "disk_util_percent",
    "disk_in_flight_mean",
    "end_ns",
    "interrupted",
    "digest",
];

/// All runs as one table.
pub fn csv_text(runs: &Runs<'_>) -> String {
    let varying = varying(runs);
    let mut out = csv::Writer::from_writer(Vec::new());
    let header = LABELS.iter().copied().chain(varying.iter().copied());
    let header = header.chain(WHO).chain(NUMBERS).chain(RUN);
    put(&mut out, header);
    for (cell, run) in runs {
        let labels = labels(cell, &varying);
        let of_run = of_run(run);
        for row in rows(cell, run) {
            put(&mut out, labels.iter().chain(&row).chain(&of_run));
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

fn labels(cell: &Cell, varying: &[&str]) -> Vec<String> {
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
        e.queue_depth().map_or(String::new(), |d| d.to_string()),
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
    let disk = DiskNumbers::of(run);
    vec![
        disk.requests.to_string(),
        disk.merged_percent.to_string(),
        disk.q2d_ns.to_string(),
        disk.d2c_ns.to_string(),
        disk.busy_percent.to_string(),
        disk.queue_size.to_string(),
        run.end.0.to_string(),
        run.interrupted.to_string(),
        format!("{:016x}", run.digest.value()),
    ]
}

/// The rows of a run, without what is the same in all of them.
fn rows(cell: &Cell, run: &RunOutput) -> Vec<Vec<String>> {
    if run.jobs.is_empty() {
        let seconds = run.end.0 as f64 / 1e9;
        let processes = run.stats.processes.iter();
        return processes.map(|p| process(p, seconds)).collect();
    }
    let mut rows = Vec::new();
    let keys: BTreeSet<(u32, usize)> = group_dirs(run).collect();
    for (group, i) in keys {
        let dir = Ddir::ALL.get(i).copied();
        let names = names(&[(cell, run)], group, i);
        for key in &names {
            let part = Part::new(vec![key.clone()]);
            rows.extend(row(run, group, dir, &part, Some(key)));
        }
        if names.len() > 1 {
            rows.extend(row(run, group, dir, &Part::new(names), None));
        }
    }
    rows
}

/// Some jobs in one direction; all of the group if they have no key.
fn row(
    run: &RunOutput,
    group: u32,
    dir: Option<Ddir>,
    part: &Part,
    key: Option<&JobKey>,
) -> Option<Vec<String>> {
    let n = Numbers::of(run, group, part, dir)?;
    let level = if key.is_some() { "job" } else { "group" };
    let cgroup = key.and_then(|k| k.cgroup.clone());
    Some(vec![
        level.to_owned(),
        group.to_string(),
        key.map_or(String::new(), |k| k.name.clone()),
        cgroup.unwrap_or_default(),
        dir.map_or("sync", Ddir::name).to_owned(),
        n.jobs.to_string(),
        n.bytes.to_string(),
        n.ios.to_string(),
        n.runt_min_ms.to_string(),
        n.runt_max_ms.to_string(),
        (n.ran_ns as f64 / 1e6).to_string(),
        n.clat_mean_ns.to_string(),
        n.clat_p50_ns.to_string(),
        n.clat_p95_ns.to_string(),
        n.clat_p99_ns.to_string(),
        n.clat_p999_ns.to_string(),
        n.clat_max_ns.to_string(),
        n.bandwidth().to_string(),
        n.iops().to_string(),
    ])
}

/// An explicit process: its bios, from Q to C, over the whole run.
fn process(p: &ProcessStats, seconds: f64) -> Vec<String> {
    let total = p.completed.total();
    let q2c = &p.phases.q2c;
    let percentile = |percent: f64| q2c.percentile(percent).to_string();
    let rate = |n: u64| (n as f64 / seconds.max(1e-9)).to_string();
    vec![
        "process".to_owned(),
        String::new(),
        p.comm.clone().unwrap_or_else(|| p.pid.to_string()),
        String::new(),
        "all".to_owned(),
        "1".to_owned(),
        total.bytes.to_string(),
        total.count.to_string(),
        String::new(),
        String::new(),
        (seconds * 1e3).to_string(),
        q2c.mean().to_string(),
        percentile(50.0),
        percentile(95.0),
        percentile(99.0),
        percentile(99.9),
        q2c.max().to_string(),
        rate(total.bytes),
        rate(total.count),
    ]
}
