// SPDX-License-Identifier: MIT OR Apache-2.0
//! The job file of an experiment: read, and checked against its disk and the
//! folders that its logs go to, before anything runs.

use crate::surroundings::RealSurroundings;
use blklab_experiment::{Experiment, ExperimentError, Workload};
use blklab_fio::error::JobFileError;
use blklab_fio::job::Job;
use blklab_fio::option::{ENGINES, EngineSpec, Queueing};
use blklab_fio::parse::{JobFile, ParseOptions, Surroundings as _, parse};
use blklab_fio::range::{FileState, find_ranges};
use std::borrow::Cow;
use std::path::Path;

/// Options that name log files.
const LOGS: [&str; 4] = [
    "write_lat_log",
    "write_bw_log",
    "write_iops_log",
    "write_hist_log",
];

/// Parses the job file of an experiment.
///
/// # Errors
/// What is wrong with its first bad section.
pub fn parse_jobs(e: &Experiment, name: &str, text: &str) -> Result<JobFile, ExperimentError> {
    let options = ParseOptions {
        sections: e.sections.clone(),
        template: Vec::new(),
        entropy: e.seed,
        release: e.fio,
    };
    let around = RealSurroundings::beside(Path::new(name)).on_machine_of(e);
    match parse(name, text, &options, &around) {
        Ok(jobs) => with_data(jobs).map_err(|err| err.in_file(name)),
        Err(err) if names(text).is_empty() => Err(match in_a_line(&err) {
            e if err.dropped.is_some() || e.line.is_some() => e,
            e => ExperimentError {
                what: "no job: a job file has a section such as [job1], with rw= and size=".into(),
                ..e
            },
        }),
        Err(err) => {
            let missing = e
                .sections
                .iter()
                .find(|s| !names(text).contains(&s.as_str()));
            let Some(missing) = missing else {
                return Err(in_a_line(&err));
            };
            let what = blklab_experiment::no_such("section", missing, &names(text));
            Err(ExperimentError::new(what).in_file(name))
        }
    }
}

/// The jobs without those whose engine moves no data; notes say which.
fn with_data(mut jobs: JobFile) -> Result<JobFile, ExperimentError> {
    let no_data = |job: &Job| {
        let engine = job.engine().filter(|e| e.queueing == Queueing::NoData);
        engine.is_some()
    };
    if jobs.jobs.iter().all(no_data) {
        let names: Vec<&str> = jobs.jobs.iter().map(|j| &*j.settings.ioengine).collect();
        return Err(ExperimentError::new(format!(
            "no job reads or writes: ioengine={} moves no data",
            names.first().unwrap_or(&"")
        )));
    }
    jobs.jobs.retain(|job| !no_data(job));
    Ok(jobs)
}

/// The names of the sections of a job file, without global ones.
fn names(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim_start);
    let heads = lines.filter_map(|l| l.strip_prefix('[')?.split(']').next());
    let mut names: Vec<&str> = heads.filter(|n| *n != "global").collect();
    names.dedup();
    names
}

/// The first problem of a job file, without fio's prefix.
fn in_a_line(err: &JobFileError) -> ExperimentError {
    let Some(first) = err.problems.first() else {
        return ExperimentError::new(err.to_string());
    };
    let message = first.message.trim_start_matches("fio: ");
    let mut what = message.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some(hint) = &first.hint {
        what = format!("{what}. {hint}");
    }
    ExperimentError {
        line: (first.place.line > 0).then_some(first.place.line as usize),
        ..ExperimentError::new(what)
    }
    .in_file(&first.place.file)
}

/// Name and text of the job file that a workload is.
pub(crate) fn job_file_of(workload: &Workload) -> Option<(&str, Cow<'_, str>)> {
    match workload {
        Workload::Fio { name, text } => Some((name, Cow::Borrowed(text))),
        Workload::Scenario(s) => Some((s.spec().name, Cow::Owned(s.job_text()))),
        Workload::Processes(_) => None,
    }
}

/// Checks what [`Experiment::check`] cannot: that a job file parses, that its
/// logs have a folder, and that its jobs lie within the disk.
///
/// # Errors
/// The first thing that is wrong.
pub fn check(e: &Experiment) -> Result<(), ExperimentError> {
    e.check().map_err(|err| err.of(e))?;
    let Some((name, text)) = job_file_of(&e.workload) else {
        return Ok(());
    };
    let jobs = parse_jobs(e, name, &text)?;
    for job in &jobs.jobs {
        check_engine(job)
            .and_then(|()| check_ranges(job))
            .and_then(|()| check_logs(job))
            .map_err(|err| err.in_file(name))?;
    }
    e.with_cgroups_of(&jobs.jobs)
        .map_err(|err| err.in_file(name))?;
    notes(e, &jobs).map_err(|err| err.in_file(name))?;
    Ok(())
}

