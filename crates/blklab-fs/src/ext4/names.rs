// SPDX-License-Identifier: MIT OR Apache-2.0
//! Directories: blocks of entries in order of hash (fs/ext4/namei.c,
//! `dir_index`).
//!
//! A directory has one block until that is full; then a root, and leaves that
//! are split in halves by hash. Left out: index blocks below the root, which a
//! directory of more than 507 leaves (some 80 000 names) has.

use super::layout::BLOCK_BYTES;
use std::collections::BTreeMap;

/// Bytes of an entry beside its name.
const ENTRY_BYTES: u64 = 8;
/// Bytes that `.` and `..` take.
const DOTS_BYTES: u64 = 24;

/// A block of entries.
#[derive(Clone, Debug, Default)]
struct Leaf {
    block: u64,
    /// Hash and bytes of each.
    entries: Vec<(u32, u16)>,
    bytes: u64,
}

impl Leaf {
    /// Whether it has to be split before it takes another name. One whose
    /// names all have the same hash cannot be: it grows.
    fn is_full(&self, name: u8) -> bool {
        let mut hashes = self.entries.iter().map(|(h, _)| *h);
        let first = hashes.next();
        self.bytes + entry_bytes(name) > BLOCK_BYTES && hashes.any(|h| Some(h) != first)
    }
}

/// A directory's blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct HashedDirectory {
    /// The first block: entries, or, once there is more than one block, the
    /// index.
    root: u64,
    /// By the lowest hash of each.
    leaves: BTreeMap<u32, Leaf>,
}

/// Bytes of an entry whose name has so many.
fn entry_bytes(name: u8) -> u64 {
    (ENTRY_BYTES + u64::from(name)).next_multiple_of(4)
}

impl HashedDirectory {
    /// An empty directory whose first block is this one.
    pub(super) fn new(block: u64) -> HashedDirectory {
        let leaf = Leaf {
            block,
            entries: Vec::new(),
            bytes: DOTS_BYTES,
        };
        HashedDirectory {
            root: block,
            leaves: BTreeMap::from([(0, leaf)]),
        }
    }

    fn leaf(&self, hash: u32) -> Option<&Leaf> {
        self.leaves.range(..=hash).next_back().map(|(_, l)| l)
    }

    /// Blocks that are read to find a name (`dx_probe`).
    pub(super) fn path(&self, hash: u32) -> Vec<u64> {
        let leaf = self.leaf(hash).map(|l| l.block);
        let mut path = vec![self.root];
        path.extend(leaf.filter(|b| *b != self.root));
        path
    }

    /// All blocks, in the order in which a listing reads them.
    pub(super) fn blocks(&self) -> Vec<u64> {
        let mut blocks = vec![self.root];
        let leaves = self.leaves.values().map(|l| l.block);
        blocks.extend(leaves.filter(|b| *b != self.root));
        blocks
    }

    /// New blocks that one more name needs.
    pub(super) fn growth(&self, hash: u32, name: u8) -> usize {
        match self.leaf(hash) {
            Some(leaf) if leaf.is_full(name) => {
                // The entries move out of the first block as well.
                if leaf.block == self.root { 2 } else { 1 }
            }
            _ => 0,
        }
    }

    /// Adds a name, with the blocks that [`HashedDirectory::growth`] asked for
    /// (`ext4_dx_add_entry`, `make_indexed_dir`). Returns the blocks that this
    /// changed.
    pub(super) fn add(&mut self, hash: u32, name: u8, new: &[u64]) -> Vec<u64> {
        let mut changed = new.to_vec();
        if let ([first, _], Some(leaf)) = (new, self.leaves.get_mut(&0)) {
            // `.` and `..` stay in the root.
            leaf.block = *first;
            leaf.bytes -= DOTS_BYTES;
        }
        if let Some(block) = new.last() {
            changed.push(self.root);
            changed.extend(self.split(hash, *block));
        }
        if let Some((_, leaf)) = self.leaves.range_mut(..=hash).next_back() {
            let bytes = entry_bytes(name);
            leaf.entries.push((hash, bytes as u16));
            leaf.bytes += bytes;
            changed.push(leaf.block);
        }
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    /// Moves the upper half of a leaf to a new block (`do_split`).
    fn split(&mut self, hash: u32, block: u64) -> Option<u64> {
        let (_, leaf) = self.leaves.range_mut(..=hash).next_back()?;
        leaf.entries.sort_unstable_by_key(|(h, _)| *h);
        let (mut bytes, half) = (0, leaf.bytes / 2);
        let middle = leaf.entries.iter().position(|(_, b)| {
            bytes += u64::from(*b);
            bytes > half
        })?;
        // Names of one hash stay together.
        let lowest = leaf.entries[0].0;
        let first = leaf.entries[middle].0.max(lowest.saturating_add(1));
        let at = leaf.entries.partition_point(|(h, _)| *h < first);
        let first = leaf.entries.get(at)?.0;
        let upper = leaf.entries.split_off(at);
        let moved = upper.iter().map(|(_, b)| u64::from(*b)).sum();
        leaf.bytes -= moved;
        let old = leaf.block;
        let new = Leaf {
            block,
            entries: upper,
            bytes: moved,
        };
        self.leaves.insert(first, new);
        Some(old)
    }

    /// Removes a name (`ext4_delete_entry`). Returns the block that this changed.
    pub(super) fn remove(&mut self, hash: u32, name: u8) -> Option<u64> {
        let (_, leaf) = self.leaves.range_mut(..=hash).next_back()?;
        let entry = (hash, entry_bytes(name) as u16);
        if let Some(at) = leaf.entries.iter().position(|e| *e == entry) {
            leaf.entries.swap_remove(at);
            leaf.bytes -= u64::from(entry.1);
        }
        Some(leaf.block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_block_becomes_a_root_with_two_leaves() {
        let mut d = HashedDirectory::new(100);
        let hash = |i: u32| i.wrapping_mul(0x9e37_79b9);
        // 24 bytes each: 169 beside the dots.
        let mut n = 0;
        while d.growth(hash(n), 16) == 0 {
            assert_eq!(d.add(hash(n), 16, &[]), [100]);
            n += 1;
        }
        assert_eq!(n, (4096 - 24) / 24);
        assert_eq!(d.growth(hash(n), 16), 2);
        assert_eq!(d.add(hash(n), 16, &[101, 102]), [100, 101, 102]);
        assert_eq!(d.path(0), [100, 101]);
        assert_eq!(d.path(u32::MAX), [100, 102]);
        assert_eq!(d.blocks(), [100, 101, 102]);
        let entries: usize = d.leaves.values().map(|l| l.entries.len()).sum();
        assert_eq!(entries as u32, n + 1);
        for i in 0..=n {
            assert!(d.remove(hash(i), 16).is_some());
        }
        assert!(
            d.leaves
                .values()
                .all(|l| l.entries.is_empty() && l.bytes == 0)
        );
    }

    #[test]
    fn names_of_one_hash_cannot_be_split() {
        let mut d = HashedDirectory::new(1);
        for _ in 0..1000 {
            assert_eq!(d.growth(7, 8), 0);
            d.add(7, 8, &[]);
        }
        assert_eq!(d.growth(9, 8), 0);
        d.add(9, 8, &[]);
        assert_eq!(d.growth(7, 8), 2);
        d.add(7, 8, &[2, 3]);
        assert_eq!(d.leaf(7).map(|l| l.entries.len()), Some(1001));
        assert_eq!(d.leaf(9).map(|l| l.entries.len()), Some(1));
    }
}
