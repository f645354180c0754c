// SPDX-License-Identifier: MIT OR Apache-2.0
//! What metadata say of a trace: its packets, streams and events.

use super::types::{Scope, Symbol, TypeId, Types};
use std::collections::HashMap;

/// What is wrong with metadata, and where.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) line: u32,
    pub(super) what: String,
}

impl Problem {
    pub(super) fn new(line: u32, what: impl Into<String>) -> Problem {
        Problem {
            line,
            what: what.into(),
        }
    }
}

/// A trace as its metadata describe it.
#[derive(Debug, Default)]
pub(super) struct Metadata {
    pub(super) types: Types,
    /// The order of bytes of numbers that name none.
    pub(super) big_endian: bool,
    pub(super) packet_header: Option<TypeId>,
    pub(super) streams: HashMap<u64, Stream>,
    /// What a second is on the clock.
    pub(super) clock_hz: u64,
    /// `env`: who recorded it, and where.
    pub(super) env: HashMap<String, String>,
    /// Names that readers ask for.
    pub(super) known: Known,
}

/// A kind of stream.
#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) packet_context: Option<TypeId>,
    pub(super) event_header: Option<TypeId>,
    pub(super) event_context: Option<TypeId>,
    pub(super) events: HashMap<u64, EventClass>,
}

/// A kind of event.
#[derive(Debug)]
pub(super) struct EventClass {
    pub(super) name: String,
    pub(super) context: Option<TypeId>,
    pub(super) fields: Option<TypeId>,
}

/// Names with a meaning of their own.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) magic: Symbol,
    pub(super) stream_id: Symbol,
    pub(super) content_size: Symbol,
    pub(super) packet_size: Symbol,
    pub(super) packet_seq_num: Symbol,
    pub(super) events_discarded: Symbol,
    pub(super) cpu_id: Symbol,
    pub(super) timestamp_begin: Symbol,
    pub(super) id: Symbol,
}

impl Known {
    pub(super) fn new(types: &mut Types) -> Known {
        Known {
            magic: types.symbol("magic"),
            stream_id: types.symbol("stream_id"),
            content_size: types.symbol("content_size"),
            packet_size: types.symbol("packet_size"),
            packet_seq_num: types.symbol("packet_seq_num"),
            events_discarded: types.symbol("events_discarded"),
            cpu_id: types.symbol("cpu_id"),
            timestamp_begin: types.symbol("timestamp_begin"),
            id: types.symbol("id"),
        }
    }
}

impl Metadata {
    /// Whether a kernel was traced, as far as the metadata say.
    pub(super) fn is_of_kernel(&self) -> bool {
        self.env.get("domain").is_none_or(|d| d == "kernel")
    }

    /// The type of a part of the packets, of a stream, or of an event.
    pub(super) fn part(
        &self,
        stream: &Stream,
        event: Option<&EventClass>,
        scope: Scope,
    ) -> Option<TypeId> {
        match scope {
            Scope::PacketHeader => self.packet_header,
            Scope::PacketContext => stream.packet_context,
            Scope::EventHeader => stream.event_header,
            Scope::StreamEventContext => stream.event_context,
            Scope::EventContext => event?.context,
            Scope::Fields => event?.fields,
        }
    }
}
