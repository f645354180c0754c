// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab run`.

use crate::Outcome;
use crate::args::RunArgs;
use crate::execute::{execute, prepare};
use crate::files::Files;
use crate::guard::Guard;
use crate::interrupt::Interrupt;
use crate::kernel_changes;
use crate::output::Output;
use crate::source::set_by_option;
use crate::stack::{Chosen, Stack};
use crate::table;
use anyhow::{Result, bail};
use blklab::experiment::{Catalogue, Experiment, TraceSpec, Workload};
use blklab::figure::Figure;
use blklab::matrix::{self, Cell};
use blklab::repeat::{Repeat, Rounds};
use blklab::report::{self, FioFormats};
use blklab::run::RunOutput;
use blklab::run_directory::{EVENTS, RunDir, is_trace};
use blklab::scheduler::Schedulers;
use blklab::targets;
use blklab::types::Error;
use blklab::{csv_table, failures};
use std::io::Write;
use std::path::Path;

/// How results are shown.
#[derive(PartialEq)]
enum Shape {
    /// For people.
    Table,
    /// One table for programs.
    Csv,
    /// As fio prints them.
    Fio(FioFormats),
}

impl Shape {
    /// From `--output-format` and `--terse-version`.
    fn parse(text: &str, terse_version: u32) -> Result<Shape> {
        let fio = |text| {
            FioFormats::parse(text, terse_version).map_err(|err| match &*err.key {
                "terse_version" => err.in_file(&format!("--terse-version {terse_version}")),
                _ => err.in_file("--output-format"),
            })
        };
        match text {
            // The version is checked, whatever uses it.
            "table" => fio("normal").map(|_| Shape::Table),
            "csv" => fio("normal").map(|_| Shape::Csv),
            _ if text
                .split(',')
                .any(|word| ["table", "csv"].contains(&word.trim())) =>
            {
                bail!(
                    "--output-format {}: table and csv stand alone (fio's line of fields is terse)",
                    blklab::types::shown(text)
                )
            }
            other => fio(other).map(Shape::Fio),
        }
        .map_err(Into::into)
    }
}

pub(crate) fn run(a: &RunArgs, schedulers: Schedulers) -> Result<Outcome> {
    let shape = Shape::parse(&a.output_format, a.terse_version)?;
    let figure = a.figure.as_deref().map(Figure::parse).transpose();
    let figure = figure.map_err(|err| err.in_file("--for"))?;
    let planner = targets::planner(schedulers);
    let repeat = Repeat::parse(&a.repeat)
        .map_err(|err| err.in_file(&format!("--repeat {}", blklab::types::shown(&a.repeat))))?;
    let (experiments, chosen) = read(a, &repeat, planner.catalogue())?;
    let overrides = &chosen.overrides;
    kernel_changes::check(a, &experiments, overrides)?;
    let cells =
        matrix::expand(&experiments, overrides, &planner).map_err(|err| chosen.told(err))?;
    let plans = matrix::plans(&cells, overrides, &planner).map_err(|err| chosen.told(err))?;
    let memory: Vec<_> = plans.iter().map(|p| p.needs().memory.clone()).collect();
    let parallel = a.jobs.unwrap_or_else(blklab::parallel::cores);
    blklab::targets::memory::check(&memory, parallel)?;
    let mut guard = Guard::new(a.files.iter().chain(&a.trace_in));
    guard.reads(plans.iter().flat_map(|p| &p.needs().read));
    // Of a file with a device table parameters may stand behind the name.
    guard.reads(
        a.device
            .iter()
            .filter_map(|device| device.split(',').next()),
    );
    let mut output = Output::open(&mut guard, a.output.as_deref())?;
    let files = Files::plan(a, &cells, &plans, &mut guard)?;
    let interrupt = Interrupt::watch();
    if let Err(err) = prepare(&plans, &interrupt.stop) {
        files.remove_empty();
        if interrupt.happened() {
            return Ok(Outcome::Interrupted);
        }
        return Err(err);
    }
    let mut rounds = Rounds::new(&repeat, &cells);
    let runs = execute(a, &cells, &plans, &files, &mut rounds, &interrupt.stop)?;
    let all: Vec<(usize, &Cell, &RunOutput)> = cells
        .iter()
        .zip(&runs)
        .enumerate()
        .filter_map(|(i, (cell, run))| Some((i, cell, run.as_ref()?)))
        .collect();
    files.write(&all).inspect_err(|_| files.remove_empty())?;
    for (_, _, run) in &all {
        for line in failures::messages(run) {
            writeln!(std::io::stderr(), "{line}")?;
        }
    }
    let pairs: Vec<(&Cell, &RunOutput)> = all.iter().map(|&(_, cell, run)| (cell, run)).collect();
    match &shape {
        Shape::Table => table::show(&mut output, &pairs, &rounds.notes(), figure.as_ref())?,
        Shape::Csv => output.write_all(csv_table::csv_text(&pairs).as_bytes())?,
        Shape::Fio(formats) => output.write_all(report::fio_text(&pairs, formats).as_bytes())?,
    }
    if shape == Shape::Table {
        let asked = rounds.asked();
        if pairs.len() < asked {
            let left = asked - pairs.len();
            writeln!(
                output,
                "interrupted: {left} of {asked} experiments did not start"
            )?;
        }
    } else {
        for note in rounds.notes() {
            writeln!(std::io::stderr(), "{note}")?;
        }
        for (cell, run) in pairs.iter().filter(|(_, run)| run.verified) {
            let (name, digest) = (cell.name_in_file(), run.digest.value());
            let mut err = std::io::stderr();
            writeln!(err, "{name}: verified: two runs gave digest {digest:016x}")?;
        }
    }
    if a.changes && !interrupt.happened() {
        let stop = &interrupt.stop;
        kernel_changes::show(&mut output, &experiments[0], overrides, &planner, stop)?;
    }
    output.commit()?;
    let failed = pairs.iter().any(|(_, run)| failures::any(run));
    Ok(if interrupt.happened() {
        Outcome::Interrupted
    } else if failed {
        Outcome::JobFailed
    } else {
        Outcome::Done
    })
}

