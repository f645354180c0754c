// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trace files by name: which format a name stands for, writing and reading.

use blklab_formats::blkparse::{BlkparseOptions, BlkparseWriter};
use blklab_formats::blktrace::{BlktraceWriter, cpu_files_there};
use blklab_formats::compact::CompactWriter;
use blklab_formats::{FormatError, PartialFile};
use blklab_trace::{Event, TraceHeader, TraceSink, TraceSource as _};

pub use blklab_formats::{FileId, Progress, TraceFile, remove_partial_files};
use blklab_types::{Pid, Time};

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Formats of trace files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    /// `NAME.blktrace.CPU`.
    Blktrace,
    /// `NAME.txt`.
    Blkparse,
    /// `NAME.blk`.
    Compact,
}

impl TraceFormat {
    /// By the end of the name.
    pub fn from_path(path: &Path) -> TraceFormat {
        match path.extension().and_then(|e| e.to_str()) {
            Some("txt") => TraceFormat::Blkparse,
            Some("blk") => TraceFormat::Compact,
            _ => TraceFormat::Blktrace,
        }
    }
}

/// A trace that is being written.
pub enum TraceOut {
    /// blktrace's binary records.
    Blktrace(Box<BlktraceWriter>, PathBuf),
    /// Text as blkparse prints it.
    Blkparse(Box<BlkparseWriter<BufWriter<PartialFile>>>, PathBuf),
    /// Our own form.
    Compact(Box<CompactWriter<BufWriter<PartialFile>>>, PathBuf),
}

impl TraceOut {
    /// Starts a trace; the name chooses the format.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(path: &Path, header: &TraceHeader) -> Result<TraceOut, FormatError> {
        TraceOut::create_with(path, header, false)
    }

    /// As [`TraceOut::create`]; text has the times of the events as they are
    /// if `times_as_given`, else counted from the first.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create_with(
        path: &Path,
        header: &TraceHeader,
        times_as_given: bool,
    ) -> Result<TraceOut, FormatError> {
        let file = || PartialFile::create(path).map(BufWriter::new);
        Ok(match TraceFormat::from_path(path) {
            TraceFormat::Blktrace => {
                let base = blktrace_base(path);
                let writer = BlktraceWriter::create(&base, header)?;
                TraceOut::Blktrace(Box::new(writer), path.to_path_buf())
            }
            TraceFormat::Blkparse => {
                let name = path
                    .file_stem()
                    .map_or("trace".into(), |s| s.to_string_lossy());
                let options = BlkparseOptions {
                    name: name.into_owned(),
                    times_as_given,
                    ..Default::default()
                };
                let writer = BlkparseWriter::new(file()?, options);
                TraceOut::Blkparse(Box::new(writer), path.to_path_buf())
            }
            TraceFormat::Compact => {
                let writer = CompactWriter::new(file()?, header)?;
                TraceOut::Compact(Box::new(writer), path.to_path_buf())
            }
        })
    }

    /// Completes the trace under its name; returns the files.
    ///
    /// # Errors
    /// The first that occurred since the start; then nothing is left.
    pub fn finish(self) -> Result<Vec<PathBuf>, FormatError> {
        match self {
            TraceOut::Blktrace(w, _) => w.finish().map(|done| done.files),
            TraceOut::Blkparse(w, path) => w
                .finish()
                .and_then(|f| whole(f)?.commit())
                .map(|_| vec![path]),
            TraceOut::Compact(w, path) => {
                let header = w.corrected_header();
                let mut file = whole(w.finish()?)?;
                if let Some(header) = header {
                    file.rewrite_start(&header)?;
                }
                file.commit().map(|_| vec![path])
            }
        }
    }

    /// Gives the trace up; nothing is left of it.
    pub fn discard(self) {
        drop(self);
    }

    fn sink(&mut self) -> &mut dyn TraceSink {
        match self {
            TraceOut::Blktrace(w, _) => &mut **w,
            TraceOut::Blkparse(w, _) => &mut **w,
            TraceOut::Compact(w, _) => &mut **w,
        }
    }
}

/// The files that a trace of this name is written to on one processor.
pub fn files_of(path: &Path) -> Vec<PathBuf> {
    match TraceFormat::from_path(path) {
        TraceFormat::Blktrace => vec![file_of_cpu(&blktrace_base(path), 0)],
        TraceFormat::Blkparse | TraceFormat::Compact => vec![path.to_path_buf()],
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

/// Where a blktrace has the events of a CPU.
fn file_of_cpu(base: &Path, cpu: u16) -> PathBuf {
    let mut name = base.as_os_str().to_owned();
    name.push(format!(".blktrace.{cpu}"));
    name.into()
}

fn whole(file: BufWriter<PartialFile>) -> Result<PartialFile, FormatError> {
    file.into_inner().map_err(|e| FormatError::Io {
        doing: "write the trace".into(),
        source: e.into_error(),
    })
}

impl TraceSink for TraceOut {
    fn event(&mut self, event: &Event) {
        self.sink().event(event);
    }

    fn message(&mut self, event: &Event, text: &str) {
        self.sink().message(event, text);
    }

    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        self.sink().process(time, pid, comm);
    }

    fn new_recording(&mut self) {
        self.sink().new_recording();
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
    input.send_all(&mut writer)?;
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
