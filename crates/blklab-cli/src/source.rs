// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces that commands are given, and what is wrong with them.

use anyhow::{Result, bail};
use blklab::experiment::TraceSpec;
use blklab::run_directory::{RunDir, is_trace};
use blklab::trace::ReadCounts;
use blklab::trace_file::{Columns, TraceFile};
use blklab::types::Error;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

/// Opens a trace, which may be rows of columns that are named, or that of a run directory.
pub(crate) fn open(file: &Path, columns: Option<&Columns>) -> Result<TraceFile> {
    if is_trace(file) {
        return Ok(TraceFile::open_with(file, columns)?);
    }
    no_columns_of_runs(file, columns)?;
    Ok(RunDir::open(file, &blklab::targets::catalogue())?.events()?)
}

/// `NAME.context.txt` of a trace `NAME.dat`, or `NAME.DISK.context.txt`: where `record` writes what
/// it knows of the machine.
pub(crate) fn context_path(trace: &Path, disk: Option<&str>) -> PathBuf {
    let mut name = trace.with_extension("").into_os_string();
    if let Some(disk) = disk {
        name.push(format!(".{disk}"));
    }
    name.push(".context.txt");
    name.into()
}

/// The context that lies beside a trace, if one does; it is said.
pub(crate) fn context_beside(trace: &Path) -> Option<PathBuf> {
    let path = context_path(trace, None);
    let is_there = trace.is_file() && path.is_file();
    if is_there {
        let shown = path.display();
        let _ = writeln!(
            std::io::stderr(),
            "context: {shown}, which lies beside the trace"
        );
    }
    is_there.then_some(path)
}

/// Refuses columns of a run directory, whose trace is no table.
pub(crate) fn no_columns_of_runs(file: &Path, columns: Option<&Columns>) -> Result<()> {
    if columns.is_some() {
        bail!(
            "--columns: {} is no table but a run directory",
            file.display()
        );
    }
    Ok(())
}

/// What is looked at of a file to tell a job file from a trace.
const HEAD_BYTES: u64 = 1 << 16;

/// Whether a file is an experiment to run, and no trace: by its name, or because no reader of
/// traces knows it and it begins as a job file does, with a section; or it is the name of a
/// built-in scenario. What is no experiment is opened as a trace by all commands alike.
pub(crate) fn is_experiment(file: &Path) -> bool {
    let ending = file.extension().and_then(|e| e.to_str());
    if file.is_dir() || file == Path::new("-") {
        return false;
    }
    // Some tools write their sums as JSON.
    if ending == Some("json") && TraceFile::has_sums(file) {
        return false;
    }
    if ["toml", "json", "fio"].iter().any(|e| ending == Some(e)) {
        return true;
    }
    if !file.exists() {
        let name = file.to_string_lossy();
        return blklab::experiment::Experiment::of_scenario(&name, &blklab::targets::catalogue())
            .is_ok();
    }
    // A pipe is read only once, and a job file is no pipe.
    if !file.is_file() || TraceFile::is_trace(file) {
        return false;
    }
    let mut head = Vec::new();
    let read = std::fs::File::open(file).and_then(|f| f.take(HEAD_BYTES).read_to_end(&mut head));
    let text = String::from_utf8_lossy(&head);
    let lines = text.lines().map(str::trim);
    let mut said = lines.filter(|l| !l.is_empty() && !l.starts_with(['#', ';']));
    // JSON may begin with a bracket, too.
    let is_name = |name: &str| !name.is_empty() && !name.contains(['"', '{', '[']);
    let section = |l: &'_ str| l.strip_prefix('[')?.strip_suffix(']').map(is_name);
    let is_section = |l: &str| section(l) == Some(true);
    read.is_ok() && said.next().is_some_and(is_section)
}

/// Sets a key of the table `[replay]` by an option, which errors name.
pub(crate) fn set_by_option(
    spec: &mut TraceSpec,
    option: &str,
    key: &str,
    text: &str,
) -> Result<(), Error> {
    spec.set(key, text).map_err(|err| {
        let what = err.what.strip_prefix(&format!("{key}: "));
        let what = what.unwrap_or(&err.what).to_owned();
        Error::new(what).in_file(option)
    })
}

/// Damage is counted and said, never silent.
pub(crate) fn report_damage(file: &Path, counts: &ReadCounts) {
    if let Some(text) = damage(counts) {
        let _ = writeln!(std::io::stderr(), "blklab: {}: {text}", file.display());
    }
}

/// What is wrong with a trace, in words; none if it is whole.
pub(crate) fn damage(c: &ReadCounts) -> Option<String> {
    if c.is_clean() {
        return None;
    }
    let counts = [
        ("events lost by the recorder", c.lost),
        ("events that the text leaves out", c.left_out),
        ("sequence numbers that went back", c.restarts),
        ("events out of order", c.backwards),
        ("times that jump by more than ten days", c.jumps),
        ("events without a time", c.untimed),
        ("records of unknown kind", c.unknown),
        ("damaged records", c.damaged),
        ("events with impossible numbers", c.impossible),
        ("passages left out", c.elided),
        ("lines that are no trace", c.foreign),
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
