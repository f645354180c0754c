// SPDX-License-Identifier: MIT OR Apache-2.0
//! Use of the disk; of an array's disks together, and of the busiest one.

use super::{Aim, Compared, Metric, Pooling, Source, Unit};
use crate::disk_stats::DiskStats;
use crate::life_totals::{LifeTotals, Times};
use crate::run::RunOutput;

/// Of the disks of a run, in the order of CSV.
pub static DISK: &[Metric] = &[
    row(
        "disk_requests",
        Unit::One,
        Aim::None,
        Pooling::Mean,
        "requests that the disk got",
        |n| n.requests as f64,
    ),
    row(
        "disk_merged",
        Unit::Percent,
        Aim::None,
        Pooling::Mean,
        "bios that joined a request",
        |n| n.merged_percent,
    ),
    row(
        "disk_q2d_mean",
        Unit::Ns,
        Aim::Lower,
        Pooling::Mean,
        "mean time of a bio before it went to the disk",
        |n| n.q2d_ns,
    )
    .compared(Compared::Always),
    row(
        "disk_d2c_mean",
        Unit::Ns,
        Aim::Lower,
        Pooling::Mean,
        "mean time of a bio at the disk",
        |n| n.d2c_ns,
    )
    .compared(Compared::Always),
    row(
        "disk_util",
        Unit::Percent,
        Aim::None,
        Pooling::Mean,
        "time with a bio under way",
        |n| n.busy_percent,
    ),
    row(
        "disk_in_flight_mean",
        Unit::One,
        Aim::None,
        Pooling::Mean,
        "bios between Q and C, mean over time",
        |n| n.queue_size,
    ),
];

const fn row(
    key: &'static str,
    unit: Unit,
    aim: Aim,
    pooling: Pooling,
    title: &'static str,
    value: fn(&DiskNumbers) -> f64,
) -> Metric {
    Metric::new(key, unit, aim, pooling, title, Source::Disk(value))
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
impl DiskNumbers {
    /// Those of a run.
    pub fn new(run: &RunOutput) -> DiskNumbers {
        let requests = sum(run, |d| d.read.ios + d.write.ios + d.discard.ios);
        let merged = sum(run, |d| d.read.merges + d.write.merges + d.discard.merges);
        let busiest = run.disks.iter().map(|d| d.stats.busy_ns).max();
        let all = || run.disks.iter().chain(&run.array).map(|d| &d.lives);
        let times =
            |part: fn(&LifeTotals) -> Times| all().map(part).fold(Times::default(), Times::and);
        let (q2c_ns, d2c_ns) = (times(|l| l.q2c).mean_ns(), times(|l| l.d2c).mean_ns());
        DiskNumbers {
            requests,
            merged_percent: 100.0 * merged as f64 / (merged + requests).max(1) as f64,
            busy_percent: 100.0 * busiest.unwrap_or(0) as f64 / run.end.0.max(1) as f64,
            queue_size: run.disks.iter().map(|d| d.lives.in_flight.mean()).sum(),
            q2d_ns: (q2c_ns - d2c_ns).max(0.0),
            d2c_ns,
        }
    }
}

/// A counter, of all disks together.
fn sum(run: &RunOutput, f: fn(&DiskStats) -> u64) -> u64 {
    run.disks.iter().map(|d| f(&d.stats)).sum()
}
