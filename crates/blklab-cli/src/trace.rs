// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab trace`.

mod info;
mod recorded_stack;
mod stats;
mod to_fio;

use crate::Outcome;
use crate::again::Known;
use crate::args::{ReadArgs, TableRows, TraceCommand};
use crate::guard::Guard;
use crate::output::Visible;
use crate::progress::Watcher;
use crate::source::{open, report_damage};
use anyhow::{Context as _, Result, bail};
use blklab::analysis::{StatsCollector, TraceStats};
use blklab::findings::counted;
use blklab::findings::slow::Which;
use blklab::scheduler::Schedulers;
use blklab::trace::TraceSink;
use blklab::trace_file::{self, TraceFile, TraceOptions, TraceOut};
use stats::Sections;
use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

/// Kinds of events that are named where a copy is without them.
const LEFT_OUT_NAMED: usize = 4;

pub(crate) fn trace(command: &TraceCommand, schedulers: Schedulers) -> Result<Outcome> {
    match command {
        TraceCommand::Print { file, read, quiet } => print(file, read, *quiet)?,
        TraceCommand::Stats {
            file,
            read,
            by,
            histogram,
            queue,
            all,
            output_format,
        } => {
            let sections = Sections {
                by: by.clone(),
                phases: histogram.clone(),
                queue: *queue,
                all: *all,
            };
            stats::stats(file, read, sections, *output_format)?;
        }
        TraceCommand::Info {
            file,
            read,
            output_format,
        } => info::info(file, read, *output_format)?,
        TraceCommand::Slow {
            file,
            count,
            stack,
            output_format,
        } => {
            let which = Which::Slowest(usize::from(*count));
            let known = Known::new(file, stack, schedulers)?;
            crate::lives::lives(file, &stack.read, which, &known, *output_format)?;
        }
        TraceCommand::Life {
            file,
            which,
            count,
            stack,
            output_format,
        } => {
            let which = crate::lives::which(which, usize::from(*count))?;
            let known = Known::new(file, stack, schedulers)?;
            crate::lives::lives(file, &stack.read, which, &known, *output_format)?;
        }
        TraceCommand::Convert {
            file,
            read,
            output,
            rows,
        } => convert(file, read, output, *rows)?,
        TraceCommand::ToFio(args) => return to_fio::to_fio(args, schedulers),
    }
    Ok(Outcome::Done)
}

fn print(file: &Path, read: &ReadArgs, quiet: bool) -> Result<()> {
    let name = file.to_string_lossy();
    let name = name.split(".blktrace.").next().unwrap_or("trace");
    let out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut input = open(file, read.columns())?;
    let to_terminal = std::io::stdout().is_terminal();
    let shown = (!to_terminal).then(|| Watcher::reading(input.progress()));
    if to_terminal {
        blklab::trace_file::print(&mut input, Visible::new(out), name, quiet)?;
    } else {
        blklab::trace_file::print(&mut input, out, name, quiet)?;
    }
    drop(shown);
    if !to_terminal {
        name_inputs(&input)?;
    }
    report_damage(file, input.counts());
    Ok(())
}

/// blkparse says which files it read; in a pipe that comes last, because it
/// has a buffer of its own. With it the output is the same to the byte.
fn name_inputs(input: &TraceFile) -> Result<()> {
    let mut out = std::io::stdout().lock();
    for file in input.cpu_files() {
        writeln!(out, "Input file {} added", file.display())?;
    }
    Ok(())
}

/// The statistics of all that is in a trace, which is read to its end; `also` sees
/// it, too.
fn collect(input: &mut TraceFile, also: &mut impl TraceSink) -> Result<TraceStats> {
    let _shown = Watcher::reading(input.progress());
    let mut both = (StatsCollector::new(), also);
    blklab::trace::send_all(input, &mut both)?;
    Ok(both.0.finish())
}

fn convert(file: &Path, read: &ReadArgs, output: &Path, rows: Option<TableRows>) -> Result<()> {
    check_name(output)?;
    let place = Guard::new([file]).writes_trace(output, "OUTPUT")?;
    let mut options = TraceOptions {
        rows: rows.map(TableRows::rows),
        ..TraceOptions::default()
    };
    options.check(output).context("--rows")?;
    let mut input = open(file, read.columns())?;
    for existing in trace_file::replaced_by(output) {
        check_replaced(&existing)?;
    }
    let output = place.path();
    let header = trace_file::header_for(&input, file);
    options.times_as_given = input.format().has_printed_times;
    let mut out = TraceOut::create_with(output, &header, options)?;
    let shown = Watcher::reading(input.progress());
    let keeps_lacks = out.copy(&mut input)?;
    drop(shown);
    report_damage(file, input.counts());
    if !keeps_lacks {
        let note =
            "does not say that something is missing or damaged; NAME.blk has a place for that";
        writeln!(std::io::stderr(), "blklab: {}: {note}", output.display())?;
    }
    if let Some(note) = left_out(out.left_out()) {
        writeln!(std::io::stderr(), "blklab: {}: {note}", output.display())?;
    }
    for path in out.finish()? {
        writeln!(std::io::stderr(), "wrote {}", path.display())?;
    }
    Ok(())
}

/// What the copy of a trace has no place for, in a sentence.
fn left_out(events: &BTreeMap<&'static str, u64>) -> Option<String> {
    let (stacks, events): (Vec<_>, Vec<_>) = events
        .iter()
        .partition(|(name, _)| **name == "kernel_stack");
    let sum = |of: &[(&&str, &u64)]| of.iter().map(|(_, nr)| **nr).sum::<u64>();
    let names: Vec<&str> = events.iter().map(|(name, _)| **name).collect();
    let more = if names.len() > LEFT_OUT_NAMED {
        ", …"
    } else {
        ""
    };
    let mut said = Vec::new();
    if !events.is_empty() {
        said.push(format!(
            "without {} ({}{more}): of all formats only NAME.txt has a place for them",
            counted(sum(&events), "events of other parts of the kernel"),
            names[..names.len().min(LEFT_OUT_NAMED)].join(", ")
        ));
    }
    if !stacks.is_empty() {
        let nr = counted(sum(&stacks), "stacks");
        said.push(format!("without {nr}: no format has a place for them"));
    }
    (!said.is_empty()).then(|| said.join("; "))
}

/// Refuses a name under which no trace can be written.
fn check_name(output: &Path) -> Result<()> {
    if output == Path::new("-") {
        bail!("convert writes files; 'blklab trace print' writes text to standard output");
    }
    let extension = output.extension().and_then(|e| e.to_str());
    if let Some(packed) = extension.filter(|e| trace_file::COMPRESSED.contains(e)) {
        bail!(
            "{}: traces are written uncompressed; leave '.{packed}' out and compress the result",
            output.display()
        );
    }
    Ok(())
}

/// Refuses to replace what is no trace.
fn check_replaced(existing: &Path) -> Result<()> {
    let shown = existing.display();
    if !existing.symlink_metadata().is_ok_and(|m| m.is_file()) {
        bail!("{shown} is not a regular file");
    }
    if !trace_file::is_trace(existing) {
        bail!("{shown} exists and is no trace; give another name or remove it");
    }
    Ok(())
}
