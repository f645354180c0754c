// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of events that `trace convert` writes as CSV, read back: a row is an event. Columns are
//! found by their titles, in any order; those of one's own are passed over.

use crate::format::{Format, Reader, begins_with};
use crate::source::Source;
use crate::text::{Dialect, Line, TextReader, decimal, device, rwbs};
use crate::{FormatError, ReadCounts, plausible};
use blklab_trace::{Action, Event, Item, Rwbs, TraceSource};
use blklab_types::{Dev, Time};
use std::io::Read;

/// Its row.
pub(crate) static FORMAT: Format = Format {
    name: "events-csv",
    summary: "a table of events, as NAME.csv of trace convert; read and written",
    has_printed_times: false,
    says_losses: false,
    says_flags: true,
    dialect: None,
    recognises: |input| begins_with(input, EventsCsv::default),
    open: |input, _| {
        let reader = TextReader::new(input, EventsCsv::default());
        Ok(Box::new(CsvReader(reader)))
    },
};

/// Reads a table of events.
#[derive(Debug)]
struct CsvReader<R>(TextReader<R, EventsCsv>);

impl<R: Read> TraceSource for CsvReader<R> {
    type Error = FormatError;

    fn next_item(&mut self) -> Result<Option<Item<'_>>, FormatError> {
        self.0.next_item()
    }
}

impl Reader for CsvReader<Source> {
    fn counts(&self) -> &ReadCounts {
        self.0.counts()
    }
}

/// The columns that an event is made of, and those that it must have.
const COLUMNS: [&[u8]; 14] = [
    b"time_ns",
    b"action",
    b"device",
    b"rwbs",
    b"sector",
    b"bytes",
    b"cpu",
    b"pid",
    b"process",
    b"error",
    b"requests",
    b"split_sector",
    b"from_sector",
    b"from_device",
];
const NEEDED: usize = 6;

/// Lines of such a table.
#[derive(Debug, Default)]
struct EventsCsv {
    /// Nothing before the titles.
    table: Option<Table>,
}

impl Dialect for EventsCsv {
    fn parse<'a>(&mut self, line: &'a [u8]) -> Line<'a> {
        let line = line.trim_ascii_end();
        if line.is_empty() {
            return Line::Blank;
        }
        let cells = cells(line);
        let Some(table) = &self.table else {
            return self.titles(&cells);
        };
        let Some((event, text)) = table.event(&cells) else {
            return Line::Damaged("a row whose cells do not fit their columns");
        };
        if !plausible::is_time(event.time) {
            return Line::Damaged(plausible::BAD_TIME);
        }
        if event.action == Action::Message {
            return Line::Message { event, text };
        }
        Line::Event {
            event,
            sequence: None,
            comm: Some(text).filter(|comm| !comm.is_empty()),
            has_time: true,
            is_whole: true,
        }
    }

    fn is_mailed(&self) -> bool {
        false
    }
}

impl EventsCsv {
    fn titles(&mut self, cells: &[&[u8]]) -> Line<'static> {
        self.table = Table::new(cells);
        if self.table.is_none() {
            return Line::Other("no titles, as in recording,number,time_ns,cpu,device,...");
        }
        Line::Note {
            begins_summary: false,
        }
    }
}

/// Where the columns of a table are.
#[derive(Debug)]
pub(crate) struct Table {
    places: [Option<usize>; COLUMNS.len()],
    message: Option<usize>,
}

impl Table {
    /// By its titles; none if columns are missing that an event needs.
    pub(crate) fn new(titles: &[&[u8]]) -> Option<Table> {
        let place = |title: &[u8]| titles.iter().position(|cell| *cell == title);
        let places = COLUMNS.map(place);
        let is_whole = places[..NEEDED].iter().all(Option::is_some);
        is_whole.then(|| Table {
            places,
            message: place(b"message"),
        })
    }

    /// The event of a row, with the text of a message, or the name of the process; none if its
    /// cells do not fit their columns.
    pub(crate) fn event<'a>(&self, cells: &[&'a [u8]]) -> Option<(Event, &'a [u8])> {
        let row = Row {
            cells,
            places: &self.places,
        };
        let event = row.event()?;
        let said = if event.action == Action::Message {
            self.message.and_then(|at| cells.get(at).copied())
        } else {
            row.cell("process")
        };
        Some((event, said.unwrap_or_default()))
    }
}

