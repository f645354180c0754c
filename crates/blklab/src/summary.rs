// SPDX-License-Identifier: MIT OR Apache-2.0
//! The main numbers of runs as rows: one table per job group and direction,
//! one row per experiment, medians over repetitions.

use crate::disk_stats::DiskStats;
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
    pub(crate) fn of(mut values: Vec<f64>) -> Spread {
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
    /// I/Os per second of the group.
    pub iops: Spread,
    /// Published run times for this configuration, if the file names them.
    pub published: Option<Published>,
}

/// Use of the disk in one experiment; of an array's disks together, and of the
/// busiest one.
#[derive(Clone, Debug, Serialize)]
pub struct DiskRow {
    /// What distinguishes the experiment from the others.
    pub label: String,
    /// Requests that the disk got.
    pub requests: Spread,
    /// Share of bios that joined a request, in percent.
    pub merged_percent: Spread,
    /// Share of the time with a bio under way, in percent.
    pub busy_percent: Spread,
    /// Bios between Q and C, mean over time.
    pub queue_size: Spread,
    /// Mean time of a bio before it went to the disk.
    pub q2d_ns: Spread,
    /// Mean time of a bio at the disk.
    pub d2c_ns: Spread,
}

/// One table: a group and direction of a job file.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// Group number.
    pub group: u32,
    /// read, write, trim, or sync for the calls of fsync and its kin.
    pub direction: &'static str,
    /// Jobs with I/O in this direction.
    pub jobs: usize,
    /// Bytes moved in the first experiment.
    pub bytes: u64,
    /// I/Os in the first experiment.
    pub ios: u64,
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
    ios: u64,
    iops: u64,
}

/// Index of calls to fsync beside fio's directions.
const SYNC: usize = Ddir::ALL.len();

/// Runs of one experiment with different seeds, in succession.
fn repetitions<'a, 'b>(
    runs: &'a [(&'b Cell, &'b RunOutput)],
) -> impl Iterator<Item = &'a [(&'b Cell, &'b RunOutput)]> {
    runs.chunk_by(|a, b| a.0.file_idx == b.0.file_idx && a.0.label == b.0.label)
}

/// Use of the disk by some runs of one experiment file.
pub fn disk_rows(runs: &[(&Cell, &RunOutput)]) -> Vec<DiskRow> {
    repetitions(runs).map(disk_row).collect()
}

fn disk_row(runs: &[(&Cell, &RunOutput)]) -> DiskRow {
    let spread =
        |f: fn(&RunOutput) -> f64| Spread::of(runs.iter().map(|(_, run)| f(run)).collect());
    let all = |run: &RunOutput| sum(run, |d| d.read.ios + d.write.ios);
    DiskRow {
        label: runs[0].0.name_in_file(),
        requests: Spread::of(runs.iter().map(|(_, r)| all(r) as f64).collect()),
        merged_percent: spread(|r| {
            let merged = sum(r, |d| d.read.merges + d.write.merges);
            let bios = merged + sum(r, |d| d.read.ios + d.write.ios);
            100.0 * merged as f64 / bios.max(1) as f64
        }),
        busy_percent: spread(|r| {
            let busiest = r.disks.iter().map(|d| d.stats.busy_ns).max();
            100.0 * busiest.unwrap_or(0) as f64 / r.end.0.max(1) as f64
        }),
        queue_size: spread(|r| {
            let is_disk = |dev| r.disks.iter().any(|d| d.dev == dev);
            let disks = r.stats.devices.iter().filter(|d| is_disk(d.dev));
            disks.map(|d| d.depth.mean).sum()
        }),
        q2d_ns: spread(|r| (r.stats.all.q2c.mean() - r.stats.all.d2c.mean()).max(0.0)),
        d2c_ns: spread(|r| r.stats.all.d2c.mean()),
    }
}

/// A counter, of all disks together.
fn sum(run: &RunOutput, f: fn(&DiskStats) -> u64) -> u64 {
    run.disks.iter().map(|d| f(&d.stats)).sum()
}

