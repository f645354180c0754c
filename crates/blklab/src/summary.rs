// SPDX-License-Identifier: MIT OR Apache-2.0
//! The main numbers of runs as rows, medians over repetitions.
//!
//! One experiment has a table per reporting group and direction with a row for
//! each name of a job. Several have a table for each name, with a row for each
//! experiment: what is compared stands in one column. Names that are too many
//! for that share rows; see [`jobs`].

mod disk;
pub mod jobs;
mod numbers;

pub use disk::{DiskNumbers, DiskRow, disk_rows};
pub use numbers::Numbers;

use crate::matrix::Cell;
use crate::run::RunOutput;
use blklab_experiment::Published;
use blklab_fiostat::Ddir;
use jobs::{JobKey, Part};
use numbers::key_of;
use serde::Serialize;
use std::collections::BTreeSet;

/// One number over the repetitions of an experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

impl Spread {
    /// That of some values; zeros if there are none.
    pub fn of(mut values: Vec<f64>) -> Spread {
        values.sort_by(f64::total_cmp);
        let n = values.len();
        match n {
            0 => Spread::default(),
            _ => Spread {
                median: (values[(n - 1) / 2] + values[n / 2]) / 2.0,
                min: values[0],
                max: values[n - 1],
            },
        }
    }

    /// The spread of a column: its ends are those of all rows.
    fn over(rows: &[Row], column: fn(&Row) -> Spread) -> Spread {
        let all = rows.iter().map(column);
        Spread::of(all.flat_map(|s| [s.min, s.median, s.max]).collect())
    }
}

/// Some jobs of one experiment.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What distinguishes the row from the others of its table: the
    /// experiment or the jobs.
    pub label: String,
    /// Runs behind the numbers.
    pub runs: usize,
    /// Jobs with I/O in this direction.
    pub jobs: usize,
    /// Bytes moved.
    pub bytes: Spread,
    /// I/Os, or calls.
    pub ios: Spread,
    /// Shortest run time of a job (`runt-min`).
    pub runt_min_ms: Spread,
    /// Longest run time of a job (`runt-max`).
    pub runt_max_ms: Spread,
    /// Completion latency, percentiles over all jobs.
    pub clat_p50_ns: Spread,
    /// 99th percentile.
    pub clat_p99_ns: Spread,
    /// Largest.
    pub clat_max_ns: Spread,
    /// Bytes per second of the time in which at least one of the jobs ran.
    pub bw_bytes: Spread,
    /// I/Os per second of that time.
    pub iops: Spread,
    /// Whether the jobs ran one after another, at least in part: fio's rates,
    /// over the longest run time of a job, are higher.
    pub spread_out: bool,
    /// Published run times for this configuration, if the file names them.
    pub published: Option<Published>,
}

/// One table: a group and direction of a job file.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// Group number, if there are several.
    pub group: Option<u32>,
    /// read, write, trim, or sync for the calls of fsync and its kin.
    pub direction: &'static str,
    /// The jobs that it is about: `job writer`, `4 jobs (reader1…reader4)`.
    pub who: String,
    /// Bytes that they moved together, over all experiments.
    pub bytes: Spread,
    /// I/Os, or calls, over all experiments.
    pub ios: Spread,
    /// Rows in order of the jobs or experiments.
    pub rows: Vec<Row>,
}

/// Index of calls to fsync beside fio's directions.
const SYNC: usize = Ddir::ALL.len();
/// Names of jobs that have a row each.
const ROWS_MAX: usize = 10;
/// Names of jobs that have a table each.
const TABLES_MAX: usize = 4;

pub(crate) type Runs<'a> = [(&'a Cell, &'a RunOutput)];

/// Runs of one experiment with different seeds, in succession.
pub(crate) fn repetitions<'a, 'b>(runs: &'a Runs<'b>) -> impl Iterator<Item = &'a Runs<'b>> {
    runs.chunk_by(|a, b| a.0.file_idx == b.0.file_idx && a.0.label == b.0.label)
}

/// The tables of some runs of one experiment file.
pub fn tables(runs: &Runs<'_>) -> Vec<Table> {
    let experiments: Vec<&Runs<'_>> = repetitions(runs).collect();
    let keys: BTreeSet<(u32, usize)> = runs.iter().flat_map(|(_, r)| group_dirs(r)).collect();
    let groups: BTreeSet<u32> = keys.iter().map(|(group, _)| *group).collect();
    let several = groups.len() > 1;
    let tables = keys.into_iter().flat_map(|(group, i)| {
        let dir = Ddir::ALL.get(i).copied();
        let names = names(runs, group, i);
        let whole = Part::new(names.clone());
        match experiments[..] {
            [one] => vec![by_job(one, group, dir, &names, &whole)],
            _ => by_experiment(&experiments, group, dir, &names, &whole),
        }
    });
    tables
        .map(|t| Table {
            group: t.group.filter(|_| several),
            ..t
        })
        .collect()
}

