// SPDX-License-Identifier: MIT OR Apache-2.0
//! Logs of jobs: those that fio writes, which lie beside its results and go by the names
//! that the jobs have for them when they are out of the machine, and those that it
//! replays, which go in with the job.

use blklab_fio::job::Job;
use blklab_fio::parse::log_names;
use blklab_formats::blktrace::is_magic;
use blklab_target::{JobResult, JobText, logs_of};
use blklab_types::Error;
use std::collections::BTreeMap;
use std::path::Path;

/// Where a machine works.
const WORK: &str = "/work/";
/// What the names of logs that are written begin with in a machine.
const WRITTEN: &str = "log-";
/// What the names of logs that are replayed begin with in a machine.
pub(super) const REPLAYED: &str = "replayed-";
/// The option that names logs to replay.
const READ: &str = "read_iolog";

/// A log that fio in the machine writes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Written {
    /// Its file in the machine.
    file: String,
    /// The name by which the job calls it.
    name: String,
    /// The first job that writes it, by its place.
    job: usize,
}

/// The logs of some jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Logs {
    /// What is added to each section that is no global one, in their order.
    sections: Vec<Section>,
    written: Vec<Written>,
    /// Logs to replay: the files in the machine and their bytes.
    replayed: Vec<(String, Vec<u8>)>,
}

/// A section of a job file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Section {
    name: String,
    /// Its lines about logs.
    lines: Vec<String>,
}

/// A job file whose logs are replayed from copies in the machine.
///
/// # Errors
/// If a log cannot be read, or the file cannot be spelled out.
pub(super) fn spell_out(text: &JobText, logs: &mut Logs) -> Result<String, Error> {
    text.spell_out(&mut |option, value| {
        if option != READ {
            return Ok(None);
        }
        let names = log_names(value).into_iter().map(|name| {
            let copy = logs.replay(&text.find(&name));
            copy.map_err(|e| format!("{READ}={name}: {e}"))
        });
        Ok(Some(names.collect::<Result<Vec<_>, _>>()?.join(":")))
    })
}

impl Logs {
    /// Those of jobs of a machine whose disk is at this path.
    ///
    /// # Errors
    /// If a log that is replayed cannot be read.
    pub(super) fn new(text: &JobText, disk: &str) -> Result<Logs, Error> {
        let mut logs = Logs::default();
        let mut begins = None;
        for (i, job) in text.jobs.jobs.iter().enumerate() {
            let is_same = begins == Some(&job.place) && job.subjob > 0;
            if !is_same {
                begins = Some(&job.place);
                logs.sections.push(Section {
                    name: job.section.clone(),
                    lines: Vec::new(),
                });
                let line = redirect(text, job, disk)?;
                logs.last_section().extend(line);
            }
            logs.add_written(i, job);
        }
        Ok(logs)
    }

    fn last_section(&mut self) -> &mut Vec<String> {
        let section = self.sections.last_mut();
        &mut section.expect("a job has a section").lines
    }

    fn add_written(&mut self, place: usize, job: &Job) {
        let section = self.sections.len();
        for log in logs_of(job) {
            let prefix = format!("{WRITTEN}{section}-{}", log.option);
            let line = format!("{}={WORK}{prefix}", log.option);
            if !self.last_section().contains(&line) {
                self.last_section().push(line);
            }
            let file = format!("{prefix}{}", log.suffix);
            if self.written.iter().all(|known| known.file != file) {
                self.written.push(Written {
                    file,
                    name: log.name,
                    job: place,
                });
            }
        }
    }

    /// Keeps a log that is replayed, and returns its path in the machine.
    fn replay(&mut self, path: &Path) -> Result<String, String> {
        Ok(self.keep(std::fs::read(path).map_err(|e| e.to_string())?))
    }

    /// The same for one that is no file here.
    pub(super) fn keep(&mut self, bytes: Vec<u8>) -> String {
        let known = self.replayed.iter().find(|(_, known)| *known == bytes);
        if let Some((name, _)) = known {
            return format!("{WORK}{name}");
        }
        let name = format!("{REPLAYED}{}", self.replayed.len());
        let path = format!("{WORK}{name}");
        self.replayed.push((name, bytes));
        path
    }

    /// The lines about logs of a section, by its place among those that are no global
    /// ones. Sections without a job have none.
    pub(super) fn lines<'a>(&'a self, names: &[&str]) -> Vec<&'a [String]> {
        let mut own = self.sections.iter().peekable();
        let lines_of = |name: &&str| match own.next_if(|section| section.name == **name) {
            Some(section) => &section.lines[..],
            None => &[],
        };
        names.iter().map(lines_of).collect()
    }

    /// Files that go into the machine.
    pub(super) fn taken_along(&self) -> impl Iterator<Item = (String, Vec<u8>)> + '_ {
        self.replayed.iter().cloned()
    }

    /// Whether a file of a machine is a log that fio has written.
    pub(super) fn is_written(file: &str) -> bool {
        file.starts_with(WRITTEN)
    }

    /// Gives the results of jobs what fio has written.
    pub(super) fn hand_out(&self, mut found: BTreeMap<String, String>, jobs: &mut [JobResult]) {
        for log in &self.written {
            if let (Some(text), Some(job)) = (found.remove(&log.file), jobs.get_mut(log.job)) {
                job.written.push((log.name.clone(), text));
            }
        }
    }
}

/// The line that has a trace replayed on the disk, whatever device it is of.
fn redirect(text: &JobText, job: &Job, disk: &str) -> Result<Option<String>, Error> {
    let options = &job.settings.replay;
    let (Some(replay), None) = (&job.replay, &options.redirect) else {
        return Ok(None);
    };
    let path = text.find(&replay.log);
    let begin = begin_of(&path).map_err(|e| {
        let what = format!("{READ}={}: {e}", replay.log);
        Error::new(what).at(job.place_of(&[READ]))
    })?;
    Ok(is_magic(&begin).then(|| format!("replay_redirect={disk}")))
}

fn begin_of(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut begin = Vec::new();
    std::fs::File::open(path)?
        .take(64)
        .read_to_end(&mut begin)?;
    Ok(begin)
}
