// SPDX-License-Identifier: MIT OR Apache-2.0
//! Running a plan: its events digested, analysed and, if wanted, written.

mod analysis;
mod beside;

use crate::beside::Beside;
use crate::counters::{CounterLog, CounterSeries};
use crate::disk_stats::DiskStats;
use crate::fingerprint::{Fingerprint, MergedQueues};
use crate::life_totals::LifeTotals;
use crate::meter::Meter;
use crate::trace_file::{Rows, TraceFormat, TraceOptions, TraceOut};
use analysis::Analysis;
use beside::Analyst;
use blklab_analysis::stats::TraceStats;
use blklab_analysis::watch::{BioFigures, BioFilter};
use blklab_experiment::Facts;
use blklab_fio::parse::JobFile;
use blklab_target::{CgroupUse, JobResult, Outcome, Plan, Pressure, Sinks};
use blklab_trace::{CounterSink, Digest, Event, TraceHeader, TraceSink};
use blklab_types::Error;
use blklab_types::{Dev, Pid, Time};
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What is made of the events of a run: the less, the less time it takes. Numbers
/// that are made are the same in each case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Collect {
    /// All there is: the digest, counters of the disks, statistics of the trace.
    #[default]
    Statistics,
    /// The same without the statistics, which stay empty: enough for the tables, the
    /// CSV and the figures of fio jobs.
    Totals,
    /// The figures that the options ask for; everything else stays empty.
    Watches,
}

impl Collect {
    /// What the metrics of jobs and disks take: explicit processes have theirs from the
    /// statistics of the trace.
    pub fn metrics(plan: &Plan) -> Collect {
        match plan.jobs() {
            Some(_) => Collect::Totals,
            None => Collect::Statistics,
        }
    }
}

/// What to do beside running.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Write the trace here; each ending chooses a format.
    pub traces: Vec<PathBuf>,
    /// What the rows of traces are that are tables; none: events.
    pub trace_rows: Option<Rows>,
    /// Set from outside to end the run early.
    pub stop: Arc<AtomicBool>,
    /// Bios to take figures of.
    pub watches: Vec<BioFilter>,
    /// What is made of the events.
    pub collect: Collect,
    /// Keep so many trace events in memory, from the first on.
    pub kept_events_max: usize,
    /// Report here how far the run is.
    pub meter: Option<Arc<Meter>>,
    /// Learn from the scheduler's messages whose queues it merged; writing them
    /// takes as much time as the rest of the run.
    pub merged_queues: bool,
    /// Sum up what tells whether another run is the same.
    pub fingerprint: bool,
    /// Keep counters of the page cache and of queues over time.
    pub counters: bool,
    /// A processor is idle: the events are analysed there, while the run goes on.
    /// What comes out is the same.
    pub has_idle_core: bool,
}

/// What came out of a run.
#[derive(Debug)]
#[non_exhaustive]
pub struct RunOutput {
    /// fio jobs in thread order; empty for explicit processes.
    pub jobs: Vec<JobResult>,
    /// Options of the job file's global sections.
    pub global_options: Vec<(String, String)>,
    /// What the experiment came to with its models.
    pub facts: Facts,
    /// Time at the end.
    pub end: Time,
    /// Milliseconds from 1970 to the beginning of the clock that times are by.
    pub epoch_ms: u64,
    /// Digest of the event stream.
    pub digest: Digest,
    /// What of the event stream is the same under every scheduler that does the
    /// same, if the options asked for it.
    pub fingerprint: Option<Fingerprint>,
    /// Whose queues the scheduler merged, if the options asked for it.
    pub merged_queues: MergedQueues,
    /// Statistics of the event stream, if they were collected.
    pub stats: TraceStats,
    /// Counters of the page cache and of queues over time, if the options asked for them.
    pub counters: Vec<CounterSeries>,
    /// Counters of the disks.
    pub disks: Vec<DeviceUse>,
    /// Counters of the array of them, if there is one.
    pub array: Option<DeviceUse>,
    /// Read-only files of the scheduler in sysfs at the end: name and text.
    pub sysfs: Vec<(String, String)>,
    /// What control groups came to; empty if there is nothing to tell.
    pub cgroups: Vec<CgroupUse>,
    /// How long the machine's tasks stood still for I/O, where that is counted.
    pub pressure: Option<Pressure>,
    /// What a reader of the result should know.
    pub notes: Vec<String>,
    /// Whether the run was ended from outside.
    pub interrupted: bool,
    /// Whether a second run gave the same digest.
    pub verified: bool,
    /// Trace files written.
    pub trace_files: Vec<PathBuf>,
    /// Figures of the bios that the options asked for, in that order.
    pub watched: Vec<BioFigures>,
    /// The first trace events, as many as the options asked for.
    pub events: Vec<Event>,
    /// Compared with the same experiment on another target, if there is one
    /// ([`crate::side_by_side`]).
    pub beside: Option<Beside>,
}

