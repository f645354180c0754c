// SPDX-License-Identifier: MIT OR Apache-2.0
//! A line for each I/O, when it is over: biosnoop of bcc, libbpf-tools and
//! bpftrace, and iosnoop of perf-tools.
//!
//! ```text
//! TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  QUE(ms) LAT(ms)
//! 0.000000    python3        2527   sda     W 5125728    12288     0.01    0.34
//! ```
//!
//! The columns are those that the line of titles names; without one they are told
//! by what stands in them. The time is that of the completion; LAT is counted from
//! D, QUE from the request's accounting to D. So D and C are known, and with QUE
//! when the request was made: a Q, which carries the process, stands there or else
//! with D. Without times I/Os are put one behind the other. bpftrace's first form says
//! neither where an I/O was nor how long: each gets a sector of its own.

mod column;

use crate::disks::Disks;
use crate::format::{Format, Reader, begins_with};
use crate::input::Input;
use crate::source::Source;
use crate::text::{
    Dialect, Io, Line, TextReader, decimal, device, rwbs, time, unquoted, without_content,
};
use crate::{FormatError, ReadCounts};
use blklab_trace::{Action, Actions, Event, Item, Rwbs, TraceHeader, TraceSource};
use blklab_types::{Dev, SECTOR_BYTES, Time};
use column::Column;
pub use column::Columns;
use std::io::Read;

/// Its row.
pub(crate) static FORMAT: Format = Format {
    name: "biosnoop",
    summary: "lines of biosnoop (bcc, libbpf-tools, bpftrace) and iosnoop; read",
    has_printed_times: false,
    says_losses: false,
    says_flags: false,
    dialect: Some(|| Box::new(Snoop::default())),
    recognises: |input| begins_with(input, Snoop::default),
    open: |input, others| Ok(Box::new(SnoopReader::from_input(input).with_others(others))),
};

impl Reader for SnoopReader<Source> {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }

    fn header(&self) -> Option<&TraceHeader> {
        self.header()
    }
}

/// Reads what biosnoop and iosnoop print.
#[derive(Debug)]
pub struct SnoopReader<R>(TextReader<R, Snoop>);

impl<R: Read> SnoopReader<R> {
    /// Reads from `inner`; `name` is for errors.
    pub fn new(inner: R, name: &str) -> SnoopReader<R> {
        SnoopReader::from_input(Input::new(inner, name))
    }

    /// As [`SnoopReader::new`].
    pub(crate) fn from_input(input: Input<R>) -> SnoopReader<R> {
        SnoopReader(TextReader::new(input, Snoop::default()))
    }

    /// Reads rows with these columns, whatever titles stand among them.
    pub(crate) fn with_columns(input: Input<R>, columns: &Columns) -> SnoopReader<R> {
        SnoopReader(TextReader::new(input, Snoop::of_columns(columns)))
    }

    /// The same, with lines of these dialects among the others.
    pub(crate) fn with_others(self, others: Vec<Box<dyn Dialect>>) -> SnoopReader<R> {
        SnoopReader(self.0.with_others(others))
    }

    /// What was found so far; complete after the last item.
    pub fn counts(&self) -> &ReadCounts {
        self.0.counts()
    }

    /// The disks, and what the columns tell; complete after the last item.
    pub fn header(&self) -> Option<&TraceHeader> {
        self.0.header()
    }
}

impl<R: Read> TraceSource for SnoopReader<R> {
    type Error = FormatError;

    fn next_item(&mut self) -> Result<Option<Item<'_>>, FormatError> {
        self.0.next_item()
    }
}

