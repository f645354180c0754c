// SPDX-License-Identifier: MIT OR Apache-2.0
//! Free space of the allocation groups (fs/xfs/xfs_alloc.c, 2.6.26).
//!
//! An allocation names a block that it would like to be near, and takes the
//! nearest free extent that is large enough; if there is none in the group, the
//! groups behind are asked, and at last whatever is largest is taken. What the
//! two B+trees of free space look like matters only for which of their leaves a
//! change touches.

use super::layout::Geometry;
use std::collections::BTreeMap;

/// Extents looked at on either side of a goal before the largest of them is
/// taken.
const LOOKS: usize = 512;

/// The free extents of a group: begin to length, in blocks of the volume.
#[derive(Clone, Debug, Default)]
struct Group {
    extents: BTreeMap<u64, u64>,
    blocks: u64,
}

/// Free space.
#[derive(Clone, Debug)]
pub(super) struct Space {
    groups: Vec<Group>,
    ag_blocks: u64,
    /// Blocks that are free in all groups.
    free: u64,
    /// Blocks promised to dirty pages that have no place yet.
    promised: u64,
}

impl Space {
    pub(super) fn new(g: &Geometry) -> Space {
        let groups: Vec<Group> = (0..g.ag_count)
            .map(|ag| {
                let run = g.free_at_first(ag);
                let blocks = run.end - run.start;
                Group {
                    extents: BTreeMap::from([(run.start, blocks)]),
                    blocks,
                }
            })
            .collect();
        Space {
            free: groups.iter().map(|g| g.blocks).sum(),
            groups,
            ag_blocks: g.ag_blocks,
            promised: 0,
        }
    }

    /// Blocks that are free, promised ones included.
    pub(super) fn free(&self) -> u64 {
        self.free
    }

    /// Free blocks of a group.
    pub(super) fn free_of(&self, ag: u64) -> u64 {
        self.groups[ag as usize].blocks
    }

    /// Free extents of a group.
    pub(super) fn extents_of(&self, ag: u64) -> usize {
        self.groups[ag as usize].extents.len()
    }

    /// Promises blocks; false if there are not so many (`xfs_mod_incore_sb`).
    pub(super) fn promise(&mut self, blocks: u64) -> bool {
        let there = self.promised + blocks <= self.free;
        if there {
            self.promised += blocks;
        }
        there
    }

    /// Takes a promise back.
    pub(super) fn release(&mut self, blocks: u64) {
        let left = self.promised.checked_sub(blocks);
        self.promised = left.expect("what is taken back was promised");
    }

    /// Whether so many blocks are neither taken nor promised.
    pub(super) fn has(&self, blocks: u64) -> bool {
        self.promised + blocks <= self.free
    }

    /// Takes up to `want` blocks, at least one, near a block (`xfs_alloc_vextent`).
    /// Returns the first and how many.
    pub(super) fn take_near(&mut self, goal: u64, want: u64) -> Option<(u64, u64)> {
        let count = self.groups.len() as u64;
        let first = (goal / self.ag_blocks).min(count - 1);
        for nth in 0..count {
            let ag = (first + nth) % count;
            let goal = if nth == 0 { goal } else { ag * self.ag_blocks };
            if let Some(at) = self.groups[ag as usize].nearest(goal, want) {
                return Some(self.take(ag, at, want));
            }
        }
        let ag = (0..count).max_by_key(|ag| self.groups[*ag as usize].largest().1)?;
        let (start, blocks) = self.groups[ag as usize].largest();
        (blocks > 0).then(|| self.take(ag, start, want.min(blocks)))
    }

    /// Takes exactly so many blocks of a group, whose first is a multiple of
    /// `align` from the group's beginning, as near as possible behind or before
    /// a block.
    pub(super) fn take_aligned(
        &mut self,
        ag: u64,
        goal: u64,
        blocks: u64,
        align: u64,
    ) -> Option<u64> {
        let base = ag * self.ag_blocks;
        let fits = |start: u64, len: u64, from: u64| {
            let at = base + (from.max(start) - base).next_multiple_of(align);
            (at + blocks <= start + len).then_some(at)
        };
        let group = &self.groups[ag as usize];
        let right = group
            .extents
            .range(goal..)
            .find_map(|(s, l)| fits(*s, *l, goal));
        let within = group.extents.range(..goal).next_back();
        let within = within.and_then(|(s, l)| fits(*s, *l, goal));
        let left = group.extents.range(..goal).rev().take(LOOKS);
        let left = || left.clone().find_map(|(s, l)| fits(*s, *l, *s));
        let at = within.or(right).or_else(left)?;
        self.take(ag, at, blocks);
        Some(at)
    }

