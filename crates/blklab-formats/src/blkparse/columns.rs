// SPDX-License-Identifier: MIT OR Apache-2.0
//! What blkparse prints in a form that its user gave (`-f`), which the text does not name.
//!
//! ```text
//! 0.000013451, 697, kjournald, D, 231230064
//! 0.001203451 C WS 231230064 + 8
//! ```
//!
//! What a column is, is told by what stands in it: a time has nine digits behind its point,
//! actions and RWBS have their letters, devices a comma. Of whole numbers, the last one between
//! time and action is the process; behind the action (or in front of it, if there are none)
//! come sector and length. Lengths are bytes (`%N`) if all are multiples of 512, else sectors;
//! where there are none, one sector is taken. Without an action a line says nothing.

use crate::format::{Format, Reader, SHORT_PREFIX_BYTES};
use crate::input::Input;
use crate::plausible;
use crate::source::Source;
use crate::text::{Dialect, Line, TextReader, decimal, device, rwbs, time, unquoted};
use crate::{FormatError, ReadCounts};
use blklab_trace::{Action, Event, Item, Rwbs, TraceSource};
use blklab_types::{Dev, SECTOR_BYTES, Time};
use std::io::Read;

/// Its row.
pub(crate) static FORMAT: Format = Format {
    name: "blkparse-columns",
    summary: "text as blkparse prints it in a form of the user's own (-f); read",
    has_printed_times: true,
    says_losses: false,
    says_flags: true,
    dialect: None,
    recognises: |input| Ok(recognises(input.fill(SHORT_PREFIX_BYTES)?)),
    open: |input, _| Ok(Box::new(ColumnsReader::from_input(input)?)),
};

impl Reader for ColumnsReader<Source> {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }
}

/// Rows that are looked at before the first is read.
const SAMPLE_ROWS: usize = 256;
/// Rows that must be there to be believed.
const ROWS_MIN: usize = 2;

/// Reads what blkparse prints in a form of the user's own.
#[derive(Debug)]
pub struct ColumnsReader<R>(TextReader<R, Columns>);

impl<R: Read> ColumnsReader<R> {
    /// Reads from `inner`; `name` is for errors.
    ///
    /// # Errors
    /// If its beginning cannot be read.
    pub fn new(inner: R, name: &str) -> Result<ColumnsReader<R>, FormatError> {
        ColumnsReader::from_input(Input::new(inner, name))
    }

    /// As [`ColumnsReader::new`].
    pub(crate) fn from_input(mut input: Input<R>) -> Result<ColumnsReader<R>, FormatError> {
        let columns = Columns::learned(input.fill(SAMPLE_BYTES)?);
        Ok(ColumnsReader(TextReader::new(input, columns)))
    }

    /// What was found so far; complete after the last item.
    pub fn counts(&self) -> &ReadCounts {
        self.0.counts()
    }
}

impl<R: Read> TraceSource for ColumnsReader<R> {
    type Error = FormatError;

    fn next_item(&mut self) -> Result<Option<Item<'_>>, FormatError> {
        self.0.next_item()
    }
}

/// What is looked at to learn what the columns are.
const SAMPLE_BYTES: usize = 4096;

/// Whether a text begins with such rows.
fn recognises(text: &[u8]) -> bool {
    let mut columns = Columns::learned(text);
    let (mut good, mut bad) = (0, 0);
    for line in sample(text) {
        match columns.parse(line) {
            Line::Event { .. } | Line::OtherEvent(_) => good += 1,
            Line::Blank => {}
            _ => bad += 1,
        }
    }
    good >= ROWS_MIN && bad <= good / 4
}

/// The first lines, without one that may be cut.
fn sample(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = match memchr::memrchr(b'\n', text) {
        Some(end) => &text[..end],
        None => text,
    };
    whole.split(|b| *b == b'\n').take(SAMPLE_ROWS)
}

/// Rows of columns that their user chose.
#[derive(Debug)]
pub(crate) struct Columns {
    /// RWBS stands in front of the action: `W D` is a write that is dispatched, not a requeued
    /// discard.
    is_rwbs_first: bool,
    /// Lengths are bytes.
    has_bytes: bool,
}

