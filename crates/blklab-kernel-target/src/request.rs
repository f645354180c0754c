// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests of virtio's block device, and what it says of itself.
//!
//! Source: Virtual I/O Device (VIRTIO) version 1.2, section 5.2.

use crate::guest::{Chain, Memory, Segment, wrong};
use blklab_types::{DiscardLimits, Error, Op, SECTOR_BYTES};

/// Bytes of the header before the data.
const HEADER_BYTES: u32 = 16;
/// Bytes of the name of a disk.
const ID_BYTES: usize = 20;
/// Bytes of a range to discard.
const RANGE_BYTES: u32 = 16;
/// Most segments of data in a request: with header and status a chain is as long as the
/// ring of virtio_uml at most.
const SEGMENTS_MAX: u32 = 254;

/// What a disk can do, as bits.
pub(crate) mod feature {
    /// It says how many segments a request may have.
    pub(crate) const SEGMENTS: u64 = 1 << 2;
    /// It says the size of a block.
    pub(crate) const BLOCK_SIZE: u64 = 1 << 6;
    /// It has a cache to flush.
    pub(crate) const FLUSH: u64 = 1 << 9;
    /// It discards.
    pub(crate) const DISCARD: u64 = 1 << 13;
    /// Chains may stand in tables of their own.
    pub(crate) const INDIRECT: u64 = 1 << 28;
    /// It speaks virtio 1.
    pub(crate) const VERSION_1: u64 = 1 << 32;
}

/// What a request ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Status {
    Ok = 0,
    Failed = 1,
    Unsupported = 2,
}

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Something for the device.
    Device {
        /// What to do.
        op: Op,
        /// First sector.
        sector: u64,
        /// Sectors.
        nr_sectors: u32,
        /// Where the data are or go.
        data: Vec<Segment>,
    },
    /// The disk's name, to be put there.
    Name(Vec<Segment>),
    /// Nothing that can be done: it ends at once.
    Refused(Status),
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// By which it is given back.
    pub(crate) head: u16,
    /// What it asks for.
    pub(crate) ask: Ask,
    /// Where its status goes.
    status: u64,
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// If it is too short to be one.
    pub(crate) fn read(memory: &Memory, chain: Chain) -> Result<Request, Error> {
        let mut readable = chain.readable;
        let mut writable = chain.writable;
        let header = take_header(memory, &mut readable)?;
        let status = take_last_byte(&mut writable)?;
        let kind = u32::from_le_bytes(header[..4].try_into().expect("four bytes"));
        let sector = u64::from_le_bytes(header[8..].try_into().expect("eight bytes"));
        let ask = match kind {
            0 => transfer(Op::Read, sector, writable)?,
            1 => transfer(Op::Write, sector, readable)?,
            4 => Ask::Device {
                op: Op::Flush,
                sector: 0,
                nr_sectors: 0,
                data: Vec::new(),
            },
            8 => Ask::Name(writable),
            11 => discard(memory, &readable)?,
            _ => Ask::Refused(Status::Unsupported),
        };
        Ok(Request {
            head: chain.head,
            ask,
            status,
        })
    }

    /// Writes how it ended, and says how many bytes its buffers have got.
    ///
    /// # Errors
    /// If the place is not in memory.
    pub(crate) fn end(&self, memory: &Memory, status: Status) -> Result<u32, Error> {
        memory.write(self.status, &[status as u8])?;
        let data = match (&self.ask, status) {
            (
                Ask::Device {
                    op: Op::Read, data, ..
                },
                Status::Ok,
            ) => data.as_slice(),
            (Ask::Name(data), Status::Ok) => data.as_slice(),
            _ => &[],
        };
        Ok(bytes_of(data) as u32 + 1)
    }
}

/// Bytes of all segments.
fn bytes_of(segments: &[Segment]) -> u64 {
    segments.iter().map(|s| u64::from(s.len)).sum()
}

