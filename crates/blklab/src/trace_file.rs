// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trace files by name: which format a name stands for, writing and reading.

use blklab_export::{IologExport, PerfettoWriter, TableWriter};
use blklab_formats::blkparse::{BlkparseOptions, BlkparseWriter};
use blklab_formats::blktrace::{BlktraceWriter, cpu_files_there};
use blklab_formats::compact::CompactWriter;
use blklab_formats::{FormatError, Numbered, PartialFile, ReadCounts};
use blklab_trace::{Event, KernelEvent, TraceHeader, TraceSink};

pub use blklab_export::{Rows, SheetFormat};
pub use blklab_formats::blktrace::COMPRESSED;
pub use blklab_formats::snoop::Columns;
pub use blklab_formats::{FileId, Progress, TraceFile, remove_partial_files};
use blklab_types::{Pid, Time, visible};

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Formats of trace files that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    /// `NAME.blktrace.CPU`.
    Blktrace,
    /// `NAME.txt`.
    Blkparse,
    /// `NAME.blk`.
    Compact,
    /// `NAME.csv` and `NAME.parquet`.
    Table(SheetFormat),
    /// `NAME.perfetto-trace`, `NAME.pftrace`.
    Perfetto,
    /// `NAME.iolog`.
    Iolog,
}

/// Ends of names, and the formats that they choose; all other names are of blktrace.
const ENDS: [(&str, TraceFormat); 7] = [
    ("txt", TraceFormat::Blkparse),
    ("blk", TraceFormat::Compact),
    ("csv", TraceFormat::Table(SheetFormat::Csv)),
    ("parquet", TraceFormat::Table(SheetFormat::Parquet)),
    ("perfetto-trace", TraceFormat::Perfetto),
    ("pftrace", TraceFormat::Perfetto),
    ("iolog", TraceFormat::Iolog),
];

impl TraceFormat {
    /// By the end of the name.
    pub fn from_path(path: &Path) -> TraceFormat {
        let end = path.extension().and_then(|e| e.to_str());
        let known = ENDS.iter().find(|(known, _)| end == Some(*known));
        known.map_or(TraceFormat::Blktrace, |(_, format)| *format)
    }

    /// A message or a name as a file of this format can hold it: lines of text would be cut
    /// by a line feed of theirs.
    fn held(self, text: &str) -> Cow<'_, str> {
        match self {
            TraceFormat::Blkparse => visible(text),
            _ => Cow::Borrowed(text),
        }
    }

    /// Whether it has a place for events of other parts of the kernel.
    fn keeps_kernel_events(self) -> bool {
        self == TraceFormat::Blkparse
    }
}

/// How a trace is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceOptions {
    /// Whether text has the times of the events as they are instead of counting them
    /// from the first.
    pub times_as_given: bool,
    /// What the rows of a table are; none: events.
    pub rows: Option<Rows>,
}

impl TraceOptions {
    /// Refuses what means nothing for a file of this name.
    ///
    /// # Errors
    /// If rows are chosen for what is no table.
    pub fn check(&self, path: &Path) -> Result<(), FormatError> {
        match (self.rows, TraceFormat::from_path(path)) {
            (None, _) | (Some(_), TraceFormat::Table(_)) => Ok(()),
            (Some(_), _) => Err(FormatError::Io {
                doing: format!("choose rows of {}", path.display()),
                source: std::io::Error::other("only NAME.csv and NAME.parquet have rows"),
            }),
        }
    }
}

/// A writer of a trace, which becomes files when it is complete.
trait Out: TraceSink {
    /// The number of an event, where numbers do not go on.
    fn number(&mut self, _: Numbered) {}

    /// Keeps what the original lacks, as far as the format has a place for it.
    fn original_lacks(&mut self, _: &ReadCounts) {}

    fn finish(self: Box<Self>) -> Result<Vec<PathBuf>, FormatError>;
}

/// A file that appears under its name when it is whole.
type Whole = BufWriter<PartialFile>;

/// Gives a file its name.
fn commit(file: Whole) -> Result<Vec<PathBuf>, FormatError> {
    let file = whole(file)?;
    let path = file.path().to_path_buf();
    file.commit().map(|_| vec![path])
}

impl Out for BlktraceWriter {
    fn finish(self: Box<Self>) -> Result<Vec<PathBuf>, FormatError> {
        BlktraceWriter::finish(*self).map(|done| done.files)
    }
}

impl Out for BlkparseWriter<Whole> {
    fn number(&mut self, numbered: Numbered) {
        BlkparseWriter::number(self, numbered);
    }

