// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a reader should know beside the tables.

use super::{Pairs, WIDTH};
use crate::output::{bytes, fold, hanging, time};
use anyhow::Result;
use blklab::findings::counted;
use blklab::summary::Table;
use blklab::targets::{CgroupUse, Held, Pressure};
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
        groups(out, &cell.name_in_file(), &run.cgroups)?;
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

/// What control groups came to.
fn groups(out: &mut impl Write, cell: &str, groups: &[CgroupUse]) -> std::io::Result<()> {
    if groups.iter().any(|g| g.held.is_some()) {
        writeln!(out, "bios throttled by io.max ({cell}):")?;
    }
    for group in groups {
        if let Some(Held { bios, longest }) = group.held {
            let longest = time(longest.ns() as f64);
            writeln!(out, "  {}: {bios}, the longest for {longest}", group.name)?;
        }
    }
    if groups.iter().any(|g| g.moved.is_some()) {
        writeln!(out, "I/O of control groups ({cell}):")?;
    }
    for group in groups {
        let Some(moved) = group.moved else {
            continue;
        };
        let mut words = Vec::new();
        for (i, what) in ["read", "written", "discarded"].into_iter().enumerate() {
            if moved.ios[i] > 0 {
                let size = bytes(moved.bytes[i] as f64);
                words.push(format!("{size} {what} in {} I/Os", moved.ios[i]));
            }
        }
        if words.is_empty() {
            words.push("none".to_owned());
        }
        if let Some(Pressure { some, full }) = &group.pressure {
            let span = |us: u64| time(us as f64 * 1000.0);
            let (some, full) = (span(some.total_us), span(full.total_us));
            words.push(format!("stalled for {some}, in full for {full}"));
        }
        words.extend(group.said.iter().cloned());
        let name = format!("  {}: ", group.name);
        hanging(out, &name, 4, &words.join(", "))?;
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
