// SPDX-License-Identifier: MIT OR Apache-2.0
//! What came out of a machine: the events of its disk and fio's own results.

use super::groups::Uses;
use super::job_logs::Logs;
use super::prepare::SAID;
use super::stack::{NUMBERS, Stack};
use super::task::{REPLAY_DONE, Task, Who};
use super::told::{Called, Census, Told, Used, in_run};
use super::{replayed, streams};
use crate::build::Built;
use crate::failed::failed;
use crate::machine::Ended;
use crate::userland::BEGUN;
use blklab_experiment::Experiment;
use blklab_fio::job::Job;
use blklab_fio::run;
use blklab_fiostat::{Entry, JobLogs, ReadResult, ThreadStat};
use blklab_target::{JobResult, Outcome, Sinks};
use blklab_types::{Error, Pid, Time};
use std::collections::BTreeMap;
use std::io::Read;

/// Lines of the kernel that are told of a step that failed: the last is often a general one.
const KERNEL_LINES: usize = 3;
/// Longest text that is read: of fio with many jobs and bins.
const TEXT_MAX: u64 = 256 << 20;

/// What is kept of the files.
#[derive(Default)]
struct Found {
    /// fio's results.
    json: Option<String>,
    /// What our program says of processes.
    replayed: Option<String>,
    /// What the script printed.
    log: String,
    /// The step of the preparation that failed, and what it printed.
    unready: String,
    step: String,
    /// What the kernel said while that step ran.
    said: String,
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
        REPLAY_DONE => {
            found.replayed = Some(text(from)?);
            Ok(())
        }
        "log" => text(from).map(|t| found.log = t),
        "unready" => text(from).map(|t| found.unready = t),
        SAID => text(from).map(|t| found.said = t),
        "step.log" => text(from).map(|t| found.step = t),
        "load.pid" => text(from).map(|t| found.fio = t.trim().parse().ok()),
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
        return Err(failed(&format!(
            "Linux {}: {step} failed{}{}",
            kernel.release,
            last_lines(": ", &found.step, 1),
            last_lines("; the kernel says: ", &found.said, KERNEL_LINES)
        )));
    }
    let last_words = || found.log.lines().last().unwrap_or_default().to_owned();
    if let Some(what) = found.failed.lines().next() {
        return Err(failed(&format!("{what}: {}", last_words())));
    }
    if found.numbers.is_empty() {
        return Err(failed(&format!(
            "Linux {} ended before its devices were there{}; it may have too little memory \
             (vm.memory)",
            kernel.release,
            last_lines("; it says: ", &found.said, KERNEL_LINES)
        )));
    }
    let numbers = stack.numbers(&found.numbers)?;
    let begun = Time(ended.begun.0.max(nanoseconds(&found.begun)));
    let mut census = Census::new(stack);
    let has_trace = streams::send(ended, stack, &numbers, &mut census)?;
    if !has_trace {
        return Err(failed(&format!("blktrace left no trace: {}", last_words())));
    }
    let mut notes = Vec::new();
    let ends = match &task.who {
        Who::Processes(all) => {
            let ends = replayed::ends(found.replayed.as_deref().unwrap_or_default(), all.len());
            let ends = ends.ok_or_else(|| {
                failed(&format!(
                    "the processes were not run to their end: {}",
                    last_words()
                ))
            })?;
            notes.extend(replayed::check_ends(all, &ends)?);
            ends
        }
        Who::Jobs(_) => Vec::new(),
    };
    let used = census.of_jobs(found.fio, task.who.nr_jobs());
    let mut told = Told {
        to: &mut *sinks.trace,
        begun,
        called: match (&used, &task.who) {
            (_, Who::Processes(all)) => {
                let pids: Vec<Pid> = ends.iter().map(|end| end.pid).collect();
                Called::by_number(&pids, all, &census)
            }
            (None, _) => Called::default(),
            (Some(used), Who::Jobs(jobs)) => {
                Called::by_name(used, jobs.iter().map(|job| job.name.as_str()))
            }
        },
        end: Time::ZERO,
    };
    streams::send(ended, stack, &numbers, &mut told)?;
    let end = told.end;
    let jobs = match &task.who {
        Who::Jobs(jobs) => {
            let of_run = |u: Used| Used {
                first: in_run(u.first, begun),
                last: in_run(u.last, begun),
            };
            let used = used.map(|all| all.into_iter().map(|(pid, u)| (pid, of_run(u))).collect());
            let entries = entries(&found, task)?;
            let mut all = results_of(jobs, entries, used, end);
            task.logs.hand_out(found.logs, &mut all);
            all
        }
        Who::Processes(_) => Vec::new(),
    };
    let lost = |l: &&str| l.contains("dropped") && !l.contains("dropped 0)");
    if let Some(line) = found.blktrace.lines().find(lost) {
        notes.push(format!("blktrace: {}", line.trim()));
    }
    Ok(Outcome {
        jobs,
        pressure: found.groups.pressure,
        cgroups: found.groups.into_uses(&e.cgroups),
        end,
        notes,
        ..Outcome::default()
    })
}

