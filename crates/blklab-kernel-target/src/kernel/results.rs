// SPDX-License-Identifier: MIT OR Apache-2.0
//! What came out of a machine: the events of its disk and fio's own results.

use super::groups::Uses;
use super::stack::{NUMBERS, Stack};
use super::streams;
use crate::build::Built;
use crate::failed::failed;
use crate::machine::Ended;
use blklab_experiment::Experiment;
use blklab_fio::parse::JobFile;
use blklab_fio::run;
use blklab_fiostat::{JobLogs, ReadResult, ThreadStat};
use blklab_target::{JobResult, Outcome, Sinks};
use blklab_trace::{Action, Event, TraceSink};
use blklab_types::{Dev, Error, Pid, Time};
use std::collections::BTreeMap;
use std::io::Read;

/// Longest text that is read: of fio with many jobs and bins.
const TEXT_MAX: u64 = 256 << 20;

/// When a process used the disk.
#[derive(Clone, Copy, Debug)]
struct Used {
    first: Time,
    last: Time,
}

/// What is kept of the files.
#[derive(Default)]
struct Found {
    /// fio's results.
    json: Option<String>,
    /// What the script printed.
    log: String,
    /// The step of the preparation that failed, and what it printed.
    unready: String,
    step: String,
    /// fio's own process, which starts those of the jobs.
    fio: Option<Pid>,
    /// What the kernel says of control groups.
    groups: Uses,
    /// Settings that the kernel did not take.
    refused: String,
    /// What could not be made.
    failed: String,
    /// What blktrace printed.
    blktrace: String,
    /// The numbers that devices had.
    numbers: String,
}

/// Reads everything: events go to the sinks.
///
/// # Errors
/// If something is missing or damaged, or a setting was not taken.
pub(super) fn read(
    ended: &Ended,
    jobs: &JobFile,
    e: &Experiment,
    stack: &Stack,
    kernel: &Built,
    mut sinks: Sinks,
) -> Result<Outcome, Error> {
    let mut found = Found::default();
    ended.files(&mut |name, _, from| match name {
        "fio.json" => {
            found.json = Some(text(from)?);
            Ok(())
        }
        "log" => text(from).map(|t| found.log = t),
        "unready" => text(from).map(|t| found.unready = t),
        "step.log" => text(from).map(|t| found.step = t),
        "fio.pid" => text(from).map(|t| found.fio = t.trim().parse().ok()),
        "failed" => text(from).map(|t| found.failed = t),
        "refused" => text(from).map(|t| found.refused = t),
        "blktrace.log" => text(from).map(|t| found.blktrace = t),
        NUMBERS => text(from).map(|t| found.numbers = t),
        _ if Uses::is_result(name) => text(from).map(|t| found.groups.take(name, &t)),
        _ => Ok(()),
    })?;
    if let Some(first) = found.refused.lines().next() {
        let (file, value) = first.split_once(' ').unwrap_or((first, ""));
        return Err(failed(&format!(
            "Linux {} does not take '{value}' in {file}",
            kernel.release
        )));
    }
    if let Some(step) = found.unready.lines().next() {
        let why = found.step.lines().rfind(|l| !l.trim().is_empty());
        let why = why.map_or(String::new(), |line| format!(": {}", line.trim()));
        return Err(failed(&format!(
            "Linux {}: {step} failed{why}",
            kernel.release
        )));
    }
    let last_words = || found.log.lines().last().unwrap_or_default().to_owned();
    if let Some(what) = found.failed.lines().next() {
        return Err(failed(&format!("{what}: {}", last_words())));
    }
    let Some(json) = &found.json else {
        return Err(failed(&format!("fio left no results: {}", last_words())));
    };
    let numbers = stack.numbers(&found.numbers)?;
    let mut census = Census {
        top: stack.devices().next().map(|d| d.dev).unwrap_or_default(),
        ..Census::default()
    };
    let has_trace = streams::send(ended, stack, &numbers, &mut census)?;
    if !has_trace {
        return Err(failed(&format!("blktrace left no trace: {}", last_words())));
    }
    let mut processes = census.processes;
    if let Some(fio) = found.fio {
        processes.remove(&fio);
    }
    let pids = pids_of(&processes, jobs.jobs.len());
    let named = jobs.jobs.iter().zip(&pids);
    let named = named.filter_map(|(job, used)| Some(((*used)?.0, job.name.clone())));
    let mut told = Told {
        to: &mut *sinks.trace,
        begun: ended.begun,
        jobs: named.collect(),
        end: Time::ZERO,
    };
    streams::send(ended, stack, &numbers, &mut told)?;
    let in_run = |time| in_run(time, ended.begun);
    let end = told.end;
    let result = ReadResult::parse(json).map_err(|e| {
        // What it says instead is on the way.
        failed(&format!("{}: {}", e.what, last_words()))
    })?;
    let entries = result.result.entries;
    if entries.len() != jobs.jobs.len() {
        return Err(failed(&format!(
            "fio ran {} of {} jobs: {}",
            entries.len(),
            jobs.jobs.len(),
            last_words()
        )));
    }
    let results = jobs.jobs.iter().zip(entries).zip(pids);
    let results = results.map(|((job, entry), used)| {
        let pid = used.map_or(0, |(pid, _)| pid);
        let started = used.map_or(Time::ZERO, |(_, u)| in_run(u.first));
        let stat: ThreadStat = entry.stat;
        let moved = |i: usize| stat.dirs[i].runtime_ms > 0;
        let active = [0, 1, 2].map(|i| moved(i).then_some(started));
        JobResult {
            pid,
            job: job.clone(),
            logs: JobLogs::default(),
            started,
            ended: Some(used.map_or(end, |(_, u)| in_run(u.last))),
            active_since: active,
            outcome: run::Outcome {
                error: entry.info.error,
                errors: u64::from(entry.info.error != 0),
                first_error: entry.info.error,
            },
            failures: Vec::new(),
            iolog: None,
            figures: Vec::new(),
            stat,
        }
    });
    let jobs: Vec<JobResult> = results.collect();
    let mut notes = Vec::new();
    let lost = |l: &&str| l.contains("dropped") && !l.contains("dropped 0)");
    if let Some(line) = found.blktrace.lines().find(lost) {
        notes.push(format!("blktrace: {}", line.trim()));
    }
    Ok(Outcome {
        jobs,
        cgroups: found.groups.into_uses(&e.cgroups),
        end,
        notes,
        ..Outcome::default()
    })
}

