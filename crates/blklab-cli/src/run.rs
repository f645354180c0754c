// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab run`.

use crate::Outcome;
use crate::args::RunArgs;
use crate::output::{Output, bytes, per_second, time};
use crate::progress::Progress;
use anyhow::{Context as _, Result, anyhow, bail};
use blklab::matrix::{self, Cell, Overrides};
use blklab::report::{self, FioFormats};
use blklab::run::{RunOptions, RunOutput};
use blklab::summary::{Row, Spread, Table, tables};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) fn run(a: &RunArgs) -> Result<Outcome> {
    let formats = match a.output_format.as_str() {
        "table" => None,
        text => Some(FioFormats::parse(text, a.terse_version).map_err(|e| anyhow!("{e}"))?),
    };
    let cells = plan(a)?;
    for cell in &cells {
        blklab::run::check(&cell.experiment, &a.section)
            .map_err(|e| e.in_file(&cell.experiment.id))?;
    }
    if let Some(dir) = &a.out {
        report::prepare_run_directory(dir).map_err(|e| anyhow!("{e}"))?;
    }
    let mut output = Output::open(a.output.as_deref())?;
    let stop = Arc::new(AtomicBool::new(false));
    let handler = Arc::clone(&stop);
    ctrlc::set_handler(move || handler.store(true, Ordering::Relaxed))
        .context("cannot watch for Ctrl-C")?;
    let runs = execute(a, &cells, &stop)?;
    let pairs: Vec<(&Cell, &RunOutput)> = cells.iter().zip(&runs).collect();
    match formats {
        Some(f) => output.write_all(report::fio_text(&pairs, &f).as_bytes())?,
        None => show(&mut output, &pairs)?,
    }
    output.commit()?;
    if let Some(dir) = &a.out {
        report::write_run_directory(dir, &pairs).map_err(|e| anyhow!("{e}"))?;
    }
    write_job_files(&pairs)?;
    Ok(if stop.load(Ordering::Relaxed) {
        Outcome::Interrupted
    } else {
        Outcome::Done
    })
}

/// The experiments that files and options ask for.
fn plan(a: &RunArgs) -> Result<Vec<Cell>> {
    let experiments = a
        .files
        .iter()
        .map(|f| blklab::load(f))
        .collect::<Result<Vec<_>, _>>()?;
    let mut devices = Vec::new();
    for text in &a.device {
        devices.extend(matrix::parse_devices(text)?);
    }
    let mut settings = Vec::new();
    if let Some(size) = &a.memory {
        settings.push(("memory".to_owned(), vec![size.clone()]));
    }
    for text in &a.set {
        settings.push(matrix::parse_setting(text)?);
    }
    let overrides = Overrides {
        kernels: a.kernel.clone(),
        schedulers: a.sched.clone(),
        devices,
        settings,
        patches: a.patch.clone(),
        seed: a.seed,
        repeat: a.repeat,
    };
    if a.repeat == 0 {
        bail!("--repeat 0: at least 1 run");
    }
    Ok(matrix::expand(&experiments, &overrides)?)
}

/// Runs all experiments side by side.
fn execute(a: &RunArgs, cells: &[Cell], stop: &Arc<AtomicBool>) -> Result<Vec<RunOutput>> {
    let threads = a.jobs.unwrap_or_else(blklab::parallel::cores);
    let progress = Progress::new(cells.len());
    let indexed: Vec<(usize, &Cell)> = cells.iter().enumerate().collect();
    let runs = blklab::parallel::map(&indexed, threads, |&(i, cell)| {
        let options = RunOptions {
            trace: trace_name(a, cells, i),
            sections: a.section.clone(),
            stop: Arc::clone(stop),
        };
        let result = blklab::run::run(&cell.experiment, &options);
        if a.verify_digest
            && let Ok(first) = &result
            && !first.interrupted
        {
            let again = RunOptions {
                trace: None,
                ..options
            };
            let second = blklab::run::run(&cell.experiment, &again);
            progress.step();
            return match second {
                Ok(second) if second.digest != first.digest && !second.interrupted => {
                    Err(blklab::ExperimentError::new(format!(
                        "two runs of the same experiment differ: digests {:016x} and {:016x}; \
                         a fault in blklab",
                        first.digest.value(),
                        second.digest.value()
                    )))
                }
                Ok(_) => result,
                Err(e) => Err(e),
            };
        }
        progress.step();
        result
    });
    progress.finish();
    let mut out = Vec::with_capacity(runs.len());
    for (run, cell) in runs.into_iter().zip(cells) {
        out.push(run.map_err(|e| e.in_file(&cell.experiment.id))?);
    }
    Ok(out)
}

