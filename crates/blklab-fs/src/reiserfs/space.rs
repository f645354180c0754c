// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which block a node or a page gets (fs/reiserfs/bitmap.c, 2.6.26: the
//! options `skip_busy`, `dirid_groups`, `packing_groups` of the default
//! allocator, preallocation of 16 blocks).
//!
//! A bitmap block says what 32768 blocks are used for; they are a group. A
//! block that was freed is not given to a page before the transaction that
//! freed it is committed: it is frozen till then. Tree nodes may take it.

use blklab_types::PAGE_SECTORS;
use std::ops::Range;

/// Blocks that a bitmap block describes.
pub(super) const GROUP_BLOCKS: u64 = 4096 * 8;
/// The superblock.
pub(super) const SUPERBLOCK: u64 = 16;
/// The first bitmap; the others begin their groups.
const FIRST_BITMAP: u64 = 17;
/// The journal.
pub(super) const JOURNAL: u64 = 18;
/// Its blocks.
pub(super) const JOURNAL_BLOCKS: u64 = 8192;
/// The block that says how far the journal has been flushed.
pub(super) const JOURNAL_HEADER: u64 = JOURNAL + JOURNAL_BLOCKS;
/// The first root of the tree.
pub(super) const FIRST_ROOT: u64 = JOURNAL_HEADER + 1;
/// Blocks of a group that a directory's pages leave to nodes.
const GROUP_NODES: u64 = 2048;

const WORDS: usize = (GROUP_BLOCKS / 64) as usize;

/// One group: which blocks are taken, and which may not be taken by pages.
#[derive(Clone, Debug)]
struct Group {
    taken: Box<[u64; WORDS]>,
    frozen: Box<[u64; WORDS]>,
    free: u64,
}

/// The blocks of a volume.
#[derive(Clone, Debug)]
pub(super) struct Space {
    groups: Vec<Option<Group>>,
    blocks: u64,
    free: u64,
    start_sector: u64,
}

/// What a search is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Want {
    /// For a page, not a node.
    pub(super) page: bool,
    /// The first page of a file: it stays away from groups nearly full.
    pub(super) first: bool,
    /// Blocks in a row, at most.
    pub(super) blocks: u64,
}

impl Space {
    /// An empty volume.
    ///
    /// # Errors
    /// If it has no room behind the journal.
    pub(super) fn new(sectors: Range<u64>) -> Result<Space, String> {
        let length = sectors.end.saturating_sub(sectors.start) / PAGE_SECTORS;
        if length < FIRST_ROOT + 1024 {
            return Err(format!(
                "reiserfs needs a volume of at least {} MiB, this one has {}",
                (FIRST_ROOT + 1024).div_ceil(256),
                length / 256
            ));
        }
        let groups = length.div_ceil(GROUP_BLOCKS);
        Ok(Space {
            groups: vec![None; groups as usize],
            blocks: length,
            // The first group's own blocks, and a bitmap per other group.
            free: length - (FIRST_ROOT + 1) - (groups - 1),
            start_sector: sectors.start,
        })
    }

    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    pub(super) fn free(&self) -> u64 {
        self.free
    }

    pub(super) fn nr_groups(&self) -> u64 {
        self.groups.len() as u64
    }

    /// The sector of a block.
    pub(super) fn sector(&self, block: u64) -> u64 {
        self.start_sector + block * PAGE_SECTORS
    }

    /// The block of a sector.
    pub(super) fn block(&self, sector: u64) -> u64 {
        (sector - self.start_sector) / PAGE_SECTORS
    }

    /// The bitmap block that describes a block.
    pub(super) fn bitmap(block: u64) -> u64 {
        match block / GROUP_BLOCKS {
            0 => FIRST_BITMAP,
            group => group * GROUP_BLOCKS,
        }
    }

    fn group(&mut self, group: u64) -> &mut Group {
        let blocks = self.blocks;
        self.groups[group as usize].get_or_insert_with(|| {
            let mut g = Group {
                taken: Box::new([0; WORDS]),
                frozen: Box::new([0; WORDS]),
                free: GROUP_BLOCKS,
            };
            let first = group * GROUP_BLOCKS;
            let own = match group {
                0 => FIRST_ROOT + 1,
                _ => 1,
            };
            let end = (blocks - first).min(GROUP_BLOCKS);
            for at in (0..own).chain(end..GROUP_BLOCKS) {
                set(&mut g.taken, at);
                g.free -= 1;
            }
            g
        })
    }

