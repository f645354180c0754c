// SPDX-License-Identifier: MIT OR Apache-2.0
//! The volume's free space: one buddy per group, and the search over groups
//! (fs/ext4/mballoc.c, `ext4_mb_regular_allocator`; 2.6.32, 4.19).
//!
//! Groups are looked at in four passes, each less choosy than the one before:
//! a chunk of the right power of two; free runs long enough on average; enough
//! free blocks; anything.

use super::buddy::{Buddy, ORDERS};
use super::layout::{FLEX_GROUPS, GROUP_BLOCKS, Geometry};
use std::ops::Range;

/// Requests of 2^2 blocks and more are searched by power of two first
/// (`mb_order2_req`).
const ORDER2_LEAST: u32 = 2;
/// Extents looked at, at most, before the best is taken (`mb_max_to_scan`).
const MOST_TO_SCAN: u32 = 200;
/// Extents looked at, at least, if one is large enough (`mb_min_to_scan`).
const LEAST_TO_SCAN: u32 = 10;

/// What is looked for (`ext4_allocation_context`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Where the search begins.
    pub(super) goal: u64,
    pub(super) blocks: u32,
    /// Exactly at the goal is best: the file goes on there.
    pub(super) at_goal: bool,
    /// File data keep out of the first groups of flex groups if they can.
    pub(super) data: bool,
}

/// The best extent so far (`ac_b_ex`).
#[derive(Clone, Copy, Debug, Default)]
struct Best {
    group: u64,
    start: u32,
    blocks: u32,
    /// Extents looked at.
    found: u32,
}

impl Best {
    /// Looks at an extent (`ext4_mb_measure_extent`); says whether the search is
    /// over (`ext4_mb_check_limits`).
    fn measure(&mut self, group: u64, start: u32, blocks: u32, wanted: u32) -> bool {
        self.found += 1;
        let better = match () {
            () if blocks == wanted || self.blocks == 0 => true,
            () if self.blocks < wanted => blocks > self.blocks,
            () => blocks >= wanted && blocks < self.blocks,
        };
        if better {
            (self.group, self.start, self.blocks) = (group, start, blocks);
        }
        let enough = self.blocks >= wanted && self.found > LEAST_TO_SCAN;
        blocks == wanted || enough || self.found > MOST_TO_SCAN
    }
}

/// The free blocks of a volume.
#[derive(Clone, Debug)]
pub(super) struct Space {
    groups: Vec<Option<Box<Buddy>>>,
    /// Free blocks of groups that nobody has looked at.
    untouched: Vec<u32>,
}

impl Space {
    /// An empty volume.
    pub(super) fn new(geometry: &Geometry) -> Space {
        let groups = geometry.groups();
        let free = |g| {
            let taken = taken_blocks(geometry, g);
            let taken: u32 = taken.iter().map(|r| r.end - r.start).sum();
            GROUP_BLOCKS as u32 - taken
        };
        Space {
            groups: vec![None; groups as usize],
            untouched: (0..groups).map(free).collect(),
        }
    }

    /// Blocks of a group that nobody has, nor set aside.
    pub(super) fn free_in(&self, group: u64) -> u32 {
        let i = group as usize;
        self.groups[i]
            .as_ref()
            .map_or(self.untouched[i], |b| b.free())
    }

    fn buddy(&mut self, geometry: &Geometry, group: u64) -> &mut Buddy {
        self.groups[group as usize]
            .get_or_insert_with(|| Box::new(Buddy::new(taken_blocks(geometry, group))))
    }

    /// Takes an extent: its first block, and how many there are, at most as many as
    /// wanted (`ext4_mb_regular_allocator`). None if the volume is full.
    pub(super) fn take(&mut self, g: &Geometry, wanted: Wanted) -> Option<(u64, u32)> {
        let mut best = self.at_goal(g, wanted);
        if best.is_none() {
            best = self.search(g, wanted);
        }
        let best = best.filter(|b| b.blocks > 0)?;
        let blocks = best.blocks.min(wanted.blocks);
        self.buddy(g, best.group)
            .take(best.start..best.start + blocks);
        let first = Geometry::group_start(best.group) + u64::from(best.start);
        Some((first, blocks))
    }

    /// Takes a run that begins at the goal or behind it, however short: for
    /// files that are laid out before a run.
    pub(super) fn take_run(&mut self, g: &Geometry, goal: u64, most: u32) -> Option<(u64, u32)> {
        let groups = g.groups();
        let first = (goal / GROUP_BLOCKS).min(groups - 1);
        for step in 0..=groups {
            let group = (first + step) % groups;
            let from = if step == 0 {
                (goal % GROUP_BLOCKS) as u32
            } else {
                0
            };
            let buddy = self.buddy(g, group);
            if let Some(at) = buddy.next_free(from) {
                let blocks = buddy.run_at(at, most);
                buddy.take(at..at + blocks);
                return Some((Geometry::group_start(group) + u64::from(at), blocks));
            }
        }
        None
    }

    /// Gives blocks back (`mb_free_blocks`).
    pub(super) fn give(&mut self, g: &Geometry, first: u64, blocks: u64) {
        let (mut at, end) = (first, first + blocks);
        while at < end {
            let group = at / GROUP_BLOCKS;
            let stop = end.min(Geometry::group_start(group + 1));
            let start = (at % GROUP_BLOCKS) as u32;
            let len = (stop - at) as u32;
            self.buddy(g, group).give(start..start + len);
            at = stop;
        }
    }