fn take_header(memory: &Memory, readable: &mut Vec<Segment>) -> Result<[u8; 16], Error> {
    let first = readable.first_mut();
    let Some(first) = first.filter(|s| s.len >= HEADER_BYTES) else {
        return Err(wrong("a request of the disk without a header"));
    };
    let header = memory.array(first.address)?;
    first.address += u64::from(HEADER_BYTES);
    first.len -= HEADER_BYTES;
    if first.len == 0 {
        readable.remove(0);
    }
    Ok(header)
}

fn take_last_byte(writable: &mut Vec<Segment>) -> Result<u64, Error> {
    let last = writable.last_mut();
    let Some(last) = last.filter(|s| s.len > 0) else {
        return Err(wrong(
            "a request of the disk without a place for its status",
        ));
    };
    last.len -= 1;
    let at = last.address.wrapping_add(u64::from(last.len));
    if last.len == 0 {
        writable.pop();
    }
    Ok(at)
}

fn transfer(op: Op, sector: u64, data: Vec<Segment>) -> Result<Ask, Error> {
    let bytes = bytes_of(&data);
    let sectors = u32::try_from(bytes / SECTOR_BYTES);
    match sectors {
        Ok(nr_sectors) if nr_sectors > 0 && bytes.is_multiple_of(SECTOR_BYTES) => Ok(Ask::Device {
            op,
            sector,
            nr_sectors,
            data,
        }),
        _ => Err(wrong(&format!("a request of the disk of {bytes} bytes"))),
    }
}

/// One range is all that is offered.
fn discard(memory: &Memory, data: &[Segment]) -> Result<Ask, Error> {
    let [range] = data else {
        return Ok(Ask::Refused(Status::Unsupported));
    };
    if range.len != RANGE_BYTES {
        return Ok(Ask::Refused(Status::Unsupported));
    }
    let range: [u8; 16] = memory.array(range.address)?;
    Ok(Ask::Device {
        op: Op::Discard,
        sector: u64::from_le_bytes(range[..8].try_into().expect("eight bytes")),
        nr_sectors: u32::from_le_bytes(range[8..12].try_into().expect("four bytes")),
        data: Vec::new(),
    })
}

/// A disk's name, in the bytes that are for it.
pub(crate) fn name_bytes(name: &str) -> [u8; ID_BYTES] {
    let mut bytes = [0; ID_BYTES];
    for (to, from) in bytes.iter_mut().zip(name.bytes()) {
        *to = from;
    }
    bytes
}

/// What a disk says of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Description {
    /// Sectors.
    pub(crate) capacity_sectors: u64,
    /// Segments of a request.
    pub(crate) max_segments: u32,
    /// Whether it has a cache to flush.
    pub(crate) has_flush: bool,
    /// What it discards.
    pub(crate) discard: Option<DiscardLimits>,
}

impl Description {
    /// What it can do.
    pub(crate) fn features(&self) -> u64 {
        let mut all = feature::SEGMENTS | feature::BLOCK_SIZE | feature::INDIRECT;
        all |= feature::VERSION_1;
        if self.has_flush {
            all |= feature::FLUSH;
        }
        if self.discard.is_some() {
            all |= feature::DISCARD;
        }
        all
    }

    /// Its configuration space.
    pub(crate) fn config(&self) -> [u8; 60] {
        let mut bytes = [0; 60];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &self.capacity_sectors.to_le_bytes());
        put(12, &self.max_segments.min(SEGMENTS_MAX).to_le_bytes());
        put(20, &(SECTOR_BYTES as u32).to_le_bytes());
        // One queue; it is not said that there may be several.
        put(34, &1_u16.to_le_bytes());
        if let Some(discard) = self.discard {
            put(36, &discard.max_sectors.to_le_bytes());
            put(40, &1_u32.to_le_bytes());
            put(44, &discard.granularity_sectors.to_le_bytes());
        }
        bytes
    }
}
