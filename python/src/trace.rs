// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of whatever origin: their events, bios and requests as tables, their statistics,
//! what made somebody wait in them, and pages about them.

use crate::errors::{raise, refuse};
use crate::json::{python_of, to_python};
use crate::table::{Cells, Table, table};
use crate::waiting::wait_for;
use blklab::analysis::breakdown::{By, DetailCollector, FullStats, Wanted};
use blklab::findings::{Context, Report};
use blklab::run_directory::{RunDir, is_run, is_trace};
use blklab::tables::{Batches, RecordBatch, Rows};
use blklab::trace::{NullSink, TraceFile, TraceSink, send_all};
use blklab::types::Error;
use blklab_report::member::{self, Asked};
use blklab_report::{html, shown_max};
use pyo3::prelude::*;
use serde_json::Value;
use std::cell::RefCell;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Rows of a batch: a column of one takes half a megabyte.
const BATCH_ROWS: NonZeroUsize = NonZeroUsize::new(1 << 16).expect("a batch has rows");

/// A window of statistics: a second.
const WINDOW_NS: u64 = 1_000_000_000;

/// What rows are, by their name.
pub(crate) fn rows_of(name: &str) -> PyResult<Rows> {
    match name {
        "events" => Ok(Rows::Events),
        "bios" => Ok(Rows::Bios),
        "ios" => Ok(Rows::Ios),
        other => {
            let known = ["events", "bios", "ios"];
            Err(refuse(blklab::types::no_such(
                "kind of rows",
                other,
                &known,
            )))
        }
    }
}

/// Batches as they come.
type Gathered = Rc<RefCell<Vec<RecordBatch>>>;

/// Takes events, makes batches of rows.
fn gather(
    rows: Rows,
    into: &Gathered,
) -> Batches<impl FnMut(RecordBatch) -> io::Result<()> + 'static> {
    let into = Rc::clone(into);
    Batches::new(rows, BATCH_ROWS, move |batch| {
        into.borrow_mut().push(batch);
        Ok(())
    })
}

/// Rows of a run, made while it goes on.
///
/// # Errors
/// If the target fails.
pub(crate) fn rows_of_run(
    plan: &blklab::targets::Plan,
    rows: Rows,
    stop: Arc<AtomicBool>,
) -> Result<Vec<RecordBatch>, Error> {
    let into = Gathered::default();
    let sink = Rc::new(RefCell::new(Some(gather(rows, &into))));
    blklab::why::send_run(plan, Rc::clone(&sink), stop)?;
    // Tasks that still sleep hold the machine, and with it the sink.
    let batches = sink.borrow_mut().take().expect("nobody else takes it");
    batches.finish().map_err(|e| Error::new(e.to_string()))?;
    Ok(into.take())
}

/// A table of batches of these rows.
pub(crate) fn table_of(rows: Rows, batches: Vec<RecordBatch>) -> Table {
    Table::new(batches, blklab::tables::schema(rows))
}

/// A report for Python: as JSON has it, and its findings as a table.
pub(crate) fn answer<'py>(
    py: Python<'py>,
    report: &Report,
) -> PyResult<(Bound<'py, PyAny>, Table)> {
    Ok((python_of(py, report)?, findings_table(report)?))
}

/// The findings of a report, a row each.
fn findings_table(report: &Report) -> PyResult<Table> {
    let all = &report.findings;
    let names = |parties: &[blklab::findings::Party]| blklab::findings::parties(parties);
    let ints = |f: &dyn Fn(&blklab::findings::Finding) -> Option<u64>| {
        let value = |finding| f(finding).and_then(|n| i64::try_from(n).ok());
        Cells::Ints(all.iter().map(value).collect())
    };
    let texts = |f: &dyn Fn(&blklab::findings::Finding) -> Option<String>| {
        Cells::Texts(all.iter().map(f).collect())
    };
    let remedy = |f: &blklab::findings::Finding| f.remedies.first().map(ToString::to_string);
    let columns = [
        ("kind", texts(&|f| Some(f.kind.to_owned()))),
        ("dev", texts(&|f| Some(f.dev.to_string()))),
        (
            "confidence",
            texts(&|f| Some(f.confidence.word().to_owned())),
        ),
        ("what", texts(&|f| Some(f.what.clone()))),
        ("suffers", texts(&|f| Some(names(&f.victims)))),
        ("causes", texts(&|f| Some(names(&f.causes)))),
        ("cause", texts(&|f| f.cause.clone())),
        ("count", ints(&|f| Some(f.count))),
        ("total_ns", ints(&|f| f.total_ns)),
        ("worst_ns", ints(&|f| f.worst_ns)),
        ("change", texts(&remedy)),
    ];
    table(columns.map(|(name, cells)| (name.to_owned(), cells)).into())
}

/// Statistics, a report and the numbers of a reading.
type Survey<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Vec<(String, u64)>);

/// A recorded trace, or the run of a run directory. It is read each time that something is
/// asked of it: nothing of it stays in memory.
#[pyclass(frozen, module = "blklab._native")]
pub(crate) struct Trace {
    path: PathBuf,
    context: Vec<PathBuf>,
}

impl Trace {
    fn open(&self) -> Result<TraceFile, Error> {
        open(&self.path)
    }

    /// What is known of the machine beside the trace.
    fn known(&self) -> Result<Context, Error> {
        let catalogue = blklab::targets::catalogue();
        let mut context = Context::default();
        if !is_trace(&self.path) {
            let dir = RunDir::open(&self.path, &catalogue)?;
            context = blklab::why::context_of(&dir.experiment, &catalogue)?;
        }
        for path in &self.context {
            context.add(blklab::why::context_at(path, &catalogue)?);
        }
        Ok(context)
    }

