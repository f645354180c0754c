// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets into a file.

use super::messages::{
    EventType, FtraceEventBundle, SEQUENCE_BEGINS, TracePacket, TrackDescriptor, TrackEvent,
};
use prost::Message as _;
use std::io::{self, Write};

/// The sequence of all packets: the letters of `blklab`'s first half.
const SEQUENCE: u32 = 0x62_6c_6b;

/// Field 1 of `Trace`, of which a file is one: a packet, behind its length.
const PACKET_KEY: u8 = 1 << 3 | 2;

/// Packets that go to a file; the first error is kept.
pub(super) struct Stream<W> {
    inner: W,
    buf: Vec<u8>,
    error: Option<io::Error>,
}

/// The first packet.
fn begin() -> TracePacket {
    TracePacket {
        sequence_flags: Some(SEQUENCE_BEGINS),
        ..TracePacket::default()
    }
}

fn put(buf: &mut Vec<u8>, mut packet: TracePacket) {
    packet.trusted_packet_sequence_id = SEQUENCE;
    buf.push(PACKET_KEY);
    packet
        .encode_length_delimited(buf)
        .expect("a vector has room");
}

/// Whether a file begins as ours do.
pub(crate) fn is_head(head: &[u8]) -> bool {
    let mut ours = Vec::new();
    put(&mut ours, begin());
    head.starts_with(&ours)
}

impl<W: Write> Stream<W> {
    pub(super) fn new(inner: W) -> Stream<W> {
        let mut stream = Stream {
            inner,
            buf: Vec::new(),
            error: None,
        };
        stream.packet(begin());
        stream
    }

    fn packet(&mut self, packet: TracePacket) {
        self.buf.clear();
        put(&mut self.buf, packet);
        if self.error.is_none() {
            self.error = self.inner.write_all(&self.buf).err();
        }
    }

    pub(super) fn track(&mut self, track: TrackDescriptor) {
        self.packet(TracePacket {
            track_descriptor: Some(track),
            ..TracePacket::default()
        });
    }

    pub(super) fn ftrace(&mut self, bundle: FtraceEventBundle) {
        self.packet(TracePacket {
            ftrace_events: Some(bundle),
            ..TracePacket::default()
        });
    }

    pub(super) fn event(&mut self, time_ns: u64, kind: EventType, event: TrackEvent) {
        self.packet(TracePacket {
            timestamp: Some(time_ns),
            track_event: Some(TrackEvent {
                kind: kind as i32,
                ..event
            }),
            ..TracePacket::default()
        });
    }

    pub(super) fn finish(mut self) -> io::Result<W> {
        if let Some(e) = self.error {
            return Err(e);
        }
        self.inner.flush()?;
        Ok(self.inner)
    }
}
