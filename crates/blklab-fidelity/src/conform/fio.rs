// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measured fio jobs on a multi-queue kernel: does the model decide as the
//! kernel did, and does a job come out as it did there?
//!
//! A case is an experiment file `cases/ID.toml` with a fio job;
//! `results/ID.json` beside its folder holds what fio reported, and
//! `traces/ID.blktrace.0.zst`, for some, every block event. Two comparisons:
//!
//! - [`Decisions`]: the recorded bios and completions drive the model's block
//!   layer and scheduler, and the dispatch orders are compared.
//! - Outcome: the job runs on the model of the device, and each figure of fio
//!   is compared: [`FioFigure`].

mod decisions;
mod diff;
mod measured;

pub use decisions::Decisions;
pub use measured::Variation;

use blklab::job::{job_file_of, parse_jobs};
use blklab::run::{RunOptions, run};
use blklab::summary::Spread;
use blklab_experiment::{Experiment, ExperimentError};
use blklab_fio::job::Job;
use blklab_fiostat::{Ddir, DirStat};
use measured::{DIRECTIONS, FIGURES};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Outcome of one case.
#[derive(Clone, Debug, Serialize)]
pub struct FioReport {
    /// Name of the case.
    pub id: String,
    /// Scheduler.
    pub scheduler: String,
    /// Kernel release.
    pub kernel: String,
    /// Why it did not run.
    pub skipped: Option<String>,
    /// Dispatch orders; none if no trace was recorded.
    pub decisions: Option<Decisions>,
    /// Figures of the jobs, in fio's order.
    pub figures: Vec<FioFigure>,
    /// Bytes per second of all jobs and directions over the measured ones.
    pub bandwidth_ratio: Option<f64>,
}

impl FioReport {
    /// A case that did not run.
    pub fn not_run(case: &Path, why: String) -> FioReport {
        let id = case.file_stem().unwrap_or_default().to_string_lossy();
        FioReport {
            id: id.into_owned(),
            scheduler: String::new(),
            kernel: String::new(),
            skipped: Some(why),
            decisions: None,
            figures: Vec::new(),
            bandwidth_ratio: None,
        }
    }

    /// Whether everything that was compared agrees.
    pub fn agrees(&self) -> bool {
        self.decisions.as_ref().is_none_or(|d| d.identical) && self.outside().next().is_none()
    }

    /// The figures that are outside of their bands, the furthest off first.
    pub fn outside(&self) -> impl Iterator<Item = &FioFigure> {
        let mut all: Vec<&FioFigure> = self.figures.iter().filter(|f| !f.within).collect();
        all.sort_by(|a, b| b.error().total_cmp(&a.error()));
        all.into_iter()
    }

    /// Median over the figures of the ratio's distance from 1.
    pub fn median_error(&self) -> Option<f64> {
        median(self.figures.iter().map(FioFigure::error).collect())
    }
}

/// The middle one of some values.
fn median(values: Vec<f64>) -> Option<f64> {
    (!values.is_empty()).then(|| Spread::of(values).median)
}

/// One figure of one job and direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FioFigure {
    /// Name of the job.
    pub job: String,
    /// Its place in fio's list, from 0: copies have the same name.
    pub n: usize,
    /// read, write or trim.
    pub rw: &'static str,
    /// What it is.
    pub name: &'static str,
    /// Unit of both values.
    pub unit: &'static str,
    /// Measured.
    pub measured: f64,
    /// Here.
    pub simulated: f64,
    /// What is here over what was measured.
    pub ratio: f64,
    /// The ratios that count as agreement; see [`Variation`].
    pub band: [f64; 2],
    /// Whether it is one of them.
    pub within: bool,
}

impl FioFigure {
    /// Distance of the ratio from 1.
    pub fn error(&self) -> f64 {
        (self.ratio - 1.0).abs()
    }
}