    /// Reads it to its end without Python's lock.
    fn read<T: Send>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&Trace) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let stop = Arc::new(AtomicBool::new(false));
        wait_for(py, &stop, || read(self))?.map_err(raise)
    }
}

/// What made somebody wait in it; `also` sees all events.
fn report_of(trace: &Trace, input: &mut TraceFile, also: impl TraceSink) -> Result<Report, Error> {
    let report = blklab::why::why_and(input, trace.known()?, also);
    report.map_err(|e| Error::new(e.to_string()))
}

/// Statistics of everything.
fn collector() -> DetailCollector {
    let by = vec![By::Process, By::Direction, By::Size, By::Window(WINDOW_NS)];
    DetailCollector::new(&Wanted { by, queues: true })
}

fn collected(collector: DetailCollector) -> Result<Value, Error> {
    let (stats, details) = collector.finish();
    let full = serde_json::to_value(FullStats::new(&stats, &details));
    full.map_err(|e| Error::new(e.to_string()))
}

/// What a reader found, in numbers.
fn reading_of(input: &TraceFile) -> Vec<(String, u64)> {
    let counts = input.counts();
    let pairs = [
        ("lost", counts.lost),
        ("left_out", counts.left_out),
        ("damaged", counts.damaged),
        ("unknown", counts.unknown),
        ("foreign", counts.foreign),
        ("missing", counts.missing),
    ];
    pairs.map(|(name, n)| (name.to_owned(), n)).into()
}

fn open(path: &Path) -> Result<TraceFile, Error> {
    if is_trace(path) {
        TraceFile::open(path).map_err(|e| Error::new(e.to_string()))
    } else {
        RunDir::open(path, &blklab::targets::catalogue())?.events()
    }
}

#[pymethods]
impl Trace {
    /// A trace in any of the formats that blklab reads, or a run directory; `context` are files
    /// with what is known of the machine.
    #[new]
    #[pyo3(signature = (path, context = Vec::new()))]
    fn new(path: PathBuf, context: Vec<PathBuf>) -> PyResult<Trace> {
        let trace = Trace { path, context };
        // What is no trace is said at once.
        trace.open().map_err(raise)?;
        trace.known().map_err(raise)?;
        Ok(trace)
    }

    /// Where it is.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// A row for each event, bio or request (`rows`: events, bios, ios).
    fn table(&self, py: Python<'_>, rows: &str) -> PyResult<Table> {
        let rows = rows_of(rows)?;
        let batches = self.read(py, |trace| {
            let into = Gathered::default();
            let mut batches = gather(rows, &into);
            let sent = send_all(&mut trace.open()?, &mut batches);
            let sent = sent.and_then(|_| batches.finish());
            sent.map_err(|e| Error::new(e.to_string()))?;
            Ok(into.take())
        })?;
        Ok(table_of(rows, batches))
    }

    /// Statistics, as `blklab trace stats --format json` gives them.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let full = self.read(py, |trace| {
            let mut all = collector();
            let sent = send_all(&mut trace.open()?, &mut all);
            sent.map_err(|e| Error::new(e.to_string()))?;
            collected(all)
        })?;
        to_python(py, &full)
    }

    /// What made somebody wait, as `blklab why --format json` says it, and the findings, a row
    /// each.
    fn why<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Table)> {
        let report = self.read(py, |trace| report_of(trace, &mut trace.open()?, NullSink))?;
        answer(py, &report)
    }

    /// Its statistics, what made somebody wait, and what its reader found, of one reading.
    fn survey<'py>(&self, py: Python<'py>) -> PyResult<Survey<'py>> {
        let (stats, report, reading) = self.read(py, |trace| {
            let mut input = trace.open()?;
            let mut all = collector();
            let report = report_of(trace, &mut input, &mut all)?;
            Ok((collected(all)?, report, reading_of(&input)))
        })?;
        Ok((to_python(py, &stats)?, python_of(py, &report)?, reading))
    }

    /// What its reader found: its kind, and what it could not use, in numbers.
    fn reading(&self, py: Python<'_>) -> PyResult<Vec<(String, u64)>> {
        self.read(py, |trace| {
            let mut input = trace.open()?;
            let sent = send_all(&mut input, &mut NullSink);
            sent.map_err(|e| Error::new(e.to_string()))?;
            Ok(reading_of(&input))
        })
    }
}

/// One page about run directories and traces: pairs of a label and a path.
#[pyfunction]
pub(crate) fn report(py: Python<'_>, inputs: Vec<(String, PathBuf)>) -> PyResult<String> {
    if inputs.is_empty() {
        return Err(refuse("a report is about at least one run or trace"));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let page = wait_for(py, &stop, || {
        let shown = shown_max(inputs.len());
        let threads = blklab::parallel::cores();
        let members = blklab::parallel::map(&inputs, threads, |(label, path)| {
            member_of(label, path, shown)
        });
        let members = members.into_iter().collect::<Result<Vec<_>, Error>>()?;
        html::page(&blklab_report::Report::new(members)).map_err(|e| Error::new(e.to_string()))
    })?;
    page.map_err(raise)
}

fn member_of(
    label: &str,
    path: &Path,
    shown_max: usize,
) -> Result<blklab_report::model::Member, Error> {
    let catalogue = blklab::targets::catalogue();
    let source = path.display().to_string();
    let mut asked = Asked {
        label,
        source: &source,
        context: Context::default(),
        shown_max,
    };
    if is_run(path) {
        let run = RunDir::open(path, &catalogue)?;
        asked.context = blklab::why::context_of(&run.experiment, &catalogue)?;
        return member::of_run(&run, &mut run.events()?, asked, NullSink);
    }
    let member = member::of_trace(&mut open(path)?, asked, NullSink);
    member.map_err(|e| Error::new(e.to_string()))
}
