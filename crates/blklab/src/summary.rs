// SPDX-License-Identifier: MIT OR Apache-2.0
//! The main numbers of runs as rows, medians over repetitions.
//!
//! One experiment has a table per reporting group and direction with a row for
//! each name of a job. Several have a table for each name, with a row for each
//! experiment: what is compared stands in one column. Names that are too many
//! for that share rows; see [`jobs`].

mod disk;
pub mod jobs;

pub use blklab_analysis::spread::Spread;
pub use disk::{DiskRow, disk_rows};

use crate::matrix::Cell;
use crate::metric::{self, Numbers};
use crate::run::RunOutput;
use crate::same::{Runs, repetitions};
use blklab_experiment::Published;
use blklab_fiostat::Ddir;
use blklab_target::JobResult;
use jobs::{JobKey, Part};
use std::collections::BTreeSet;

/// Some jobs of one experiment.
#[derive(Clone, Debug)]
pub struct Row {
    /// What distinguishes the row from the others of its table: the
    /// experiment or the jobs.
    pub label: String,
    /// Runs behind the numbers.
    pub runs: usize,
    /// Jobs with I/O in this direction.
    pub jobs: usize,
    /// What the metrics of each run are made of.
    pub numbers: Vec<Numbers>,
    /// Whether the jobs ran one after another, at least in part: fio's rates,
    /// over the longest run time of a job, are higher.
    pub spread_out: bool,
    /// Published run times for this configuration, if the file names them.
    pub published: Option<Published>,
}

impl Row {
    /// A metric over the runs, by its key; of what is no metric nothing.
    pub fn spread(&self, key: &str) -> Spread {
        let metric = metric::named(key);
        let values = self
            .numbers
            .iter()
            .map(|n| metric.and_then(|m| m.of_jobs(n)).unwrap_or(0.0));
        Spread::new(values.collect())
    }
}

/// The spread of a metric over rows: its ends are those of all rows.
fn over(rows: &[Row], key: &str) -> Spread {
    let all = rows.iter().map(|r| r.spread(key));
    Spread::new(all.flat_map(|s| [s.min, s.median, s.max]).collect())
}

/// One table: a group and direction of a job file.
#[derive(Clone, Debug)]
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
const TABLES_MAX: usize = 8;

/// The tables of some runs of one experiment file.
pub fn tables(runs: &Runs<'_>) -> Vec<Table> {
    let experiments: Vec<&Runs<'_>> = repetitions(runs).collect();
    let keys: BTreeSet<(u32, usize)> = runs.iter().flat_map(|(_, r)| group_dirs(&r.jobs)).collect();
    let groups: BTreeSet<u32> = keys.iter().map(|(group, _)| *group).collect();
    let several = groups.len() > 1;
    // Who syncs waits for that: these tables come first.
    let mut keys: Vec<(u32, usize)> = keys.into_iter().collect();
    keys.sort_by_key(|(group, i)| (*group, *i != SYNC, *i));
    let tables = keys.into_iter().flat_map(|(group, i)| {
        let dir = Ddir::ALL.get(i).copied();
        let names = names(runs.iter().map(|(_, r)| r.jobs.as_slice()), group, i);
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

/// Groups and directions of the jobs of a run that have I/O.
pub(crate) fn group_dirs(jobs: &[JobResult]) -> impl Iterator<Item = (u32, usize)> {
    jobs.iter().flat_map(|job| {
        let moved = move |i: &usize| match Ddir::ALL.get(*i) {
            Some(dir) => job.stat.dir(*dir).io_bytes > 0,
            None => job.stat.sync.stat.samples > 0,
        };
        let group = job.job.group;
        (0..=SYNC).filter(moved).map(move |i| (group, i))
    })
}

/// The names of jobs of a group with I/O in a direction, in order.
pub(crate) fn names<'a>(
    runs: impl IntoIterator<Item = &'a [JobResult]>,
    group: u32,
    dir: usize,
) -> Vec<JobKey> {
    let mut names: Vec<JobKey> = Vec::new();
    for job in runs.into_iter().flatten() {
        let ios = match Ddir::ALL.get(dir) {
            Some(dir) => job.stat.dir(*dir).total_ios,
            None => job.stat.sync.stat.samples,
        };
        let key = JobKey::new(job);
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
        last.published = published(&runs[0], dir);
    }
    let last = &rows[rows.len().saturating_sub(1)..];
    Table {
        group: Some(group),
        direction: dir.map_or("sync", Ddir::name),
        who,
        bytes: over(last, "bytes"),
        ios: over(last, "ios"),
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
            row.published = published(&runs[0], dir).filter(|_| is_whole);
            Some(row)
        });
        let rows: Vec<Row> = rows.collect();
        let jobs = rows.first().map_or(0, |r| r.jobs);
        Table {
            group: Some(group),
            direction: dir.map_or("sync", Ddir::name),
            who: part.heading(jobs),
            bytes: over(&rows, "bytes"),
            ios: over(&rows, "ios"),
            rows,
        }
    };
    let parts = jobs::parts(names, TABLES_MAX);
    match &parts[..] {
        [_] => vec![table(whole, true)],
        parts => {
            // Jobs that are not alike have no sum that says anything, unless one was published.
            let mut tables: Vec<Table> = parts.iter().map(|p| table(p, false)).collect();
            let sum = table(whole, true);
            if whole.is_family() || sum.rows.iter().any(|row| row.published.is_some()) {
                tables.push(sum);
            }
            tables
        }
    }
}

fn row(runs: &Runs<'_>, group: u32, dir: Option<Ddir>, part: &Part, label: String) -> Option<Row> {
    let numbers = |jobs| Numbers::new(jobs_of(jobs, group, part), dir);
    let numbers: Vec<Numbers> = runs.iter().map(|(_, r)| numbers(&r.jobs)).collect();
    let first = numbers.iter().find(|n| n.jobs > 0)?;
    Some(Row {
        label,
        runs: runs.len(),
        jobs: first.jobs,
        spread_out: numbers.iter().any(Numbers::is_spread),
        numbers,
        published: None,
    })
}

/// The jobs of a part in a reporting group.
pub(crate) fn jobs_of<'a>(
    jobs: &'a [JobResult],
    group: u32,
    part: &'a Part,
) -> impl Iterator<Item = &'a JobResult> {
    let in_group = jobs.iter().filter(move |j| j.job.group == group);
    in_group.filter(|j| part.has(&JobKey::new(j)))
}

fn published((cell, run): &(&Cell, &RunOutput), dir: Option<Ddir>) -> Option<Published> {
    let dir = dir?;
    let depth = run.facts.queue_depth();
    let mut all = cell.experiment.published.iter();
    all.find(|p| p.direction == dir.name() && p.fits(&cell.experiment, depth))
        .cloned()
}
