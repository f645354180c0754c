// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entries of a log in a few bytes each: a log of ten million lines takes 100
//! MB rather than half a gigabyte.
//!
//! An entry is a tag, then those of file, pause, offset and length that the
//! tag does not cover, as numbers of seven bits a byte, lowest first.

use super::{Act, Entry};
use crate::io_op::IoOp;
use std::sync::Arc;

/// The file is that of the entry before.
const SAME_FILE: u8 = 0x10;
/// There is no pause.
const AT_ONCE: u8 = 0x20;
/// The offset is where the I/O before ended.
const CONTIGUOUS: u8 = 0x40;
/// The length is that of the I/O before.
const SAME_LENGTH: u8 = 0x80;

const ADD: u8 = 0;
const OPEN: u8 = 1;
const CLOSE: u8 = 2;
const UNTIL: u8 = 3;
/// Tags of I/Os begin here.
const FIRST_OP: u8 = 4;
const OPS: [IoOp; 5] = [
    IoOp::Read,
    IoOp::Write,
    IoOp::Trim,
    IoOp::Sync,
    IoOp::Datasync,
];

/// What the tags of an entry refer to.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    file: u32,
    end: u64,
    length: u64,
}

/// Writes entries.
#[derive(Debug, Default)]
pub(super) struct Packer {
    bytes: Vec<u8>,
    before: Before,
}

impl Packer {
    pub(super) fn push(&mut self, entry: &Entry) {
        let kind = match entry.act {
            Act::Add => ADD,
            Act::Open { .. } => OPEN,
            Act::Close { .. } => CLOSE,
            Act::Until { .. } => UNTIL,
            Act::Io { op, .. } => {
                let at = OPS.iter().position(|other| *other == op);
                FIRST_OP + at.expect("no log has other operations") as u8
            }
        };
        let tag_at = self.bytes.len();
        self.bytes.push(kind);
        let mut tag = kind;
        if entry.delay_us == 0 {
            tag |= AT_ONCE;
        } else {
            self.number(entry.delay_us);
        }
        match entry.act {
            Act::Add => {}
            Act::Open { file } | Act::Close { file } => tag |= self.file(file),
            Act::Until { ms } => self.number(ms),
            Act::Io {
                file,
                offset,
                length,
                ..
            } => {
                tag |= self.file(file);
                if offset == self.before.end {
                    tag |= CONTIGUOUS;
                } else {
                    self.number(offset);
                }
                if length == self.before.length {
                    tag |= SAME_LENGTH;
                } else {
                    self.number(length);
                }
                self.before.end = offset + length;
                self.before.length = length;
            }
        }
        self.bytes[tag_at] = tag;
    }

    fn file(&mut self, file: u32) -> u8 {
        if file == self.before.file {
            return SAME_FILE;
        }
        self.before.file = file;
        self.number(u64::from(file));
        0
    }

    fn number(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.bytes.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.bytes.push(n as u8);
    }

    pub(super) fn finish(self) -> Arc<[u8]> {
        self.bytes.into()
    }
}

/// A place in the entries of a log.
#[derive(Clone, Debug)]
pub struct Cursor {
    bytes: Arc<[u8]>,
    at: usize,
    before: Before,
}

impl Cursor {
    pub(super) fn new(bytes: Arc<[u8]>) -> Cursor {
        Cursor {
            bytes,
            at: 0,
            before: Before::default(),
        }
    }

    fn number(&mut self) -> u64 {
        let mut n = 0;
        let mut shift = 0;
        loop {
            let byte = self.bytes[self.at];
            self.at += 1;
            n |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return n;
            }
        }
    }

    fn file(&mut self, tag: u8) -> u32 {
        if tag & SAME_FILE == 0 {
            self.before.file = self.number() as u32;
        }
        self.before.file
    }

    fn io(&mut self, op: IoOp, tag: u8) -> Act {
        let file = self.file(tag);
        let offset = match tag & CONTIGUOUS {
            0 => self.number(),
            _ => self.before.end,
        };
        if tag & SAME_LENGTH == 0 {
            self.before.length = self.number();
        }
        let length = self.before.length;
        self.before.end = offset + length;
        Act::Io {
            op,
            file,
            offset,
            length,
        }
    }
}

impl Iterator for Cursor {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        let tag = *self.bytes.get(self.at)?;
        self.at += 1;
        let delay_us = match tag & AT_ONCE {
            0 => self.number(),
            _ => 0,
        };
        let act = match tag & 0xf {
            ADD => Act::Add,
            OPEN => Act::Open {
                file: self.file(tag),
            },
            CLOSE => Act::Close {
                file: self.file(tag),
            },
            UNTIL => Act::Until { ms: self.number() },
            kind => self.io(OPS[usize::from(kind - FIRST_OP)], tag),
        };
        Some(Entry { delay_us, act })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_and_sequential_ones_take_two_bytes() {
        let io = |op, file, offset, length| Act::Io {
            op,
            file,
            offset,
            length,
        };
        let acts = [
            Act::Add,
            Act::Open { file: 0 },
            Act::Open { file: 300 },
            io(IoOp::Read, 0, 0, 4096),
            io(IoOp::Write, 0, 4096, 4096),
            io(IoOp::Trim, 300, i64::MAX as u64 - 5, 5),
            io(IoOp::Sync, 300, 0, 0),
            io(IoOp::Datasync, 0, 7, 0),
            Act::Until { ms: u64::MAX },
            Act::Close { file: 300 },
        ];
        let entries: Vec<Entry> = (0..)
            .zip(acts)
            .map(|(at, act)| Entry {
                delay_us: at % 3 * 1_000_000,
                act,
            })
            .collect();
        let mut packer = Packer::default();
        entries.iter().for_each(|entry| packer.push(entry));
        let back: Vec<Entry> = Cursor::new(packer.finish()).collect();
        assert_eq!(back, entries);

        let mut packer = Packer::default();
        for at in 0..1000 {
            let act = io(IoOp::Read, 0, at * 4096, 4096);
            packer.push(&Entry { delay_us: 50, act });
        }
        assert_eq!(packer.finish().len(), 2002);
    }
}
