// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs: plans carried out side by side, and what came out of each.

use crate::errors::{raise, refuse};
use crate::json::{python_of, to_python};
use crate::plan::{Plan, Planned};
use crate::scheduler::with_schedulers;
use crate::table::{Cells, Table, table};
use crate::trace::{answer, rows_of, rows_of_run, table_of};
use crate::waiting::wait_for;
use blklab::findings::Search;
use blklab::job_rows::{JobRow, job_rows};
use blklab::metric::{DISK, DiskNumbers, JOBS};
use blklab::record::RunRecord;
use blklab::run::{Collect, RunOptions, RunOutput};
use blklab::run_directory::{self, Contents, EVENTS};
use blklab::targets;
use blklab::types::Error;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What came out of an experiment. Its events are not kept: they are made again when they are
/// asked for, bit for bit the same.
#[pyclass(frozen, module = "blklab._native")]
pub(crate) struct Run {
    planned: Arc<Planned>,
    output: RunOutput,
}

/// Runs plans, at most `threads` at a time; what came out is in their order. `collect` is
/// `statistics`, or `totals` without the statistics of the events.
#[pyfunction]
pub(crate) fn run(
    py: Python<'_>,
    plans: Vec<PyRef<'_, Plan>>,
    threads: Option<usize>,
    collect: &str,
) -> PyResult<Vec<Run>> {
    let collect = match collect {
        "statistics" => Collect::Statistics,
        "totals" => Collect::Totals,
        other => {
            let known = ["statistics", "totals"];
            return Err(refuse(blklab::types::no_such("collect", other, &known)));
        }
    };
    let plans: Vec<Arc<Planned>> = plans.iter().map(|p| Arc::clone(&p.inner)).collect();
    let threads = threads.unwrap_or_else(blklab::parallel::cores).max(1);
    let memory: Vec<_> = plans
        .iter()
        .map(|p| p.plan.needs().memory.clone())
        .collect();
    blklab::targets::memory::check(&memory, threads).map_err(raise)?;
    let stop = Arc::new(AtomicBool::new(false));
    let options = RunOptions {
        stop: Arc::clone(&stop),
        collect,
        has_idle_core: threads >= 2 * plans.len(),
        ..RunOptions::default()
    };
    let outputs = wait_for(py, &stop, || run_all(&plans, threads, &options))?;
    let runs = plans.into_iter().zip(outputs?);
    let runs = runs.map(|(planned, output)| Run { planned, output });
    Ok(runs.collect())
}

fn run_all(
    plans: &[Arc<Planned>],
    threads: usize,
    options: &RunOptions,
) -> Result<Vec<RunOutput>, Failed> {
    for planned in plans {
        let made = planned.plan.prepare(&options.stop, &mut |_| {});
        made.map_err(|e| planned.plan.experiment().locate(e))?;
    }
    let length = |planned: &Arc<Planned>| blklab::meter::length(&planned.plan);
    let outputs = blklab::parallel::map_longest_first(plans, threads, length, |planned| {
        if options.stop.load(Ordering::Relaxed) {
            return Err(Error::interrupted().into());
        }
        let ran = run_one(&planned.plan, options);
        if ran.is_err() {
            // Nobody waits for the others' results any more.
            options.stop.store(true, Ordering::Relaxed);
        }
        ran
    });
    let mut done = Vec::new();
    let mut stopped = None;
    for output in outputs {
        match output {
            Ok(output) => done.push(output),
            // What failed says more than those that were stopped by it.
            Err(Failed::Blklab(e)) if e == Error::interrupted() => stopped = Some(e),
            Err(failed) => return Err(failed),
        }
    }
    match stopped {
        Some(error) => Err(error.into()),
        None => Ok(done),
    }
}

/// Why a run has no result: what blklab says, or what a scheduler of the user's has raised.
pub(crate) enum Failed {
    Blklab(Error),
    Python(PyErr),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed::Blklab(error)
    }
}

impl From<Failed> for PyErr {
    fn from(failed: Failed) -> PyErr {
        match failed {
            Failed::Blklab(error) => raise(error),
            Failed::Python(error) => error,
        }
    }
}

/// Runs a plan.
///
/// # Errors
/// If the target or a scheduler fails.
pub(crate) fn run_one(plan: &targets::Plan, options: &RunOptions) -> Result<RunOutput, Failed> {
    let ran = with_schedulers(&options.stop, || blklab::run::run(plan, options));
    let ran = ran.map_err(Failed::Python)?;
    Ok(ran.map_err(|e| plan.experiment().locate(e))?)
}