/// The trace file of experiment `i`: as asked for, or numbered if there are
/// several.
fn trace_name(a: &RunArgs, cells: &[Cell], i: usize) -> Option<PathBuf> {
    let path = a.trace.as_ref()?;
    if cells.len() == 1 {
        return Some(path.clone());
    }
    let suffix = report::file_label(&cells[i], i);
    Some(report::with_suffix(path, &suffix))
}

/// Files that jobs themselves ask for: logs and iologs.
fn write_job_files(pairs: &[(&Cell, &RunOutput)]) -> Result<()> {
    for (i, (cell, run)) in pairs.iter().enumerate() {
        let suffix = (pairs.len() > 1).then(|| report::file_label(cell, i));
        for (name, text) in report::job_files(run) {
            let path = match &suffix {
                Some(s) => report::with_suffix(Path::new(&name), s),
                None => PathBuf::from(&name),
            };
            report::write_file(&path, text.as_bytes()).map_err(|e| anyhow!("{e}"))?;
        }
    }
    Ok(())
}

fn show(out: &mut impl Write, pairs: &[(&Cell, &RunOutput)]) -> Result<()> {
    let mut at = 0;
    while at < pairs.len() {
        let id = &pairs[at].0.experiment.id;
        let n = pairs[at..]
            .iter()
            .take_while(|(c, _)| &c.experiment.id == id)
            .count();
        show_file(out, &pairs[at..at + n])?;
        at += n;
        if at < pairs.len() {
            writeln!(out)?;
        }
    }
    Ok(())
}

fn show_file(out: &mut impl Write, pairs: &[(&Cell, &RunOutput)]) -> Result<()> {
    let e = &pairs[0].0.experiment;
    let varies = |key: &str| pairs[0].0.label.iter().any(|(k, _)| k == key);
    let mut about = vec![e.id.clone()];
    if !varies("kernel") {
        about.push(format!("kernel {}", e.kernel));
    }
    if !varies("device") {
        about.push(e.device.name.clone());
    }
    if !varies("queue_depth") {
        about.push(format!("queue depth {}", e.queue_depth()?));
    }
    writeln!(out, "{}", about.join(", "))?;
    if !e.title.is_empty() {
        writeln!(out, "{}", e.title)?;
    }
    let all = tables(pairs);
    let width = all
        .iter()
        .flat_map(|t| &t.rows)
        .map(|r| r.label.len())
        .max()
        .unwrap_or(0)
        .clamp(10, 26);
    for table in &all {
        show_table(out, table, width)?;
    }
    if all.is_empty() {
        show_processes(out, pairs)?;
    }
    show_footer(out, pairs)
}

fn show_table(out: &mut impl Write, t: &Table, width: usize) -> std::io::Result<()> {
    writeln!(
        out,
        "\ngroup {}, {}: {} job{}, {}",
        t.group,
        t.direction,
        t.jobs,
        if t.jobs == 1 { "" } else { "s" },
        bytes(t.bytes as f64)
    )?;
    writeln!(
        out,
        "{:<width$} {:>9} {:>9}  {:>7} {:>7} {:>7} {:>10}",
        "", "runt-min", "runt-max", "clat50", "clat99", "max", "bandwidth"
    )?;
    for row in &t.rows {
        show_row(out, row, width)?;
    }
    Ok(())
}

