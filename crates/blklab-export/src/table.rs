// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace as a table.

use crate::columns::Column;
use crate::people::People;
use crate::rows::{BIO_COLUMNS, BioRow, EVENT_COLUMNS, EventRow, IO_COLUMNS, IoRow};
use crate::sheet::{Sheet, SheetFormat, TakesRows};
use blklab_analysis::lifecycle::{BioLife, LifeSink, Lifecycles, RequestLife};
use blklab_formats::FormatError;
use blklab_trace::{Event, TraceSink};
use blklab_types::{Pid, Time};
use std::io::{self, Write};

/// What a row of a table is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rows {
    /// An event.
    #[default]
    Events,
    /// A request, from its first Q to its last C.
    Ios,
    /// A bio, from Q to C.
    Bios,
}

impl Rows {
    /// Names of the columns, in order.
    pub fn titles(self) -> Vec<&'static str> {
        match self {
            Rows::Events => names(&EVENT_COLUMNS),
            Rows::Ios => names(&IO_COLUMNS),
            Rows::Bios => names(&BIO_COLUMNS),
        }
    }
}

fn names<R>(columns: &[Column<R>]) -> Vec<&'static str> {
    columns.iter().map(|c| c.name).collect()
}

/// Whether a text begins with the titles of one of the tables.
pub(crate) fn is_title(head: &[u8]) -> bool {
    [Rows::Events, Rows::Ios, Rows::Bios]
        .iter()
        .any(|rows| head.starts_with(format!("{}\n", rows.titles().join(",")).as_bytes()))
}

/// Writes a trace as CSV or Parquet.
///
/// Events are rows in the order of the trace; I/Os and bios are rows when they end,
/// and those without an end come last.
pub struct TableWriter<W: Write>(pub(crate) ToRows<Sheet<W>>);

/// A trace on its way into rows.
pub(crate) struct ToRows<S> {
    rows: Rows,
    tracker: Lifecycles<Table<S>>,
}

/// The table, where rows go.
struct Table<S> {
    rows: Rows,
    sheet: Option<S>,
    error: Option<io::Error>,
    people: People,
    recording: u64,
    nr_events: u64,
    /// The request that the last bio belongs to, and its first Q: bios are given
    /// just before their request.
    queued: Option<(u64, Time)>,
}

impl<W: Write + Send> TableWriter<W> {
    /// Writes to `inner`, beginning with the titles.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn new(format: SheetFormat, rows: Rows, inner: W) -> Result<TableWriter<W>, FormatError> {
        let sheet = match rows {
            Rows::Events => Sheet::new(format, &EVENT_COLUMNS, inner),
            Rows::Ios => Sheet::new(format, &IO_COLUMNS, inner),
            Rows::Bios => Sheet::new(format, &BIO_COLUMNS, inner),
        };
        Ok(TableWriter(ToRows::new(rows, sheet.map_err(failed)?)))
    }

    /// Writes the rest and returns what was written to.
    ///
    /// # Errors
    /// The first error since the start.
    pub fn finish(self) -> Result<W, FormatError> {
        let mut inner = self.0.finish()?.finish().map_err(failed)?;
        inner.flush().map_err(failed)?;
        Ok(inner)
    }
}

impl<S: TakesRows> ToRows<S> {
    pub(crate) fn new(rows: Rows, sheet: S) -> ToRows<S> {
        ToRows {
            rows,
            tracker: Lifecycles::new(Table {
                rows,
                sheet: Some(sheet),
                error: None,
                people: People::default(),
                recording: 1,
                nr_events: 0,
                queued: None,
            }),
        }
    }

    /// Gives the rows of what has not ended, and what took all of them; else the first
    /// error.
    pub(crate) fn finish(self) -> Result<S, FormatError> {
        let (table, _) = self.tracker.finish();
        match table.error {
            Some(e) => Err(failed(e)),
            None => Ok(table.sheet.expect("a table without an error has its sheet")),
        }
    }
}

pub(crate) fn failed(source: io::Error) -> FormatError {
    FormatError::Io {
        doing: "write a table".into(),
        source,
    }
}

impl<S: TakesRows> Table<S> {
    fn event(&mut self, event: &Event, text: Option<&str>) {
        self.nr_events += 1;
        let row = EventRow {
            recording: self.recording,
            number: self.nr_events,
            event: *event,
            process: self.people.name_of(event.pid),
            text: text.map(Into::into),
        };
        self.put(&EVENT_COLUMNS, &row);
    }

    /// Writes a row, unless one could not be written: then nothing more is.
    fn put<R>(&mut self, columns: &[Column<R>], row: &R) {
        if let Some(sheet) = &mut self.sheet
            && let Err(e) = sheet.row(columns, row)
        {
            self.error = Some(e);
            self.sheet = None;
        }
    }
}

impl<S: TakesRows> LifeSink for Table<S> {
    fn bio(&mut self, bio: &BioLife) {
        match self.rows {
            Rows::Events => {}
            Rows::Ios => self.queued_in(bio),
            Rows::Bios => {
                let row = BioRow {
                    recording: self.recording,
                    bio: *bio,
                    process: self.people.name_of(bio.pid),
                };
                self.put(&BIO_COLUMNS, &row);
            }
        }
    }

    fn request(&mut self, request: &RequestLife) {
        if self.rows != Rows::Ios {
            return;
        }
        let queued = self.queued.filter(|(number, _)| *number == request.number);
        let row = IoRow {
            recording: self.recording,
            request: *request,
            queue: queued.map(|(_, time)| time),
            process: self.people.name_of(request.pid),
        };
        self.put(&IO_COLUMNS, &row);
    }
}

impl<S> Table<S> {
    /// Notes when the first bio of a request was queued.
    fn queued_in(&mut self, bio: &BioLife) {
        let Some(number) = bio.request else { return };
        self.queued = Some(match self.queued {
            Some((known, first)) if known == number => (number, first.min(bio.queue)),
            _ => (number, bio.queue),
        });
    }
}

impl<S: TakesRows> TraceSink for ToRows<S> {
    fn event(&mut self, event: &Event) {
        match self.rows {
            Rows::Events => self.tracker.sink().event(event, None),
            Rows::Ios | Rows::Bios => self.tracker.event(event),
        }
    }

    fn message(&mut self, event: &Event, text: &str) {
        if self.rows == Rows::Events {
            self.tracker.sink().event(event, Some(text));
        }
    }

    fn wants_messages(&self) -> bool {
        self.rows == Rows::Events
    }

    fn process(&mut self, _: Time, pid: Pid, comm: &str) {
        self.tracker.sink().people.name(pid, comm);
    }

    fn new_recording(&mut self) {
        self.tracker.new_recording();
        self.tracker.sink().recording += 1;
    }
}

/// The trace goes to what makes rows of it.
macro_rules! passes_on {
    ($($what:tt)*) => {
        $($what)* {
            fn event(&mut self, event: &blklab_trace::Event) {
                self.0.event(event);
            }

            fn message(&mut self, event: &blklab_trace::Event, text: &str) {
                self.0.message(event, text);
            }

            fn wants_messages(&self) -> bool {
                self.0.wants_messages()
            }

            fn process(&mut self, time: blklab_types::Time, pid: blklab_types::Pid, comm: &str) {
                self.0.process(time, pid, comm);
            }

            fn new_recording(&mut self) {
                self.0.new_recording();
            }
        }
    };
}
#[cfg(feature = "arrow")]
pub(crate) use passes_on;

passes_on!(impl<W: Write + Send> TraceSink for TableWriter<W>);
