// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics of what some jobs of a run did in one direction, by fio's statistics.

use super::{Aim, Compared, Metric, Pooling, Source, Unit};
use blklab_analysis::spread::Spread;
use blklab_analysis::stats::ProcessStats;
use blklab_fiostat::{Ddir, IoStat, ThreadStat};
use blklab_target::JobResult;
use blklab_types::Span;

/// Of jobs and, where they can be, of explicit processes: the columns of CSV, in
/// their order. Rates are over the time in which at least one of the jobs ran.
pub static JOBS: &[Metric] = &[
    row(
        "bytes",
        Unit::Bytes,
        Aim::None,
        Pooling::Mean,
        "bytes",
        |n| Some(n.bytes as f64),
    ),
    row("ios", Unit::One, Aim::None, Pooling::Mean, "calls", |n| {
        Some(n.ios as f64)
    }),
    row(
        "runt_min",
        Unit::Ms,
        Aim::Lower,
        Pooling::Median,
        "runt-min",
        |n| n.runt.map(|r| r.min),
    ),
    row(
        "runt_max",
        Unit::Ms,
        Aim::Lower,
        Pooling::Median,
        "runt-max",
        |n| n.runt.map(|r| r.max),
    ),
    row(
        "ran",
        Unit::Ms,
        Aim::Lower,
        Pooling::Mean,
        "time in which a job ran",
        |n| Some(n.ran_ns as f64 / 1e6),
    ),
    row(
        "clat_mean",
        Unit::Ns,
        Aim::Lower,
        Pooling::Mean,
        "clat mean",
        |n| Some(n.clat_mean_ns),
    )
    .compared(Compared::Always),
    row(
        "clat_p50",
        Unit::Ns,
        Aim::Lower,
        Pooling::Percentile(50.0),
        "clat p50",
        |n| n.clat(0),
    )
    .compared(Compared::Always),
    row(
        "clat_p95",
        Unit::Ns,
        Aim::Lower,
        Pooling::Percentile(95.0),
        "clat p95",
        |n| n.clat(1),
    ),
    row(
        "clat_p99",
        Unit::Ns,
        Aim::Lower,
        Pooling::Percentile(99.0),
        "clat p99",
        |n| n.clat(2),
    )
    .compared(Compared::Always),
    row(
        "clat_p999",
        Unit::Ns,
        Aim::Lower,
        Pooling::Percentile(99.9),
        "clat p99.9",
        |n| n.clat(3),
    )
    .compared(Compared::Always),
    row(
        "clat_max",
        Unit::Ns,
        Aim::Lower,
        Pooling::Median,
        "clat max",
        |n| Some(n.clat_max_ns as f64),
    )
    .compared(Compared::Always),
    row(
        "bandwidth",
        Unit::BytesPerS,
        Aim::Higher,
        Pooling::Mean,
        "bandwidth while a job ran",
        |n| Some(n.bandwidth),
    )
    .compared(Compared::Transfers),
    row(
        "iops",
        Unit::PerS,
        Aim::Higher,
        Pooling::Mean,
        "IOPS while a job ran",
        |n| Some(n.iops),
    )
    .compared(Compared::Syncs),
];

