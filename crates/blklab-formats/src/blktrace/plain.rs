// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records as nearly all are: of version 7, little-endian, in memory already, about
//! an event without payload, next in the sequence of their CPU. They are decoded
//! where they lie. Whatever is otherwise with a record is for `read.rs`.

use super::read::Stream;
use super::{MAGIC, RECORD_BYTES, VERSION, category, device, error, rwbs};
use crate::plausible;
use blklab_trace::{Action, Event};
use blklab_types::{Dev, Time};
use std::io::Read;

/// The bytes of a record.
struct Plain<'a>(&'a [u8; RECORD_BYTES]);

impl Plain<'_> {
    #[inline(always)]
    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        let bytes = self.0[at..].first_chunk();
        *bytes.expect("fields lie inside a record")
    }

    #[inline(always)]
    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.bytes(at))
    }

    #[inline(always)]
    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes(at))
    }

    #[inline(always)]
    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes(at))
    }

    /// Its event and sequence number, if it is plain in itself.
    #[inline(always)]
    fn event(&self) -> Option<(Event, u32)> {
        let (code, categories) = (self.u16(28), u32::from(self.u16(30)));
        let action = Action::from_code(u8::try_from(code).ok()?)?;
        let has_payload = self.u16(46) > 0
            || matches!(
                action,
                Action::Unplug
                    | Action::UnplugTimer
                    | Action::Split
                    | Action::Remap
                    | Action::Message
            );
        let is_note = categories & category::NOTIFY != 0;
        if self.u32(0) != MAGIC | VERSION || has_payload || is_note {
            return None;
        }
        let bytes = self.u32(24);
        let event = Event {
            time: Time(self.u64(8)),
            sector: self.u64(16),
            arg: 0,
            bytes,
            pid: self.u32(32),
            dev: device(self.u32(36)),
            from_dev: Dev::default(),
            error: error(self.u16(44)),
            cpu: u16::try_from(self.u32(40)).ok()?,
            rwbs: rwbs(categories, 0, bytes),
            action,
        };
        plausible::is_event(&event).then_some((event, self.u32(4)))
    }
}

impl<R: Read> Stream<R> {
    /// The event of the next record, if it is plain and not later than `until`.
    #[inline]
    pub(super) fn next_plain(&mut self, until: Time) -> Option<Event> {
        if !self.is_narrow() {
            return None;
        }
        let record = Plain(self.input.available().first_chunk()?);
        let (event, sequence) = record.event()?;
        let is_in_order = event.time >= self.last_time && event.time <= until;
        let is_of_cpu = self.cpu.is_none_or(|cpu| cpu == event.cpu);
        if !is_in_order || !is_of_cpu || !self.sequences.is_next(event.cpu, sequence) {
            return None;
        }
        self.last_time = event.time;
        self.input.skip(RECORD_BYTES);
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use crate::blktrace::{BlktraceReader, BlktraceStream};
    use blklab_trace::{Action, Event, Rwbs, TraceSink, TraceSource as _};
    use blklab_types::{Dev, Time};

    #[derive(Default)]
    struct Kept(Vec<String>);

    impl TraceSink for Kept {
        fn event(&mut self, event: &Event) {
            self.0.push(format!("{event:?}"));
        }

        fn message(&mut self, event: &Event, text: &str) {
            self.0.push(format!("{event:?} {text}"));
        }

        fn process(&mut self, time: Time, pid: u32, comm: &str) {
            self.0.push(format!("{time} {pid} {comm}"));
        }

        fn new_recording(&mut self) {
            self.0.push("new recording".to_owned());
        }
    }

    /// Events of all actions on three CPUs, with names and messages, some of them
    /// earlier than those before.
    fn trace() -> Vec<u8> {
        let mut out = BlktraceStream::new(Vec::new());
        for n in 0..400_u64 {
            let action = Action::ALL[n as usize % Action::ALL.len()];
            let event = Event {
                time: Time(1_000 * n - 7_000 * u64::from(n % 50 == 9)),
                sector: if n == 77 { 1 << 60 } else { 8 * n },
                arg: if action == Action::Split {
                    8 * n + 2
                } else {
                    3
                },
                bytes: 4096 * (n as u32 % 3),
                pid: 100 + n as u32 % 4,
                dev: Dev { major: 8, minor: 0 },
                from_dev: Dev { major: 9, minor: 1 },
                error: if action == Action::Complete { 5 } else { 0 },
                cpu: n as u16 % 3,
                rwbs: [Rwbs::READ, Rwbs::WRITE.with(Rwbs::SYNC), Rwbs::PC][n as usize % 3],
                action,
            };
            out.process(event.time, event.pid, "dd");
            match action {
                Action::Message => out.message(&event, "text"),
                _ => out.event(&event),
            }
        }
        out.finish().unwrap()
    }

    /// One by one or all at once, a trace says the same, a damaged one too.
    #[test]
    fn plain_records_are_read_as_others() {
        let whole = trace();
        for damaged in (5..whole.len()).step_by(131).map(Some).chain([None]) {
            let mut bytes = whole.clone();
            if let Some(at) = damaged {
                bytes[at] ^= 0x15;
            }
            let mut slowly = BlktraceReader::from_stream(&bytes[..], "x");
            let mut expected = Kept::default();
            while let Some(item) = slowly.next_item().unwrap() {
                item.send_to(&mut expected);
            }
            let mut reader = BlktraceReader::from_stream(&bytes[..], "x");
            let mut found = Kept::default();
            reader.send_all(&mut found).unwrap();
            assert_eq!(found.0, expected.0, "damaged at {damaged:?}");
            let counts = format!("{:?}", reader.counts());
            assert_eq!(counts, format!("{:?}", slowly.counts()), "{damaged:?}");
        }
    }
}
