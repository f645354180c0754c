// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a study measures in a run: figures of jobs, and of the bios of the
//! trace.

use blklab::JobResult;
use blklab::run::RunOutput;
use blklab::watch::{BioFigures, BioFilter};
use blklab_fiostat::{Ddir, DirStat};
use serde::Deserialize;

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Shortest run time of a job, ms.
    RuntMinMs,
    /// Longest run time of a job, ms.
    RuntMaxMs,
    /// The same in seconds.
    RuntMaxS,
    /// From the start of the first job to the end of the last, s: the run time
    /// of a whole program, sync at the end included.
    RuntimeS,
    /// Bytes of the jobs over the longest run time, 10^6 bytes per second.
    BandwidthMbS,
    /// The same in 2^20 bytes per second.
    BandwidthMibS,
    /// Standard deviation over mean of the bandwidth that the job had in
    /// successive pieces of time (fio's samples, 500 ms unless `bwavgtime`
    /// says otherwise).
    BandwidthCv,
    /// Longest call, s.
    LatencyMaxS,
    /// Mean time of a call, s.
    LatencyMeanS,
    /// Sum of the times of all calls, s.
    LatencyTotalS,
    /// Calls.
    Ios,
    /// Mean of the rates of compilebench's initial creates, 2^20 bytes per
    /// second.
    CreateRateMibS,
    /// Bios of the trace that completed.
    Bios,
    /// Bios that joined a request of others.
    Merges,
    /// Bios whose process slept because no request was free.
    Sleeps,
    /// Longest such sleep, ms.
    SleepMaxMs,
    /// Longest time from Q to D, ms.
    Q2dMaxMs,
    /// 99 of 100 took no longer from Q to D, ms.
    Q2dP99Ms,
    /// Mean time from Q to D, ms.
    Q2dMeanMs,
    /// Longest time from Q to C, ms.
    Q2cMaxMs,
    /// Largest number of bios between Q and C at a time.
    OutstandingMax,
    /// Stalls: a bio waited 300 ms or more from Q to D.
    Stalls,
    /// Bios queued while it did, itself included: of the stall with most.
    StalledBios,
    /// Time from its Q to that of the last of them, ms; median of such stalls.
    StallFillMs,
    /// The longest Q2D among them, ms; median of such stalls.
    StallMs,
    /// Median of the times from D to C, ms.
    D2cMedianMs,
    /// Sectors of the largest request.
    RequestSectorsMax,
    /// Requests inserted right behind one that waited, and not merged into it.
    MissedMerges,
    /// Median of the sizes of those that waited, sectors.
    MissedFirstSectors,
    /// Median of the sizes of those inserted behind, sectors.
    MissedSecondSectors,
    /// Median of the times from one Q to the next, ms.
    Q2qMedianMs,
}

impl Metric {
    /// In words, and its unit.
    pub fn text(self) -> (&'static str, &'static str) {
        match self {
            Metric::RuntMinMs => ("runt-min", "ms"),
            Metric::RuntMaxMs => ("runt-max", "ms"),
            Metric::RuntMaxS => ("runt-max", "s"),
            Metric::RuntimeS => ("run time of the program", "s"),
            Metric::BandwidthMbS => ("bandwidth", "MB/s"),
            Metric::BandwidthMibS => ("bandwidth", "MiB/s"),
            Metric::BandwidthCv => ("bandwidth, deviation over mean", "1"),
            Metric::LatencyMaxS => ("longest call", "s"),
            Metric::LatencyMeanS => ("mean of calls", "s"),
            Metric::LatencyTotalS => ("sum of calls", "s"),
            Metric::Ios => ("calls", "1"),
            Metric::CreateRateMibS => ("mean of create rates", "MiB/s"),
            Metric::Bios => ("bios", "1"),
            Metric::Merges => ("merged bios", "1"),
            Metric::Sleeps => ("bios that waited for a request", "1"),
            Metric::SleepMaxMs => ("longest wait for a request", "ms"),
            Metric::Q2dMaxMs => ("longest Q2D", "ms"),
            Metric::Q2dP99Ms => ("99 % of Q2D", "ms"),
            Metric::Q2dMeanMs => ("mean Q2D", "ms"),
            Metric::Q2cMaxMs => ("longest Q2C", "ms"),
            Metric::OutstandingMax => ("most bios outstanding", "1"),
            Metric::Stalls => ("stalls of 300 ms or more", "1"),
            Metric::StalledBios => ("most bios of a stall", "1"),
            Metric::StallFillMs => ("such a stall, from first to last Q", "ms"),
            Metric::StallMs => ("such a stall, longest Q2D", "ms"),
            Metric::D2cMedianMs => ("median D2C", "ms"),
            Metric::RequestSectorsMax => ("largest request", "sectors"),
            Metric::MissedMerges => ("requests behind a waiting one", "1"),
            Metric::MissedFirstSectors => ("median size of the one that waited", "sectors"),
            Metric::MissedSecondSectors => ("median size of the one behind it", "sectors"),
            Metric::Q2qMedianMs => ("median Q2Q", "ms"),
        }
    }

