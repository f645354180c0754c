// SPDX-License-Identifier: MIT OR Apache-2.0
//! `events.blk`: this project's own form of a trace on disk.
//!
//! Small (7 to 10 bytes an event), fast, and whole up to the last complete
//! chunk whatever happens to the writer: after a header come chunks of some
//! 64 KiB, each decodable alone, each with its number of records and a
//! checksum, and at the end a mark with the number of all records.
//! `docs/trace-format.md` describes every byte.

mod read;
mod record;
mod varint;
mod write;

pub use read::CompactReader;
pub use write::CompactWriter;

use crate::ReadCounts;
use crate::format::{Format, MAGIC_BYTES, Reader};
use crate::source::Source;
use blklab_trace::TraceHeader;

/// Its row.
pub(crate) static FORMAT: Format = Format {
    name: "events.blk",
    summary: "NAME.blk: blklab's own compact form, read and written",
    has_printed_times: false,
    says_losses: true,
    says_flags: true,
    dialect: None,
    recognises: |input| Ok(input.fill(MAGIC_BYTES)?.starts_with(&MAGIC)),
    open: |input, _| Ok(Box::new(CompactReader::from_input(input)?)),
};

impl Reader for CompactReader<Source> {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }

    fn header(&self) -> Option<&TraceHeader> {
        Some(self.header())
    }
}

/// First bytes of a file: a byte that is no text, the name, and line ends
/// that a transfer as text would change.
const MAGIC: [u8; MAGIC_BYTES] = *b"\x89blkev\r\n";
/// Version of the layout.
const VERSION: u16 = 1;
/// Longest header that is believed.
const HEADER_BYTES_MAX: u32 = 1 << 20;
/// Before the fields of the header: magic, version, length.
const PREFIX_BYTES: usize = 14;

/// First bytes of a chunk.
const CHUNK_MARK: [u8; 4] = *b"Chnk";
/// First bytes of the end mark.
const END_MARK: [u8; 4] = *b"End.";
/// Mark, checksum, length of the payload, records in it.
const CHUNK_HEAD_BYTES: usize = 16;
/// Mark, checksum, number of all records.
const END_BYTES: usize = 16;
/// A chunk is closed when its payload has this length; one record may go
/// beyond it.
const CHUNK_BYTES: usize = 64 * 1024;
/// Longest payload that is believed: a full chunk and a longest record.
const CHUNK_BYTES_MAX: usize = CHUNK_BYTES + TEXT_BYTES_MAX + 128;
/// Longest message; longer ones are cut.
const TEXT_BYTES_MAX: usize = 65_535;