/// Totals over cases.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FioSummary {
    /// Whose cases: a scheduler, or all.
    pub scheduler: String,
    /// Cases.
    pub cases: usize,
    /// Cases that did not run.
    pub skipped: usize,
    /// Cases with a recorded trace.
    pub traced: usize,
    /// Of those, with the same dispatch order.
    pub identical: usize,
    /// Figures compared.
    pub figures: usize,
    /// Figures outside of their bands.
    pub outside: usize,
    /// Median over the figures of the ratio's distance from 1.
    pub median_error: Option<f64>,
}

impl FioSummary {
    fn of(scheduler: &str, reports: &[&FioReport]) -> FioSummary {
        let count = |f: &dyn Fn(&FioReport) -> bool| reports.iter().filter(|r| f(r)).count();
        let figures = || reports.iter().flat_map(|r| &r.figures);
        FioSummary {
            scheduler: scheduler.to_owned(),
            cases: reports.len(),
            skipped: count(&|r| r.skipped.is_some()),
            traced: count(&|r| r.decisions.is_some()),
            identical: count(&|r| r.decisions.as_ref().is_some_and(|d| d.identical)),
            figures: figures().count(),
            outside: figures().filter(|f| !f.within).count(),
            median_error: median(figures().map(FioFigure::error).collect()),
        }
    }

    /// The totals of each scheduler, then of all; none of no cases.
    pub fn all(reports: &[FioReport]) -> Vec<FioSummary> {
        if reports.is_empty() {
            return Vec::new();
        }
        let mut names: Vec<&str> = reports.iter().map(|r| r.scheduler.as_str()).collect();
        names.retain(|name| !name.is_empty());
        names.sort_unstable();
        names.dedup();
        let of = |name: &str| {
            let own = reports.iter().filter(|r| r.scheduler == name);
            FioSummary::of(name, &own.collect::<Vec<_>>())
        };
        let mut all: Vec<FioSummary> = names.into_iter().map(of).collect();
        all.push(FioSummary::of("all", &reports.iter().collect::<Vec<_>>()));
        all
    }
}

/// Processor time of one I/O in fio on the measuring machine, in ns: what a
/// random read of 4 KiB takes beside its latency (cases `cpu-n0-*` and
/// `rr1x1-n500q4-*`: 1.6 to 1.9 us with every scheduler).
const IO_COST_NS: u32 = 1700;

/// Time of an interrupt of the device, in ns: what a read takes more with a
/// scheduler on a device that interrupts than on one that completes at once, where
/// tasks change as often (mean clat of `rr1x1-n500q4-*`, less its 500 us, and of
/// `cpu-n0-*`: 1.55 to 1.91 us).
const INTERRUPT_COST_NS: u32 = 1800;

/// Time of a change of tasks, in ns: what a read without a scheduler takes more on
/// a device that interrupts than on one that completes at once, where nobody
/// sleeps, less the interrupt.
const SWITCH_COST_NS: u32 = 2250;

/// Processor time of one I/O in its system call, in ns: mean clat of
/// `cpu-n0-none`, where nobody sleeps.
const CALL_COST_NS: u32 = 4550;

/// Processor time of a request that passes a scheduler, by scheduler, in ns: mean
/// clat of the cases `rr1x1-n500q4-*`, less the device's 500 us, the call, an
/// interrupt and two changes of tasks.
const DISPATCH_COST_NS: [(&str, u32); 3] = [("mq-deadline", 3200), ("kyber", 3300), ("bfq", 5450)];

/// Processor time of a page of 4 KiB that null_blk copies with `memory_backed`, in
/// ns: what the fastest direct read of `ext4mix-n1mmem-mqd` takes more than the
/// device's 1 ms and the times of `rr1x1-n500q4-mqd`, less 2 us for the filesystem.
const DRIVER_COPY_NS: u32 = 6000;

/// Processor time of a page that is written from the page cache to the disk, in ns:
/// as much as a bio of one page that is merged, of 16 in a system call (mean slat
/// of `merge-n500q4-none`, 65.6 us, less 7.5 times 1.7 us in fio).
const WRITEOUT_COST_NS: u32 = 3300;