/// Of jobs as fio itself reports them, which published and measured numbers are
/// compared with. Rates are over the longest run time of a job; a percentile is the
/// middle of its bucket, which can lie beyond the largest value.
pub static FIO: &[Metric] = &[
    row(
        "group_bandwidth",
        Unit::BytesPerS,
        Aim::Higher,
        Pooling::Mean,
        "bandwidth",
        |n| n.per_runtime(n.bytes),
    ),
    row(
        "group_iops",
        Unit::PerS,
        Aim::Higher,
        Pooling::Mean,
        "IOPS",
        |n| n.per_runtime(n.ios),
    ),
    row(
        "fio_clat_p50",
        Unit::Ns,
        Aim::Lower,
        Pooling::Percentile(50.0),
        "clat p50",
        |n| n.clat_buckets_ns.first().map(|p| *p as f64),
    ),
    row(
        "fio_clat_p95",
        Unit::Ns,
        Aim::Lower,
        Pooling::Percentile(95.0),
        "clat p95",
        |n| n.clat_buckets_ns.get(1).map(|p| *p as f64),
    ),
    row(
        "fio_clat_p99",
        Unit::Ns,
        Aim::Lower,
        Pooling::Percentile(99.0),
        "clat p99",
        |n| n.clat_buckets_ns.get(2).map(|p| *p as f64),
    ),
    row(
        "runt_median",
        Unit::Ms,
        Aim::Lower,
        Pooling::Mean,
        "median run time",
        |n| n.runt.map(|r| r.median),
    ),
    // Of fio's samples in successive pieces of time, 500 ms unless `bwavgtime`
    // says otherwise.
    row(
        "bandwidth_cv",
        Unit::One,
        Aim::None,
        Pooling::Mean,
        "bandwidth, deviation over mean",
        |n| {
            let bw = &n.bw_samples;
            (bw.samples > 1).then(|| bw.stddev() / bw.mean)
        },
    ),
    row(
        "latency_max",
        Unit::Ns,
        Aim::Lower,
        Pooling::Median,
        "longest call",
        |n| Some(n.lat_max_ns as f64),
    ),
    row(
        "latency_mean",
        Unit::S,
        Aim::Lower,
        Pooling::Mean,
        "mean of calls",
        |n| (n.calls > 0).then(|| n.lat_total_ns / 1e9 / n.calls as f64),
    ),
    row(
        "latency_total",
        Unit::S,
        Aim::Lower,
        Pooling::Mean,
        "sum of calls",
        |n| Some(n.lat_total_ns / 1e9),
    ),
    // From the start of the first job to the end of the last, sync at the end
    // included.
    program(
        "runtime",
        Unit::Ns,
        Aim::Lower,
        Pooling::Mean,
        "run time of the program",
        |n| n.program.map(|span| span.0 as f64),
    ),
    program(
        "create_rate",
        Unit::MibPerS,
        Aim::Higher,
        Pooling::Mean,
        "mean of create rates",
        |n| n.create_rate_mib_s,
    ),
];

const fn row(
    key: &'static str,
    unit: Unit,
    aim: Aim,
    pooling: Pooling,
    title: &'static str,
    value: fn(&Numbers) -> Option<f64>,
) -> Metric {
    Metric::new(key, unit, aim, pooling, title, Source::Jobs(value))
}

const fn program(
    key: &'static str,
    unit: Unit,
    aim: Aim,
    pooling: Pooling,
    title: &'static str,
    value: fn(&Numbers) -> Option<f64>,
) -> Metric {
    Metric::new(key, unit, aim, pooling, title, Source::Program(value))
}

/// Percentiles of the completion latency that are kept.
const PERCENTILES: [f64; 4] = [50.0, 95.0, 99.0, 99.9];

/// What jobs did in one direction, or their calls of fsync and its kin: what the
/// metrics of jobs are made of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Numbers {
    /// Jobs with I/O in this direction.
    pub jobs: usize,
    bytes: u64,
    ios: u64,
    /// Run times of the jobs, as fio counts them, in ms.
    runt: Option<Spread>,
    /// Time in which at least one of the jobs ran.
    ran_ns: u64,
    bandwidth: f64,
    iops: f64,
    clat_mean_ns: f64,
    /// By [`PERCENTILES`], as fio gives them; none if there is no latency.
    clat_buckets_ns: Vec<u64>,
    clat_max_ns: u64,
    /// Completion latencies: value in ns and count.
    clat_bins: Vec<(u64, u64)>,
    /// Calls whose whole latency is known, and that latency.
    calls: u64,
    lat_total_ns: f64,
    lat_max_ns: u64,
    bw_samples: IoStat,
    /// From the start of the first job to the end of the last.
    program: Option<Span>,
    create_rate_mib_s: Option<f64>,
}

