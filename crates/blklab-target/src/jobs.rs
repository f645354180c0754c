// SPDX-License-Identifier: MIT OR Apache-2.0
//! The job file of an experiment: parsed once, with all that it refers to.

use crate::surroundings::RealSurroundings;
use blklab_experiment::{Experiment, Workload};
use blklab_fio::error::JobFileError;
use blklab_fio::job::Job;
use blklab_fio::option::Queueing;
use blklab_fio::parse::{JobFile, ParseOptions, parse};
use blklab_fio::release::Release;
use blklab_fiostat::{LogKind, log_file_name};
use blklab_types::Place;
use blklab_types::{Error, ErrorKind, no_such, shown};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// A parsed job file.
#[derive(Debug)]
pub struct JobText {
    /// Its name for messages.
    pub name: String,
    /// Its jobs.
    pub jobs: JobFile,
    /// The files that it was read from, itself first.
    pub read: Vec<PathBuf>,
    /// What it may refer to.
    around: RealSurroundings,
}

impl JobText {
    /// The jobs of an experiment; none if it has no fio jobs.
    ///
    /// # Errors
    /// What is wrong with the first bad section.
    pub fn of_experiment(e: &Experiment) -> Result<Option<JobText>, Error> {
        let key = JobKey::for_experiment(e, true);
        key.map(|key| key.parse()).transpose()
    }
}

/// All that the jobs of an experiment depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobKey {
    name: String,
    text: String,
    sections: Vec<String>,
    seed: u64,
    vary_offsets: bool,
    release: Release,
    keeps_text: bool,
    memory_bytes: u64,
    cpus: u32,
}

impl JobKey {
    /// Of an experiment; none if it has no fio jobs. Without programs those of a scenario
    /// are fio jobs, where such do the same.
    pub(crate) fn for_experiment(e: &Experiment, has_programs: bool) -> Option<JobKey> {
        let (name, mut text) = job_file_of(&e.workload)?;
        if let Workload::Scenario(s) = &e.workload
            && !has_programs
            && let Ok(plain) = s.job_text_without_programs()
        {
            text = Cow::Owned(plain);
        }
        Some(JobKey {
            name: name.to_owned(),
            text: text.into_owned(),
            sections: e.sections.clone(),
            seed: e.seed,
            vary_offsets: e.vary_offsets,
            release: e.fio,
            keeps_text: is_of_a_stranger(e, name),
            memory_bytes: e.vm.memory_bytes(e.kernel),
            cpus: e.vm.cpus(e.kernel),
        })
    }

    /// Parses the file.
    pub(crate) fn parse(&self) -> Result<JobText, Error> {
        let name = &self.name;
        let around =
            RealSurroundings::beside(Path::new(name)).on_machine(self.memory_bytes, self.cpus);
        let wanted = self.wanted();
        let options = ParseOptions {
            sections: wanted.clone(),
            template: varied(self.vary_offsets),
            entropy: self.seed,
            release: self.release,
            keeps_text: self.keeps_text,
        };
        let parsed = parse(name, &self.text, &options, &around);
        let jobs = parsed.map_err(|err| self.refused(&err, &wanted))?;
        self.check_all_there(&jobs, &wanted)?;
        let jobs = with_data(jobs)?;
        let mut read = vec![PathBuf::from(name)];
        read.extend(around.files_read());
        Ok(JobText {
            name: name.clone(),
            jobs,
            read,
            around,
        })
    }

    /// The sections that are to run: `a,b` means both, unless one is called so.
    fn wanted(&self) -> Vec<String> {
        let is_section = |name: &str| {
            let header = format!("[{name}]");
            self.text
                .lines()
                .any(|line| line.trim().starts_with(&header))
        };
        let split = |given: &String| -> Vec<String> {
            if is_section(given) {
                return vec![given.clone()];
            }
            given
                .split(',')
                .map(|part| part.trim().to_owned())
                .collect()
        };
        self.sections.iter().flat_map(split).collect()
    }

    /// Refuses sections that are to run and are not there, beside others that are.
    fn check_all_there(&self, jobs: &JobFile, wanted: &[String]) -> Result<(), Error> {
        let is_there = |name: &String| jobs.jobs.iter().any(|job| job.section == *name);
        match wanted.iter().find(|name| !is_there(name)) {
            Some(missing) => {
                let what = format!("no section is called '{}'", shown(missing));
                Err(Error::new(what)
                    .of_kind(ErrorKind::UnknownName)
                    .in_file(&self.name))
            }
            None => Ok(()),
        }
    }

    /// Why the file was refused, in a line.
    fn refused(&self, err: &JobFileError, wanted: &[String]) -> Error {
        let told = in_a_line(err);
        let Some(names) = &err.no_jobs_in else {
            return told;
        };
        let missing = wanted.iter().find(|s| !names.contains(s));
        match missing {
            Some(missing) if !names.is_empty() => {
                let known: Vec<&str> = if self.keeps_text {
                    Vec::new()
                } else {
                    names.iter().map(String::as_str).collect()
                };
                Error::new(no_such("section", missing, &known)).in_file(&self.name)
            }
            _ => Error {
                what: "no job: a job file has a section such as [job1], with rw= and size=".into(),
                ..told
            },
        }
    }
}

/// What stands before the job file where its random numbers follow the seed.
fn varied(vary_offsets: bool) -> Vec<String> {
    let line = vary_offsets.then(|| "randrepeat=0".to_owned());
    line.into_iter().collect()
}

