// SPDX-License-Identifier: MIT OR Apache-2.0
//! The job file of an experiment: read, and checked against its disk, before
//! anything runs.

use crate::memory::{self, Estimate};
use crate::surroundings::RealSurroundings;
use blklab_experiment::{Experiment, ExperimentError, Workload};
use blklab_fio::error::JobFileError;
use blklab_fio::job::Job;
use blklab_fio::option::{ENGINES, EngineSpec, Queueing};
use blklab_fio::parse::{JobFile, ParseOptions, Surroundings as _, parse};
use blklab_fio::range::{FileState, find_ranges};
use blklab_fiostat::{LogKind, log_file_name};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Parses the job file of an experiment.
///
/// # Errors
/// What is wrong with its first bad section.
pub fn parse_jobs(e: &Experiment, name: &str, text: &str) -> Result<JobFile, ExperimentError> {
    parse_jobs_in(e, name, text, &surroundings(e, name))
}

/// What the job file of an experiment may refer to.
pub(crate) fn surroundings(e: &Experiment, name: &str) -> RealSurroundings {
    RealSurroundings::beside(Path::new(name)).on_machine_of(e)
}

/// How the job file of an experiment is read.
pub(crate) fn parse_options(e: &Experiment, name: &str) -> ParseOptions {
    ParseOptions {
        sections: e.sections.clone(),
        template: Vec::new(),
        entropy: e.seed,
        release: e.fio,
        keeps_text: is_of_a_stranger(e, name),
    }
}

/// Whether the experiment file names a job file outside its folder: that may be
/// any file of this machine, of which messages show nothing.
fn is_of_a_stranger(e: &Experiment, name: &str) -> bool {
    if name.starts_with(&e.file) || e.file.is_empty() {
        return false;
    }
    let real = |path: &Path| path.canonicalize().ok();
    let folder = match Path::new(&e.file).parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    match (real(Path::new(name)), real(folder)) {
        (Some(file), Some(folder)) => !file.starts_with(folder),
        _ => false,
    }
}

fn parse_jobs_in(
    e: &Experiment,
    name: &str,
    text: &str,
    around: &RealSurroundings,
) -> Result<JobFile, ExperimentError> {
    let options = parse_options(e, name);
    match parse(name, text, &options, around) {
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
            let known = match options.keeps_text {
                true => Vec::new(),
                false => names(text),
            };
            let what = blklab_experiment::no_such("section", missing, &known);
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
pub(crate) fn in_a_line(err: &JobFileError) -> ExperimentError {
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
pub fn job_file_of(workload: &Workload) -> Option<(&str, Cow<'_, str>)> {
    match workload {
        Workload::Fio { name, text } => Some((name, Cow::Borrowed(text))),
        Workload::Scenario(s) => Some((s.spec().name, Cow::Owned(s.job_text()))),
        Workload::Processes(_) => None,
    }
}

/// What a run needs and makes beside its results.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// Files that the experiment is read from.
    pub read: Vec<PathBuf>,
    /// Logs that its jobs write.
    pub logs: Vec<JobLog>,
    /// The memory that it takes.
    pub memory: Estimate,
}

/// A log that a job file names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobLog {
    /// What names it, for messages.
    pub writer: String,
    /// The file, as the job file names it.
    pub name: String,
}

/// Checks what [`Experiment::check`] cannot: that a job file parses, and that
/// its jobs lie within the disk and the memory. Returns what a run needs and
/// makes.
///
/// # Errors
/// The first thing that is wrong.
pub fn check(e: &Experiment) -> Result<Needs, ExperimentError> {
    e.check().map_err(|err| err.of(e))?;
    let mut files = Needs::default();
    files.read.push(PathBuf::from(&e.file));
    let of_device = e.device_files().map_err(|err| err.of(e))?;
    files
        .read
        .extend(of_device.into_iter().map(|(name, _)| name.into()));
    let Some((name, text)) = job_file_of(&e.workload) else {
        files.memory = Estimate::of(e, None, 0);
        memory::check(std::slice::from_ref(&files.memory), 1).map_err(|err| err.of(e))?;
        return Ok(files);
    };
    let around = surroundings(e, name);
    let jobs = parse_jobs_in(e, name, &text, &around)?;
    files.read.push(PathBuf::from(name));
    files.read.extend(around.files_read());
    for job in &jobs.jobs {
        check_engine(job)
            .and_then(|()| check_ranges(job))
            .map_err(|err| err.in_file(name))?;
        files.logs.extend(logs_of(job, name));
    }
    e.with_cgroups_of(&jobs.jobs)
        .map_err(|err| err.in_file(name))?;
    notes(e, &jobs).map_err(|err| err.in_file(name))?;
    files.memory = Estimate::of(e, Some(&jobs), blklab_sim::fio::disk_bytes(e)?);
    memory::check(std::slice::from_ref(&files.memory), 1).map_err(|err| err.in_file(name))?;
    Ok(files)
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

/// Options that name logs, and what each of them makes.
const LOGS: [(&str, &[LogKind]); 4] = [
    (
        "write_lat_log",
        &[LogKind::Slat, LogKind::Clat, LogKind::Lat],
    ),
    ("write_bw_log", &[LogKind::Bw]),
    ("write_iops_log", &[LogKind::Iops]),
    ("write_hist_log", &[LogKind::ClatHist]),
];

/// The name of one of a job's logs.
pub(crate) fn log_name(job: &Job, kind: LogKind) -> String {
    let options = &job.settings.reporting;
    let made = |(_, kinds): &&(&str, &[LogKind])| kinds.contains(&kind);
    let option = LOGS.iter().find(made).map_or("", |(option, _)| option);
    // An option without a value leaves the prefix to the job's name.
    let given = options.get(option).filter(|prefix| !prefix.is_empty());
    let prefix = given.unwrap_or(&job.name);
    let per_job = options.get("per_job_logs").is_none_or(|v| v != "0");
    log_file_name(prefix, kind, per_job.then_some(job.thread))
}

fn logs_of(job: &Job, file: &str) -> Vec<JobLog> {
    let asked = |(option, _): &&(&str, &[LogKind])| job.settings.reporting.contains_key(option);
    let logs = LOGS.iter().filter(asked).flat_map(|(option, kinds)| {
        kinds.iter().map(move |kind| JobLog {
            writer: format!("{file}: {option}"),
            name: log_name(job, *kind),
        })
    });
    let iolog = job.settings.write_iolog.iter().map(|name| JobLog {
        writer: format!("{file}: write_iolog"),
        name: name.clone(),
    });
    logs.chain(iolog).collect()
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
/// Most threads of a job with `io_submit_mode=offload`.
const WORKERS_MAX: u32 = 4096;
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
    if s.offload && s.iodepth > WORKERS_MAX {
        return Err(ExperimentError::new(format!(
            "job '{}': iodepth={}: at most {WORKERS_MAX} with io_submit_mode=offload, which has a \
             thread for each",
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
            "[a]\nfilename=/dev/sda\nsize=1m\noffset=10t\n",
            &[],
            "a.fio: job 'a': offset 10995116277760 lies beyond the end of /dev/sda, which has 500",
        );
    }
}