    /// Free blocks of a group.
    fn free_in(&mut self, group: u64) -> u64 {
        self.group(group).free
    }

    /// The group that a packing locality hashes to (`bmap_hash_id`).
    pub(super) fn group_of(&self, locality: u32) -> u64 {
        let groups = self.nr_groups();
        if locality <= 2 {
            return 1.min(groups - 1);
        }
        let group = u64::from(mix(locality)) % groups;
        group.max(1).min(groups - 1)
    }

    /// Whether others should start a packing locality of their own: more than four
    /// tenths of this one's group are taken (`block_group_used`).
    pub(super) fn group_used(&mut self, locality: u32) -> bool {
        let group = self.group_of(locality);
        self.free_in(group) <= GROUP_BLOCKS * 60 / 100
    }

    /// Where the first page of a file of a packing locality is looked for.
    pub(super) fn first_page_goal(&self, locality: u32) -> u64 {
        self.group_of(locality) * GROUP_BLOCKS + GROUP_NODES
    }

    /// Takes the first free blocks in a row from a place on
    /// (`reiserfs_allocate_blocknrs`); from the start of the volume if there are
    /// none. None if all are taken.
    pub(super) fn take(&mut self, from: u64, want: Want) -> Option<Range<u64>> {
        let from = from.min(self.blocks - 1);
        self.take_between(from..self.blocks, want)
            .or_else(|| self.take_between(0..from, want))
    }

    /// `scan_bitmap`.
    fn take_between(&mut self, run: Range<u64>, want: Want) -> Option<Range<u64>> {
        if self.free > self.blocks / 20
            && let Some(found) = self.search(run.clone(), want, true)
        {
            return Some(found);
        }
        self.search(run, want, false)
    }

    /// `choosy`: passes over groups that are nearly full, but for a file that
    /// is there already.
    fn search(&mut self, run: Range<u64>, want: Want, choosy: bool) -> Option<Range<u64>> {
        let mut at = run.start;
        while at < run.end {
            let group = at / GROUP_BLOCKS;
            let first = group * GROUP_BLOCKS;
            let end = run.end.min(first + GROUP_BLOCKS) - first;
            let at_home = at > first && !(want.page && want.first);
            let free = self.free_in(group);
            if free > 0 && (!choosy || at_home || free > GROUP_BLOCKS / 10) {
                let g = self.group(group);
                if let Some(found) = g.find(at - first..end, want) {
                    for bit in found.clone() {
                        set(&mut g.taken, bit);
                    }
                    let count = found.end - found.start;
                    g.free -= count;
                    self.free -= count;
                    return Some(first + found.start..first + found.end);
                }
            }
            at = first + GROUP_BLOCKS;
        }
        None
    }

    /// Gives blocks back (`reiserfs_free_block`). `frozen`: no page may take them
    /// before [`Space::thaw`].
    pub(super) fn free_blocks(&mut self, run: Range<u64>, frozen: bool) {
        for block in run {
            let (group, bit) = (block / GROUP_BLOCKS, block % GROUP_BLOCKS);
            let g = self.group(group);
            if !test(&g.taken, bit) {
                continue;
            }
            clear(&mut g.taken, bit);
            if frozen {
                set(&mut g.frozen, bit);
            }
            g.free += 1;
            self.free += 1;
        }
    }

    /// The transaction that freed these blocks is committed.
    pub(super) fn thaw(&mut self, run: Range<u64>) {
        for block in run {
            let (group, bit) = (block / GROUP_BLOCKS, block % GROUP_BLOCKS);
            clear(&mut self.group(group).frozen, bit);
        }
    }
}

impl Group {
    /// The first free bits in a row (`scan_bitmap_block`).
    fn find(&self, run: Range<u64>, want: Want) -> Option<Range<u64>> {
        let usable = |word: usize| {
            let frozen = if want.page { self.frozen[word] } else { 0 };
            !(self.taken[word] | frozen)
        };
        let mut word = (run.start / 64) as usize;
        let mut bits = usable(word) & (u64::MAX << (run.start % 64));
        while bits == 0 {
            word += 1;
            if word as u64 * 64 >= run.end {
                return None;
            }
            bits = usable(word);
        }
        let start = word as u64 * 64 + u64::from(bits.trailing_zeros());
        if start >= run.end {
            return None;
        }
        let most = run.end.min(start + want.blocks);
        let free = |bit: &u64| usable((*bit / 64) as usize) >> (*bit % 64) & 1 == 1;
        let end = (start + 1..most).take_while(free).last();
        Some(start..end.map_or(start + 1, |e| e + 1))
    }
}

