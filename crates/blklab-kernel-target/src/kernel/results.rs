// SPDX-License-Identifier: MIT OR Apache-2.0
//! What came out of a machine: the events of its disk and fio's own results.

use super::groups::Uses;
use super::job_logs::Logs;
use super::stack::{NUMBERS, Stack};
use super::streams;
use super::task::{Task, Who};
use crate::build::Built;
use crate::failed::failed;
use crate::machine::Ended;
use crate::userland::BEGUN;
use blklab_experiment::Experiment;
use blklab_fio::job::Job;
use blklab_fio::run;
use blklab_fiostat::{Entry, JobLogs, ReadResult, ThreadStat};
use blklab_target::{JobResult, Outcome, Sinks};
use blklab_trace::{Action, Event, NullSink, TraceSink};
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
    /// When the run began, where no clock of ours knows: seconds since the start of the
    /// kernel.
    begun: String,
    /// The numbers that devices had.
    numbers: String,
    /// Logs that fio has written, by their files.
    logs: BTreeMap<String, String>,
}

/// Reads everything: events go to the sinks.
///
/// # Errors
/// If something is missing or damaged, or a setting was not taken.
pub(super) fn read(
    ended: &Ended,
    task: &Task,
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
        BEGUN => text(from).map(|t| found.begun = t),
        NUMBERS => text(from).map(|t| found.numbers = t),
        _ if Logs::is_written(name) => {
            found.logs.insert(name.to_owned(), text(from)?);
            Ok(())
        }
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
    let begun = Time(ended.begun.0.max(nanoseconds(&found.begun)));
    let called = match &task.who {
        Who::Jobs(_) => Called::default(),
        Who::Processes(processes) => {
            let mut nobody = NullSink;
            let mut before = Watched::new(&mut nobody, stack, begun);
            streams::send(ended, stack, &numbers, &mut before)?;
            Called::new(processes, &before, found.fio)
        }
    };
    let mut watched = Watched::new(&mut *sinks.trace, stack, begun);
    watched.called = called;
    let has_trace = streams::send(ended, stack, &numbers, &mut watched)?;
    let Watched {
        mut processes,
        end,
        called,
        ..
    } = watched;
    if !has_trace {
        return Err(failed(&format!("blktrace left no trace: {}", last_words())));
    }
    let result = ReadResult::parse(json).map_err(|e| {
        // What it says instead is on the way.
        failed(&format!("{}: {}", e.what, last_words()))
    })?;
    let entries = result.result.entries;
    if entries.len() != task.who.nr_jobs() {
        return Err(failed(&format!(
            "fio ran {} of {} jobs: {}",
            entries.len(),
            task.who.nr_jobs(),
            last_words()
        )));
    }
    let mut notes = Vec::new();
    let jobs = match &task.who {
        Who::Jobs(jobs) => {
            if let Some(fio) = found.fio {
                processes.remove(&fio);
            }
            let mut all = results_of(jobs, entries, &processes, end);
            task.logs.hand_out(found.logs, &mut all);
            all
        }
        Who::Processes(all) => {
            check_all_went_well(all, &entries)?;
            notes.extend(called.note());
            Vec::new()
        }
    };
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

/// Refuses results of processes whose I/O has failed: nobody would see it.
fn check_all_went_well(processes: &[(Pid, String)], entries: &[Entry]) -> Result<(), Error> {
    let mut all = processes.iter().zip(entries);
    match all.find(|(_, entry)| entry.info.error != 0) {
        None => Ok(()),
        Some(((pid, name), entry)) => {
            let error = std::io::Error::from_raw_os_error(entry.info.error);
            Err(failed(&format!(
                "process {name} ({pid}) has failed: {error}"
            )))
        }
    }
}

/// The results of jobs.
fn results_of(
    jobs: &[Job],
    entries: Vec<Entry>,
    processes: &BTreeMap<Pid, Used>,
    end: Time,
) -> Vec<JobResult> {
    let pids = pids_of(processes, jobs.len());
    let results = jobs.iter().zip(entries).zip(pids);
    let results = results.map(|((job, entry), used)| {
        let (pid, used) = used.unwrap_or((0, None));
        let started = used.map_or(Time::ZERO, |u| u.first);
        let stat: ThreadStat = entry.stat;
        let moved = |i: usize| stat.dirs[i].runtime_ms > 0;
        let active = [0, 1, 2].map(|i| moved(i).then_some(started));
        JobResult {
            pid,
            job: job.clone(),
            logs: JobLogs::default(),
            started,
            ended: Some(used.map_or(end, |u| u.last)),
            active_since: active,
            outcome: run::Outcome {
                error: entry.info.error,
                errors: u64::from(entry.info.error != 0),
                first_error: entry.info.error,
            },
            failures: Vec::new(),
            iolog: None,
            written: Vec::new(),
            figures: Vec::new(),
            stat,
        }
    });
    results.collect()
}

/// Nanoseconds of a text such as `12.34`; 0 if it is none.
fn nanoseconds(seconds: &str) -> u64 {
    let Some((whole, hundredths)) = seconds.trim().split_once('.') else {
        return 0;
    };
    let parts = (whole.parse::<u64>(), hundredths.parse::<u64>());
    let (Ok(whole), Ok(hundredths)) = parts else {
        return 0;
    };
    let all = whole.saturating_mul(100).saturating_add(hundredths);
    all.saturating_mul(10_000_000)
}

/// A process for each job: fio starts them in their order, so that their numbers rise.
/// Where others used the disk, too, nobody knows.
fn pids_of(processes: &BTreeMap<Pid, Used>, nr_jobs: usize) -> Vec<Option<(Pid, Option<Used>)>> {
    if processes.len() != nr_jobs {
        return vec![None; nr_jobs];
    }
    let all = processes.iter();
    all.map(|(pid, used)| Some((*pid, Some(*used)))).collect()
}

fn text(from: &mut dyn Read) -> Result<String, Error> {
    let mut bytes = Vec::new();
    let read = from.take(TEXT_MAX).read_to_end(&mut bytes);
    read.map_err(|e| failed(&format!("results cannot be read: {e}")))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The pids and names by which processes are told of: those that they have in the
/// experiment, not those of fio's.
#[derive(Debug, Default)]
struct Called {
    /// By the pids that they had.
    by_pid: BTreeMap<Pid, (Pid, String)>,
    /// Whether nobody knows which is which.
    is_unknown: bool,
}

impl Called {
    /// Processes whose order is that in which fio started its own, as far as they used the
    /// disk.
    fn new(processes: &[(Pid, String)], seen: &Watched<'_>, fio: Option<Pid>) -> Called {
        let used: Vec<Pid> = seen
            .processes
            .keys()
            .copied()
            .filter(|p| Some(*p) != fio)
            .collect();
        if used.len() != processes.len() {
            return Called {
                is_unknown: true,
                ..Called::default()
            };
        }
        let is_others = |pid: &Pid| seen.names.contains_key(pid) && !used.contains(pid);
        let pairs = used.iter().zip(processes).map(|(had, (pid, name))| {
            // Of two with one number nobody could tell which is which.
            let told = if is_others(pid) { *had } else { *pid };
            (*had, (told, name.clone()))
        });
        Called {
            by_pid: pairs.collect(),
            is_unknown: false,
        }
    }

    fn pid(&self, had: Pid) -> Pid {
        self.by_pid.get(&had).map_or(had, |(pid, _)| *pid)
    }

    fn note(&self) -> Option<String> {
        self.is_unknown.then(|| {
            "which process is which is not known: not all of them used the disk; all are called \
             fio"
            .to_owned()
        })
    }
}

/// Passes events on, and sees which of fio's processes use the top of the stack.
struct Watched<'a> {
    to: &'a mut dyn TraceSink,
    top: Dev,
    /// When the run began: events count from there.
    begun: Time,
    /// Whether a process is fio's.
    names: BTreeMap<Pid, bool>,
    processes: BTreeMap<Pid, Used>,
    /// The last event.
    end: Time,
    called: Called,
}

impl<'a> Watched<'a> {
    /// Nothing was seen yet; times count from when the run began.
    fn new(to: &'a mut dyn TraceSink, stack: &Stack, begun: Time) -> Watched<'a> {
        Watched {
            to,
            top: stack.devices().next().map(|d| d.dev).unwrap_or_default(),
            begun,
            names: BTreeMap::new(),
            processes: BTreeMap::new(),
            end: Time::ZERO,
            called: Called::default(),
        }
    }

    /// A time of the machine as one of the run.
    fn in_run(&self, time: Time) -> Time {
        Time(time.0.saturating_sub(self.begun.0))
    }

    fn shifted(&self, event: &Event) -> Event {
        Event {
            time: self.in_run(event.time),
            pid: self.called.pid(event.pid),
            ..*event
        }
    }
}

impl TraceSink for Watched<'_> {
    fn event(&mut self, event: &Event) {
        let had = event.pid;
        let event = &self.shifted(event);
        let time = event.time;
        self.end = self.end.max(time);
        let is_used = event.action == Action::Queue && event.dev == self.top;
        if is_used && self.names.get(&had) == Some(&true) {
            let used = self.processes.entry(had);
            let used = used.or_insert(Used {
                first: time,
                last: time,
            });
            used.last = time;
        }
        self.to.event(event);
    }

    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        self.names.insert(pid, comm == "fio");
        let (pid, comm) = match self.called.by_pid.get(&pid) {
            Some((pid, name)) => (*pid, name.as_str()),
            None => (pid, comm),
        };
        self.to.process(self.in_run(time), pid, comm);
    }

    fn message(&mut self, event: &Event, text: &str) {
        self.to.message(&self.shifted(event), text);
    }
}

#[cfg(test)]
mod tests {
    use super::nanoseconds;

    #[test]
    fn the_kernel_says_how_long_it_has_been_up() {
        assert_eq!(nanoseconds("130.07\n"), 130_070_000_000);
        assert_eq!(nanoseconds(""), 0);
        assert_eq!(nanoseconds("x.y"), 0);
    }
}
