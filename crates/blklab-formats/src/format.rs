// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a trace format is: a row, which its module exports together with its reader.
//! `table.rs` puts the rows in order.

use crate::input::Input;
use crate::source::Source;
use crate::text::{Dialect, TextReader};
use crate::{FormatError, ReadCounts};
use blklab_trace::{TraceHeader, TraceSource};
use std::fmt;

/// Where text must show its first event.
const PREFIX_BYTES: usize = 64 * 1024;
/// What is looked at for text before that: enough for most, so that a pipe
/// need not deliver more before anything is shown.
pub(crate) const SHORT_PREFIX_BYTES: usize = 4096;
/// Bytes that tell a binary format.
pub(crate) const MAGIC_BYTES: usize = 8;

/// A reader of what was recognised, or why there is none after all.
pub(crate) type Opened = Result<Box<dyn Reader>, FormatError>;
/// Dialects whose lines may stand among those of a text.
pub(crate) type Others = Vec<Box<dyn Dialect>>;

/// A trace format.
pub struct Format {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// Whether its times are those that blkparse printed, from the first event
    /// of the original trace, not those of a clock.
    pub has_printed_times: bool,
    /// Whether it says what its recorder lost, by numbers of events or in words. That a trace
    /// of another has no losses says nothing.
    pub says_losses: bool,
    /// Whether its events have the flags that say which writes are sync and what flushes.
    pub says_flags: bool,
    /// Its lines, if mails have them side by side with those of other programs.
    pub(crate) dialect: Option<fn() -> Box<dyn Dialect>>,
    /// Whether an input is of this format, by what it begins with.
    pub(crate) recognises: fn(&mut Input<Source>) -> Result<bool, FormatError>,
    /// Reads an input of this format, among whose lines may be those of others.
    pub(crate) open: fn(Input<Source>, Others) -> Opened,
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Whether a text is recognised near its beginning, behind whatever a mail may
/// have in front: by its first event.
pub(crate) fn begins_with<D: Dialect>(
    input: &mut Input<Source>,
    dialect: impl Fn() -> D,
) -> Result<bool, FormatError> {
    for len in [SHORT_PREFIX_BYTES, PREFIX_BYTES] {
        let prefix = input.fill(len)?;
        let mut reader = TextReader::new(Input::new(prefix, ""), dialect());
        if matches!(reader.next_item(), Ok(Some(_))) || reader.counts().other_events > 0 {
            return Ok(true);
        }
        if prefix.len() < len {
            break;
        }
    }
    Ok(false)
}

/// A reader of any format.
pub(crate) trait Reader: TraceSource<Error = FormatError> + fmt::Debug + Send {
    /// What was found so far; complete after the last item.
    fn counts(&self) -> &ReadCounts;

    /// What the trace says about itself, where the format has that.
    fn header(&self) -> Option<&TraceHeader> {
        None
    }
}
