// SPDX-License-Identifier: MIT OR Apache-2.0
//! The blocks of a directory: which one has an entry, which ones a new entry
//! changes (fs/ext3/namei.c, 2.6.28).
//!
//! Without an index an entry goes into the first block with room. With one
//! (`dir_index`) a second block turns block 0 into the index and the entries
//! move into leaves, each a range of hashes; a full leaf is halved by size.
//!
//! Left out: where in a block an entry lies, so entries that do not follow each
//! other leave one hole together; a second level of the index, which begins
//! with 509 leaves (some 50 000 names).

use blklab_pagecache::{FileId, Name};

/// Bytes of a block.
const BLOCK_BYTES: u32 = 4096;
/// Bytes of the entries `.` and `..`.
const DOTS_BYTES: u32 = 24;

/// Bytes of an entry.
pub(super) fn entry_bytes(name: Name) -> u32 {
    (u32::from(name.bytes) + 8).next_multiple_of(4)
}

/// The hash that an entry is sorted by: the lowest bit marks a leaf that
/// begins with a hash that the one before ends with.
pub(super) fn hash(name: Name) -> u32 {
    name.hash & !1
}

/// An entry, as far as blocks go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) file: FileId,
    pub(super) name: Name,
    /// The block that it is in.
    pub(super) block: u32,
}

/// What a new entry changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// The block that the entry is in.
    pub(super) block: u32,
    /// Blocks that change.
    pub(super) touched: Vec<u32>,
    /// Entries that are in another block now.
    pub(super) moved: Vec<(FileId, u32)>,
}

/// The blocks of one directory.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    /// Free bytes of each.
    free: Vec<u16>,
    /// Leaves by the first hash of each; empty without an index.
    leaves: Vec<(u32, u32)>,
    /// Where the next search without an index begins.
    start: u32,
}

impl Blocks {
    /// One block with `.` and `..`.
    pub(super) fn new() -> Blocks {
        Blocks {
            free: vec![(BLOCK_BYTES - DOTS_BYTES) as u16],
            leaves: Vec::new(),
            start: 0,
        }
    }

    /// Number of blocks.
    pub(super) fn len(&self) -> u32 {
        self.free.len() as u32
    }

    /// Whether block 0 is an index.
    pub(super) fn is_indexed(&self) -> bool {
        !self.leaves.is_empty()
    }

    /// The leaf of a hash, counted in order of hashes.
    fn leaf(&self, hash: u32) -> usize {
        self.leaves.partition_point(|l| l.0 <= hash).max(1) - 1
    }

    /// The blocks that a search reads one after another until it finds the
    /// name in `block`, or all if there is none such.
    pub(super) fn searched(&self, name: Name, block: Option<u32>) -> Vec<u32> {
        if self.is_indexed() {
            let leaf = self.leaves[self.leaf(hash(name))].1;
            return vec![0, block.unwrap_or(leaf)];
        }
        let n = self.len();
        let order = (0..n).map(|i| (self.start + i) % n);
        let mut found = false;
        order
            .take_while(|b| !std::mem::replace(&mut found, Some(*b) == block))
            .collect()
    }

    /// A search found something here: the next one begins here.
    pub(super) fn found(&mut self, block: u32) {
        self.start = block.min(self.len() - 1);
    }

    /// The blocks of a listing, in order.
    pub(super) fn listed(&self) -> Vec<u32> {
        if self.is_indexed() {
            let leaves = self.leaves.iter().map(|l| l.1);
            return std::iter::once(0).chain(leaves).collect();
        }
        (0..self.len()).collect()
    }

    /// How many blocks the directory must grow by for a new entry.
    pub(super) fn needs(&self, name: Name, index: bool) -> u32 {
        let bytes = entry_bytes(name) as u16;
        if self.is_indexed() {
            let leaf = self.leaves[self.leaf(hash(name))].1;
            return u32::from(self.free[leaf as usize] < bytes);
        }
        if self.free.iter().any(|f| *f >= bytes) {
            return 0;
        }
        if index && self.len() == 1 { 2 } else { 1 }
    }

    /// Adds an entry (`add_dirent_to_buf`; a second block: `make_indexed_dir`);
    /// `others` are those that are there.
    pub(super) fn add(&mut self, name: Name, index: bool, mut others: Vec<Entry>) -> Change {
        let bytes = entry_bytes(name) as u16;
        let mut change = Change::default();
        if !self.is_indexed() {
            if let Some(block) = self.free.iter().position(|f| *f >= bytes) {
                self.free[block] -= bytes;
                change.block = block as u32;
                change.touched = vec![change.block];
                return change;
            }
            if !index || self.len() > 1 {
                self.free.push(BLOCK_BYTES as u16 - bytes);
                change.block = self.len() - 1;
                change.touched = vec![change.block];
                return change;
            }
            // The entries move from block 0 into the first leaf.
            let used = BLOCK_BYTES - DOTS_BYTES - u32::from(self.free[0]);
            self.free = vec![0, (BLOCK_BYTES - used) as u16];
            self.leaves = vec![(0, 1)];
            for entry in &mut others {
                entry.block = 1;
                change.moved.push((entry.file, 1));
            }
            change.touched = vec![0, 1];
            self.split(0, others, &mut change);
        } else {
            let leaf = self.leaf(hash(name));
            if self.free[self.leaves[leaf].1 as usize] < bytes {
                change.touched = vec![0];
                self.split(leaf, others, &mut change);
            }
        }
        let block = self.leaves[self.leaf(hash(name))].1;
        // A leaf of one hash may be over-full; the kernel would fail here.
        let free = &mut self.free[block as usize];
        *free = free.saturating_sub(bytes);
        change.block = block;
        if !change.touched.contains(&block) {
            change.touched.push(block);
        }
        change
    }

