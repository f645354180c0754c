// SPDX-License-Identifier: MIT OR Apache-2.0
//! Texts with a row for each I/O and nothing else: research traces and fio's logs.
//!
//! Most know when an I/O was asked for, some also how long it took. They give Q,
//! or Q and C; [`TraceHeader::recorded`] says so, since nothing follows from the
//! absence of other events. Times count from the first row; disks and files get
//! numbers (`0,1`, `0,2`, …).

pub(crate) mod alibaba;
pub(crate) mod disksim;
mod fields;
pub(crate) mod fio;
pub(crate) mod fiu;
pub(crate) mod mqsim;
pub(crate) mod msr;
pub(crate) mod spc;
pub(crate) mod tencent;
#[cfg(test)]
mod tests;

use crate::disks::Disks;
use crate::format::{Opened, Reader, SHORT_PREFIX_BYTES};
use crate::input::Input;
use crate::source::Source;
use crate::text::{Dialect, Io, Line, TextReader};
use crate::{FormatError, ReadCounts};
use blklab_trace::{Action, Actions, Event, Item, Rwbs, TraceHeader, TraceSource};
use blklab_types::{Dev, SECTOR_BYTES, Time};
use std::io::Read;

/// Rows that recognising looks at.
const SAMPLE_ROWS: usize = 64;

/// A kind of rows.
#[derive(Debug)]
struct RowKind {
    /// What an event of such a trace shows that was really observed.
    recorded: &'static [Action],
    /// Takes a row apart; none if it is none of this kind.
    row: for<'a> fn(&mut Rows, &'a [u8]) -> Option<Said<'a>>,
    /// What a row looks like, for those that do not.
    example: &'static str,
}

const ASKED: &[Action] = &[Action::Queue];
const ASKED_AND_DONE: &[Action] = &[Action::Queue, Action::Complete];

/// The row of a format whose lines are rows of one kind and nothing else: none says what was
/// lost, and mails have none side by side with those of other programs.
macro_rules! format_of_rows {
    ($name:literal, $summary:literal, $kind:ident) => {
        $crate::format::Format {
            name: $name,
            summary: $summary,
            has_printed_times: false,
            says_losses: false,
            says_flags: false,
            dialect: None,
            recognises: |input| $crate::rows::begins_with_rows(input, &$kind),
            open: |input, _| $crate::rows::open(input, &$kind),
        }
    };
}
use format_of_rows;

/// Reads rows of one kind.
#[derive(Debug)]
struct RowReader<R>(TextReader<R, Rows>);

/// Whether an input begins with rows of this kind.
fn begins_with_rows(
    input: &mut Input<Source>,
    kind: &'static RowKind,
) -> Result<bool, FormatError> {
    Ok(recognises(kind, input.fill(SHORT_PREFIX_BYTES)?))
}

/// Reads an input as rows of this kind.
fn open(input: Input<Source>, kind: &'static RowKind) -> Opened {
    Ok(Box::new(RowReader(TextReader::new(input, Rows::new(kind)))))
}

impl Reader for RowReader<Source> {
    fn counts(&self) -> &ReadCounts {
        self.0.counts()
    }

    fn header(&self) -> Option<&TraceHeader> {
        self.0.header()
    }
}

impl<R: Read> TraceSource for RowReader<R> {
    type Error = FormatError;

    fn next_item(&mut self) -> Result<Option<Item<'_>>, FormatError> {
        self.0.next_item()
    }
}

/// Whether a text begins with rows of this kind.
fn recognises(kind: &'static RowKind, text: &[u8]) -> bool {
    let mut rows = Rows::new(kind);
    let (mut good, mut bad) = (0, 0);
    let mut lines = text.split(|b| *b == b'\n').peekable();
    while let Some(line) = lines.next() {
        // The last one may be cut.
        if good + bad == SAMPLE_ROWS || lines.peek().is_none() && good > 0 {
            break;
        }
        match rows.parse(line) {
            Line::Io(_) => good += 1,
            Line::Note { .. } if rows.version.is_some() => good += 1,
            Line::Blank | Line::Note { .. } => {}
            _ => bad += 1,
        }
    }
    good > 0 && bad <= good.div_ceil(4)
}

/// The rows of a trace so far.
#[derive(Debug)]
struct Rows {
    kind: &'static RowKind,
    disks: Disks,
    /// The time of the first row, in ns since whenever.
    first_ns: Option<i128>,
    /// The time that rows without one have reached.
    now_ns: i64,
    /// The version that the first line names, where it does.
    version: Option<u32>,
    nr_lines: u64,
}

/// What a row says of its I/O.
struct Place {
    dev: Dev,
    rwbs: Rwbs,
    sector: u64,
    bytes: u64,
}

impl Place {
    /// From an offset in bytes.
    fn at_byte(dev: Dev, rwbs: Rwbs, offset: u64, bytes: u64) -> Place {
        Place {
            dev,
            rwbs,
            sector: offset / SECTOR_BYTES,
            bytes,
        }
    }
}

impl Rows {
    fn new(kind: &'static RowKind) -> Rows {
        Rows {
            kind,
            disks: Disks::new(Actions::new(kind.recorded)),
            first_ns: None,
            now_ns: 0,
            version: None,
            nr_lines: 0,
        }
    }

    /// Ns since the first row.
    fn since_first(&mut self, ns: i128) -> Option<i64> {
        let first = *self.first_ns.get_or_insert(ns);
        i64::try_from(ns - first).ok()
    }

    /// An I/O that was asked for then, and took so long if that is known.
    fn io(&self, place: &Place, queue_ns: i64, took_ns: Option<i64>) -> Option<Io<'static>> {
        let end = match took_ns {
            Some(took) => Some(queue_ns.checked_add(took)?),
            None => None,
        };
        let is_believable = |ns: i64| crate::plausible::is_time(Time(ns.unsigned_abs()));
        if !is_believable(queue_ns) || !end.is_none_or(is_believable) {
            return None;
        }
        Some(Io {
            event: Event {
                time: Time::ZERO,
                sector: place.sector,
                arg: 0,
                bytes: u32::try_from(place.bytes).ok()?,
                pid: 0,
                dev: place.dev,
                from_dev: Dev::default(),
                error: 0,
                cpu: 0,
                rwbs: place.rwbs,
                action: Action::Queue,
            },
            sequence: None,
            times: [Some(queue_ns), None, None, end],
            comm: None,
            has_time: true,
        })
    }
}

impl Dialect for Rows {
    fn parse<'a>(&mut self, line: &'a [u8]) -> Line<'a> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Line::Blank;
        }
        self.nr_lines += 1;
        let note = Line::Note {
            begins_summary: false,
        };
        if line.starts_with(b"#") {
            return note;
        }
        let row = self.kind.row;
        match row(self, line) {
            Some(Said::Io(io)) => Line::Io(io),
            Some(Said::Nothing) => note,
            // Titles.
            None if self.nr_lines == 1 && !line.iter().any(u8::is_ascii_digit) => note,
            None => Line::Other(self.kind.example),
        }
    }

    /// How many rows later the end of an I/O may stand than its beginning.
    fn window(&self) -> usize {
        32 * 1024
    }

    fn is_mailed(&self) -> bool {
        false
    }

    fn header(&self) -> Option<&TraceHeader> {
        Some(&self.disks.header)
    }
}

/// What a row says.
enum Said<'a> {
    /// An I/O.
    Io(Io<'a>),
    /// Something about a file, or the version.
    Nothing,
}
