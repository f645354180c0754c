// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of Perfetto: packets, of which those of ftrace have the kernel's events.
//!
//! ```text
//! Trace ─► TracePacket ─┬─► FtraceEventBundle: a CPU ─► FtraceEvent: time, task, one message
//!                       ├─► compressed_packets: packets again
//!                       └─► ProcessTree: names
//! ```
//!
//! Packets of different CPUs come in any order, so all events are put in order in memory
//! before the first is given.

mod fields;
mod layouts;
mod wire;

pub use layouts::number_of;

use crate::fields::Fields as _;
use crate::format::{Format, Reader};
use crate::input::Input;
use crate::kernel;
use crate::lttng;
use crate::names::{self, Comm};
use crate::order::{Given, Held, Said};
use crate::source::Source;
use crate::tracepoints::{Kind, Kinds};
use crate::{FormatError, ReadCounts, plausible};
use blklab_trace::{Event, Item, TraceSource};
use blklab_types::{Pid, Time};
use fields::Described;
use flate2::read::ZlibDecoder;
use std::collections::HashMap;
use std::io::Read;
use wire::{Message, VARINT_BYTES, Value, varint};

/// Its row.
pub(crate) static FORMAT: Format = Format {
    name: "perfetto",
    summary: "packets of Perfetto with ftrace's events; read and written",
    has_printed_times: false,
    says_losses: true,
    says_flags: true,
    dialect: None,
    recognises,
    open: |input, _| Ok(Box::new(PerfettoReader::new(input)?)),
};

/// Field 1 of `Trace`: a packet, behind its length.
const PACKET_KEY: u8 = 1 << 3 | 2;

/// Longest packet, and longest content of a compressed one.
const PACKET_BYTES_MAX: usize = 64 << 20;

/// Most events of a trace: some 2 GB of memory.
const EVENTS_MAX: usize = 16 << 20;

/// Bytes of a first packet that are looked at.
const HEAD_BYTES: usize = 4096;

/// `TracePacket`.
mod packet {
    pub(super) const FTRACE_EVENTS: u32 = 1;
    pub(super) const PROCESS_TREE: u32 = 2;
    pub(super) const COMPRESSED: u32 = 50;
    pub(super) const ZSTD_COMPRESSED: u32 = 133;
}

/// `FtraceEventBundle`.
mod bundle {
    pub(super) const CPU: u32 = 1;
    pub(super) const EVENT: u32 = 2;
    pub(super) const LOST_EVENTS: u32 = 3;
    pub(super) const DESCRIPTORS: u32 = 11;
}

/// `FtraceEvent`.
mod event {
    pub(super) const TIMESTAMP: u32 = 1;
    pub(super) const PID: u32 = 2;
    pub(super) const PRINT: u32 = 3;
    pub(super) const COMMON_FLAGS: u32 = 5;
}

/// Begins what a message of blktrace is in `print`, which has no event of its own.
pub const MESSAGE_MARK: &str = "blktrace m ";

/// The first packet is whole fields, of which one is of those that every packet of a recorder
/// has: its time, its sequence, who is trusted, the service's own.
fn recognises(input: &mut Input<Source>) -> Result<bool, FormatError> {
    let head = input.fill(HEAD_BYTES)?;
    let Some((&PACKET_KEY, rest)) = head.split_first() else {
        return Ok(false);
    };
    let Some((len, rest)) = varint(rest) else {
        return Ok(false);
    };
    let first = rest.split_at_checked(usize::try_from(len).unwrap_or(usize::MAX));
    Ok(match first {
        Some((first, rest)) => {
            let goes_on = rest.first().is_none_or(|key| *key == PACKET_KEY);
            goes_on && len > 0 && is_packet(Message(first))
        }
        // A first packet that is longer: of events, of which the first can be seen.
        None => (len as usize) < PACKET_BYTES_MAX && is_long_bundle(rest),
    })
}

fn is_packet(packet: Message<'_>) -> bool {
    const OFTEN: [u32; 9] = [1, 2, 3, 6, 8, 10, 33, 50, 133];
    packet.is_whole() && packet.flatten().any(|(n, _)| OFTEN.contains(&n))
}

/// Whether the beginning of a packet is that of a bundle with an event in it.
fn is_long_bundle(head: &[u8]) -> bool {
    let Some((&PACKET_KEY, rest)) = head.split_first() else {
        return false;
    };
    let Some((_, rest)) = varint(rest) else {
        return false;
    };
    let mut fields = Message(rest);
    fields.any(|f| matches!(f, Ok((bundle::EVENT, Value::Bytes(_)))))
}

/// Reads packets.
#[derive(Debug)]
struct PerfettoReader {
    events: std::vec::IntoIter<Held>,
    given: Given,
    counts: ReadCounts,
}