    /// Whether it is taken from the trace.
    pub fn is_of_trace(self) -> bool {
        matches!(
            self,
            Metric::Bios
                | Metric::Merges
                | Metric::Sleeps
                | Metric::SleepMaxMs
                | Metric::Q2dMaxMs
                | Metric::Q2dP99Ms
                | Metric::Q2dMeanMs
                | Metric::Q2cMaxMs
                | Metric::OutstandingMax
                | Metric::Stalls
                | Metric::StalledBios
                | Metric::StallMs
                | Metric::StallFillMs
                | Metric::D2cMedianMs
                | Metric::RequestSectorsMax
                | Metric::MissedMerges
                | Metric::MissedFirstSectors
                | Metric::MissedSecondSectors
                | Metric::Q2qMedianMs
        )
    }

    /// Of bios of a trace; none if there are none, or for metrics of jobs.
    pub(super) fn of_bios(self, f: &BioFigures) -> Option<f64> {
        let ms = |ns: u64| ns as f64 / 1e6;
        let some = |x| (f.count > 0).then_some(x);
        match self {
            Metric::Bios => Some(f.count as f64),
            Metric::Merges => some(f.merged as f64),
            Metric::Sleeps => some(f.slept as f64),
            Metric::SleepMaxMs => some(ms(f.s2g_max_ns)),
            Metric::Q2dMaxMs => some(ms(f.q2d_max_ns)),
            Metric::Q2dP99Ms => f.q2d_p99_ns().map(ms),
            Metric::Q2dMeanMs => some(f.q2d_sum_ns as f64 / 1e6 / f.count.max(1) as f64),
            Metric::Q2cMaxMs => some(ms(f.q2c_max_ns)),
            Metric::OutstandingMax => some(f.outstanding_max() as f64),
            Metric::Stalls => some(f.nr_stalls() as f64),
            Metric::StalledBios => f.stalled().map(|s| s.0 as f64),
            Metric::StallFillMs => f.stalled().map(|s| ms(s.1)),
            Metric::StallMs => f.stalled().map(|s| ms(s.2)),
            Metric::D2cMedianMs => f.d2c_median_ns().map(ms),
            Metric::RequestSectorsMax => some(f.request_sectors_max as f64),
            Metric::MissedMerges => some(f.missed_merges() as f64),
            Metric::MissedFirstSectors => f.missed_first_sectors().map(|n| n as f64),
            Metric::MissedSecondSectors => f.missed_second_sectors().map(|n| n as f64),
            Metric::Q2qMedianMs => f.q2q_median_ns().map(ms),
            _ => None,
        }
    }

    /// Of some jobs in one direction; none if they did nothing there.
    pub(super) fn of_jobs(self, jobs: &Jobs, run: &RunOutput) -> Option<f64> {
        let jobs: Vec<&JobResult> = run.jobs.iter().filter(|j| jobs.wants(j)).collect();
        match self {
            Metric::RuntimeS => {
                let start = jobs.iter().map(|j| j.started).min()?;
                let ends: Option<Vec<_>> = jobs.iter().map(|j| j.ended).collect();
                let end = ends?.into_iter().max()?;
                Some(end.since(start).0 as f64 / 1e9)
            }
            Metric::CreateRateMibS => {
                let mut figures = jobs.iter().flat_map(|j| &j.figures);
                let found = figures.find(|f| f.name == "create");
                found.map(|f| f.value)
            }
            _ => None,
        }
    }