    /// Halves a leaf by size: the upper half of its hashes goes to a new block.
    fn split(&mut self, leaf: usize, others: Vec<Entry>, change: &mut Change) {
        let old = self.leaves[leaf].1;
        let new = self.len();
        let mut inside: Vec<Entry> = others.into_iter().filter(|e| e.block == old).collect();
        inside.sort_by_key(|e| hash(e.name));
        let (mut size, mut split) = (0, inside.len());
        while split > 0 {
            let bytes = entry_bytes(inside[split - 1].name);
            if size + bytes / 2 > BLOCK_BYTES / 2 {
                break;
            }
            size += bytes;
            split -= 1;
        }
        let upper = &inside[split..];
        let first = upper.first().map_or(u32::MAX - 1, |e| hash(e.name));
        let continued = split > 0 && hash(inside[split - 1].name) == first;
        self.leaves
            .insert(leaf + 1, (first | u32::from(continued), new));
        self.free[old as usize] += size as u16;
        self.free.push((BLOCK_BYTES - size) as u16);
        for entry in upper {
            change.moved.push((entry.file, new));
        }
        for block in [old, new] {
            if !change.touched.contains(&block) {
                change.touched.push(block);
            }
        }
    }

    /// An entry goes (`ext3_delete_entry`).
    pub(super) fn remove(&mut self, name: Name, block: u32) {
        if let Some(free) = self.free.get_mut(block as usize) {
            *free = (*free + entry_bytes(name) as u16).min(BLOCK_BYTES as u16);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(hash: u32) -> Name {
        // 8 + 92: 40 entries fill a block, with 72 bytes left behind the dots.
        Name { bytes: 92, hash }
    }

    /// Adds entries of these hashes; returns the blocks and who is where.
    fn fill(index: bool, hashes: &[u32]) -> (Blocks, Vec<Entry>) {
        let mut blocks = Blocks::new();
        let mut entries: Vec<Entry> = Vec::new();
        for (i, hash) in hashes.iter().enumerate() {
            let needs = blocks.needs(name(*hash), index);
            let before = blocks.len();
            let change = blocks.add(name(*hash), index, entries.clone());
            assert_eq!(blocks.len(), before + needs);
            for (file, block) in change.moved {
                entries[file.idx()].block = block;
            }
            entries.push(Entry {
                file: FileId(i as u32),
                name: name(*hash),
                block: change.block,
            });
        }
        (blocks, entries)
    }

    #[test]
    fn without_an_index_the_first_block_with_room_is_filled() {
        let hashes: Vec<u32> = (0..100).collect();
        let (mut blocks, entries) = fill(false, &hashes);
        assert_eq!(blocks.len(), 3);
        assert_eq!([entries[39].block, entries[40].block], [0, 1]);
        blocks.remove(name(3), 0);
        assert_eq!(blocks.needs(name(500), false), 0);
        assert_eq!(blocks.add(name(500), false, entries).block, 0);
        assert_eq!(blocks.searched(name(7), Some(1)), [0, 1]);
        blocks.found(2);
        assert_eq!(blocks.searched(name(7), Some(1)), [2, 0, 1]);
        assert_eq!(blocks.searched(name(7), None), [2, 0, 1]);
    }

    #[test]
    fn a_second_block_makes_the_first_an_index() {
        let hashes: Vec<u32> = (0..41).map(|i| i * 100).collect();
        let (blocks, entries) = fill(true, &hashes);
        // Index, and two leaves; the upper 20 of 40 are in the second.
        assert_eq!(blocks.len(), 3);
        let upper = entries.iter().filter(|e| e.block == 2).count();
        assert_eq!((upper, entries[40].block), (21, 2));
        assert_eq!(blocks.leaves, [(0, 1), (2000, 2)]);
        assert_eq!(blocks.searched(name(1999), None), [0, 1]);
        assert_eq!(blocks.searched(name(2000), None), [0, 2]);
        assert_eq!(blocks.listed(), [0, 1, 2]);
    }

    #[test]
    fn every_entry_is_found_where_the_index_points() {
        let hashes: Vec<u32> = (0..2000_u32)
            .map(|i| i.wrapping_mul(2_654_435_761))
            .collect();
        let (mut blocks, entries) = fill(true, &hashes);
        for e in &entries {
            let block = blocks.leaves[blocks.leaf(hash(e.name))].1;
            assert_eq!(block, e.block);
        }
        for e in &entries {
            blocks.remove(e.name, e.block);
        }
        let free = &blocks.free[1..];
        assert!(
            free.iter().all(|f| u32::from(*f) == BLOCK_BYTES),
            "{free:?}"
        );
    }
}
