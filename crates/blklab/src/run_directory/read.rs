// SPDX-License-Identifier: MIT OR Apache-2.0
//! Run directories read back, for whoever comes later: other commands, studies,
//! reports.

use super::{EVENTS, EXPERIMENT, JOB, RESULT};
use crate::record::{FORMAT, RunRecord};
use blklab_experiment::{Catalogue, Experiment, NAMED_BYTES_MAX, load, read_named};
use blklab_formats::TraceFile;
use blklab_trace::{NullSink, TraceSource as _};
use blklab_types::Error;
use serde::Deserialize as _;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A run directory: what ran and what came out.
#[derive(Debug)]
pub struct RunDir {
    dir: PathBuf,
    /// The experiment; it can be run again.
    pub experiment: Experiment,
    /// What blklab says of the run: digest, end, notes, statistics of its events.
    pub record: RunRecord,
    /// The result in fio's JSON, with its bins.
    pub result: Value,
}

/// Whether a folder is a run directory, of a run that may not have ended.
pub fn is_run(dir: &Path) -> bool {
    dir.join(EXPERIMENT).is_file()
}

/// Whether a path is a trace, as far as it need not be read: no folder, or one of a
/// recorder. Other folders are those of runs.
pub fn is_trace(path: &Path) -> bool {
    if !path.is_dir() {
        return true;
    }
    !holds_runs(path) && TraceFile::is_folder(path)
}

/// Whether a folder is a run directory, or has one in it.
pub(crate) fn holds_runs(folder: &Path) -> bool {
    let mut inside = std::fs::read_dir(folder).into_iter().flatten().flatten();
    is_run(folder) || inside.any(|entry| is_run(&entry.path()))
}

/// The run directories in a folder, in the order of their names.
///
/// # Errors
/// If there are none, or the folder cannot be read: one line with its name.
pub fn runs_in(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let fail = |what: String| Error::new(what).in_file(&folder.display().to_string());
    let cannot_read = |e: std::io::Error| fail(format!("cannot read it: {e}"));
    let mut runs = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(cannot_read)? {
        let path = entry.map_err(cannot_read)?.path();
        if is_run(&path) {
            runs.push(path);
        }
    }
    if runs.is_empty() {
        let what = "neither a run directory nor a folder of them: no experiment.toml";
        return Err(fail(what.to_owned()));
    }
    runs.sort();
    Ok(runs)
}

/// The runs of a label, with their folders, in the order of their repetitions.
pub type OfLabel = (String, Vec<(RunDir, PathBuf)>);

/// The run directories in a folder by label, in the order of the matrix that they are from.
///
/// # Errors
/// If there is none, or one cannot be read.
pub fn labels_in(folder: &Path, catalogue: &Catalogue) -> Result<Vec<OfLabel>, Error> {
    let found = runs_in(folder)?.into_iter().map(|path| {
        let dir = RunDir::open(&path, catalogue)?;
        Ok((dir, path))
    });
    let mut found = found.collect::<Result<Vec<_>, Error>>()?;
    found.sort_by_key(|(dir, _)| dir.record.place);
    let mut labels: Vec<OfLabel> = Vec::new();
    for run in found {
        let label = run.0.record.label.clone();
        match labels.iter_mut().find(|(l, _)| *l == label) {
            Some((_, runs)) => runs.push(run),
            None => labels.push((label, vec![run])),
        }
    }
    for (_, runs) in &mut labels {
        runs.sort_by_key(|(dir, _)| dir.record.repetition);
    }
    Ok(labels)
}

impl RunDir {
    /// Reads a run directory. Its experiment chooses from the catalogue.
    ///
    /// # Errors
    /// If it is none, its run has not ended, or another blklab wrote it in a format
    /// that this one does not read: one line with the file.
    pub fn open(dir: &Path, catalogue: &Catalogue) -> Result<RunDir, Error> {
        let at = |name: &str| dir.join(name);
        let fail = |what: &str| {
            let dir = dir.display().to_string();
            Err(Error::new(what).in_file(&dir))
        };
        if !is_run(dir) {
            return fail("not a run directory: there is no experiment.toml");
        }
        if !at(RESULT).is_file() {
            return fail("its run has not ended: there is no result.json");
        }
        let experiment = load(&at(EXPERIMENT), catalogue)?;
        let (result, record) = read_result(&at(RESULT))?;
        Ok(RunDir {
            dir: dir.to_path_buf(),
            experiment,
            record,
            result,
        })
    }

    /// The text of its experiment, `experiment.toml`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn experiment_text(&self) -> Result<String, Error> {
        self.text(EXPERIMENT)
    }

    /// The text of its fio job file, if it has one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn job_text(&self) -> Result<Option<String>, Error> {
        if !self.dir.join(JOB).is_file() {
            return Ok(None);
        }
        self.text(JOB).map(Some)
    }

    fn text(&self, name: &str) -> Result<String, Error> {
        let path = self.dir.join(name);
        read_named(&path, NAMED_BYTES_MAX).map_err(|e| e.in_file(&path.display().to_string()))
    }

    /// The file of its trace events.
    pub fn events_path(&self) -> PathBuf {
        self.dir.join(EVENTS)
    }

    /// Its trace events. Reading them fails at their end if they are not those of the run: by
    /// their digest.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn events(&self) -> Result<TraceFile, Error> {
        let opened = TraceFile::open(&self.events_path()).map_err(|e| Error::new(e.to_string()))?;
        let said = u64::from_str_radix(&self.record.digest, 16);
        let said = said.map_err(|_| {
            let what = format!("blklab.digest: {}: expected 16 digits", self.record.digest);
            Error::new(what).in_file(&self.dir.join(RESULT).display().to_string())
        })?;
        Ok(opened.with_digest(said, &self.dir.join(RESULT)))
    }

    /// Refuses a directory whose trace is not that of its run, for who uses something else of
    /// it. That the trace is gone is no fault.
    ///
    /// # Errors
    /// If it is that of another run, or cannot be read: one line.
    pub fn check_events(&self) -> Result<(), Error> {
        if !self.events_path().is_file() {
            return Ok(());
        }
        let read = self.events()?.send_all(&mut NullSink);
        read.map_err(|e| Error::new(e.to_string()))
    }
}

fn read_result(path: &Path) -> Result<(Value, RunRecord), Error> {
    let name = path.display().to_string();
    let in_file = |e: Error| e.in_file(&name);
    let text = read_named(path, NAMED_BYTES_MAX).map_err(in_file)?;
    let result: Value = serde_json::from_str(&text).map_err(|e| {
        in_file(Error {
            line: Some(e.line()),
            ..Error::new("not the result of a run: not JSON")
        })
    })?;
    let Some(own) = result.get("blklab") else {
        let what = "not the result of a run directory: it has no object 'blklab'";
        return Err(in_file(Error::new(what)));
    };
    match own.get("format").and_then(Value::as_u64) {
        Some(format) if format == u64::from(FORMAT) => {}
        Some(format) => {
            let what = format!("format {format}; this blklab reads format {FORMAT}");
            return Err(in_file(Error::new(what)));
        }
        None => {
            let what = "the object 'blklab' has no 'format'";
            return Err(in_file(Error::new(what)));
        }
    }
    let record = RunRecord::deserialize(own)
        .map_err(|e| in_file(Error::new(format!("the object 'blklab': {e}"))))?;
    Ok((result, record))
}
