// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where ext2 and ext3 keep what: block groups, bitmaps, inode tables, the
//! journal (Documentation/filesystems/ext2.txt; mke2fs of 2008 and later).
//!
//! A block is 4096 bytes, a group 32768 blocks: superblock and descriptors
//! with room to grow in groups 0, 1 and the powers of 3, 5 and 7, then block
//! bitmap, inode bitmap, inode table, data. The root's block and the four of
//! lost+found are the first data blocks of group 0; the block of pointers to the
//! room of the descriptors is the next one (`resize_inode`). The journal lies
//! behind these or in the middle of the disk, in one piece. Not laid out: the
//! indirect blocks of a journal in the middle, and the blocks of the directory that
//! holds files from before the run.

use super::options::{ExtOptions, JournalPlace};
use blklab_types::PAGE_SECTORS;
use std::ops::Range;

/// Blocks of a group.
pub(crate) const GROUP_BLOCKS: u64 = 32768;
/// Bytes of a block.
const BLOCK_BYTES: u64 = 4096;
/// Block pointers in a block.
pub(crate) const POINTERS: u64 = 1024;
/// Block pointers in an inode.
pub(crate) const DIRECT: u64 = 12;
/// Inodes that are in use on an empty volume, all in group 0.
pub(crate) const RESERVED_INODES: u64 = 11;
/// The root's index among them.
pub(crate) const ROOT_INODE: u64 = 1;
/// Blocks of the root and of lost+found.
pub(crate) const ROOT_BLOCKS: u64 = 5;
/// Blocks of pointers of the inode that has the room of the descriptors.
const RESIZE_BLOCKS: u64 = 1;

/// A volume's fixed places. Blocks are numbered from its start.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    pub(crate) start_sector: u64,
    pub(crate) blocks: u64,
    inodes_per_block: u64,
    pub(crate) inodes_per_group: u64,
    descriptor_blocks: u64,
    reserved_descriptors: u64,
    /// From the journal's first block to its last; groups' tables between them.
    pub(crate) journal: Range<u64>,
    pub(crate) journal_blocks: u64,
    journal_at: JournalPlace,
}

/// Blocks of the journal of a disk of so many blocks (mke2fs).
pub fn default_journal_blocks(disk_blocks: u64) -> u64 {
    match disk_blocks {
        0..32_768 => 1024,
        32_768..262_144 => 4096,
        262_144..524_288 => 8192,
        524_288..1_048_576 => 16384,
        _ => 32768,
    }
}

impl Geometry {
    /// The layout of a volume on these sectors; an error if it does not fit.
    pub(crate) fn new(sectors: Range<u64>, o: &ExtOptions) -> Result<Geometry, String> {
        let blocks =
            (sectors.end.saturating_sub(sectors.start) / PAGE_SECTORS).min(u64::from(u32::MAX));
        let groups = blocks / GROUP_BLOCKS;
        let journal_blocks = o
            .journal_blocks
            .unwrap_or_else(|| default_journal_blocks(blocks));
        if o.journal && !(1024..=102_400).contains(&journal_blocks) {
            return Err(format!(
                "journal_blocks {journal_blocks}: a journal has 1024 to 102400 blocks"
            ));
        }
        let inodes_per_block = BLOCK_BYTES / u64::from(o.inode_size);
        let per_group = (GROUP_BLOCKS * BLOCK_BYTES / u64::from(o.inode_ratio))
            .clamp(inodes_per_block, GROUP_BLOCKS)
            .next_multiple_of(inodes_per_block);
        let descriptor_blocks = (groups * 32).div_ceil(BLOCK_BYTES).max(1);
        let mut g = Geometry {
            start_sector: sectors.start,
            // A last group that is not whole is left unused.
            blocks: groups * GROUP_BLOCKS,
            inodes_per_block,
            inodes_per_group: per_group,
            descriptor_blocks,
            reserved_descriptors: (descriptor_blocks * 1023)
                .min(POINTERS.saturating_sub(descriptor_blocks)),
            journal: 0..0,
            journal_blocks: 0,
            journal_at: o.journal_place,
        };
        let needed = if o.journal {
            journal_blocks / (GROUP_BLOCKS / 2) + 2
        } else {
            1
        };
        if groups < needed.max(u64::from(o.directory_group) + 1) {
            return Err(format!(
                "the disk has {groups} block groups of 128 MiB; {} are needed",
                needed.max(u64::from(o.directory_group) + 1)
            ));
        }
        if o.journal {
            let start = match o.journal_place {
                JournalPlace::Front => g.first_data(0) + ROOT_BLOCKS + RESIZE_BLOCKS,
                JournalPlace::Middle => g.first_data(g.middle_group(journal_blocks)),
            };
            g.journal = start..g.journal_place(start, journal_blocks - 1) + 1;
            g.journal_blocks = journal_blocks;
        }
        Ok(g)
    }