/// Rows whose titles were left out, those with more columns first: what does not fit would
/// else be taken for a part of the process's name.
const SHAPES: [&[Column]; 9] = {
    use Column::*;
    [
        // biosnoop: with the pattern and the time in the queue, and without either.
        &[
            TimeS, Comm, Pid, Disk, Type, Sector, Bytes, Pattern, QueueMs, LatencyMs,
        ],
        &[
            TimeS, Comm, Pid, Disk, Type, Sector, Bytes, QueueMs, Pattern, LatencyMs,
        ],
        &[
            TimeS, Comm, Pid, Disk, Type, Sector, Bytes, QueueMs, LatencyMs,
        ],
        &[
            TimeS, Comm, Pid, Disk, Type, Sector, Bytes, Pattern, LatencyMs,
        ],
        &[TimeS, Comm, Pid, Disk, Type, Sector, Bytes, LatencyMs],
        // biosnoop -t of libbpf-tools.
        &[TimeOfDay, Comm, Pid, Disk, Type, Sector, Bytes, LatencyMs],
        // iosnoop.
        &[StartS, EndS, Comm, Pid, Type, Dev, Sector, Bytes, LatencyMs],
        &[EndS, Comm, Pid, Type, Dev, Sector, Bytes, LatencyMs],
        &[Comm, Pid, Type, Dev, Sector, Bytes, LatencyMs],
    ]
};

const NS_PER_MS: i64 = 1_000_000;

/// From one I/O of which no place is known to the next.
const UNPLACED_SECTORS: u64 = 2048;

/// Lines of biosnoop and iosnoop.
#[derive(Debug)]
struct Snoop {
    /// Of the last line of titles.
    columns: Vec<Column>,
    /// Whether commas separate them.
    is_csv: bool,
    /// Whether they were named, so that titles in the text change nothing.
    are_named: bool,
    disks: Disks,
    /// Ns, where the next I/O begins that has no time.
    next_ns: i64,
    /// Of the last I/O whose end is known to a millisecond: that, and when it was issued.
    last_in_ms: Option<(i64, i64)>,
    /// I/Os without a place, so far.
    nr_unplaced: u64,
}

impl Default for Snoop {
    fn default() -> Snoop {
        Snoop {
            columns: Vec::new(),
            is_csv: false,
            are_named: false,
            disks: Disks::new(Actions::new(&[Action::Issue, Action::Complete])),
            next_ns: 0,
            last_in_ms: None,
            nr_unplaced: 0,
        }
    }
}

impl Dialect for Snoop {
    fn parse<'a>(&mut self, line: &'a [u8]) -> Line<'a> {
        let line = unquoted(line);
        if let Some(said) = without_content(line) {
            return said;
        }
        let is_rest_of_titles = words(line).eq([&b"MAJOR"[..], &b"MINOR"[..]]);
        let is_note = self.titles(line) || is_rest_of_titles || line.starts_with(b"Tracing ");
        if is_note || line.starts_with(b"Ending tracing") {
            return Line::Note {
                begins_summary: false,
            };
        }
        let io = match &self.columns[..] {
            [] => self.told_by_shape(line),
            columns if self.are_named => csv_row(columns, line).or_else(|| row(columns, line)),
            columns if self.is_csv => csv_row(columns, line),
            columns => row(columns, line).or_else(|| self.told_by_shape(line)),
        };
        match io {
            Some(row) => Line::Io(self.io(row)),
            None => Line::Other("no I/O, as in 1.234 fio 42 sda W 2048 4096 0.34"),
        }
    }

    /// A line comes when its I/O is over; how many others begin meanwhile has no
    /// bound, but a device has thousands of commands at most.
    fn window(&self) -> usize {
        32 * 1024
    }

    fn header(&self) -> Option<&TraceHeader> {
        let header = &self.disks.header;
        Some(header).filter(|h| !h.devices.is_empty() || self.nr_unplaced > 0)
    }
}

/// Whether an input begins with rows of these columns.
pub(crate) fn has_columns(
    input: &mut Input<Source>,
    columns: &Columns,
) -> Result<bool, FormatError> {
    begins_with(input, || Snoop::of_columns(columns))
}

impl Snoop {
    /// For rows of these columns.
    fn of_columns(columns: &Columns) -> Snoop {
        Snoop {
            columns: columns.0.clone(),
            are_named: true,
            ..Snoop::default()
        }
    }