    /// Of the statistics of some jobs in one direction; none if they did
    /// nothing there.
    pub(super) fn of_directions(self, all: &[&DirStat]) -> Option<f64> {
        let moved: Vec<&&DirStat> = all.iter().filter(|d| d.total_ios > 0).collect();
        let runtimes = moved.iter().map(|d| d.runtime_ms);
        let longest_ms = runtimes.clone().max()?;
        let bytes: u64 = moved.iter().map(|d| d.io_bytes).sum();
        let per_s = bytes as f64 * 1e3 / longest_ms.max(1) as f64;
        let calls: u64 = moved.iter().map(|d| d.lat.stat.samples).sum();
        let sum_ns = |d: &&&DirStat| d.lat.stat.mean * d.lat.stat.samples as f64;
        let total_s = moved.iter().map(sum_ns).sum::<f64>() / 1e9;
        Some(match self {
            Metric::RuntMinMs => runtimes.min()? as f64,
            Metric::RuntMaxMs => longest_ms as f64,
            Metric::RuntMaxS => longest_ms as f64 / 1e3,
            Metric::BandwidthMbS => per_s / 1e6,
            Metric::BandwidthMibS => per_s / f64::from(1 << 20),
            Metric::BandwidthCv => {
                let mut all = blklab_fiostat::IoStat::default();
                moved.iter().for_each(|d| all.merge(&d.bw));
                (all.samples > 1).then(|| all.stddev() / all.mean)?
            }
            Metric::LatencyMaxS => moved.iter().map(|d| d.lat.stat.max).max()? as f64 / 1e9,
            Metric::LatencyMeanS => (calls > 0).then(|| total_s / calls as f64)?,
            Metric::LatencyTotalS => total_s,
            Metric::Ios => moved.iter().map(|d| d.total_ios).sum::<u64>() as f64,
            _ => return None,
        })
    }
}

/// Some of the jobs of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Jobs {
    /// Those of one reporting group; all if none.
    pub group: Option<u32>,
    /// Those of one section of the job file; all if none.
    pub section: Option<String>,
}

impl Jobs {
    fn wants(&self, j: &JobResult) -> bool {
        self.group.is_none_or(|g| g == j.job.group)
            && self.section.as_ref().is_none_or(|s| *s == j.job.section)
    }
}

/// Whose figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Of jobs, in one direction.
    Jobs(Jobs, Ddir),
    /// Of bios of the trace.
    Bios(BioFilter),
}

impl Subject {
    /// In words.
    pub fn text(&self) -> String {
        match self {
            Subject::Jobs(jobs, dir) => {
                let of = jobs.section.as_ref().map(|s| format!(" of {s}"));
                format!("{}{}", dir.name(), of.unwrap_or_default())
            }
            Subject::Bios(f) => {
                let sync = f.sync.map(|s| if s { "sync" } else { "async" });
                let op =
                    f.op.map_or("bios".to_owned(), |op| format!("{op:?}s").to_lowercase());
                let of = f.process.as_ref().map(|p| format!("of {p}"));
                let size = f.sectors.map(|n| format!("of {n} sectors"));
                let words = [sync.map(str::to_owned), Some(op), size, of];
                words.into_iter().flatten().collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// A figure of it; none if a run has none. `watched`: by the filters of
    /// the run.
    pub(super) fn value(
        &self,
        metric: Metric,
        run: &RunOutput,
        filters: &[BioFilter],
    ) -> Option<f64> {
        match self {
            Subject::Bios(filter) => {
                let i = filters.iter().position(|f| f == filter)?;
                metric.of_bios(run.watched.get(i)?)
            }
            Subject::Jobs(jobs, dir) => metric.of_jobs(jobs, run).or_else(|| {
                let wanted = run.jobs.iter().filter(|j| jobs.wants(j));
                let all: Vec<&DirStat> = wanted.map(|j| j.stat.dir(*dir)).collect();
                metric.of_directions(&all)
            }),
        }
    }
}
