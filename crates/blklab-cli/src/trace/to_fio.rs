// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab trace to-fio`.

use crate::args::{PlainFormat, ToFioArgs};
use crate::interrupt::Interrupt;
use crate::output::{bytes, time};
use crate::progress::Watcher;
use crate::source::{open, report_damage, set_by_option};
use crate::stack::Stack;
use anyhow::{Context as _, Result, bail};
use blklab::outputs::{self, is_replaceable};
use blklab::run_directory::RunDir;
use blklab::scheduler::Schedulers;
use blklab::to_fio::{Compared, ExactJob, Summary, compared, exact_job, job_file, job_on};
use blklab::trace_file::FileId;
use blklab::{Experiment, ExperimentError, Planner, Sim, TraceSpec, Workload, matrix};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The disk of the simulation.
const DISK: &str = "/dev/sda";

pub(crate) fn to_fio(a: &ToFioArgs, schedulers: Schedulers) -> Result<()> {
    if a.exact && a.output.is_none() {
        bail!("--exact writes logs beside the job file: give it a name with -o");
    }
    let mut spec = TraceSpec::new("");
    if let Some(text) = &a.trace_dev {
        set_by_option(&mut spec, "--trace-dev", "device", text)?;
    }
    let target = Sim::with(schedulers);
    let stack = stack(a, &target)?;
    let mut input = open(&a.file)?;
    let watched = Watcher::reading(input.progress());
    let trace = blklab::to_fio::read(&mut input, &a.file, spec.dev)?;
    drop(watched);
    report_damage(&a.file, input.counts());
    let disk = a.filename.as_deref().unwrap_or(DISK);
    let exact = a.exact.then(|| exact(a, &trace, disk)).transpose()?;
    let text = match &exact {
        Some(exact) => exact.job.clone(),
        None => {
            let job = job_file(&trace.recorded, disk);
            if job.sections.is_empty() {
                bail!(
                    "{}: no data are read or written, only flushes",
                    a.file.display()
                );
            }
            job.text()
        }
    };
    if let Some(path) = &a.output {
        if FileId::at(path).is_some_and(|id| input.inputs().contains(&id)) {
            bail!("{} is the input; give another name", path.display());
        }
        write_all(path, &text, exact.as_ref())?;
    }
    let job_name = a.output.clone().unwrap_or_else(|| PathBuf::from("job.fio"));
    let proof = stack.map(|stack| {
        let rows = proof(&target, &stack, &trace, &job_name, &text)?;
        anyhow::Ok((stack, rows))
    });
    let proof = proof.transpose()?;
    show(a, &text, proof.as_ref())
}

fn show(a: &ToFioArgs, text: &str, proof: Option<&(Experiment, Vec<Compared>)>) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let lines = proof.map(|(stack, rows)| report(rows, stack));
    match (a.output_format, &a.output) {
        (PlainFormat::Json, _) => {
            let rows = proof.map(|(_, rows)| rows.iter().map(row_json).collect::<Vec<_>>());
            let value = json!({
                "job": text,
                "stack": proof.map(|(stack, _)| stack_text(stack)),
                "compared": rows,
            });
            writeln!(out, "{value:#}")?;
        }
        // Still a job file.
        (PlainFormat::Table, None) => {
            write!(out, "{text}")?;
            for (i, line) in lines.iter().flatten().enumerate() {
                let gap = if i == 0 { "\n" } else { "" };
                writeln!(out, "{gap}; {line}")?;
            }
        }
        (PlainFormat::Table, Some(path)) => {
            writeln!(std::io::stderr(), "wrote {}", path.display())?;
            let unknown = "not compared with the trace: name the stack that it is from (--stack, \
                           --kernel, --sched, --device)";
            for line in lines.unwrap_or_else(|| vec![unknown.to_owned()]) {
                writeln!(out, "{line}")?;
            }
        }
    }
    out.flush()?;
    Ok(())
}

/// The logs of `--exact`, which replace only what fio or blklab wrote.
fn exact(a: &ToFioArgs, trace: &Summary, disk: &str) -> Result<ExactJob> {
    let path = a.output.as_deref().unwrap_or(Path::new("job.fio"));
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let exact = exact_job(&trace.recorded, disk, &stem);
    for (name, _) in &exact.logs {
        let log = path.with_file_name(name);
        let ours = is_replaceable(&log);
        if !ours.with_context(|| format!("cannot read {}", log.display()))? {
            bail!(
                "{} exists, and neither blklab nor fio wrote it: it is not replaced",
                log.display()
            );
        }
    }
    Ok(exact)
}

fn write_all(path: &Path, text: &str, exact: Option<&ExactJob>) -> Result<()> {
    outputs::check_writable(path).context("-o")?;
    for (name, log) in exact.iter().flat_map(|e| &e.logs) {
        outputs::write_file(&path.with_file_name(name), log.as_bytes())?;
    }
    outputs::write_file(path, text.as_bytes())?;
    Ok(())
}