fn show_row(out: &mut impl Write, r: &Row, width: usize) -> std::io::Result<()> {
    let ms = |s: &Spread| format!("{:.0}ms", s.median);
    writeln!(
        out,
        "{:<width$} {:>9} {:>9}  {:>7} {:>7} {:>7} {:>10}",
        r.label,
        ms(&r.runt_min_ms),
        ms(&r.runt_max_ms),
        time(r.clat_p50_ns.median),
        time(r.clat_p99_ns.median),
        time(r.clat_max_ns.median),
        per_second(r.bw_bytes.median),
    )?;
    if r.runs > 1 {
        writeln!(
            out,
            "{:<width$} {:>9} {:>9}  lowest and highest of {} runs",
            "",
            format!("{:.0}..{:.0}", r.runt_min_ms.min, r.runt_min_ms.max),
            format!("{:.0}..{:.0}", r.runt_max_ms.min, r.runt_max_ms.max),
            r.runs
        )?;
    }
    if let Some(p) = &r.published {
        let ms = |v: Option<u64>| v.map_or("-".to_owned(), |v| format!("{v}ms"));
        writeln!(
            out,
            "{:<width$} {:>9} {:>9}  {}",
            "  published",
            ms(p.runt_min_ms),
            ms(p.runt_max_ms),
            p.source
        )?;
    }
    Ok(())
}

/// Explicit processes have no fio statistics: what the trace says of them.
fn show_processes(out: &mut impl Write, pairs: &[(&Cell, &RunOutput)]) -> std::io::Result<()> {
    for (cell, run) in pairs {
        writeln!(
            out,
            "\n{}: {} s",
            if cell.label.is_empty() {
                cell.experiment.scheduler.clone()
            } else {
                cell.name()
            },
            run.end
        )?;
        writeln!(
            out,
            "{:<20} {:>7} {:>9}  {:>7} {:>7} {:>7} {:>10}",
            "process", "bios", "bytes", "Q2C 50", "Q2C 99", "max", "bandwidth"
        )?;
        let seconds = run.end.0 as f64 / 1e9;
        for p in &run.stats.processes {
            let total = p.completed.total();
            let q2c = &p.phases.q2c;
            writeln!(
                out,
                "{:<20} {:>7} {:>9}  {:>7} {:>7} {:>7} {:>10}",
                format!("{} ({})", p.comm.as_deref().unwrap_or("?"), p.pid),
                total.count,
                bytes(total.bytes as f64),
                time(q2c.percentile(50.0) as f64),
                time(q2c.percentile(99.0) as f64),
                time(q2c.max() as f64),
                per_second(total.bytes as f64 / seconds.max(1e-9)),
            )?;
        }
    }
    Ok(())
}

fn show_footer(out: &mut impl Write, pairs: &[(&Cell, &RunOutput)]) -> Result<()> {
    writeln!(out)?;
    if pairs.len() == 1 {
        let run = pairs[0].1;
        writeln!(
            out,
            "{} s of virtual time, {} events, digest {:016x}",
            run.end,
            run.digest.nr_events(),
            run.digest.value()
        )?;
    }
    let mut shown: Vec<&str> = Vec::new();
    for (_, run) in pairs {
        if run.interrupted {
            writeln!(
                out,
                "interrupted at {} s: the numbers cover what ran",
                run.end
            )?;
        }
        for note in run.notes.iter().map(String::as_str) {
            if !shown.contains(&note) {
                shown.push(note);
                for (i, line) in crate::output::fold(note, 74).iter().enumerate() {
                    writeln!(out, "{}{line}", if i == 0 { "note: " } else { "      " })?;
                }
            }
        }
        for file in &run.trace_files {
            writeln!(out, "trace: {}", file.display())?;
        }
    }
    Ok(())
}