impl JobText {
    /// Where a file is that it names.
    pub fn find(&self, name: &str) -> PathBuf {
        self.around.find(name)
    }

    /// The file as it is read again without what it refers to: includes in place,
    /// variables with their values. `rename` may replace values of options.
    ///
    /// # Errors
    /// A value that no job file can hold, or `rename`'s error.
    pub fn spell_out(&self, rename: &mut blklab_fio::parse::Rename<'_>) -> Result<String, Error> {
        let spelled = self.jobs.spell_out(&self.around, rename);
        spelled.map_err(|err| in_a_line(&err))
    }

    /// The scheduler that the jobs ask for with `ioscheduler`, if any does. fio
    /// writes it to the disk's queue whenever such a job starts; here the
    /// scheduler is the same from start to end. With it the place where one asks.
    ///
    /// # Errors
    /// If jobs ask for several.
    pub fn wanted_scheduler(&self) -> Result<Option<(&str, &Place)>, Error> {
        let mut wanted: Option<(&Job, &str)> = None;
        for job in self.jobs.jobs.iter().filter(|job| !job.is_diskless()) {
            let Some(own) = &job.settings.ioscheduler else {
                continue;
            };
            match wanted {
                Some((other, first)) if first != own => {
                    return Err(Error::new(format!(
                        "job '{}' asks for ioscheduler={first}, job '{}' for {own}: the \
                         scheduler stays the same here; choose one",
                        other.name, job.name
                    ))
                    .about("scheduler")
                    .at(job.place_of(&["ioscheduler"])));
                }
                _ => wanted = Some((job, own)),
            }
        }
        Ok(wanted.map(|(job, scheduler)| (scheduler, job.place_of(&["ioscheduler"]))))
    }

    /// The logs that the jobs write.
    pub(crate) fn logs(&self) -> Vec<JobLog> {
        self.jobs.jobs.iter().flat_map(logs_of).collect()
    }
}

/// Name and text of the job file that a workload is.
pub fn job_file_of(workload: &Workload) -> Option<(&str, Cow<'_, str>)> {
    match workload {
        Workload::Fio { name, text } => Some((name, Cow::Borrowed(text))),
        Workload::Scenario(s) => Some((s.spec().name, Cow::Owned(s.job_text()))),
        Workload::Processes(_) | Workload::Trace(_) => None,
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

/// The jobs without those whose engine moves no data; notes say which.
fn with_data(mut jobs: JobFile) -> Result<JobFile, Error> {
    let no_data = |job: &Job| {
        let engine = job.engine().filter(|e| e.queueing == Queueing::NoData);
        engine.is_some()
    };
    if let Some(first) = jobs.jobs.first()
        && jobs.jobs.iter().all(no_data)
    {
        let what = format!(
            "no job reads or writes: ioengine={} moves no data",
            first.settings.ioengine
        );
        return Err(Error::new(what).at(first.place_of(&["ioengine"])));
    }
    jobs.jobs.retain(|job| !no_data(job));
    Ok(jobs)
}

/// The first problem of a job file, without fio's prefix.
fn in_a_line(err: &JobFileError) -> Error {
    let Some(first) = err.problems.first() else {
        return Error::new(err.to_string());
    };
    let message = first.message.trim_start_matches("fio: ");
    let mut what = message.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some(hint) = &first.hint {
        what = format!("{what}. {hint}");
    }
    Error::new(what).at(&first.place)
}

/// A log that a job file names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobLog {
    /// The option that names it.
    pub option: &'static str,
    /// Where that stands.
    pub place: Place,
    /// The file, as the job file names it.
    pub name: String,
    /// What fio adds to the option's value to make that name.
    pub suffix: String,
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
pub fn log_name(job: &Job, kind: LogKind) -> String {
    let options = &job.settings.reporting;
    let made = |(_, kinds): &&(&str, &[LogKind])| kinds.contains(&kind);
    let option = LOGS.iter().find(made).map_or("", |(option, _)| option);
    // An option without a value leaves the prefix to the job's name.
    let given = options.get(option).filter(|prefix| !prefix.is_empty());
    let prefix = given.unwrap_or(&job.name);
    format!("{prefix}{}", log_suffix(job, kind))
}

/// What fio adds to the value of an option to name one of a job's logs.
fn log_suffix(job: &Job, kind: LogKind) -> String {
    let options = &job.settings.reporting;
    let per_job = options.get("per_job_logs").is_none_or(|v| v != "0");
    log_file_name("", kind, per_job.then_some(job.thread))
}

/// The logs that a job writes.
pub fn logs_of(job: &Job) -> Vec<JobLog> {
    let log = |option: &'static str, name: String, suffix: String| JobLog {
        option,
        place: job.place_of(&[option]).clone(),
        name,
        suffix,
    };
    let asked = |(option, _): &&(&str, &[LogKind])| job.settings.reporting.contains_key(option);
    let logs = LOGS.iter().filter(asked).flat_map(|(option, kinds)| {
        let of_kind = |kind: &LogKind| log(option, log_name(job, *kind), log_suffix(job, *kind));
        kinds.iter().map(of_kind)
    });
    let iolog = job.settings.write_iolog.iter();
    let iolog = iolog.map(|name| log("write_iolog", name.clone(), String::new()));
    logs.chain(iolog).collect()
}