    fn finish(self: Box<Self>) -> Result<Vec<PathBuf>, FormatError> {
        commit(BlkparseWriter::finish(*self)?)
    }
}

impl Out for CompactWriter<Whole> {
    fn original_lacks(&mut self, counts: &ReadCounts) {
        CompactWriter::original_lacks(self, counts);
    }

    fn finish(self: Box<Self>) -> Result<Vec<PathBuf>, FormatError> {
        let header = self.corrected_header();
        let mut file = CompactWriter::finish(*self)?;
        if let Some(header) = header {
            file.flush().map_err(failed)?;
            file.get_mut().rewrite_start(&header)?;
        }
        commit(file)
    }
}

impl Out for TableWriter<Whole> {
    fn finish(self: Box<Self>) -> Result<Vec<PathBuf>, FormatError> {
        commit(TableWriter::finish(*self)?)
    }
}

impl Out for PerfettoWriter<Whole> {
    fn finish(self: Box<Self>) -> Result<Vec<PathBuf>, FormatError> {
        commit(PerfettoWriter::finish(*self)?)
    }
}

impl Out for IologExport<Whole> {
    fn finish(self: Box<Self>) -> Result<Vec<PathBuf>, FormatError> {
        commit(IologExport::finish(*self)?)
    }
}

/// A trace that is being written.
pub struct TraceOut {
    out: Box<dyn Out>,
    format: TraceFormat,
    left_out: BTreeMap<&'static str, u64>,
}

impl TraceOut {
    /// Starts a trace; the name chooses the format.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(path: &Path, header: &TraceHeader) -> Result<TraceOut, FormatError> {
        TraceOut::create_with(path, header, TraceOptions::default())
    }

    /// As [`TraceOut::create`], with options.
    ///
    /// # Errors
    /// If the file cannot be created, or an option means nothing for its format.
    pub fn create_with(
        path: &Path,
        header: &TraceHeader,
        options: TraceOptions,
    ) -> Result<TraceOut, FormatError> {
        options.check(path)?;
        let file = || PartialFile::create(path).map(BufWriter::new);
        let format = TraceFormat::from_path(path);
        let out: Box<dyn Out> = match format {
            TraceFormat::Blktrace => {
                Box::new(BlktraceWriter::create(&blktrace_base(path), header)?)
            }
            TraceFormat::Blkparse => {
                let name = path.file_stem();
                let name = name.map_or("trace".into(), |s| s.to_string_lossy());
                let options = BlkparseOptions {
                    name: name.into_owned(),
                    times_as_given: options.times_as_given,
                    ..Default::default()
                };
                Box::new(BlkparseWriter::new(file()?, options))
            }
            TraceFormat::Compact => Box::new(CompactWriter::new(file()?, header)?),
            TraceFormat::Table(format) => {
                let rows = options.rows.unwrap_or_default();
                Box::new(TableWriter::new(format, rows, file()?)?)
            }
            TraceFormat::Perfetto => Box::new(PerfettoWriter::new(file()?, header)),
            TraceFormat::Iolog => Box::new(IologExport::new(file()?, header)?),
        };
        Ok(TraceOut {
            out,
            format,
            left_out: BTreeMap::new(),
        })
    }

    /// The events of other parts of the kernel for which the format has no place, by name.
    pub fn left_out(&self) -> &BTreeMap<&'static str, u64> {
        &self.left_out
    }

    /// Writes the rest of a trace, with what it says of its losses as far as the format has a
    /// place for that; returns whether it has.
    ///
    /// # Errors
    /// If the trace cannot be read, or nothing is in it.
    pub fn copy(&mut self, input: &mut TraceFile) -> Result<bool, FormatError> {
        if self.format == TraceFormat::Blkparse {
            input.send_numbered(self, |out, numbered| out.out.number(numbered))?;
        } else {
            crate::relay::send_all(input, self)?;
        }
        let lacks = input.lacks();
        self.out.original_lacks(&lacks);
        Ok(match self.format {
            TraceFormat::Compact => true,
            // Where numbers are missing, something was lost or left out.
            TraceFormat::Blkparse => ReadCounts {
                lost: 0,
                left_out: 0,
                restarts: 0,
                ..lacks
            }
            .is_clean(),
            _ => lacks.is_clean(),
        })
    }

    /// Completes the trace under its name; returns the files.
    ///
    /// # Errors
    /// The first that occurred since the start; then nothing is left.
    pub fn finish(self) -> Result<Vec<PathBuf>, FormatError> {
        self.out.finish()
    }

    /// Gives the trace up; nothing is left of it.
    pub fn discard(self) {
        drop(self);
    }
}

