// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writing `events.blk`.

use super::record::Last;
use super::{
    CHUNK_BYTES, CHUNK_HEAD_BYTES, CHUNK_MARK, END_MARK, HEADER_BYTES_MAX, MAGIC, VERSION,
};
use crate::{FormatError, ReadCounts};
use blklab_trace::{Action, Actions, Event, TraceHeader, TraceSink};
use blklab_types::{Pid, Time};
use std::io::{self, Write};

/// Writes `events.blk`, a chunk at a time.
#[derive(Debug)]
pub struct CompactWriter<W> {
    inner: W,
    /// Head and payload of the current chunk.
    chunk: Vec<u8>,
    last: Last,
    nr_in_chunk: u32,
    nr_records: u64,
    header: TraceHeader,
    /// CPUs that appeared: one more than the highest.
    nr_cpus: u16,
    error: Option<io::Error>,
}

fn put_string(buf: &mut Vec<u8>, text: &str) {
    // A device name or an origin beyond 4 GiB cannot be.
    buf.extend_from_slice(&(text.len() as u32).to_le_bytes());
    buf.extend_from_slice(text.as_bytes());
}

/// The header's fields, in order, each string behind its length.
fn header_fields(header: &TraceHeader) -> Vec<u8> {
    let mut fields = Vec::new();
    fields.extend_from_slice(&header.nr_cpus.to_le_bytes());
    put_string(&mut fields, &header.kernel);
    put_string(&mut fields, &header.origin);
    fields.extend_from_slice(&(header.devices.len() as u32).to_le_bytes());
    for (dev, name) in &header.devices {
        fields.extend_from_slice(&dev.major.to_le_bytes());
        fields.extend_from_slice(&dev.minor.to_le_bytes());
        put_string(&mut fields, name);
    }
    if header.recorded != Actions::ALL {
        fields.extend_from_slice(&header.recorded.bits().to_le_bytes());
    }
    fields
}

/// The header as it is stored.
fn header_bytes(header: &TraceHeader) -> Vec<u8> {
    let fields = header_fields(header);
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&(fields.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&fields);
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
    bytes
}

impl<W: Write> CompactWriter<W> {
    /// Writes to `inner`, beginning with `header`. Pass a
    /// [`PartialFile`](crate::PartialFile) to have a file appear only when it
    /// is complete.
    ///
    /// # Errors
    /// When the header cannot be written, or is longer than a mebibyte.
    pub fn new(inner: W, header: &TraceHeader) -> Result<CompactWriter<W>, FormatError> {
        let bytes = header_bytes(header);
        if bytes.len() > HEADER_BYTES_MAX as usize {
            return Err(FormatError::Header {
                input: "trace to write".into(),
                problem: "devices, kernel and origin are longer than a mebibyte",
            });
        }
        let mut writer = CompactWriter {
            inner,
            chunk: Vec::with_capacity(2 * CHUNK_BYTES),
            last: Last::default(),
            nr_in_chunk: 0,
            nr_records: 0,
            header: header.clone(),
            nr_cpus: 0,
            error: None,
        };
        writer
            .inner
            .write_all(&bytes)
            .map_err(|e| FormatError::io("write the header of a trace", e))?;
        writer.begin_chunk();
        Ok(writer)
    }

    /// The header once all CPUs are known, if they are more than it says: for
    /// the start of the file, where it has the length of the one there.
    pub fn corrected_header(&self) -> Option<Vec<u8>> {
        (self.nr_cpus > self.header.nr_cpus).then(|| {
            header_bytes(&TraceHeader {
                nr_cpus: self.nr_cpus,
                ..self.header.clone()
            })
        })
    }

    fn begin_chunk(&mut self) {
        self.chunk.clear();
        self.chunk.resize(CHUNK_HEAD_BYTES, 0);
        self.last = Last::default();
        self.nr_in_chunk = 0;
    }

    #[inline]
    fn end_record(&mut self) {
        self.nr_in_chunk += 1;
        if self.chunk.len() >= CHUNK_HEAD_BYTES + CHUNK_BYTES {
            self.end_chunk();
        }
    }

    fn end_chunk(&mut self) {
        if self.nr_in_chunk == 0 {
            return;
        }
        let payload_bytes = (self.chunk.len() - CHUNK_HEAD_BYTES) as u32;
        self.chunk[0..4].copy_from_slice(&CHUNK_MARK);
        self.chunk[8..12].copy_from_slice(&payload_bytes.to_le_bytes());
        self.chunk[12..16].copy_from_slice(&self.nr_in_chunk.to_le_bytes());
        let crc = crc32fast::hash(&self.chunk[8..]);
        self.chunk[4..8].copy_from_slice(&crc.to_le_bytes());
        if self.error.is_none() {
            match self.inner.write_all(&self.chunk) {
                Ok(()) => self.nr_records += u64::from(self.nr_in_chunk),
                Err(e) => self.error = Some(e),
            }
        }
        self.begin_chunk();
    }

    /// Keeps what was lost, left out or damaged in the trace of which this is a copy: call it
    /// when that was read to its end. Readers of the copy count the same.
    pub fn original_lacks(&mut self, counts: &ReadCounts) {
        let lacks = counts.lacks();
        if lacks.iter().any(|count| *count > 0) {
            super::record::put_lacks(&mut self.chunk, &lacks);
            self.end_record();
        }
    }

    /// Writes the rest and the end mark, and returns what was written to.
    ///
    /// # Errors
    /// The first error since the start.
    pub fn finish(mut self) -> Result<W, FormatError> {
        self.end_chunk();
        let mut end = END_MARK.to_vec();
        let count = self.nr_records.to_le_bytes();
        end.extend_from_slice(&crc32fast::hash(&count).to_le_bytes());
        end.extend_from_slice(&count);
        let written = match self.error {
            Some(e) => Err(e),
            None => self.inner.write_all(&end).and_then(|()| self.inner.flush()),
        };
        match written {
            Ok(()) => Ok(self.inner),
            Err(e) => Err(FormatError::io("write a trace", e)),
        }
    }
}

impl<W: Write> TraceSink for CompactWriter<W> {
    #[inline]
    fn event(&mut self, event: &Event) {
        if event.action == Action::Message {
            return self.message(event, "");
        }
        self.nr_cpus = self.nr_cpus.max(event.cpu.saturating_add(1));
        self.last.put_event(&mut self.chunk, event);
        self.end_record();
    }

    fn message(&mut self, event: &Event, text: &str) {
        self.nr_cpus = self.nr_cpus.max(event.cpu.saturating_add(1));
        self.last.put_message(&mut self.chunk, event, text);
        self.end_record();
    }

    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        self.last.put_process(&mut self.chunk, time, pid, comm);
        self.end_record();
    }

    fn new_recording(&mut self) {
        super::record::put_new_recording(&mut self.chunk);
        self.end_record();
    }
}