impl Columns {
    /// What the first rows show about those that could be two things.
    fn learned(text: &[u8]) -> Columns {
        let (mut nr_action_first, mut nr_rwbs_first) = (0, 0);
        let (mut nr_lengths, mut nr_of_bytes) = (0, 0);
        let can_be = |word: &[u8]| (action(word).is_some(), rwbs(word).is_some());
        for line in sample(text) {
            let row = Row::new(unquoted(line));
            if let [first, second, ..] = row.letters[..] {
                match (can_be(first), can_be(second)) {
                    ((true, false), (_, true)) | ((true, _), (false, true)) => nr_action_first += 1,
                    ((false, true), (true, _)) | ((_, true), (true, false)) => nr_rwbs_first += 1,
                    _ => {}
                }
            }
            if let Some(length) = row.place().1.filter(|n| *n > 0 && !row.has_plus) {
                nr_lengths += 1;
                nr_of_bytes += u32::from(length.is_multiple_of(SECTOR_BYTES));
            }
        }
        Columns {
            is_rwbs_first: nr_rwbs_first > nr_action_first,
            has_bytes: nr_lengths > 0 && nr_of_bytes == nr_lengths,
        }
    }

    fn event<'a>(&self, row: &Row<'a>) -> Option<Line<'a>> {
        let time = row.time?;
        let (letters, flags) = match row.letters[..] {
            [first, second, ..] if self.is_rwbs_first => (second, Some(first)),
            [first, second, ..] => (first, Some(second)),
            [only] => (only, None),
            [] => return None,
        };
        let action = action(letters)?;
        let rwbs = match flags {
            Some(flags) => rwbs(flags)?,
            None => Rwbs::NONE,
        };
        if matches!(action, Action::Remap | Action::Split | Action::Message) {
            // Their other halves have no column.
            return Some(Line::OtherEvent(letters));
        }
        let (sector, length) = row.place();
        let bytes = match length {
            Some(bytes) if self.has_bytes && !row.has_plus => bytes,
            Some(sectors) => sectors.checked_mul(SECTOR_BYTES)?,
            None if sector.is_some() => SECTOR_BYTES,
            None => 0,
        };
        if !plausible::is_time(time) {
            return Some(Line::Damaged(plausible::BAD_TIME));
        }
        let event = Event {
            time,
            sector: sector.unwrap_or(0),
            arg: 0,
            bytes: bytes.try_into().ok()?,
            pid: row.pid.unwrap_or(0).try_into().ok()?,
            dev: row.dev.unwrap_or_default(),
            from_dev: Dev::default(),
            error: 0,
            cpu: 0,
            rwbs,
            action,
        };
        Some(Line::Event {
            event,
            sequence: None,
            comm: row.comm.filter(|_| row.pid.is_some()),
            has_time: true,
            is_whole: true,
        })
    }
}

impl Dialect for Columns {
    fn parse<'a>(&mut self, line: &'a [u8]) -> Line<'a> {
        let line = unquoted(line);
        if line.is_empty() {
            return Line::Blank;
        }
        let other = Line::Other("no event, as in 0.000013451 D WS 231230064 + 8");
        self.event(&Row::new(line)).unwrap_or(other)
    }
}

/// The words of a line, by what they can be.
#[derive(Debug, Default)]
struct Row<'a> {
    time: Option<Time>,
    dev: Option<Dev>,
    pid: Option<u64>,
    /// What can be an action or RWBS, in order.
    letters: Vec<&'a [u8]>,
    /// Whole numbers in front of the time, between it and the letters, and behind these.
    numbers: [Vec<u64>; 3],
    has_plus: bool,
    comm: Option<&'a [u8]>,
}

