// SPDX-License-Identifier: MIT OR Apache-2.0
//! Input a piece at a time: as much as is asked for, never the whole file.

use crate::FormatError;
use std::io::{self, Read};

/// Bytes asked for at once, at most.
const READ_BYTES: usize = 64 * 1024;
/// The same for the files of many CPUs, at least.
const READ_BYTES_MIN: usize = 4096;
/// For the files of all CPUs together.
const SHARED_BYTES: usize = 8 << 20;

/// What is looked at to tell text from binary records.
const TEXT_SAMPLE_BYTES: usize = 64;

/// A part of the input, from the current place on.
#[derive(Debug)]
pub(crate) struct Input<R> {
    inner: R,
    /// What to call it in errors.
    pub(crate) name: String,
    /// Only what is between `at` and `end` has been read and not passed.
    buf: Vec<u8>,
    at: usize,
    end: usize,
    offset: u64,
    /// Bytes asked for at once.
    read_bytes: usize,
}

impl<R: Read> Input<R> {
    pub(crate) fn new(inner: R, name: &str) -> Input<R> {
        Input::one_of(1, inner, name)
    }

    /// One of `nr_inputs` that are read together: they share the memory.
    pub(crate) fn one_of(nr_inputs: usize, inner: R, name: &str) -> Input<R> {
        let read_bytes = SHARED_BYTES / nr_inputs.max(1);
        Input {
            read_bytes: read_bytes.clamp(READ_BYTES_MIN, READ_BYTES),
            inner,
            name: name.into(),
            buf: Vec::new(),
            at: 0,
            end: 0,
            offset: 0,
        }
    }

    /// Passes over the mark that some editors and spreadsheets put in front of a text in UTF-8.
    /// Binary records may begin with its bytes; they have zeros soon.
    pub(crate) fn skip_byte_order_mark(&mut self) -> Result<(), FormatError> {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        let is_marked = self.fill(MARK.len())? == MARK;
        if is_marked && !self.fill(TEXT_SAMPLE_BYTES)?.contains(&0) {
            self.skip(MARK.len());
        }
        Ok(())
    }

    /// Makes `len` bytes available and returns them, or fewer at the end of
    /// the input.
    #[inline]
    pub(crate) fn fill(&mut self, len: usize) -> Result<&[u8], FormatError> {
        if self.end - self.at < len {
            self.read_on(len)?;
        }
        let end = self.end.min(self.at + len);
        Ok(&self.buf[self.at..end])
    }

    #[cold]
    fn read_on(&mut self, len: usize) -> Result<(), FormatError> {
        self.buf.copy_within(self.at..self.end, 0);
        self.end -= self.at;
        self.at = 0;
        while self.end < len {
            let upto = self.end + (len - self.end).max(self.read_bytes);
            if self.buf.len() < upto {
                self.buf.resize(upto, 0);
            }
            match self.inner.read(&mut self.buf[self.end..upto]) {
                Ok(0) => break,
                Ok(n) => self.end += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(FormatError::io(format!("read {}", self.name), e)),
            }
        }
        Ok(())
    }

    /// What is available without reading.
    #[inline]
    pub(crate) fn available(&self) -> &[u8] {
        &self.buf[self.at..self.end]
    }

    /// Goes on by `len` bytes, which must be available.
    #[inline]
    pub(crate) fn skip(&mut self, len: usize) {
        self.at += len;
        self.offset += len as u64;
    }

    /// What is left: what is available, and what can be read.
    pub(crate) fn into_rest(self) -> impl Read {
        let mut buf = self.buf;
        buf.truncate(self.end);
        let mut available = io::Cursor::new(buf);
        available.set_position(self.at as u64);
        available.chain(self.inner)
    }

    /// Bytes before the current place.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }
}

impl Input<crate::source::Source> {
    /// The file, where it can be read anywhere.
    pub(crate) fn file(&self) -> Option<std::fs::File> {
        self.inner.file()
    }
}