    /// Takes a line of titles.
    fn titles(&mut self, line: &[u8]) -> bool {
        let own = column::of_own_table(line);
        if self.are_named {
            return own.is_some();
        }
        if let Some((columns, is_csv)) = own {
            (self.columns, self.is_csv) = (columns, is_csv);
            return true;
        }
        if !line.starts_with(b"TIME(")
            && !line.starts_with(b"TIMESTAMP")
            && !line.starts_with(b"COMM")
            && !line.starts_with(b"START")
            && !line.starts_with(b"ENDs")
        {
            return false;
        }
        self.is_csv = false;
        let titles: Vec<&[u8]> = words(line).collect();
        let columns: Option<Vec<Column>> = match titles
            .windows(2)
            .position(|t| matches!(t, [b"DISK", b"ID"]))
        {
            // biosnoop.bt: the numbers of a disk have their titles in the line below.
            Some(at) => {
                let named = titles
                    .iter()
                    .enumerate()
                    .map(|(i, title)| match i.checked_sub(at) {
                        Some(0) => Some(Column::Major),
                        Some(1) => Some(Column::Minor),
                        _ => Column::titled(title),
                    });
                named.collect()
            }
            None => titles.iter().map(|title| Column::titled(title)).collect(),
        };
        let known = columns.filter(|c| c.contains(&Column::LatencyMs));
        let is_title = known.is_some();
        self.columns = known.unwrap_or_default();
        is_title
    }

    /// A row whose titles were left out.
    fn told_by_shape<'a>(&self, line: &'a [u8]) -> Option<Row<'a>> {
        // Both end with bytes and latencies.
        if !line.last()?.is_ascii_digit() {
            return None;
        }
        SHAPES.iter().find_map(|columns| row(columns, line))
    }

    /// When an I/O was issued that ended within a millisecond. Of those of one millisecond only the
    /// order of their ends is known; they are taken to have been issued in that order where that fits.
    fn issue_within_ms(&mut self, end_ns: i64, latency_ns: i64) -> i64 {
        let earliest = end_ns.saturating_sub(latency_ns);
        let behind = match self.last_in_ms {
            Some((ms, issue)) if ms == end_ns => issue.saturating_add(1),
            _ => earliest,
        };
        let fits = behind < earliest.saturating_add(NS_PER_MS);
        let issue = if fits { earliest.max(behind) } else { earliest };
        self.last_in_ms = Some((end_ns, issue));
        issue
    }

    fn io<'a>(&mut self, row: Row<'a>) -> Io<'a> {
        let dev = match (row.disk, row.dev) {
            (_, Some(dev)) => dev,
            (Some(disk), None) => self.disks.named(disk),
            (None, None) => Dev::default(),
        };
        if row.queue_ns.is_some() {
            self.disks.header.recorded = self.disks.header.recorded.with(Action::Queue);
        }
        let (latency_ns, queue_ns) = (row.latency_ns, row.queue_ns.unwrap_or(0));
        let issue = match (row.start_ns, row.end_ns) {
            (Some(start), _) => start,
            (None, Some(end)) if row.is_coarse => self.issue_within_ms(end, latency_ns),
            (None, Some(end)) => end.saturating_sub(latency_ns),
            (None, None) => self.next_ns.saturating_add(queue_ns),
        };
        let complete = issue.saturating_add(latency_ns);
        self.next_ns = complete;
        let (sector, bytes) = match row.sector {
            Some(sector) => (sector, row.bytes),
            None => {
                // A place of its own, next to no other, tells its events from those of others.
                self.nr_unplaced += 1;
                (self.nr_unplaced * UNPLACED_SECTORS, SECTOR_BYTES as u32)
            }
        };
        Io {
            event: Event {
                time: Time::ZERO,
                sector,
                arg: 0,
                bytes,
                pid: row.pid,
                dev,
                from_dev: Dev::default(),
                error: 0,
                cpu: 0,
                rwbs: row.rwbs,
                action: Action::Queue,
            },
            sequence: None,
            times: [
                Some(issue.saturating_sub(queue_ns)),
                None,
                Some(issue),
                Some(complete),
            ],
            comm: row.comm,
            has_time: row.start_ns.is_some() || row.end_ns.is_some(),
        }
    }
}