    /// The extent at the goal (`ext4_mb_find_by_goal`).
    fn at_goal(&mut self, g: &Geometry, wanted: Wanted) -> Option<Best> {
        let group = wanted.goal / GROUP_BLOCKS;
        if !wanted.at_goal || group >= g.groups() {
            return None;
        }
        let start = (wanted.goal % GROUP_BLOCKS) as u32;
        let run = self.buddy(g, group).run_at(start, wanted.blocks);
        // A shorter run at the end of the file is as good.
        (run > 0).then_some(Best {
            group,
            start,
            blocks: run,
            found: 1,
        })
    }

    /// The passes over the groups; the first looks for a chunk of the right power
    /// of two alone (`ext4_mb_simple_scan_group`).
    fn search(&mut self, g: &Geometry, wanted: Wanted) -> Option<Best> {
        let groups = g.groups();
        let first = (wanted.goal / GROUP_BLOCKS) % groups;
        let order = wanted.blocks.ilog2();
        let by_power =
            wanted.blocks.is_power_of_two() && order >= ORDER2_LEAST && (order as usize) < ORDERS;
        let mut best = Best::default();
        for pass in usize::from(!by_power)..4 {
            for step in 0..groups {
                let group = (first + step) % groups;
                if !self.is_good(g, group, pass, wanted) {
                    continue;
                }
                let buddy = self.buddy(g, group);
                if pass == 0 {
                    if let Some(start) = buddy.first_chunk(order as usize) {
                        (best.group, best.start, best.blocks) = (group, start, wanted.blocks);
                        return Some(best);
                    }
                } else if scan(buddy, group, wanted.blocks, &mut best) {
                    return Some(best);
                }
                if best.blocks >= wanted.blocks {
                    return Some(best);
                }
            }
        }
        (best.blocks > 0).then_some(best)
    }

    /// Whether a group suits a pass (`ext4_mb_good_group`).
    fn is_good(&mut self, g: &Geometry, group: u64, pass: usize, wanted: Wanted) -> bool {
        let free = self.free_in(group);
        if free == 0 || pass < 3 && free < wanted.blocks {
            return false;
        }
        match pass {
            0 => {
                let of_tables = wanted.data && group.is_multiple_of(FLEX_GROUPS);
                let order = wanted.blocks.ilog2() as usize;
                !of_tables && self.buddy(g, group).has_chunk(order)
            }
            1 => self.buddy(g, group).mean_run() >= wanted.blocks,
            _ => true,
        }
    }
}

/// Goes over a group's free extents in order of address
/// (`ext4_mb_complex_scan_group`); says whether the search is over.
fn scan(buddy: &Buddy, group: u64, wanted: u32, best: &mut Best) -> bool {
    let mut at = 0;
    while let Some(start) = buddy.next_free(at) {
        let blocks = buddy.extent_at(start, wanted);
        if best.measure(group, start, blocks, wanted) {
            return true;
        }
        at = start + blocks.max(1);
    }
    false
}

/// The blocks of a group that were never free, counted from its start.
fn taken_blocks(g: &Geometry, group: u64) -> Vec<Range<u32>> {
    let first = Geometry::group_start(group);
    let own = 0..(g.first_data(group) - first) as u32;
    let mut taken = vec![own];
    for piece in &g.journal {
        let (start, end) = (piece.start.max(first), piece.end.min(first + GROUP_BLOCKS));
        if start < end {
            taken.push((start - first) as u32..(end - first) as u32);
        }
    }
    taken.retain(|r| !r.is_empty());
    taken
}

#[cfg(test)]
mod tests {
    use super::super::options::{Ext4Features, Ext4Options};
    use super::*;
    use blklab_kernel::KernelVersion;

    fn volume() -> (Geometry, Space) {
        let o = Ext4Options::new(Ext4Features::of(KernelVersion::v2_6(32)));
        let g = Geometry::new(0..20 << 21, &o).unwrap();
        let s = Space::new(&g);
        (g, s)
    }

    fn wanted(goal: u64, blocks: u32) -> Wanted {
        Wanted {
            goal,
            blocks,
            at_goal: false,
            data: true,
        }
    }

    #[test]
    fn powers_of_two_are_aligned_and_keep_out_of_groups_of_tables() {
        let (g, mut s) = volume();
        // From the first group on: the second, behind its descriptors.
        assert_eq!(s.take(&g, wanted(0, 2048)), Some((32768 + 2048, 2048)));
        // The smallest chunk that is large enough comes first: 1025 to 2047.
        assert_eq!(s.take(&g, wanted(0, 512)), Some((32768 + 1536, 512)));
    }

    #[test]
    fn other_sizes_fill_the_goal_group_from_its_start() {
        let (g, mut s) = volume();
        let mut take = |n| s.take(&g, wanted(32768, n)).unwrap();
        assert_eq!(take(3), (32768 + 1025, 3));
        assert_eq!(take(1), (32768 + 1028, 1));
        assert_eq!(take(3), (32768 + 1029, 3));
    }

    #[test]
    fn a_file_goes_on_where_it_ended_as_far_as_there_is_room() {
        let (g, mut s) = volume();
        let goal = Wanted {
            at_goal: true,
            ..wanted(3 * 32768 - 100, 2048)
        };
        assert_eq!(s.take(&g, goal), Some((3 * 32768 - 100, 100)));
    }

    #[test]
    fn all_of_a_volume_can_be_taken_and_given_back() {
        let (g, mut s) = volume();
        let before: u64 = (0..g.groups()).map(|i| u64::from(s.free_in(i))).sum();
        let mut got = Vec::new();
        while let Some((first, blocks)) = s.take(&g, wanted(0, 1000)) {
            got.push((first, blocks));
        }
        assert_eq!(got.iter().map(|g| u64::from(g.1)).sum::<u64>(), before);
        for (first, blocks) in got {
            s.give(&g, first, u64::from(blocks));
        }
        let after: u64 = (0..g.groups()).map(|i| u64::from(s.free_in(i))).sum();
        assert_eq!(after, before);
    }
}
