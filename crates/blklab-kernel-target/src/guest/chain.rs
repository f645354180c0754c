// SPDX-License-Identifier: MIT OR Apache-2.0
//! A request in memory: a chain of descriptors.
//!
//! Source: Virtual I/O Device (VIRTIO) version 1.2, section 2.7.5.

use super::memory::{Memory, Segment, wrong};
use blklab_types::Error;

/// Bytes of a descriptor.
pub(crate) const DESCRIPTOR_BYTES: usize = 16;

/// Another follows.
const NEXT: u16 = 1;
/// The device writes to it.
const WRITE: u16 = 2;
/// It names a table of descriptors.
const INDIRECT: u16 = 4;

/// Most descriptors of a table: so many indices there are.
const TABLE_MAX: usize = 1 << 16;

/// What a chain names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    /// Its first descriptor, by which it is given back.
    pub(crate) head: u16,
    /// What the device reads, in order.
    pub(crate) readable: Vec<Segment>,
    /// What the device writes, in order.
    pub(crate) writable: Vec<Segment>,
}

struct Descriptor {
    segment: Segment,
    flags: u16,
    next: u16,
}

fn descriptor(table: &[u8], index: usize) -> Descriptor {
    let bytes = &table[index * DESCRIPTOR_BYTES..][..DESCRIPTOR_BYTES];
    let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    Descriptor {
        segment: Segment {
            address: u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")),
            len: u32::from_le_bytes(bytes[8..12].try_into().expect("four bytes")),
        },
        flags: word(12),
        next: word(14),
    }
}

/// The chain that begins at a descriptor of the ring's table.
///
/// # Errors
/// If it has no end, or leads somewhere else.
pub(super) fn chain(memory: &Memory, table: &[u8], head: u16) -> Result<Chain, Error> {
    let first = descriptor(table, usize::from(head));
    if first.flags & INDIRECT == 0 {
        return walk(table, usize::from(head), head);
    }
    let len = first.segment.len as usize;
    let is_table = len > 0 && len.is_multiple_of(DESCRIPTOR_BYTES);
    if !is_table || len / DESCRIPTOR_BYTES > TABLE_MAX {
        return Err(wrong(&format!("a table of descriptors of {len} bytes")));
    }
    if first.flags & NEXT != 0 {
        return Err(wrong("a table of descriptors that goes on behind itself"));
    }
    let mut table = vec![0; len];
    memory.read(first.segment.address, &mut table)?;
    walk(&table, 0, head)
}

fn walk(table: &[u8], first: usize, head: u16) -> Result<Chain, Error> {
    let entries = table.len() / DESCRIPTOR_BYTES;
    let mut chain = Chain {
        head,
        readable: Vec::new(),
        writable: Vec::new(),
    };
    let mut index = first;
    for _ in 0..entries {
        let d = descriptor(table, index);
        if d.flags & INDIRECT != 0 {
            return Err(wrong("a table of descriptors inside a chain"));
        }
        if d.flags & WRITE != 0 {
            chain.writable.push(d.segment);
        } else if chain.writable.is_empty() {
            chain.readable.push(d.segment);
        } else {
            return Err(wrong(
                "a request that is to be read behind one to be written",
            ));
        }
        if d.flags & NEXT == 0 {
            return Ok(chain);
        }
        index = usize::from(d.next);
        if index >= entries {
            return Err(wrong(&format!(
                "descriptor {index} of a table of {entries}"
            )));
        }
    }
    Err(wrong("a chain of descriptors without an end"))
}