fn set(bits: &mut [u64; WORDS], at: u64) {
    bits[(at / 64) as usize] |= 1 << (at % 64);
}

fn clear(bits: &mut [u64; WORDS], at: u64) {
    bits[(at / 64) as usize] &= !(1 << (at % 64));
}

fn test(bits: &[u64; WORDS], at: u64) -> bool {
    bits[(at / 64) as usize] >> (at % 64) & 1 == 1
}

/// Stands in for the kernel's keyed hash of a packing locality.
fn mix(n: u32) -> u32 {
    let mut x = n.wrapping_mul(0x9e37_79b9);
    x ^= x >> 16;
    x = x.wrapping_mul(0x85eb_ca6b);
    x ^= x >> 13;
    x = x.wrapping_mul(0xc2b2_ae35);
    x ^ x >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Want = Want {
        page: true,
        first: true,
        blocks: 17,
    };
    const NODE: Want = Want {
        page: false,
        first: false,
        blocks: 1,
    };

    fn volume(blocks: u64) -> Space {
        Space::new(0..blocks * 8).unwrap()
    }

    #[test]
    fn the_layout_is_that_of_the_format() {
        assert_eq!((FIRST_BITMAP, JOURNAL, JOURNAL_HEADER), (17, 18, 8210));
        assert_eq!(Space::bitmap(9000), 17);
        assert_eq!(Space::bitmap(3 * 32768 + 5), 3 * 32768);
        let s = volume(4 * 32768 + 100);
        assert_eq!(s.free(), 4 * 32768 + 100 - 8212 - 4);
        assert!(Space::new(0..60_000).is_err());
    }

    #[test]
    fn files_begin_behind_the_nodes_of_their_group_with_16_blocks_more() {
        let mut s = volume(8 * 32768);
        let goal = s.first_page_goal(2);
        assert_eq!(goal, 32768 + 2048);
        assert_eq!(s.take(goal, PAGE), Some(goal..goal + 17));
        // The next file finds them taken, or, given up, the first again.
        s.free_blocks(goal + 1..goal + 17, false);
        assert_eq!(s.take(goal, PAGE), Some(goal + 1..goal + 18));
    }

    #[test]
    fn freed_blocks_are_for_nodes_until_the_commit() {
        let mut s = volume(8 * 32768);
        let one = Want { blocks: 1, ..PAGE };
        let goal = s.first_page_goal(2);
        let a = s.take(goal, one).unwrap();
        s.free_blocks(a.clone(), true);
        assert_eq!(s.take(goal, one), Some(goal + 1..goal + 2));
        s.thaw(a.clone());
        assert_eq!(s.take(goal, one), Some(a.clone()));
        s.free_blocks(a.clone(), true);
        assert_eq!(s.take(goal, NODE), Some(a));
    }

    #[test]
    fn newcomers_avoid_a_group_nearly_full() {
        let mut s = volume(8 * 32768);
        let goal = s.first_page_goal(2);
        let filling = Want {
            page: true,
            first: false,
            blocks: 32768,
        };
        let filled = s.take(32768, filling).unwrap();
        s.free_blocks(filled.end - 3000..filled.end, false);
        assert_eq!(s.take(goal, PAGE), Some(2 * 32768 + 1..2 * 32768 + 18));
        let old = Want {
            first: false,
            ..PAGE
        };
        let end = filled.end;
        assert_eq!(s.take(goal, old), Some(end - 3000..end - 3000 + 17));
        assert!(s.group_used(1) && !s.group_used(7));
    }

    #[test]
    fn everything_can_be_taken_and_given_back() {
        let mut s = volume(2 * 32768);
        let all = s.free();
        let mut runs = Vec::new();
        while let Some(run) = s.take(20_000, PAGE) {
            runs.push(run);
        }
        assert_eq!(s.free(), 0);
        runs.into_iter().for_each(|r| s.free_blocks(r, false));
        assert_eq!(s.free(), all);
    }
}
