// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which inode a new file or directory gets (fs/ext3/ialloc.c, 2.6.28).
//!
//! Directories are spread by Orlov's rules: one in the root goes to the group
//! with the fewest directories, searched from a random group on; one below goes
//! to the first group at or behind its parent's that has not many more
//! directories, and not much less room, than the mean. A file goes to its
//! directory's group, or to one found in growing steps behind it. Inside a
//! group it is the lowest free inode.
//!
//! Left out: `oldalloc`, and the flag that makes a directory a top one.

use super::layout::{GROUP_BLOCKS, Geometry, RESERVED_INODES};
use blklab_engine::Stream;

/// One group's inodes.
#[derive(Clone, Debug, Default)]
struct Group {
    /// Inodes in use, a bit each; nothing as long as none was taken.
    bits: Vec<u64>,
    free: u64,
    directories: u64,
}

/// Which inodes are taken.
#[derive(Clone, Debug)]
pub(crate) struct Inodes {
    per_group: u64,
    groups: Vec<Group>,
    /// Sums over all groups.
    nr_free: u64,
    nr_directories: u64,
    /// Chooses where the search for a directory of the root begins.
    random: Stream,
}

/// Free blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FreeBlocks<'a> {
    pub(crate) by_group: &'a [u64],
    pub(crate) sum: u64,
}

impl Inodes {
    /// Those of an empty volume.
    pub(crate) fn new(geometry: &Geometry, seed: u64) -> Inodes {
        let per_group = geometry.inodes_per_group;
        let group = Group {
            free: per_group,
            ..Group::default()
        };
        let mut inodes = Inodes {
            per_group,
            groups: vec![group; geometry.groups() as usize],
            nr_free: per_group * geometry.groups(),
            nr_directories: 2,
            random: Stream::named(seed, "ext3 directories"),
        };
        for _ in 0..RESERVED_INODES {
            inodes.take(0, false);
        }
        // The root and lost+found.
        inodes.groups[0].directories = 2;
        inodes
    }

    /// Free inodes of the volume.
    pub(crate) fn free(&self) -> u64 {
        self.nr_free
    }

    /// Takes the lowest free inode of a group (`ext3_new_inode`).
    pub(crate) fn take(&mut self, group: u64, directory: bool) -> Option<u64> {
        let words = self.per_group.div_ceil(64) as usize;
        let g = &mut self.groups[group as usize];
        if g.free == 0 {
            return None;
        }
        if g.bits.is_empty() {
            g.bits = vec![0; words];
        }
        let word = g.bits.iter().position(|w| *w != u64::MAX)?;
        let bit = g.bits[word].trailing_ones();
        debug_assert!(
            word as u64 * 64 + u64::from(bit) < self.per_group,
            "group {group} has no inode left but counts {}",
            g.free
        );
        g.bits[word] |= 1 << bit;
        g.free -= 1;
        g.directories += u64::from(directory);
        self.nr_free -= 1;
        self.nr_directories += u64::from(directory);
        Some(group * self.per_group + word as u64 * 64 + u64::from(bit))
    }

    /// Gives an inode back (`ext3_free_inode`).
    pub(crate) fn give_back(&mut self, number: u64, directory: bool) {
        let g = &mut self.groups[(number / self.per_group) as usize];
        let i = number % self.per_group;
        let (word, bit) = (&mut g.bits[(i / 64) as usize], 1 << (i % 64));
        assert!(*word & bit != 0, "inode {number} is freed twice");
        *word &= !bit;
        g.free += 1;
        g.directories -= u64::from(directory);
        self.nr_free += 1;
        self.nr_directories -= u64::from(directory);
    }

    /// Whether an inode is the only one in use among these.
    pub(crate) fn alone(&self, number: u64, among: std::ops::Range<u64>) -> bool {
        let g = &self.groups[(number / self.per_group) as usize];
        among.into_iter().all(|n| {
            let i = n % self.per_group;
            let used = g.bits.get((i / 64) as usize);
            n == number || used.is_none_or(|w| w >> (i % 64) & 1 == 0)
        })
    }

    fn nr_groups(&self) -> u64 {
        self.groups.len() as u64
    }

    fn group(&self, group: u64) -> &Group {
        &self.groups[group as usize]
    }

