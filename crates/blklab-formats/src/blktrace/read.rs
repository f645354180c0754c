// SPDX-License-Identifier: MIT OR Apache-2.0
//! The records of one blktrace file, in either byte order.

use super::{
    CGROUP, CGROUP_BYTES, COMM_BYTES, MAGIC, RECORD_BYTES, VERSION, category, device, note, rwbs,
};
use crate::input::Input;
use crate::plausible;
use crate::sequence::Sequences;
use crate::{FormatError, ReadCounts};
use blklab_trace::{Action, Event, Rwbs};
use blklab_types::{Dev, Pid, Time};
use std::io::Read;

/// What a record says.
#[derive(Debug)]
pub(super) enum Said {
    /// An event, or a message whose text is with the stream.
    Event(Event),
    /// A name, whose text is with the stream.
    Process(Time, Pid),
}

/// One file, or a pipe.
#[derive(Debug)]
pub(super) struct Stream<R> {
    input: Input<R>,
    big_endian: bool,
    begun: bool,
    /// CPU that all records must have, for a file of one CPU.
    cpu: Option<u16>,
    sequences: Sequences,
    /// Text of the last message or name.
    pub(super) text: String,
}

/// The fields of a record's head, little-endian.
struct Head([u8; RECORD_BYTES]);

/// Where the fields lie, and how many bytes each has: `struct blk_io_trace` of
/// blktrace_api.h.
const FIELDS: [(usize, usize); 11] = [
    (0, 4),
    (4, 4),
    (8, 8),
    (16, 8),
    (24, 4),
    (28, 4),
    (32, 4),
    (36, 4),
    (40, 4),
    (44, 2),
    (46, 2),
];

impl Head {
    #[inline]
    fn new(bytes: &[u8; RECORD_BYTES], big_endian: bool) -> Head {
        let mut head = Head(*bytes);
        if big_endian {
            head.turn();
        }
        head
    }

    #[cold]
    fn turn(&mut self) {
        for (at, len) in FIELDS {
            self.0[at..at + len].reverse();
        }
    }

    #[inline]
    fn field<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut field = [0; N];
        field.copy_from_slice(&self.0[at..at + N]);
        field
    }

    #[inline]
    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.field(at))
    }

    #[inline]
    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.field(at))
    }

    #[inline]
    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.field(at))
    }
}

impl<R: Read> Stream<R> {
    pub(super) fn new(input: Input<R>, cpu: Option<u16>) -> Stream<R> {
        Stream {
            input,
            big_endian: false,
            begun: false,
            cpu,
            sequences: Sequences::default(),
            text: String::new(),
        }
    }

    /// The next record that says something, or `None` at the end.
    pub(super) fn next(&mut self, counts: &mut ReadCounts) -> Result<Option<Said>, FormatError> {
        if !self.begun {
            self.begin()?;
        }
        loop {
            let Some(bytes) = self.input.fill(RECORD_BYTES)?.first_chunk() else {
                self.cut(counts);
                return Ok(None);
            };
            let head = Head::new(bytes, self.big_endian);
            if head.u32(0) != MAGIC | VERSION {
                self.pass_over_damage(counts)?;
                continue;
            }
            let total = RECORD_BYTES + usize::from(head.u16(46));
            if total > RECORD_BYTES && self.input.fill(total)?.len() < total {
                self.cut(counts);
                return Ok(None);
            }
            let said = self.parse(&head, total, counts);
            self.input.skip(total);
            if said.is_some() {
                return Ok(said);
            }
        }
    }

    /// Looks at the first magic number.
    fn begin(&mut self) -> Result<(), FormatError> {
        self.begun = true;
        let name = self.input.name.clone();
        let first = self.input.fill(4)?;
        let Some(magic) = first.first_chunk::<4>() else {
            return Ok(());
        };
        let (little, big) = (u32::from_le_bytes(*magic), u32::from_be_bytes(*magic));
        self.big_endian = big & !0xff == MAGIC;
        let found = if self.big_endian { big } else { little };
        if found & !0xff != MAGIC {
            return Err(FormatError::Unrecognised {
                input: name,
                expected: "\"\\x07tae\" or \"eat\\x07\" (blktrace)",
                found: format!("\"{}\"", magic.escape_ascii()),
            });
        }
        if found & 0xff != VERSION {
            return Err(FormatError::Version {
                input: name,
                format: "blktrace",
                found: found & 0xff,
                supported: VERSION,
            });
        }
        Ok(())
    }

    /// The input ends here, perhaps inside a record.
    fn cut(&mut self, counts: &mut ReadCounts) {
        let rest = self.input.available().len();
        if rest > 0 {
            counts.truncated = true;
            counts.skipped_bytes += rest as u64;
        }
        self.input.skip(rest);
    }