/// Processor time of fio's main process every 10 ms, in ns, and as much more for
/// each job: every 10.06 ms an I/O comes later, with a change of tasks by 15.3 us in the trace
/// of one job, 15.8 of two, 18.1 of four (`rr1x1-n500q4-none`,
/// `seqrw-s200q32-mqd`, `stride-s1mq1-mqd`).
const LOOK_COST_NS: [u32; 2] = [12_200, 900];

/// Processor time of one completion of an asynchronous I/O, in ns: at depth 32
/// a read takes about 9 us without a scheduler, 6.4 us at depth 1 with a
/// synchronous call (README of the measurements).
const REAP_COST_NS: u32 = 2600;

/// Processor time of a page that a job reads or writes through the page cache,
/// beside its copying, in ns: with it a cached read of 4 KiB takes 5.8 us (median
/// clat of `bufr2-d31-mqd`) and a write of 64 KiB 206 us (`bufw-s200q32-mqd`).
const PAGE_COST_NS: [u32; 2] = [3100, 10_200];

/// From the start of a job to that of the next, in ns: in the recorded traces the
/// first bios of jobs come 0.28 to 0.63 ms apart, recording them included.
const JOB_START_NS: u32 = 400_000;

/// The folders of a case's measurements: beside its own folder unless
/// `results` says where they are.
fn results_of(case: &Path, results: Option<&Path>) -> PathBuf {
    results.map_or_else(
        || case.parent().unwrap_or(Path::new("")).join("../results"),
        Path::to_path_buf,
    )
}

/// Whether a case is one of fio: `results/ID.json` holds what fio reported.
pub fn is_fio(case: &Path, results: Option<&Path>) -> bool {
    let id = case.file_stem().unwrap_or_default().to_string_lossy();
    results_of(case, results)
        .join(format!("{id}.json"))
        .is_file()
}

/// Runs one case both ways. A case that the model cannot run is a skip, not an
/// error. `cpu_cost_ns` is the processor time of one I/O in fio, in place of the
/// measuring machine's.
///
/// # Errors
/// If the case or its measurements cannot be read or make no sense.
pub fn run_fio_case(
    case: &Path,
    results: Option<&Path>,
    cpu_cost_ns: Option<u32>,
    stop: &Arc<AtomicBool>,
) -> Result<FioReport, ExperimentError> {
    let results = results_of(case, results);
    let beside = results.parent().unwrap_or(Path::new("")).to_path_buf();
    let mut e = blklab_experiment::load(case)?;
    let mut report = FioReport {
        id: e.id.clone(),
        scheduler: e.scheduler.clone(),
        kernel: e.kernel.to_string(),
        skipped: None,
        ..FioReport::not_run(case, String::new())
    };
    let measured = measured::jobs(&results.join(format!("{}.json", e.id)))?;
    let variation = Variation::read(&beside)?;
    if let Err(err) = e.check() {
        report.skipped = Some(err.what);
        return Ok(report);
    }
    let jobs = match job_file_of(&e.workload) {
        Some((name, text)) => parse_jobs(&e, name, &text)?.jobs,
        None => {
            let what = "no fio job: a case of fio has 'job' or 'job_file'";
            return Err(ExperimentError::new(what).of(&e));
        }
    };
    e.vm.io_cost_ns = cpu_cost_ns.or(e.vm.io_cost_ns);
    as_measured(&mut e, &jobs);
    if let Some(trace) = decisions::trace_of(&beside.join("traces"), &e.id) {
        report.decisions = Some(decisions::compare(&e, &jobs, &trace)?);
    }
    outcome(&e, &measured, &variation, stop, &mut report)?;
    Ok(report)
}

