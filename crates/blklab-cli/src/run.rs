// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab run`.

use crate::Outcome;
use crate::args::RunArgs;
use crate::execute::execute;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::stack::Stack;
use crate::table;
use anyhow::{Context as _, Result, bail};
use blklab::failures;
use blklab::matrix::{self, Cell};
use blklab::report::{self, FioFormats};
use blklab::run::RunOutput;
use blklab::scheduler::Schedulers;
use blklab::{Experiment, ExperimentError};
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) fn run(a: &RunArgs, schedulers: Schedulers) -> Result<Outcome> {
    let fio = FioFormats::parse(
        match a.output_format.as_str() {
            "table" => "normal",
            other => other,
        },
        a.terse_version,
    )?;
    let cells = plan(a, schedulers)?;
    for cell in &cells {
        blklab::job::check(&cell.experiment)?;
    }
    let files = Files::prepare(a, &cells)?;
    let mut output = Output::open(a.output.as_deref())?;
    let interrupt = Interrupt::watch()?;
    let runs = execute(a, &cells, &files, &interrupt.stop)?;
    let all: Vec<(usize, &Cell, &RunOutput)> = cells
        .iter()
        .zip(&runs)
        .enumerate()
        .filter_map(|(i, (cell, run))| Some((i, cell, run.as_ref()?)))
        .collect();
    files.write(&all)?;
    for (_, _, run) in &all {
        for line in failures::messages(run) {
            writeln!(std::io::stderr(), "{line}")?;
        }
    }
    let pairs: Vec<(&Cell, &RunOutput)> = all.iter().map(|&(_, cell, run)| (cell, run)).collect();
    if a.output_format == "table" {
        table::show(&mut output, &pairs)?;
        if pairs.len() < cells.len() {
            writeln!(
                output,
                "interrupted: {} of {} experiments did not start",
                cells.len() - pairs.len(),
                cells.len()
            )?;
        }
    } else {
        output.write_all(report::fio_text(&pairs, &fio).as_bytes())?;
        for (cell, run) in pairs.iter().filter(|(_, run)| run.verified) {
            let (name, digest) = (cell.name_in_file(), run.digest.value());
            let mut err = std::io::stderr();
            writeln!(err, "{name}: verified: two runs gave digest {digest:016x}")?;
        }
    }
    output.commit()?;
    Ok(match pairs.iter().any(|(_, run)| failures::any(run)) {
        _ if interrupt.happened() => Outcome::Interrupted,
        true => Outcome::JobFailed,
        false => Outcome::Done,
    })
}

/// The experiments that files and options ask for.
fn plan(a: &RunArgs, schedulers: Schedulers) -> Result<Vec<Cell>> {
    if a.repeat == 0 {
        bail!("--repeat 0: at least 1 run");
    }
    if a.jobs == Some(0) {
        bail!("--jobs 0: at least 1 experiment at a time");
    }
    if a.files.iter().filter(|f| *f == Path::new("-")).count() > 1 {
        bail!("-: standard input can be read only once");
    }
    let experiments = a
        .files
        .iter()
        .map(|f| {
            let e = blklab::load(f)?;
            Ok(Experiment { schedulers, ..e })
        })
        .collect::<Result<Vec<_>, ExperimentError>>()?;
    let stack = Stack {
        kernel: &a.kernel,
        sched: &a.sched,
        device: &a.device,
        md: &a.md,
        set: &a.set,
        memory: a.memory.as_ref(),
        cpu_cost: &a.cpu_cost,
        fio: &a.fio,
        fs: &a.fs,
        patch: &a.patch,
        seed: a.seed,
        repeat: a.repeat,
        sections: &a.section,
    };
    Ok(matrix::expand(&experiments, &stack.overrides()?)?)
}

/// Where the files of each experiment go.
pub(crate) struct Files {
    /// A name for each experiment; none if there is only one.
    labels: Option<Vec<String>>,
    trace: Option<PathBuf>,
    out: Option<PathBuf>,
}

impl Files {
    /// Makes the folders of the runs; refuses what cannot be written.
    fn prepare(a: &RunArgs, cells: &[Cell]) -> Result<Files> {
        if let Some(path) = &a.trace {
            report::check_replaceable(path).context("--trace")?;
        }
        let files = Files {
            labels: (cells.len() > 1).then(|| report::file_labels(cells)),
            trace: a.trace.clone(),
            out: a.out.clone(),
        };
        if let Some(dir) = &a.out {
            report::prepare_run_directory(dir).context("--out")?;
            for i in 0..cells.len() {
                if let Some(own) = files.run_directory(i) {
                    report::prepare_run_directory(&own).context("--out")?;
                }
            }
        }
        Ok(files)
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

    /// The traces that experiment `i` writes while it runs.
    pub(crate) fn traces(&self, i: usize) -> Vec<PathBuf> {
        let asked = self.trace.as_ref().map(|path| self.with_label(i, path));
        let own = self.run_directory(i).map(|dir| dir.join(report::EVENTS));
        asked.into_iter().chain(own).collect()
    }

    /// Writes what is written after the runs.
    fn write(&self, runs: &[(usize, &Cell, &RunOutput)]) -> Result<()> {
        for &(i, cell, run) in runs {
            for (name, text) in report::job_files(run) {
                report::write_file(&self.with_label(i, Path::new(&name)), text.as_bytes())?;
            }
            if let Some(dir) = self.run_directory(i) {
                report::write_run_directory(&dir, cell, run)?;
            }
        }
        Ok(())
    }

    /// Takes back the empty folders of runs that failed.
    pub(crate) fn remove_empty(&self, nr_cells: usize) {
        for dir in (0..nr_cells).filter_map(|i| self.run_directory(i)) {
            // A folder with something in it stays.
            let _ = std::fs::remove_dir(dir);
        }
        if let Some(dir) = &self.out {
            let _ = std::fs::remove_dir(dir);
        }
    }
}