/// The rows of some runs' jobs as a table: who they are, then every metric.
pub(crate) fn jobs_table(rows: &[JobRow]) -> PyResult<Table> {
    let text = |f: &dyn Fn(&JobRow) -> Option<String>| Cells::Texts(rows.iter().map(f).collect());
    let mut columns = vec![
        ("level".to_owned(), text(&|r| Some(r.level.to_owned()))),
        (
            "group".to_owned(),
            Cells::Ints(rows.iter().map(|r| r.group.map(i64::from)).collect()),
        ),
        ("job".to_owned(), text(&|r| r.job.clone())),
        ("cgroup".to_owned(), text(&|r| r.cgroup.clone())),
        (
            "direction".to_owned(),
            text(&|r| Some(r.direction.to_owned())),
        ),
        (
            "jobs".to_owned(),
            Cells::Ints(
                rows.iter()
                    .map(|r| i64::try_from(r.numbers.jobs).ok())
                    .collect(),
            ),
        ),
    ];
    columns.extend(JOBS.iter().map(|metric| {
        let values = rows.iter().map(|r| metric.of_jobs(&r.numbers));
        (metric.column(), Cells::Floats(values.collect()))
    }));
    table(columns)
}

#[pymethods]
impl Run {
    /// What ran.
    #[getter]
    fn plan(&self) -> Plan {
        let inner = Arc::clone(&self.planned);
        Plan { inner }
    }

    /// Digest of all events: 16 hexadecimal digits.
    #[getter]
    fn digest(&self) -> String {
        format!("{:016x}", self.output.digest.value())
    }

    /// Virtual time at the end, in ns.
    #[getter]
    fn end_ns(&self) -> u64 {
        self.output.end.0
    }

    /// What a reader of the result should know.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.output.notes.clone()
    }

    /// The `blklab` object of `result.json`.
    fn record<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        python_of(py, &RunRecord::new(&self.planned.cell, &self.output))
    }

    /// The result as fio's JSON with its bins and the `blklab` object.
    fn fio_json<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let result = blklab::report::fio_result(&self.planned.cell, &self.output);
        to_python(py, &result.to_json(true))
    }

    /// Metrics of the disks, by column.
    fn disk(&self) -> Vec<(String, Option<f64>)> {
        let numbers = DiskNumbers::new(&self.output);
        let value = |m: &blklab::metric::Metric| (m.column(), m.of_disk(&numbers));
        DISK.iter().map(value).collect()
    }

    /// One row for the jobs of each name in each direction, with every metric.
    fn jobs(&self) -> PyResult<Table> {
        jobs_table(&job_rows(&self.output))
    }

    /// Statistics of the event stream.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        python_of(py, &self.output.stats)
    }

    /// A row for each event, bio or request (`rows`: events, bios, ios), by running it again.
    fn table(&self, py: Python<'_>, rows: &str) -> PyResult<Table> {
        let rows = rows_of(rows)?;
        let planned = &self.planned;
        let stop = Arc::new(AtomicBool::new(false));
        let batches = wait_for(py, &stop, || {
            with_schedulers(&stop, || {
                rows_of_run(&planned.plan, rows, Arc::clone(&stop))
            })
        })??;
        Ok(table_of(rows, batches.map_err(raise)?))
    }

    /// What made somebody wait, as `blklab why --format json` says it, and the findings, a row
    /// each.
    fn why<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Table)> {
        answer(py, &self.report(py)?)
    }

    /// Writes a run directory, as `blklab run --out` does: what ran, what came out, the trace.
    fn save(&self, py: Python<'_>, dir: PathBuf) -> PyResult<()> {
        let stop = Arc::new(AtomicBool::new(false));
        Ok(wait_for(py, &stop, || save(&self.planned, &dir, &stop))??)
    }
}

impl Run {
    fn report(&self, py: Python<'_>) -> PyResult<blklab::findings::Report> {
        let plan = &self.planned.plan;
        let stop = Arc::new(AtomicBool::new(false));
        let report = wait_for(py, &stop, || {
            let context = blklab::why::context_of(plan.experiment(), plan.catalogue())?;
            let sink = blklab::trace::NullSink;
            let why = with_schedulers(&stop, || {
                let search = Search::all(context);
                blklab::why::why_of_run(plan, search, sink, Arc::clone(&stop))
            });
            let (report, _, _) = why.map_err(Failed::Python)??;
            Ok::<_, Failed>(report)
        })?;
        Ok(report?)
    }
}

/// Runs a plan into a run directory.
fn save(planned: &Planned, dir: &Path, stop: &Arc<AtomicBool>) -> Result<(), Failed> {
    let contents = Contents::new(&planned.plan)?;
    run_directory::check(dir, &contents)?;
    blklab::outputs::make_folder(dir)?;
    let options = RunOptions {
        traces: vec![dir.join(EVENTS)],
        stop: Arc::clone(stop),
        counters: true,
        ..RunOptions::default()
    };
    let output = run_one(&planned.plan, &options)?;
    Ok(run_directory::write(
        dir,
        &contents,
        &planned.cell,
        &output,
    )?)
}
