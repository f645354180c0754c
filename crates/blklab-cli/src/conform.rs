// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab conform`.

mod machines;

use crate::Outcome;
use crate::args::{ConformArgs, ConformFormat};
use crate::output::{cut, fold};
use anyhow::{Result, bail};
use blklab::conform::{
    CaseReport, DiskReport, Report, find_cases, is_disk, is_machine, run_case, run_disk,
};
use std::io::Write;
use std::path::PathBuf;

pub(crate) fn conform(a: &ConformArgs) -> Result<Outcome> {
    let (machines, others): (Vec<PathBuf>, Vec<PathBuf>) =
        a.paths.iter().cloned().partition(|path| is_machine(path));
    let machines = machines::run(a, &machines)?;
    let found = find_cases(&others)?;
    let (disks, cases): (Vec<_>, Vec<_>) = found.into_iter().partition(|path| is_disk(path));
    let cores = blklab::parallel::cores();
    let reports = blklab::parallel::map(&cases, cores, |case| run_case(case, a.results.as_deref()));
    let of_disks = blklab::parallel::map(&disks, cores, |disk| run_disk(disk));
    let report = Report::new(
        reports.into_iter().collect::<Result<Vec<_>, _>>()?,
        of_disks.into_iter().collect::<Result<Vec<_>, _>>()?,
        machines,
    );
    let mut out = std::io::stdout().lock();
    match a.output_format {
        ConformFormat::Json => {
            serde_json::to_writer_pretty(&mut out, &report).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        ConformFormat::Markdown => machines::markdown(&mut out, &report.machines)?,
        ConformFormat::Table => {
            machines::table(&mut out, &report.machines)?;
            disk_table(&mut out, &report.disks)?;
            if !report.cases.is_empty() {
                table(&mut out, &report)?;
            }
        }
    }
    out.flush()?;
    let ran = |m: &&blklab::conform::MachineReport| m.skipped.is_none();
    if report.summary.ran == 0
        && report.disks.is_empty()
        && report.machines.iter().find(ran).is_none()
    {
        bail!("none of the cases ran: nothing was compared");
    }
    let off = report.machines.iter().any(|m| !m.within);
    Ok(if report.summary.different > 0 || off {
        Outcome::Differs
    } else {
        Outcome::Done
    })
}

fn disk_table(out: &mut impl Write, disks: &[DiskReport]) -> std::io::Result<()> {
    if disks.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "{:<33} {:>8} {:>9} {:>13} {:>14}",
        "disk", "requests", "rms ms", "measured ms", "simulated ms"
    )?;
    for d in disks {
        writeln!(
            out,
            "{:<33} {:>8} {:>9.3} {:>13.3} {:>14.3}",
            cut(&d.id, 33),
            d.requests,
            d.rms_ms,
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
