// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a report says, as plain data: every number of the page is one of these, and
//! the page carries them. Times are in ns; those of events count from the start of
//! their trace ([`Member::start_ns`]).

use blklab::counters::CounterSeries;
use blklab::explain::ReEnacted;
use blklab::findings::{DiskReport, Finding, Reading, Verdict};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The format of reports.
pub const FORMAT: u32 = 1;

/// The parts that the life of a request is divided into, with what they are.
pub const PHASES: [(&str, &str); 7] = [
    ("get", "for a free request"),
    ("plug", "on a plug"),
    ("idle", "in the scheduler, device idle"),
    ("ahead", "in the scheduler, device busy"),
    ("alone", "in the device, as if alone"),
    ("behind", "in the device, for others"),
    ("flush", "while the device empties its cache"),
];

/// Why a request waited behind others, in words; a [`Requests::ahead`] or
/// [`Requests::behind`] names one by its place.
pub const REASONS: [&str; 6] = [
    "",
    "reads behind writes",
    "writes behind later reads",
    "behind another process",
    "load",
    "the device is slow by itself",
];

/// A report: one page.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Format of the report: [`FORMAT`].
    pub format: u32,
    /// The blklab that made it.
    pub version: &'static str,
    /// What it is about, in a line.
    pub title: String,
    /// [`PHASES`].
    pub phases: [(&'static str, &'static str); PHASES.len()],
    /// [`REASONS`].
    pub reasons: [&'static str; REASONS.len()],
    /// Of runs of a matrix: who is best for one figure, by how much, how sure that is, and at
    /// whose cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<blklab::verdict::Verdict>,
    /// The runs and traces, in the order given; of repetitions the first.
    pub members: Vec<Member>,
}

/// A run or a trace.
#[derive(Debug, Serialize)]
pub struct Member {
    /// What tells it from the others: its scheduler, what varied, the name of its
    /// file.
    pub label: String,
    /// Where it is from.
    pub source: String,
    /// What it is called: the title of its experiment, the name of its file.
    pub title: String,
    /// The run or the trace in a sentence.
    pub sentence: String,
    /// Repetitions that it is the first of; 1 if it is alone.
    pub repetitions: usize,
    /// What is known of the machine: names and values.
    pub context: Vec<(String, String)>,
    /// The experiment in full, of a run.
    pub experiment: Option<Texts>,
    /// Who waited, how long, why, what would help.
    pub answer: Answer,
    /// Time of the first event, ns.
    pub start_ns: u64,
    /// From the first event to the last, ns.
    pub span_ns: u64,
    /// Events of the trace.
    pub nr_events: u64,
    /// Captures that it was put together from; times of each may begin anew.
    pub nr_captures: u64,
    /// What the reader of its events says.
    pub reading: Reading,
    /// All requests that somebody waited for.
    pub waited: Waited,
    /// All that nobody waited for.
    pub background: Waited,
    /// Processes by their names, most waiting first.
    pub groups: Vec<Group>,
    /// Processes that have requests on the page.
    pub processes: Vec<Process>,
    /// What the jobs of a run came to: its main numbers.
    pub jobs: Vec<JobLine>,
    /// Distributions of latencies.
    pub curves: Vec<Curve>,
    /// The devices, with what they did over time.
    pub devices: Vec<Device>,
    /// Counters of the page cache and of queues over time, of a run; their times are those
    /// of the events.
    pub counters: Vec<CounterSeries>,
    /// What the scheduler had waiting requests wait for, over time, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<Scheduler>,
    /// Single requests.
    pub requests: Requests,
    /// What was found, the worst first.
    pub findings: Vec<Finding>,
    /// What is answered.
    pub verdict: Verdict,
    /// What the model of its kernel says that requests waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub re_enacted: Option<Box<ReEnacted>>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_re_enacted: Option<String>,
    /// Where the numbers are from and what they leave out.
    pub provenance: Vec<(String, String)>,
    /// All metrics of a run, as `result.json` has them.
    pub metrics: Value,
    /// Place of each process in [`Member::groups`].
    #[serde(skip)]
    pub(crate) places: BTreeMap<u32, usize>,
}

