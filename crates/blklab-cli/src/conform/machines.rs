// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measured machines under `blklab conform`.

use crate::args::ConformArgs;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use anyhow::{Result, bail};
use blklab_fidelity::conform::{Figure, MachineCase, MachineReport, machine_cases};
use std::io::Write;
use std::path::PathBuf;

/// The cases of these folders.
pub(super) fn cases(folders: &[PathBuf]) -> Result<Vec<MachineCase>> {
    let mut cases: Vec<MachineCase> = Vec::new();
    for folder in folders {
        cases.append(&mut machine_cases(folder)?);
    }
    Ok(cases)
}

/// Runs cases.
pub(super) fn run(a: &ConformArgs, cases: &[MachineCase]) -> Result<Vec<MachineReport>> {
    if cases.is_empty() {
        return Ok(Vec::new());
    }
    if a.seeds == 0 {
        bail!("--seeds: at least 1");
    }
    let interrupt = Interrupt::watch();
    let progress = Progress::new(cases.len());
    let threads = blklab::parallel::cores();
    let mut reports = Vec::with_capacity(cases.len());
    for case in cases {
        reports.push(case.run(a.seeds, threads, &interrupt.stop)?);
        progress.step();
    }
    progress.finish();
    Ok(reports)
}

fn value(x: f64, unit: &str) -> String {
    match unit {
        "ms" => format!("{x:.0}"),
        _ if x < 10.0 => format!("{x:.2}"),
        _ => format!("{x:.1}"),
    }
}

fn verdict(f: &Figure) -> &'static str {
    match f.allowed {
        None => "",
        Some(_) if f.is_within() => "within",
        Some(_) => "OFF",
    }
}

pub(super) fn table(out: &mut impl Write, reports: &[MachineReport]) -> std::io::Result<()> {
    if reports.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "{:<24} {:<18} {:>9} {:>9} {:>19} {:>6}",
        "case", "figure", "measured", "here", "lowest to highest", "ratio"
    )?;
    for r in reports {
        if let Some(why) = &r.skipped {
            writeln!(out, "{:<24} not run: {why}", r.id)?;
        }
        for (i, f) in r.figures.iter().enumerate() {
            let v = |x| value(x, f.unit);
            writeln!(
                out,
                "{:<24} {:<18} {:>9} {:>9} {:>19} {:>6.2} {}",
                if i == 0 { &r.id } else { "" },
                format!("{}, {}", f.name, f.unit),
                v(f.measured),
                v(f.median),
                format!("{} to {}", v(f.lowest), v(f.highest)),
                f.ratio,
                verdict(f)
            )?;
        }
    }
    let ran = reports.iter().filter(|r| r.skipped.is_none());
    let within = ran.clone().filter(|r| r.within).count();
    writeln!(
        out,
        "\n{} cases of measured machines: {} ran, {within} within their bounds",
        reports.len(),
        ran.count()
    )
}

pub(super) fn markdown(out: &mut impl Write, reports: &[MachineReport]) -> std::io::Result<()> {
    if reports.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "| case | figure | measured | here | lowest to highest | ratio | allowed | |\n\
         |---|---|---|---|---|---|---|---|"
    )?;
    for r in reports {
        if let Some(why) = &r.skipped {
            writeln!(out, "| {} | not run: {why} | | | | | | |", r.id)?;
        }
        for (i, f) in r.figures.iter().enumerate() {
            let v = |x| value(x, f.unit);
            writeln!(
                out,
                "| {} | {}, {} | {} | {} | {} to {} | {:.2} | {} | {} |",
                if i == 0 { &r.id } else { "" },
                f.name,
                f.unit,
                v(f.measured),
                v(f.median),
                v(f.lowest),
                v(f.highest),
                f.ratio,
                f.allowed.map_or(String::new(), |[low, high]| format!(
                    "{low:.2} to {high:.2}"
                )),
                verdict(f)
            )?;
        }
    }
    Ok(())
}
