// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of runs for people: at most 80 columns.
//!
//! One table per job group and direction, one row per experiment, then the
//! use of the disk, then what a reader should know.

use crate::output::{bytes, count, cut, fold, per_second, time};
use anyhow::Result;
use blklab::Published;
use blklab::matrix::Cell;
use blklab::run::RunOutput;
use blklab::summary::{DiskRow, Row, Spread, Table, disk_rows, tables};
use std::io::Write;

/// Columns of a terminal.
const WIDTH: usize = 80;
/// Columns of the labels: the numbers need the rest.
const LABEL_MIN: usize = 11;
const LABEL_MAX: usize = 20;

type Pairs<'a> = [(&'a Cell, &'a RunOutput)];

pub(crate) fn show(out: &mut impl Write, pairs: &Pairs<'_>) -> Result<()> {
    let files = pairs.chunk_by(|a, b| a.0.file_idx == b.0.file_idx);
    for (i, of_file) in files.enumerate() {
        if i > 0 {
            writeln!(out)?;
        }
        show_file(out, of_file)?;
    }
    Ok(())
}

fn show_file(out: &mut impl Write, pairs: &Pairs<'_>) -> Result<()> {
    let e = &pairs[0].0.experiment;
    let varies = |key: &str| pairs[0].0.label.iter().any(|(k, _)| k == key);
    let mut about = vec![e.id.clone()];
    if pairs.iter().all(|(c, _)| c.experiment.kernel == e.kernel) {
        about.push(format!("kernel {}", e.kernel));
    }
    if !varies("device") {
        let array = match &e.md {
            Some(md) if !varies("md") => format!("{md} of "),
            _ => String::new(),
        };
        about.push(format!("{array}{}", e.device));
    }
    let depth = e.queue_depth()?;
    let mut others = pairs.iter().map(|(c, _)| c.experiment.queue_depth());
    if others.all(|d| d.is_ok_and(|d| d == depth)) {
        about.push(format!("queue depth {depth}"));
    }
    let runs = 1 + pairs.iter().map(|(c, _)| c.repetition).max().unwrap_or(0);
    if runs > 1 {
        about.push(format!("medians of {runs} runs"));
    }
    for line in fold(&about.join(", "), WIDTH) {
        writeln!(out, "{line}")?;
    }
    for line in fold(&e.title, WIDTH).iter().filter(|l| !l.is_empty()) {
        writeln!(out, "{line}")?;
    }
    let all = tables(pairs);
    let disk = disk_rows(pairs);
    let labels = disk.iter().map(|r| r.label.chars().count());
    let width = labels
        .filter(|w| *w <= LABEL_MAX)
        .max()
        .unwrap_or(0)
        .clamp(LABEL_MIN, LABEL_MAX);
    for table in &all {
        show_table(out, table, width)?;
    }
    if all.is_empty() {
        show_processes(out, pairs)?;
    }
    if disk.iter().any(|r| r.requests.median > 0.0) {
        show_disk(out, &disk, width)?;
    }
    show_footer(out, pairs)
}

/// A label in its column, or on lines of its own before the numbers.
fn label(out: &mut impl Write, text: &str, width: usize) -> std::io::Result<()> {
    if text.chars().count() <= width {
        return write!(out, "{text:<width$}");
    }
    for line in fold(text, WIDTH) {
        writeln!(out, "{}", cut(&line, WIDTH))?;
    }
    write!(out, "{:<width$}", "")
}

fn show_table(out: &mut impl Write, t: &Table, width: usize) -> std::io::Result<()> {
    let plural = |n: u64| if n == 1 { "" } else { "s" };
    write!(
        out,
        "\ngroup {}, {}: {} job{}, ",
        t.group,
        t.direction,
        t.jobs,
        plural(t.jobs as u64)
    )?;
    let sync = t.direction == "sync";
    if sync {
        writeln!(out, "{} call{} of fsync or its kin", t.ios, plural(t.ios))?;
    } else {
        writeln!(
            out,
            "{} in {} I/O{}",
            bytes(t.bytes as f64),
            t.ios,
            plural(t.ios)
        )?;
    }
    let (clat50, clat99) = if sync {
        ("lat50", "lat99")
    } else {
        ("clat50", "clat99")
    };
    writeln!(
        out,
        "{:<width$} {:>9} {:>9}  {clat50:>6} {clat99:>6} {:>6} {:>9} {:>6}",
        "",
        "runt-min",
        "runt-max",
        "max",
        if sync { "" } else { "bandwidth" },
        if sync { "per s" } else { "IOPS" },
    )?;
    for row in &t.rows {
        show_row(out, row, width, sync)?;
    }
    show_ratios(out, t, width)
}

