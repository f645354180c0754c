// SPDX-License-Identifier: MIT OR Apache-2.0
//! What readers of traces in text have in common: lines, their words, quoting,
//! the order of events, and what is counted of them.

mod frames;
mod read;
mod recording;
mod words;

pub(crate) use read::{Dialect, TextReader};
pub(crate) use words::{Rest, decimal, device, error, is_priority, length, rwbs, time};

use blklab_trace::{Event, KernelEvent};
use blklab_types::{Pid, Time};

/// What a line is.
///
/// Times are nanoseconds of a recording's own clock, as `i64` in the bits of
/// [`Event::time`]: some are before its zero.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// An event.
    Event {
        event: Event,
        /// Its number on its CPU, where the format has numbers.
        sequence: Option<u32>,
        /// The name of its process.
        comm: Option<&'a [u8]>,
        /// Whether the time is its own.
        has_time: bool,
        /// Whether the line has all that such a line has at its end. If not, a
        /// mail may have wrapped it.
        is_whole: bool,
    },
    /// An I/O from its beginning to its end.
    Io(Io<'a>),
    /// A message of the kernel.
    Message { event: Event, text: &'a [u8] },
    /// An event of another part of the kernel that is read.
    Kernel {
        event: KernelEvent,
        /// The name of its process.
        comm: Option<&'a [u8]>,
        /// Whether the time is its own.
        has_time: bool,
    },
    /// The stack of a task comes, in lines of its own.
    Stack { time: Time, pid: Pid, cpu: u16 },
    /// A function of the stack of the event before, or of what said that it comes.
    Frame(&'a [u8]),
    /// The recorder lost so many events here.
    Lost(u64),
    /// An event of another part of the kernel that is not read, by name.
    OtherEvent(&'a [u8]),
    /// Lines were left out here.
    Elided,
    /// Nothing.
    Blank,
    /// Part of the summary, or a comment.
    Note { begins_summary: bool },
    /// The beginning of an event, whose rest may be on the next line; and what is
    /// wrong if it is not.
    Incomplete(&'static str),
    /// What looks like an event and is none, and why.
    Damaged(&'static str),
    /// No part of a trace, and what an event would look like.
    Other(&'static str),
}

/// Why a line is no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// As [`Line::Incomplete`].
    Incomplete(&'static str),
    /// As [`Line::Damaged`].
    Damaged(&'static str),
    /// As [`Line::Other`].
    Other(&'static str),
}

impl From<Problem> for Line<'_> {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::Incomplete(what) => Line::Incomplete(what),
            Problem::Damaged(what) => Line::Damaged(what),
            Problem::Other(what) => Line::Other(what),
        }
    }
}

/// An I/O of which only the times are known: those that are make an event each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Io<'a> {
    /// Place, length, process, and how it ended.
    pub(crate) event: Event,
    /// The number of the line's event on its CPU, where the format has numbers.
    pub(crate) sequence: Option<u32>,
    /// Its times: Q, I, D, C, as ns of a clock that may begin anywhere.
    pub(crate) times: [Option<i64>; 4],
    /// The name of its process.
    pub(crate) comm: Option<&'a [u8]>,
    /// Whether it was recorded when it was.
    pub(crate) has_time: bool,
}

/// The time that the kernel's log or its reader puts in front of a line, and the line
/// without: `[   12.345678] …`, `Jan  2 03:04:05 host kernel: [   12.345678] …`.
pub(crate) fn unlogged(line: &[u8]) -> (Option<Time>, &[u8]) {
    let text = match memchr::memmem::find(line, b"kernel: ") {
        Some(at) => &line[at + 8..],
        None => line,
    };
    let mut rest = Rest(text);
    let logged = rest.bracketed_first(b'[', b']');
    match logged.and_then(|stamp| time(stamp.trim_ascii())) {
        Some(stamp) => (Some(stamp), rest.0),
        None => (None, text),
    }
}

/// What people write where they left lines out.
const ELISIONS: &[&str] = &[
    "snip",
    "cut",
    "skipped",
    "trimmed",
    "truncated",
    "omitted",
    "…",
];

/// How a remark ends that says how many: `[12 lines omitted]`.
const ELIDED_LINES: &[&str] = &[
    "lines omitted",
    "lines removed",
    "lines skipped",
    "lines deleted",
    "lines cut",
    "lines left out",
];

/// Whether a line says that others were left out: `...`, `[...]`, `( ... )`, `[snip]`, `<snip>`,
/// `-- cut --`, `[12 lines omitted]`.
fn is_elision(line: &[u8]) -> bool {
    if let [b'.', b'.', b'.', ..] | [b'[', b'.', b'.', b'.', ..] = line {
        return true;
    }
    let marks = |b: &u8| b"[]<>()-=*~ ".contains(b);
    let Some(begin) = line.iter().position(|b| !marks(b)).filter(|at| *at > 0) else {
        return line == "…".as_bytes();
    };
    let end = line.iter().rposition(|b| !marks(b)).unwrap_or(begin);
    let word = line[begin..=end].to_ascii_lowercase();
    let is_dots = word.len() >= 3 && word.iter().all(|b| *b == b'.');
    let says_so = ELISIONS.iter().any(|said| said.as_bytes() == word)
        || ELIDED_LINES
            .iter()
            .any(|said| word.ends_with(said.as_bytes()));
    end + 1 < line.len() && (is_dots || says_so)
}

/// What a line without the marks of whoever quotes it is if it says nothing: empty, the
/// fence of a quotation, or where others were left out.
pub(crate) fn without_content<'a>(line: &[u8]) -> Option<Line<'a>> {
    match line {
        [] | [b'`', b'`', b'`', ..] => Some(Line::Blank),
        line if is_elision(line) => Some(Line::Elided),
        _ => None,
    }
}

/// The line without spaces at its ends, without the marks of a mail that quotes
/// it, of a list, or of a comparison.
pub(crate) fn unquoted(line: &[u8]) -> &[u8] {
    let mut line = unmarked(line);
    while let [b'*' | b'+' | b'-', b' ' | b'\t', rest @ ..] = line {
        line = unmarked(rest);
    }
    line
}

/// The same, but a `+` may be part of an event that goes on here.
fn unmarked(line: &[u8]) -> &[u8] {
    let mut line = line.trim_ascii();
    while let [b'>' | b'|', rest @ ..] = line {
        line = rest.trim_ascii_start();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_say_that_others_are_missing() {
        for line in [
            "...",
            "[...]",
            "[snip]",
            "<snip>",
            "-- cut --",
            "[…]",
            "…",
            "[Truncated]",
            "(...)",
            "[ ... ]",
            "<-- .... -->",
            "[12 lines omitted]",
            "--- several lines removed ---",
        ] {
            assert!(is_elision(line.as_bytes()), "{line}");
        }
        for line in [
            "snip",
            "[root@host ~]# perf script",
            "[snipped line 3]",
            "no lines removed",
            "(..)",
            "",
            "[]",
            "- cut",
        ] {
            assert!(!is_elision(line.as_bytes()), "{line}");
        }
    }
}