    /// Goes on to the next magic number.
    fn pass_over_damage(&mut self, counts: &mut ReadCounts) -> Result<(), FormatError> {
        counts.damaged += 1;
        let (name, offset) = (&self.input.name, self.input.offset());
        counts.example(|| format!("{name}: no record at byte {offset}"));
        let mut magic = (MAGIC | VERSION).to_le_bytes();
        if self.big_endian {
            magic.reverse();
        }
        let mut skip = 1;
        while skip > 0 {
            self.input.skip(skip);
            counts.skipped_bytes += skip as u64;
            if self.input.fill(RECORD_BYTES)?.len() < RECORD_BYTES {
                break;
            }
            let rest = self.input.available();
            // The last bytes may be the beginning of a magic number.
            skip = rest
                .windows(4)
                .position(|w| w == magic)
                .unwrap_or(rest.len() - 3);
        }
        Ok(())
    }

    /// What a whole record, which is available, says. Counts it if that is
    /// nothing.
    fn parse(&mut self, head: &Head, total: usize, counts: &mut ReadCounts) -> Option<Said> {
        let payload = &self.input.available()[RECORD_BYTES..total];
        let categories = head.u32(28) >> 16;
        let code = head.u32(28) & 0xffff;
        let payload = match code & CGROUP {
            0 => payload,
            _ => payload.get(CGROUP_BYTES..).unwrap_or_default(),
        };
        let code = code & !CGROUP;
        let place = |text: &str| {
            let (name, offset) = (&self.input.name, self.input.offset());
            format!("{name}: {text} at byte {offset}")
        };
        let in_file = |cpu| self.cpu.is_none_or(|expected| expected == cpu);
        let Some(cpu) = u16::try_from(head.u32(40)).ok().filter(|cpu| in_file(*cpu)) else {
            counts.damaged += 1;
            counts.example(|| place(&format!("record of CPU {}", head.u32(40))));
            return None;
        };
        let time = Time(head.u64(8));
        if !plausible::is_time(time) {
            counts.damaged += 1;
            counts.example(|| place(plausible::BAD_TIME));
            return None;
        }
        let mut event = Event {
            time,
            sector: head.u64(16),
            arg: 0,
            bytes: head.u32(24),
            pid: head.u32(32),
            dev: device(head.u32(36)),
            from_dev: Dev::default(),
            error: error(head.u16(44)),
            cpu,
            rwbs: Rwbs::NONE,
            action: Action::Message,
        };
        if categories & category::NOTIFY != 0 {
            return self.parse_note(code, event, RECORD_BYTES..total, payload.len(), counts);
        }
        let known = u8::try_from(code)
            .ok()
            .filter(|c| *c < Action::Message as u8);
        let Some(action) = known.and_then(Action::from_code) else {
            counts.unknown += 1;
            counts.example(|| place(&format!("unknown action {code}")));
            return None;
        };
        event.action = action;
        event.rwbs = rwbs(categories, event.bytes);
        match (action, payload) {
            (Action::Unplug | Action::UnplugTimer | Action::Split, _) => {
                if let Some(arg) = payload.first_chunk() {
                    event.arg = u64::from_be_bytes(*arg);
                } else {
                    counts.damaged += 1;
                    counts.example(|| place("payload too short"));
                }
            }
            (Action::Remap, &[a, b, c, d, e, f, g, h, ref sector @ ..]) if sector.len() >= 8 => {
                event.from_dev = device(u32::from_be_bytes([a, b, c, d]));
                event.dev = device(u32::from_be_bytes([e, f, g, h]));
                event.arg = sector.iter().take(8).fold(0, |n, b| n << 8 | u64::from(*b));
            }
            (Action::Remap, _) => {
                counts.damaged += 1;
                counts.example(|| place("payload too short"));
            }
            _ => {}
        }
        plausible::check(&event, counts, || {
            format!(
                "{}: record at byte {}",
                self.input.name,
                self.input.offset()
            )
        });
        let sequence = head.u32(4);
        self.sequences.check(cpu, sequence, counts);
        Some(Said::Event(event))
    }

    fn parse_note(
        &mut self,
        code: u32,
        event: Event,
        payload: std::ops::Range<usize>,
        len: usize,
        counts: &mut ReadCounts,
    ) -> Option<Said> {
        let start = payload.end - len;
        let mut text = &self.input.available()[start..payload.end];
        match code {
            note::PROCESS => {
                text = &text[..text.len().min(COMM_BYTES)];
                let end = text.iter().position(|b| *b == 0).unwrap_or(text.len());
                self.text.clear();
                self.text.push_str(&String::from_utf8_lossy(&text[..end]));
                Some(Said::Process(event.time, event.pid))
            }
            note::MESSAGE => {
                self.text.clear();
                self.text.push_str(&String::from_utf8_lossy(text));
                Some(Said::Event(event))
            }
            note::TIMESTAMP => {
                counts.notes += 1;
                None
            }
            _ => {
                counts.unknown += 1;
                counts.example(|| format!("{}: unknown note {code}", self.input.name));
                None
            }
        }
    }
}

/// Kernels record the negative errno cut to 16 bits; older ones a positive
/// number.
fn error(recorded: u16) -> u16 {
    if recorded > u16::MAX - 4096 {
        recorded.wrapping_neg()
    } else {
        recorded
    }
}
