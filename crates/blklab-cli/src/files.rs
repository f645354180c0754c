// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the files of each experiment of `blklab run` go. All that can be wrong
//! with them is found before anything runs.

use crate::args::{RunArgs, TableRows};
use crate::guard::{Guard, Place};
use anyhow::{Context as _, Result};
use blklab::matrix::Cell;
use blklab::outputs::{self, NotThere};
use blklab::report;
use blklab::run::RunOutput;
use blklab::run_directory::{self, Contents};
use blklab::targets::{Needs, Plan};
use blklab::trace_file::TraceOptions;
use blklab::types::Error;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The files of all experiments.
pub(crate) struct Files {
    /// A name for each experiment; none if there is only one.
    labels: Option<Vec<String>>,
    trace: Option<PathBuf>,
    out: Option<PathBuf>,
    /// Whether the folder of the run directories was there before.
    out_was_there: bool,
    nr_cells: usize,
    /// What the run directories say about the experiments; empty without any.
    contents: Vec<Contents>,
    /// What the jobs may write.
    logs: BTreeMap<PathBuf, Place>,
    allow_paths: bool,
}

impl Files {
    /// Refuses what cannot be written, would replace what is not ours, or is
    /// read as well.
    pub(crate) fn plan(
        a: &RunArgs,
        cells: &[Cell],
        plans: &[Plan],
        guard: &mut Guard,
    ) -> Result<Files> {
        let mut files = Files {
            labels: (cells.len() > 1).then(|| report::file_labels(cells)),
            trace: a.trace.clone(),
            out: a.out.clone(),
            out_was_there: a.out.as_ref().is_some_and(|dir| dir.exists()),
            nr_cells: cells.len(),
            contents: Vec::new(),
            logs: BTreeMap::new(),
            allow_paths: a.allow_paths,
        };
        if let Some(path) = &a.trace {
            outputs::check_replaceable(path).context("--trace")?;
            let options = TraceOptions {
                rows: a.trace_rows.map(TableRows::rows),
                ..TraceOptions::default()
            };
            options.check(path).context("--trace-rows")?;
        }
        if let Some(dir) = &a.out {
            outputs::check_folder(dir).context("--out")?;
        }
        if files.out.is_some() {
            let contents = plans.iter().map(Contents::new);
            files.contents = contents.collect::<Result<_, _>>().context("--out")?;
        }
        for (i, plan) in plans.iter().enumerate() {
            files.claim(i, plan.needs(), guard)?;
        }
        Ok(files)
    }

    fn claim(&mut self, i: usize, needed: &Needs, guard: &mut Guard) -> Result<()> {
        if let Some(path) = &self.trace {
            guard.writes_trace(&self.with_label(i, path), "--trace")?;
        }
        if let Some(dir) = self.run_directory(i) {
            guard.writes_run(&dir, &self.contents[i], "--out")?;
        }
        for log in &needed.logs {
            let option = log.option;
            let refused = |what: String| Error::new(what).at(&log.place);
            let path = self.log(i, &log.name).map_err(|what| {
                let named = blklab::types::shown(&log.name);
                refused(format!("{option}={named}: {what}"))
            })?;
            if self.out.is_none() {
                outputs::check_writable(&path)
                    .map_err(|err| refused(format!("{option}: {err}")))?;
            }
            // Several sections may write a log together: it is the file's.
            let file = format!("{}: ", log.place.file);
            let run = self.run_directory(i);
            let claimed = guard.writes_log(&path, run.as_deref(), &format!("{file}{option}"));
            let claimed = claimed.map_err(|err| {
                let what = err.what.strip_prefix(&file).unwrap_or(&err.what);
                refused(what.to_owned())
            })?;
            self.logs.insert(path, claimed);
        }
        Ok(())
    }

    /// Where a log that a job names goes: below the run directory, or below the
    /// working folder.
    fn log(&self, i: usize, name: &str) -> Result<PathBuf, String> {
        let named = match self.run_directory(i) {
            Some(dir) => outputs::named_in_job(&dir, name, self.allow_paths),
            None => {
                let name = self.with_label(i, Path::new(name));
                let name = name.to_string_lossy();
                outputs::named_in_job(Path::new(""), &name, self.allow_paths)
            }
        };
        named.map_err(|err| match err {
            NotThere::Elsewhere(_) => {
                format!("{err}; --allow-paths lets job files write elsewhere")
            }
            NotThere::Other(what) => what,
        })
    }

    fn with_label(&self, i: usize, path: &Path) -> PathBuf {
        match &self.labels {
            Some(labels) => report::with_suffix(path, &labels[i]),
            None => path.to_path_buf(),
        }
    }

    /// The folder itself if there is only one run.
    fn run_directory(&self, i: usize) -> Option<PathBuf> {
        let dir = self.out.as_ref()?;
        Some(match &self.labels {
            Some(labels) => dir.join(&labels[i]),
            None => dir.clone(),
        })
    }

    /// Makes the folder of a run that begins.
    pub(crate) fn make_folder(&self, i: usize) -> Result<()> {
        match self.run_directory(i) {
            Some(dir) => outputs::make_folder(&dir).context("--out"),
            None => Ok(()),
        }
    }

    /// The traces that experiment `i` writes while it runs.
    pub(crate) fn traces(&self, i: usize) -> Vec<PathBuf> {
        let asked = self.trace.as_ref().map(|path| self.with_label(i, path));
        let own = self.run_directory(i);
        let own = own.map(|dir| dir.join(run_directory::EVENTS));
        asked.into_iter().chain(own).collect()
    }

    /// Writes what is written after the runs.
    pub(crate) fn write(&self, runs: &[(usize, &Cell, &RunOutput)]) -> Result<()> {
        for &(i, cell, run) in runs {
            for (name, text) in report::job_files(run) {
                let path = self.log(i, &name).map_err(Error::new)?;
                let place = self
                    .logs
                    .get(&path)
                    .expect("its name was known before the run");
                place.write(text.as_bytes())?;
            }
            if let Some(dir) = self.run_directory(i) {
                run_directory::write(&dir, &self.contents[i], cell, run)?;
            }
        }
        Ok(())
    }

    /// Takes back the empty folders of runs that failed.
    pub(crate) fn remove_empty(&self) {
        let Some(out) = &self.out else { return };
        // A folder with something in it stays.
        if self.labels.is_some() {
            for dir in (0..self.nr_cells).filter_map(|i| self.run_directory(i)) {
                let _ = std::fs::remove_dir(dir);
            }
        }
        if !self.out_was_there {
            let _ = std::fs::remove_dir(out);
        }
    }
}
