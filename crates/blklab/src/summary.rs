// SPDX-License-Identifier: MIT OR Apache-2.0
//! The main numbers of runs as rows: one table per job group and direction,
//! one row per experiment, medians over repetitions.

use crate::matrix::Cell;
use crate::run::RunOutput;
use blklab_experiment::Published;
use blklab_fiostat::{Ddir, ThreadStat};
use serde::Serialize;
use std::collections::BTreeMap;

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
    fn of(mut values: Vec<f64>) -> Spread {
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
}

/// One experiment's row.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What distinguishes the experiment from the others.
    pub label: String,
    /// Runs behind the numbers.
    pub runs: usize,
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
    /// Bytes per second of the group.
    pub bw_bytes: Spread,
    /// Published run times for this configuration, if the file names them.
    pub published: Option<Published>,
}

/// One table: a group and direction of a job file.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// Group number.
    pub group: u32,
    /// read, write or trim.
    pub direction: &'static str,
    /// Jobs with I/O in this direction.
    pub jobs: usize,
    /// Bytes moved in the first experiment.
    pub bytes: u64,
    /// Rows in order of the experiments.
    pub rows: Vec<Row>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    jobs: usize,
    bytes: u64,
    runt_min_ms: u64,
    runt_max_ms: u64,
    p50_ns: u64,
    p99_ns: u64,
    max_ns: u64,
    bw_bytes: u64,
}

/// The tables of some runs of one experiment file.
pub fn tables(runs: &[(&Cell, &RunOutput)]) -> Vec<Table> {
    let mut tables: BTreeMap<(u32, usize), Table> = BTreeMap::new();
    let mut at = 0;
    while at < runs.len() {
        let same = |c: &Cell| c.label == runs[at].0.label;
        let n = runs[at..].iter().take_while(|(c, _)| same(c)).count();
        add_rows(&mut tables, &runs[at..at + n]);
        at += n;
    }
    tables.into_values().collect()
}

fn add_rows(tables: &mut BTreeMap<(u32, usize), Table>, runs: &[(&Cell, &RunOutput)]) {
    let mut keys: Vec<(u32, usize)> = Vec::new();
    for (_, run) in runs {
        for job in &run.jobs {
            for dir in Ddir::ALL {
                let key = (job.job.group, dir.idx());
                if job.stat.dir(dir).io_bytes > 0 && !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
    }
    let cell = runs[0].0;
    for key in keys {
        let dir = Ddir::ALL[key.1];
        let numbers: Vec<Numbers> = runs.iter().map(|(_, r)| of_group(r, key.0, dir)).collect();
        let spread =
            |f: fn(&Numbers) -> u64| Spread::of(numbers.iter().map(|n| f(n) as f64).collect());
        let table = tables.entry(key).or_insert_with(|| Table {
            group: key.0,
            direction: dir.name(),
            jobs: numbers[0].jobs,
            bytes: numbers[0].bytes,
            rows: Vec::new(),
        });
        table.rows.push(Row {
            label: row_label(cell),
            runs: runs.len(),
            runt_min_ms: spread(|n| n.runt_min_ms),
            runt_max_ms: spread(|n| n.runt_max_ms),
            clat_p50_ns: spread(|n| n.p50_ns),
            clat_p99_ns: spread(|n| n.p99_ns),
            clat_max_ns: spread(|n| n.max_ns),
            bw_bytes: spread(|n| n.bw_bytes),
            published: published(cell, dir),
        });
    }
}

/// The label of a row: what varies, or the scheduler if nothing does.
fn row_label(cell: &Cell) -> String {
    if cell.label.is_empty() {
        cell.experiment.scheduler.clone()
    } else {
        cell.name()
    }
}

fn published(cell: &Cell, dir: Ddir) -> Option<Published> {
    let all = cell.experiment.published.iter();
    all.filter(|p| p.direction == dir.name() && p.fits(&cell.experiment))
        .cloned()
        .next()
}

fn of_group(run: &RunOutput, group: u32, dir: Ddir) -> Numbers {
    let mut n = Numbers {
        runt_min_ms: u64::MAX,
        ..Numbers::default()
    };
    let mut merged = ThreadStat::default();
    let jobs = run.jobs.iter().filter(|j| j.job.group == group);
    for stat in jobs.map(|j| &j.stat).filter(|s| s.dir(dir).io_bytes > 0) {
        let d = stat.dir(dir);
        n.jobs += 1;
        n.bytes += d.io_bytes;
        n.runt_min_ms = n.runt_min_ms.min(d.runtime_ms);
        n.runt_max_ms = n.runt_max_ms.max(d.runtime_ms);
        merged.merge(stat, false);
    }
    if n.jobs == 0 {
        return Numbers::default();
    }
    let clat = &merged.dir(dir).clat;
    let percentiles = clat.hist.percentiles(&[50.0, 99.0], clat.stat.samples);
    n.p50_ns = percentiles.first().copied().unwrap_or(0);
    n.p99_ns = percentiles.get(1).copied().unwrap_or(0);
    n.max_ns = clat.stat.max;
    n.bw_bytes = n.bytes.saturating_mul(1000) / n.runt_max_ms.max(1);
    n
}
