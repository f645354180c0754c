// SPDX-License-Identifier: MIT OR Apache-2.0
//! What some jobs of a run did in one direction.

use super::jobs::{JobKey, Part};
use crate::run::RunOutput;
use blklab_fiostat::{Ddir, ThreadStat};
use blklab_target::JobResult;

/// Percentiles of the completion latency that are kept.
const PERCENTILES: [f64; 4] = [50.0, 95.0, 99.0, 99.9];

/// Numbers of some jobs in one direction, or of their calls of fsync and its
/// kin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Numbers {
    /// Jobs with I/O in this direction.
    pub jobs: usize,
    /// Bytes moved; 0 for syncs.
    pub bytes: u64,
    /// I/Os issued, or calls.
    pub ios: u64,
    /// Shortest run time of a job, as fio counts it.
    pub runt_min_ms: u64,
    /// Longest run time of a job.
    pub runt_max_ms: u64,
    /// Time in which at least one of the jobs ran, in ns; the run time if it is
    /// one job.
    pub ran_ns: u64,
    /// Mean completion latency.
    pub clat_mean_ns: f64,
    /// Median.
    pub clat_p50_ns: u64,
    /// 95th percentile.
    pub clat_p95_ns: u64,
    /// 99th percentile.
    pub clat_p99_ns: u64,
    /// 99.9th percentile.
    pub clat_p999_ns: u64,
    /// Largest.
    pub clat_max_ns: u64,
}

impl Numbers {
    /// Those of the jobs of `part` in a reporting group; syncs if there is no
    /// direction. None if these jobs have no I/O of this kind.
    pub fn of(run: &RunOutput, group: u32, part: &Part, dir: Option<Ddir>) -> Option<Numbers> {
        let mut n = Numbers {
            runt_min_ms: u64::MAX,
            ..Numbers::default()
        };
        let mut merged = ThreadStat::default();
        let mut ran: Vec<(u64, u64)> = Vec::new();
        let in_group = run.jobs.iter().filter(|j| j.job.group == group);
        for job in in_group.filter(|j| part.has(&key_of(j))) {
            let stat = &job.stat;
            let (bytes, ios, runtime_ms, since) = match dir {
                Some(dir) => {
                    let d = stat.dir(dir);
                    let since = job.active_since[dir.idx()].unwrap_or(job.started);
                    (d.io_bytes, d.total_ios, d.runtime_ms, since)
                }
                None => {
                    let calls = stat.sync.stat.samples;
                    (0, calls, stat.job_runtime_ms, job.started)
                }
            };
            if ios == 0 {
                continue;
            }
            n.jobs += 1;
            n.bytes += bytes;
            n.ios += ios;
            n.runt_min_ms = n.runt_min_ms.min(runtime_ms);
            n.runt_max_ms = n.runt_max_ms.max(runtime_ms);
            ran.push((since.0, since.0 + runtime_ms * 1_000_000));
            merged.merge(stat, false);
        }
        if n.jobs == 0 {
            return None;
        }
        n.ran_ns = covered(ran);
        n.add_latencies(&merged, dir);
        Some(n)
    }

    fn add_latencies(&mut self, merged: &ThreadStat, dir: Option<Ddir>) {
        let latency = match dir {
            Some(dir) => &merged.dir(dir).clat,
            None => &merged.sync,
        };
        self.clat_mean_ns = latency.stat.mean;
        self.clat_max_ns = latency.stat.max;
        // A percentile is the middle of its bucket, which can lie beyond the
        // largest value.
        let samples = latency.stat.samples;
        let percentiles = latency.hist.percentiles(&PERCENTILES, samples);
        let percentile = |i: usize| percentiles.get(i).map_or(0, |p| self.clat_max_ns.min(*p));
        let all: [u64; PERCENTILES.len()] = std::array::from_fn(percentile);
        [
            self.clat_p50_ns,
            self.clat_p95_ns,
            self.clat_p99_ns,
            self.clat_p999_ns,
        ] = all;
    }

    /// Bytes per second of the time in which a job ran.
    pub fn bandwidth(&self) -> f64 {
        self.rate(self.bytes)
    }

    /// I/Os or calls per second of the time in which a job ran.
    pub fn iops(&self) -> f64 {
        self.rate(self.ios)
    }

    fn rate(&self, n: u64) -> f64 {
        n as f64 * 1e9 / self.ran_ns.max(1_000_000) as f64
    }

    /// Whether fio's rates, over the longest run time of a job, are higher by
    /// more than rounding.
    pub fn is_spread(&self) -> bool {
        self.ran_ns as f64 > self.runt_max_ms as f64 * 1.05e6
    }
}

/// Name and control group of a job.
pub(super) fn key_of(job: &JobResult) -> JobKey {
    JobKey {
        name: job.job.name.clone(),
        cgroup: job.job.settings.cgroup.clone(),
    }
}

/// How much time some intervals cover together.
fn covered(mut intervals: Vec<(u64, u64)>) -> u64 {
    intervals.sort_unstable();
    let (mut sum, mut until) = (0, 0);
    for (begin, end) in intervals {
        let begin = begin.max(until);
        until = until.max(end);
        sum += end.saturating_sub(begin);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_several_cover_counts_once() {
        assert_eq!(covered(vec![]), 0);
        assert_eq!(covered(vec![(5, 9), (0, 3)]), 7);
        assert_eq!(covered(vec![(0, 10), (2, 4), (8, 12), (12, 13)]), 13);
    }

    #[test]
    fn rates_are_over_the_time_that_jobs_ran() {
        let n = Numbers {
            jobs: 2,
            bytes: 10 << 20,
            ios: 40,
            runt_max_ms: 500,
            ran_ns: 1_000_000_000,
            ..Numbers::default()
        };
        assert_eq!((n.bandwidth(), n.iops()), (f64::from(10 << 20), 40.0));
        assert!(n.is_spread());
        let together = Numbers {
            ran_ns: 500_000_000,
            ..n
        };
        assert!(!together.is_spread());
    }
}
