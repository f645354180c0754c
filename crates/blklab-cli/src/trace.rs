// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab trace`.

use crate::Outcome;
use crate::args::{PlainFormat, TraceCommand};
use anyhow::Result;
use blklab::trace_file::{TraceFile, TraceOut};
use blklab::{ReadCounts, StatsCollector, TextOptions, TraceSource as _, TraceStats, render_stats};
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

pub(crate) fn trace(command: &TraceCommand) -> Result<Outcome> {
    match command {
        TraceCommand::Print { file, quiet } => print(file, *quiet)?,
        TraceCommand::Stats {
            file,
            output_format,
        } => stats(file, *output_format)?,
        TraceCommand::Info { file } => info(file)?,
        TraceCommand::Convert { file, output } => convert(file, output)?,
    }
    Ok(Outcome::Done)
}

fn print(file: &Path, quiet: bool) -> Result<()> {
    let name = file.to_string_lossy();
    let name = name.split(".blktrace.").next().unwrap_or("trace");
    let out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut input = TraceFile::open(file)?;
    blklab::trace_file::print(&mut input, out, name, quiet)?;
    if matches!(input, TraceFile::Blktrace(_)) && !std::io::stdout().is_terminal() {
        name_inputs(name)?;
    }
    report_damage(file, input.counts());
    Ok(())
}

/// blkparse says which files it read; in a pipe that comes last, because it
/// has a buffer of its own. With it the output is the same to the byte.
fn name_inputs(name: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    for cpu in 0.. {
        let file = format!("{name}.blktrace.{cpu}");
        if !Path::new(&file).exists() {
            break;
        }
        writeln!(out, "Input file {file} added")?;
    }
    Ok(())
}

fn collect(file: &Path) -> Result<TraceStats> {
    let mut collector = StatsCollector::new();
    let mut input = TraceFile::open(file)?;
    input.send_all(&mut collector)?;
    report_damage(file, input.counts());
    Ok(collector.finish())
}

fn stats(file: &Path, format: PlainFormat) -> Result<()> {
    let stats = collect(file)?;
    let mut out = std::io::stdout().lock();
    match format {
        PlainFormat::Table => write!(out, "{}", render_stats(&stats, TextOptions::default()))?,
        PlainFormat::Json => {
            serde_json::to_writer_pretty(&mut out, &stats).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
    }
    out.flush()?;
    Ok(())
}

fn info(file: &Path) -> Result<()> {
    let mut input = TraceFile::open(file)?;
    let header = input.header().cloned();
    let mut collector = StatsCollector::new();
    input.send_all(&mut collector)?;
    let stats = collector.finish();
    let mut out = std::io::stdout().lock();
    if let Some(h) = header {
        writeln!(out, "kernel    {}", h.kernel)?;
        writeln!(out, "origin    {}", h.origin)?;
    }
    writeln!(out, "format    {}", input.format())?;
    writeln!(out, "events    {}", stats.nr_events)?;
    writeln!(out, "messages  {}", stats.nr_messages)?;
    let seconds = (stats.end_ns - stats.start_ns) as f64 / 1e9;
    writeln!(out, "span      {seconds:.9} s")?;
    for d in &stats.devices {
        let q = d.queued.total();
        writeln!(
            out,
            "device    {},{}: {} bios, {} requests",
            d.dev.major, d.dev.minor, q.count, d.nr_issued
        )?;
    }
    writeln!(
        out,
        "damage    {}",
        damage(input.counts()).unwrap_or("none".to_owned())
    )?;
    out.flush()?;
    Ok(())
}

fn convert(file: &Path, output: &Path) -> Result<()> {
    let mut input = TraceFile::open(file)?;
    let header = blklab::trace_file::header_for(&input, file)?;
    blklab::report::check_replaceable(output)?;
    let mut out = TraceOut::create(output, &header)?;
    if let Err(e) = input.send_all(&mut out) {
        out.discard();
        return Err(e.into());
    }
    report_damage(file, input.counts());
    for path in out.finish()? {
        writeln!(std::io::stderr(), "wrote {}", path.display())?;
    }
    Ok(())
}

/// Damage is counted and said, never silent.
fn report_damage(file: &Path, counts: &ReadCounts) {
    if let Some(text) = damage(counts) {
        let _ = writeln!(std::io::stderr(), "blklab: {}: {text}", file.display());
    }
}

/// What is wrong with a trace, in words; none if it is whole.
fn damage(c: &ReadCounts) -> Option<String> {
    if c.is_clean() {
        return None;
    }
    let counts = [
        ("events lost by the recorder", c.lost),
        ("events out of order", c.backwards),
        ("records of unknown kind", c.unknown),
        ("damaged records", c.damaged),
        ("passages left out", c.elided),
        ("events missing at the end", c.missing),
        ("the file ends inside a record", u64::from(c.truncated)),
    ];
    let parts = counts
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(what, n)| format!("{what}: {n}"));
    let mut text = parts.collect::<Vec<_>>().join("; ");
    if let Some(first) = c.examples.first() {
        text = format!("{text} (first: {first})");
    }
    Some(text)
}