/// The last lines of a text that are not empty, so many, behind some words; nothing if
/// there is none.
fn last_lines(words: &str, text: &str, most: usize) -> String {
    let all = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let all: Vec<&str> = all.collect();
    let last = &all[all.len().saturating_sub(most)..];
    if last.is_empty() {
        return String::new();
    }
    format!("{words}{}", last.join("; "))
}

/// fio's results of its jobs, in their order.
fn entries(found: &Found, task: &Task) -> Result<Vec<Entry>, Error> {
    let last_words = || found.log.lines().last().unwrap_or_default().to_owned();
    let Some(json) = &found.json else {
        return Err(failed(&format!("fio left no results: {}", last_words())));
    };
    let result = ReadResult::parse(json).map_err(|e| {
        // What it says instead is on the way.
        failed(&format!("{}: {}", e.what, last_words()))
    })?;
    let entries = result.result.entries;
    let nr_jobs = task.who.nr_jobs();
    if entries.len() != nr_jobs {
        return Err(failed(&format!(
            "fio ran {} of {nr_jobs} jobs: {}",
            entries.len(),
            last_words()
        )));
    }
    Ok(entries)
}

/// The results of jobs, with their processes if it is known which they were.
fn results_of(
    jobs: &[Job],
    entries: Vec<Entry>,
    used: Option<Vec<(Pid, Used)>>,
    end: Time,
) -> Vec<JobResult> {
    let pids = match used {
        Some(all) => all.into_iter().map(Some).collect(),
        None => vec![None; jobs.len()],
    };
    let results = jobs.iter().zip(entries).zip(pids);
    let results = results.map(|((job, entry), used)| {
        let pid = used.map_or(0, |(pid, _)| pid);
        let started = used.map_or(Time::ZERO, |(_, u)| u.first);
        let stat: ThreadStat = entry.stat;
        let moved = |i: usize| stat.dirs[i].runtime_ms > 0;
        let active = [0, 1, 2].map(|i| moved(i).then_some(started));
        JobResult {
            pid,
            job: job.clone(),
            logs: JobLogs::default(),
            started,
            ended: Some(used.map_or(end, |(_, u)| u.last)),
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

fn text(from: &mut dyn Read) -> Result<String, Error> {
    let mut bytes = Vec::new();
    let read = from.take(TEXT_MAX).read_to_end(&mut bytes);
    read.map_err(|e| failed(&format!("results cannot be read: {e}")))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{last_lines, nanoseconds};

    #[test]
    fn a_reason_is_the_last_lines_that_say_something() {
        assert_eq!(last_lines(": ", "a\n b \n\n", 1), ": b");
        assert_eq!(last_lines(": ", "a\nb\nc\n", 2), ": b; c");
        assert_eq!(last_lines(": ", "\n", 2), "");
    }

    #[test]
    fn the_kernel_says_how_long_it_has_been_up() {
        assert_eq!(nanoseconds("130.07\n"), 130_070_000_000);
        assert_eq!(nanoseconds(""), 0);
        assert_eq!(nanoseconds("x.y"), 0);
    }
}
