// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inodes: what a file has on a volume, and which group gets the next one
//! (fs/ext4/ialloc.c, 2.6.28, 2.6.32, 4.19).
//!
//! Directories of the root go to different flex groups, other directories to
//! their parent's while that has room, files to the first group of the
//! directory's flex group that has an inode left.

use super::Ext4;
use super::layout::{FLEX_GROUPS, GROUP_BLOCKS, Geometry};
use super::names::HashedDirectory;
use blklab_pagecache::PageBits;
use blklab_types::Jiffies;

/// What a file has on the volume (`ext4_inode_info`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Inode {
    /// Its data go through the journal.
    pub(super) data_journal: bool,
    /// `i_block_group`.
    pub(super) group: u64,
    /// Its number in the group.
    pub(super) index: u64,
    /// The block that holds it.
    pub(super) block: u64,
    /// Blocks of the extent tree, those that point to data first.
    pub(super) leaves: Vec<u64>,
    pub(super) nodes: Vec<u64>,
    /// 0 for those from before the run.
    pub(super) atime: Jiffies,
    pub(super) mtime: Jiffies,
    /// The transactions that fsync, and fdatasync, wait for (`i_sync_tid`,
    /// `i_datasync_tid`).
    pub(super) sync_tid: u64,
    pub(super) datasync_tid: u64,
    /// The transaction on whose list of files it stands.
    pub(super) ordered_tid: u64,
    /// Pages with blocks that are marked as unwritten, until they are on the disk.
    pub(super) unwritten: PageBits,
    /// Keys of the conversions that they belong to.
    pub(super) conversions: Vec<u64>,
    /// It was cut to nothing: close allocates (`EXT4_STATE_DA_ALLOC_CLOSE`).
    pub(super) allocate_on_close: bool,
    /// The flex group that the last directory in it went to (`i_last_alloc_group`).
    pub(super) last_flex: Option<u64>,
    pub(super) names: Option<Box<HashedDirectory>>,
}

impl Inode {
    /// The names of a directory.
    pub(super) fn names(&mut self) -> &mut HashedDirectory {
        self.names.as_mut().expect("a directory has names")
    }
}

/// The inodes of a group.
#[derive(Clone, Debug, Default)]
pub(super) struct Inodes {
    used: Vec<u64>,
    pub(super) nr_used: u64,
    /// No inode before it is free.
    hint: u64,
    pub(super) nr_directories: u64,
}

impl Inodes {
    pub(super) fn test(&self, index: u64) -> bool {
        self.used
            .get((index / 64) as usize)
            .is_some_and(|w| w >> (index % 64) & 1 == 1)
    }

    /// The index behind the last inode in use.
    pub(super) fn end(&self) -> u64 {
        let last = self.used.iter().rposition(|w| *w != 0);
        last.map_or(0, |i| {
            i as u64 * 64 + 64 - u64::from(self.used[i].leading_zeros())
        })
    }

    fn take_lowest(&mut self, least: u64, most: u64) -> Option<u64> {
        let mut at = self.hint.max(least);
        while at < most && self.test(at) {
            at += 1;
        }
        if at >= most {
            return None;
        }
        let word = (at / 64) as usize;
        if self.used.len() <= word {
            self.used.resize(word + 1, 0);
        }
        self.used[word] |= 1 << (at % 64);
        self.nr_used += 1;
        self.hint = at + 1;
        Some(at)
    }

    fn give(&mut self, index: u64) {
        assert!(self.test(index), "inode {index} of a group is freed twice");
        self.used[(index / 64) as usize] &= !(1 << (index % 64));
        self.nr_used -= 1;
        self.hint = self.hint.min(index);
    }
}

/// What a flex group has (`orlov_stats`).
#[derive(Clone, Copy, Debug, Default)]
struct Room {
    free_inodes: u64,
    free_blocks: u64,
    directories: u64,
}

