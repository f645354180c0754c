// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading `events.blk`, as far as it goes: damaged chunks are passed over.

use super::record::{Last, Read as Record};
use super::varint::Bytes;
use super::{
    CHUNK_BYTES_MAX, CHUNK_HEAD_BYTES, CHUNK_MARK, END_BYTES, END_MARK, HEADER_BYTES_MAX, MAGIC,
    PREFIX_BYTES, VERSION,
};
use crate::counts::COUNT_MAX;
use crate::input::Input;
use crate::plausible;
use crate::{FormatError, ReadCounts};
use blklab_trace::{Actions, Item, TraceHeader, TraceSource};
use blklab_types::{Dev, Time};
use std::io::Read;

/// Reads `events.blk`.
///
/// A file that was cut is read up to its last complete chunk;
/// [`ReadCounts::missing`] then says how many records of the cut chunk are
/// lost, as far as its head is there.
#[derive(Debug)]
pub struct CompactReader<R> {
    input: Input<R>,
    header: TraceHeader,
    counts: ReadCounts,
    /// Bytes left of the current chunk's payload, all of them available.
    payload_bytes: usize,
    left_in_chunk: u32,
    last: Last,
    last_time: Time,
    text: String,
    at_end: bool,
    /// Records of what the original lacked, and the events that were missing at its end.
    nr_lacks: u64,
    missing_before: u64,
}

/// What stands where a chunk should begin.
enum Found {
    Chunk {
        payload_bytes: usize,
        nr: u32,
    },
    End {
        nr_records: u64,
    },
    /// The input ends in here, with so many records.
    Cut {
        missing: u64,
    },
    /// Neither, or a chunk that lost so many records.
    Damage {
        missing: u64,
    },
}

impl<R: Read> CompactReader<R> {
    /// Reads the header. `input` names the source in errors.
    ///
    /// # Errors
    /// When this is no such trace, of another version, or its header is
    /// damaged.
    pub fn new(inner: R, input: &str) -> Result<CompactReader<R>, FormatError> {
        CompactReader::from_input(Input::new(inner, input))
    }

    /// As [`CompactReader::new`].
    pub(crate) fn from_input(input: Input<R>) -> Result<CompactReader<R>, FormatError> {
        let mut reader = CompactReader {
            input,
            header: TraceHeader::default(),
            counts: ReadCounts::default(),
            payload_bytes: 0,
            left_in_chunk: 0,
            last: Last::default(),
            last_time: Time::ZERO,
            text: String::new(),
            at_end: false,
            nr_lacks: 0,
            missing_before: 0,
        };
        reader.header = reader.read_header()?;
        Ok(reader)
    }

    /// What the trace says about itself.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// What was found so far; complete after the last item.
    pub fn counts(&self) -> &ReadCounts {
        &self.counts
    }

    fn read_header(&mut self) -> Result<TraceHeader, FormatError> {
        let input = self.input.name.clone();
        let damaged = |problem| FormatError::Header {
            input: input.clone(),
            problem,
        };
        let prefix = self.input.fill(PREFIX_BYTES)?.to_vec();
        if prefix.len() < MAGIC.len() || prefix[..MAGIC.len()] != MAGIC {
            let shown: Vec<u8> = prefix.into_iter().take(MAGIC.len()).collect();
            return Err(FormatError::Unrecognised {
                input,
                expected: "\"\\x89blkev\\r\\n\" (events.blk)",
                found: format!("\"{}\"", shown.escape_ascii()),
            });
        }
        if prefix.len() < PREFIX_BYTES {
            return Err(damaged("the file ends inside it"));
        }
        let version = u16::from_le_bytes([prefix[8], prefix[9]]);
        if version != VERSION {
            return Err(FormatError::Version {
                input,
                format: "events.blk",
                found: version.into(),
                supported: "version 1",
            });
        }
        let len = u32::from_le_bytes([prefix[10], prefix[11], prefix[12], prefix[13]]);
        if len > HEADER_BYTES_MAX {
            return Err(damaged("its length is more than a mebibyte"));
        }
        let total = PREFIX_BYTES + len as usize + 4;
        let all = self.input.fill(total)?;
        let Some((covered, crc)) = all.split_last_chunk::<4>().filter(|_| all.len() == total)
        else {
            return Err(damaged("the file ends inside it"));
        };
        if crc32fast::hash(covered) != u32::from_le_bytes(*crc) {
            return Err(damaged("the checksum does not match"));
        }
        let header = header_fields(&covered[PREFIX_BYTES..])
            .ok_or_else(|| damaged("a field does not fit its length"))?;
        self.input.skip(total);
        Ok(header)
    }

