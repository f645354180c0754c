// SPDX-License-Identifier: MIT OR Apache-2.0
//! Run directories: what ran, what came out, and everything that it takes to
//! run it again, from any folder and without the files that it came from.

mod owned;
mod read;

pub use owned::run_directory_of;
pub(crate) use read::holds_runs;
pub use read::{OfLabel, RunDir, is_run, is_trace, labels_in, runs_in};

use crate::matrix::Cell;
use crate::outputs::{is_replaceable, make_folder, write_file};
use crate::replay_logs::Copies;
use crate::report::fio_result;
use crate::run::RunOutput;
use crate::trace_copy::TraceCopy;
use blklab_experiment::{Experiment, Workload};
use blklab_target::Plan;
use blklab_types::Error;
use std::path::{Component, Path, PathBuf};

/// Name of the trace in a run directory.
pub const EVENTS: &str = "events.blk";

const EXPERIMENT: &str = "experiment.toml";
const JOB: &str = "job.fio";
const RESULT: &str = "result.json";

/// Folder of the files that describe the device.
const DEVICE: &str = "device";

/// What a run directory says about an experiment: names of files below it, and
/// their texts.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    files: Vec<(PathBuf, String)>,
    /// Logs that jobs replay.
    logs: Copies,
    /// The trace that is repeated.
    trace: Option<TraceCopy>,
}

impl Contents {
    /// Gathers it.
    ///
    /// # Errors
    /// If something that the experiment depends on cannot be written down.
    pub fn new(plan: &Plan) -> Result<Contents, Error> {
        let mut contents = Contents::default();
        let mut e = plan.experiment().clone();
        contents.add_device(&mut e, &plan.site().described_in)?;
        contents.add_job(plan)?;
        if let Workload::Trace(spec) = &mut e.workload {
            contents.trace = TraceCopy::new(plan, spec)?;
        }
        let mut text = heading("#");
        text.push_str(&e.to_toml(JOB, plan.catalogue())?);
        contents.add(EXPERIMENT, text);
        Ok(contents)
    }

    /// Names of all files that a run leaves in its directory.
    pub fn names(&self) -> impl Iterator<Item = &Path> {
        let results = [EVENTS, RESULT].map(Path::new);
        let files = self.files.iter().map(|(name, _)| name.as_path());
        let trace = self.trace.iter().map(TraceCopy::name);
        files.chain(self.logs.names()).chain(trace).chain(results)
    }

    fn add(&mut self, name: impl Into<PathBuf>, text: String) {
        self.files.push((name.into(), text));
    }

    fn add_job(&mut self, plan: &Plan) -> Result<(), Error> {
        let (Workload::Fio { .. }, Some(text)) = (&plan.experiment().workload, plan.jobs()) else {
            return Ok(());
        };
        let mut rename = |option: &str, value: &str| self.logs.rename(option, value, text);
        let spelled = text.spell_out(&mut rename)?;
        self.add(JOB, heading(";") + &spelled);
        Ok(())
    }

    /// Takes the files that describe the device along. They may name each
    /// other: they lie as they lay, below one folder.
    fn add_device(&mut self, e: &mut Experiment, files: &[(String, String)]) -> Result<(), Error> {
        let Some((first, _)) = files.first() else {
            return Ok(());
        };
        let paths: Vec<PathBuf> = files.iter().map(|(name, _)| plain(name)).collect();
        let mut root = paths[0].parent().unwrap_or(Path::new("")).to_path_buf();
        while !paths.iter().all(|p| p.starts_with(&root)) {
            root.pop();
        }
        for (path, (name, text)) in paths.iter().zip(files) {
            let below = path.strip_prefix(&root).expect("the root is above all");
            if Path::new(name).is_absolute() != Path::new(first).is_absolute() {
                return Err(Error::new(format!(
                    "{name} is named with its whole path: a run directory holds only files that \
                     name each other from their folders"
                ))
                .in_file(first));
            }
            self.add(Path::new(DEVICE).join(below), text.clone());
        }
        let below = paths[0].strip_prefix(&root).expect("the root is above all");
        let moved = Path::new(DEVICE).join(below).display().to_string();
        let device = &mut e.device;
        for (_, value) in device.params.iter_mut().filter(|(_, v)| v == first) {
            value.clone_from(&moved);
        }
        Ok(())
    }

    fn write(&self, dir: &Path) -> Result<(), Error> {
        for (name, text) in &self.files {
            let path = dir.join(name);
            if let Some(folder) = path.parent() {
                make_folder(folder)?;
            }
            write_file(&path, text.as_bytes())?;
        }
        self.logs.write(dir)?;
        match &self.trace {
            Some(trace) => trace.write(dir),
            None => Ok(()),
        }
    }
}

/// How the files begin that a run writes about itself, behind the mark of a comment.
const HEADING: &str = " resolved by blklab ";

fn heading(comment: &str) -> String {
    format!("{comment}{HEADING}{}\n", env!("CARGO_PKG_VERSION"))
}

/// An absolute path without `.` and `..`.
fn plain(name: &str) -> PathBuf {
    let mut path = PathBuf::new();
    let absolute = std::path::absolute(name).unwrap_or_else(|_| PathBuf::from(name));
    for part in absolute.components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}

/// Refuses a folder with files that a run directory would replace and that
/// nobody knows to be those of another run.
///
/// # Errors
/// Names the file.
pub fn check(dir: &Path, contents: &Contents) -> Result<(), Error> {
    let is_ours = |path: &Path| match is_replaceable(path) {
        Ok(ours) => Ok(ours),
        Err(e) => Err(Error::new(format!("cannot read {}: {e}", path.display()))),
    };
    let experiment = dir.join(EXPERIMENT);
    if experiment.is_file() && is_ours(&experiment)? {
        // All of it is that of another run.
        return Ok(());
    }
    for name in contents.names() {
        let path = dir.join(name);
        if !is_ours(&path)? {
            return Err(Error::new(format!(
                "{} exists, and is not of a run directory of blklab: it is not replaced",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Writes what ran and what came out into a run directory; the trace is
/// written by the run itself. The result comes last: where it is, all is.
///
/// # Errors
/// If a file cannot be written: then nothing is left of a run that was not there before.
pub fn write(dir: &Path, contents: &Contents, cell: &Cell, run: &RunOutput) -> Result<(), Error> {
    let is_new = !dir.join(RESULT).exists();
    write_all(dir, contents, cell, run).inspect_err(|_| {
        if is_new {
            for name in contents.names() {
                let _ = std::fs::remove_file(dir.join(name));
            }
        }
    })
}

fn write_all(dir: &Path, contents: &Contents, cell: &Cell, run: &RunOutput) -> Result<(), Error> {
    contents.write(dir)?;
    let result = format!("{:#}\n", fio_result(cell, run).to_json(true));
    write_file(&dir.join(RESULT), result.as_bytes())
}
