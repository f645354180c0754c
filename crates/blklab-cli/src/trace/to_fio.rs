// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab trace to-fio`.

use super::recorded_stack::{Asked, On};
use crate::Outcome;
use crate::args::{PlainFormat, ToFioArgs};
use crate::guard::{self, Guard, Place};
use crate::interrupt::Interrupt;
use crate::output::{bytes, time};
use crate::progress::Watcher;
use crate::source::{open, report_damage, set_by_option};
use anyhow::{Context as _, Result, bail};
use blklab::experiment::{Experiment, TraceSpec};
use blklab::outputs::is_replaceable;
use blklab::scheduler::Schedulers;
use blklab::targets;
use blklab::targets::Planner;
use blklab::to_fio::{
    Compared, DeviceFit, ExactJob, Summary, compared, exact_job, job_file, job_on,
};
use blklab::types::Error;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The disk of the simulation.
const DISK: &str = "/dev/sda";

pub(crate) fn to_fio(a: &ToFioArgs, schedulers: Schedulers) -> Result<Outcome> {
    if a.exact && a.output.is_none() {
        bail!("--exact writes logs beside the job file: give it a name with -o");
    }
    let mut spec = TraceSpec::new("");
    if let Some(text) = &a.trace_dev {
        set_by_option(&mut spec, "--trace-dev", "device", text)?;
    }
    let read = std::iter::once(&a.file).chain(&a.stack).chain(&a.context);
    let mut guard = Guard::new(read);
    let output = a.output.as_ref().map(|path| guard.writes(path, "-o"));
    let output = output.transpose()?;
    let planner = targets::planner(schedulers);
    let asked = Asked::new(a, &planner, schedulers)?;
    let mut input = open(&a.file, a.read.columns())?;
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
    let files = output.map(|job| files(job, &text, exact.as_ref(), &mut guard));
    let mut files = files.transpose()?;
    if a.exact
        && let Some(files) = files.take()
    {
        // The job reads them when it runs.
        guard::write_all(&files)?;
    }
    let job_name = a.output.clone().unwrap_or_else(|| PathBuf::from("job.fio"));
    let interrupt = Interrupt::watch();
    let proof = match asked.stack(&trace, schedulers)? {
        Ok(on) => {
            let job = (job_name.as_path(), text.as_str());
            let rows = proof(&planner, &on.experiment, &trace, job, &interrupt);
            match rows {
                Ok(rows) => Ok(Proof { on, rows }),
                // Who named no machine asked for no proof.
                Err(e) if !asked.says_something || interrupt.happened() => Err(e.to_string()),
                Err(e) => return Err(e),
            }
        }
        Err(why) => Err(why),
    };
    if let Some(files) = files {
        guard::write_all(&files)?;
    }
    show(a, &text, proof.as_ref().map_err(String::as_str))?;
    Ok(if interrupt.happened() {
        Outcome::Interrupted
    } else {
        Outcome::Done
    })
}

/// The job beside the trace.
struct Proof {
    on: On,
    rows: Vec<Compared>,
}

fn show(a: &ToFioArgs, text: &str, proof: Result<&Proof, &str>) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let lines = match proof {
        Ok(proof) => report(proof),
        Err(why) => vec![format!("not compared with the trace: {why}")],
    };
    match (a.output_format, &a.output) {
        (PlainFormat::Json, _) => {
            let proof = proof.ok();
            let rows = proof.map(|p| p.rows.iter().map(row_json).collect::<Vec<_>>());
            let value = json!({
                "job": text,
                "stack": proof.map(|p| p.on.text()),
                "device": proof.and_then(|p| p.on.fit.as_ref()).map(DeviceFit::spec),
                "assumed": proof.map(|p| &p.on.assumed),
                "compared": rows,
            });
            writeln!(out, "{value:#}")?;
        }
        // Still a job file.
        (PlainFormat::Table, None) => {
            write!(out, "{text}")?;
            for (i, line) in lines.iter().enumerate() {
                let gap = if i == 0 { "\n" } else { "" };
                writeln!(out, "{gap}; {line}")?;
            }
        }
        (PlainFormat::Table, Some(path)) => {
            writeln!(std::io::stderr(), "wrote {}", path.display())?;
            for line in lines {
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
    if exact.logs.is_empty() {
        bail!(
            "{}: no data are read or written, which fio could replay",
            a.file.display()
        );
    }
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

/// The logs and then the job that replays them.
fn files(
    job: Place,
    text: &str,
    exact: Option<&ExactJob>,
    guard: &mut Guard,
) -> Result<Vec<(Place, String)>> {
    let mut files = Vec::new();
    for (name, log) in exact.iter().flat_map(|e| &e.logs) {
        let path = job.path().with_file_name(name);
        files.push((guard.writes(&path, "--exact")?, log.clone()));
    }
    files.push((job, text.to_owned()));
    Ok(files)
}

/// Runs the job and compares.
fn proof(
    planner: &Planner,
    stack: &Experiment,
    trace: &Summary,
    (name, text): (&Path, &str),
    interrupt: &Interrupt,
) -> Result<Vec<Compared>> {
    let e = job_on(stack, &name.display().to_string(), text.to_owned());
    let plan = planner.plan(&e).map_err(|err| Error {
        what: format!("the job cannot run on this stack: {}", err.what),
        ..err
    })?;
    let run = blklab::to_fio::simulate(&plan, Arc::clone(&interrupt.stop))?;
    if interrupt.happened() {
        bail!("interrupted");
    }
    Ok(compared(trace, &run))
}

fn report(proof: &Proof) -> Vec<String> {
    let rows = &proof.rows;
    let mut lines = vec![format!("the job simulated on {}", proof.on.text())];
    if let Some(fit) = &proof.on.fit {
        lines.push(format!("device {fit}"));
    }
    lines.extend(proof.on.assumed.iter().cloned());
    lines.extend([
        String::new(),
        format!(
            "{:<11} {:<37} {:>9} {:>9} {:>6}",
            "", "", "recorded", "simulated", "ratio"
        ),
    ]);
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
