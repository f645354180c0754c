// SPDX-License-Identifier: MIT OR Apache-2.0
//! The details as text of at most 80 columns.

use super::{ClassTable, Details, histogram};
use crate::distribution::Distribution;
use crate::stats::TraceStats;
use crate::text::head;
use blklab_types::visible;
use std::fmt::{self, Write};

/// Characters of the longest bar.
const BAR: usize = 32;

/// The tables of classes.
pub fn render_classes(details: &Details) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    for table in &details.by {
        let _ = classes(&mut out, table);
    }
    out
}

fn classes(out: &mut String, table: &ClassTable) -> fmt::Result {
    match table.window_ns {
        Some(ns) => head(out, &format!("By Window Of {} (Q)", time(ns as f64)))?,
        None => head(out, &format!("By {}", capital(table.by)))?,
    }
    writeln!(
        out,
        "{:>16} | {:>7} {:>6} {:>5} {:>6} | {:>6} {:>6} {:>6} | {:>6}",
        "", "", "", "BIOS/", "SEEK", "Q2C", "", "", "D2C"
    )?;
    writeln!(
        out,
        "{:>16} | {:>7} {:>6} {:>5} {:>6} | {:>6} {:>6} {:>6} | {:>6}",
        capital(table.by),
        "#Q",
        "KiB",
        "REQ",
        "50%",
        "50%",
        "99%",
        "MAX",
        "99%"
    )?;
    let rule = "-".repeat(16);
    writeln!(
        out,
        "{rule} | ------- ------ ----- ------ | ------ ------ ------ | ------"
    )?;
    for row in &table.rows {
        let q2c = &row.phases.q2c;
        writeln!(
            out,
            "{:<16} | {:>7} {:>6} {:5.1} {:>6} | {:>6} {:>6} {:>6} | {:>6}",
            fitting(&row.name, 16),
            row.queued.count,
            short((row.queued.bytes / 1024) as f64),
            row.merge_ratio,
            unless_empty(&row.seeks.distances, |d| short(d.percentile(50.0) as f64)),
            unless_empty(q2c, |d| time(d.percentile(50.0) as f64)),
            unless_empty(q2c, |d| time(d.percentile(99.0) as f64)),
            unless_empty(q2c, |d| time(d.max() as f64)),
            unless_empty(&row.phases.d2c, |d| time(d.percentile(99.0) as f64)),
        )?;
    }
    writeln!(out)
}

/// A histogram of a phase of all bios: its name, as in [`Phases::named`], in any case.
///
/// [`Phases::named`]: crate::stats::Phases::named
pub fn render_histogram(stats: &TraceStats, phase: &str) -> String {
    let mut out = String::new();
    for (name, values) in stats.all.named() {
        if name.eq_ignore_ascii_case(phase) {
            // Writing to a string cannot fail.
            let _ = bars(&mut out, name, values);
        }
    }
    out
}

