// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many runs of which only the metrics are wanted: a batch at a time, its results in one table.

use crate::errors::class_of;
use crate::experiment::Experiment;
use crate::plan::{Planned, Stack, told};
use crate::run::{Failed, run_one};
use crate::scheduler::schedulers;
use crate::table::{Cells, Table, table};
use crate::waiting::wait_for;
use blklab::job_rows::{JobRow, job_rows};
use blklab::matrix;
use blklab::metric::{DISK, DiskNumbers, JOBS};
use blklab::run::{Collect, RunOptions, RunOutput};
use blklab::targets;
use blklab::types::Error;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a point of a sweep came to.
struct Done {
    rows: Vec<JobRow>,
    /// Metrics of the disks and the digest, if the events were looked at.
    seen: Option<(DiskNumbers, u64)>,
    end_ns: u64,
    notes: Vec<String>,
}

/// A failed point: its place, the class of the exception, its text.
type Failure = (usize, String, String);

/// Runs points, each an experiment with a stack that names one value for everything, at most
/// `threads` at a time. Of the repetitions that a stack asks for a point is the last. The table has a row for each point (column `point`, from 0) and the
/// jobs of each name in each direction, with every metric of jobs and disks; the failures are
/// those that could not be planned or run. Without `events` there is neither a digest nor a
/// metric of the disks.
#[pyfunction]
#[pyo3(signature = (points, threads, bins = false, events = true))]
pub(crate) fn sweep(
    py: Python<'_>,
    points: Vec<(PyRef<'_, Experiment>, Stack)>,
    threads: usize,
    bins: bool,
    events: bool,
) -> PyResult<(Table, Vec<Failure>)> {
    let points: Vec<_> = points
        .into_iter()
        .map(|(e, s)| (e.value.clone(), s))
        .collect();
    let own = schedulers();
    let stop = Arc::new(AtomicBool::new(false));
    let done = wait_for(py, &stop, || {
        let planner = targets::planner(own);
        let planned: Vec<Result<Planned, Error>> = points
            .iter()
            .map(|(e, stack)| plan_one(e, stack, &planner))
            .collect();
        let length =
            |p: &Result<Planned, Error>| p.as_ref().map_or(0, |p| blklab::meter::length(&p.plan));
        blklab::parallel::map_longest_first(&planned, threads.max(1), length, |planned| {
            let planned = planned.as_ref().map_err(|e| Failed::from(e.clone()))?;
            one(planned, events, &stop)
        })
    })?;
    let mut failures = Vec::new();
    let mut all = Vec::new();
    for (place, done) in done.into_iter().enumerate() {
        match done {
            Ok(done) => all.push((place, done)),
            Err(Failed::Blklab(e)) => {
                failures.push((place, class_of(e.kind).to_owned(), e.to_string()));
            }
            Err(Failed::Python(e)) => {
                let class = e.get_type(py).name()?.to_string();
                failures.push((place, class, e.value(py).to_string()));
            }
        }
    }
    Ok((rows(&all, bins)?, failures))
}

/// The plan of the last repetition of a point, which is the one that it stands for.
fn plan_one(
    e: &blklab::experiment::Experiment,
    stack: &Stack,
    planner: &targets::Planner,
) -> Result<Planned, Error> {
    let overrides = stack.overrides()?;
    let cells = matrix::expand(std::slice::from_ref(e), &overrides, planner);
    let mut cells = cells.map_err(|refused| told(refused, &overrides))?;
    let one = u32::try_from(cells.len()) == Ok(overrides.repeat);
    let (Some(cell), true) = (cells.pop(), one) else {
        let text = "a point of a sweep is one experiment, not several";
        return Err(Error::new(text));
    };
    let plans = matrix::plans(std::slice::from_ref(&cell), &overrides, planner);
    let mut plans = plans.map_err(|refused| told(refused, &overrides))?;
    let plan = plans.pop().expect("a cell has a plan");
    Ok(Planned { cell, plan })
}

fn one(planned: &Planned, events: bool, stop: &Arc<AtomicBool>) -> Result<Done, Failed> {
    if stop.load(Ordering::Relaxed) {
        return Err(Error::interrupted().into());
    }
    planned.plan.prepare(stop, &mut |_| {})?;
    let collect = match Collect::metrics(&planned.plan) {
        Collect::Totals if !events => Collect::Watches,
        needed => needed,
    };
    let options = RunOptions {
        stop: Arc::clone(stop),
        collect,
        ..RunOptions::default()
    };
    let output: RunOutput = run_one(&planned.plan, &options)?;
    if output.interrupted {
        return Err(Error::interrupted().into());
    }
    Ok(Done {
        rows: job_rows(&output),
        seen: (collect != Collect::Watches)
            .then(|| (DiskNumbers::new(&output), output.digest.value())),
        end_ns: output.end.0,
        notes: output.notes,
    })
}

fn rows(all: &[(usize, Done)], bins: bool) -> PyResult<Table> {
    let each = || {
        all.iter()
            .flat_map(|(place, done)| done.rows.iter().map(move |row| (*place, done, row)))
    };
    let int = |n: u64| i64::try_from(n).ok();
    let text = |f: &dyn Fn(&Done, &JobRow) -> Option<String>| {
        Cells::Texts(each().map(|(_, done, row)| f(done, row)).collect())
    };
    let ints = |f: &dyn Fn(usize, &Done, &JobRow) -> Option<i64>| {
        Cells::Ints(
            each()
                .map(|(place, done, row)| f(place, done, row))
                .collect(),
        )
    };
    let mut columns = vec![
        (
            "point".to_owned(),
            ints(&|place, _, _| i64::try_from(place).ok()),
        ),
        ("level".to_owned(), text(&|_, r| Some(r.level.to_owned()))),
        ("job".to_owned(), text(&|_, r| r.job.clone())),
        ("cgroup".to_owned(), text(&|_, r| r.cgroup.clone())),
        (
            "direction".to_owned(),
            text(&|_, r| Some(r.direction.to_owned())),
        ),
        (
            "jobs".to_owned(),
            ints(&|_, _, r| i64::try_from(r.numbers.jobs).ok()),
        ),
        ("end_ns".to_owned(), ints(&|_, done, _| int(done.end_ns))),
        (
            "digest".to_owned(),
            text(&|done, _| {
                done.seen
                    .as_ref()
                    .map(|(_, digest)| format!("{digest:016x}"))
            }),
        ),
        (
            "notes".to_owned(),
            text(&|done, _| Some(done.notes.join("\n"))),
        ),
    ];
    columns.extend(JOBS.iter().map(|metric| {
        let values = each().map(|(_, _, row)| metric.of_jobs(&row.numbers));
        (metric.column(), Cells::Floats(values.collect()))
    }));
    columns.extend(DISK.iter().map(|metric| {
        let values = each().map(|(_, done, _)| {
            done.seen
                .as_ref()
                .and_then(|(disk, _)| metric.of_disk(disk))
        });
        (metric.column(), Cells::Floats(values.collect()))
    }));
    if bins {
        let pairs = |row: &JobRow| serde_json::to_string(row.numbers.clat_bins()).ok();
        columns.push(("clat_bins".to_owned(), text(&|_, r| pairs(r))));
    }
    table(columns)
}
