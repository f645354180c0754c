// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of numbered entries with bitmaps: inodes, and the translation of
//! virtual block numbers (fs/nilfs2/alloc.c, 2.6.32).
//!
//! Entries come in groups of as many as a bitmap block has bits; a block of
//! group descriptors precedes as many groups as it describes. The lowest free
//! entry is taken.

use blklab_pagecache::PageBits;
use blklab_types::PAGE_BYTES;

/// Entries of a group: bits of a block.
const GROUP_ENTRIES: u64 = PAGE_BYTES * 8;
/// Groups that a block of descriptors, of 4 bytes each, describes.
const DESCRIBED_GROUPS: u64 = PAGE_BYTES / 4;

/// The entries in use.
#[derive(Clone, Debug)]
pub(super) struct Table {
    used: PageBits,
    /// No entry below is free.
    from: u64,
    per_block: u64,
}

impl Table {
    /// A table of entries of so many bytes.
    pub(super) fn new(entry_bytes: u64) -> Table {
        Table {
            used: PageBits::default(),
            from: 0,
            per_block: PAGE_BYTES / entry_bytes,
        }
    }

    /// The entry that would be taken next.
    pub(super) fn next(&self) -> u64 {
        self.used.next_clear(self.from, u64::MAX)
    }

    /// Takes up to `most` entries in a row (`nilfs_palloc_prepare_alloc_entry`):
    /// the first, and how many.
    pub(super) fn take(&mut self, most: u64) -> (u64, u64) {
        let first = self.next();
        let end = self.used.next_set(first, first + most);
        let end = end.unwrap_or(first + most);
        self.used.set(first..end);
        self.from = end;
        (first, end - first)
    }

    /// Gives an entry back (`nilfs_palloc_prepare_free_entry`).
    pub(super) fn give(&mut self, entry: u64) {
        self.used.clear(entry..entry + 1);
        self.from = self.from.min(entry);
    }

    /// The block of the file that holds an entry.
    pub(super) fn block(&self, entry: u64) -> u64 {
        self.bitmap_block(entry) + 1 + entry % GROUP_ENTRIES / self.per_block
    }

    /// The block that holds its bit.
    pub(super) fn bitmap_block(&self, entry: u64) -> u64 {
        let nth = entry / GROUP_ENTRIES % DESCRIBED_GROUPS;
        self.descriptor_block(entry) + 1 + nth * self.group_blocks()
    }

    /// The block that holds its group's descriptor.
    pub(super) fn descriptor_block(&self, entry: u64) -> u64 {
        let nth = entry / GROUP_ENTRIES / DESCRIBED_GROUPS;
        nth * (1 + DESCRIBED_GROUPS * self.group_blocks())
    }

    fn group_blocks(&self) -> u64 {
        1 + GROUP_ENTRIES / self.per_block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_lie_behind_their_bitmap_and_the_lowest_free_one_is_taken() {
        let mut dat = Table::new(32);
        assert_eq!(dat.take(200), (0, 200));
        assert_eq!((dat.descriptor_block(0), dat.bitmap_block(0)), (0, 1));
        assert_eq!((dat.block(0), dat.block(127), dat.block(128)), (2, 2, 3));
        // The second group: behind a bitmap and 256 blocks of entries.
        assert_eq!((dat.bitmap_block(32_768), dat.block(32_768)), (258, 259));
        dat.give(17);
        assert_eq!((dat.take(5), dat.take(5)), ((17, 1), (200, 5)));
        let ifile = Table::new(128);
        assert_eq!((ifile.block(31), ifile.block(32)), (2, 3));
        assert_eq!(ifile.bitmap_block(32_768), 1 + 1025);
    }
}