fn bars(out: &mut String, name: &str, values: &Distribution) -> fmt::Result {
    head(out, &format!("Histogram Of {name}"))?;
    let rows = histogram(values);
    let most = rows.iter().map(|(_, _, n)| *n).max().unwrap_or(0);
    if most == 0 {
        return writeln!(out, "none\n");
    }
    writeln!(out, "{:>8} {:>8} | {:>11} {:>7} |", "FROM", "TO", "N", "%")?;
    writeln!(out, "-------- -------- | ----------- ------- |")?;
    for (from, to, n) in rows {
        let percent = 100.0 * n as f64 / values.count() as f64;
        let length = (BAR as f64 * n as f64 / most as f64).round() as usize;
        // What there is at all is seen.
        let bar = "#".repeat(length.max(usize::from(n > 0)));
        let line = format!(
            "{:>8} {:>8} | {n:>11} {percent:>6.2}% | {bar}",
            time(from as f64),
            time(to as f64)
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    writeln!(out)
}

/// Depths at Q and D, idle time with work queued, flushes.
pub fn render_queues(details: &Details) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = queues(&mut out, details);
    out
}

fn queues(out: &mut String, details: &Details) -> fmt::Result {
    head(out, "Queue Depth Met At Q And At D")?;
    writeln!(
        out,
        "{:>10} | {:>8} {:>6} {:>6} {:>6} | {:>8} {:>6} {:>6} {:>6}",
        "DEV", "Q MEAN", "50%", "99%", "MAX", "D MEAN", "50%", "99%", "MAX"
    )?;
    let rule = "-------- ------ ------ ------";
    writeln!(out, "---------- | {rule} | {rule}")?;
    for q in &details.queues {
        write!(out, "{:>10}", device(q.dev))?;
        for depth in [&q.depth_at_q, &q.depth_at_d] {
            write!(
                out,
                " | {:8.2} {:6} {:6} {:6}",
                depth.mean(),
                depth.percentile(50.0),
                depth.percentile(99.0),
                depth.max()
            )?;
        }
        writeln!(out)?;
    }
    writeln!(out)?;
    head(out, "Device Idle With Work Queued")?;
    writeln!(
        out,
        "{:>10} | {:>8} {:>8} {:>8} {:>8} {:>8} | {:>7}",
        "DEV", "#", "TOTAL", "50%", "99%", "MAX", "% TIME"
    )?;
    let rule = "--------";
    writeln!(
        out,
        "---------- | {rule} {rule} {rule} {rule} {rule} | -------"
    )?;
    for q in details.queues.iter().filter(|q| q.depth_at_d.count() > 0) {
        let pauses = &q.idle_with_work.pauses;
        writeln!(
            out,
            "{:>10} | {:8} {:>8} {:>8} {:>8} {:>8} | {:6.2}%",
            device(q.dev),
            pauses.count(),
            time(pauses.sum() as f64),
            time(pauses.percentile(50.0) as f64),
            time(pauses.percentile(99.0) as f64),
            time(pauses.max() as f64),
            q.idle_with_work.share_percent,
        )?;
    }
    writeln!(out)?;
    head(out, "Flushes")?;
    writeln!(
        out,
        "{:>10} | {:<26} | {:>7} {:>8} {:>8} {:>8}",
        "DEV", "", "#", "TOTAL", "50%", "MAX"
    )?;
    writeln!(
        out,
        "---------- | -------------------------- | ------- -------- -------- --------"
    )?;
    let mut any = false;
    for q in &details.queues {
        for (what, times) in [
            ("empty, Q to C", &q.flushes.empty_q2c),
            ("before a write, Q to C", &q.flushes.preflush_q2c),
            ("writes with FUA, Q to C", &q.flushes.fua_q2c),
            ("commands, D to C", &q.flushes.commands_d2c),
        ] {
            if times.count() > 0 {
                any = true;
                writeln!(
                    out,
                    "{:>10} | {what:<26} | {:7} {:>8} {:>8} {:>8}",
                    device(q.dev),
                    times.count(),
                    time(times.sum() as f64),
                    time(times.percentile(50.0) as f64),
                    time(times.max() as f64)
                )?;
            }
        }
    }
    if !any {
        writeln!(out, "none")?;
    }
    writeln!(out)
}

fn device(dev: blklab_types::Dev) -> String {
    format!("({:3},{:3})", dev.major, dev.minor)
}

/// Nothing where there is no value.
fn unless_empty(values: &Distribution, text: impl Fn(&Distribution) -> String) -> String {
    match values.count() {
        0 => "-".to_owned(),
        _ => text(values),
    }
}

fn capital(word: &str) -> String {
    word[..1].to_uppercase() + &word[1..]
}

/// At most so many characters, printable ones; of a process the id stays whole.
fn fitting(name: &str, width: usize) -> String {
    let name = visible(name);
    let over = name.chars().count().saturating_sub(width);
    match name.rfind(" (") {
        Some(at) if over > 0 => {
            let comm = name[..at].chars().count().saturating_sub(over);
            name[..at]
                .chars()
                .take(comm)
                .chain(name[at..].chars())
                .collect()
        }
        _ => name.chars().take(width).collect(),
    }
}

/// A time with three figures and its unit.
fn time(ns: f64) -> String {
    scaled(ns, &["ns", "us", "ms", "s"])
}

/// A number with three figures, in thousands or millions if large.
fn short(n: f64) -> String {
    scaled(n, &["", "k", "M", "G", "T"])
}

fn scaled(n: f64, units: &[&str]) -> String {
    let (mut value, mut unit) = (n, 0);
    while unit + 1 < units.len() && value >= 999.5 {
        value /= 1000.0;
        unit += 1;
    }
    let figures = match value {
        v if unit == 0 => format!("{v:.0}"),
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    };
    figures + units[unit]
}
