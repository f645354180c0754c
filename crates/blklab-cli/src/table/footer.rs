// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a reader should know beside the tables.

use super::{Pairs, WIDTH};
use crate::output::{fold, hanging, time};
use anyhow::Result;
use blklab::findings::counted;
use blklab::summary::Table;
use blklab::{failures, same};
use std::io::Write;

/// What a note begins with; its other lines are indented as far.
const NOTE: &str = "note: ";

/// Over which time the rates of the tables are, where fio's are over another.
const RATES: &str = "bandwidth and IOPS of several jobs are over the time in which at least one \
    of them ran (in fio's formats over the longest run time of a job)";

pub(super) fn show(out: &mut impl Write, pairs: &Pairs<'_>, tables: &[Table]) -> Result<()> {
    writeln!(out)?;
    if let [(_, run)] = pairs {
        writeln!(
            out,
            "{} s of virtual time, {}, digest {:016x}",
            run.end,
            counted(run.digest.nr_events(), "events"),
            run.digest.value()
        )?;
    }
    show_verified(out, pairs)?;
    for (cell, run) in pairs.iter().filter(|(c, _)| c.repetition == 0) {
        for (name, text) in &run.sysfs {
            writeln!(out, "{name} of {} at the end:", cell.name_in_file())?;
            for line in text.lines().flat_map(|l| fold(l, WIDTH - 2)) {
                writeln!(out, "  {line}")?;
            }
        }
    }
    for (cell, run) in pairs.iter().filter(|(_, run)| !run.cgroups.is_empty()) {
        writeln!(out, "bios throttled by io.max ({}):", cell.name_in_file())?;
        for group in &run.cgroups {
            let longest = time(group.longest_hold.ns() as f64);
            let (name, bios) = (&group.name, group.held_bios);
            writeln!(out, "  {name}: {bios}, the longest for {longest}")?;
        }
    }
    for (cell, run) in pairs.iter().filter(|(_, run)| run.interrupted) {
        let text = format!(
            "{}: interrupted at {} s: the numbers cover what ran",
            cell.name_in_file(),
            run.end
        );
        for line in fold(&text, WIDTH) {
            writeln!(out, "{line}")?;
        }
    }
    show_failures(out, pairs)?;
    let same = same::same_runs(pairs);
    let mut shown: Vec<&str> = same.iter().map(String::as_str).collect();
    let costs = same::scheduler_costs(pairs);
    shown.extend(costs.as_deref());
    if tables.iter().flat_map(|t| &t.rows).any(|r| r.spread_out) {
        shown.push(RATES);
    }
    for note in pairs.iter().flat_map(|(_, run)| &run.notes) {
        if !shown.contains(&note.as_str()) {
            shown.push(note);
        }
    }
    for note in shown {
        self::note(out, note)?;
    }
    for file in pairs.iter().flat_map(|(_, run)| &run.trace_files) {
        writeln!(out, "trace: {}", file.display())?;
    }
    Ok(())
}

/// One thing that a reader should know.
pub(super) fn note(out: &mut impl Write, text: &str) -> std::io::Result<()> {
    hanging(out, NOTE, NOTE.len(), text)
}

/// Errors of jobs, with the experiment where there are several.
fn show_failures(out: &mut impl Write, pairs: &Pairs<'_>) -> std::io::Result<()> {
    for (cell, run) in pairs {
        let name = match pairs.len() {
            1 => String::new(),
            _ => format!("{}: ", cell.name_in_file()),
        };
        for line in failures::lines(run) {
            for line in fold(&format!("{name}{line}"), WIDTH) {
                writeln!(out, "{line}")?;
            }
        }
    }
    Ok(())
}

/// Says that digests were compared, if they were.
fn show_verified(out: &mut impl Write, pairs: &Pairs<'_>) -> Result<()> {
    match pairs {
        [(_, run)] if run.verified => {
            let digest = run.digest.value();
            writeln!(out, "verified: two runs gave digest {digest:016x}")?;
        }
        _ if pairs.iter().all(|(_, run)| run.verified) => {
            let text = "verified: two runs of each experiment gave the same digest";
            writeln!(out, "{text}")?;
        }
        _ => {}
    }
    Ok(())
}
