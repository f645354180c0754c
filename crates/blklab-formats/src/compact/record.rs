// SPDX-License-Identifier: MIT OR Apache-2.0
//! One record of a chunk, as the difference to the one before it. Writing and
//! reading stand side by side here.

use super::TEXT_BYTES_MAX;
use super::varint::{BYTES_MAX, Bytes, fold, put, unfold};
use crate::counts::Lacks;
use crate::output::prefix;
use blklab_trace::{Action, Event, Rwbs};
use blklab_types::{Dev, Pid, Time};

/// First byte, lowest four bits: the code of the action less one.
const CODE: u8 = 0x0f;
/// First byte: device, flags, sector and length are those of the last event.
const SAME_PLACE: u8 = 0x10;
/// First byte: process and CPU are those of the last event.
const SAME_TASK: u8 = 0x20;
/// First byte: `arg`, `error` and `from_dev` are not all zero.
const EXTRAS: u8 = 0x40;
/// The first byte of a process's name.
const PROCESS: u8 = 0x80;
/// All of a record that another recording begins: two bytes, as every record has
/// at least.
const NEW_RECORDING: [u8; 2] = [0x81, 0];

/// What the original of a copy lacked begins so; counts follow behind their number.
const LACKS: [u8; 2] = [0x82, 0];

/// Place byte: the device changes.
const DEVICE: u8 = 0x01;
/// Place byte: the flags change.
const FLAGS: u8 = 0x02;
/// Place byte: the length changes.
const LENGTH: u8 = 0x04;
/// Place byte: the sector changes.
const SECTOR: u8 = 0x08;

/// Longest record without texts: two bytes and eleven numbers.
const RECORD_BYTES_MAX: usize = 2 + 11 * BYTES_MAX;

/// The event before, from which differences count; all zero at the start of a
/// chunk.
#[derive(Debug)]
pub(super) struct Last(Event);

impl Default for Last {
    fn default() -> Last {
        Last(Event {
            time: Time(0),
            sector: 0,
            arg: 0,
            bytes: 0,
            pid: 0,
            dev: Dev::default(),
            from_dev: Dev::default(),
            error: 0,
            cpu: 0,
            rwbs: Rwbs::NONE,
            action: Action::Queue,
        })
    }
}