/// Groups and directions of a run that have I/O.
pub(crate) fn group_dirs(run: &RunOutput) -> impl Iterator<Item = (u32, usize)> {
    run.jobs.iter().flat_map(|job| {
        let moved = move |i: &usize| match Ddir::ALL.get(*i) {
            Some(dir) => job.stat.dir(*dir).io_bytes > 0,
            None => job.stat.sync.stat.samples > 0,
        };
        let group = job.job.group;
        (0..=SYNC).filter(moved).map(move |i| (group, i))
    })
}

/// The names of jobs of a group with I/O in a direction, in order.
pub(crate) fn names(runs: &Runs<'_>, group: u32, dir: usize) -> Vec<JobKey> {
    let mut names: Vec<JobKey> = Vec::new();
    for job in runs.iter().flat_map(|(_, r)| &r.jobs) {
        let ios = match Ddir::ALL.get(dir) {
            Some(dir) => job.stat.dir(*dir).total_ios,
            None => job.stat.sync.stat.samples,
        };
        let key = key_of(job);
        if job.job.group == group && ios > 0 && !names.contains(&key) {
            names.push(key);
        }
    }
    names
}

/// One experiment: a row for each name, and one for all of them.
fn by_job(runs: &Runs<'_>, group: u32, dir: Option<Ddir>, names: &[JobKey], whole: &Part) -> Table {
    let parts = jobs::parts(names, ROWS_MAX);
    let row = |part: &Part, label| row(runs, group, dir, part, label);
    let mut rows: Vec<Row> = parts.iter().filter_map(|p| row(p, p.label())).collect();
    let mut who = whole.heading(rows.iter().map(|r| r.jobs).sum());
    if parts.len() > 1
        && let Some(mut all) = row(whole, String::new())
    {
        who = format!("{} jobs", all.jobs);
        all.label = format!("all {} jobs", all.jobs);
        rows.push(all);
    }
    if let Some(last) = rows.last_mut() {
        last.published = published(runs[0].0, dir);
    }
    let last = &rows[rows.len().saturating_sub(1)..];
    Table {
        group: Some(group),
        direction: dir.map_or("sync", Ddir::name),
        who,
        bytes: Spread::over(last, |r| r.bytes),
        ios: Spread::over(last, |r| r.ios),
        rows,
    }
}

/// Several experiments: a table for each name, and one for all of them.
fn by_experiment(
    experiments: &[&Runs<'_>],
    group: u32,
    dir: Option<Ddir>,
    names: &[JobKey],
    whole: &Part,
) -> Vec<Table> {
    let table = |part: &Part, is_whole: bool| {
        let rows = experiments.iter().filter_map(|runs| {
            let cell = runs[0].0;
            let mut row = row(runs, group, dir, part, cell.name_in_file())?;
            row.published = published(cell, dir).filter(|_| is_whole);
            Some(row)
        });
        let rows: Vec<Row> = rows.collect();
        let jobs = rows.first().map_or(0, |r| r.jobs);
        Table {
            group: Some(group),
            direction: dir.map_or("sync", Ddir::name),
            who: part.heading(jobs),
            bytes: Spread::over(&rows, |r| r.bytes),
            ios: Spread::over(&rows, |r| r.ios),
            rows,
        }
    };
    let parts = jobs::parts(names, TABLES_MAX);
    match &parts[..] {
        [_] => vec![table(whole, true)],
        parts => {
            let mut tables: Vec<Table> = parts.iter().map(|p| table(p, false)).collect();
            tables.push(table(whole, true));
            tables
        }
    }
}

fn row(runs: &Runs<'_>, group: u32, dir: Option<Ddir>, part: &Part, label: String) -> Option<Row> {
    let numbers = runs.iter().map(|(_, r)| Numbers::of(r, group, part, dir));
    let numbers: Vec<Option<Numbers>> = numbers.collect();
    let jobs = numbers.iter().flatten().next()?.jobs;
    let numbers: Vec<Numbers> = numbers.into_iter().map(Option::unwrap_or_default).collect();
    let spread = |f: fn(&Numbers) -> f64| Spread::of(numbers.iter().map(f).collect());
    Some(Row {
        label,
        runs: runs.len(),
        jobs,
        bytes: spread(|n| n.bytes as f64),
        ios: spread(|n| n.ios as f64),
        runt_min_ms: spread(|n| n.runt_min_ms as f64),
        runt_max_ms: spread(|n| n.runt_max_ms as f64),
        clat_p50_ns: spread(|n| n.clat_p50_ns as f64),
        clat_p99_ns: spread(|n| n.clat_p99_ns as f64),
        clat_max_ns: spread(|n| n.clat_max_ns as f64),
        bw_bytes: spread(Numbers::bandwidth),
        iops: spread(Numbers::iops),
        spread_out: numbers.iter().any(Numbers::is_spread),
        published: None,
    })
}

fn published(cell: &Cell, dir: Option<Ddir>) -> Option<Published> {
    let dir = dir?;
    let mut all = cell.experiment.published.iter();
    all.find(|p| p.direction == dir.name() && p.fits(&cell.experiment))
        .cloned()
}