/// The scheduler that the jobs ask for with `ioscheduler`, if any does. fio
/// writes it to the disk's queue whenever such a job starts; here the scheduler
/// is the same from start to end. Job files that are wrong say so later.
///
/// # Errors
/// If jobs ask for several.
pub(crate) fn wanted_scheduler(e: &Experiment) -> Result<Option<String>, ExperimentError> {
    let Some((name, text)) = job_file_of(&e.workload) else {
        return Ok(None);
    };
    if !text.contains("ioscheduler") && !text.contains("include") {
        return Ok(None);
    }
    let Ok(jobs) = parse_jobs(e, name, &text) else {
        return Ok(None);
    };
    let mut wanted: Option<(&str, &str)> = None;
    for job in jobs.jobs.iter().filter(|job| !job.is_diskless()) {
        let Some(own) = &job.settings.ioscheduler else {
            continue;
        };
        match wanted {
            Some((other, first)) if first != own => {
                return Err(ExperimentError::new(format!(
                    "job '{other}' asks for ioscheduler={first}, job '{}' for {own}: the \
                     scheduler stays the same here; choose one with --sched",
                    job.name
                ))
                .in_file(name));
            }
            _ => wanted = Some((&job.name, own)),
        }
    }
    Ok(wanted.map(|(_, scheduler)| scheduler.to_owned()))
}

/// How deeply included files are followed.
const INCLUDE_DEPTH_MAX: usize = 16;

/// The job file with included files in place and `${VARIABLES}` replaced: what
/// ran, for somebody without either.
pub(crate) fn self_contained(name: &str, text: &str) -> String {
    let around = RealSurroundings::beside(Path::new(name));
    let mut out = String::with_capacity(text.len());
    put_in_place(&around, text, 0, &mut out);
    out
}

fn put_in_place(around: &RealSurroundings, text: &str, depth: usize, out: &mut String) {
    for line in text.lines() {
        let line = with_variables(around, line);
        let included = line.trim().strip_prefix("include ").map(str::trim);
        match included.map(|file| around.read(file)) {
            Some(Ok(text)) if depth < INCLUDE_DEPTH_MAX => {
                put_in_place(around, &text, depth + 1, out);
            }
            _ => {
                out.push_str(&line);
                out.push('\n');
            }
        }
    }
}

fn with_variables(around: &RealSurroundings, line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else {
            break;
        };
        out.push_str(before);
        out.push_str(&around.environment(name).unwrap_or_default());
        rest = after;
    }
    out + rest
}

fn check_engine(job: &Job) -> Result<(), ExperimentError> {
    let name = job.settings.ioengine.as_str();
    let simulated = |e: &&EngineSpec| e.is_simulated();
    let valid: Vec<&str> = ENGINES.iter().filter(simulated).map(|e| e.name).collect();
    match job.engine() {
        Some(e) if simulated(&e) => Ok(()),
        Some(_) => Err(ExperimentError::new(format!(
            "job '{}': ioengine={name} is not simulated; those that are: {}",
            job.name,
            valid.join(", ")
        ))),
        None => Err(ExperimentError::new(format!(
            "job '{}': ioengine: {}",
            job.name,
            blklab_experiment::no_such("engine", name, &valid)
        ))),
    }
}

/// Largest `iodepth`: a request record is kept for each.
const IODEPTH_MAX: u32 = 1 << 20;
/// Longest time of an option: 100 years, well within 64 bits of nanoseconds.
const TIME_MAX_US: u64 = 100 * 365 * 86_400 * 1_000_000;

fn check_ranges(job: &Job) -> Result<(), ExperimentError> {
    let s = &job.settings;
    if s.iodepth > IODEPTH_MAX {
        return Err(ExperimentError::new(format!(
            "job '{}': iodepth={}: at most {IODEPTH_MAX}",
            job.name, s.iodepth
        )));
    }
    let times = [
        ("startdelay", job.start_delay_us),
        ("runtime", s.runtime_us),
        ("ramp_time", s.ramp_time_us),
        ("latency_target", s.latency_target_us),
        ("latency_window", s.latency_window_us),
        (
            "max_latency",
            s.max_latency_us.iter().copied().max().unwrap_or(0),
        ),
    ];
    match times.iter().find(|(_, us)| *us > TIME_MAX_US) {
        None => Ok(()),
        Some((option, us)) => Err(ExperimentError::new(format!(
            "job '{}': {option} of {} s: at most {} s, 100 years",
            job.name,
            us / 1_000_000,
            TIME_MAX_US / 1_000_000
        ))),
    }
}

fn check_logs(job: &Job) -> Result<(), ExperimentError> {
    let logs = LOGS
        .iter()
        .filter_map(|o| Some((*o, job.settings.reporting.get(o)?)));
    let iolog = job.settings.write_iolog.iter().map(|f| ("write_iolog", f));
    for (option, file) in logs.chain(iolog) {
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        if !folder.as_os_str().is_empty() && !folder.is_dir() {
            return Err(ExperimentError::new(format!(
                "job '{}': {option}={file}: the folder {} does not exist",
                job.name,
                folder.display()
            )));
        }
    }
    Ok(())
}