/// Something read from a chunk.
#[derive(Debug)]
pub(super) enum Read<'a> {
    Event(Event),
    Message(Event, &'a [u8]),
    Process(Time, Pid, &'a [u8]),
    NewRecording,
    Lacks(Lacks),
}

/// Appends that another recording begins.
pub(super) fn put_new_recording(buf: &mut Vec<u8>) {
    buf.extend_from_slice(&NEW_RECORDING);
}

/// Appends what the original of a copy lacked.
pub(super) fn put_lacks(buf: &mut Vec<u8>, lacks: &Lacks) {
    buf.extend_from_slice(&LACKS);
    for n in std::iter::once(lacks.len() as u64).chain(*lacks) {
        let at = buf.len();
        buf.resize(at + BYTES_MAX, 0);
        let end = put(buf, at, n);
        buf.truncate(end);
    }
}

/// What the original lacked; counts that a later writer has beside these say nothing here.
fn lacks(bytes: &mut Bytes<'_>) -> Option<Lacks> {
    let mut lacks = Lacks::default();
    for place in 0..bytes.number()? {
        let count = bytes.number()?;
        if let Some(own) = lacks.get_mut(usize::try_from(place).ok()?) {
            *own = count;
        }
    }
    Some(lacks)
}

fn device_number(dev: Dev) -> u64 {
    u64::from(dev.major) << 16 | u64::from(dev.minor)
}

fn device(number: u64) -> Option<Dev> {
    let number = u32::try_from(number).ok()?;
    Some(Dev {
        major: (number >> 16) as u16,
        minor: number as u16,
    })
}

/// Lengths are mostly whole sectors: those are counted in sectors.
fn length_number(bytes: u32) -> u64 {
    if bytes.is_multiple_of(512) {
        u64::from(bytes / 512) << 1
    } else {
        u64::from(bytes) << 1 | 1
    }
}

fn length(number: u64) -> Option<u32> {
    let bytes = if number & 1 == 0 {
        (number >> 1).checked_mul(512)?
    } else {
        number >> 1
    };
    u32::try_from(bytes).ok()
}

impl Last {
    /// Appends an event; a message's text follows separately.
    #[inline]
    pub(super) fn put_event(&mut self, buf: &mut Vec<u8>, e: &Event) {
        let last = &self.0;
        let mut r = [0; RECORD_BYTES_MAX];
        let mut place = 0;
        if e.dev != last.dev {
            place |= DEVICE;
        }
        if e.rwbs != last.rwbs {
            place |= FLAGS;
        }
        if e.bytes != last.bytes {
            place |= LENGTH;
        }
        if e.sector != last.sector {
            place |= SECTOR;
        }
        let same_task = e.pid == last.pid && e.cpu == last.cpu;
        let extras = e.arg != 0 || e.error != 0 || e.from_dev != Dev::default();
        r[0] = (e.action as u8 - 1)
            | if place == 0 { SAME_PLACE } else { 0 }
            | if same_task { SAME_TASK } else { 0 }
            | if extras { EXTRAS } else { 0 };
        let mut at = put(&mut r, 1, fold(e.time.0.wrapping_sub(last.time.0)));
        if place != 0 {
            r[at] = place;
            at += 1;
            if place & DEVICE != 0 {
                at = put(&mut r, at, device_number(e.dev));
            }
            if place & FLAGS != 0 {
                at = put(&mut r, at, e.rwbs.0.into());
            }
            if place & LENGTH != 0 {
                at = put(&mut r, at, length_number(e.bytes));
            }
            if place & SECTOR != 0 {
                at = put(&mut r, at, fold(e.sector.wrapping_sub(last.sector)));
            }
        }
        if !same_task {
            at = put(&mut r, at, e.pid.into());
            at = put(&mut r, at, e.cpu.into());
        }
        if extras {
            at = put(&mut r, at, e.arg);
            at = put(&mut r, at, e.error.into());
            at = put(&mut r, at, device_number(e.from_dev));
        }
        buf.extend_from_slice(&r[..at]);
        self.0 = *e;
    }

    /// Appends a message.
    pub(super) fn put_message(&mut self, buf: &mut Vec<u8>, e: &Event, text: &str) {
        self.put_event(
            buf,
            &Event {
                action: Action::Message,
                ..*e
            },
        );
        put_text(buf, prefix(text, TEXT_BYTES_MAX));
    }

    /// Appends the name of a process.
    pub(super) fn put_process(&mut self, buf: &mut Vec<u8>, time: Time, pid: Pid, comm: &str) {
        let mut r = [PROCESS; 1 + 2 * BYTES_MAX];
        let at = put(&mut r, 1, fold(time.0.wrapping_sub(self.0.time.0)));
        let at = put(&mut r, at, pid.into());
        buf.extend_from_slice(&r[..at]);
        put_text(buf, prefix(comm, TEXT_BYTES_MAX));
        self.0.time = time;
    }

    /// Reads a record; `None` if it makes no sense.
    #[inline]
    pub(super) fn read<'a>(&mut self, bytes: &mut Bytes<'a>) -> Option<Read<'a>> {
        let first = bytes.byte()?;
        let time = Time(self.0.time.0.wrapping_add(unfold(bytes.number()?)));
        if first & PROCESS != 0 {
            if first == NEW_RECORDING[0] && time == self.0.time {
                return Some(Read::NewRecording);
            }
            if first == LACKS[0] && time == self.0.time {
                return Some(Read::Lacks(lacks(bytes)?));
            }
            if first != PROCESS {
                return None;
            }
            let pid = Pid::try_from(bytes.number()?).ok()?;
            self.0.time = time;
            return Some(Read::Process(time, pid, text(bytes)?));
        }
        let action = Action::from_code((first & CODE) + 1)?;
        let mut e = Event {
            time,
            action,
            arg: 0,
            error: 0,
            from_dev: Dev::default(),
            ..self.0
        };
        if first & SAME_PLACE == 0 {
            let place = bytes.byte()?;
            if place & !(DEVICE | FLAGS | LENGTH | SECTOR) != 0 {
                return None;
            }
            if place & DEVICE != 0 {
                e.dev = device(bytes.number()?)?;
            }
            if place & FLAGS != 0 {
                e.rwbs = Rwbs(u16::try_from(bytes.number()?).ok()?);
            }
            if place & LENGTH != 0 {
                e.bytes = length(bytes.number()?)?;
            }
            if place & SECTOR != 0 {
                e.sector = e.sector.wrapping_add(unfold(bytes.number()?));
            }
        }
        if first & SAME_TASK == 0 {
            e.pid = Pid::try_from(bytes.number()?).ok()?;
            e.cpu = u16::try_from(bytes.number()?).ok()?;
        }
        if first & EXTRAS != 0 {
            e.arg = bytes.number()?;
            e.error = u16::try_from(bytes.number()?).ok()?;
            e.from_dev = device(bytes.number()?)?;
        }
        self.0 = e;
        Some(if action == Action::Message {
            Read::Message(e, text(bytes)?)
        } else {
            Read::Event(e)
        })
    }
}

fn put_text(buf: &mut Vec<u8>, text: &str) {
    let mut len = [0; BYTES_MAX];
    let at = put(&mut len, 0, text.len() as u64);
    buf.extend_from_slice(&len[..at]);
    buf.extend_from_slice(text.as_bytes());
}

fn text<'a>(bytes: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let len = usize::try_from(bytes.number()?).ok()?;
    if len > TEXT_BYTES_MAX {
        return None;
    }
    bytes.slice(len)
}