/// Whether a file that exists is a trace of any format, written here or elsewhere, or
/// empty: then another trace may take its place.
pub fn is_trace(path: &Path) -> bool {
    TraceFile::is_trace(path) || blklab_export::is_written_here(path)
}

/// The files that a trace of this name is written to on one processor.
pub fn files_of(path: &Path) -> Vec<PathBuf> {
    match TraceFormat::from_path(path) {
        TraceFormat::Blktrace => vec![file_of_cpu(&blktrace_base(path), 0)],
        _ => vec![path.to_path_buf()],
    }
}

/// `NAME` of `NAME` or `NAME.blktrace.CPU`.
fn blktrace_base(path: &Path) -> PathBuf {
    let is_cpu = path
        .extension()
        .and_then(|e| e.to_str())
        .is_some_and(|e| e.parse::<u16>().is_ok());
    let base = path.with_extension("");
    if is_cpu && base.extension().is_some_and(|e| e == "blktrace") {
        base.with_extension("")
    } else {
        path.to_path_buf()
    }
}

/// The files that are there and would be replaced by a trace written to
/// `path`, or become part of it.
pub fn replaced_by(path: &Path) -> Vec<PathBuf> {
    let is_there = |path: &PathBuf| path.symlink_metadata().is_ok();
    if TraceFormat::from_path(path) != TraceFormat::Blktrace {
        return Some(path.to_path_buf())
            .filter(is_there)
            .into_iter()
            .collect();
    }
    // Who writes to a folder that cannot be read says what is wrong with it.
    cpu_files_there(&blktrace_base(path)).unwrap_or_default()
}

/// The files that are read together with `path`, which names one of a blktrace or all.
pub fn read_with(path: &Path) -> Vec<PathBuf> {
    let end = path.extension().and_then(|e| e.to_str());
    let path = match end {
        Some(end) if COMPRESSED.contains(&end) => path.with_extension(""),
        _ => path.to_path_buf(),
    };
    cpu_files_there(&blktrace_base(&path)).unwrap_or_default()
}

/// Where a blktrace has the events of a CPU.
fn file_of_cpu(base: &Path, cpu: u16) -> PathBuf {
    let mut name = base.as_os_str().to_owned();
    name.push(format!(".blktrace.{cpu}"));
    name.into()
}

fn failed(source: std::io::Error) -> FormatError {
    FormatError::Io {
        doing: "write the trace".into(),
        source,
    }
}

fn whole(file: Whole) -> Result<PartialFile, FormatError> {
    file.into_inner().map_err(|e| failed(e.into_error()))
}

impl TraceSink for TraceOut {
    fn event(&mut self, event: &Event) {
        self.out.event(event);
    }

    fn message(&mut self, event: &Event, text: &str) {
        self.out.message(event, &self.format.held(text));
    }

    fn kernel_event(&mut self, event: &KernelEvent) {
        if self.format.keeps_kernel_events() {
            self.out.kernel_event(event);
        } else {
            *self.left_out.entry(event.point.name()).or_default() += 1;
        }
    }

    /// No format that is written has a place for it.
    fn stack(&mut self, _: Time, _: Pid, _: &str) {
        *self.left_out.entry("kernel_stack").or_default() += 1;
    }

    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        self.out.process(time, pid, &self.format.held(comm));
    }

    fn new_recording(&mut self) {
        self.out.new_recording();
    }
}

/// Prints a trace as blkparse does; `name` is what its summary calls it.
///
/// Times count from the first event, as blkparse prints them; those of a text
/// are the ones it has.
///
/// # Errors
/// If reading or writing fails.
pub fn print(
    input: &mut TraceFile,
    out: impl Write,
    name: &str,
    quiet: bool,
) -> Result<(), FormatError> {
    let options = BlkparseOptions {
        name: name.to_owned(),
        summary: !quiet,
        events: true,
        times_as_given: input.format().has_printed_times,
    };
    let mut writer = BlkparseWriter::new(out, options);
    input.print_to(&mut writer)?;
    let to_stdout = |source| FormatError::Io {
        doing: "write to standard output".into(),
        source,
    };
    let mut out = writer.finish().map_err(|e| match e {
        FormatError::Io { source, .. } => to_stdout(source),
        other => other,
    })?;
    out.flush().map_err(to_stdout)
}

/// The header for a copy of a trace: its own, or one that says where it is
/// from. The writers find out which CPUs appear.
pub fn header_for(input: &TraceFile, path: &Path) -> TraceHeader {
    input.header().cloned().unwrap_or_else(|| TraceHeader {
        origin: format!("converted from {}", path.display()),
        ..TraceHeader::default()
    })
}