    /// The group in the middle of the disk where so many blocks of a journal begin:
    /// one without a copy of the superblock.
    fn middle_group(&self, blocks: u64) -> u64 {
        // A group holds fewer than 32768 blocks beside its own tables.
        let more = blocks / (GROUP_BLOCKS / 2);
        let mut group = (self.groups() / 2).min((self.groups() - 1).saturating_sub(more));
        while has_super(group) && group + 1 + more < self.groups() {
            group += 1;
        }
        group
    }

    /// The block where block `i` of a journal lies that begins at `start`: groups'
    /// bitmaps and tables stand in between.
    fn journal_place(&self, start: u64, i: u64) -> u64 {
        let indirect = match self.journal_at {
            JournalPlace::Front => indirects_up_to(i),
            JournalPlace::Middle => 0,
        };
        let (mut at, mut left) = (start, i + indirect);
        loop {
            let group = at / GROUP_BLOCKS;
            let room = Geometry::group_start(group + 1) - at;
            if left < room || group + 1 >= self.groups() {
                return at + left;
            }
            left -= room;
            at = self.first_data(group + 1);
        }
    }

    /// The block where block `i` of the journal lies.
    pub(crate) fn journal_block(&self, i: u64) -> u64 {
        self.journal_place(self.journal.start, i)
    }

    /// Number of groups.
    pub(crate) fn groups(&self) -> u64 {
        self.blocks / GROUP_BLOCKS
    }

    /// First block of a group.
    pub(crate) fn group_start(group: u64) -> u64 {
        group * GROUP_BLOCKS
    }

    /// Sector of a block.
    pub(crate) fn sector(&self, block: u64) -> u64 {
        self.start_sector + block * PAGE_SECTORS
    }

    /// The block bitmap of a group.
    pub(crate) fn block_bitmap(&self, group: u64) -> u64 {
        let before = if has_super(group) {
            1 + self.descriptor_blocks + self.reserved_descriptors
        } else {
            0
        };
        Geometry::group_start(group) + before
    }

    /// The first data block of a group.
    pub(crate) fn first_data(&self, group: u64) -> u64 {
        self.block_bitmap(group) + 2 + self.inodes_per_group / self.inodes_per_block
    }

    /// The block that holds a group's descriptor.
    pub(crate) fn descriptor(&self, group: u64) -> u64 {
        1 + group * 32 / BLOCK_BYTES
    }

    /// The inode bitmap of a group.
    pub(crate) fn inode_bitmap(&self, group: u64) -> u64 {
        self.block_bitmap(group) + 1
    }

    /// The block that holds an inode; inodes are numbered from 0 on.
    pub(crate) fn inode_block(&self, number: u64) -> u64 {
        let (group, index) = (
            number / self.inodes_per_group,
            number % self.inodes_per_group,
        );
        self.block_bitmap(group) + 2 + index / self.inodes_per_block
    }

    /// The inodes in the block that holds this one.
    pub(crate) fn inodes_beside(&self, number: u64) -> Range<u64> {
        let first = number - number % self.inodes_per_group % self.inodes_per_block;
        first..first + self.inodes_per_block
    }

    /// The block at a sector.
    pub(crate) fn block_at(&self, sector: u64) -> u64 {
        sector.saturating_sub(self.start_sector) / PAGE_SECTORS
    }
}