    /// All groups from one on, once round.
    fn from(&self, first: u64) -> impl Iterator<Item = u64> + '_ {
        (0..self.nr_groups()).map(move |i| (first + i) % self.nr_groups())
    }

    /// The group for a directory of the root (`find_group_orlov`).
    pub(crate) fn group_in_root(&mut self, blocks: FreeBlocks<'_>) -> Option<u64> {
        let first = self.random.below(self.nr_groups());
        let (inodes_mean, blocks_mean) = self.means(blocks);
        let (mut best, mut fewest) = (None, self.per_group);
        for group in self.from(first) {
            let g = self.group(group);
            let fits = g.free > 0
                && g.directories < fewest
                && g.free >= inodes_mean
                && blocks.by_group[group as usize] >= blocks_mean;
            if fits {
                (best, fewest) = (Some(group), g.directories);
            }
        }
        best.or_else(|| self.any_group(first, inodes_mean))
    }

    /// The group for a directory of another one (`find_group_orlov`).
    pub(crate) fn group_below(&self, parent: u64, blocks: FreeBlocks<'_>) -> Option<u64> {
        let (inodes_mean, blocks_mean) = self.means(blocks);
        let most = self.nr_directories / self.nr_groups() + self.per_group / 16;
        let least_inodes = inodes_mean.saturating_sub(self.per_group / 4);
        let least_blocks = blocks_mean.saturating_sub(GROUP_BLOCKS / 4);
        let fits = |group: &u64| {
            let g = self.group(*group);
            g.free > 0
                && g.directories < most
                && g.free >= least_inodes
                && blocks.by_group[*group as usize] >= least_blocks
        };
        let found = self.from(parent).find(fits);
        found.or_else(|| self.any_group(parent, inodes_mean))
    }

    /// The first with as many free inodes as the mean, else with any.
    fn any_group(&self, first: u64, inodes_mean: u64) -> Option<u64> {
        [inodes_mean.max(1), 1].into_iter().find_map(|least| {
            let mut groups = self.from(first);
            groups.find(|g| self.group(*g).free >= least)
        })
    }

    /// Mean free inodes and blocks of a group.
    fn means(&self, blocks: FreeBlocks<'_>) -> (u64, u64) {
        let n = self.nr_groups();
        (self.free() / n, blocks.sum / n)
    }

    /// The group for a file of a directory whose inode is `directory`
    /// (`find_group_other`).
    pub(crate) fn group_of_file(&self, directory: u64, blocks: FreeBlocks<'_>) -> Option<u64> {
        let n = self.nr_groups();
        let parent = directory / self.per_group;
        let free = |g: u64| self.group(g).free > 0 && blocks.by_group[g as usize] > 0;
        if free(parent) {
            return Some(parent);
        }
        // Inode numbers of the disk begin with 1.
        let mut group = (parent + directory + 1) % n;
        let mut step = 1;
        while step < n {
            group = (group + step) % n;
            if free(group) {
                return Some(group);
            }
            step *= 2;
        }
        let mut rest = self.from(parent + 1);
        rest.find(|g| self.group(*g).free > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::{ExtFeatures, ExtOptions};
    use super::*;
    use blklab_kernel::KernelVersion;

    /// 8 groups of 8192 inodes, and their free blocks.
    fn volume() -> (Inodes, Vec<u64>) {
        let mut o = ExtOptions::new(false, ExtFeatures::of(KernelVersion::v2_6(28)));
        o.inode_ratio = 16384;
        let g = Geometry::new(0..8 * 32768 * 8, &o).unwrap();
        (Inodes::new(&g, 1), vec![32000; 8])
    }

    fn free(by_group: &[u64]) -> FreeBlocks<'_> {
        let sum = by_group.iter().sum();
        FreeBlocks { by_group, sum }
    }

    #[test]
    fn the_lowest_free_inode_is_taken() {
        let (mut inodes, _) = volume();
        assert_eq!(inodes.take(0, false), Some(11));
        assert_eq!(inodes.take(3, false), Some(3 * 8192));
        assert_eq!(inodes.take(3, false), Some(3 * 8192 + 1));
        assert_eq!(inodes.free(), 8 * 8192 - 14);
        inodes.give_back(3 * 8192, false);
        assert!(inodes.alone(3 * 8192 + 1, 3 * 8192..3 * 8192 + 16));
        assert_eq!(inodes.take(3, false), Some(3 * 8192));
        assert!(!inodes.alone(3 * 8192 + 1, 3 * 8192..3 * 8192 + 16));
    }

    #[test]
    fn directories_of_the_root_go_where_directories_are_few() {
        let (mut inodes, blocks) = volume();
        let mut groups: Vec<u64> = (0..7)
            .map(|_| {
                let group = inodes.group_in_root(free(&blocks)).unwrap();
                inodes.take(group, true).unwrap();
                group
            })
            .collect();
        groups.sort_unstable();
        assert_eq!(
            groups,
            [1, 2, 3, 4, 5, 6, 7],
            "one each; group 0 has two and fewer free inodes than the mean"
        );
    }

    #[test]
    fn directories_below_stay_until_their_group_has_many_more_than_the_mean() {
        let (mut inodes, blocks) = volume();
        let mut groups = Vec::new();
        for _ in 0..1100 {
            let group = inodes.group_below(2, free(&blocks)).unwrap();
            inodes.take(group, true).unwrap();
            groups.push(group);
        }
        let first = groups.iter().position(|g| *g != 2).unwrap();
        // 8192 / 16 and an eighth of all of them: 585 = 512 + (585 + 2) / 8.
        assert_eq!((first, groups[first]), (585, 3));
        let mut full = blocks.clone();
        full[2] = 32000 - 8192 - 1024;
        assert_eq!(inodes.group_below(2, free(&full)), Some(3), "little room");
    }

    #[test]
    fn files_leave_a_full_group_in_growing_steps() {
        let (inodes, mut blocks) = volume();
        let directory = 2 * 8192 + 4;
        assert_eq!(inodes.group_of_file(directory, free(&blocks)), Some(2));
        blocks[2] = 0;
        // 2 + 16389 is 7 modulo 8; then 1, 2, 4 further.
        assert_eq!(inodes.group_of_file(directory, free(&blocks)), Some(0));
        blocks[0] = 0;
        assert_eq!(inodes.group_of_file(directory, free(&blocks)), Some(6));
    }
}