impl Ext4 {
    /// Takes an inode for a file or a directory in `parent`, whose name has that
    /// hash (`ext4_new_inode`, later `__ext4_new_inode`). Returns it and whether it
    /// is the first of its block to be used. None if there is none left.
    pub(super) fn new_inode(
        &mut self,
        parent: &mut Inode,
        top: bool,
        directory: bool,
        hash: u32,
    ) -> Option<Inode> {
        let group = if !self.options.features.spreads_directories {
            self.group_in_parents_flex(parent)
        } else if directory {
            let flex = if top {
                self.spread(hash)
            } else {
                self.near_parent(parent)
            };
            parent.last_flex = Some(flex);
            self.group_with_inode(flex)
        } else {
            self.group_with_inode(parent.group / FLEX_GROUPS)
        };
        let first = group.or_else(|| self.any_group(parent.group))?;
        let per_group = self.geometry.inodes_per_group;
        let inodes = &mut self.inodes[first as usize];
        let index = inodes.take_lowest(Geometry::first_inode(first), per_group)?;
        inodes.nr_directories += u64::from(directory);
        Some(Inode {
            group: first,
            index,
            block: self.geometry.inode_block(first, index),
            ..Inode::default()
        })
    }

    /// Frees an inode (`ext4_free_inode`).
    pub(super) fn free_inode(&mut self, inode: &Inode, directory: bool) {
        let inodes = &mut self.inodes[inode.group as usize];
        inodes.give(inode.index);
        inodes.nr_directories -= u64::from(directory);
    }

    /// Whether another inode of the same block is in use.
    pub(super) fn has_neighbours(&self, inode: &Inode) -> bool {
        let inodes = &self.inodes[inode.group as usize];
        let first = Geometry::first_inode(inode.group);
        let beside = self.geometry.inodes_beside(inode.index);
        beside
            .into_iter()
            .any(|i| i != inode.index && (i < first || inodes.test(i)))
    }

    pub(super) fn free_inodes(&self, group: u64) -> u64 {
        let all = self.geometry.inodes_per_group - Geometry::first_inode(group);
        all.saturating_sub(self.inodes[group as usize].nr_used)
    }

    fn group_with_inode(&self, flex: u64) -> Option<u64> {
        self.geometry
            .groups_of(flex)
            .find(|g| self.free_inodes(*g) > 0)
    }

    /// The first group from one on that has an inode left (`find_group_other`).
    fn any_group(&self, from: u64) -> Option<u64> {
        let groups = self.geometry.groups();
        (0..groups)
            .map(|step| (from + step) % groups)
            .find(|g| self.free_inodes(*g) > 0)
    }

    /// What a flex group has (`get_orlov_stats`).
    fn room(&self, flex: u64) -> Room {
        let mut room = Room::default();
        for g in self.geometry.groups_of(flex) {
            room.free_inodes += self.free_inodes(g);
            room.free_blocks += u64::from(self.space.free_in(g));
            room.directories += self.inodes[g as usize].nr_directories;
        }
        room
    }

    /// All flex groups' rooms, and their sum.
    fn rooms(&self) -> (Vec<Room>, Room) {
        let rooms: Vec<Room> = (0..self.geometry.flex_groups())
            .map(|f| self.room(f))
            .collect();
        let sum = rooms.iter().fold(Room::default(), |a, b| Room {
            free_inodes: a.free_inodes + b.free_inodes,
            free_blocks: a.free_blocks + b.free_blocks,
            directories: a.directories + b.directories,
        });
        (rooms, sum)
    }

    /// A directory of the root (`find_group_orlov`): of the flex groups with at
    /// least the average room the one with the fewest directories; the search
    /// begins at the name's hash.
    fn spread(&self, hash: u32) -> u64 {
        let (rooms, sum) = self.rooms();
        let n = rooms.len() as u64;
        let first = u64::from(hash) % n;
        let mut best: Option<(u64, u64)> = None;
        for step in 0..n {
            let flex = (first + step) % n;
            let r = rooms[flex as usize];
            let suits = r.free_inodes > 0
                && r.free_inodes >= sum.free_inodes / n
                && r.free_blocks >= sum.free_blocks / n;
            if suits && best.is_none_or(|(_, fewest)| r.directories < fewest) {
                best = Some((flex, r.directories));
            }
        }
        best.map_or(first, |(flex, _)| flex)
    }