/// Whether a group begins with a copy of superblock and descriptors
/// (`sparse_super`).
pub(crate) fn has_super(group: u64) -> bool {
    let power_of = |base: u64| {
        let mut p = base;
        while p < group {
            p *= base;
        }
        p == group
    };
    group <= 1 || [3, 5, 7].into_iter().any(power_of)
}

/// The indirect block that holds the pointer to a page, counted from the
/// first; none for the pages that the inode points to.
pub(crate) fn leaf_index(page: u64) -> Option<u64> {
    Some(page.checked_sub(DIRECT)? / POINTERS)
}

/// Indirect blocks of a file of less than 4 GiB that lie before this page, where
/// each lies just before what it points to.
fn indirects_up_to(page: u64) -> u64 {
    leaf_index(page).map_or(0, |leaf| 1 + leaf + u64::from(leaf > 0))
}

/// Indirect blocks that a growing file needs just before this page.
pub(crate) fn new_indirects(page: u64) -> u64 {
    let Some(leaf) = leaf_index(page) else {
        return 0;
    };
    let begins_leaf = (page - DIRECT).is_multiple_of(POINTERS);
    match leaf {
        _ if !begins_leaf => 0,
        0 => 1,
        _ => {
            let double = leaf - 1;
            1 + u64::from(double.is_multiple_of(POINTERS)) + u64::from(double == POINTERS)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::{ExtFeatures, ExtOptions};
    use super::*;
    use blklab_kernel::KernelVersion;

    #[test]
    fn groups_lie_where_the_measured_volume_has_them() {
        // 64 GiB, 256-byte inodes: the bitmaps that the recorded run reads,
        // and where its data go on behind them.
        let o = ExtOptions::new(true, ExtFeatures::of(KernelVersion::v2_6(28)));
        let g = Geometry::new(0..134_217_728, &o).unwrap();
        assert_eq!(g.sector(g.block_bitmap(5)), 1_318_920);
        assert_eq!(g.sector(g.first_data(5)), 1_323_032);
        assert_eq!(g.sector(g.block_bitmap(6)), 1_572_864);
        assert_eq!(g.sector(g.block_bitmap(7)), 1_843_208);
        assert_eq!(g.journal_blocks, 32768);
        assert_eq!(g.journal_block(32767) + 1, g.journal.end);
    }

    #[test]
    fn a_journal_in_front_lies_behind_the_first_directories() {
        // debugfs, `stat <8>`, of a volume of mke2fs 1.47.0 without extents.
        let mut o = ExtOptions::new(true, ExtFeatures::of(KernelVersion::v2_6(28)));
        o.journal_place = JournalPlace::Front;
        let g = Geometry::new(0..134_217_728, &o).unwrap();
        for (block, place) in [
            (0, 1545),
            (11, 1556),
            (12, 1558),
            (1035, 2581),
            (1036, 2584),
            (2060, 3609),
            (31190, 32767),
            (31191, 34307),
            (31756, 34873),
            (32767, 35884),
        ] {
            assert_eq!(g.journal_block(block), place, "block {block}");
        }
        assert_eq!(g.journal, 1545..35885);
    }

    #[test]
    fn journals_by_size_of_the_disk() {
        let blocks = 20_000_000_000 / 4096;
        assert_eq!(default_journal_blocks(blocks), 32768);
        assert_eq!(default_journal_blocks((900 << 20) / 4096), 4096);
    }

    #[test]
    fn indirect_blocks_come_just_before_what_they_point_to() {
        let at = |page| new_indirects(page);
        assert_eq!((at(11), at(12), at(13), at(1035)), (0, 1, 0, 0));
        assert_eq!((at(1036), at(2060), at(2061)), (2, 1, 0));
        let second_double = DIRECT + POINTERS + POINTERS * POINTERS;
        assert_eq!(at(second_double), 3);
        assert_eq!(at(second_double + POINTERS), 1);
        assert_eq!(leaf_index(1036), Some(1));
    }
}
