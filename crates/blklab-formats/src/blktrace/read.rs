// SPDX-License-Identifier: MIT OR Apache-2.0
//! The records of one blktrace file, in either byte order.

use super::{
    CGROUP, CGROUP_BYTES, COMM_BYTES, RECORD_BYTES, RECORD_WIDE_BYTES, VERSION, VERSION_WIDE,
    ZONE_PLUG, ZONE_UNPLUG, category, device, error, note, rwbs, version,
};
use crate::counts::Numbered;
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
    /// Another recording begins.
    NewRecording,
}

/// One file, or a pipe.
#[derive(Debug)]
pub(super) struct Stream<R> {
    pub(super) input: Input<R>,
    layout: Layout,
    begun: bool,
    /// The CPU whose file it is.
    pub(super) cpu: Option<u16>,
    pub(super) sequences: Sequences,
    pub(super) last_time: Time,
    /// The first event of another recording.
    held: Option<Event>,
    /// Text of the last message or name.
    pub(super) text: String,
}

/// How records are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    big_endian: bool,
    /// Whether they are of version 8.
    is_wide: bool,
}

/// What stands at the current place.
enum Looked {
    /// A record, and the length of its head.
    Head(Head, usize),
    /// Something else, which was passed over.
    Damage,
    End,
}

/// Whether a record begins with the magic number of [`Layout::COMMON`].
#[inline]
fn is_common(bytes: &[u8; RECORD_BYTES]) -> bool {
    let magic = [bytes[0], bytes[1], bytes[2], bytes[3]];
    u32::from_le_bytes(magic) == super::MAGIC | VERSION
}

impl Layout {
    /// Version 7, little-endian.
    const COMMON: Layout = Layout {
        big_endian: false,
        is_wide: false,
    };

    /// That of a magic number, if it can be read.
    fn from_magic(magic: [u8; 4]) -> Option<Layout> {
        let (version, big_endian) = version(magic)?;
        let is_wide = version == VERSION_WIDE;
        (is_wide || version == VERSION).then_some(Layout {
            big_endian,
            is_wide,
        })
    }

    /// The magic number.
    #[inline]
    fn magic(self) -> [u8; 4] {
        let version = if self.is_wide { VERSION_WIDE } else { VERSION };
        let magic = super::MAGIC | version;
        if self.big_endian {
            magic.to_be_bytes()
        } else {
            magic.to_le_bytes()
        }
    }

    /// Length of a record without its payload.
    #[inline]
    fn record_bytes(self) -> usize {
        if self.is_wide {
            RECORD_WIDE_BYTES
        } else {
            RECORD_BYTES
        }
    }
}

/// The fields of a record's head, little-endian, where version 7 has them; and the
/// upper half of an action of version 8.
struct Head([u8; RECORD_BYTES], u32);

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

/// Where version 8 has the fields behind the length, and how long they are: the
/// process, the halves of the action, device, CPU, error, length of the payload.
const WIDE_FIELDS: [(usize, usize); 6] = [(28, 4), (32, 8), (40, 4), (44, 4), (48, 2), (50, 2)];

impl Head {
    /// Of the bytes of a record.
    #[inline]
    fn new(bytes: &[u8], layout: Layout) -> Option<Head> {
        if layout.is_wide {
            return Head::wide(bytes.first_chunk()?, layout.big_endian);
        }
        let mut head = Head(*bytes.first_chunk()?, 0);
        if layout.big_endian {
            head.turn();
        }
        Some(head)
    }

