// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where ext4 keeps what: block groups in flex groups of 16, whose bitmaps and
//! inode tables lie together at the start of the first one
//! (Documentation/filesystems/ext4.txt; mke2fs 1.41 and later).
//!
//! A block is 4096 bytes, a group 32768 blocks. The journal lies in one piece
//! behind the tables of the flex group in the middle of the disk.

use super::options::Ext4Options;
use blklab_types::PAGE_SECTORS;
use std::ops::Range;

/// Blocks of a group.
pub(super) const GROUP_BLOCKS: u64 = 32768;
/// Groups whose tables lie together.
pub(super) const FLEX_GROUPS: u64 = 16;
/// Bytes of a block.
pub(super) const BLOCK_BYTES: u64 = 4096;
/// Inodes that are in use on an empty volume.
const RESERVED_INODES: u64 = 11;
/// Most blocks kept for descriptors of groups that the volume may grow by.
const RESERVED_DESCRIPTORS: u64 = 1024;

/// A volume's fixed places. Blocks are numbered from its start.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    start_sector: u64,
    pub(super) blocks: u64,
    inodes_per_block: u64,
    pub(super) inodes_per_group: u64,
    descriptor_bytes: u64,
    /// Blocks of the superblock, the descriptors and their reserve.
    super_blocks: u64,
    /// The journal's pieces.
    pub(super) journal: Vec<Range<u64>>,
}

/// Blocks of the journal of a disk of so many blocks: mke2fs up to 1.43, and
/// later.
pub fn default_ext4_journal_blocks(disk_blocks: u64, large: bool) -> u64 {
    const MI: u64 = 1 << 20;
    match disk_blocks {
        0..32_768 => 1024,
        32_768..262_144 => 4096,
        262_144..524_288 => 8192,
        524_288..MI if !large => 16384,
        _ if !large => 32768,
        n if n < 4 * MI => 16384,
        n if n < 8 * MI => 32768,
        n if n < 16 * MI => 65536,
        n if n < 32 * MI => 131_072,
        _ => 262_144,
    }
}

impl Geometry {
    /// The layout of a volume on these sectors; an error if it does not fit.
    pub(super) fn new(sectors: Range<u64>, o: &Ext4Options) -> Result<Geometry, String> {
        let blocks = (sectors.end.saturating_sub(sectors.start) / PAGE_SECTORS).min(1 << 36);
        let groups = blocks / GROUP_BLOCKS;
        let large = o.features.large_journals;
        let journal_blocks = o
            .journal_blocks
            .unwrap_or_else(|| default_ext4_journal_blocks(blocks, large));
        if !(1024..=10_240_000).contains(&journal_blocks) {
            return Err(format!(
                "journal_blocks {journal_blocks}: a journal has 1024 to 10240000 blocks"
            ));
        }
        let needed = 2 + journal_blocks / (GROUP_BLOCKS / 2);
        if groups < needed {
            return Err(format!(
                "the disk has {groups} block groups of 128 MiB; {needed} are needed"
            ));
        }
        let inodes_per_block = BLOCK_BYTES / u64::from(o.inode_size);
        let per_group = (GROUP_BLOCKS * BLOCK_BYTES / u64::from(o.inode_ratio))
            .clamp(inodes_per_block, GROUP_BLOCKS / 4)
            .next_multiple_of(inodes_per_block);
        let descriptor_bytes = if large { 64 } else { 32 };
        let descriptors = (groups * descriptor_bytes).div_ceil(BLOCK_BYTES);
        let reserve = (descriptors * 1023).min(RESERVED_DESCRIPTORS.saturating_sub(descriptors));
        let mut g = Geometry {
            start_sector: sectors.start,
            // A last group that is not whole is left unused.
            blocks: groups * GROUP_BLOCKS,
            inodes_per_block,
            inodes_per_group: per_group,
            descriptor_bytes,
            super_blocks: 1 + descriptors + reserve,
            journal: Vec::new(),
        };
        g.journal = g.place_journal(journal_blocks);
        Ok(g)
    }

    /// Behind the tables of the flex group in the middle, and over the groups
    /// that follow.
    fn place_journal(&self, blocks: u64) -> Vec<Range<u64>> {
        let more = blocks.div_ceil(GROUP_BLOCKS / 2);
        let middle = (self.groups() / 2).min((self.groups() - 1).saturating_sub(more));
        let mut group = middle / FLEX_GROUPS * FLEX_GROUPS;
        let (mut pieces, mut left): (Vec<Range<u64>>, u64) = (Vec::new(), blocks);
        while left > 0 && group < self.groups() {
            let start = self.first_data(group);
            let take = left.min(Geometry::group_start(group + 1) - start);
            match pieces.last_mut() {
                Some(last) if last.end == start => last.end += take,
                _ => pieces.push(start..start + take),
            }
            left -= take;
            group += 1;
        }
        pieces
    }

    /// Blocks of the journal.
    pub(super) fn journal_blocks(&self) -> u64 {
        self.journal.iter().map(|p| p.end - p.start).sum()
    }

    /// The block where block `i` of the journal lies.
    pub(super) fn journal_block(&self, i: u64) -> u64 {
        let mut left = i;
        for piece in &self.journal {
            let len = piece.end - piece.start;
            if left < len {
                return piece.start + left;
            }
            left -= len;
        }
        0
    }

    /// Number of groups.
    pub(super) fn groups(&self) -> u64 {
        self.blocks / GROUP_BLOCKS
    }

    /// Number of flex groups.
    pub(super) fn flex_groups(&self) -> u64 {
        self.groups().div_ceil(FLEX_GROUPS)
    }

