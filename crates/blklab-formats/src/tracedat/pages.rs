// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pages of a ring buffer and the records in them
//! (include/linux/ring_buffer.h, kernel/trace/ring_buffer.c of 3.0 to 6.18).
//!
//! A page begins with the time of its first record, and with how much of it is
//! filled. A record begins with 5 bits of type or length and 27 bits of ns since the
//! one before.

use super::container::{Buffer, Container, Packing, unpack};
use crate::store::{Order, Store};
use std::io;

/// Longest run of pages that is compressed at once.
const CHUNK_BYTES_MAX: u32 = 16 << 20;
/// Types of records without data.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// In the length of a page: events were lost before it; and how many stands behind
/// its data.
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;

/// What a CPU has next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A record; its data are in [`Pages::record`].
    Record {
        time_ns: u64,
    },
    /// So many were lost here; 0 if that is not known.
    Lost(u64),
    /// A page makes no sense from here on.
    Damaged,
    End,
}

/// The records of a CPU.
#[derive(Debug)]
pub(super) struct Pages {
    pub(super) cpu: u16,
    order: Order,
    long_bytes: usize,
    page_bytes: usize,
    packing: Option<Packing>,
    /// Where the next page or chunk is, and where the data end.
    at: u64,
    end: u64,
    chunks_left: Option<u32>,
    /// Pages that were decompressed together.
    chunk: Vec<u8>,
    chunk_at: usize,
    page: Vec<u8>,
    /// What is left of the page: from here to there.
    from: usize,
    to: usize,
    time_ns: u64,
    /// The data of the last record.
    record: std::ops::Range<usize>,
}

impl Pages {
    pub(super) fn new(container: &Container, buffer: Buffer) -> Pages {
        Pages {
            cpu: buffer.cpu,
            order: container.order,
            long_bytes: container.long_bytes,
            page_bytes: container.page_bytes,
            packing: container.packing.filter(|p| *p != Packing::None),
            at: buffer.offset,
            end: buffer.offset.saturating_add(buffer.size),
            chunks_left: None,
            chunk: Vec::new(),
            chunk_at: 0,
            page: Vec::new(),
            from: 0,
            to: 0,
            time_ns: 0,
            record: 0..0,
        }
    }

    /// The data of the last record.
    pub(super) fn record(&self) -> &[u8] {
        &self.page[self.record.clone()]
    }

    /// Goes on to the next record.
    pub(super) fn next(&mut self, store: &Store) -> io::Result<Next> {
        loop {
            if self.from + 4 > self.to {
                if !self.load(store)? {
                    return Ok(Next::End);
                }
                if let Some(next) = self.begin() {
                    return Ok(next);
                }
                continue;
            }
            if let Some(next) = self.step() {
                return Ok(next);
            }
        }
    }

    /// Loads the next page; false at the end.
    fn load(&mut self, store: &Store) -> io::Result<bool> {
        let Some(packing) = self.packing else {
            if self.at >= self.end {
                return Ok(false);
            }
            let len = (self.end - self.at).min(self.page_bytes as u64);
            store.read(self.at, len as usize, &mut self.page)?;
            self.at += len;
            return Ok(!self.page.is_empty());
        };
        while self.chunk_at >= self.chunk.len() {
            if !self.load_chunk(store, packing)? {
                return Ok(false);
            }
        }
        let end = (self.chunk_at + self.page_bytes).min(self.chunk.len());
        self.page.clear();
        self.page.extend_from_slice(&self.chunk[self.chunk_at..end]);
        self.chunk_at = end;
        Ok(true)
    }

    /// The number of chunks stands first; each has both its lengths in front.
    fn load_chunk(&mut self, store: &Store, packing: Packing) -> io::Result<bool> {
        let mut buf = Vec::new();
        let left = match self.chunks_left {
            Some(left) => left,
            None => {
                store.read(self.at, 4, &mut buf)?;
                self.at += 4;
                self.order.u32(&buf).unwrap_or(0)
            }
        };
        self.chunks_left = Some(left.saturating_sub(1));
        if left == 0 || self.at >= self.end {
            return Ok(false);
        }
        store.read(self.at, 8, &mut buf)?;
        if buf.len() < 8 {
            // The file ends, whatever number of chunks it promised.
            self.chunks_left = Some(0);
            self.no_chunk();
            return Ok(true);
        }
        let packed = self.order.u32(&buf).unwrap_or(0).min(CHUNK_BYTES_MAX);
        let plain = self.order.u32(buf.get(4..).unwrap_or_default());
        let plain = plain.unwrap_or(0).min(CHUNK_BYTES_MAX) as usize;
        store.read(self.at + 8, packed as usize, &mut buf)?;
        self.at += 8 + u64::from(packed);
        match unpack(packing, &buf, plain) {
            Some(chunk) => (self.chunk, self.chunk_at) = (chunk, 0),
            None => self.no_chunk(),
        }
        Ok(true)
    }