/// What the measuring machine was like, unless the case says otherwise: one
/// processor, and its times.
fn as_measured(e: &mut Experiment, jobs: &[Job]) {
    e.vm.cpus.get_or_insert(1);
    e.vm.io_cost_ns.get_or_insert(IO_COST_NS);
    e.vm.job_start_ns.get_or_insert(JOB_START_NS);
    let writes = |j: &Job| !j.settings.direct && j.settings.rw.writes;
    let page_cost = PAGE_COST_NS[usize::from(jobs.iter().any(writes))];
    e.vm.page_cost_ns.get_or_insert(page_cost);
    e.vm.switch_cost_ns.get_or_insert(SWITCH_COST_NS);
    e.vm.interrupt_cost_ns.get_or_insert(INTERRUPT_COST_NS);
    e.vm.reap_cost_ns.get_or_insert(REAP_COST_NS);
    let [look, per_job] = LOOK_COST_NS;
    let look = look + per_job * jobs.len() as u32;
    e.vm.look_cost_ns.get_or_insert(look);
    e.vm.call_cost_ns.get_or_insert(CALL_COST_NS);
    let of_scheduler = |(name, _): &&(&str, u32)| *name == e.scheduler;
    if let Some((_, cost)) = DISPATCH_COST_NS.iter().find(of_scheduler) {
        e.vm.dispatch_cost_ns.get_or_insert(*cost);
    }
    e.vm.driver_copy_ns.get_or_insert(DRIVER_COPY_NS);
    e.vm.writeout_cost_ns.get_or_insert(WRITEOUT_COST_NS);
}

/// Runs the jobs and compares fio's figures.
fn outcome(
    e: &Experiment,
    measured: &[measured::Job],
    variation: &Variation,
    stop: &Arc<AtomicBool>,
    report: &mut FioReport,
) -> Result<(), ExperimentError> {
    let options = RunOptions {
        stop: Arc::clone(stop),
        only_watches: true,
        ..RunOptions::default()
    };
    let output = match run(e, &options) {
        Ok(output) => output,
        Err(err) => {
            report.skipped = Some(err.what);
            return Ok(());
        }
    };
    if output.interrupted {
        return Err(ExperimentError::new(format!("{}: interrupted", e.id)));
    }
    let names = |mut all: Vec<&str>| {
        all.dedup();
        all.join(", ")
    };
    if output.jobs.len() != measured.len() {
        let what = format!(
            "the result has {} jobs ({}), the job file {} ({})",
            measured.len(),
            names(measured.iter().map(|j| j.name.as_str()).collect()),
            output.jobs.len(),
            names(output.jobs.iter().map(|j| j.job.name.as_str()).collect())
        );
        return Err(ExperimentError::new(what).of(e));
    }
    let (mut here, mut there) = (0.0, 0.0);
    for (n, (job, result)) in measured.iter().zip(&output.jobs).enumerate() {
        for direction in &job.directions {
            let at = DIRECTIONS.iter().position(|rw| *rw == direction.rw);
            let stat = result.stat.dir(Ddir::ALL[at.unwrap_or(0)]);
            let simulated = values(stat);
            here += simulated[0];
            there += direction.values[0].unwrap_or(0.0);
            for (i, (name, unit)) in FIGURES.into_iter().enumerate() {
                let Some(measured) = direction.values[i].filter(|v| *v > 0.0) else {
                    continue;
                };
                let ratio = simulated[i] / measured;
                let band = variation.band(&e.id, n, direction.rw, i);
                report.figures.push(FioFigure {
                    job: job.name.clone(),
                    n,
                    rw: direction.rw,
                    name,
                    unit,
                    measured,
                    simulated: simulated[i],
                    ratio,
                    band,
                    within: (band[0]..=band[1]).contains(&ratio),
                });
            }
        }
    }
    report.bandwidth_ratio = (there > 0.0).then(|| here / there);
    Ok(())
}

/// The values of [`FIGURES`].
fn values(d: &DirStat) -> [f64; 6] {
    let per_second = |n: u64| match d.runtime_ms {
        0 => 0.0,
        ms => n as f64 * 1e3 / ms as f64,
    };
    let clat = &d.clat;
    let list = [50.0, 95.0, 99.0];
    let percentiles = clat.hist.percentiles(&list, clat.stat.samples);
    let us = |i: usize| percentiles.get(i).map_or(0.0, |ns| *ns as f64 / 1e3);
    [
        per_second(d.io_bytes) / 1024.0,
        per_second(d.total_ios),
        us(0),
        us(1),
        us(2),
        clat.stat.max as f64 / 1e3,
    ]
}