impl PerfettoReader {
    fn new(mut input: Input<Source>) -> Result<PerfettoReader, FormatError> {
        let mut packets = Packets::default();
        while packets.next(&mut input)? {}
        let Packets {
            mut events, counts, ..
        } = packets;
        if events.is_empty() {
            return Err(FormatError::Foreign {
                input: input.name,
                what: "a trace of Perfetto without the kernel's events of block I/O",
                instead: "record with ftrace_events: \"block/*\" in the data source linux.ftrace",
                sums: None,
            });
        }
        // Those of one time stay in the order of the file.
        events.sort_by_key(Held::at_ns);
        Ok(PerfettoReader {
            events: events.into_iter(),
            given: Given::default(),
            counts,
        })
    }
}

impl TraceSource for PerfettoReader {
    type Error = FormatError;

    fn next_item(&mut self) -> Result<Option<Item<'_>>, FormatError> {
        if let Some(item) = self.given.pending() {
            return Ok(Some(item));
        }
        let next = self.events.next();
        Ok(next.map(|held| self.given.item(held, &mut self.counts)))
    }
}

impl Reader for PerfettoReader {
    fn counts(&self) -> &ReadCounts {
        &self.counts
    }
}

/// What the packets of a file have.
#[derive(Debug, Default)]
struct Packets {
    events: Vec<Held>,
    described: Described,
    kinds: Kinds,
    comms: HashMap<Pid, Comm>,
    counts: ReadCounts,
}

impl Packets {
    /// Takes the next field of the file; false at its end.
    fn next(&mut self, input: &mut Input<Source>) -> Result<bool, FormatError> {
        let head = input.fill(2 * VARINT_BYTES)?;
        if head.is_empty() {
            return Ok(false);
        }
        let nr = head.len();
        let Some((key, rest)) = varint(head) else {
            return Ok(self.ends_early());
        };
        let Some((len, rest)) = varint(rest) else {
            return Ok(self.ends_early());
        };
        if key & 7 != 2 {
            self.counts.damaged += 1;
            let place = input.offset();
            self.counts
                .example(|| format!("byte {place}: no packet begins here; the rest is not read"));
            return Ok(false);
        }
        let used = nr - rest.len();
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if len > PACKET_BYTES_MAX {
            return Err(FormatError::Header {
                input: input.name.clone(),
                problem: "a packet is longer than 64 MiB",
            });
        }
        input.skip(used);
        let bytes = input.fill(len)?;
        if bytes.len() < len {
            return Ok(self.ends_early());
        }
        if key >> 3 == 1 {
            self.packet(bytes, false);
        }
        input.skip(len);
        if self.events.len() > EVENTS_MAX {
            return Err(FormatError::Header {
                input: input.name.clone(),
                problem: "more than 16 million events, which are put in order in memory; record \
                          fewer kinds, or for less time",
            });
        }
        Ok(true)
    }

    /// The file ends inside a packet: there is nothing more.
    fn ends_early(&mut self) -> bool {
        self.counts.truncated = true;
        false
    }

    fn packet(&mut self, bytes: &[u8], is_unpacked: bool) {
        for field in Message(bytes) {
            match field {
                Ok((packet::FTRACE_EVENTS, Value::Bytes(bytes))) => self.bundle(bytes),
                Ok((packet::PROCESS_TREE, Value::Bytes(bytes))) => self.names(bytes),
                Ok((packet::COMPRESSED, Value::Bytes(bytes))) if !is_unpacked => {
                    self.unpacked(ZlibDecoder::new(bytes));
                }
                Ok((packet::ZSTD_COMPRESSED, Value::Bytes(bytes))) if !is_unpacked => {
                    match ruzstd::decoding::StreamingDecoder::new(bytes) {
                        Ok(decoder) => self.unpacked(decoder),
                        Err(_) => self.damaged("a compressed packet cannot be decompressed"),
                    }
                }
                Ok(_) => {}
                Err(_) => self.damaged("a packet makes no sense"),
            }
        }
    }

    /// Packets that were compressed.
    fn unpacked(&mut self, decoder: impl Read) {
        let mut plain = Vec::new();
        let read = decoder
            .take(PACKET_BYTES_MAX as u64 + 1)
            .read_to_end(&mut plain);
        if read.is_err() || plain.len() > PACKET_BYTES_MAX {
            return self.damaged("a compressed packet cannot be decompressed");
        }
        for field in Message(&plain) {
            match field {
                Ok((1, Value::Bytes(bytes))) => self.packet(bytes, true),
                Ok(_) => {}
                Err(_) => self.damaged("a compressed packet makes no sense"),
            }
        }
    }

    fn damaged(&mut self, what: &str) {
        self.counts.damaged += 1;
        self.counts.example(|| what.to_owned());
    }

    /// `ProcessTree`: processes with their command lines, threads with their names.
    fn names(&mut self, tree: &[u8]) {
        for process in Message(tree).bytes_of(1) {
            let process = Message(process);
            let cmdline = process.bytes_of(3).next().unwrap_or_default();
            let name = cmdline.rsplit(|b| *b == b'/').next().unwrap_or_default();
            self.name(process.field(1), name);
        }
        for thread in Message(tree).bytes_of(2) {
            let thread = Message(thread);
            let name = thread.field(2).and_then(Value::bytes);
            self.name(thread.field(1), name.unwrap_or_default());
        }
    }

