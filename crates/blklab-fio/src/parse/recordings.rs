// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loading the logs that jobs replay, once all jobs are known: as in fio, a
//! clone does not inherit what its parent's log has changed.

use super::{JobFile, JobFileError, Recording, Surroundings};
use crate::assign::split_names;
use crate::error::{Note, Problem};
use crate::job::Job;
use crate::replay::merge::{Source, merge};
use crate::replay::{Replay, text, trace};
use crate::settings::{Dir, Pattern, ReplayOptions};
use blklab_types::Error;
use std::sync::Arc;

/// Most traces that are merged, as in fio.
const MERGED_MAX: usize = 64;

/// Options that mean nothing beside a log. What it holds is given in full.
const OVERRIDDEN: [&str; 21] = [
    "rw",
    "bs",
    "ba",
    "bsrange",
    "bssplit",
    "size",
    "io_size",
    "number_ios",
    "loops",
    "filename",
    "nrfiles",
    "offset",
    "zonemode",
    "rate",
    "rate_iops",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "rwmixread",
    "rwmixwrite",
    "write_iolog",
];

/// Options that mean nothing without a log.
const OF_REPLAY: [&str; 10] = [
    "read_iolog_chunked",
    "replay_no_stall",
    "replay_time_scale",
    "replay_redirect",
    "replay_align",
    "replay_scale",
    "replay_skip",
    "merge_blktrace_file",
    "merge_blktrace_scalars",
    "merge_blktrace_iters",
];

/// The names of the logs that a value of `read_iolog` lists.
pub fn log_names(value: &str) -> Vec<String> {
    split_names(value.trim())
}

/// Loads the logs of all jobs.
pub(super) fn load(out: &mut JobFile, around: &dyn Surroundings) -> Result<(), JobFileError> {
    let mut loaded: Vec<(Vec<String>, ReplayOptions, Arc<Replay>)> = Vec::new();
    for job in &mut out.jobs {
        let options = job.settings.replay.clone();
        if options.logs.is_none() {
            note_options_without_log(job, &mut out.notes);
            continue;
        }
        let logs = logs_of(job)?;
        let known = |(names, with, _): &&(Vec<String>, ReplayOptions, _)| {
            *names == logs && *with == options
        };
        let replay = match loaded.iter().find(known) {
            Some((_, _, replay)) => Arc::clone(replay),
            None => {
                let replay = Arc::new(read(job, &logs, around)?);
                for log in &logs {
                    if !out.logs.contains(log) {
                        out.logs.push(log.clone());
                    }
                }
                note(job, &replay, &mut out.notes);
                loaded.push((logs, options, Arc::clone(&replay)));
                replay
            }
        };
        apply(job, replay);
    }
    Ok(())
}

fn refused(job: &Job, message: String) -> JobFileError {
    JobFileError {
        dropped: Some(job.section.clone()),
        no_jobs_in: None,
        ..JobFileError::at(&job.place, message)
    }
}

/// The logs that a job reads: one, by the number of the clone, or all that are
/// merged.
fn logs_of(job: &Job) -> Result<Vec<String>, JobFileError> {
    let options = &job.settings.replay;
    let value = options.logs.as_deref().unwrap_or_default();
    let names = log_names(value);
    if names.is_empty() {
        return Err(refused(
            job,
            format!("read_iolog={value}: no file is named"),
        ));
    }
    if names.iter().any(|name| name == "-") {
        let message = "read_iolog=-: a log is a file here, not standard input";
        return Err(refused(job, message.to_owned()));
    }
    if job.settings.directory.is_some() {
        let message = "read_iolog: does not go with directory=: the log names its files in full \
                       (fio looks for them under other names and crashes)";
        return Err(refused(job, message.to_owned()));
    }
    if options.merge_file.is_none() {
        return Ok(vec![names[job.subjob as usize % names.len()].clone()]);
    }
    if names.len() > MERGED_MAX {
        let message = format!("read_iolog: at most {MERGED_MAX} traces can be merged");
        return Err(refused(job, message));
    }
    Ok(names)
}

