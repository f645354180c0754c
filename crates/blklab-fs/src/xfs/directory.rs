// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a directory looks like: in its inode, as one block, or as blocks of
//! entries with blocks of hashes (fs/xfs/xfs_dir2*.c, 2.6.26).
//!
//! Entries are appended to the last block; a block without entries is given
//! back. Left out: holes that are used again, the table of free space of very
//! large directories, and the way back to a smaller form before the directory
//! is empty.

use blklab_pagecache::Name;

/// Bytes of an inode for entries, and of their header.
const INLINE_BYTES: u32 = 156;
const INLINE_HEADER: u32 = 6;
/// Bytes of a block for entries.
const BLOCK_BYTES: u32 = 4096 - 16;
/// What a directory of one block needs behind its entries, and per entry.
const BLOCK_TAIL: u32 = 8;
const HASH_BYTES: u32 = 8;
/// Entries of a block of hashes.
const HASHES: u32 = 4080 / HASH_BYTES;

/// A block of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entries {
    /// Its buffer; none while it is a hole.
    pub(super) buffer: Option<u32>,
    used_bytes: u16,
    entries: u16,
}

/// A directory.
#[derive(Clone, Debug, Default)]
pub(super) struct Dir {
    inline_bytes: u32,
    entries: u32,
    pub(super) blocks: Vec<Entries>,
    /// Buffers of blocks of hashes.
    pub(super) hashes: Vec<u32>,
}

/// What a new entry needs first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    None,
    /// A block of entries, as the last or in a hole.
    Entries,
    /// A block of hashes.
    Hashes,
}

fn entry_bytes(name: Name) -> u32 {
    (8 + 1 + u32::from(name.bytes) + 2).next_multiple_of(8)
}

impl Dir {
    /// Whether it is all in its inode.
    pub(super) fn is_inline(&self) -> bool {
        self.blocks.is_empty()
    }

    /// What must be there before an entry can be added (`xfs_dir2_sf_addname`,
    /// `xfs_dir2_block_addname`, `xfs_dir2_leaf_addname`).
    pub(super) fn growth(&self, name: Name) -> Growth {
        let bytes = entry_bytes(name);
        if self.is_inline() {
            let inline = self.inline_bytes + u32::from(name.bytes) + 7;
            return if INLINE_HEADER + inline <= INLINE_BYTES {
                Growth::None
            } else {
                Growth::Entries
            };
        }
        let one_block = self.blocks.len() == 1 && self.hashes.is_empty();
        let last = self.blocks[self.blocks.len() - 1];
        let used = u32::from(last.used_bytes) + bytes;
        if one_block && used + BLOCK_TAIL + HASH_BYTES * (self.entries + 1) > BLOCK_BYTES
            || !one_block && self.entries >= HASHES * self.hashes.len() as u32
        {
            return Growth::Hashes;
        }
        if last.buffer.is_none() || used > BLOCK_BYTES {
            Growth::Entries
        } else {
            Growth::None
        }
    }

    /// A block of entries was added. What was in the inode goes into it
    /// (`xfs_dir2_sf_to_block`).
    pub(super) fn add_block(&mut self, buffer: u32) {
        let first = self.is_inline();
        let mut block = Entries {
            buffer: Some(buffer),
            used_bytes: 0,
            entries: 0,
        };
        if first {
            // The same names, each a little longer, aligned.
            let bytes = (self.inline_bytes + 8 * self.entries).next_multiple_of(8);
            block.used_bytes = bytes as u16;
            block.entries = self.entries as u16;
            self.inline_bytes = 0;
        }
        match self.blocks.last_mut() {
            Some(last) if last.buffer.is_none() => *last = block,
            _ => self.blocks.push(block),
        }
    }

    /// Adds an entry, for which there is room. Returns its block.
    pub(super) fn add(&mut self, name: Name) -> u16 {
        self.entries += 1;
        let nth = self.blocks.len().saturating_sub(1);
        match self.blocks.last_mut() {
            Some(block) => {
                block.used_bytes += entry_bytes(name) as u16;
                block.entries += 1;
            }
            None => self.inline_bytes += u32::from(name.bytes) + 7,
        }
        nth as u16
    }

    /// Removes an entry of a block. Returns the buffers that are given back.
    pub(super) fn remove(&mut self, name: Name, block: u16) -> Vec<u32> {
        self.entries = self.entries.saturating_sub(1);
        let mut back = Vec::new();
        match self.blocks.get_mut(usize::from(block)) {
            Some(b) => {
                b.used_bytes = b.used_bytes.saturating_sub(entry_bytes(name) as u16);
                b.entries = b.entries.saturating_sub(1);
                if b.entries == 0 {
                    back.extend(b.buffer.take());
                    b.used_bytes = 0;
                }
            }
            None => self.inline_bytes = self.inline_bytes.saturating_sub(u32::from(name.bytes) + 7),
        }
        if self.entries == 0 {
            back.extend(self.blocks.drain(..).filter_map(|b| b.buffer));
            back.append(&mut self.hashes);
        }
        back
    }

    /// The buffers that are read to find an entry (`xfs_dir2_leaf_lookup_int`).
    pub(super) fn path(&self, name: Name, block: u16) -> impl Iterator<Item = u32> {
        let hashes = self.hash_block(name);
        let entries = self.blocks.get(usize::from(block)).and_then(|b| b.buffer);
        hashes.into_iter().chain(entries)
    }

    /// The block of hashes that a name's is in.
    pub(super) fn hash_block(&self, name: Name) -> Option<u32> {
        let count = self.hashes.len() as u64;
        let nth = (u64::from(name.hash) * count) >> 32;
        self.hashes.get(nth as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: Name = Name { bytes: 9, hash: 0 };

    #[test]
    fn a_directory_grows_out_of_its_inode_into_a_block_and_into_hashes() {
        let mut dir = Dir::default();
        let mut next = 0;
        let (mut first_block, mut first_hashes) = (None, None);
        for n in 0..1200 {
            loop {
                match dir.growth(NAME) {
                    Growth::None => break,
                    Growth::Entries => {
                        first_block.get_or_insert(n);
                        dir.add_block(next);
                    }
                    Growth::Hashes => {
                        first_hashes.get_or_insert(n);
                        dir.hashes.push(next);
                    }
                }
                next += 1;
            }
            dir.add(NAME);
        }
        // 6 + 9 * 16 = 150 bytes fit, 166 do not.
        assert_eq!(first_block, Some(9));
        // 24 bytes an entry and 8 a hash: 127 of them; nine began shorter.
        assert!(
            (127..=129).contains(&first_hashes.unwrap()),
            "{first_hashes:?}"
        );
        assert_eq!(dir.hashes.len(), 3, "1200 hashes at 510 a block");
        assert_eq!(dir.blocks.len(), 8);
    }

    #[test]
    fn an_empty_directory_gives_everything_back() {
        let mut dir = Dir::default();
        dir.add_block(5);
        dir.hashes.push(6);
        dir.add(NAME);
        let block = dir.add(NAME);
        assert!(dir.remove(NAME, block).is_empty());
        assert_eq!(dir.remove(NAME, block), [5, 6]);
        assert!(dir.is_inline());
    }
}