/// What a reader of the result should know about the jobs.
///
/// # Errors
/// If a job reads or writes only beyond the end of the disk.
pub(crate) fn notes(e: &Experiment, jobs: &JobFile) -> Result<Vec<String>, ExperimentError> {
    let disk_bytes = blklab_sim::fio::disk_bytes(e)?;
    let mut notes: Vec<String> = Vec::new();
    let mut add = |note: String| {
        if !notes.contains(&note) {
            notes.push(note);
        }
    };
    for job in &jobs.jobs {
        if let Some(wanted) = &job.settings.ioscheduler
            && *wanted != e.scheduler
        {
            add(format!(
                "the job file asks for ioscheduler={wanted}; {} ran, chosen by --sched or the \
                 experiment file",
                e.scheduler
            ));
        }
        if let Some(note) = place_on_disk(job, disk_bytes)? {
            add(note);
        }
    }
    Ok(notes)
}

/// A job on the disk itself must begin before its end; beyond it, it is cut.
fn place_on_disk(job: &Job, disk_bytes: u64) -> Result<Option<String>, ExperimentError> {
    let around = RealSurroundings::beside(Path::new(""));
    let state = |name: &str| {
        if around.is_device(name) {
            FileState::Device(disk_bytes)
        } else {
            FileState::Missing
        }
    };
    if job.is_diskless() {
        return Ok(None);
    }
    let Ok(ranges) = find_ranges(job, state) else {
        // Said by whoever sets the files up.
        return Ok(None);
    };
    let devices = job.files.iter().zip(&ranges.files);
    for (name, range) in devices.filter(|(name, _)| around.is_device(name)) {
        if range.first >= disk_bytes {
            return Err(ExperimentError::new(format!(
                "job '{}': offset {} lies beyond the end of {name}, which has {disk_bytes} bytes",
                job.name, range.first
            )));
        }
        if range.length > disk_bytes - range.first {
            return Ok(Some(format!(
                "job '{}' reaches beyond the end of {name} ({disk_bytes} bytes) and is cut \
                 there, as in fio",
                job.name
            )));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn includes_are_put_in_place() {
        let dir = std::env::temp_dir().join(format!("blklab-job-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("common.inc"), "size=1m\ndirect=1\n").unwrap();
        let name = dir.join("a.fio").display().to_string();
        let text = "[a]\ninclude common.inc\nrw=read${NO_SUCH_VARIABLE}\n";
        assert_eq!(
            self_contained(&name, text),
            "[a]\nsize=1m\ndirect=1\nrw=read\n"
        );
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn what_is_wrong_with_a_job_file_is_one_line() {
        let check = |text: &str, sections: &[&str], expected: &str| {
            let workload = Workload::Fio {
                name: "a.fio".into(),
                text: text.into(),
            };
            let mut e = Experiment::new("a", workload);
            e.sections = sections.iter().map(|s| (*s).to_owned()).collect();
            let error = super::check(&e).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        };
        check("", &[], "a.fio: no job: a job file has a section");
        check(
            "[a]\nrw=raed\n",
            &[],
            "a.fio:2: failed parsing rw=raed: rw: valid values: read",
        );
        check(
            "[a]\nsizee=4k\n",
            &[],
            "a.fio:2: Bad option <sizee=4k>. Did you mean size?",
        );
        check(
            "[ab]\nsize=1m\n",
            &["ac"],
            "a.fio: no section is called 'ac'; did you mean 'ab'?",
        );
        check(
            "[a]\nsize=1m\nioengine=libaoi\n",
            &[],
            "a.fio: job 'a': ioengine: no engine is called 'libaoi'; did you mean 'libaio'?",
        );
        check(
            "[a]\nsize=1m\nstartdelay=1000000d\n",
            &[],
            "a.fio: job 'a': startdelay of 86400000000 s: at most 3153600000 s",
        );
        check(
            "[a]\nsize=1m\niodepth=2000000000\n",
            &[],
            "a.fio: job 'a': iodepth=2000000000: at most 1048576",
        );
        check(
            "[a]\nsize=1m\nioengine=rbd\n",
            &[],
            "a.fio: job 'a': ioengine=rbd is not simulated; those that are: sync",
        );
        check(
            "[a]\nsize=1m\nwrite_lat_log=no/x\n",
            &[],
            "a.fio: job 'a': write_lat_log=no/x: the folder no does not exist",
        );
        check(
            "[a]\nfilename=/dev/sda\nsize=1m\noffset=10t\n",
            &[],
            "a.fio: job 'a': offset 10995116277760 lies beyond the end of /dev/sda, which has 500",
        );
    }
}
