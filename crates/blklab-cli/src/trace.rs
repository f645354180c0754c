// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab trace`.

use crate::Outcome;
use crate::args::{PlainFormat, TraceCommand};
use anyhow::{Result, anyhow};
use blklab::trace_file::{TraceIn, TraceOut};
use blklab::{StatsCollector, TextOptions, TraceStats, render_stats};
use std::io::Write as _;
use std::path::Path;

pub(crate) fn trace(command: &TraceCommand) -> Result<Outcome> {
    match command {
        TraceCommand::Print { file, quiet } => print(file, *quiet)?,
        TraceCommand::Stats { file, output_format } => stats(file, *output_format)?,
        TraceCommand::Info { file } => info(file)?,
        TraceCommand::Convert { file, output } => convert(file, output)?,
    }
    Ok(Outcome::Done)
}

fn print(file: &Path, quiet: bool) -> Result<()> {
    let name = file.to_string_lossy();
    let name = name.split(".blktrace.").next().unwrap_or("trace");
    let out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut input = TraceIn::open(file)?;
    let counts = blklab::trace_file::print(&mut input, out, name, quiet)?;
    report_damage(file, &counts);
    Ok(())
}

fn collect(file: &Path) -> Result<TraceStats> {
    let mut collector = StatsCollector::new();
    let counts = TraceIn::open(file)?.feed(&mut collector)?;
    report_damage(file, &counts);
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
    let mut input = TraceIn::open(file)?;
    let header = input.header().cloned();
    let mut collector = StatsCollector::new();
    let counts = input.feed(&mut collector)?;
    let stats = collector.finish();
    let mut out = std::io::stdout().lock();
    if let Some(h) = header {
        writeln!(out, "kernel    {}", h.kernel)?;
        writeln!(out, "origin    {}", h.origin)?;
    }
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
    writeln!(out, "damage    {counts}")?;
    out.flush()?;
    Ok(())
}

fn convert(file: &Path, output: &Path) -> Result<()> {
    let mut input = TraceIn::open(file)?;
    let header = blklab::trace_file::header_for(&input, file)?;
    let mut out = TraceOut::create(output, &header)?;
    let counts = input.feed(&mut out)?;
    report_damage(file, &counts);
    for path in out.finish().map_err(|e| anyhow!("{e}"))? {
        writeln!(std::io::stderr(), "wrote {}", path.display())?;
    }
    Ok(())
}

/// Damage is counted and said, never silent.
fn report_damage(file: &Path, counts: &blklab::ReadCounts) {
    if !counts.is_clean() {
        let _ = writeln!(std::io::stderr(), "blklab: {}: {counts}", file.display());
    }
}