/// What a line says.
#[derive(Debug, Default)]
struct Row<'a> {
    start_ns: Option<i64>,
    end_ns: Option<i64>,
    /// The end is known to a millisecond.
    is_coarse: bool,
    comm: Option<&'a [u8]>,
    pid: u32,
    disk: Option<&'a [u8]>,
    dev: Option<Dev>,
    rwbs: Rwbs,
    sector: Option<u64>,
    bytes: u32,
    queue_ns: Option<i64>,
    latency_ns: i64,
}

fn words(line: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
}

/// A row of these columns; what is more than they are belongs to the process's
/// name.
fn row<'a>(columns: &[Column], line: &'a [u8]) -> Option<Row<'a>> {
    let mut row = Row::default();
    let name_at = columns.iter().position(|c| *c == Column::Comm);
    let (left, right) = match name_at {
        Some(at) => (&columns[..at], &columns[at + 1..]),
        None => (columns, &[][..]),
    };
    let mut rest = line;
    for column in left {
        rest = rest.trim_ascii_start();
        let len = rest.iter().position(u8::is_ascii_whitespace);
        let (word, behind) = rest.split_at(len.unwrap_or(rest.len()));
        row.set(*column, word)?;
        rest = behind;
    }
    for column in right.iter().rev() {
        rest = rest.trim_ascii_end();
        let len = rest.iter().rev().position(u8::is_ascii_whitespace);
        let (before, word) = rest.split_at(rest.len() - len.unwrap_or(rest.len()));
        row.set(*column, word)?;
        rest = before;
    }
    let rest = rest.trim_ascii();
    match name_at {
        Some(_) => row.comm = Some(rest).filter(|name| !matches!(*name, [] | [b'?'])),
        None if rest.is_empty() => {}
        None => return None,
    }
    Some(row)
}

/// A row with commas between its columns.
fn csv_row<'a>(columns: &[Column], line: &'a [u8]) -> Option<Row<'a>> {
    let mut row = Row::default();
    let mut words = line.split(|b| *b == b',').map(<[u8]>::trim_ascii);
    for column in columns {
        row.set(*column, words.next()?)?;
    }
    words.next().is_none().then_some(row)
}