fn read(job: &Job, logs: &[String], around: &dyn Surroundings) -> Result<Replay, JobFileError> {
    let options = &job.settings.replay;
    let at_line = |problem: Problem| JobFileError {
        problems: vec![problem],
        dropped: Some(job.section.clone()),
        no_jobs_in: None,
    };
    let log = logs.join(":");
    let named = |name: &str, why: String| format!("read_iolog={name}: {why}");
    if options.merge_file.is_some() {
        let sources = sources(options, logs, around).map_err(|why| refused(job, why))?;
        let events = merge(sources).map_err(|e| refused(job, e.what))?;
        return trace::read(events, &log, options).map_err(at_line);
    }
    let recording = around
        .recording(&log)
        .map_err(|e| refused(job, named(&log, e.what)))?;
    match recording {
        Recording::Log(mut input) => text::read(&mut *input, &log, options),
        Recording::Trace(events) => trace::read(events, &log, options),
    }
    .map_err(at_line)
}

/// The traces to merge, with how often and how fast each is played.
fn sources<'a>(
    options: &ReplayOptions,
    logs: &'a [String],
    around: &'a dyn Surroundings,
) -> Result<Vec<Source<'a>>, String> {
    let lists = [
        ("merge_blktrace_scalars", &options.merge_percents),
        ("merge_blktrace_iters", &options.merge_rounds),
    ];
    for (name, list) in lists {
        if !list.is_empty() && list.len() != logs.len() {
            return Err(format!(
                "{name}: {} numbers for {} files of read_iolog",
                list.len(),
                logs.len()
            ));
        }
    }
    // fio cuts the fractions off.
    let number =
        |list: &[f64], at: usize, default: u64| list.get(at).map_or(default, |n| *n as u64);
    let source = |(at, log): (usize, &'a String)| Source {
        open: Box::new(move || match around.recording(log) {
            Ok(Recording::Trace(events)) => Ok(events),
            Ok(Recording::Log(_)) => Err(Error::new(format!(
                "read_iolog={log}: only blktraces can be merged"
            ))),
            Err(e) => Err(e.within(&format!("read_iolog={log}"))),
        }),
        percent: number(&options.merge_percents, at, 100),
        rounds: number(&options.merge_rounds, at, 1),
    };
    Ok(logs.iter().enumerate().map(source).collect())
}

/// The log decides what the job does, and on which files.
fn apply(job: &mut Job, replay: Arc<Replay>) {
    job.files = replay.files.iter().map(|file| file.name.clone()).collect();
    let settings = &mut job.settings;
    let [reads, writes, trims] = replay.count.map(|count| count > 0);
    settings.rw = Pattern {
        reads,
        writes,
        trims,
        random: false,
    };
    for dir in [Dir::Read, Dir::Write, Dir::Trim] {
        let longest = replay.longest[dir as usize];
        let max = &mut settings.max_bs[dir as usize];
        *max = longest.max(*max);
    }
    settings.nrfiles = job.files.len() as u32;
    settings.openfiles = settings.nrfiles;
    settings.write_iolog = None;
    if let (Some(depth), false) = (replay.depth, settings.is_given("iodepth")) {
        settings.iodepth = depth;
        settings.iodepth_low = depth;
    }
    job.replay = Some(replay);
}

fn note(job: &Job, replay: &Replay, notes: &mut Vec<Note>) {
    let mut say = |text: String| {
        notes.push(Note {
            place: job.place.clone(),
            option: "read_iolog",
            text,
        });
    };
    for text in &replay.notes {
        say(format!("{}: {text}", replay.log));
    }
    let settings = &job.settings;
    let overridden: Vec<&str> = OVERRIDDEN
        .into_iter()
        .filter(|name| settings.is_given(name))
        .collect();
    if !overridden.is_empty() {
        say(format!(
            "the log decides files, offsets, lengths and their order: no effect of {}",
            overridden.join(", ")
        ));
    }
    if let Some(file) = &settings.replay.merge_file {
        say(format!(
            "the merged trace is replayed, not written to {file}"
        ));
    }
    let devices = replay.files.iter().filter(|f| f.name.starts_with("/dev/"));
    if devices.count() > 1 {
        say("all devices of the log are the one disk".to_owned());
    }
}

fn note_options_without_log(job: &Job, notes: &mut Vec<Note>) {
    let settings = &job.settings;
    for option in OF_REPLAY.into_iter().filter(|name| settings.is_given(name)) {
        let note = Note {
            place: job.place.clone(),
            option,
            text: "has no effect without read_iolog".to_owned(),
        };
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
}