/// The stack that the trace is from: of options, on top of that of a run directory. None if
/// nothing says.
fn stack(a: &ToFioArgs, target: &Sim) -> Result<Option<Experiment>> {
    let catalogue = &target.catalogue();
    let run = Some(&a.file).filter(|file| file.is_dir());
    let base = match a.stack.as_ref().or(run) {
        Some(dir) if dir.is_dir() => Some(RunDir::open(dir, catalogue)?.experiment),
        Some(file) => Some(blklab::load(file, catalogue)?),
        None => None,
    };
    let named = a.kernel.is_some() || a.sched.is_some() || a.device.is_some() || !a.set.is_empty();
    if base.is_none() && !named {
        return Ok(None);
    }
    let stack = Stack {
        kernel: a.kernel.as_slice(),
        sched: a.sched.as_slice(),
        device: a.device.as_slice(),
        set: &a.set,
        repeat: 1,
        ..Stack::default()
    };
    let chosen = stack.chosen()?;
    let overrides = &chosen.overrides;
    let several = [
        (overrides.kernels.len(), "--kernel"),
        (overrides.schedulers.len(), "--sched"),
        (overrides.devices.len(), "--device"),
    ];
    let several = several.into_iter().filter(|(n, _)| *n > 1);
    let several = several.map(|(_, option)| option);
    if let Some(option) = several.chain(chosen.varied()).next() {
        bail!("{option}: one value; a trace is from one stack");
    }
    let none = Workload::Processes(Vec::new());
    let base = base.unwrap_or_else(|| Experiment::new("job", none.clone(), catalogue));
    let base = Experiment {
        workload: none,
        variants: Vec::new(),
        ..base
    };
    let planner = Planner::new(target);
    let cells = matrix::expand(&[base], overrides, &planner).map_err(|err| chosen.told(err))?;
    let first = cells.into_iter().next();
    let first = first.expect("an experiment makes at least one cell");
    matrix::survey(&first, overrides, &planner).map_err(|err| chosen.told(err))?;
    Ok(Some(first.experiment))
}

/// Runs the job and compares.
fn proof(
    target: &Sim,
    stack: &Experiment,
    trace: &Summary,
    name: &Path,
    text: &str,
) -> Result<Vec<Compared>> {
    let e = job_on(stack, &name.display().to_string(), text.to_owned());
    let planner = Planner::new(target);
    let plan = planner.plan(&e).map_err(|err| ExperimentError {
        what: format!("the job cannot run on this stack: {}", err.what),
        ..err
    })?;
    let interrupt = Interrupt::watch()?;
    let run = blklab::to_fio::simulate(&plan, Arc::clone(&interrupt.stop))?;
    if interrupt.happened() {
        bail!("interrupted: the job was not compared with the trace");
    }
    Ok(compared(trace, &run))
}

fn stack_text(e: &Experiment) -> String {
    format!("kernel {}, {}, {}", e.kernel, e.scheduler, e.device.name)
}

fn report(rows: &[Compared], stack: &Experiment) -> Vec<String> {
    let mut lines = vec![
        format!("the job simulated on {}", stack_text(stack)),
        String::new(),
        format!(
            "{:<11} {:<37} {:>9} {:>9} {:>6}",
            "", "", "recorded", "simulated", "ratio"
        ),
    ];
    let mut group = "";
    for row in rows {
        let shown = if row.group == group { "" } else { row.group };
        group = row.group;
        let ratio = row.ratio().map_or("-".to_owned(), |r| format!("{r:.2}"));
        lines.push(format!(
            "{shown:<11} {:<37} {:>9} {:>9} {ratio:>6}",
            row.name,
            value(row, row.recorded),
            value(row, row.simulated)
        ));
    }
    let latencies = rows.iter().filter(|r| r.group == "latency");
    let far = latencies.clone().filter(|r| !r.is_near()).count();
    let of = latencies.count();
    lines.push(String::new());
    lines.push(match (of, far) {
        (0, _) => "no latencies: the trace has no completions".to_owned(),
        (_, 0) => "all latencies are within 20 % of the recorded ones".to_owned(),
        _ => format!("{far} of {of} latencies are more than 20 % off"),
    });
    lines
}

fn value(row: &Compared, value: f64) -> String {
    match row.unit {
        "ns" => time(value),
        "bytes" => bytes(value),
        "%" => format!("{value:.1} %"),
        _ if value < 100.0 && value.fract() > 0.0 => format!("{value:.2}"),
        _ => format!("{value:.0}"),
    }
}

fn row_json(row: &Compared) -> Value {
    json!({
        "group": row.group,
        "name": row.name,
        "unit": row.unit,
        "recorded": row.recorded,
        "simulated": row.simulated,
        "ratio": row.ratio(),
    })
}
