// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of runs for people: at most 80 columns.
//!
//! Tables of the jobs, then the use of the disk, then what a reader should
//! know.

mod beside;
mod footer;
mod rows;
mod verdict;

use crate::output::{cut, fold};
use anyhow::Result;
use blklab::figure::Figure;
use blklab::matrix::Cell;
use blklab::run::RunOutput;
use blklab::summary::{disk_rows, tables};
use std::io::Write;

/// Columns of a terminal.
const WIDTH: usize = 80;
/// Columns of the labels: the numbers need the rest.
const LABEL_MIN: usize = 11;
const LABEL_MAX: usize = 15;

type Pairs<'a> = [(&'a Cell, &'a RunOutput)];

/// With notes about all of them; matrices are judged by a figure, if one is asked for.
pub(crate) fn show(
    out: &mut impl Write,
    pairs: &Pairs<'_>,
    notes: &[String],
    asked: Option<&Figure>,
) -> Result<()> {
    let files = pairs.chunk_by(|a, b| a.0.file_idx == b.0.file_idx);
    for (i, of_file) in files.enumerate() {
        if i > 0 {
            writeln!(out)?;
        }
        show_file(out, of_file, asked)?;
    }
    for text in notes {
        footer::note(out, text)?;
    }
    Ok(())
}

fn show_file(out: &mut impl Write, pairs: &Pairs<'_>, asked: Option<&Figure>) -> Result<()> {
    let e = &pairs[0].0.experiment;
    let varies = |key: &str| pairs[0].0.label.iter().any(|(k, _)| k == key);
    let mut about = vec![e.id.clone()];
    let kernel = e.kernel.to_string();
    if pairs
        .iter()
        .all(|(c, _)| c.experiment.kernel.to_string() == kernel)
    {
        about.push(format!("kernel {kernel}"));
    }
    let scheduler = &e.scheduler;
    if pairs
        .iter()
        .all(|(c, _)| c.experiment.scheduler == *scheduler)
    {
        about.push(scheduler.clone());
    }
    if !varies("device") {
        let array = match &e.md {
            Some(md) if !varies("md") => format!("{md} of "),
            _ => String::new(),
        };
        let mapped = if e.dm.is_none() || varies("dm") {
            String::new()
        } else {
            format!("{} on ", e.dm)
        };
        about.push(format!("{mapped}{array}{}", e.device));
    }
    let depth = pairs[0].1.facts.queue_depth();
    let mut others = pairs.iter().map(|(_, run)| run.facts.queue_depth());
    if let Some(depth) = depth.filter(|_| others.all(|d| d == depth)) {
        about.push(format!("queue depth {depth}"));
    }
    let runs = 1 + pairs.iter().map(|(c, _)| c.repetition).max().unwrap_or(0);
    for line in fold(&about.join(", "), WIDTH) {
        writeln!(out, "{line}")?;
    }
    if runs > 1 {
        writeln!(out, "medians of {runs} runs")?;
    }
    for line in fold(&e.title, WIDTH).iter().filter(|l| !l.is_empty()) {
        writeln!(out, "{line}")?;
    }
    verdict::show(out, pairs, asked)?;
    let all = tables(pairs);
    let disk = disk_rows(pairs);
    let of_jobs = all.iter().flat_map(|t| &t.rows).map(|r| &r.label);
    let labels = of_jobs.chain(disk.iter().map(|r| &r.label));
    let width = labels
        .map(|l| l.chars().count())
        .filter(|w| *w <= LABEL_MAX)
        .max()
        .unwrap_or(0)
        .clamp(LABEL_MIN, LABEL_MAX);
    for table in &all {
        rows::show_table(out, table, width)?;
    }
    if all.is_empty() && pairs.iter().all(|(_, run)| run.jobs.is_empty()) {
        rows::show_processes(out, pairs)?;
    }
    if disk.iter().any(|r| r.spread("disk_requests").median > 0.0) {
        rows::show_disk(out, &disk, width)?;
    }
    beside::show(out, pairs, width)?;
    if pairs.len() > 1 {
        rows::show_digests(out, pairs, width)?;
    }
    footer::show(out, pairs, &all)
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
