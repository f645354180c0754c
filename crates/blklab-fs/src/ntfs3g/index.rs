// SPDX-License-Identifier: MIT OR Apache-2.0
//! A directory's index: which block an entry is in.
//!
//! Entries are in order of their names, for which a hash stands. The first
//! ones are in the directory's record; when they do not fit any more, all move
//! to a block of 4 KiB, and blocks that overflow are halved. The record then
//! points to the blocks, through one more block when they are many.

/// Bytes of entries that a record holds.
const RECORD_ROOM: u32 = 600;
/// Bytes of entries that a block holds.
const BLOCK_ROOM: u32 = 4096 - 64;
/// Blocks that the record points to by itself.
const ROOT_BLOCKS: usize = 5;

/// Bytes of an entry for a name of that length: a head, the file's attributes,
/// two bytes a letter.
fn entry_bytes(name_bytes: u8) -> u32 {
    (16 + 66 + 2 * u32::from(name_bytes)).next_multiple_of(8)
}

/// An entry: where it stands, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    key: u64,
    bytes: u16,
}

impl Entry {
    /// An entry for a file whose name has that hash and length.
    pub(super) fn new(hash: u32, file: u32, name_bytes: u8) -> Entry {
        Entry {
            key: u64::from(hash) << 32 | u64::from(file),
            bytes: entry_bytes(name_bytes) as u16,
        }
    }
}

#[derive(Clone, Debug)]
struct Block {
    /// None: the record itself.
    cluster: Option<u64>,
    entries: Vec<Entry>,
}

impl Block {
    fn bytes(&self) -> u32 {
        self.entries.iter().map(|e| u32::from(e.bytes)).sum()
    }

    fn room(&self) -> u32 {
        match self.cluster {
            Some(_) => BLOCK_ROOM,
            None => RECORD_ROOM,
        }
    }
}

/// The index of a directory.
#[derive(Clone, Debug)]
pub(super) struct Index {
    /// In order; never empty.
    blocks: Vec<Block>,
    /// The block between the record and the others.
    top: Option<u64>,
}

impl Default for Index {
    fn default() -> Index {
        Index {
            blocks: vec![Block {
                cluster: None,
                entries: Vec::new(),
            }],
            top: None,
        }
    }
}

impl Index {
    fn block_of(&self, key: u64) -> usize {
        let first = |b: &Block| b.entries.first().is_some_and(|e| e.key <= key);
        self.blocks.partition_point(first).saturating_sub(1)
    }

    /// The clusters on the way to an entry.
    pub(super) fn path(&self, entry: Entry) -> impl Iterator<Item = u64> + use<> {
        let block = self.blocks[self.block_of(entry.key)].cluster;
        self.top.into_iter().chain(block)
    }

    /// All clusters, in order.
    pub(super) fn clusters(&self) -> impl Iterator<Item = u64> + '_ {
        let blocks = self.blocks.iter().filter_map(|b| b.cluster);
        self.top.into_iter().chain(blocks)
    }

    /// Whether an entry needs clusters: how many.
    pub(super) fn clusters_for(&self, entry: Entry) -> u64 {
        let block = &self.blocks[self.block_of(entry.key)];
        let full = block.bytes() + u32::from(entry.bytes) > block.room();
        u64::from(full) + u64::from(full && self.blocks.len() >= ROOT_BLOCKS && self.top.is_none())
    }

    /// Puts an entry in. `new` gives the clusters that it needs; `changed` gets those
    /// that changed. Entries come once.
    pub(super) fn insert(
        &mut self,
        entry: Entry,
        mut new: impl FnMut() -> u64,
        changed: &mut Vec<u64>,
    ) {
        let at = self.block_of(entry.key);
        let block = &mut self.blocks[at];
        let place = block.entries.partition_point(|e| e.key < entry.key);
        block.entries.insert(place, entry);
        if block.bytes() > block.room() {
            self.split(at, &mut new, changed);
        }
        changed.extend(self.path(entry));
    }

    fn split(&mut self, at: usize, new: &mut impl FnMut() -> u64, changed: &mut Vec<u64>) {
        let cluster = new();
        changed.push(cluster);
        if self.blocks[at].cluster.is_none() {
            self.blocks[at].cluster = Some(cluster);
            return;
        }
        let half = self.blocks[at].entries.len() / 2;
        let entries = self.blocks[at].entries.split_off(half);
        changed.extend(self.blocks[at].cluster);
        let cluster = Some(cluster);
        self.blocks.insert(at + 1, Block { cluster, entries });
        if self.blocks.len() > ROOT_BLOCKS && self.top.is_none() {
            self.top = Some(new());
        }
    }

    /// Takes an entry out; returns the clusters that are empty now.
    pub(super) fn remove(&mut self, entry: Entry, changed: &mut Vec<u64>) -> Option<u64> {
        changed.extend(self.path(entry));
        let at = self.block_of(entry.key);
        self.blocks[at].entries.retain(|e| e.key != entry.key);
        if self.blocks[at].entries.is_empty() && self.blocks.len() > 1 {
            return self.blocks.remove(at).cluster;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_begin_in_the_record_and_move_to_blocks() {
        let mut index = Index::default();
        let mut next = 100;
        let mut add = |index: &mut Index, n: u32| {
            let entry = Entry::new(n.wrapping_mul(0x9e37_79b9), n, 10);
            let needs = index.clusters_for(entry);
            let before = next;
            let new = || {
                next += 1;
                next
            };
            let mut changed = Vec::new();
            index.insert(entry, new, &mut changed);
            assert_eq!(next - before, needs);
            changed
        };
        // 104 bytes an entry: five in the record.
        for n in 0..5 {
            assert!(add(&mut index, n).is_empty());
        }
        assert_eq!(add(&mut index, 5), [101, 101]);
        for n in 6..38 {
            assert_eq!(add(&mut index, n), [101]);
        }
        assert_eq!(index.clusters().count(), 1, "38 entries are 3952 bytes");
        assert_eq!(add(&mut index, 38)[0], 102);
        for n in 39..1000 {
            add(&mut index, n);
        }
        let clusters = index.clusters().count();
        assert!((27..52).contains(&clusters), "{clusters} blocks");
        let sorted = |b: &Block| b.entries.windows(2).all(|w| w[0].key < w[1].key);
        assert!(index.blocks.iter().all(sorted));
        let mut freed = 0;
        for n in 0..1000_u32 {
            let entry = Entry::new(n.wrapping_mul(0x9e37_79b9), n, 10);
            freed += usize::from(index.remove(entry, &mut Vec::new()).is_some());
        }
        assert_eq!(index.clusters().count(), clusters - freed);
        assert!(index.clusters().count() <= 2);
    }

    #[test]
    fn no_block_holds_more_than_it_can_and_entries_need_what_was_said() {
        let mut random = blklab_types::SplitMix64(7);
        let mut index = Index::default();
        for file in 0..2000 {
            let hash = random.next_u64() as u32;
            let name_bytes = [1, 255, random.next_u64() as u8][random.below(3) as usize];
            let entry = Entry::new(hash, file, name_bytes);
            let (needed, mut taken) = (index.clusters_for(entry), 0);
            let new = || {
                taken += 1;
                taken
            };
            index.insert(entry, new, &mut Vec::new());
            assert_eq!(taken, needed);
            assert!(index.blocks.iter().all(|b| b.bytes() <= b.room()));
        }
    }
}