/// The cells of a row: between commas, or quotes.
fn cells(line: &[u8]) -> Vec<&[u8]> {
    let mut cells = Vec::new();
    let mut rest = line;
    loop {
        let (cell, behind) = match rest {
            [b'"', quoted @ ..] => {
                let end = end_of_quoted(quoted);
                (&quoted[..end], quoted.get(end + 1..).unwrap_or_default())
            }
            plain => plain.split_at(plain.iter().position(|b| *b == b',').unwrap_or(plain.len())),
        };
        cells.push(cell);
        match behind {
            [b',', next @ ..] => rest = next,
            _ => return cells,
        }
    }
}

/// Where the quote is that ends a cell: two in a row are one of its text.
fn end_of_quoted(text: &[u8]) -> usize {
    let mut at = 0;
    while at < text.len() {
        match &text[at..] {
            [b'"', b'"', ..] => at += 2,
            [b'"', ..] => return at,
            _ => at += 1,
        }
    }
    text.len()
}

/// A row by its titles.
struct Row<'r, 'a> {
    cells: &'r [&'a [u8]],
    places: &'r [Option<usize>; COLUMNS.len()],
}

impl<'a> Row<'_, 'a> {
    fn cell(&self, title: &str) -> Option<&'a [u8]> {
        let column = COLUMNS.iter().position(|c| *c == title.as_bytes())?;
        self.cells.get(self.places[column]?).copied()
    }

    /// A number; 0 in a column that is empty or not there.
    fn number(&self, title: &str) -> Option<u64> {
        match self.cell(title) {
            None | Some([]) => Some(0),
            Some(digits) => decimal(digits),
        }
    }

    fn event(&self) -> Option<Event> {
        let letters = std::str::from_utf8(self.cell("action")?).ok()?;
        let action = Action::from_letters(letters)?;
        let from = self.cell("from_device").filter(|dev| !dev.is_empty());
        let arg = match action {
            Action::Split => self.number("split_sector")?,
            Action::Remap => self.number("from_sector")?,
            _ => self.number("requests")?,
        };
        Some(Event {
            time: Time(decimal(self.cell("time_ns")?)?),
            sector: self.number("sector")?,
            arg,
            bytes: self.number("bytes")?.try_into().ok()?,
            pid: self.number("pid")?.try_into().ok()?,
            dev: device(self.cell("device")?)?,
            from_dev: match from {
                Some(dev) => device(dev)?,
                None => Dev::default(),
            },
            error: self.number("error")?.try_into().ok()?,
            cpu: self.number("cpu")?.try_into().ok()?,
            rwbs: match self.cell("rwbs")? {
                [] | b"-" => Rwbs::NONE,
                letters => rwbs(letters).unwrap_or(Rwbs::NONE),
            },
            action,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_events() {
        let mut table = EventsCsv::default();
        let titles = "recording,number,time_ns,cpu,device,pid,process,action,rwbs,sector,sectors,bytes,error,requests,split_sector,from_device,from_sector,message";
        assert!(matches!(table.parse(titles.as_bytes()), Line::Note { .. }));
        let mut parse = |row: &str| match table.parse(row.as_bytes()) {
            Line::Event { event, comm, .. } => {
                let comm = String::from_utf8_lossy(comm.unwrap_or_default()).into_owned();
                format!("{event} [{comm}]")
            }
            Line::Message { text, .. } => String::from_utf8_lossy(text).into_owned(),
            line => format!("{line:?}"),
        };
        assert_eq!(
            parse("1,1,500,2,\"8,16\",7,\"my, app\",D,WS,64,8,4096,,,,,,"),
            "8,16 2 0.000000500 7 D WS 64 + 8 [my, app]"
        );
        assert_eq!(
            parse("1,2,900,0,\"8,16\",0,,C,WS,64,8,4096,5,,,,,"),
            "8,16 0 0.000000900 0 C WS 64 + 8 [5] []"
        );
        assert_eq!(
            parse("1,3,950,0,\"8,16\",0,,A,W,99,8,4096,,,,\"8,17\",35,"),
            "8,16 0 0.000000950 0 A W 99 + 8 -> 35 []"
        );
        assert_eq!(
            parse("1,4,960,0,\"8,16\",0,,m,N,0,0,0,,,,,,\"cfq, 7 slice\""),
            "cfq, 7 slice"
        );
        assert!(parse("1,5,x,0,\"8,16\",0,,C,WS,64,8,4096,,,,,,").starts_with("Damaged"));
        let mut other = EventsCsv::default();
        assert!(matches!(other.parse(b"time,latency"), Line::Other(_)));
    }
}