/// What waiting requests waited for, over time, as the model of the scheduler says: slices,
/// idling, batches.
#[derive(Debug, Serialize)]
pub struct Scheduler {
    /// The device.
    pub dev: String,
    /// Length of an interval, ns; the first begins with the trace.
    pub interval_ns: u64,
    /// Reasons, each with the processes that are served or waited for; what took longest
    /// comes first.
    pub lines: Vec<Held>,
    /// When that changed: time since the change before, ns, the first since the trace's
    /// start. Empty if there are too many.
    pub change_after: Vec<u64>,
    /// Place in `lines` of what holds from then on; -1: nothing waits.
    pub change_line: Vec<i64>,
}

/// How long requests waited for something.
#[derive(Debug, Serialize)]
pub struct Held {
    /// For what: `slice`, `idling`, `write batch`.
    pub what: &'static str,
    /// Whose, place in [`Member::groups`], if it is anybody's.
    pub group: Option<usize>,
    /// All of it, ns.
    pub total_ns: u64,
    /// Of the time in which something waited, percent.
    pub share: f64,
    /// By interval, ns.
    pub ns: Vec<u64>,
}

/// The files that a run can be repeated from.
#[derive(Debug, Serialize)]
pub struct Texts {
    /// `experiment.toml`.
    pub toml: String,
    /// `job.fio`.
    pub job: Option<String>,
}

/// The first screen: who waited, how long, why, what would help.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Answer {
    /// Kind of the finding that it is from; none if nothing is wrong.
    pub kind: Option<&'static str>,
    /// How sure it is.
    pub confidence: Option<&'static str>,
    /// What the application sees, of a run of jobs: `sync p99.9 of wal is 98.7 ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application: Option<String>,
    /// Who waited.
    pub who: String,
    /// How long.
    pub how_long: String,
    /// Why.
    pub why: String,
    /// What would help, the best first.
    pub help: Vec<String>,
}

/// Processes of one name, or of names that differ in a number only.
#[derive(Debug, Serialize)]
pub struct Group {
    /// Their name: `dd`, `file1…file41`.
    pub name: String,
    /// How many processes.
    pub nr_processes: usize,
    /// Its place among the colours of the page; the last one is shared.
    pub colour: usize,
    /// Requests that a process waited for.
    pub waited: Waited,
    /// Requests that nobody waited for: write-back.
    pub background: Waited,
}

/// Requests and their time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Waited {
    /// How many ended.
    pub requests: u64,
    /// What 50 % of them do not exceed from their beginning to C, ns, and so on.
    pub p50_ns: u64,
    /// 99 %.
    pub p99_ns: u64,
    /// 99.9 %.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// All of their time, ns.
    pub total_ns: u64,
    /// The same by [`PHASES`], ns.
    pub phases_ns: [u64; PHASES.len()],
}

/// A process.
#[derive(Debug, Serialize)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Its name, if the trace gives one.
    pub name: Option<String>,
    /// Its place in [`Member::groups`].
    pub group: usize,
}

/// Jobs of a name, or of names that differ in a number only, in one direction: what
/// fio reports of them.
#[derive(Debug, Serialize)]
pub struct JobLine {
    /// Their name.
    pub name: String,
    /// read, write, trim, sync, all.
    pub direction: String,
    /// How many jobs.
    pub jobs: u64,
    /// Calls.
    pub ios: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// The shortest run time, ms.
    pub runt_min_ms: Option<f64>,
    /// The longest run time, ms.
    pub runt_max_ms: Option<f64>,
    /// Completion latency that 50 % of the calls do not exceed, ns, and so on.
    pub clat_p50_ns: Option<u64>,
    /// 99 %.
    pub clat_p99_ns: Option<u64>,
    /// 99.9 %.
    pub clat_p999_ns: Option<u64>,
    /// The longest.
    pub clat_max_ns: Option<u64>,
}

