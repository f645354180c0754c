// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measured fio jobs under `blklab conform`.

use crate::args::{CaseTarget, ConformArgs};
use crate::interrupt::Interrupt;
use crate::output::{cut, fold};
use crate::progress::Progress;
use anyhow::Result;
use blklab::types::{Error, ErrorKind};
use blklab_fidelity::conform::{
    Decisions, FioBetween, FioFigure, FioReport, FioSummary, run_fio_case, run_fio_case_on_kernel,
};
use std::io::Write;
use std::path::PathBuf;

/// What `docs/fidelity.md` says before its tables.
const PREFACE: &str = include_str!("fidelity.md");

/// Figures outside of their bands that a case shows in the table.
const SHOWN_MAX: usize = 4;

/// Runs cases side by side, until a signal comes. One that cannot be read does not stop the
/// others.
pub(super) fn run(
    a: &ConformArgs,
    cases: &[PathBuf],
    interrupt: &Interrupt,
) -> Result<Vec<FioReport>> {
    if cases.is_empty() {
        return Ok(Vec::new());
    }
    let progress = Progress::new(cases.len());
    let reports = blklab::parallel::map(cases, blklab::parallel::cores(), |case| {
        let results = a.results.as_deref();
        let report = match a.target {
            _ if interrupt.happened() => Err(Error::interrupted()),
            Some(CaseTarget::Kernel) => run_fio_case_on_kernel(case, results, &interrupt.stop),
            Some(CaseTarget::Sim) | None => {
                run_fio_case(case, results, a.cpu_cost, &interrupt.stop)
            }
        };
        progress.step();
        report
    });
    progress.finish();
    let pairs = cases.iter().zip(reports);
    let reports = pairs.map(|(case, report)| match report {
        Err(e) if e.kind == ErrorKind::Interrupted => {
            Ok(FioReport::not_run(case, "ended before it was done".into()))
        }
        Err(e) if cases.len() > 1 => Ok(FioReport::not_run(case, e.to_string())),
        other => other,
    });
    Ok(reports.collect::<Result<Vec<_>, _>>()?)
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |s| {
        // Not all of it is not 100.
        let shown = (1000.0 * s).floor() / 10.0;
        format!("{shown:.1}%")
    })
}

fn error(e: Option<f64>) -> String {
    e.map_or("-".to_owned(), |e| format!("{:.1}%", 100.0 * e))
}

fn ratio(r: Option<f64>) -> String {
    r.map_or("-".to_owned(), |r| format!("{r:.2}"))
}

/// Shares of the dispatch order: before the first difference, and in common.
fn order(d: Option<&Decisions>) -> (&'static str, String, String) {
    match d {
        None => ("-", "-".into(), "-".into()),
        Some(d) => (
            if d.identical { "same" } else { "DIFFERS" },
            percent(Some(d.prefix)),
            percent(d.common),
        ),
    }
}

fn figure(f: &FioFigure) -> String {
    format!(
        "{}[{}] {} {}: measured {:.1} {}, here {:.1}, ratio {:.2}; allowed {:.2} to {:.2}",
        f.job, f.n, f.rw, f.name, f.measured, f.unit, f.simulated, f.ratio, f.band[0], f.band[1]
    )
}

pub(super) fn table(out: &mut impl Write, reports: &[FioReport]) -> std::io::Result<()> {
    if reports.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "{:<28} {:<7} {:>7} {:>7} {:>8} {:>7} {:>7}",
        "case", "order", "first", "common", "outside", "error", "bandw"
    )?;
    for r in reports.iter().filter(|r| r.skipped.is_none()) {
        case(out, r)?;
    }
    let skipped: Vec<&FioReport> = reports.iter().filter(|r| r.skipped.is_some()).collect();
    if !skipped.is_empty() {
        writeln!(out, "\nnot run:")?;
        for r in skipped {
            let why = fold(r.skipped.as_deref().unwrap_or_default(), 48);
            let rest = format!("\n{:32}", "");
            writeln!(out, "{:<31} {}", cut(&r.id, 31), why.join(&rest))?;
        }
    }
    writeln!(
        out,
        "\n{:<6} {:<11} {:>5} {:>7} {:>6} {:>10} {:>7} {:>7} {:>6}",
        "kernel",
        "scheduler",
        "cases",
        "not run",
        "traced",
        "same order",
        "figures",
        "outside",
        "error"
    )?;
    for s in FioSummary::all(reports) {
        writeln!(
            out,
            "{:<6} {:<11} {:>5} {:>7} {:>6} {:>10} {:>7} {:>7} {:>6}",
            s.kernel,
            s.scheduler,
            s.cases,
            s.skipped,
            s.traced,
            s.identical,
            s.figures,
            s.outside,
            error(s.median_error)
        )?;
    }
    let between = FioBetween::all(reports);
    if !between.is_empty() {
        writeln!(
            out,
            "\n{:<15} {:<12} {:>8} {:>7} {:>10} {:>7}",
            "kernels", "scheduler", "changed", "moved", "unchanged", "left"
        )?;
    }
    for b in &between {
        writeln!(
            out,
            "{:<15} {:<12} {:>8} {:>7} {:>10} {:>7}",
            b.kernels.join(" to "),
            b.scheduler,
            b.changed,
            share(b.moved, b.changed),
            b.unchanged,
            share(b.left, b.unchanged)
        )?;
    }
    Ok(())
}

