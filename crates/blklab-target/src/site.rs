// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a target says, gets and fails with.

use crate::files::is_device;
use blklab_fio::range::FileState;
use blklab_trace::truth::TruthSink;
use blklab_trace::{CounterSink, TraceSink};
use blklab_types::Dev;
use blklab_types::{Error, ErrorKind};
use std::fmt;

/// What jobs find where they run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Bytes of the disk that jobs use: to the end of its partition, or of the
    /// array.
    pub disk_bytes: u64,
    /// The block devices with their names, the array first if there is one.
    pub devices: Vec<(Dev, String)>,
    /// Files that describe the disk: names and texts, in the order in which
    /// they were read.
    pub described_in: Vec<(String, String)>,
    /// Processors that may appear in events.
    pub nr_cpus: u16,
    /// Milliseconds from 1970 to the beginning of its clock, from which events count.
    pub epoch_ms: u64,
}

impl Site {
    /// What a job finds under a name, before any job has made a file.
    pub fn file_state(&self, name: &str) -> FileState {
        if is_device(name) {
            FileState::Device(self.disk_bytes)
        } else {
            FileState::Missing
        }
    }
}

/// Where the streams of a run go.
pub struct Sinks {
    /// Trace events.
    pub trace: Box<dyn TraceSink>,
    /// Truth records, where somebody wants them and the target knows them.
    pub truth: Option<Box<dyn TruthSink>>,
    /// Counters, where somebody wants them and the target knows them.
    pub counters: Option<Box<dyn CounterSink>>,
}

impl Sinks {
    /// For who wants events alone.
    pub fn of_events(trace: Box<dyn TraceSink>) -> Sinks {
        Sinks {
            trace,
            truth: None,
            counters: None,
        }
    }
}

/// A target has failed at a plan that it had accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed(pub String);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

impl From<Failed> for Error {
    fn from(e: Failed) -> Error {
        Error::new(e.0).of_kind(ErrorKind::TargetFailed)
    }
}
