// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading blkparse's default text.

use super::parse::parse;
use crate::input::Input;
use crate::text::{Dialect, Line, TextReader};
use crate::{FormatError, ReadCounts};
use blklab_trace::{Item, TraceSource};
use std::io::Read;

/// Reads what blkparse prints by default; accepts quoting (`> `), lines that a
/// mail has wrapped, places where lines were left out (`...`), a missing summary,
/// and the elapsed times of `-t`.
///
/// Names of processes come from the `[comm]` of the lines. Times are as
/// printed, from the first event of the original trace. Sectors of events
/// without data are not in the text and read as 0.
#[derive(Debug)]
pub struct BlkparseReader<R>(TextReader<R, Blkparse>);

#[derive(Debug, Default)]
struct Blkparse;

impl Dialect for Blkparse {
    fn parse<'a>(&mut self, line: &'a [u8]) -> Line<'a> {
        parse(line)
    }
}

impl<R: Read> BlkparseReader<R> {
    /// Reads from `inner`; `name` is for errors.
    pub fn new(inner: R, name: &str) -> BlkparseReader<R> {
        BlkparseReader::from_input(Input::new(inner, name))
    }

    /// As [`BlkparseReader::new`].
    pub(crate) fn from_input(input: Input<R>) -> BlkparseReader<R> {
        BlkparseReader(TextReader::new(input))
    }

    /// What was found so far; complete after the last item.
    pub fn counts(&self) -> &ReadCounts {
        self.0.counts()
    }
}

impl<R: Read> TraceSource for BlkparseReader<R> {
    type Error = FormatError;

    fn next_item(&mut self) -> Result<Option<Item<'_>>, FormatError> {
        self.0.next_item()
    }
}
