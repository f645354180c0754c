// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading tracepoints in text.

use super::parse::Ftrace;
use crate::format::{Format, Reader, begins_with};
use crate::input::Input;
use crate::source::Source;
use crate::text::{Dialect, TextReader};
use crate::{FormatError, ReadCounts};
use blklab_trace::{Item, TraceSource};
use std::io::Read;

/// Reads tracepoints of the block layer in text; accepts quoting and lines that
/// a mail has wrapped.
///
/// Times are those of the trace's clock, often in microseconds only. Plugs name
/// no device here: theirs is the one for which the task was last given a request.
/// Events of other parts of the kernel are counted by name
/// ([`ReadCounts::other_names`]) and passed over.
#[derive(Debug)]
pub struct FtraceReader<R>(TextReader<R, Ftrace>);

/// Its row.
pub(crate) static FORMAT: Format = Format {
    name: "ftrace",
    summary: "tracepoints as text: trace_pipe, trace-cmd report, perf script; read",
    has_printed_times: false,
    says_losses: true,
    says_flags: true,
    dialect: Some(|| Box::new(Ftrace::default())),
    recognises: |input| begins_with(input, Ftrace::default),
    open: |input, others| {
        Ok(Box::new(
            FtraceReader::from_input(input).with_others(others),
        ))
    },
};

impl<R: Read> FtraceReader<R> {
    /// Reads from `inner`; `name` is for errors.
    pub fn new(inner: R, name: &str) -> FtraceReader<R> {
        FtraceReader::from_input(Input::new(inner, name))
    }

    /// As [`FtraceReader::new`].
    pub(crate) fn from_input(input: Input<R>) -> FtraceReader<R> {
        FtraceReader(TextReader::new(input, Ftrace::default()))
    }

    /// The same, with lines of these dialects among the others.
    pub(crate) fn with_others(self, others: Vec<Box<dyn Dialect>>) -> FtraceReader<R> {
        FtraceReader(self.0.with_others(others))
    }

    /// What was found so far; complete after the last item.
    pub fn counts(&self) -> &ReadCounts {
        self.0.counts()
    }
}

impl<R: Read> TraceSource for FtraceReader<R> {
    type Error = FormatError;

    fn next_item(&mut self) -> Result<Option<Item<'_>>, FormatError> {
        self.0.next_item()
    }
}

impl Reader for FtraceReader<Source> {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }
}