    /// Another directory (`find_group_orlov`): the flex group where its parent's
    /// last one went, or one behind it that is not much worse than the average.
    fn near_parent(&self, parent: &Inode) -> u64 {
        let (rooms, sum) = self.rooms();
        let n = rooms.len() as u64;
        let first = parent.last_flex.unwrap_or(parent.group / FLEX_GROUPS);
        let inodes = self.geometry.inodes_per_group * FLEX_GROUPS;
        let most = sum.directories / n + inodes / 16;
        let least_inodes = (sum.free_inodes / n).saturating_sub(inodes / 4).max(1);
        let blocks = GROUP_BLOCKS * FLEX_GROUPS;
        let least_blocks = (sum.free_blocks / n).saturating_sub(blocks / 4);
        (0..n)
            .map(|step| (first + step) % n)
            .find(|flex| {
                let r = rooms[*flex as usize];
                r.directories < most
                    && r.free_inodes >= least_inodes
                    && r.free_blocks >= least_blocks
            })
            .unwrap_or(first)
    }

    /// Up to 2.6.29: the parent's flex group until a tenth of its blocks is
    /// left, then the one before it, then the first with room
    /// (`find_group_flex`).
    fn group_in_parents_flex(&self, parent: &Inode) -> Option<u64> {
        let own = parent.group / FLEX_GROUPS;
        let n = self.geometry.flex_groups();
        let suits = |flex: u64| {
            let blocks = self.geometry.groups_of(flex).count() as u64 * GROUP_BLOCKS;
            let r = self.room(flex);
            r.free_inodes > 0 && r.free_blocks * 100 / blocks > 10
        };
        let flex = if suits(own) {
            Some(own)
        } else if own > 0 && suits(own - 1) {
            Some(own - 1)
        } else {
            (0..n).find(|f| suits(*f))
        };
        self.group_with_inode(flex.unwrap_or(own))
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::{Ext4Features, Ext4Options};
    use super::super::tests::volume;
    use super::*;
    use blklab_kernel::KernelVersion;

    fn release(release: KernelVersion) -> Ext4 {
        volume(20, Ext4Options::new(Ext4Features::of(release)))
    }

    #[test]
    fn directories_of_the_root_are_spread_and_others_stay() {
        let mut v = release(KernelVersion::new(4, 19));
        let mut root = Inode::default();
        let mut flex = Vec::new();
        for hash in [5, 5, 6] {
            let dir = v.new_inode(&mut root, true, true, hash).unwrap();
            flex.push(dir.group / FLEX_GROUPS);
        }
        // Flex group 5 holds the journal, and with it fewer blocks than the
        // average.
        assert_eq!(flex, [6, 7, 8]);
        let mut dir = v.new_inode(&mut root, true, true, 0).unwrap();
        let sub = v.new_inode(&mut dir, false, true, 77).unwrap();
        assert_eq!(sub.group / FLEX_GROUPS, dir.group / FLEX_GROUPS);
        let file = v.new_inode(&mut dir, false, false, 77).unwrap();
        assert_eq!((file.group, file.index), (dir.group, 2));
        assert!(v.has_neighbours(&file));
    }

    #[test]
    fn all_goes_to_the_parents_flex_group_up_to_2_6_29() {
        let mut v = release(KernelVersion::v2_6(28));
        let mut root = Inode::default();
        for hash in 0..9 {
            let dir = v.new_inode(&mut root, true, true, hash).unwrap();
            assert_eq!((dir.group, dir.index), (0, 11 + u64::from(hash)));
        }
    }

    #[test]
    fn the_lowest_free_inode_is_taken_again() {
        let mut v = release(KernelVersion::new(4, 19));
        let mut root = Inode::default();
        let files: Vec<Inode> = (0..4)
            .map(|_| v.new_inode(&mut root, true, false, 0).unwrap())
            .collect();
        v.free_inode(&files[1], false);
        let again = v.new_inode(&mut root, true, false, 0).unwrap();
        assert_eq!(again.index, files[1].index);
    }
}