/// What a block device did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceUse {
    /// Its number in traces.
    pub dev: Dev,
    /// Its name: sda, md0.
    pub name: String,
    /// Its counters.
    pub stats: DiskStats,
    /// Sums over its bios.
    pub lives: LifeTotals,
}

/// Where the events of a run go.
struct Streams {
    analyst: Analyst,
    merged_queues: Option<MergedQueues>,
    fingerprint: Option<Fingerprint>,
    meter: Option<Arc<Meter>>,
    out: Vec<TraceOut>,
    /// Those that are kept.
    kept: Vec<Event>,
    /// How many that may be.
    kept_max: usize,
    /// Whether anybody but the analyst is told of events.
    has_others: bool,
}

impl Streams {
    /// What is seldom wanted.
    fn tell_others(&mut self, event: &Event) {
        if let Some(fingerprint) = &mut self.fingerprint {
            fingerprint.event(event);
        }
        if let Some(meter) = &self.meter {
            meter.event(event);
        }
        for out in &mut self.out {
            out.event(event);
        }
        if self.kept.len() < self.kept_max {
            self.kept.push(*event);
        }
    }
}

impl TraceSink for Streams {
    fn event(&mut self, event: &Event) {
        self.events(std::slice::from_ref(event));
    }

    fn events(&mut self, events: &[Event]) {
        self.analyst.events(events);
        if self.has_others {
            events.iter().for_each(|event| self.tell_others(event));
        }
    }

    fn wants_events(&self) -> bool {
        self.analyst.is_told() || self.has_others
    }

    fn message(&mut self, event: &Event, text: &str) {
        self.analyst.events(std::slice::from_ref(event));
        if let Some(merged) = &mut self.merged_queues {
            merged.message(text);
        }
        for out in &mut self.out {
            out.message(event, text);
        }
    }

    fn wants_messages(&self) -> bool {
        !self.out.is_empty() || self.merged_queues.is_some()
    }

    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        self.analyst.process(time, pid, comm);
        for out in &mut self.out {
            out.process(time, pid, comm);
        }
    }
}