/// A distribution of latencies.
#[derive(Debug, Serialize)]
pub struct Curve {
    /// Whose.
    pub who: String,
    /// read, write, discard, sync, other.
    pub direction: String,
    /// What it measures: `clat` of calls, `Q2C` of bios.
    pub measure: &'static str,
    /// Values.
    pub count: u64,
    /// Values and how many there are of each, shortest first.
    pub points: Vec<(u64, u64)>,
    /// What 50 % do not exceed, ns, and so on.
    pub p50_ns: u64,
    /// 99 %.
    pub p99_ns: u64,
    /// 99.9 %.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// A device and what it did over time.
#[derive(Debug, Serialize)]
pub struct Device {
    /// What the trace says of it.
    #[serde(flatten)]
    pub report: DiskReport,
    /// Its name.
    pub name: Option<String>,
    /// Requests that a pool (to 4.20) or a hardware queue has, where it is known.
    pub nr_requests: Option<u64>,
    /// Commands that it takes at once, where it is known.
    pub queue_depth: Option<u64>,
    /// Latency, throughput and service by intervals.
    pub flow: Flow,
    /// Bios between Q and C.
    pub in_queue: Steps,
    /// Requests between I and C: each holds one of a pool, or a tag.
    pub held: Steps,
    /// Requests between D and C.
    pub in_device: Steps,
}

/// What went through a device, by intervals.
#[derive(Debug, Default, Serialize)]
pub struct Flow {
    /// Length of an interval, ns; the first begins with the trace.
    pub interval_ns: u64,
    /// Requests that a process waited for and that ended in the interval.
    pub ended: Vec<u64>,
    /// Their mean latency by [`PHASES`], ns.
    pub phases_ns: [Vec<u64>; PHASES.len()],
    /// The longest of them, ns.
    pub max_ns: Vec<u64>,
    /// The longest of those that nobody waited for, ns.
    pub background_max_ns: Vec<u64>,
    /// Bytes that ended: reads.
    pub read_bytes: Vec<u64>,
    /// Writes.
    pub write_bytes: Vec<u64>,
    /// Bytes that went to the device, by group of processes.
    pub served_bytes: Vec<Vec<u64>>,
    /// Time in which the device had nothing to do while requests waited, ns.
    pub idle_ns: Vec<u64>,
}

/// A number over time, by intervals.
#[derive(Debug, Default, Serialize)]
pub struct Steps {
    /// Length of an interval, ns; the first begins with the trace.
    pub interval_ns: u64,
    /// Mean over the time of each.
    pub means: Vec<f64>,
    /// Highest of each.
    pub maxima: Vec<u32>,
}

/// Single requests, a column for each thing that is known of them, in order of their
/// beginning.
#[derive(Debug, Default, Serialize)]
pub struct Requests {
    /// How many the trace has.
    pub seen: u64,
    /// None that took this long or longer is missing here, ns; 0: none at all is
    /// missing. The slowest of each interval of the trace is here in any case.
    pub complete_from_ns: u64,
    /// Beginning: time since the one before, ns; the first since the trace's start.
    pub start: Vec<u64>,
    /// From the beginning to G, I, D and C, ns; -1: not seen.
    pub get: Vec<i64>,
    /// To the last I.
    pub insert: Vec<i64>,
    /// To the last D.
    pub issue: Vec<i64>,
    /// To C.
    pub complete: Vec<i64>,
    /// First sector.
    pub sector: Vec<u64>,
    /// Length in sectors.
    pub sectors: Vec<u64>,
    /// Bios in it.
    pub bios: Vec<u32>,
    /// Place in [`Member::devices`].
    pub dev: Vec<usize>,
    /// Place in [`Member::processes`].
    pub process: Vec<usize>,
    /// Place in [`Requests::flags`].
    pub flag: Vec<usize>,
    /// Direction and flags, as blkparse shows them.
    pub flags: Vec<String>,
    /// Whether somebody waited for it, 0 or 1.
    pub sync: Vec<u8>,
    /// By [`PHASES`], ns.
    pub phases: [Vec<u64>; PHASES.len()],
    /// Why it waited from I to D: place in [`REASONS`].
    pub ahead: Vec<u8>,
    /// Who stands out among those ahead: process id, 0: nobody.
    pub ahead_pid: Vec<u32>,
    /// Requests ahead.
    pub ahead_nr: Vec<u64>,
    /// Why it waited from D to C.
    pub behind: Vec<u8>,
    /// Who stands out there.
    pub behind_pid: Vec<u32>,
    /// Requests there.
    pub behind_nr: Vec<u64>,
}
