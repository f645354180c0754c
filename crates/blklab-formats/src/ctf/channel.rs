// SPDX-License-Identifier: MIT OR Apache-2.0
//! One file of packets: one event after the other.

use super::decode::{Cursor, Value, Values};
use super::folder::PACKET_MAGIC;
use super::metadata::{EventClass, Metadata, Stream};
use super::types::{Scope, Symbol};
use crate::store::Store;
use std::io;

/// A packet is held in memory: buffers of tracers have at most this.
const PACKET_MAX: u64 = 256 << 20;
/// Looked at for the sizes of a packet.
const HEAD_BYTES: usize = 4096;

/// What comes next.
#[derive(Debug)]
pub(super) enum Next {
    /// An event, at a time of the trace's clock in its ticks.
    Event {
        ticks: u64,
    },
    /// Events that the tracer dropped.
    Lost(u64),
    /// Something that makes no sense; some bytes were passed over.
    Damaged(&'static str, u64),
    /// The file ends inside a packet, by so many bytes.
    Truncated(u64),
    End,
}

/// A file of packets.
#[derive(Debug)]
pub(super) struct Channel {
    store: Store,
    /// Of the next packet in the file, in bytes.
    next_packet: u64,
    packet: Vec<u8>,
    /// The kind of stream; none outside packets.
    stream: Option<u64>,
    /// In the packet, in bits.
    at: u64,
    content: u64,
    clock: u64,
    pub(super) cpu: u16,
    /// Events dropped up to the last packet.
    nr_discarded: Option<u64>,
    sequence: Option<u64>,
    values: Values,
    /// The number of the event.
    event: u64,
}

impl Channel {
    pub(super) fn new(store: Store, idx: usize) -> Channel {
        Channel {
            store,
            next_packet: 0,
            packet: Vec::new(),
            stream: None,
            at: 0,
            content: 0,
            clock: 0,
            // Where packets do not say it.
            cpu: u16::try_from(idx).unwrap_or(u16::MAX),
            nr_discarded: None,
            sequence: None,
            values: Values::default(),
            event: 0,
        }
    }

    /// Goes to the next event.
    pub(super) fn next(&mut self, metadata: &Metadata) -> io::Result<Next> {
        loop {
            let Some(stream) = self.stream.and_then(|id| metadata.streams.get(&id)) else {
                match self.begin(metadata)? {
                    Some(next) => return Ok(next),
                    None => continue,
                }
            };
            // What is left may be less than an event needs to begin on its boundary.
            let align = stream.event_header.map_or(1, |id| metadata.types.align(id));
            let at = self.at.next_multiple_of(align.into());
            if at >= self.content {
                self.stream = None;
                continue;
            }
            return Ok(match self.event(metadata, stream) {
                Ok(ticks) => Next::Event { ticks },
                Err(what) => {
                    // Where the next one begins is not known.
                    let rest = (self.content - self.at).div_ceil(8);
                    self.stream = None;
                    Next::Damaged(what, rest)
                }
            });
        }
    }

    fn event(&mut self, metadata: &Metadata, stream: &Stream) -> Result<u64, &'static str> {
        let mut cursor = Cursor {
            types: &metadata.types,
            data: &self.packet,
            at: self.at,
            end: self.content,
            big_endian: metadata.big_endian,
            clock: self.clock,
            nr_parts: 0,
        };
        let values = &mut self.values;
        let mut read = |scope, class: Option<&EventClass>| {
            values.begin(scope);
            let part = metadata.part(stream, class, scope);
            let done = part.map_or(Some(()), |id| cursor.read(0, id, values));
            done.ok_or("an event does not fit into its packet")
        };
        read(Scope::EventHeader, None)?;
        let id = values.number(Scope::EventHeader, metadata.known.id);
        self.event = id.unwrap_or(0);
        let Some(class) = stream.events.get(&self.event) else {
            return Err("an event of a number that the metadata do not have");
        };
        let mut read = |scope| {
            values.begin(scope);
            let part = metadata.part(stream, Some(class), scope);
            let done = part.map_or(Some(()), |id| cursor.read(0, id, values));
            done.ok_or("an event does not fit into its packet")
        };
        // The clock that counts is that of the header.
        read(Scope::StreamEventContext)?;
        read(Scope::EventContext)?;
        read(Scope::Fields)?;
        if cursor.at == self.at {
            return Err("events without a single bit");
        }
        (self.at, self.clock) = (cursor.at, cursor.clock);
        Ok(self.clock)
    }