    /// Takes blocks that are free.
    fn take(&mut self, ag: u64, at: u64, blocks: u64) -> (u64, u64) {
        let group = &mut self.groups[ag as usize];
        let found = group.extents.range(..=at).next_back();
        let (&start, &len) = found.expect("blocks are taken from a free extent");
        assert!(
            at + blocks <= start + len,
            "{blocks} blocks from {at} on are taken of the free extent {start}+{len}"
        );
        group.extents.remove(&start);
        if at > start {
            group.extents.insert(start, at - start);
        }
        let (end, taken_end) = (start + len, at + blocks);
        if end > taken_end {
            group.extents.insert(taken_end, end - taken_end);
        }
        group.blocks -= blocks;
        self.free -= blocks;
        (at, blocks)
    }

    /// Gives blocks of one group back (`xfs_free_ag_extent`).
    pub(super) fn put(&mut self, start: u64, blocks: u64) {
        let ag = start / self.ag_blocks;
        let group = &mut self.groups[ag as usize];
        let (mut begin, mut end) = (start, start + blocks);
        let met = group.extents.range(..end).next_back();
        assert!(
            blocks > 0 && met.is_none_or(|(&s, &len)| s + len <= start),
            "{blocks} blocks from {start} on are given back, but {met:?} is free"
        );
        if let Some((&before, &len)) = group.extents.range(..start).next_back()
            && before + len == start
        {
            group.extents.remove(&before);
            begin = before;
        }
        if let Some(len) = group.extents.remove(&end) {
            end += len;
        }
        group.extents.insert(begin, end - begin);
        group.blocks += blocks;
        self.free += blocks;
    }
}

impl Group {
    /// Where `want` blocks would lie that are as near to the goal as possible
    /// (`xfs_alloc_ag_vextent_near`).
    fn nearest(&self, goal: u64, want: u64) -> Option<u64> {
        let fits = |len: u64| len >= want;
        let mut before = self.extents.range(..=goal).rev().take(LOOKS);
        let left = before.find_map(|(&start, &len)| {
            // Around the goal: from it on, if that is enough.
            let at = if start + len > goal {
                goal.min(start + len - want.min(len))
            } else {
                start + len - want.min(len)
            };
            fits(len).then_some(at)
        });
        let mut behind = self.extents.range(goal + 1..).take(LOOKS);
        let right = behind.find_map(|(&start, &len)| fits(len).then_some(start));
        match (left, right) {
            (Some(l), Some(r)) if goal.abs_diff(l) < r - goal => Some(l),
            (Some(_), Some(r)) => Some(r),
            (l, r) => l.or(r),
        }
    }

    fn largest(&self) -> (u64, u64) {
        let all = self.extents.iter().map(|(s, l)| (*s, *l));
        all.max_by_key(|(_, len)| *len).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xfs::{XfsFeatures, XfsOptions};
    use blklab_kernel::KernelVersion;

    fn space() -> (Geometry, Space) {
        let o = XfsOptions::new(XfsFeatures::of(KernelVersion::v2_6(26)));
        let g = Geometry::new(0..20_012_072_960 / 512, &o).unwrap();
        (g, Space::new(&g))
    }

    #[test]
    fn blocks_are_taken_at_the_goal_or_beside_it() {
        let (g, mut s) = space();
        let all = s.free();
        let goal = g.ag_blocks + 1000;
        assert_eq!(s.take_near(goal, 10), Some((goal, 10)));
        assert_eq!(s.take_near(goal, 10), Some((goal + 10, 10)), "behind it");
        assert_eq!(s.take_near(goal + 3, 4), Some((goal - 4, 4)), "before it");
        s.put(goal, 10);
        assert_eq!(s.extents_of(1), 3);
        assert_eq!(s.take_near(goal - 2, 11), Some((goal - 15, 11)));
        s.put(goal - 4, 4);
        s.put(goal - 15, 11);
        s.put(goal + 10, 10);
        assert_eq!((s.free(), s.extents_of(1)), (all, 1));
    }

    #[test]
    fn a_full_group_sends_to_the_next_and_a_full_volume_gives_what_there_is() {
        let (g, mut s) = space();
        let of_1 = s.free_of(1);
        assert_eq!(s.take_near(g.ag_blocks + 8, of_1).map(|t| t.1), Some(of_1));
        let next = s.take_near(g.ag_blocks + 8, 1).unwrap().0;
        assert_eq!(g.ag_of(next), 2);
        while s.take_near(0, 1 << 30).is_some() {}
        assert_eq!((s.free(), s.take_near(5, 1)), (0, None));
        assert!(!s.promise(1));
    }

    #[test]
    fn chunks_are_aligned() {
        let (_, mut s) = space();
        assert_eq!(s.take_aligned(0, 9, 4, 2), Some(10));
        assert_eq!(s.take_aligned(0, 9, 4, 2), Some(14));
        assert_eq!(s.extents_of(0), 2);
    }
}
