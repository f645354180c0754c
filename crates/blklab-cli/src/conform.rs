// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab conform`.

mod causes;
mod differential;
mod fio;
mod machines;

use crate::Outcome;
use crate::args::{CaseTarget, ConformArgs, ConformFormat};
use crate::interrupt::Interrupt;
use crate::output::{cut, fold};
use crate::progress::Progress;
use anyhow::{Result, bail};
use blklab_fidelity::conform::{
    CaseReport, DiskReport, MachineCase, Report, find_cases, is_disk, is_fio, is_machine, run_case,
    run_disk,
};
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) fn conform(a: &ConformArgs) -> Result<Outcome> {
    if a.causes {
        return causes::conform(a);
    }
    if a.against.is_some() {
        return differential::conform(a);
    }
    let (machines, others): (Vec<PathBuf>, Vec<PathBuf>) =
        a.paths.iter().cloned().partition(|path| is_machine(path));
    let found = find_cases(&others)?;
    let (disks, cases): (Vec<_>, Vec<_>) = found.into_iter().partition(|path| is_disk(path));
    let results = a.results.as_deref();
    let (of_fio, cases): (Vec<_>, Vec<_>) = cases.into_iter().partition(|c| is_fio(c, results));
    if a.target == Some(CaseTarget::Kernel)
        && let Some(other) = cases.iter().chain(&disks).chain(&machines).next()
    {
        bail!(
            "{}: a real kernel runs measured fio jobs; this is none",
            other.display()
        );
    }
    let machines = machines::cases(&machines)?;
    let (machines, of_fio) = chosen(&a.cases, machines, of_fio)?;
    let machines = machines::run(a, &machines)?;
    let interrupt = Interrupt::watch();
    let of_fio = fio::run(a, &of_fio, &interrupt)?;
    let was_ended = interrupt.happened();
    drop(interrupt);
    let cores = blklab::parallel::cores();
    let progress = Progress::new(cases.len() + disks.len());
    let reports = blklab::parallel::map(&cases, cores, |case| {
        let report = run_case(case, results);
        progress.step();
        report
    });
    let of_disks = blklab::parallel::map(&disks, cores, |disk| {
        let report = run_disk(disk);
        progress.step();
        report
    });
    progress.finish();
    let report = Report::new(
        reports.into_iter().collect::<Result<Vec<_>, _>>()?,
        of_disks.into_iter().collect::<Result<Vec<_>, _>>()?,
        machines,
        of_fio,
    );
    let mut out = std::io::stdout().lock();
    match a.output_format {
        ConformFormat::Json => {
            serde_json::to_writer_pretty(&mut out, &report).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        ConformFormat::Markdown => {
            machines::markdown(&mut out, &report.machines)?;
            fio::markdown(&mut out, &report.fio)?;
        }
        ConformFormat::Table => {
            machines::table(&mut out, &report.machines)?;
            fio::table(&mut out, &report.fio)?;
            disk_table(&mut out, &report.disks)?;
            if !report.cases.is_empty() {
                table(&mut out, &report)?;
            }
        }
    }
    out.flush()?;
    if was_ended {
        return Ok(Outcome::Interrupted);
    }
    if report.summary.ran == 0
        && report.disks.is_empty()
        && report.machines.iter().all(|m| m.skipped.is_some())
        && report.fio.iter().all(|c| c.skipped.is_some())
    {
        bail!("none of the cases ran: nothing was compared");
    }
    let off = report.machines.iter().any(|m| !m.within) || report.fio.iter().any(|c| !c.agrees());
    Ok(if report.summary.different > 0 || off {
        Outcome::Differs
    } else {
        Outcome::Done
    })
}

/// Refuses a folder for cases that has anything: nothing of the user's is replaced.
fn check_empty(folder: &Path) -> Result<()> {
    let has_any = std::fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some());
    if has_any {
        bail!(
            "--keep {}: the folder is not empty; cases are kept in one of their own",
            folder.display()
        );
    }
    Ok(())
}

