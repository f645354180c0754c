// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a change would have made of a trace: its processes run again in the models, as they
//! were and with something changed.

mod calls;

pub use blklab_whatif::{
    COLUMNS, Change, Column, Device, Figures, Known, OwnRun, Rerun, Row, Stage, Trial, Verdict,
    WhatIf, changed, gain, parse,
};
pub use calls::{Seen, judge_calls};

use blklab_analysis::lifecycle::Lifecycles;
use blklab_infer::Collector;
use blklab_trace::{Actions, Event, TraceSink};
use blklab_types::{Error, Pid, Time};
use blklab_whatif::Commands;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What a trace says of its processes and its device: a sink for all of its events.
pub struct Recording {
    processes: Collector,
    commands: Lifecycles<Commands>,
}

impl Default for Recording {
    fn default() -> Recording {
        Recording {
            processes: Collector::default(),
            commands: Lifecycles::new(Commands::default()),
        }
    }
}

impl TraceSink for Recording {
    fn event(&mut self, event: &Event) {
        self.processes.event(event);
        self.commands.event(event);
    }

    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        self.processes.process(time, pid, comm);
        self.commands.process(time, pid, comm);
    }

    fn new_recording(&mut self) {
        self.processes.new_recording();
        self.commands.new_recording();
    }
}

/// The machine of a trace and its processes. `kinds` are the kinds of events that the
/// trace's recorder wrote down. Setting `stop` ends runs early.
///
/// # Errors
/// Why there are none: in a clause.
pub fn stage(
    recording: Recording,
    kinds: Actions,
    known: Known<'_>,
    stop: Arc<AtomicBool>,
) -> Result<Stage<'_>, Error> {
    let (dev, _) = known.survey.disk(known.lost)?;
    let recorded = recording.processes.finish(kinds, Some(dev));
    let recorded = recorded.map_err(|e| Error::new(e.to_string()))?;
    let (commands, _) = recording.commands.finish();
    Stage::new(recorded, &commands, known, stop)
}

/// The experiment of a run, run again as it was if the run is not of this process. Setting
/// `stop` ends runs early.
///
/// # Errors
/// If it has no I/O to compare, or cannot run: in a clause.
pub fn rerun(
    recording: Recording,
    known: OwnRun<'_>,
    stop: Arc<AtomicBool>,
) -> Result<Rerun<'_>, Error> {
    Rerun::new(recording.processes, known, stop)
}