/// Bandwidths over that of the first row, beside the published ones.
fn show_ratios(out: &mut impl Write, t: &Table, width: usize) -> std::io::Result<()> {
    let rows: Vec<(&Row, f64)> = t
        .rows
        .iter()
        .filter_map(|r| Some((r, r.published.as_ref()?.bandwidth_mb_s?)))
        .collect();
    let [(first, first_published), _, ..] = rows[..] else {
        return Ok(());
    };
    writeln!(out, "\nbandwidth over that of {}", first.label)?;
    writeln!(out, "{:<width$} {:>9} {:>9}", "", "here", "published")?;
    for (r, published) in &rows {
        label(out, &r.label, width)?;
        let ours = r.bw_bytes.median / first.bw_bytes.median.max(1.0);
        writeln!(out, " {ours:>9.2} {:>9.2}", published / first_published)?;
    }
    Ok(())
}

fn show_row(out: &mut impl Write, r: &Row, width: usize, sync: bool) -> std::io::Result<()> {
    label(out, &r.label, width)?;
    writeln!(
        out,
        " {:>9} {:>9}  {:>6} {:>6} {:>6} {:>9} {:>6}",
        runt(r.runt_min_ms.median),
        runt(r.runt_max_ms.median),
        time(r.clat_p50_ns.median),
        time(r.clat_p99_ns.median),
        time(r.clat_max_ns.median),
        if sync {
            String::new()
        } else {
            per_second(r.bw_bytes.median)
        },
        count(r.iops.median),
    )?;
    if r.runs > 1 {
        show_spread(out, r, width)?;
    }
    match &r.published {
        Some(p) => show_published(out, p, width),
        None => Ok(()),
    }
}

/// What was published for a row, in the same columns, and where.
fn show_published(out: &mut impl Write, p: &Published, width: usize) -> std::io::Result<()> {
    let ms = |v: Option<u64>| v.map_or("-".to_owned(), |v| runt(v as f64));
    let source = fold(&p.source, WIDTH - width - 22);
    let (min, max) = (ms(p.runt_min_ms), ms(p.runt_max_ms));
    let name = cut("  published", width);
    let mut lines = source.iter();
    if let Some(mb_s) = p.bandwidth_mb_s {
        let text = per_second(mb_s * 1e6);
        writeln!(
            out,
            "{name:<width$} {min:>9} {max:>9}  {:>20} {text:>9}",
            ""
        )?;
    } else {
        let first = lines.next().map_or("", String::as_str);
        writeln!(out, "{name:<width$} {min:>9} {max:>9}  {first}")?;
    }
    for line in lines.filter(|l| !l.is_empty()) {
        writeln!(out, "{:<width$} {:>9} {:>9}  {line}", "", "", "")?;
    }
    Ok(())
}

/// A run time in milliseconds, as fio and what was published have it; in
/// seconds if it is longer than its column.
fn runt(ms: f64) -> String {
    if ms < 9_999_999.5 {
        format!("{ms:.0}ms")
    } else {
        format!("{:.0}s", ms / 1000.0)
    }
}

/// Lowest and highest of several runs, in the same columns, unless they are
/// all the same.
fn show_spread(out: &mut impl Write, r: &Row, width: usize) -> std::io::Result<()> {
    let spreads = [
        r.runt_min_ms,
        r.runt_max_ms,
        r.clat_p50_ns,
        r.clat_p99_ns,
        r.clat_max_ns,
        r.bw_bytes,
    ];
    if spreads.iter().all(|s| s.min == s.max) {
        return Ok(());
    }
    for name in ["lowest", "highest"] {
        let end = |s: &Spread| if name == "lowest" { s.min } else { s.max };
        writeln!(
            out,
            "{:<width$} {:>9} {:>9}  {:>6} {:>6} {:>6} {:>9} {:>6}",
            cut(&format!("  {name}"), width),
            runt(end(&r.runt_min_ms)),
            runt(end(&r.runt_max_ms)),
            time(end(&r.clat_p50_ns)),
            time(end(&r.clat_p99_ns)),
            time(end(&r.clat_max_ns)),
            if r.bw_bytes.max > 0.0 {
                per_second(end(&r.bw_bytes))
            } else {
                String::new()
            },
            count(end(&r.iops)),
        )?;
    }
    Ok(())
}