    /// Goes to the next whole chunk; false at the end of the trace.
    fn next_chunk(&mut self) -> Result<bool, FormatError> {
        self.input.skip(self.payload_bytes);
        self.payload_bytes = 0;
        let mut in_damage = false;
        loop {
            match self.look()? {
                Found::Chunk { payload_bytes, nr } => {
                    self.input.skip(CHUNK_HEAD_BYTES);
                    self.payload_bytes = payload_bytes;
                    self.left_in_chunk = nr;
                    self.last = Last::default();
                    return Ok(true);
                }
                Found::End { nr_records } => {
                    self.end(nr_records)?;
                    return Ok(false);
                }
                Found::Cut { missing } => {
                    self.counts.missing += missing;
                    self.counts.skipped_bytes += self.input.available().len() as u64;
                    self.counts.truncated = true;
                    return Ok(false);
                }
                Found::Damage { missing } => {
                    self.counts.missing += missing;
                    if !in_damage {
                        self.counts.damaged += 1;
                        self.counts
                            .example(|| "chunk with a wrong checksum or head".into());
                    }
                    in_damage = true;
                    self.go_to_mark()?;
                }
            }
        }
    }

    /// What stands at the current place.
    fn look(&mut self) -> Result<Found, FormatError> {
        let Some(head) = self
            .input
            .fill(CHUNK_HEAD_BYTES)?
            .first_chunk::<CHUNK_HEAD_BYTES>()
        else {
            return Ok(Found::Cut { missing: 0 });
        };
        let head = *head;
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| head[at + i]));
        let (crc, payload_bytes, nr) = (word(4), word(8) as usize, word(12));
        if head[..4] == END_MARK && crc32fast::hash(&head[8..END_BYTES]) == crc {
            return Ok(Found::End {
                nr_records: u64::from(word(8)) | u64::from(nr) << 32,
            });
        }
        // A record has two bytes at least.
        let believable = payload_bytes <= CHUNK_BYTES_MAX && nr as usize <= payload_bytes / 2;
        if head[..4] != CHUNK_MARK || !believable {
            return Ok(Found::Damage { missing: 0 });
        }
        let total = CHUNK_HEAD_BYTES + payload_bytes;
        let chunk = self.input.fill(total)?;
        let is_whole = chunk.len() == total;
        if is_whole && crc32fast::hash(&chunk[8..]) == crc {
            return Ok(Found::Chunk { payload_bytes, nr });
        }
        let missing = u64::from(nr);
        // If another mark follows, the file is not cut but the length wrong.
        Ok(if is_whole || self.mark_follows() {
            Found::Damage { missing }
        } else {
            Found::Cut { missing }
        })
    }

    /// Goes on to the next mark, or near the end of the input.
    fn go_to_mark(&mut self) -> Result<(), FormatError> {
        let mut skip = 1;
        while skip > 0 {
            self.input.skip(skip);
            self.counts.skipped_bytes += skip as u64;
            if self.input.fill(CHUNK_HEAD_BYTES)?.len() < CHUNK_HEAD_BYTES {
                break;
            }
            skip = self.bytes_to_mark();
        }
        Ok(())
    }

    /// Whether another chunk begins in what is left of a cut file: then it is
    /// not cut, but the length in the head is wrong.
    fn mark_follows(&self) -> bool {
        let rest = &self.input.available()[1..];
        rest.windows(4).any(|w| w == CHUNK_MARK || w == END_MARK)
    }

    /// Bytes in the window before the next mark; keeps a few at its end that
    /// may be the beginning of one.
    fn bytes_to_mark(&self) -> usize {
        let rest = self.input.available();
        rest.windows(4)
            .position(|w| w == CHUNK_MARK || w == END_MARK)
            .unwrap_or(rest.len().saturating_sub(3))
    }

    /// The end mark says how many records there are: the missing ones are
    /// known exactly now.
    fn end(&mut self, nr_records: u64) -> Result<(), FormatError> {
        self.input.skip(END_BYTES);
        let c = &mut self.counts;
        let nr_read = c.events + c.messages + c.processes + c.new_recordings + self.nr_lacks;
        let missing = nr_records.saturating_sub(nr_read);
        c.missing = missing.saturating_add(self.missing_before).min(COUNT_MAX);
        let rest = self.input.fill(1)?.len();
        if rest > 0 {
            self.counts.damaged += 1;
            self.counts.example(|| "data behind the end mark".into());
        }
        Ok(())
    }

    /// The rest of a chunk cannot be decoded although its checksum matches:
    /// the writer was at fault.
    fn give_chunk_up(&mut self) {
        self.counts.damaged += 1;
        self.counts.missing += u64::from(self.left_in_chunk);
        self.counts.skipped_bytes += self.payload_bytes as u64;
        self.counts
            .example(|| "record that cannot be decoded".into());
        self.left_in_chunk = 0;
    }
}