impl<'a> Row<'a> {
    fn new(line: &'a [u8]) -> Row<'a> {
        let mut row = Row::default();
        let is_space = |b: &u8| b.is_ascii_whitespace() || matches!(*b, b';' | b'|');
        for word in line.split(is_space).filter(|word| !word.is_empty()) {
            match device(word) {
                Some(dev) if row.dev.is_none() => row.dev = Some(dev),
                _ => {
                    let parts = word.split(|b| *b == b',');
                    parts
                        .filter(|part| !part.is_empty())
                        .for_each(|part| row.add(part));
                }
            }
        }
        if let (None, [major, minor, ..]) = (row.dev, &row.numbers[0][..]) {
            let number = |n: u64| u16::try_from(n).ok();
            let both = number(*major).zip(number(*minor));
            row.dev = both.map(|(major, minor)| Dev { major, minor });
        }
        // All in front of the letters, if nothing is behind them.
        if row.numbers[2].is_empty() {
            row.numbers.swap(1, 2);
        } else {
            row.pid = row.numbers[1].last().copied();
        }
        row
    }

    fn add(&mut self, word: &'a [u8]) {
        if let Some(number) = decimal(word) {
            let part = match (self.letters.is_empty(), self.time.is_some()) {
                (false, _) => 2,
                (true, true) => 1,
                (true, false) => 0,
            };
            self.numbers[part].push(number);
        } else if let (None, Some(time)) = (self.time, printed_time(word)) {
            self.time = Some(time);
        } else if word == b"+" {
            self.has_plus = true;
        } else if self.letters.len() < 2 && (action(word).is_some() || rwbs(word).is_some()) {
            self.letters.push(word);
        } else {
            let bare = word.strip_prefix(b"[").unwrap_or(word);
            self.comm = self.comm.or(Some(bare.strip_suffix(b"]").unwrap_or(bare)));
        }
    }

    /// Sector and length.
    fn place(&self) -> (Option<u64>, Option<u64>) {
        let numbers = &self.numbers[2];
        (numbers.first().copied(), numbers.get(1).copied())
    }
}

fn action(word: &[u8]) -> Option<Action> {
    Action::from_letters(std::str::from_utf8(word).ok()?)
}

/// `SECONDS.NANOSECONDS`, or `HH:MM:SS.MICROSECONDS` of `%z`.
fn printed_time(word: &[u8]) -> Option<Time> {
    let point = word.iter().position(|b| *b == b'.')?;
    let nr_digits = word.len() - point - 1;
    let mut parts = word.rsplit(|b| *b == b':');
    let seconds = time(parts.next()?)?;
    match (parts.next(), parts.next(), parts.next()) {
        (None, None, None) => Some(seconds).filter(|_| nr_digits == 9),
        (Some(minutes), Some(hours), None) => {
            let minutes = decimal(hours)?
                .checked_mul(60)?
                .checked_add(decimal(minutes)?)?;
            let ns = minutes
                .checked_mul(60 * 1_000_000_000)?
                .checked_add(seconds.0)?;
            Some(Time(ns)).filter(|_| nr_digits == 6)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of some rows.
    fn read(text: &str) -> Vec<String> {
        assert!(recognises(text.as_bytes()), "{text}");
        let mut reader = ColumnsReader::new(text.as_bytes(), "test").expect("rows");
        let mut events = Vec::new();
        while let Some(item) = reader.next_item().expect("memory can be read") {
            events.push(match item {
                Item::Event(event) => event.to_string(),
                Item::Process { pid, comm, .. } => format!("{pid} is {comm}"),
                other => format!("{other:?}"),
            });
        }
        events
    }

    #[test]
    fn columns_in_any_order() {
        // The example of blkparse's guide: no length.
        assert_eq!(
            read(
                "    0.000000000, 697, kjournald, Q, 231230064\n    0.000003451, 697, kjournald, D, 231230064\n"
            ),
            [
                "697 is kjournald",
                "0,0 0 0.000000000 697 Q N 231230064 + 1",
                "0,0 0 0.000003451 697 D N 231230064 + 1",
            ]
        );
        assert_eq!(
            read(
                "8,16  0.000000000 fio 4711 D R 64 + 8\n8,16   0.000100000 swapper/0 0 C R 64 + 8\n"
            )[1..],
            [
                "8,16 0 0.000000000 4711 D R 64 + 8",
                "0 is swapper/0",
                "8,16 0 0.000100000 0 C R 64 + 8",
            ]
        );
        // Separated by commas, with lengths in bytes; RWBS first, of which the letters alone
        // do not tell.
        assert_eq!(
            read("8,16,0.000000000,4711,D,D,64,4096\n8,16,0.000100000,4711,WS,C,64,4096\n"),
            [
                "8,16 0 0.000000000 4711 D D 64 + 8",
                "8,16 0 0.000100000 4711 C WS 64 + 8",
            ]
        );
        // The place in front of the action, the time behind it.
        assert_eq!(
            read("D R 64 8 0.000000000\nC R 64 8 0.000100000\n"),
            [
                "0,0 0 0.000000000 0 D R 64 + 8",
                "0,0 0 0.000100000 0 C R 64 + 8"
            ]
        );
        assert_eq!(
            read("10:11:12.000013 64 8 Q WS\n10:11:12.000113 64 8 C WS\n")[0],
            "0,0 0 36672.000013000 0 Q WS 64 + 8"
        );
    }

    #[test]
    fn texts_that_are_no_such_rows() {
        for text in [
            "0.000000000 R 231230064 8\n0.000100000 W 231230072 8\n",
            "D R 64 8\nC R 64 8\n",
            "It took 0.123456789 s to Q 8 of them.\nThat is all.\n",
            "419,W,8792731648,16384,1577808144360767\n419,W,8792731648,16384,1577808144360767\n",
            "0.011413 4 264719034 16 0\n0.011413 4 264719034 16 0\n",
        ] {
            assert!(!recognises(text.as_bytes()), "{text}");
        }
    }
}
