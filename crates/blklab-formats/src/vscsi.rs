// SPDX-License-Identifier: MIT OR Apache-2.0
//! The binary SCSI traces of VMware's hypervisor (`vscsiStats`), as CloudPhysics
//! published them: records of 32 bytes that know when a command was asked for, or
//! of 40 that also know how long it took. Little-endian:
//!
//! | first form | second form |
//! |---|---|
//! | u32 number | u16 command |
//! | u32 bytes | u16 version, in the upper byte |
//! | u32 scatter-gather elements | u32 number |
//! | u16 command | u32 bytes |
//! | u16 version, in the upper byte | u32 scatter-gather elements |
//! | u64 sector | u64 sector |
//! | u64 microseconds | u64 microseconds |
//! | | u64 microseconds that it took |

use crate::disks::Disks;
use crate::format::{Format, Reader};
use crate::input::Input;
use crate::order::{Given, Held, Said, Window};
use crate::plausible;
use crate::source::Source;
use crate::{FormatError, ReadCounts};
use blklab_trace::{Action, Actions, Event, Item, Rwbs, TraceHeader, TraceSource};
use blklab_types::{Dev, Time};
use std::io::Read;

/// Its row.
pub(crate) static FORMAT: Format = Format {
    name: "vscsi",
    summary: "VMware's SCSI traces (CloudPhysics), versions 1 and 2; read",
    has_printed_times: false,
    says_losses: false,
    says_flags: false,
    dialect: None,
    recognises: |input| is_vscsi(input),
    open: |input, _| Ok(Box::new(VscsiReader::from_input(input)?)),
};

impl Reader for VscsiReader<Source> {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }

    fn header(&self) -> Option<&TraceHeader> {
        self.header()
    }
}

/// Commands that may end later than others begin.
const WINDOW: usize = 32 * 1024;
/// Records that recognising looks at.
const SAMPLE_RECORDS: usize = 16;

/// One of the two forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    First,
    Second,
}

impl Form {
    fn record_bytes(self) -> usize {
        match self {
            Form::First => 32,
            Form::Second => 40,
        }
    }
}

/// A record.
struct Record {
    rwbs: Rwbs,
    bytes: u32,
    sector: u64,
    at_us: u64,
    took_us: Option<u64>,
}

impl Record {
    /// None if its command or version is none.
    fn decode(bytes: &[u8], form: Form) -> Option<Record> {
        let u16_at = |at: usize| Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let u32_at = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let u64_at = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let (command, version, length) = match form {
            Form::First => (u16_at(12)?, u16_at(14)? >> 8, u32_at(4)?),
            Form::Second => (u16_at(0)?, u16_at(2)? >> 8, u32_at(8)?),
        };
        if version != form as u16 + 1 {
            return None;
        }
        // READ and WRITE with 6, 10, 12 and 16 bytes (SBC-3).
        let rwbs = match command {
            0x08 | 0x28 | 0x88 | 0xa8 => Rwbs::READ,
            0x0a | 0x2a | 0x8a | 0xaa => Rwbs::WRITE,
            0x35 | 0x91 => Rwbs::FLUSH,
            0x42 => Rwbs::DISCARD,
            _ => return None,
        };
        Some(Record {
            rwbs,
            bytes: length,
            sector: u64_at(16)?,
            at_us: u64_at(24)?,
            took_us: match form {
                Form::First => None,
                Form::Second => Some(u64_at(32)?),
            },
        })
    }
}

/// The form of a trace that begins so; none if it is no such trace.
fn form(bytes: &[u8]) -> Option<Form> {
    [Form::First, Form::Second].into_iter().find(|form| {
        let records = bytes.chunks_exact(form.record_bytes()).take(SAMPLE_RECORDS);
        let mut nr = 0;
        let mut all = records.inspect(|_| nr += 1);
        all.all(|record| Record::decode(record, *form).is_some()) && nr > 0
    })
}

/// Whether a trace begins so.
fn is_vscsi(input: &mut Input<impl Read>) -> Result<bool, FormatError> {
    let longest = Form::Second.record_bytes() * SAMPLE_RECORDS;
    Ok(form(input.fill(longest)?).is_some())
}

/// Reads vscsi records.
#[derive(Debug)]
pub struct VscsiReader<R> {
    input: Input<R>,
    form: Form,
    disks: Disks,
    dev: Dev,
    first_us: Option<u64>,
    at_end: bool,
    window: Window,
    given: Given,
    counts: ReadCounts,
}

impl<R: Read> VscsiReader<R> {
    /// Reads from `inner`; `name` is for errors.
    ///
    /// # Errors
    /// When it is no such trace.
    pub fn new(inner: R, name: &str) -> Result<VscsiReader<R>, FormatError> {
        VscsiReader::from_input(Input::new(inner, name))
    }

    /// As [`VscsiReader::new`].
    pub(crate) fn from_input(mut input: Input<R>) -> Result<VscsiReader<R>, FormatError> {
        let longest = Form::Second.record_bytes() * SAMPLE_RECORDS;
        let Some(form) = form(input.fill(longest)?) else {
            return Err(FormatError::Header {
                input: input.name,
                problem: "no records of vscsi, version 1 or 2",
            });
        };
        let recorded: &[Action] = match form {
            Form::First => &[Action::Queue],
            Form::Second => &[Action::Queue, Action::Complete],
        };
        let mut disks = Disks::new(Actions::new(recorded));
        Ok(VscsiReader {
            dev: disks.named(b"virtual disk"),
            disks,
            input,
            form,
            first_us: None,
            at_end: false,
            window: Window::default(),
            given: Given::default(),
            counts: ReadCounts::default(),
        })
    }