impl<'a> Row<'a> {
    /// Takes a word; none if it does not fit its column.
    fn set(&mut self, column: Column, word: &'a [u8]) -> Option<()> {
        match column {
            Column::TimeS | Column::EndS => self.end_ns = Some(seconds(word, 1)?),
            Column::TimeMs => self.end_ns = Some(seconds(word, 1000)?),
            Column::TimeUs => self.end_ns = Some(seconds(word, 1_000_000)?),
            Column::TimeNs => self.end_ns = Some(nanoseconds(word)?),
            Column::TimeOfDay => {
                self.end_ns = Some(time_of_day(word)?);
                self.is_coarse = true;
            }
            Column::StartS => self.start_ns = Some(seconds(word, 1)?),
            Column::Comm => self.comm = Some(word),
            Column::Pid => self.pid = decimal(word)?.try_into().ok()?,
            Column::Disk => {
                // Names of disks have letters.
                let is_name = word.iter().any(u8::is_ascii_alphabetic);
                self.disk = Some(word).filter(|_| is_name);
                self.disk?;
            }
            Column::Dev => self.dev = Some(device(word)?),
            Column::DiskOrDev => {
                self.dev = device(word).or_else(|| colon_device(word));
                self.disk = self.dev.is_none().then_some(word);
            }
            Column::Major => {
                let major = decimal(word)?.try_into().ok()?;
                self.dev.get_or_insert_default().major = major;
            }
            Column::Minor => {
                let minor = decimal(word)?.try_into().ok()?;
                self.dev.get_or_insert_default().minor = minor;
            }
            Column::Type => {
                self.rwbs = if word == b"-" {
                    Rwbs::NONE
                } else {
                    rwbs(word)?
                }
            }
            Column::Operation => self.rwbs = operation(word)?,
            Column::OffsetBytes => self.sector = Some(decimal(word)? / SECTOR_BYTES),
            Column::Sectors => {
                let bytes = decimal(word)?.checked_mul(SECTOR_BYTES)?;
                self.bytes = bytes.try_into().ok()?;
            }
            Column::Ignored => {}
            Column::Sector => {
                let sector = match word {
                    // Of a flush.
                    b"-1" => 0,
                    digits => decimal(digits)?,
                };
                self.sector = Some(sector).map(|s| if s == u64::MAX { 0 } else { s });
            }
            Column::Bytes => self.bytes = decimal(word)?.try_into().ok()?,
            Column::QueueMs => self.queue_ns = Some(milliseconds(word)?),
            Column::LatencyMs => self.latency_ns = milliseconds(word)?,
            Column::LatencyS => self.latency_ns = seconds(word, 1)?,
            Column::LatencyUs => self.latency_ns = seconds(word, 1_000_000)?,
            Column::LatencyNs => self.latency_ns = nanoseconds(word)?,
            Column::Pattern => {
                let [b'R' | b'S' | b'?' | b'-'] = word else {
                    return None;
                };
            }
        }
        Some(())
    }
}

/// Ns of a number with or without a point, of seconds divided by `parts`.
fn seconds(word: &[u8], parts: u64) -> Option<i64> {
    let ns = if word.contains(&b'.') {
        time(word)?.0
    } else if parts > 1 {
        decimal(word)?.checked_mul(1_000_000_000)?
    } else {
        return None;
    };
    let ns = ns / parts;
    Some(ns as i64).filter(|_| crate::plausible::is_time(Time(ns)))
}

/// Ns without a point.
fn nanoseconds(word: &[u8]) -> Option<i64> {
    let ns = decimal(word)?;
    Some(ns as i64).filter(|_| crate::plausible::is_time(Time(ns)))
}

/// Of the day: `17:58:57.814`.
fn time_of_day(word: &[u8]) -> Option<i64> {
    let mut parts = word.splitn(3, |b| *b == b':');
    let (hours, minutes) = (decimal(parts.next()?)?, decimal(parts.next()?)?);
    let ns = seconds(parts.next()?, 1)?;
    let is_time = hours < 24 && minutes < 60 && ns < 61_000_000_000;
    is_time.then(|| (60 * hours as i64 + minutes as i64) * 60_000_000_000 + ns)
}

/// `8:0`.
fn colon_device(word: &[u8]) -> Option<Dev> {
    let colon = word.iter().position(|b| *b == b':')?;
    Some(Dev {
        major: decimal(&word[..colon])?.try_into().ok()?,
        minor: decimal(&word[colon + 1..])?.try_into().ok()?,
    })
}

/// What an I/O does, in a word or in the kernel's letters.
fn operation(word: &[u8]) -> Option<Rwbs> {
    Some(match word.to_ascii_lowercase().as_slice() {
        b"read" | b"rd" => Rwbs::READ,
        b"write" | b"wr" => Rwbs::WRITE,
        b"discard" | b"trim" | b"unmap" => Rwbs::DISCARD,
        b"flush" | b"sync" | b"fsync" => Rwbs::FLUSH,
        b"r" => Rwbs::READ,
        b"w" => Rwbs::WRITE,
        _ => return rwbs(word),
    })
}

/// Ns of milliseconds; with a point, unless it is bpftrace that has none.
fn milliseconds(word: &[u8]) -> Option<i64> {
    seconds(word, 1000)
}

#[cfg(test)]
mod tests;