    fn wide(bytes: &[u8; RECORD_WIDE_BYTES], big_endian: bool) -> Option<Head> {
        let mut bytes = *bytes;
        if big_endian {
            for (at, len) in FIELDS[..5].iter().chain(&WIDE_FIELDS) {
                bytes[*at..at + len].reverse();
            }
        }
        let mut head = Head(*bytes.first_chunk()?, 0);
        head.0[28..32].copy_from_slice(&bytes[32..36]);
        head.0[32..36].copy_from_slice(&bytes[28..32]);
        head.0[36..48].copy_from_slice(&bytes[40..52]);
        head.1 = u32::from_le_bytes(*bytes[36..].first_chunk()?);
        Some(head)
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
            layout: Layout::COMMON,
            begun: false,
            cpu,
            sequences: Sequences::default(),
            last_time: Time::ZERO,
            held: None,
            text: String::new(),
        }
    }

    /// The next record that says something, or `None` at the end.
    pub(super) fn next(&mut self, counts: &mut ReadCounts) -> Result<Option<Said>, FormatError> {
        if !self.begun {
            self.begin()?;
        }
        if let Some(event) = self.held.take() {
            return Ok(Some(Said::Event(event)));
        }
        loop {
            let bytes = self.input.fill(RECORD_BYTES)?.first_chunk();
            let (head, record_bytes) = match bytes {
                Some(bytes) if is_common(bytes) && self.layout == Layout::COMMON => {
                    (Head(*bytes, 0), RECORD_BYTES)
                }
                _ => match self.other_head(counts)? {
                    Looked::Head(head, record_bytes) => (head, record_bytes),
                    Looked::Damage => continue,
                    Looked::End => return Ok(None),
                },
            };
            let total = record_bytes + usize::from(head.u16(46));
            if total > record_bytes && self.input.fill(total)?.len() < total {
                self.cut(counts);
                return Ok(None);
            }
            let said = self.parse(&head, record_bytes..total, counts);
            self.input.skip(total);
            if said.is_some() {
                return Ok(said);
            }
        }
    }

    /// Whether the next record begins at the current place, and is little-endian of
    /// version 7.
    #[inline]
    pub(super) fn is_narrow(&self) -> bool {
        let Layout {
            big_endian,
            is_wide,
        } = self.layout;
        self.begun && !big_endian && !is_wide && self.held.is_none()
    }

    /// The head of a record that is not of the most common layout, or none.
    #[cold]
    fn other_head(&mut self, counts: &mut ReadCounts) -> Result<Looked, FormatError> {
        let layout = self.layout;
        let record_bytes = layout.record_bytes();
        let bytes = self.input.fill(record_bytes)?;
        let Some(head) = Head::new(bytes, layout) else {
            self.cut(counts);
            return Ok(Looked::End);
        };
        if bytes[..4] != layout.magic() {
            self.pass_over_damage(counts)?;
            return Ok(Looked::Damage);
        }
        Ok(Looked::Head(head, record_bytes))
    }

    /// Looks at the first magic number.
    fn begin(&mut self) -> Result<(), FormatError> {
        self.begun = true;
        let name = self.input.name.clone();
        let first = self.input.fill(4)?;
        let Some(magic) = first.first_chunk::<4>() else {
            return Ok(());
        };
        match (Layout::from_magic(*magic), version(*magic)) {
            (Some(layout), _) => self.layout = layout,
            (None, Some((found, _))) => {
                return Err(FormatError::Version {
                    input: name,
                    format: "blktrace",
                    found,
                    supported: "versions 7 and 8",
                });
            }
            (None, None) => {
                return Err(FormatError::Unrecognised {
                    input: name,
                    expected: "\"\\x07tae\" or \"eat\\x07\" (blktrace)",
                    found: format!("\"{}\"", magic.escape_ascii()),
                });
            }
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

    /// Goes on to the next magic number. That it is of another version or byte
    /// order is damage, too, but can be read.
    fn pass_over_damage(&mut self, counts: &mut ReadCounts) -> Result<(), FormatError> {
        counts.damaged += 1;
        let (name, offset) = (&self.input.name, self.input.offset());
        let other = self.input.available().first_chunk().copied();
        if let Some(layout) = other.and_then(Layout::from_magic) {
            counts.example(|| format!("{name}: byte order or version changes at byte {offset}"));
            self.layout = layout;
            return Ok(());
        }
        counts.example(|| format!("{name}: no record at byte {offset}"));
        let mut skip = 1;
        while skip > 0 {
            self.input.skip(skip);
            counts.skipped_bytes += skip as u64;
            if self.input.fill(RECORD_BYTES)?.len() < RECORD_BYTES {
                break;
            }
            let rest = self.input.available();
            let layouts = rest
                .windows(4)
                .map(|w| w.first_chunk().copied().and_then(Layout::from_magic));
            let next = layouts
                .enumerate()
                .find_map(|(at, layout)| Some((at, layout?)));
            if let Some((_, layout)) = next {
                self.layout = layout;
            }
            // The last bytes may be the beginning of a magic number.
            skip = next.map_or(rest.len() - 3, |(at, _)| at);
        }
        Ok(())
    }

    /// What a whole record, which is available, says. Counts it if that is
    /// nothing.
    fn parse(
        &mut self,
        head: &Head,
        payload: std::ops::Range<usize>,
        counts: &mut ReadCounts,
    ) -> Option<Said> {
        let range = payload;
        let payload = &self.input.available()[range.clone()];
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
        let Ok(cpu) = u16::try_from(head.u32(40)) else {
            counts.damaged += 1;
            counts.example(|| place(&format!("record of CPU {}", head.u32(40))));
            return None;
        };
        // blkparse passes over such a record. It is sound otherwise: somebody has
        // put those of all CPUs in one file.
        counts.other_cpu += u64::from(self.cpu.is_some_and(|expected| expected != cpu));
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
            return self.parse_note(code, event, range.end - payload.len()..range.end, counts);
        }
        let is_place = head.1 & category::wide::ZONE_APPEND != 0
            && code == Action::Complete as u32
            && categories & category::COMPLETE == 0;
        let other = match code {
            ZONE_PLUG => Some("zone plug"),
            ZONE_UNPLUG => Some("zone unplug"),
            // Where the device has put an append; a completion follows.
            _ if is_place => Some("zone append"),
            _ => None,
        };
        if let Some(name) = other {
            counts.other_event(name.as_bytes());
            return None;
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
        event.rwbs = rwbs(categories, head.1, event.bytes);
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
        let numbered = Numbered {
            cpu,
            time,
            sequence: head.u32(4),
        };
        let is_restart = self.sequences.check(numbered, counts);
        let is_earlier = time < self.last_time;
        self.last_time = time;
        if is_restart && is_earlier {
            // Two traces in one file.
            self.sequences = Sequences::default();
            self.held = Some(event);
            return Some(Said::NewRecording);
        }
        Some(Said::Event(event))
    }

    fn parse_note(
        &mut self,
        code: u32,
        event: Event,
        payload: std::ops::Range<usize>,
        counts: &mut ReadCounts,
    ) -> Option<Said> {
        let mut text = &self.input.available()[payload];
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