/// The experiment that runs a trace again: on the stack of the run that it is from, if that
/// is known.
fn repeated(a: &RunArgs, trace: &Path, catalogue: &Catalogue) -> Result<Experiment, Error> {
    let is_run = !is_trace(trace);
    let file = if is_run {
        trace.join(EVENTS)
    } else {
        trace.to_path_buf()
    };
    let mut spec = TraceSpec::new(&file.display().to_string());
    for (option, key, text) in [
        ("--loop", "loop", &a.timing),
        ("--trace-dev", "device", &a.trace_dev),
        ("--sectors", "sectors", &a.sectors),
    ] {
        if let Some(text) = text {
            set_by_option(&mut spec, option, key, text)?;
        }
    }
    let workload = Workload::Trace(spec);
    if !is_run {
        let id = trace.file_name().unwrap_or_default().to_string_lossy();
        let id = id.split(".blktrace.").next().unwrap_or("trace").to_owned();
        let id = if id == "-" {
            "stdin".to_owned()
        } else {
            blklab::types::one_line(&id)
        };
        return Ok(Experiment::new(&id, workload));
    }
    let dir = RunDir::open(trace, catalogue)?;
    dir.check_events()?;
    let run = dir.experiment;
    Ok(Experiment {
        workload,
        file: String::new(),
        published: Vec::new(),
        sections: Vec::new(),
        ..run
    })
}

/// The experiments of the files, and what the options say on top of them.
fn read(a: &RunArgs, repeat: &Repeat, catalogue: &Catalogue) -> Result<(Vec<Experiment>, Chosen)> {
    if a.jobs == Some(0) {
        bail!("--jobs 0: at least 1 experiment at a time");
    }
    if a.files.iter().filter(|f| *f == Path::new("-")).count() > 1 {
        bail!("-: standard input can be read only once");
    }
    let repeated = a.trace_in.iter().map(|trace| repeated(a, trace, catalogue));
    let experiments = repeated
        .chain(a.files.iter().map(|f| {
            if f.is_dir() {
                let dir = RunDir::open(f, catalogue)?;
                dir.check_events()?;
                Ok(dir.experiment)
            } else {
                blklab::experiment::load(f, catalogue)
            }
        }))
        .collect::<Result<Vec<_>, Error>>()?;
    let stack = Stack {
        kernel: &a.kernel,
        sched: &a.sched,
        target: &a.target,
        kernel_source: &a.kernel_source,
        device: &a.device,
        md: &a.md,
        dm: &a.dm,
        set: &a.set,
        memory: a.memory.as_ref(),
        cpu_cost: &a.cpu_cost,
        fio: &a.fio,
        fs: &a.fs,
        patch: &a.patch,
        seed: a.seed,
        repeat: repeat.most(),
        repeat_exact: a.repeat_exact,
        sections: &a.section,
    };
    Ok((experiments, stack.chosen()?))
}