    /// Begins the next packet; says what is to be said of it.
    fn begin(&mut self, metadata: &Metadata) -> io::Result<Option<Next>> {
        let from = self.next_packet;
        self.store.read(from, HEAD_BYTES, &mut self.packet)?;
        if self.packet.is_empty() {
            return Ok(Some(Next::End));
        }
        let Some(head) = self.head(metadata) else {
            return self.give_up("a packet does not begin as one");
        };
        let (content, size) = (head.content, head.size);
        let is_sound = content <= size && content >= head.end && size % 8 == 0;
        if !is_sound || size / 8 > PACKET_MAX {
            return self.give_up("the sizes of a packet make no sense");
        }
        let len = (size / 8) as usize;
        if len > self.packet.len() {
            self.store.read(from, len, &mut self.packet)?;
        }
        let missing = len.saturating_sub(self.packet.len()) as u64;
        self.packet.truncate(len);
        self.next_packet = from + self.packet.len() as u64;
        self.stream = Some(head.stream);
        self.at = head.end;
        self.content = content.min(self.packet.len() as u64 * 8);
        Ok(if missing > 0 {
            Some(Next::Truncated(missing))
        } else {
            self.lost(&head)
        })
    }

    /// The rest of the file has no meaning.
    fn give_up(&mut self, what: &'static str) -> io::Result<Option<Next>> {
        let mut rest = 0;
        while !self.packet.is_empty() {
            rest += self.packet.len() as u64;
            let at = self.next_packet + rest;
            self.store.read(at, 1 << 20, &mut self.packet)?;
        }
        self.next_packet += rest;
        Ok(Some(Next::Damaged(what, rest)))
    }

    /// What was dropped before and in a packet.
    fn lost(&mut self, head: &Head) -> Option<Next> {
        let mut nr_lost = 0;
        if let Some(now) = head.nr_discarded {
            // The count is that of the whole recording, and may have 32 bits only.
            let before = self.nr_discarded.replace(now).unwrap_or(0);
            nr_lost = now.checked_sub(before).unwrap_or(now);
        }
        if let Some(now) = head.sequence {
            let before = self.sequence.replace(now);
            // Packets that were overwritten, each with an event at least.
            let expected = before.map_or(now, |n| n.wrapping_add(1));
            nr_lost = nr_lost.saturating_add(now.saturating_sub(expected));
        }
        (nr_lost > 0).then_some(Next::Lost(nr_lost))
    }

    /// Reads how a packet begins.
    fn head(&mut self, metadata: &Metadata) -> Option<Head> {
        let whole = self.packet.len() as u64 * 8;
        let mut cursor = Cursor {
            types: &metadata.types,
            data: &self.packet,
            at: 0,
            end: whole,
            big_endian: metadata.big_endian,
            clock: self.clock,
            nr_parts: 0,
        };
        let (known, values) = (&metadata.known, &mut self.values);
        values.begin(Scope::PacketHeader);
        if let Some(id) = metadata.packet_header {
            cursor.read(0, id, values)?;
        }
        let said = |values: &Values, name| values.number(Scope::PacketHeader, name);
        if said(values, known.magic).is_some_and(|magic| magic != PACKET_MAGIC.into()) {
            return None;
        }
        let id = said(values, known.stream_id);
        let stream_id = match id {
            None if metadata.streams.len() == 1 => *metadata.streams.keys().next()?,
            id => id.unwrap_or(0),
        };
        let stream = metadata.streams.get(&stream_id)?;
        values.begin(Scope::PacketContext);
        if let Some(id) = stream.packet_context {
            cursor.read(0, id, values)?;
        }
        let said = |name| values.number(Scope::PacketContext, name);
        // Without sizes a file is one packet.
        let size = said(known.packet_size).unwrap_or(u64::MAX);
        if let Some(begin) = said(known.timestamp_begin) {
            self.clock = begin;
        }
        if let Some(cpu) = said(known.cpu_id) {
            self.cpu = u16::try_from(cpu).ok()?;
        }
        let size = match size {
            u64::MAX => self.store.len().ok()?.saturating_sub(self.next_packet) * 8,
            size => size,
        };
        Some(Head {
            stream: stream_id,
            content: said(known.content_size).unwrap_or(size),
            size,
            nr_discarded: said(known.events_discarded),
            sequence: said(known.packet_seq_num),
            end: cursor.at,
        })
    }

    /// The kind of the event.
    pub(super) fn class<'m>(&self, metadata: &'m Metadata) -> Option<&'m EventClass> {
        metadata.streams.get(&self.stream?)?.events.get(&self.event)
    }

    /// What the event has under a name: its own fields first.
    pub(super) fn value(&self, is_it: impl Fn(Symbol) -> bool, scopes: &[Scope]) -> Option<&Value> {
        let mut all = scopes
            .iter()
            .flat_map(|s| self.values.within(*s).iter().rev());
        all.find(|value| is_it(value.name))
    }

    /// The bytes of a text.
    pub(super) fn text(&self, value: &Value) -> Option<&[u8]> {
        let bytes = self.packet.get(value.text.clone())?;
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        (!value.text.is_empty()).then_some(&bytes[..end])
    }
}

/// How a packet begins.
struct Head {
    stream: u64,
    /// In bits.
    content: u64,
    /// In bits.
    size: u64,
    /// Events dropped since the recording began.
    nr_discarded: Option<u64>,
    sequence: Option<u64>,
    /// Where events begin, in bits.
    end: u64,
}