/// Explicit processes have no fio statistics: what the trace says of them.
fn show_processes(out: &mut impl Write, pairs: &Pairs<'_>) -> std::io::Result<()> {
    for (cell, run) in pairs {
        for line in fold(&format!("{}: {} s", cell.name_in_file(), run.end), WIDTH) {
            writeln!(out, "\n{line}")?;
        }
        writeln!(
            out,
            "{:<22} {:>6} {:>8}  {:>7} {:>7} {:>7} {:>10}",
            "process", "bios", "bytes", "Q2C 50", "Q2C 99", "max", "bandwidth"
        )?;
        let seconds = run.end.0 as f64 / 1e9;
        for p in &run.stats.processes {
            let total = p.completed.total();
            let q2c = &p.phases.q2c;
            let name = format!("{} ({})", p.comm.as_deref().unwrap_or("?"), p.pid);
            writeln!(
                out,
                "{:<22} {:>6} {:>8}  {:>7} {:>7} {:>7} {:>10}",
                cut(&name, 22),
                count(total.count as f64),
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

/// How the disk was used, and where bios spent their time on the mean.
fn show_disk(out: &mut impl Write, rows: &[DiskRow], width: usize) -> std::io::Result<()> {
    writeln!(
        out,
        "\ndisk: bios wait on the mean Q2D in the kernel, then D2C at the device"
    )?;
    writeln!(
        out,
        "{:<width$} {:>9} {:>9}  {:>6} {:>6} {:>6} {:>9}",
        "", "requests", "merged", "Q2D", "D2C", "%util", "in flight"
    )?;
    for r in rows {
        label(out, &r.label, width)?;
        writeln!(
            out,
            " {:>9} {:>8.1}%  {:>6} {:>6} {:>6.1} {:>9.1}",
            count(r.requests.median),
            r.merged_percent.median,
            time(r.q2d_ns.median),
            time(r.d2c_ns.median),
            r.busy_percent.median,
            r.queue_size.median,
        )?;
    }
    Ok(())
}

fn show_footer(out: &mut impl Write, pairs: &Pairs<'_>) -> Result<()> {
    writeln!(out)?;
    if let [(_, run)] = pairs {
        writeln!(
            out,
            "{} s of virtual time, {} events, digest {:016x}",
            run.end,
            run.digest.nr_events(),
            run.digest.value()
        )?;
    }
    for (cell, run) in pairs.iter().filter(|(c, _)| c.repetition == 0) {
        for (name, text) in &run.sysfs {
            writeln!(out, "{name} of {} at the end:", cell.name_in_file())?;
            for line in text.lines().flat_map(|l| fold(l, WIDTH - 2)) {
                writeln!(out, "  {line}")?;
            }
        }
    }
    for (cell, run) in pairs.iter().filter(|(_, run)| !run.cgroups.is_empty()) {
        writeln!(out, "bios held by io.max of {}:", cell.name_in_file())?;
        for group in &run.cgroups {
            let longest = time(group.longest_hold.ns() as f64);
            let (name, bios) = (&group.name, group.held_bios);
            writeln!(out, "  {name}: {bios}, the longest for {longest}")?;
        }
    }
    let mut shown: Vec<&str> = Vec::new();
    for (cell, run) in pairs {
        if run.interrupted {
            let text = format!(
                "{}: interrupted at {} s: the numbers cover what ran",
                cell.name_in_file(),
                run.end
            );
            for line in fold(&text, WIDTH) {
                writeln!(out, "{line}")?;
            }
        }
        for note in run.notes.iter().map(String::as_str) {
            if !shown.contains(&note) {
                shown.push(note);
                for (i, line) in fold(note, WIDTH - 6).iter().enumerate() {
                    writeln!(out, "{}{line}", if i == 0 { "note: " } else { "      " })?;
                }
            }
        }
    }
    for file in pairs.iter().flat_map(|(_, run)| &run.trace_files) {
        writeln!(out, "trace: {}", file.display())?;
    }
    Ok(())
}