impl<R: Read> TraceSource for CompactReader<R> {
    type Error = FormatError;

    fn next_item(&mut self) -> Result<Option<Item<'_>>, FormatError> {
        loop {
            while self.left_in_chunk == 0 {
                if self.at_end || !self.next_chunk()? {
                    self.at_end = true;
                    return Ok(None);
                }
            }
            let payload = &self.input.available()[..self.payload_bytes];
            let mut bytes = Bytes(payload);
            let Some(record) = self.last.read(&mut bytes) else {
                self.give_chunk_up();
                continue;
            };
            let used = payload.len() - bytes.0.len();
            self.payload_bytes -= used;
            self.left_in_chunk -= 1;
            let item = match record {
                Record::Event(event) => {
                    let (name, number) = (&self.input.name, self.counts.events);
                    let place = || format!("{name}: event {number}");
                    plausible::check(&event, &mut self.counts, place);
                    self.counts.check_time(&mut self.last_time, event.time);
                    self.counts.events += 1;
                    Item::Event(event)
                }
                Record::Message(event, text) => {
                    self.counts.messages += 1;
                    self.text.clear();
                    self.text.push_str(&String::from_utf8_lossy(text));
                    Item::Message(event, &self.text)
                }
                Record::Process(time, pid, comm) => {
                    self.counts.processes += 1;
                    self.text.clear();
                    self.text.push_str(&String::from_utf8_lossy(comm));
                    Item::Process {
                        time,
                        pid,
                        comm: &self.text,
                    }
                }
                Record::NewRecording => {
                    self.counts.new_recordings += 1;
                    self.last_time = Time::ZERO;
                    Item::NewRecording
                }
                Record::Lacks(lacks) => {
                    let missing = self.counts.missing;
                    self.counts.add_lacks(lacks);
                    let added = self.counts.missing.saturating_sub(missing);
                    self.missing_before = self.missing_before.saturating_add(added);
                    self.nr_lacks += 1;
                    self.input.skip(used);
                    continue;
                }
            };
            self.input.skip(used);
            return Ok(Some(item));
        }
    }
}

/// The fields of the header; `None` if they do not fill it exactly.
fn header_fields(fields: &[u8]) -> Option<TraceHeader> {
    let mut bytes = Bytes(fields);
    let u16_le = |b: &mut Bytes<'_>| Some(u16::from_le_bytes(b.slice(2)?.try_into().ok()?));
    let u32_le = |b: &mut Bytes<'_>| Some(u32::from_le_bytes(b.slice(4)?.try_into().ok()?));
    let string = |b: &mut Bytes<'_>| {
        let len = u32_le(b)? as usize;
        Some(String::from_utf8_lossy(b.slice(len)?).into_owned())
    };
    let mut header = TraceHeader {
        nr_cpus: u16_le(&mut bytes)?,
        kernel: string(&mut bytes)?,
        origin: string(&mut bytes)?,
        devices: Vec::new(),
        recorded: Actions::ALL,
    };
    for _ in 0..u32_le(&mut bytes)? {
        let dev = Dev {
            major: u16_le(&mut bytes)?,
            minor: u16_le(&mut bytes)?,
        };
        header.devices.push((dev, string(&mut bytes)?));
    }
    if !bytes.0.is_empty() {
        header.recorded = Actions::from_bits(u32_le(&mut bytes)?);
    }
    bytes.0.is_empty().then_some(header)
}
