// SPDX-License-Identifier: MIT OR Apache-2.0
//! What comes out of a run.

use blklab_fio::job::Job;
use blklab_fio::run::Failure;
use blklab_fiostat::{JobLogs, ThreadStat};
use blklab_types::{Pid, Span, Time};

/// What came out of a run, beside its events.
#[derive(Debug, Default)]
pub struct Outcome {
    /// fio jobs in thread order; empty for explicit processes.
    pub jobs: Vec<JobResult>,
    /// Read-only files of the scheduler in sysfs at the end: name and text.
    pub sysfs: Vec<(String, String)>,
    /// What control groups came to; empty if there is nothing to tell.
    pub cgroups: Vec<CgroupUse>,
    /// How long the machine's tasks stood still for I/O, where that is counted.
    pub pressure: Option<Pressure>,
    /// When the run ended.
    pub end: Time,
    /// Whether it was ended from outside.
    pub interrupted: bool,
    /// What a reader of the result should know.
    pub notes: Vec<String>,
}

/// A job's result.
#[derive(Debug)]
pub struct JobResult {
    /// Its process.
    pub pid: Pid,
    /// The job.
    pub job: Job,
    /// Its statistics.
    pub stat: ThreadStat,
    /// Its logs.
    pub logs: JobLogs,
    /// When it started its first I/O.
    pub started: Time,
    /// When it ended; none if the run was cut off.
    pub ended: Option<Time>,
    /// Where the run time of each direction (see [`blklab_fiostat::Ddir::idx`])
    /// begins: the first pass over the data that moved bytes in it, or the end
    /// of the ramp time.
    pub active_since: [Option<Time>; 3],
    /// How it ended.
    pub outcome: blklab_fio::run::Outcome,
    /// What went wrong, as far as it is to be told.
    pub failures: Vec<Failure>,
    /// Its iolog, if it asked for one.
    pub iolog: Option<String>,
    /// Logs that fio itself has written for it: the names by which the job calls them, and
    /// their texts.
    pub written: Vec<(String, String)>,
    /// What a program measured by itself.
    pub figures: Vec<Figure>,
}

/// A number that a program prints at its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What it is about: `create`, `read`.
    pub name: String,
    /// Unit: `MiB/s`, `s`.
    pub unit: String,
    /// Number of operations that it is the mean of.
    pub count: usize,
    /// The value.
    pub value: f64,
}

/// What a control group came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CgroupUse {
    /// Its path below the root.
    pub name: String,
    /// What `io.max` did to its tasks, where that is counted.
    pub held: Option<Held>,
    /// What its tasks moved, with groups below it, where the kernel counts that.
    pub moved: Option<Moved>,
    /// What else the kernel says of it: words of its `io.stat`.
    pub said: Vec<String>,
    /// How long its tasks stood still for I/O, where that is counted.
    pub pressure: Option<Pressure>,
}

/// Time in which tasks stood still for I/O: a group's `io.pressure`, or `/proc/pressure/io`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Some of them did.
    pub some: Stall,
    /// Some of them did, and none ran.
    pub full: Stall,
}

/// A line of that file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stall {
    /// `avg10`, `avg60`, `avg300`, in hundredths of a percent.
    pub percent_hundredths: [u32; 3],
    /// `total`.
    pub total_us: u64,
}

impl Stall {
    /// The averages by their names.
    pub const AVERAGES: [&'static str; 3] = ["avg10", "avg60", "avg300"];
}

/// Bios of a control group that `io.max` held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// How many.
    pub bios: u64,
    /// Longest time that one was held, to a tick.
    pub longest: Span,
}

/// What a control group moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes that were read, written and discarded.
    pub bytes: [u64; 3],
    /// The I/Os.
    pub ios: [u64; 3],
}
