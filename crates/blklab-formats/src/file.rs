// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace file of whatever format it has, recognised by what is in it.

use crate::blkparse::BlkparseReader;
use crate::blktrace::{BlktraceReader, CpuFile};
use crate::compact::CompactReader;
use crate::input::Input;
use crate::source::{FileId, Progress, Source};
use crate::{FormatError, ReadCounts};
use blklab_trace::{Item, TraceHeader, TraceSource};
use std::path::{Path, PathBuf};

/// Where text must show its first event.
const PREFIX_BYTES: usize = 64 * 1024;
/// What is looked at for text before that: enough for most, so that a pipe
/// need not deliver more before anything is shown.
const SHORT_PREFIX_BYTES: usize = 4096;

/// A reader for any format.
#[derive(Debug)]
enum Reader {
    Compact(CompactReader<Source>),
    Blktrace(BlktraceReader<Source>),
    Blkparse(BlkparseReader<Source>),
}

/// An open trace: a file, several of them, or a pipe.
#[derive(Debug)]
pub struct TraceFile {
    reader: Reader,
    /// The files of the CPUs; empty for a single file or pipe.
    cpu_files: Vec<PathBuf>,
    inputs: Vec<FileId>,
    progress: Progress,
}

impl TraceFile {
    /// Opens `path`: a file of any format, compressed or not, the NAME of
    /// `NAME.blktrace.0` and so on, a pipe, or `-` for standard input. Whatever
    /// it is is opened once and read to its end.
    ///
    /// # Errors
    /// When there is no such file, or it is no trace.
    pub fn open(path: &Path) -> Result<TraceFile, FormatError> {
        if path != Path::new("-") && !path.exists() {
            return TraceFile::open_cpus(path);
        }
        let source = Source::open(path)?;
        let (id, is_file, progress) = (source.id(), source.is_file(), source.progress());
        let name = match path.to_string_lossy() {
            dash if dash == "-" => "standard input".into(),
            name => name,
        };
        let mut input = Input::new(source, &name);
        let head = input.fill(crate::compact::MAGIC.len())?;
        let is_blktrace = crate::blktrace::is_magic(head);
        if (is_blktrace || head.is_empty()) && is_file && CpuFile::of(path).is_some() {
            return TraceFile::open_cpus(path);
        }
        let reader = if is_blktrace {
            Reader::Blktrace(BlktraceReader::from_input(input))
        } else if head.starts_with(&crate::compact::MAGIC) {
            Reader::Compact(CompactReader::from_input(input)?)
        } else if is_text(&mut input)? {
            Reader::Blkparse(BlkparseReader::from_input(input))
        } else {
            return Err(unrecognised(&mut input));
        };
        Ok(TraceFile {
            reader,
            cpu_files: Vec::new(),
            inputs: vec![id],
            progress,
        })
    }

    fn open_cpus(path: &Path) -> Result<TraceFile, FormatError> {
        let (reader, opened) = BlktraceReader::open_files(path)?;
        Ok(TraceFile {
            reader: Reader::Blktrace(reader),
            inputs: opened.ids,
            progress: opened.progress,
            cpu_files: opened.paths,
        })
    }

    /// The name of the format.
    pub fn format(&self) -> &'static str {
        match self.reader {
            Reader::Compact(_) => "events.blk",
            Reader::Blktrace(_) => "blktrace",
            Reader::Blkparse(_) => "blkparse",
        }
    }

    /// Whether the times of the events are those that blkparse printed, from
    /// the first event of the original trace, not those of a clock.
    pub fn has_printed_times(&self) -> bool {
        matches!(self.reader, Reader::Blkparse(_))
    }

    /// What the trace says about itself, where the format has that.
    pub fn header(&self) -> Option<&TraceHeader> {
        match &self.reader {
            Reader::Compact(reader) => Some(reader.header()),
            Reader::Blktrace(_) | Reader::Blkparse(_) => None,
        }
    }

    /// The files of the CPUs, where the trace is one file for each.
    pub fn cpu_files(&self) -> &[PathBuf] {
        &self.cpu_files
    }

    /// The files that are read: an output must be none of them.
    pub fn inputs(&self) -> &[FileId] {
        &self.inputs
    }

    /// How much of it was read, while it is read.
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// What was found so far; complete after the last item.
    pub fn counts(&self) -> &ReadCounts {
        match &self.reader {
            Reader::Compact(reader) => reader.counts(),
            Reader::Blktrace(reader) => reader.counts(),
            Reader::Blkparse(reader) => reader.counts(),
        }
    }

    /// Whether a file that exists is a trace of any format, or empty: then
    /// another trace may take its place.
    pub fn is_trace(path: &Path) -> bool {
        let Ok(source) = Source::open(path) else {
            return false;
        };
        let mut input = Input::new(source, "");
        match input.fill(crate::compact::MAGIC.len()) {
            Ok(head) => {
                head.is_empty()
                    || head.starts_with(&crate::compact::MAGIC)
                    || crate::blktrace::is_magic(head)
                    || is_text(&mut input).unwrap_or(false)
            }
            Err(_) => false,
        }
    }
}

/// Whether the input is blkparse text: begins with an event or a message,
/// behind whatever a mail may have in front.
fn is_text(input: &mut Input<Source>) -> Result<bool, FormatError> {
    for len in [SHORT_PREFIX_BYTES, PREFIX_BYTES] {
        let prefix = input.fill(len)?;
        if let Ok(Some(_)) = BlkparseReader::new(prefix, "").next_item() {
            return Ok(true);
        }
        if prefix.len() < len {
            break;
        }
    }
    Ok(false)
}

fn unrecognised(input: &mut Input<Source>) -> FormatError {
    let head = input.available();
    let shown = head[..head.len().min(16)].escape_ascii().to_string();
    FormatError::Unrecognised {
        input: input.name.clone(),
        expected: "blktrace records, blkparse text or events.blk",
        found: match head.len() {
            0 => "nothing (it is empty)".to_owned(),
            _ => format!("\"{shown}\""),
        },
    }
}

impl TraceSource for TraceFile {
    type Error = FormatError;

    fn next_item(&mut self) -> Result<Option<Item<'_>>, FormatError> {
        match &mut self.reader {
            Reader::Compact(reader) => reader.next_item(),
            Reader::Blktrace(reader) => reader.next_item(),
            Reader::Blkparse(reader) => reader.next_item(),
        }
    }
}