impl Numbers {
    /// Those of some jobs of a run; of syncs if there is no direction.
    pub fn new<'a>(jobs: impl IntoIterator<Item = &'a JobResult>, dir: Option<Ddir>) -> Numbers {
        let mut n = Numbers::default();
        let mut merged = ThreadStat::default();
        let mut ran: Vec<(u64, u64)> = Vec::new();
        let mut runtimes_ms: Vec<f64> = Vec::new();
        let jobs: Vec<&JobResult> = jobs.into_iter().collect();
        for job in &jobs {
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
            runtimes_ms.push(runtime_ms as f64);
            ran.push((since.0, since.0 + runtime_ms * 1_000_000));
            merged.merge(stat, false);
            if let Some(dir) = dir {
                let lat = &stat.dir(dir).lat.stat;
                n.calls += lat.samples;
                n.lat_total_ns += lat.mean * lat.samples as f64;
                n.lat_max_ns = n.lat_max_ns.max(lat.max);
                n.bw_samples.merge(&stat.dir(dir).bw);
            }
        }
        n.runt = (n.jobs > 0).then(|| Spread::new(runtimes_ms));
        n.ran_ns = covered(ran);
        let per_s = |count: u64| count as f64 * 1e9 / n.ran_ns.max(1_000_000) as f64;
        (n.bandwidth, n.iops) = (per_s(n.bytes), per_s(n.ios));
        n.add_clat(&merged, dir);
        n.add_program(&jobs);
        n
    }

    /// Those of an explicit process: its bios, from Q to C, over the whole run.
    pub fn of_process(p: &ProcessStats, run: Span) -> Numbers {
        let total = p.completed.total();
        let q2c = &p.phases.q2c;
        let seconds = (run.0 as f64 / 1e9).max(1e-9);
        Numbers {
            jobs: 1,
            bytes: total.bytes,
            ios: total.count,
            ran_ns: run.0,
            bandwidth: total.bytes as f64 / seconds,
            iops: total.count as f64 / seconds,
            clat_mean_ns: q2c.mean(),
            clat_buckets_ns: PERCENTILES.map(|p| q2c.percentile(p)).to_vec(),
            clat_max_ns: q2c.max(),
            clat_bins: q2c.buckets().collect(),
            ..Numbers::default()
        }
    }

    fn add_clat(&mut self, merged: &ThreadStat, dir: Option<Ddir>) {
        let clat = match dir {
            Some(dir) => &merged.dir(dir).clat,
            None => &merged.sync,
        };
        self.clat_mean_ns = clat.stat.mean;
        self.clat_max_ns = clat.stat.max;
        self.clat_buckets_ns = clat.hist.percentiles(&PERCENTILES, clat.stat.samples);
        self.clat_bins = clat.hist.bins().collect();
    }

    fn add_program(&mut self, jobs: &[&JobResult]) {
        let start = jobs.iter().map(|j| j.started).min();
        let ends: Option<Vec<_>> = jobs.iter().map(|j| j.ended).collect();
        let end = ends.and_then(|ends| ends.into_iter().max());
        self.program = start.zip(end).map(|(start, end)| end.since(start));
        let mut figures = jobs.iter().flat_map(|j| &j.figures);
        let rate = figures.find(|f| f.name == "create");
        self.create_rate_mib_s = rate.map(|f| f.value);
    }

    /// A percentile of the completion latency in ns. The middle of its bucket can lie
    /// beyond the largest value, which it is not allowed to.
    fn clat(&self, i: usize) -> Option<f64> {
        let bucket = self.clat_buckets_ns.get(i).copied().unwrap_or(0);
        Some(bucket.min(self.clat_max_ns) as f64)
    }

    /// The completion latencies: value in ns and count, in rising order.
    pub fn clat_bins(&self) -> &[(u64, u64)] {
        &self.clat_bins
    }

    /// Per second of the longest run time of a job.
    fn per_runtime(&self, count: u64) -> Option<f64> {
        let longest_ms = self.runt?.max.max(1.0);
        Some(count as f64 * 1e3 / longest_ms)
    }

    /// Whether fio's rates, over the longest run time of a job, are higher by
    /// more than rounding.
    pub fn is_spread(&self) -> bool {
        self.ran_ns as f64 > self.runt.map_or(0.0, |r| r.max) * 1.05e6
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
    use crate::metric;

    #[test]
    fn time_that_several_cover_counts_once() {
        assert_eq!(covered(vec![]), 0);
        assert_eq!(covered(vec![(5, 9), (0, 3)]), 7);
        assert_eq!(covered(vec![(0, 10), (2, 4), (8, 12), (12, 13)]), 13);
    }

    #[test]
    fn a_percentile_is_at_most_the_largest_value_but_in_fio() {
        let n = Numbers {
            jobs: 2,
            bytes: 10 << 20,
            ios: 40,
            runt: Some(Spread::new(vec![400.0, 500.0])),
            ran_ns: 1_000_000_000,
            clat_buckets_ns: vec![70, 95, 101, 101],
            clat_max_ns: 100,
            ..Numbers::default()
        };
        let value = |key: &str| metric::named(key).expect("a metric").of_jobs(&n);
        assert_eq!(
            (value("clat_p50"), value("clat_p99")),
            (Some(70.0), Some(100.0))
        );
        assert_eq!(value("fio_clat_p99"), Some(101.0));
        let in_mib = metric::find("group_bandwidth_mib_s").expect("a metric");
        assert_eq!(
            in_mib.metric.of_jobs(&n).map(|v| in_mib.convert(v)),
            Some(20.0)
        );
        assert_eq!(value("runt_median"), Some(450.0));
        assert_eq!(value("runtime"), None);
        assert_eq!(value("q2d_max"), None, "of bios");
        assert!(n.is_spread());
        let none = Numbers { jobs: 0, ..n };
        assert_eq!(metric::named("bytes").and_then(|m| m.of_jobs(&none)), None);
    }
}
