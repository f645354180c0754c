// SPDX-License-Identifier: MIT OR Apache-2.0
//! Running one experiment: the job file parsed, the machine run, its events
//! digested, analysed and, if wanted, written.

use crate::surroundings::RealSurroundings;
use crate::trace_file::TraceOut;
use blklab_analysis::collect::StatsCollector;
use blklab_analysis::stats::TraceStats;
use blklab_experiment::{Experiment, ExperimentError, Workload};
use blklab_fio::parse::{JobFile, ParseOptions, parse};
use blklab_sim::fio::JobResult;
use blklab_sim::{SDA, Sinks};
use blklab_trace::{Digest, DigestSink, Event, TraceHeader, TraceSink};
use blklab_types::{Pid, Time};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What to do beside running.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Write the trace here; the ending chooses the format.
    pub trace: Option<PathBuf>,
    /// Only these sections of job files; all if empty.
    pub sections: Vec<String>,
    /// Set from outside to end the run early.
    pub stop: Arc<AtomicBool>,
}

/// What came out of a run.
#[derive(Debug)]
pub struct RunOutput {
    /// fio jobs in thread order; empty for explicit processes.
    pub jobs: Vec<JobResult>,
    /// Options of the job file's global sections.
    pub global_options: Vec<(String, String)>,
    /// Virtual time at the end.
    pub end: Time,
    /// Digest of the event stream.
    pub digest: Digest,
    /// Statistics of the event stream.
    pub stats: TraceStats,
    /// What a reader of the result should know.
    pub notes: Vec<String>,
    /// Whether the run was ended from outside.
    pub interrupted: bool,
    /// Trace files written.
    pub trace_files: Vec<PathBuf>,
}

/// Where the events of a run go.
struct Streams {
    digest: DigestSink<StatsCollector>,
    out: Option<TraceOut>,
}

/// A handle to the streams that the machine can own.
struct Shared(Rc<RefCell<Streams>>);

impl TraceSink for Shared {
    fn event(&mut self, event: &Event) {
        let s = &mut *self.0.borrow_mut();
        s.digest.event(event);
        if let Some(out) = &mut s.out {
            out.event(event);
        }
    }

    fn message(&mut self, event: &Event, text: &str) {
        let s = &mut *self.0.borrow_mut();
        s.digest.message(event, text);
        if let Some(out) = &mut s.out {
            out.message(event, text);
        }
    }

    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        let s = &mut *self.0.borrow_mut();
        s.digest.process(time, pid, comm);
        if let Some(out) = &mut s.out {
            out.process(time, pid, comm);
        }
    }
}

/// Parses the job file of an experiment.
///
/// # Errors
/// Everything that is wrong with its first bad section.
pub fn parse_jobs(
    e: &Experiment,
    name: &str,
    text: &str,
    sections: &[String],
) -> Result<JobFile, ExperimentError> {
    let options = ParseOptions {
        sections: sections.to_vec(),
        template: Vec::new(),
        entropy: e.seed,
    };
    let around = RealSurroundings::beside(Path::new(name));
    parse(name, text, &options, &around).map_err(|err| ExperimentError::new(err.to_string()))
}

/// Checks what [`Experiment::check`] cannot: that a job file parses.
///
/// # Errors
/// As [`parse_jobs`].
pub fn check(e: &Experiment, sections: &[String]) -> Result<(), ExperimentError> {
    e.check()?;
    if let Workload::Fio { name, text } = &e.workload {
        parse_jobs(e, name, text, sections)?;
    }
    Ok(())
}

/// Runs an experiment.
///
/// # Errors
/// If the experiment is impossible or the trace cannot be written.
pub fn run(e: &Experiment, options: &RunOptions) -> Result<RunOutput, ExperimentError> {
    let header = TraceHeader {
        devices: vec![(SDA, "sda".to_owned())],
        nr_cpus: 1,
        kernel: e.kernel.to_string(),
        origin: format!(
            "blklab {} {} seed {}",
            env!("CARGO_PKG_VERSION"),
            e.id,
            e.seed
        ),
    };
    let out = options
        .trace
        .as_deref()
        .map(|path| TraceOut::create(path, &header))
        .transpose()
        .map_err(|err| ExperimentError::new(err.to_string()))?;
    let streams = Rc::new(RefCell::new(Streams {
        digest: DigestSink {
            digest: Digest::default(),
            inner: StatsCollector::new(),
        },
        out,
    }));
    let sinks = Sinks {
        trace: Box::new(Shared(Rc::clone(&streams))),
        truth: None,
    };
    let stop = Arc::clone(&options.stop);
    let mut output = match &e.workload {
        Workload::Processes(processes) => {
            let machine = blklab_sim::build_machine(e, sinks, stop)?;
            blklab_sim::spawn_processes(&machine, processes);
            machine.run(Time::MAX);
            RunOutput::new(machine.now())
        }
        Workload::Fio { name, text } => {
            let jobs = parse_jobs(e, name, text, &options.sections)?;
            let global_options = with_values(&jobs);
            let done = blklab_sim::fio::run_fio(e, jobs, sinks, stop)?;
            RunOutput {
                jobs: done.jobs,
                notes: done.notes,
                global_options,
                ..RunOutput::new(done.end)
            }
        }
    };
    output.interrupted = options.stop.load(Ordering::Relaxed);
    // Tasks that still sleep hold the machine, and with it the sink.
    let mut streams = streams.borrow_mut();
    let digest = std::mem::take(&mut streams.digest);
    output.digest = digest.digest;
    output.stats = digest.inner.finish();
    if let Some(out) = streams.out.take() {
        output.trace_files = out
            .finish()
            .map_err(|err| ExperimentError::new(err.to_string()))?;
    }
    Ok(output)
}

impl RunOutput {
    fn new(end: Time) -> RunOutput {
        RunOutput {
            jobs: Vec::new(),
            global_options: Vec::new(),
            end,
            digest: Digest::default(),
            stats: TraceStats::default(),
            notes: Vec::new(),
            interrupted: false,
            trace_files: Vec::new(),
        }
    }
}

/// The global options that have a value, as fio prints them.
fn with_values(jobs: &JobFile) -> Vec<(String, String)> {
    let all = jobs.global_options.iter();
    all.filter_map(|(k, v)| Some(((*k).to_owned(), v.clone()?)))
        .collect()
}