    fn name(&mut self, pid: Option<Value<'_>>, name: &[u8]) {
        let pid = pid.and_then(Value::number).and_then(|n| n.try_into().ok());
        if let Some(pid) = pid.filter(|_| !name.is_empty()) {
            self.comms.insert(pid, names::comm(name));
        }
    }

    /// The events of a CPU.
    fn bundle(&mut self, bytes: &[u8]) {
        let message = Message(bytes);
        message
            .bytes_of(bundle::DESCRIPTORS)
            .for_each(|d| self.described.add(d));
        let cpu = message.field(bundle::CPU).and_then(Value::number);
        let cpu = cpu.and_then(|n| n.try_into().ok()).unwrap_or(0);
        let lost = message.field(bundle::LOST_EVENTS);
        if lost.and_then(Value::number).is_some_and(|n| n != 0) {
            // It does not say how many.
            self.counts.gaps += 1;
            self.counts.lost += 1;
        }
        for field in message {
            match field {
                Ok((bundle::EVENT, Value::Bytes(bytes))) => self.event(cpu, bytes),
                Ok(_) => {}
                Err(_) => self.damaged("the events of a CPU make no sense"),
            }
        }
    }

    fn event(&mut self, cpu: u16, bytes: &[u8]) {
        let message = Message(bytes);
        let number = |n| message.field(n).and_then(Value::number);
        let time = Time(number(event::TIMESTAMP).unwrap_or(0));
        let pid = number(event::PID).unwrap_or(0) as Pid;
        if !plausible::is_time(time) {
            return self.damaged(plausible::BAD_TIME);
        }
        let common = [event::TIMESTAMP, event::PID, event::COMMON_FLAGS];
        let said = message.flatten().find_map(|(n, value)| {
            let bytes = value.bytes().filter(|_| !common.contains(&n))?;
            Some((n, bytes))
        });
        match said {
            Some((event::PRINT, bytes)) => self.print(time, cpu, pid, bytes),
            Some((n, bytes)) => {
                let held = self.said(time, cpu, pid, n, bytes);
                self.events.extend(held);
            }
            None => self.damaged("an event without a kind"),
        }
    }

    /// What an event says; none if it is no event of ours.
    fn said(&mut self, time: Time, cpu: u16, pid: Pid, number: u32, bytes: &[u8]) -> Option<Held> {
        let Some(fields) = self.described.event(number, bytes) else {
            self.counts
                .other_event(format!("ftrace event {number}").as_bytes());
            return None;
        };
        let Some(kind) = self.kinds.kind(fields.name) else {
            let Some(said) = kernel::decode(fields.name, &fields) else {
                self.counts.other_event(fields.name);
                return None;
            };
            let Some(said) = said else {
                let name = String::from_utf8_lossy(fields.name).into_owned();
                self.damaged(&format!("{name} of CPU {cpu} makes no sense"));
                return None;
            };
            let event = kernel::event(time, pid, cpu, said);
            self.counts.kernel_events += 1;
            return Some(Held::kernel(&event, self.comms.get(&pid).copied()));
        };
        let comm = fields.text("comm").map(names::comm);
        let comm = comm.filter(|comm| !names::bytes(comm).is_empty());
        let Some(event) = lttng::event(kind, time, cpu, pid, &fields, &self.kinds) else {
            if matches!(kind, Kind::Plug(_)) {
                self.counts.other_event(fields.name);
            } else {
                let name = String::from_utf8_lossy(fields.name).into_owned();
                self.damaged(&format!("{name} of CPU {cpu} makes no sense"));
            }
            return None;
        };
        if !plausible::admits(&event, &mut self.counts, || format!("event of CPU {cpu}")) {
            return None;
        }
        self.kinds.saw(&event);
        let comm = comm.or_else(|| self.comms.get(&pid).copied());
        Some(Held::new(event, comm.map_or(Said::Event, Said::Named)))
    }

    /// `print`: what a program or a driver wrote; messages of blktrace among it.
    fn print(&mut self, time: Time, cpu: u16, pid: Pid, bytes: &[u8]) {
        let text = Message(bytes).field(2).and_then(Value::bytes);
        let message = text.and_then(|text| text.strip_prefix(MESSAGE_MARK.as_bytes()));
        let split = message.and_then(|m| m.split_at_checked(m.iter().position(|b| *b == b' ')?));
        let Some((dev, text)) = split.and_then(|(d, t)| Some((crate::text::device(d)?, t))) else {
            return self.counts.other_event(b"print");
        };
        self.counts.messages += 1;
        let event = Event::message(time, cpu, pid, dev);
        let text = String::from_utf8_lossy(text.trim_ascii()).into();
        self.events.push(Held::new(event, Said::Message(text)));
    }
}

#[cfg(test)]
mod tests;
