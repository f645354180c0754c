// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trace files by name: which format a name stands for, writing and reading.

use blklab_formats::blkparse::{BlkparseOptions, BlkparseWriter};
use blklab_formats::blktrace::BlktraceWriter;
use blklab_formats::compact::CompactWriter;
use blklab_formats::{FormatError, PartialFile};
use blklab_trace::{Event, TraceHeader, TraceSink, TraceSource as _};

pub use blklab_formats::TraceFile;
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
    pub fn of(path: &Path) -> TraceFormat {
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
        let file = || PartialFile::create(path).map(BufWriter::new);
        Ok(match TraceFormat::of(path) {
            TraceFormat::Blktrace => {
                let base = blktrace_base(path);
                let writer =
                    BlktraceWriter::create(&base, header).inspect_err(|_| remove_partial(path))?;
                TraceOut::Blktrace(Box::new(writer), path.to_path_buf())
            }
            TraceFormat::Blkparse => {
                let name = path
                    .file_stem()
                    .map_or("trace".into(), |s| s.to_string_lossy());
                let options = BlkparseOptions {
                    name: name.into_owned(),
                    ..Default::default()
                };
                let writer = BlkparseWriter::new(file()?, options);
                TraceOut::Blkparse(Box::new(writer), path.to_path_buf())
            }
            TraceFormat::Compact => {
                let writer =
                    CompactWriter::new(file()?, header).inspect_err(|_| remove_partial(path))?;
                TraceOut::Compact(Box::new(writer), path.to_path_buf())
            }
        })
    }

    /// Completes the trace under its name; returns the files.
    ///
    /// # Errors
    /// The first that occurred since the start; then nothing is left.
    pub fn finish(self) -> Result<Vec<PathBuf>, FormatError> {
        let path = self.path().to_path_buf();
        let done = match self {
            TraceOut::Blktrace(w, _) => w.finish().map(|done| done.files),
            TraceOut::Blkparse(w, path) => w
                .finish()
                .and_then(|f| commit(f, &path))
                .map(|()| vec![path]),
            TraceOut::Compact(w, path) => w
                .finish()
                .and_then(|f| commit(f, &path))
                .map(|()| vec![path]),
        };
        done.inspect_err(|_| remove_partial(&path))
    }

    /// Gives the trace up; nothing is left of it.
    pub fn discard(self) {
        let path = self.path().to_path_buf();
        drop(self);
        remove_partial(&path);
    }

    fn path(&self) -> &Path {
        match self {
            TraceOut::Blktrace(_, path)
            | TraceOut::Blkparse(_, path)
            | TraceOut::Compact(_, path) => path,
        }
    }

    fn sink(&mut self) -> &mut dyn TraceSink {
        match self {
            TraceOut::Blktrace(w, _) => &mut **w,
            TraceOut::Blkparse(w, _) => &mut **w,
            TraceOut::Compact(w, _) => &mut **w,
        }
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

/// Removes what a trace that was not completed has left.
fn remove_partial(path: &Path) {
    let partial = |path: &Path| {
        let mut name = path.as_os_str().to_owned();
        name.push(".partial");
        PathBuf::from(name)
    };
    if TraceFormat::of(path) != TraceFormat::Blktrace {
        let _ = std::fs::remove_file(partial(path));
        return;
    }
    for cpu in 0..=u16::MAX {
        let mut name = blktrace_base(path).into_os_string();
        name.push(format!(".blktrace.{cpu}"));
        if std::fs::remove_file(partial(Path::new(&name))).is_err() {
            return;
        }
    }
}

fn commit(file: BufWriter<PartialFile>, path: &Path) -> Result<(), FormatError> {
    let file = file.into_inner().map_err(|e| FormatError::Io {
        doing: format!("write {}", path.display()),
        source: e.into_error(),
    })?;
    file.commit().map(drop)
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
}

/// Prints a trace as blkparse does; `name` is what its summary calls it.
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
    };
    let mut writer = BlkparseWriter::new(out, options);
    input.send_all(&mut writer)?;
    let mut out = writer.finish()?;
    out.flush().map_err(|source| FormatError::Io {
        doing: "write to standard output".into(),
        source,
    })
}

/// The header for a copy of a trace: its own, or one that covers the CPUs
/// that appear in it.
///
/// # Errors
/// If reading fails.
pub fn header_for(input: &TraceFile, path: &Path) -> Result<TraceHeader, FormatError> {
    if let Some(header) = input.header() {
        return Ok(header.clone());
    }
    struct Cpus(u16);
    impl TraceSink for Cpus {
        fn event(&mut self, e: &Event) {
            self.0 = self.0.max(e.cpu);
        }
        fn message(&mut self, e: &Event, _: &str) {
            self.0 = self.0.max(e.cpu);
        }
    }
    let mut cpus = Cpus(0);
    TraceFile::open(path)?.send_all(&mut cpus)?;
    Ok(TraceHeader {
        nr_cpus: cpus.0.saturating_add(1),
        origin: format!("converted from {}", path.display()),
        ..TraceHeader::default()
    })
}
