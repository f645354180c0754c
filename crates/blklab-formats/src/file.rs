// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace file of whatever format it has, recognised by what is in it.

use crate::blkparse::BlkparseReader;
use crate::blktrace::BlktraceReader;
use crate::compact::CompactReader;
use crate::{FormatError, ReadCounts};
use blklab_trace::{Item, TraceHeader, TraceSource};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Where text must show its first event.
const PREFIX_BYTES: u64 = 64 * 1024;

/// A reader for any format.
#[derive(Debug)]
pub enum TraceFile {
    /// `events.blk`.
    Compact(CompactReader<File>),
    /// blktrace binary.
    Blktrace(BlktraceReader<File>),
    /// blkparse text.
    Blkparse(BlkparseReader<File>),
}

impl TraceFile {
    /// Opens `path`: a file of any format, or the NAME of `NAME.blktrace.0`
    /// and so on.
    ///
    /// # Errors
    /// When there is no such file, or it is no trace.
    pub fn open(path: &Path) -> Result<TraceFile, FormatError> {
        let Ok(mut file) = File::open(path) else {
            return BlktraceReader::open(path).map(TraceFile::Blktrace);
        };
        let mut prefix = Vec::new();
        file.by_ref()
            .take(PREFIX_BYTES)
            .read_to_end(&mut prefix)
            .map_err(|e| FormatError::at("read", path, e))?;
        if prefix.starts_with(&crate::compact::MAGIC) {
            return CompactReader::open(path).map(TraceFile::Compact);
        }
        if crate::blktrace::is_magic(&prefix) {
            return BlktraceReader::open(path).map(TraceFile::Blktrace);
        }
        let mut text = BlkparseReader::new(&prefix[..], "");
        if let Ok(Some(_)) = text.next_item() {
            return BlkparseReader::open(path).map(TraceFile::Blkparse);
        }
        prefix.truncate(16);
        Err(FormatError::Unrecognised {
            input: path.display().to_string(),
            expected: "blktrace records, blkparse text or events.blk",
            found: format!("\"{}\"", prefix.escape_ascii()),
        })
    }

    /// The name of the format.
    pub fn format(&self) -> &'static str {
        match self {
            TraceFile::Compact(_) => "events.blk",
            TraceFile::Blktrace(_) => "blktrace",
            TraceFile::Blkparse(_) => "blkparse",
        }
    }

    /// What the trace says about itself, where the format has that.
    pub fn header(&self) -> Option<&TraceHeader> {
        match self {
            TraceFile::Compact(reader) => Some(reader.header()),
            TraceFile::Blktrace(_) | TraceFile::Blkparse(_) => None,
        }
    }

    /// What was found so far; complete after the last item.
    pub fn counts(&self) -> &ReadCounts {
        match self {
            TraceFile::Compact(reader) => reader.counts(),
            TraceFile::Blktrace(reader) => reader.counts(),
            TraceFile::Blkparse(reader) => reader.counts(),
        }
    }
}

impl TraceSource for TraceFile {
    type Error = FormatError;

    fn next_item(&mut self) -> Result<Option<Item<'_>>, FormatError> {
        match self {
            TraceFile::Compact(reader) => reader.next_item(),
            TraceFile::Blktrace(reader) => reader.next_item(),
            TraceFile::Blkparse(reader) => reader.next_item(),
        }
    }
}