    /// In place of what cannot be read: a page that makes no sense, which counts as
    /// damaged.
    fn no_chunk(&mut self) {
        self.chunk = vec![0xff; 16];
        self.chunk_at = 0;
    }

    /// Looks at the head of a page.
    fn begin(&mut self) -> Option<Next> {
        (self.from, self.to) = (0, 0);
        let head = 8 + self.long_bytes;
        let commit = self.page.get(8..head).and_then(|b| self.order.number(b));
        let (Some(time), Some(commit)) = (self.order.u64(&self.page), commit) else {
            return Some(Next::Damaged);
        };
        let len = (commit & 0xf_ffff) as usize;
        let Some(end) = head.checked_add(len).filter(|end| *end <= self.page.len()) else {
            return Some(Next::Damaged);
        };
        self.time_ns = time;
        (self.from, self.to) = (head, end);
        if commit & MISSED == 0 {
            return None;
        }
        let stored = self.page.get(end..end + self.long_bytes);
        let stored = stored.filter(|_| commit & MISSED_STORED != 0);
        Some(Next::Lost(
            stored.and_then(|b| self.order.number(b)).unwrap_or(0),
        ))
    }

    /// Takes the record at the current place; none if it has no data.
    fn step(&mut self) -> Option<Next> {
        let word = self.order.u32(&self.page[self.from..])?;
        let (kind, delta) = if self.order.big_endian {
            (word >> 27, word & 0x07ff_ffff)
        } else {
            (word & 0x1f, word >> 5)
        };
        self.from += 4;
        let array = self.page[..self.to].get(self.from..);
        let array = array.and_then(|rest| self.order.u32(rest));
        let long_ns = |array: Option<u32>| u64::from(array.unwrap_or(0)) << 27 | u64::from(delta);
        match kind {
            PADDING if delta == 0 => {
                self.from = self.to;
                None
            }
            PADDING => {
                // A record that was taken back; the length counts its own bytes.
                self.time_ns = self.time_ns.wrapping_add(delta.into());
                self.from = self.from.saturating_add(array.unwrap_or(4) as usize);
                None
            }
            TIME_EXTEND => {
                self.time_ns = self.time_ns.wrapping_add(long_ns(array));
                self.from += 4;
                None
            }
            TIME_STAMP => {
                // 59 bits; the others are those of the page.
                self.time_ns = self.time_ns & !((1 << 59) - 1) | long_ns(array);
                self.from += 4;
                None
            }
            _ => {
                self.time_ns = self.time_ns.wrapping_add(delta.into());
                let start = self.from + if kind == 0 { 4 } else { 0 };
                let len = match kind {
                    0 => array.and_then(|len| (len as usize).checked_sub(4)),
                    kind => Some(kind as usize * 4),
                };
                let end = len.and_then(|len| start.checked_add(len));
                let Some(end) = end.filter(|end| *end <= self.to) else {
                    self.from = self.to;
                    return Some(Next::Damaged);
                };
                self.record = start..end;
                self.from = start + (end - start).next_multiple_of(4);
                Some(Next::Record {
                    time_ns: self.time_ns,
                })
            }
        }
    }
}

/// A page by itself, as it comes from a buffer while that is recorded.
#[derive(Debug)]
pub(super) struct OnePage {
    pages: Pages,
    store: Store,
}

impl OnePage {
    pub(super) fn new(container: &Container, cpu: u16, page: &[u8]) -> OnePage {
        let buffer = Buffer {
            cpu,
            offset: 0,
            size: page.len() as u64,
        };
        OnePage {
            pages: Pages::new(container, buffer),
            store: Store::Memory(page.to_vec()),
        }
    }

    /// What comes next; none where it ends or cannot be read.
    pub(super) fn next(&mut self) -> Option<Next> {
        let next = self.pages.next(&self.store).ok();
        next.filter(|next| !matches!(next, Next::End))
    }

    /// The bytes of the record that came last.
    pub(super) fn record(&self) -> &[u8] {
        self.pages.record()
    }
}