/// A part of some figures.
fn share(part: usize, of: usize) -> String {
    percent((of > 0).then(|| part as f64 / of as f64))
}

fn case(out: &mut impl Write, r: &FioReport) -> std::io::Result<()> {
    let (same, prefix, common) = order(r.decisions.as_ref());
    let outside: Vec<&FioFigure> = r.outside().collect();
    writeln!(
        out,
        "{:<28} {:<7} {:>7} {:>7} {:>8} {:>7} {:>7}",
        cut(&r.id, 28),
        same,
        prefix,
        common,
        format!("{}/{}", outside.len(), r.figures.len()),
        error(r.median_error()),
        ratio(r.bandwidth_ratio)
    )?;
    let mut note = |text: &str| writeln!(out, "    {}", fold(text, 76).join("\n      "));
    if let Some(d) = &r.decisions {
        let mut words = d.remarks().chain(d.damage.as_deref());
        words.try_for_each(&mut note)?;
    }
    outside
        .iter()
        .take(SHOWN_MAX)
        .try_for_each(|f| note(&figure(f)))?;
    if outside.len() > SHOWN_MAX {
        note(&format!("and {} more", outside.len() - SHOWN_MAX))?;
    }
    Ok(())
}

/// The page `docs/fidelity.md`.
pub(super) fn markdown(out: &mut impl Write, reports: &[FioReport]) -> std::io::Result<()> {
    if reports.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "{PREFACE}\n## By scheduler\n\n| kernel | scheduler | cases | not run | traced | same order | figures | in band | median error |\n\
         |---|---|---|---|---|---|---|---|---|"
    )?;
    for s in FioSummary::all(reports) {
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            s.kernel,
            s.scheduler,
            s.cases,
            s.skipped,
            s.traced,
            s.identical,
            s.figures,
            share(s.figures - s.outside, s.figures),
            error(s.median_error)
        )?;
    }
    differences(out, reports)?;
    writeln!(
        out,
        "\n## Decisions\n\n| case | kernel | dispatches | order | before the first difference | in common | \
         first difference, and what came before |\n|---|---|---|---|---|---|---|"
    )?;
    for r in reports {
        let Some(d) = &r.decisions else { continue };
        let (same, prefix, common) = order(Some(d));
        writeln!(
            out,
            "| {} | {} | {}{} | {same} | {prefix} | {common} | {} |",
            r.id,
            r.kernel,
            if d.beginning { "the first " } else { "" },
            d.dispatches,
            d.remarks().collect::<Vec<_>>().join("; ")
        )?;
    }
    writeln!(
        out,
        "\n## Outcome\n\n| case | kernel | figures | outside | median error | bandwidth | furthest off |\n\
         |---|---|---|---|---|---|---|"
    )?;
    for r in reports {
        let worst = match &r.skipped {
            Some(why) => format!("not run: {why}"),
            None => r.outside().next().map(figure).unwrap_or_default(),
        };
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {worst} |",
            r.id,
            r.kernel,
            r.figures.len(),
            r.outside().count(),
            error(r.median_error()),
            ratio(r.bandwidth_ratio)
        )?;
    }
    Ok(())
}

/// What changed between kernels, where cases ran on several.
fn differences(out: &mut impl Write, reports: &[FioReport]) -> std::io::Result<()> {
    let between = FioBetween::all(reports);
    if between.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n## Between kernels\n\n| kernels | scheduler | figures that changed | moved by the model | \
         figures that did not | left by the model |\n|---|---|---|---|---|---|"
    )?;
    for b in &between {
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            b.kernels.join(" to "),
            b.scheduler,
            b.changed,
            share(b.moved, b.changed),
            b.unchanged,
            share(b.left, b.unchanged)
        )?;
    }
    Ok(())
}