/// The tables of some runs of one experiment file.
pub fn tables(runs: &[(&Cell, &RunOutput)]) -> Vec<Table> {
    let mut tables: BTreeMap<(u32, usize), Table> = BTreeMap::new();
    for same in repetitions(runs) {
        add_rows(&mut tables, same);
    }
    tables.into_values().collect()
}

fn add_rows(tables: &mut BTreeMap<(u32, usize), Table>, runs: &[(&Cell, &RunOutput)]) {
    let mut keys: Vec<(u32, usize)> = Vec::new();
    for (_, run) in runs {
        for job in &run.jobs {
            let moved = |i: &usize| match Ddir::ALL.get(*i) {
                Some(dir) => job.stat.dir(*dir).io_bytes > 0,
                None => job.stat.sync.stat.samples > 0,
            };
            for i in (0..=SYNC).filter(moved) {
                let key = (job.job.group, i);
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
    }
    let cell = runs[0].0;
    for key in keys {
        let dir = Ddir::ALL.get(key.1).copied();
        let numbers: Vec<Numbers> = runs.iter().map(|(_, r)| of_group(r, key.0, dir)).collect();
        let spread =
            |f: fn(&Numbers) -> u64| Spread::of(numbers.iter().map(|n| f(n) as f64).collect());
        let table = tables.entry(key).or_insert_with(|| Table {
            group: key.0,
            direction: dir.map_or("sync", Ddir::name),
            jobs: numbers[0].jobs,
            bytes: numbers[0].bytes,
            ios: numbers[0].ios,
            rows: Vec::new(),
        });
        table.rows.push(Row {
            label: cell.name_in_file(),
            runs: runs.len(),
            runt_min_ms: spread(|n| n.runt_min_ms),
            runt_max_ms: spread(|n| n.runt_max_ms),
            clat_p50_ns: spread(|n| n.p50_ns),
            clat_p99_ns: spread(|n| n.p99_ns),
            clat_max_ns: spread(|n| n.max_ns),
            bw_bytes: spread(|n| n.bw_bytes),
            iops: spread(|n| n.iops),
            published: dir.and_then(|dir| published(cell, dir)),
        });
    }
}

fn published(cell: &Cell, dir: Ddir) -> Option<Published> {
    let mut all = cell.experiment.published.iter();
    all.find(|p| p.direction == dir.name() && p.fits(&cell.experiment))
        .cloned()
}

fn of_group(run: &RunOutput, group: u32, dir: Option<Ddir>) -> Numbers {
    let mut n = Numbers {
        runt_min_ms: u64::MAX,
        ..Numbers::default()
    };
    let mut merged = ThreadStat::default();
    for job in run.jobs.iter().filter(|j| j.job.group == group) {
        let stat = &job.stat;
        let (bytes, ios, runtime_ms) = match dir {
            Some(dir) => {
                let d = stat.dir(dir);
                (d.io_bytes, d.total_ios, d.runtime_ms)
            }
            None => (0, stat.sync.stat.samples, stat.job_runtime_ms),
        };
        if ios == 0 {
            continue;
        }
        n.jobs += 1;
        n.bytes += bytes;
        n.ios += ios;
        n.runt_min_ms = n.runt_min_ms.min(runtime_ms);
        n.runt_max_ms = n.runt_max_ms.max(runtime_ms);
        merged.merge(stat, false);
    }
    if n.jobs == 0 {
        return Numbers::default();
    }
    let latency = match dir {
        Some(dir) => &merged.dir(dir).clat,
        None => &merged.sync,
    };
    n.max_ns = latency.stat.max;
    // A percentile is the middle of its bucket, which can lie beyond the
    // largest value.
    let percentiles = latency
        .hist
        .percentiles(&[50.0, 99.0], latency.stat.samples);
    let percentile = |i: usize| percentiles.get(i).map_or(0, |p| n.max_ns.min(*p));
    (n.p50_ns, n.p99_ns) = (percentile(0), percentile(1));
    n.bw_bytes = n.bytes.saturating_mul(1000) / n.runt_max_ms.max(1);
    n.iops = n.ios.saturating_mul(1000) / n.runt_max_ms.max(1);
    n
}
