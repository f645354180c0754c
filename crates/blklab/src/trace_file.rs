// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trace files by name: which format a name stands for, writing and reading.

use blklab_formats::blkparse::{BlkparseOptions, BlkparseReader, BlkparseWriter};
use blklab_formats::blktrace::{BlktraceReader, BlktraceWriter};
use blklab_formats::compact::{CompactReader, CompactWriter};
use blklab_formats::{FormatError, PartialFile, ReadCounts};
use blklab_trace::{Event, TraceHeader, TraceSink, TraceSource};
use blklab_types::{Pid, Time};
use std::fs::File;
use std::io::BufWriter;
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
    Blktrace(Box<BlktraceWriter>),
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
                TraceOut::Blktrace(Box::new(BlktraceWriter::create(path, header)?))
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
                let writer = CompactWriter::new(file()?, header)?;
                TraceOut::Compact(Box::new(writer), path.to_path_buf())
            }
        })
    }

    /// Completes the trace under its name; returns the files.
    ///
    /// # Errors
    /// The first that occurred since the start.
    pub fn finish(self) -> Result<Vec<PathBuf>, FormatError> {
        match self {
            TraceOut::Blktrace(w) => Ok(w.finish()?.files),
            TraceOut::Blkparse(w, path) => {
                commit(w.finish()?, &path)?;
                Ok(vec![path])
            }
            TraceOut::Compact(w, path) => {
                commit(w.finish()?, &path)?;
                Ok(vec![path])
            }
        }
    }

    fn sink(&mut self) -> &mut dyn TraceSink {
        match self {
            TraceOut::Blktrace(w) => &mut **w,
            TraceOut::Blkparse(w, _) => &mut **w,
            TraceOut::Compact(w, _) => &mut **w,
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

/// A trace that is being read.
pub enum TraceIn {
    /// blktrace's binary records.
    Blktrace(Box<BlktraceReader<File>>),
    /// Text as blkparse prints it.
    Blkparse(Box<BlkparseReader<File>>),
    /// Our own form.
    Compact(Box<CompactReader<File>>),
}

impl TraceIn {
    /// Opens a trace. The format is found from the name; a name without
    /// ending stands for `NAME.blktrace.0` and its siblings.
    ///
    /// # Errors
    /// If it cannot be opened or is something else.
    pub fn open(path: &Path) -> Result<TraceIn, FormatError> {
        Ok(match TraceFormat::of(path) {
            TraceFormat::Blkparse => TraceIn::Blkparse(Box::new(BlkparseReader::open(path)?)),
            TraceFormat::Compact => TraceIn::Compact(Box::new(CompactReader::open(path)?)),
            TraceFormat::Blktrace => TraceIn::Blktrace(Box::new(BlktraceReader::open(path)?)),
        })
    }

    /// What the trace says about itself, where the format has room for it.
    pub fn header(&self) -> Option<&TraceHeader> {
        match self {
            TraceIn::Compact(r) => Some(r.header()),
            _ => None,
        }
    }

    /// Passes the whole trace on; returns what was lost or damaged.
    ///
    /// # Errors
    /// If reading fails.
    pub fn feed(&mut self, sink: &mut dyn TraceSink) -> Result<ReadCounts, FormatError> {
        match self {
            TraceIn::Blktrace(r) => {
                pump(&mut **r, sink)?;
                Ok(r.counts().clone())
            }
            TraceIn::Blkparse(r) => {
                pump(&mut **r, sink)?;
                Ok(r.counts().clone())
            }
            TraceIn::Compact(r) => {
                pump(&mut **r, sink)?;
                Ok(r.counts().clone())
            }
        }
    }
}

fn pump<S: TraceSource>(source: &mut S, sink: &mut dyn TraceSink) -> Result<(), S::Error> {
    while let Some(item) = source.next_item()? {
        item.send_to(sink);
    }
    Ok(())
}
