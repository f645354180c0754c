// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of trace formats that are read: one row each.

use crate::blkparse::BlkparseReader;
use crate::blktrace::BlktraceReader;
use crate::compact::CompactReader;
use crate::ftrace::FtraceReader;
use crate::input::Input;
use crate::source::Source;
use crate::{FormatError, ReadCounts};
use blklab_trace::{TraceHeader, TraceSource};
use std::fmt;

/// Where text must show its first event.
const PREFIX_BYTES: usize = 64 * 1024;
/// What is looked at for text before that: enough for most, so that a pipe
/// need not deliver more before anything is shown.
const SHORT_PREFIX_BYTES: usize = 4096;

/// A reader of what was recognised, or why there is none after all.
type Opened = Result<Box<dyn Reader>, FormatError>;

/// A trace format.
pub struct Format {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// Whether its times are those that blkparse printed, from the first event
    /// of the original trace, not those of a clock.
    pub has_printed_times: bool,
    /// Whether an input is of this format, by what it begins with.
    pub(crate) recognises: fn(&mut Input<Source>) -> Result<bool, FormatError>,
    /// Reads an input of this format.
    pub(crate) open: fn(Input<Source>) -> Opened,
}

impl Format {
    /// Whether a trace of it may be a file for each CPU.
    pub(crate) fn is_blktrace(&self) -> bool {
        self.name == "blktrace"
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// All formats, in the order in which they are tried: those that a few bytes
/// tell first.
pub static FORMATS: [Format; 4] = [
    Format {
        name: "blktrace",
        summary: "NAME.blktrace.CPU: the kernel's binary records, read and written",
        has_printed_times: false,
        recognises: |input| Ok(crate::blktrace::is_magic(input.fill(MAGIC_BYTES)?)),
        open: |input| Ok(Box::new(BlktraceReader::from_input(input))),
    },
    Format {
        name: "events.blk",
        summary: "NAME.blk: blklab's own compact form, read and written",
        has_printed_times: false,
        recognises: |input| Ok(input.fill(MAGIC_BYTES)?.starts_with(&crate::compact::MAGIC)),
        open: |input| Ok(Box::new(CompactReader::from_input(input)?)),
    },
    Format {
        name: "blkparse",
        summary: "NAME.txt: text as blkparse prints it, read and written",
        has_printed_times: true,
        recognises: |input| begins(input, |text| has_item(&mut BlkparseReader::new(text, ""))),
        open: |input| Ok(Box::new(BlkparseReader::from_input(input))),
    },
    Format {
        name: "ftrace",
        summary: "tracepoints as text: trace_pipe, trace-cmd report, perf script; read",
        has_printed_times: false,
        recognises: |input| {
            begins(input, |text| {
                let mut reader = FtraceReader::new(text, "");
                has_item(&mut reader) || reader.counts().other_events > 0
            })
        },
        open: |input| Ok(Box::new(FtraceReader::from_input(input))),
    },
];

/// Bytes that tell a binary format.
const MAGIC_BYTES: usize = crate::compact::MAGIC.len();

/// Whether a text is recognised near its beginning, behind whatever a mail may
/// have in front.
fn begins(
    input: &mut Input<Source>,
    is_recognised: impl Fn(&[u8]) -> bool,
) -> Result<bool, FormatError> {
    for len in [SHORT_PREFIX_BYTES, PREFIX_BYTES] {
        let prefix = input.fill(len)?;
        if is_recognised(prefix) {
            return Ok(true);
        }
        if prefix.len() < len {
            break;
        }
    }
    Ok(false)
}

/// Whether there is an event or a message.
fn has_item(source: &mut impl TraceSource) -> bool {
    matches!(source.next_item(), Ok(Some(_)))
}

/// The format of an input; none if no row recognises it.
pub(crate) fn recognise(input: &mut Input<Source>) -> Result<Option<&'static Format>, FormatError> {
    for format in &FORMATS {
        if (format.recognises)(input)? {
            return Ok(Some(format));
        }
    }
    Ok(None)
}

/// A reader of any format.
pub(crate) trait Reader: TraceSource<Error = FormatError> + fmt::Debug {
    /// What was found so far; complete after the last item.
    fn counts(&self) -> &ReadCounts;

    /// What the trace says about itself, where the format has that.
    fn header(&self) -> Option<&TraceHeader> {
        None
    }
}

impl Reader for BlktraceReader<Source> {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }
}

impl Reader for CompactReader<Source> {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }

    fn header(&self) -> Option<&TraceHeader> {
        Some(self.header())
    }
}

impl Reader for BlkparseReader<Source> {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }
}

impl Reader for FtraceReader<Source> {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }
}