/// Of the cases that can be chosen by name, those that `names` has; all if it
/// has none.
fn chosen(
    names: &[String],
    mut machines: Vec<MachineCase>,
    mut of_fio: Vec<PathBuf>,
) -> Result<(Vec<MachineCase>, Vec<PathBuf>)> {
    let id = |path: &PathBuf| path.file_stem().map(|s| s.to_string_lossy().into_owned());
    let mut all: Vec<String> = of_fio.iter().filter_map(id).collect();
    all.extend(machines.iter().map(|c| c.id.clone()));
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    match names.iter().find(|name| !all.contains(&name.as_str())) {
        Some(name) if all.is_empty() => {
            bail!("--case {name}: no measured machines or fio jobs among the paths")
        }
        Some(name) => bail!("--case: {}", blklab::types::no_such("case", name, &all)),
        None => {}
    }
    if !names.is_empty() {
        machines.retain(|c| names.contains(&c.id));
        of_fio.retain(|path| id(path).is_some_and(|id| names.contains(&id)));
    }
    Ok((machines, of_fio))
}

fn disk_table(out: &mut impl Write, disks: &[DiskReport]) -> std::io::Result<()> {
    if disks.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "{:<24} {:>8} {:>9} {:>8} {:>12} {:>13}",
        "disk", "requests", "rms ms", "DiskSim", "measured ms", "simulated ms"
    )?;
    for d in disks {
        let disksim = d.disksim_rms_ms.map(|ms| format!("{ms:.3}"));
        writeln!(
            out,
            "{:<24} {:>8} {:>9.3} {:>8} {:>12.3} {:>13.3}",
            cut(&d.id, 24),
            d.requests,
            d.rms_ms,
            disksim.as_deref().unwrap_or("-"),
            d.measured_mean_ms,
            d.simulated_mean_ms
        )?;
    }
    Ok(())
}

fn table(out: &mut impl Write, report: &Report) -> std::io::Result<()> {
    writeln!(
        out,
        "{:<33} {:<9} {:>10} {:>8}  {:<6} messages",
        "case", "result", "dispatches", "in order", "plugs"
    )?;
    for c in report.cases.iter().filter(|c| c.ran) {
        case_row(out, c)?;
    }
    let skipped: Vec<&CaseReport> = report.cases.iter().filter(|c| !c.ran).collect();
    if !skipped.is_empty() {
        writeln!(out, "\nnot run:")?;
        for c in skipped {
            let why = c.skipped.as_deref().unwrap_or("");
            let why = fold(why.split(';').next().unwrap_or(why), 42);
            let rest = format!("\n{:38}", "");
            writeln!(out, "{:<37} {}", cut(&c.id, 37), why.join(&rest))?;
        }
    }
    let s = report.summary;
    writeln!(
        out,
        "\n{} cases: {} ran, {} identical, {} different, {} not run",
        s.cases, s.ran, s.identical, s.different, s.skipped
    )?;
    writeln!(
        out,
        "plug, unplug and timer lines identical in {} of {}, messages in {} of {}",
        s.side_lines_identical, s.ran, s.messages_identical, s.with_messages
    )
}

fn case_row(out: &mut impl Write, c: &CaseReport) -> std::io::Result<()> {
    let same = |is: bool| if is { "same" } else { "differ" };
    writeln!(
        out,
        "{:<33} {:<9} {:>10} {:>7.2}%  {:<6} {}",
        cut(&c.id, 33),
        if c.identical { "identical" } else { "DIFFERS" },
        c.dispatches,
        100.0 * c.dispatch_prefix,
        same(c.side_lines_identical),
        c.messages_identical.map_or("-", same),
    )?;
    let others = [
        ("plugs and timers", &c.first_side_difference),
        ("messages", &c.first_message_difference),
    ];
    for (what, d) in others.iter().filter(|_| c.identical) {
        if let Some(d) = d {
            writeln!(
                out,
                "    {}",
                fold(&format!("{what}, {d}"), 76).join("\n    ")
            )?;
        }
    }
    if let Some(d) = &c.first_difference {
        writeln!(out, "    {}", fold(d, 76).join("\n    "))?;
        for l in &c.latency {
            writeln!(
                out,
                "    pid {} {}: mean latency {:+.1}%, max {:+.1}%",
                l.pid,
                l.rw,
                100.0 * l.mean_error,
                100.0 * l.max_error
            )?;
        }
    }
    Ok(())
}