    /// What was found so far; complete after the last item.
    pub fn counts(&self) -> &ReadCounts {
        &self.counts
    }

    /// The disk, and what the records tell.
    pub fn header(&self) -> Option<&TraceHeader> {
        Some(&self.disks.header)
    }

    /// Reads a record and puts its events in their places.
    fn read_record(&mut self) -> Result<(), FormatError> {
        let len = self.form.record_bytes();
        let bytes = self.input.fill(len)?;
        if bytes.len() < len {
            self.at_end = true;
            self.counts.truncated = !bytes.is_empty();
            self.counts.skipped_bytes += bytes.len() as u64;
            return Ok(());
        }
        let record = Record::decode(bytes, self.form);
        let place = {
            let (name, offset) = (&self.input.name, self.input.offset());
            format!("{name}: record at byte {offset}")
        };
        self.input.skip(len);
        let Some(record) = record else {
            self.counts.unknown += 1;
            self.counts
                .example(|| format!("{place}: unknown command or version"));
            return Ok(());
        };
        if self.take(&record, &place).is_none() {
            self.counts.damaged += 1;
            self.counts.skipped_bytes += len as u64;
            self.counts
                .example(|| format!("{place}: {}", plausible::BAD_TIME));
        }
        Ok(())
    }

    /// None if its times cannot be.
    fn take(&mut self, record: &Record, place: &str) -> Option<()> {
        let first = *self.first_us.get_or_insert(record.at_us);
        let ns = |us: u64| {
            let us = i128::from(us) - i128::from(first);
            let ns = i64::try_from(us * 1000).ok()?;
            plausible::is_time(Time(ns.unsigned_abs())).then_some(ns)
        };
        let queue = ns(record.at_us)?;
        let end = match record.took_us {
            Some(took) => Some(ns(record.at_us.checked_add(took)?)?),
            None => None,
        };
        let actions = [(Action::Queue, Some(queue)), (Action::Complete, end)];
        for (action, at) in actions {
            let Some(at) = at else { continue };
            let event = Event {
                time: Time(at as u64),
                sector: record.sector,
                arg: 0,
                bytes: record.bytes,
                pid: 0,
                dev: self.dev,
                from_dev: Dev::default(),
                error: 0,
                cpu: 0,
                rwbs: record.rwbs,
                action,
            };
            plausible::check(&event, &mut self.counts, || place.to_owned());
            self.counts.events += 1;
            let said = Said::Event;
            self.window.push(Held::new(event, said));
        }
        Some(())
    }
}

impl<R: Read> TraceSource for VscsiReader<R> {
    type Error = FormatError;

    fn next_item(&mut self) -> Result<Option<Item<'_>>, FormatError> {
        while !self.at_end && self.window.len() <= WINDOW {
            self.read_record()?;
        }
        let held = self.window.pop();
        Ok(held.map(|held| self.given.item(held, &mut self.counts)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(command: u16, sector: u64, at_us: u64) -> Vec<u8> {
        let mut bytes = vec![7, 0, 0, 0, 0, 16, 0, 0, 1, 0, 0, 0];
        bytes.extend(command.to_le_bytes());
        bytes.extend([0, 1]);
        bytes.extend(sector.to_le_bytes());
        bytes.extend(at_us.to_le_bytes());
        bytes
    }

    fn second(command: u16, sector: u64, at_us: u64, took_us: u64) -> Vec<u8> {
        let mut bytes = command.to_le_bytes().to_vec();
        bytes.extend([0, 2, 7, 0, 0, 0, 0, 16, 0, 0, 1, 0, 0, 0]);
        bytes.extend(sector.to_le_bytes());
        bytes.extend(at_us.to_le_bytes());
        bytes.extend(took_us.to_le_bytes());
        bytes
    }

    fn read(bytes: &[u8]) -> (Vec<String>, ReadCounts) {
        let mut reader = VscsiReader::new(bytes, "test").expect("vscsi");
        let mut events = Vec::new();
        while let Ok(Some(item)) = reader.next_item() {
            if let Item::Event(event) = item {
                events.push(event.to_string());
            }
        }
        (events, reader.counts().clone())
    }

    #[test]
    fn both_forms() {
        let bytes = [first(0x2a, 8, 5_000_000), first(0x28, 16, 5_000_003)].concat();
        let (events, _) = read(&bytes);
        let expected = [
            "0,1 0 0.000000000 0 Q W 8 + 8",
            "0,1 0 0.000003000 0 Q R 16 + 8",
        ];
        assert_eq!(events, expected);
        let bytes = [second(0x8a, 8, 50, 100), second(0x88, 16, 60, 10)].concat();
        let (events, _) = read(&bytes);
        let expected = [
            "0,1 0 0.000000000 0 Q W 8 + 8",
            "0,1 0 0.000010000 0 Q R 16 + 8",
            "0,1 0 0.000020000 0 C R 16 + 8",
            "0,1 0 0.000100000 0 C W 8 + 8",
        ];
        assert_eq!(events, expected);
    }

    #[test]
    fn damage() {
        let good: Vec<u8> = (0..16).flat_map(|n| first(0x2a, 8, n)).collect();
        let bytes = [
            good,
            first(0x77, 8, 90),
            first(0x2a, 8, u64::MAX),
            vec![1; 9],
        ]
        .concat();
        let (events, counts) = read(&bytes);
        assert_eq!(events.len(), 16);
        assert_eq!(
            (counts.unknown, counts.damaged, counts.truncated),
            (1, 1, true)
        );
        assert!(VscsiReader::new(&b"something else entirely, of many bytes"[..], "x").is_err());
    }
}
