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

mod between;
mod decisions;
mod measured;
mod on_kernel;

pub use between::FioBetween;
pub use decisions::Decisions;
pub use measured::Variation;
pub use on_kernel::run_fio_case_on_kernel;

use super::measured_on::LINUX_6_1;
use blklab::analysis::Spread;
use blklab::metric::{self, Numbers};
use blklab::run::{Collect, RunOptions, RunOutput, run};
use blklab::targets::{Planner, Sim};
use blklab_experiment::Experiment;
use blklab_fiostat::Ddir;
use blklab_types::Error;
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

    /// A case that runs, of which nothing is compared yet.
    fn begun(e: &Experiment) -> FioReport {
        FioReport {
            id: e.id.clone(),
            scheduler: e.scheduler.clone(),
            kernel: e.kernel.to_string(),
            skipped: None,
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
    (!values.is_empty()).then(|| Spread::new(values).median)
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
    /// Kernel release of the cases; empty of those that were not read.
    pub kernel: String,
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
    fn new(kernel: &str, scheduler: &str, reports: &[&FioReport]) -> FioSummary {
        let count = |f: &dyn Fn(&FioReport) -> bool| reports.iter().filter(|r| f(r)).count();
        let figures = || reports.iter().flat_map(|r| &r.figures);
        FioSummary {
            kernel: kernel.to_owned(),
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

    /// The totals of each scheduler on each kernel, then of all on it; with several
    /// kernels, of all last. None of no cases.
    pub fn all(reports: &[FioReport]) -> Vec<FioSummary> {
        if reports.is_empty() {
            return Vec::new();
        }
        let mut all = Vec::new();
        let kernels = kernels(reports);
        for kernel in &kernels {
            let own = reports.iter().filter(|r| r.kernel == *kernel);
            let own: Vec<&FioReport> = own.collect();
            for name in schedulers(reports) {
                let rows = own.iter().copied().filter(|r| r.scheduler == name);
                let rows: Vec<&FioReport> = rows.collect();
                if !rows.is_empty() {
                    all.push(FioSummary::new(kernel, name, &rows));
                }
            }
            if kernels.len() > 1 {
                all.push(FioSummary::new(kernel, "all", &own));
            }
        }
        let kernel = match kernels[..] {
            [only] => only,
            _ => "all",
        };
        let every: Vec<&FioReport> = reports.iter().collect();
        all.push(FioSummary::new(kernel, "all", &every));
        all
    }
}

/// The kernels of the cases that were read, in the order in which they come.
fn kernels(reports: &[FioReport]) -> Vec<&str> {
    let mut all: Vec<&str> = Vec::new();
    for report in reports.iter().filter(|r| !r.kernel.is_empty()) {
        if !all.contains(&report.kernel.as_str()) {
            all.push(&report.kernel);
        }
    }
    all
}

/// The schedulers of the cases that were read, by name.
fn schedulers(reports: &[FioReport]) -> Vec<&str> {
    let mut names: Vec<&str> = reports.iter().map(|r| r.scheduler.as_str()).collect();
    names.retain(|name| !name.is_empty());
    names.sort_unstable();
    names.dedup();
    names
}

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
) -> Result<FioReport, Error> {
    let results = results_of(case, results);
    let beside = results.parent().unwrap_or(Path::new("")).to_path_buf();
    let catalogue = blklab_sim::catalogue();
    let mut e = blklab_experiment::load(case, &catalogue)?;
    let mut report = FioReport::begun(&e);
    let measured = measured::jobs(&results.join(format!("{}.json", e.id)))?;
    let variation = Variation::read(&beside)?;
    if let Err(err) = e.check(&catalogue) {
        report.skipped = Some(err.what);
        return Ok(report);
    }
    let planner = Planner::new(Sim::default());
    let Some(text) = planner.jobs(&e)? else {
        let what = "no fio job: a case of fio has 'job' or 'job_file'";
        return Err(e.locate(Error::new(what)));
    };
    let jobs = &text.jobs.jobs;
    e.vm.io_cost_ns = cpu_cost_ns.or(e.vm.io_cost_ns);
    LINUX_6_1.give(&mut e, jobs);
    if let Some(trace) = decisions::trace_of(&beside.join("traces"), &e.id) {
        report.decisions = Some(decisions::compare(&e, jobs, &trace)?);
    }
    outcome(&e, &measured, &variation, stop, &mut report)?;
    Ok(report)
}

/// Runs the jobs and compares fio's figures.
fn outcome(
    e: &Experiment,
    measured: &[measured::Job],
    variation: &Variation,
    stop: &Arc<AtomicBool>,
    report: &mut FioReport,
) -> Result<(), Error> {
    let options = RunOptions {
        stop: Arc::clone(stop),
        collect: Collect::Watches,
        ..RunOptions::default()
    };
    let planner = Planner::new(Sim::default());
    let output = match planner.plan(e).and_then(|p| run(&p, &options)) {
        Ok(output) => output,
        Err(err) => {
            report.skipped = Some(err.what);
            return Ok(());
        }
    };
    if output.interrupted {
        return Err(Error::interrupted());
    }
    figures(e, &output, measured, variation, report)
}

/// Compares the figures of a run with the measured ones.
fn figures(
    e: &Experiment,
    output: &RunOutput,
    measured: &[measured::Job],
    variation: &Variation,
    report: &mut FioReport,
) -> Result<(), Error> {
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
        return Err(e.locate(Error::new(what)));
    }
    let wanted = FIGURES.map(|f| metric::find(f).expect("a metric"));
    let (mut here, mut there) = (0.0, 0.0);
    for (n, (job, result)) in measured.iter().zip(&output.jobs).enumerate() {
        for direction in &job.directions {
            let at = DIRECTIONS.iter().position(|rw| *rw == direction.rw);
            let dir = Ddir::ALL[at.unwrap_or(0)];
            let numbers = Numbers::new([result], Some(dir));
            let simulated = wanted.map(|w| {
                let value = w.metric.of_jobs(&numbers);
                value.map_or(0.0, |v| w.convert(v))
            });
            here += simulated[0];
            there += direction.values[0].unwrap_or(0.0);
            for (i, w) in wanted.iter().enumerate() {
                let Some(measured) = direction.values[i].filter(|v| *v > 0.0) else {
                    continue;
                };
                let ratio = simulated[i] / measured;
                let band = variation.band(&e.id, n, direction.rw, i);
                report.figures.push(FioFigure {
                    job: job.name.clone(),
                    n,
                    rw: direction.rw,
                    name: w.metric.title,
                    unit: w.unit.text(),
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
