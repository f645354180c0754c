// SPDX-License-Identifier: MIT OR Apache-2.0
//! Use of the disk, one row per experiment.

use super::{Spread, repetitions};
use crate::disk_stats::DiskStats;
use crate::matrix::Cell;
use crate::run::RunOutput;
use serde::Serialize;

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

/// Use of the disk by one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DiskNumbers {
    /// Requests that the disk got.
    pub requests: u64,
    /// Share of bios that joined a request, in percent.
    pub merged_percent: f64,
    /// Share of the time with a bio under way, in percent.
    pub busy_percent: f64,
    /// Bios between Q and C, mean over time.
    pub queue_size: f64,
    /// Mean time of a bio before it went to the disk.
    pub q2d_ns: f64,
    /// Mean time of a bio at the disk.
    pub d2c_ns: f64,
}

/// Use of the disk by some runs of one experiment file.
pub fn disk_rows(runs: &[(&Cell, &RunOutput)]) -> Vec<DiskRow> {
    repetitions(runs).map(disk_row).collect()
}

fn disk_row(runs: &[(&Cell, &RunOutput)]) -> DiskRow {
    let all: Vec<DiskNumbers> = runs.iter().map(|(_, r)| DiskNumbers::of(r)).collect();
    let spread = |f: fn(&DiskNumbers) -> f64| Spread::of(all.iter().map(f).collect());
    DiskRow {
        label: runs[0].0.name_in_file(),
        requests: spread(|n| n.requests as f64),
        merged_percent: spread(|n| n.merged_percent),
        busy_percent: spread(|n| n.busy_percent),
        queue_size: spread(|n| n.queue_size),
        q2d_ns: spread(|n| n.q2d_ns),
        d2c_ns: spread(|n| n.d2c_ns),
    }
}

impl DiskNumbers {
    /// Those of a run.
    pub fn of(run: &RunOutput) -> DiskNumbers {
        let requests = sum(run, |d| d.read.ios + d.write.ios);
        let merged = sum(run, |d| d.read.merges + d.write.merges);
        let busiest = run.disks.iter().map(|d| d.stats.busy_ns).max();
        let is_disk = |dev| run.disks.iter().any(|d| d.dev == dev);
        let disks = run.stats.devices.iter().filter(|d| is_disk(d.dev));
        let phases = &run.stats.all;
        DiskNumbers {
            requests,
            merged_percent: 100.0 * merged as f64 / (merged + requests).max(1) as f64,
            busy_percent: 100.0 * busiest.unwrap_or(0) as f64 / run.end.0.max(1) as f64,
            queue_size: disks.map(|d| d.depth.mean).sum(),
            q2d_ns: (phases.q2c.mean() - phases.d2c.mean()).max(0.0),
            d2c_ns: phases.d2c.mean(),
        }
    }
}

/// A counter, of all disks together.
fn sum(run: &RunOutput, f: fn(&DiskStats) -> u64) -> u64 {
    run.disks.iter().map(|d| f(&d.stats)).sum()
}
