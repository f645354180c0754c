// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading blkparse's default text.

use super::parse::parse;
use crate::format::{Format, Reader, begins_with};
use crate::input::Input;
use crate::source::Source;
use crate::text::{Dialect, Io, Line, TextReader};
use crate::{FormatError, ReadCounts};
use blklab_trace::{Action, Item, TraceSource};
use blklab_types::Time;
use std::io::Read;

/// Reads what blkparse prints by default; accepts quoting (`> `), lines that a
/// mail has wrapped, places where lines were left out (`...`), a missing summary,
/// the elapsed times of `-t` (which show D where only C was printed), control groups, prose, missing times, and several
/// recordings, one behind the other.
///
/// Names of processes come from the `[comm]` of the lines. Times are as
/// printed, from the first event of the original trace; if some are before that,
/// whole seconds are added to all ([`ReadCounts::shift_s`]). Events of several
/// CPUs that are not in the order of their times are put in it. Sectors of events
/// without data are not in the text and read as 0.
#[derive(Debug)]
pub struct BlkparseReader<R>(TextReader<R, Blkparse>);

/// Its row.
pub(crate) static FORMAT: Format = Format {
    name: "blkparse",
    summary: "NAME.txt: text as blkparse prints it, read and written",
    has_printed_times: true,
    says_losses: true,
    says_flags: true,
    dialect: Some(|| Box::new(Blkparse::default())),
    recognises: |input| begins_with(input, Blkparse::default),
    open: |input, others| {
        Ok(Box::new(
            BlkparseReader::from_input(input).with_others(others),
        ))
    },
};

/// Lines of blkparse.
#[derive(Debug, Default)]
struct Blkparse {
    /// For lines without one.
    last_time: Time,
    /// D and C are both shown: no D is inferred from the times of `-t`.
    has_issue: bool,
}

impl Dialect for Blkparse {
    fn parse<'a>(&mut self, line: &'a [u8]) -> Line<'a> {
        let line = parse(line, self.last_time, !self.has_issue);
        if let Line::Event { event, .. } | Line::Io(Io { event, .. }) = &line {
            self.last_time = event.time;
            self.has_issue |= event.action == Action::Issue;
        }
        line
    }
}

impl<R: Read> BlkparseReader<R> {
    /// Reads from `inner`; `name` is for errors.
    pub fn new(inner: R, name: &str) -> BlkparseReader<R> {
        BlkparseReader::from_input(Input::new(inner, name))
    }

    /// As [`BlkparseReader::new`].
    pub(crate) fn from_input(input: Input<R>) -> BlkparseReader<R> {
        BlkparseReader(TextReader::new(input, Blkparse::default()))
    }

    /// The same, with lines of these dialects among the others.
    pub(crate) fn with_others(self, others: Vec<Box<dyn Dialect>>) -> BlkparseReader<R> {
        BlkparseReader(self.0.with_others(others))
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

impl Reader for BlkparseReader<Source> {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }
}
