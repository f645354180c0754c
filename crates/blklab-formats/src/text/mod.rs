// SPDX-License-Identifier: MIT OR Apache-2.0
//! What readers of traces in text have in common: lines, their words, quoting,
//! and what is counted of them.

mod read;
mod words;

pub(crate) use read::{Dialect, TextReader};
pub(crate) use words::{Rest, decimal, device, error, length, rwbs, time};

use blklab_trace::Event;

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// An event.
    Event {
        event: Event,
        /// Its number on its CPU, where the format has numbers.
        sequence: Option<u32>,
        /// The name of its process.
        comm: Option<&'a [u8]>,
    },
    /// A message of the kernel.
    Message { event: Event, text: &'a [u8] },
    /// The recorder lost so many events here.
    Lost(u64),
    /// An event of another part of the kernel.
    OtherEvent,
    /// Lines were left out here.
    Elided,
    /// Nothing.
    Blank,
    /// Part of the summary, or a comment.
    Note { begins_summary: bool },
    /// The beginning of an event, whose rest may be on the next line; and what is
    /// wrong if it is not.
    Incomplete(&'static str),
    /// None of these, and why it is no event.
    Other(&'static str),
}

/// The line without spaces at its ends and without the marks of a mail that
/// quotes it.
pub(crate) fn unquoted(line: &[u8]) -> &[u8] {
    let mut line = line.trim_ascii();
    while let [b'>' | b'|', rest @ ..] = line {
        line = rest.trim_ascii_start();
    }
    line
}