    /// The groups of a flex group.
    pub(super) fn groups_of(&self, flex: u64) -> Range<u64> {
        flex * FLEX_GROUPS..((flex + 1) * FLEX_GROUPS).min(self.groups())
    }

    /// First block of a group.
    pub(super) fn group_start(group: u64) -> u64 {
        group * GROUP_BLOCKS
    }

    /// Sector of a block.
    pub(super) fn sector(&self, block: u64) -> u64 {
        self.start_sector + block * PAGE_SECTORS
    }

    /// Block at a sector.
    pub(super) fn block(&self, sector: u64) -> u64 {
        (sector - self.start_sector) / PAGE_SECTORS
    }

    /// Where a group's own blocks begin, behind superblock and descriptors.
    fn behind_super(&self, group: u64) -> u64 {
        let copies = if crate::ext3::has_super(group) {
            self.super_blocks
        } else {
            0
        };
        Geometry::group_start(group) + copies
    }

    fn tables(&self, group: u64) -> u64 {
        self.behind_super(group / FLEX_GROUPS * FLEX_GROUPS)
    }

    fn table_blocks(&self) -> u64 {
        self.inodes_per_group / self.inodes_per_block
    }

    /// The block bitmap of a group.
    pub(super) fn block_bitmap(&self, group: u64) -> u64 {
        self.tables(group) + group % FLEX_GROUPS
    }

    /// The inode bitmap of a group.
    pub(super) fn inode_bitmap(&self, group: u64) -> u64 {
        self.tables(group) + FLEX_GROUPS + group % FLEX_GROUPS
    }

    /// Whether a block is a bitmap.
    pub(super) fn is_bitmap(&self, block: u64) -> bool {
        let first = self.tables(block / GROUP_BLOCKS);
        (first..first + 2 * FLEX_GROUPS).contains(&block)
    }

    /// The blocks of a group's inode table.
    pub(super) fn inode_table(&self, group: u64) -> Range<u64> {
        let first =
            self.tables(group) + 2 * FLEX_GROUPS + group % FLEX_GROUPS * self.table_blocks();
        first..first + self.table_blocks()
    }

    /// The block that holds an inode, by its index in a group.
    pub(super) fn inode_block(&self, group: u64, index: u64) -> u64 {
        self.inode_table(group).start + index / self.inodes_per_block
    }

    /// The inodes that share a block with one, by their index in the group.
    pub(super) fn inodes_beside(&self, index: u64) -> Range<u64> {
        let first = index / self.inodes_per_block * self.inodes_per_block;
        first..first + self.inodes_per_block
    }

    /// The first data block of a group.
    pub(super) fn first_data(&self, group: u64) -> u64 {
        if group.is_multiple_of(FLEX_GROUPS) {
            self.tables(group) + FLEX_GROUPS * (2 + self.table_blocks())
        } else {
            self.behind_super(group)
        }
    }

    /// The block that holds a group's descriptor.
    pub(super) fn descriptor(&self, group: u64) -> u64 {
        1 + group * self.descriptor_bytes / BLOCK_BYTES
    }

    /// The first index of a group that a file can get.
    pub(super) fn first_inode(group: u64) -> u64 {
        if group == 0 { RESERVED_INODES } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::Ext4Features;
    use super::*;
    use blklab_kernel::KernelVersion;

    fn volume(gib: u64) -> Geometry {
        let o = Ext4Options::new(Ext4Features::of(KernelVersion::v2_6(32)));
        Geometry::new(0..gib << 21, &o).unwrap()
    }

    #[test]
    fn tables_of_sixteen_groups_lie_together() {
        // 20 GiB: 160 groups, 5120 bytes of descriptors in 2 blocks, 1022
        // blocks of reserve: bitmaps at 1025, as dumpe2fs says of such a disk.
        let g = volume(20);
        assert_eq!(g.block_bitmap(0), 1025);
        assert_eq!(g.block_bitmap(15), 1040);
        assert_eq!(g.inode_bitmap(0), 1041);
        assert_eq!(g.inode_table(0), 1057..1569);
        assert_eq!(g.inode_table(1).start, 1569);
        assert_eq!(g.first_data(0), 1057 + 16 * 512);
        assert_eq!(g.block_bitmap(16), 524_288);
        assert_eq!(g.inode_bitmap(16), 524_304);
        assert_eq!(g.inode_table(16).start, 524_320);
        assert_eq!(g.first_data(1), 32768 + 1025, "a copy of the descriptors");
        assert_eq!(g.first_data(2), 65536);
    }

    #[test]
    fn the_journal_lies_behind_the_tables_in_the_middle() {
        let g = volume(20);
        assert_eq!(g.journal_blocks(), 32768);
        // Group 80 begins a flex group; group 81 is a power of three.
        let first = 80 * 32768 + 32 + 8192;
        assert_eq!(g.journal_block(0), first);
        assert_eq!(g.journal[0].end, 81 * 32768);
        assert_eq!(g.journal[1].start, 81 * 32768 + 1025);
        let last = g.journal_block(32767);
        assert_eq!(Some(last + 1), g.journal.last().map(|p| p.end));
    }

    #[test]
    fn journals_by_size_of_the_disk() {
        let blocks = |gib: u64, large| default_ext4_journal_blocks((gib << 30) / 4096, large);
        assert_eq!(
            (blocks(3, false), blocks(20, false), blocks(500, false)),
            (16384, 32768, 32768)
        );
        assert_eq!(
            (blocks(3, true), blocks(20, true), blocks(100, true)),
            (16384, 32768, 131_072)
        );
        assert_eq!(blocks(500, true), 262_144);
    }
}