/// A process for each job: fio starts them in their order, so that their numbers rise.
/// Where others used the disk, too, nobody knows.
fn pids_of(processes: &BTreeMap<Pid, Used>, nr_jobs: usize) -> Vec<Option<(Pid, Used)>> {
    if processes.len() != nr_jobs {
        return vec![None; nr_jobs];
    }
    let all = processes.iter();
    all.map(|(pid, used)| Some((*pid, *used))).collect()
}

fn text(from: &mut dyn Read) -> Result<String, Error> {
    let mut bytes = Vec::new();
    let read = from.take(TEXT_MAX).read_to_end(&mut bytes);
    read.map_err(|e| failed(&format!("results cannot be read: {e}")))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A time of the machine as one of the run.
fn in_run(time: Time, begun: Time) -> Time {
    Time(time.0.saturating_sub(begun.0))
}

/// Sees which of fio's processes use the top of the stack, and when.
#[derive(Default)]
struct Census {
    top: Dev,
    /// Whether a process is fio's.
    names: BTreeMap<Pid, bool>,
    processes: BTreeMap<Pid, Used>,
}

impl TraceSink for Census {
    fn event(&mut self, event: &Event) {
        let time = event.time;
        let is_used = event.action == Action::Queue && event.dev == self.top;
        if is_used && self.names.get(&event.pid) == Some(&true) {
            let used = self.processes.entry(event.pid);
            let used = used.or_insert(Used {
                first: time,
                last: time,
            });
            used.last = time;
        }
    }

    fn process(&mut self, _: Time, pid: Pid, comm: &str) {
        self.names.insert(pid, comm == "fio");
    }
}

/// Passes events on, in times of the run. A process of fio has the name of its job there.
struct Told<'a> {
    to: &'a mut dyn TraceSink,
    /// When the run began: events count from there.
    begun: Time,
    jobs: BTreeMap<Pid, String>,
    /// The last event.
    end: Time,
}

impl Told<'_> {
    fn shifted(&self, event: &Event) -> Event {
        Event {
            time: in_run(event.time, self.begun),
            ..*event
        }
    }
}

impl TraceSink for Told<'_> {
    fn event(&mut self, event: &Event) {
        let event = self.shifted(event);
        self.end = self.end.max(event.time);
        self.to.event(&event);
    }

    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        let job = self.jobs.get(&pid).filter(|_| comm == "fio");
        let comm = job.map_or(comm, String::as_str);
        self.to.process(in_run(time, self.begun), pid, comm);
    }

    fn message(&mut self, event: &Event, text: &str) {
        self.to.message(&self.shifted(event), text);
    }
}