/// Runs a plan.
///
/// # Errors
/// If a trace cannot be written: then none is left behind, not even in part. Or
/// if the target fails.
pub fn run(plan: &Plan, options: &RunOptions) -> Result<RunOutput, Error> {
    if let (Some(meter), Some(text)) = (&options.meter, plan.jobs()) {
        meter.begin(&text.jobs.jobs);
    }
    let has_others = options.fingerprint
        || options.meter.is_some()
        || !options.traces.is_empty()
        || options.kept_events_max > 0;
    let streams = Rc::new(RefCell::new(Streams {
        analyst: Analyst::new(Analysis::new(plan, options), options.has_idle_core),
        merged_queues: options.merged_queues.then(MergedQueues::default),
        fingerprint: options.fingerprint.then(Fingerprint::default),
        meter: options.meter.clone(),
        out: open_traces(plan, options)?,
        kept: Vec::new(),
        kept_max: options.kept_events_max,
        has_others,
    }));
    let counters = options
        .counters
        .then(|| Rc::new(RefCell::new(CounterLog::default())));
    let told = counters.clone();
    let sinks = Sinks {
        counters: told.map(|log| Box::new(log) as Box<dyn CounterSink>),
        ..Sinks::of_events(Box::new(Rc::clone(&streams)))
    };
    let outcome = plan.run(sinks, Arc::clone(&options.stop));
    // Tasks that still sleep hold the machine, and with it the sink.
    let mut streams = streams.borrow_mut();
    let traces = std::mem::take(&mut streams.out);
    let mut output = match outcome {
        Ok(outcome) => RunOutput::new(plan, outcome),
        Err(failed) => {
            traces.into_iter().for_each(TraceOut::discard);
            return Err(failed.into());
        }
    };
    let analyst = std::mem::replace(&mut streams.analyst, Analyst::new(Analysis::Nothing, false));
    analyst.finish().finish(plan, &mut output);
    output.fingerprint = streams.fingerprint;
    output.merged_queues = streams.merged_queues.take().unwrap_or_default();
    if let Some(log) = counters {
        output.counters = log.take().finish(output.end);
    }
    output.trace_files = finish_traces(traces)?;
    output.events = std::mem::take(&mut streams.kept);
    Ok(output)
}

fn open_traces(plan: &Plan, options: &RunOptions) -> Result<Vec<TraceOut>, Error> {
    let e = plan.experiment();
    let header = TraceHeader {
        devices: plan.site().devices.clone(),
        nr_cpus: plan.site().nr_cpus,
        kernel: e.kernel.to_string(),
        origin: format!(
            "blklab {} {} seed {}",
            env!("CARGO_PKG_VERSION"),
            e.id,
            e.seed
        ),
        ..TraceHeader::default()
    };
    let mut open = Vec::with_capacity(options.traces.len());
    for path in &options.traces {
        // A run directory has its events beside a table.
        let is_table = matches!(TraceFormat::from_path(path), TraceFormat::Table(_));
        let written = TraceOptions {
            rows: options.trace_rows.filter(|_| is_table),
            ..TraceOptions::default()
        };
        match TraceOut::create_with(path, &header, written) {
            Ok(out) => open.push(out),
            Err(err) => {
                open.into_iter().for_each(TraceOut::discard);
                return Err(Error::new(err.to_string()));
            }
        }
    }
    Ok(open)
}

/// Completes the traces; if one fails, those after it are discarded.
fn finish_traces(traces: Vec<TraceOut>) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    let mut left = traces.into_iter();
    while let Some(out) = left.next() {
        match out.finish() {
            Ok(mut written) => files.append(&mut written),
            Err(err) => {
                left.for_each(TraceOut::discard);
                return Err(Error::new(err.to_string()));
            }
        }
    }
    Ok(files)
}

impl RunOutput {
    fn new(plan: &Plan, outcome: Outcome) -> RunOutput {
        RunOutput {
            global_options: plan.jobs().map_or_else(Vec::new, |t| with_values(&t.jobs)),
            facts: *plan.facts(),
            jobs: outcome.jobs,
            end: outcome.end,
            epoch_ms: plan.site().epoch_ms,
            digest: Digest::default(),
            fingerprint: None,
            merged_queues: MergedQueues::default(),
            stats: TraceStats::default(),
            counters: Vec::new(),
            disks: Vec::new(),
            array: None,
            sysfs: outcome.sysfs,
            cgroups: outcome.cgroups,
            pressure: outcome.pressure,
            notes: outcome.notes,
            interrupted: outcome.interrupted,
            verified: false,
            trace_files: Vec::new(),
            watched: Vec::new(),
            events: Vec::new(),
            beside: None,
        }
    }
}

/// The global options that have a value, as fio prints them.
fn with_values(jobs: &JobFile) -> Vec<(String, String)> {
    let all = jobs.global_options.iter();
    all.filter_map(|(k, v)| Some(((*k).to_owned(), v.clone()?)))
        .collect()
}
