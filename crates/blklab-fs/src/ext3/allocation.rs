// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which block a growing file gets: goals, reservation windows, the search in
//! a group (fs/ext3/balloc.c, 2.6.28).
//!
//! One block is allocated at a time. A window is in memory only: it keeps
//! blocks free for one file while it grows, and windows do not overlap. Two
//! habits of the search show in recorded layouts: a search that begins inside
//! a window behind the group's start takes the next free block, one that
//! begins at the group's start prefers the first wholly free byte of the
//! bitmap; and a window that would lie before the group's first free block is
//! moved there. Directories have no windows: they take the next usable block,
//! or one of up to seven free ones just before it.
//!
//! A block that a transaction frees counts as free at once, but is taken by
//! nobody until that transaction is committed.
//!
//! Left out: quotas and reserved blocks, extending a window for an indirect
//! block at its very end.

use super::bitmap::{GroupBits, next_clear, next_taken, next_usable, taken};
use super::inodes::FreeBlocks;
use super::layout::{GROUP_BLOCKS, Geometry};
use blklab_pagecache::FileId;
use std::collections::BTreeMap;
use std::ops::Range;

/// Blocks of a first window (`EXT3_DEFAULT_RESERVE_BLOCKS`).
const FIRST_WINDOW: u64 = 8;
/// Blocks of the largest window (`EXT3_MAX_RESERVE_BLOCKS`).
const LARGEST_WINDOW: u64 = 1027;
/// Processes start their files in one of so many places of a group.
const COLOURS: u64 = 16;

/// The blocks set aside for a file (`ext3_reserve_window_node`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    start: u32,
    end: u32,
    /// `rsv_goal_size`.
    goal_size: u16,
    /// `rsv_alloc_hit`.
    hits: u16,
}

impl Default for Window {
    fn default() -> Window {
        Window {
            start: 0,
            end: 0,
            goal_size: FIRST_WINDOW as u16,
            hits: 0,
        }
    }
}

impl Window {
    fn is_empty(&self) -> bool {
        self.end == 0
    }

    fn blocks(&self) -> Range<u64> {
        u64::from(self.start)..u64::from(self.end)
    }

    /// Its blocks.
    fn len(&self) -> u64 {
        u64::from(self.end - self.start)
    }

    /// Whether it reaches into a group, and holds the goal if there is one
    /// (`goal_in_my_reservation`).
    fn holds(&self, group: u64, goal: Option<u64>) -> bool {
        let first = Geometry::group_start(group);
        let blocks = self.blocks();
        !self.is_empty()
            && blocks.start < first + GROUP_BLOCKS
            && blocks.end > first
            && goal.is_none_or(|g| blocks.contains(&g))
    }

    /// Lies elsewhere from now on, unused.
    fn moved(&mut self, start: u64) {
        // A volume has less than 2^32 blocks; a window may end behind it.
        self.start = u32::try_from(start).unwrap_or(u32::MAX);
        self.end = self.start.saturating_add(u32::from(self.goal_size));
        self.hits = 0;
    }
}

/// The block where a file of a directory's group begins, by process
/// (`ext3_find_near`).
pub(crate) fn coloured_goal(group: u64, pid: u32) -> u64 {
    Geometry::group_start(group) + u64::from(pid) % COLOURS * (GROUP_BLOCKS / COLOURS)
}

/// Which blocks are taken.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    groups: Vec<Option<Box<GroupBits>>>,
    free: Vec<u64>,
    nr_free: u64,
    /// Windows by their start (`s_rsv_window_root`).
    windows: BTreeMap<u64, (u64, FileId)>,
}

impl Space {
    /// An empty volume.
    pub(crate) fn new(geometry: &Geometry) -> Space {
        let groups = geometry.groups();
        let free = (0..groups).map(|g| {
            let data = geometry.first_data(g)..Geometry::group_start(g + 1);
            let journal = overlap(&geometry.journal, &data);
            data.end - data.start - journal.end.saturating_sub(journal.start)
        });
        let free: Vec<u64> = free.collect();
        Space {
            nr_free: free.iter().sum(),
            free,
            groups: vec![None; groups as usize],
            windows: BTreeMap::new(),
        }
    }

    fn bits(&mut self, geometry: &Geometry, group: u64) -> &mut GroupBits {
        self.groups[group as usize].get_or_insert_with(|| {
            let mut bits: Box<GroupBits> = Box::new([0; (GROUP_BLOCKS / 64) as usize]);
            let first = Geometry::group_start(group);
            let journal = overlap(&geometry.journal, &group_blocks(group));
            let own = first..geometry.first_data(group);
            for block in own.chain(journal) {
                let i = block - first;
                bits[(i / 64) as usize] |= 1 << (i % 64);
            }
            bits
        })
    }

    /// The group whose bitmap decides next: the goal's.
    pub(crate) fn group_of(&self, goal: u64) -> u64 {
        let group = goal / GROUP_BLOCKS;
        if group < self.groups.len() as u64 {
            group
        } else {
            0
        }
    }

    /// Free blocks, those of uncommitted transactions included.
    pub(crate) fn free(&self) -> FreeBlocks<'_> {
        FreeBlocks {
            by_group: &self.free,
            sum: self.nr_free,
        }
    }

    /// Takes one block for a file, as near behind the goal as its windows allow
    /// (`ext3_new_blocks`); none if the volume is full. No window: a directory.
    pub(crate) fn allocate(
        &mut self,
        geometry: &Geometry,
        file: FileId,
        mut window: Option<&mut Window>,
        goal: u64,
    ) -> Option<u64> {
        let first_group = self.group_of(goal);
        let goal = (goal / GROUP_BLOCKS == first_group).then_some(goal);
        let take = |space: &mut Space, window: Option<&mut Window>, group: u64, goal| {
            if space.free[group as usize] == 0 {
                return None;
            }
            match window {
                Some(window) => space.in_group(geometry, file, window, group, goal),
                None => space.without_window(geometry, group, goal),
            }
        };
        if let Some(block) = take(self, window.as_deref_mut(), first_group, goal) {
            return Some(block);
        }
        let groups = self.groups.len() as u64;
        let others = (1..=groups).map(|step| (first_group + step) % groups);
        if let Some(window) = window {
            // Groups with less room than half a window are left to others.
            for group in others.clone() {
                if self.free[group as usize] > u64::from(window.goal_size / 2)
                    && let Some(block) = take(self, Some(window), group, None)
                {
                    return Some(block);
                }
            }
        }
        let mut others = others;
        others.find_map(|group| take(self, None, group, None))
    }

    /// How many free blocks lie in a file's window from the goal on, without a gap, at
    /// most so many: [`Space::allocate`] would give one after another.
    pub(super) fn free_ahead(
        &mut self,
        geometry: &Geometry,
        window: &Window,
        goal: u64,
        most: u64,
    ) -> u64 {
        let group = self.group_of(goal);
        if goal / GROUP_BLOCKS != group || !window.holds(group, Some(goal)) {
            return 0;
        }
        let most = most.min(self.free[group as usize]);
        let first = Geometry::group_start(group);
        let last = window.blocks().end.min(first + GROUP_BLOCKS) - first;
        let (from, bits) = (goal - first, self.bits(geometry, group));
        next_taken(bits, from, last.min(from + most)) - from
    }

    /// A file takes these blocks, which lie free in its window.
    pub(super) fn take_ahead(&mut self, window: &mut Window, blocks: &Range<u64>) {
        let (group, nr) = (blocks.start / GROUP_BLOCKS, blocks.end - blocks.start);
        let own = window.blocks();
        assert!(
            own.start <= blocks.start && blocks.end <= own.end,
            "{blocks:?} are taken ahead outside of the window {own:?}"
        );
        let bits = self.groups[group as usize].as_mut();
        let bits = bits.expect("who looked for free blocks has made the bitmap");
        for block in blocks.clone() {
            let at = block % GROUP_BLOCKS;
            debug_assert!(!taken(bits, at), "block {block} is taken twice");
            bits[(at / 64) as usize] |= 1 << (at % 64);
        }
        self.free[group as usize] -= nr;
        self.nr_free -= nr;
        window.hits += nr as u16;
    }

    /// A block of a group as near behind the goal as can be, whatever windows say
    /// (`ext3_try_to_allocate`).
    fn without_window(
        &mut self,
        geometry: &Geometry,
        group: u64,
        goal: Option<u64>,
    ) -> Option<u64> {
        let first = Geometry::group_start(group);
        let start = goal.map_or(0, |g| g - first);
        let bits = self.bits(geometry, group);
        let mut at = start;
        if goal.is_none() || taken(bits, at) {
            at = next_usable(bits, start, GROUP_BLOCKS)?;
            let least = at.saturating_sub(7).max(start);
            while at > least && !taken(bits, at - 1) {
                at -= 1;
            }
        }
        debug_assert!(!taken(bits, at), "block {} is taken twice", first + at);
        bits[(at / 64) as usize] |= 1 << (at % 64);
        self.free[group as usize] -= 1;
        self.nr_free -= 1;
        Some(first + at)
    }

    /// A run of blocks of one group is freed (`ext3_free_blocks_sb`); they stay
    /// taken until [`Space::release`].
    pub(crate) fn give_back(&mut self, blocks: &Range<u64>) {
        let (nr, group) = (blocks.end - blocks.start, blocks.start / GROUP_BLOCKS);
        assert!(
            nr > 0 && (blocks.end - 1) / GROUP_BLOCKS == group,
            "{blocks:?} do not lie in one group"
        );
        debug_assert!(
            self.are_taken(blocks),
            "{blocks:?} are given back but not taken"
        );
        self.free[group as usize] += nr;
        self.nr_free += nr;
    }

    /// Whether somebody has taken all of these blocks, or freed them in a transaction
    /// that is not committed.
    fn are_taken(&self, blocks: &Range<u64>) -> bool {
        blocks.clone().all(|block| {
            let bits = &self.groups[(block / GROUP_BLOCKS) as usize];
            bits.as_ref()
                .is_some_and(|bits| taken(bits, block % GROUP_BLOCKS))
        })
    }

    /// Checks that the sum of free blocks is that of the groups, and that no two windows
    /// of files overlap.
    pub(crate) fn check(&self) {
        let free: u64 = self.free.iter().sum();
        debug_assert_eq!(free, self.nr_free, "free blocks of all groups");
        let mut windows = self.windows.iter().peekable();
        while let Some((start, (end, file))) = windows.next() {
            if let Some((next, (_, other))) = windows.peek() {
                debug_assert!(
                    end <= next,
                    "the window {start}..{end} of {file:?} reaches into {other:?}'s at {next}"
                );
            }
        }
    }

    /// Freed blocks may be taken again (they leave `b_committed_data`).
    pub(crate) fn release(&mut self, blocks: Range<u64>) {
        debug_assert!(
            self.are_taken(&blocks),
            "{blocks:?} may be taken again although nobody had them"
        );
        for block in blocks {
            let at = block % GROUP_BLOCKS;
            if let Some(bits) = &mut self.groups[(block / GROUP_BLOCKS) as usize] {
                bits[(at / 64) as usize] &= !(1 << (at % 64));
            }
        }
    }

    /// A block of a group within the file's window, or a new one
    /// (`ext3_try_to_allocate_with_rsv`).
    fn in_group(
        &mut self,
        geometry: &Geometry,
        file: FileId,
        window: &mut Window,
        group: u64,
        mut goal: Option<u64>,
    ) -> Option<u64> {
        let first = Geometry::group_start(group);
        let mut failed = false;
        loop {
            if failed || !window.holds(group, goal) {
                if !self.new_window(geometry, file, window, group, goal.unwrap_or(first)) {
                    return None;
                }
                goal = goal.filter(|_| window.holds(group, goal));
            }
            let start = window.blocks().start.max(first) - first;
            let end = window.blocks().end.min(first + GROUP_BLOCKS) - first;
            let bits = self.bits(geometry, group);
            let wanted = goal.map(|g| g - first).filter(|g| (start..end).contains(g));
            let found = match wanted {
                Some(g) if !taken(bits, g) => Some(g),
                Some(g) => next_usable(bits, g, end),
                None => next_usable(bits, start, end),
            };
            if let Some(at) = found {
                debug_assert!(!taken(bits, at), "block {} is taken twice", first + at);
                bits[(at / 64) as usize] |= 1 << (at % 64);
                self.free[group as usize] -= 1;
                self.nr_free -= 1;
                window.hits += 1;
                return Some(first + at);
            }
            failed = true;
        }
    }

    /// Sets blocks aside from `start` on, in a group (`alloc_new_reservation`).
    /// False if it has no room; a window that reaches into the next group is kept
    /// for that.
    fn new_window(
        &mut self,
        geometry: &Geometry,
        file: FileId,
        window: &mut Window,
        group: u64,
        mut start: u64,
    ) -> bool {
        let group_end = Geometry::group_start(group) + GROUP_BLOCKS;
        if !window.is_empty() {
            let old = window.blocks();
            if old.start < group_end && old.end > group_end && start >= old.start {
                return false;
            }
            if u64::from(window.hits) > window.len() / 2 {
                let doubled = u64::from(window.goal_size) * 2;
                window.goal_size = doubled.min(LARGEST_WINDOW) as u16;
            }
        }
        loop {
            let Some(at) = self.gap(file, start, u64::from(window.goal_size), group_end) else {
                self.discard(window);
                return false;
            };
            self.discard(window);
            let first = Geometry::group_start(group);
            let from = at.max(first) - first;
            let Some(free) = next_clear(self.bits(geometry, group), from, GROUP_BLOCKS) else {
                return false;
            };
            window.moved(at);
            let blocks = window.blocks();
            let other = self.windows.insert(blocks.start, (blocks.end, file));
            assert!(
                other.is_none(),
                "{file:?} has a window where {other:?} begins"
            );
            if first + free < blocks.end {
                return true;
            }
            start = first + free;
        }
    }

    /// The first place from `start` on where a window of that size meets no other
    /// file's (`find_next_reservable_window`).
    fn gap(&self, file: FileId, start: u64, size: u64, group_end: u64) -> Option<u64> {
        let mut at = start;
        // Windows do not overlap: the one that begins last before `at` is the
        // only one of them that can reach it.
        let before = self
            .windows
            .range(..at)
            .rev()
            .find(|(_, (_, f))| *f != file);
        if let Some((_, (end, _))) = before {
            at = at.max(*end);
        }
        for (begin, (end, owner)) in self.windows.range(start..) {
            if *owner == file {
                continue;
            }
            if at + size <= *begin {
                break;
            }
            at = at.max(*end);
        }
        (at < group_end).then_some(at)
    }

    /// Gives a window up (`ext3_discard_reservation`): the file is no longer open
    /// for writing.
    pub(crate) fn discard(&mut self, window: &mut Window) {
        if !window.is_empty() {
            let known = self.windows.remove(&u64::from(window.start));
            assert!(
                known.is_some(),
                "a window that is given up was not set aside"
            );
        }
        (window.start, window.end, window.hits) = (0, 0, 0);
    }
}

fn group_blocks(group: u64) -> Range<u64> {
    let first = Geometry::group_start(group);
    first..first + GROUP_BLOCKS
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    a.start.max(b.start)..a.end.min(b.end)
}

#[cfg(test)]
mod tests {
    use super::super::options::{ExtFeatures, ExtOptions};
    use super::*;
    use blklab_kernel::KernelVersion;

    fn volume() -> (Geometry, Space) {
        let o = ExtOptions::new(true, ExtFeatures::of(KernelVersion::v2_6(28)));
        let g = Geometry::new(0..134_217_728, &o).unwrap();
        let s = Space::new(&g);
        (g, s)
    }

    #[test]
    fn windows_of_a_growing_file_double_up_to_1027_blocks() {
        let (g, mut space) = volume();
        let mut window = Window::default();
        let mut sizes = Vec::new();
        let mut goal = coloured_goal(4, 0) + 4000;
        for _ in 0..6000 {
            let place = space.allocate(&g, FileId(0), Some(&mut window), goal);
            let block = place.unwrap();
            if sizes.last() != Some(&(window.start, window.len())) {
                sizes.push((window.start, window.len()));
            }
            goal = block + 1;
        }
        let sizes: Vec<u64> = sizes.into_iter().map(|(_, len)| len).collect();
        assert_eq!(
            sizes[..11],
            [8, 16, 32, 64, 128, 256, 512, 1024, 1027, 1027, 1027]
        );
    }

    #[test]
    fn blocks_taken_ahead_are_those_that_come_one_by_one() {
        let (g, mut one_by_one) = volume();
        let first = coloured_goal(4, 0) + 4000;
        // Another file's blocks lie in the way.
        for at in [300, 301, 5000, 7777, 7790] {
            assert_eq!(
                one_by_one.without_window(&g, 4, Some(first + at)),
                Some(first + at)
            );
        }
        let mut ahead = one_by_one.clone();
        let (mut own, mut others) = (Window::default(), Window::default());
        let (mut last, mut nr_ahead) = (first, 0);
        while last < Geometry::group_start(6) {
            let most = last % 100 + 1;
            let nr = ahead.free_ahead(&g, &others, last + 1, most);
            assert!(nr <= most);
            let blocks = if nr > 0 {
                ahead.take_ahead(&mut others, &(last + 1..last + 1 + nr));
                nr_ahead += nr;
                last + 1..last + 1 + nr
            } else {
                let block = ahead.allocate(&g, FileId(0), Some(&mut others), last + 1);
                block.unwrap()..block.unwrap() + 1
            };
            for block in blocks.clone() {
                let place = one_by_one.allocate(&g, FileId(0), Some(&mut own), last + 1);
                assert_eq!(place, Some(block));
                last = block;
            }
            let state = |w: &Window| (w.start, w.end, w.goal_size, w.hits);
            assert_eq!(state(&own), state(&others));
            assert_eq!(
                (one_by_one.nr_free, &one_by_one.free),
                (ahead.nr_free, &ahead.free)
            );
        }
        assert_eq!(one_by_one.groups, ahead.groups);
        assert!(nr_ahead > 30_000, "{nr_ahead}");
    }

    #[test]
    fn a_directory_takes_a_free_block_just_before_a_free_byte() {
        let (g, mut space) = volume();
        let mut window = Window::default();
        let first = coloured_goal(4, 0) + 4096;
        let mut take = |window: Option<&mut Window>, goal| {
            let block = space.allocate(&g, FileId(0), window, goal);
            block.unwrap() - first
        };
        // The goal, what follows it although a window holds it.
        assert_eq!(take(Some(&mut window), first), 0);
        assert_eq!(take(None, first), 1);
        // 100 blocks behind the goal are taken but for a few before a byte.
        for at in (64..160).filter(|at| !(133..136).contains(at)) {
            assert_eq!(take(None, first + at), at);
        }
        assert_eq!(take(None, first + 64), 160);
        assert_eq!(take(None, first + 129), 133, "near by comes first");
    }

    #[test]
    fn freed_blocks_count_at_once_but_are_taken_when_released() {
        let (g, mut space) = volume();
        let goal = coloured_goal(4, 0) + 4096;
        let free = space.free().by_group[4];
        let block = space.allocate(&g, FileId(0), None, goal).unwrap();
        space.give_back(&(block..block + 1));
        assert_eq!(space.free().by_group[4], free);
        let next = space.allocate(&g, FileId(0), None, goal).unwrap();
        assert_eq!(next, block + 1);
        space.release(block..block + 1);
        assert_eq!(space.allocate(&g, FileId(0), None, goal), Some(block));
    }

    #[test]
    fn the_colour_is_the_process_modulo_16() {
        assert_eq!(coloured_goal(2, 4160), 2 * 32768);
        assert_eq!(coloured_goal(2, 4159), 2 * 32768 + 30720);
    }

    #[test]
    fn files_lie_as_the_recorded_run_has_them() {
        // Three files of 30 MiB by process 12 in group 3, then a large one by
        // process 13: where that one begins and goes on was recorded.
        let (g, mut space) = volume();
        let mut place = |file: u32, pid: u32, blocks: u64| {
            let mut window = Window::default();
            let mut goal = coloured_goal(3, pid);
            let mut at = Vec::new();
            for _ in 0..blocks {
                let place = space.allocate(&g, FileId(file), Some(&mut window), goal);
                let block = place.unwrap();
                at.push(block);
                goal = block + 1;
            }
            space.discard(&mut window);
            at
        };
        for file in 0..3 {
            let at = place(file, 12, 7689);
            assert!(file > 0 || at[0] == 98304 + 12 * 2048);
        }
        let big = place(3, 13, 60_000);
        assert_eq!(big[0] * 8, 1_171_688);
        let jumps: Vec<u64> = big
            .windows(2)
            .filter(|w| w[1] != w[0] + 1)
            .map(|w| w[1] * 8)
            .collect();
        assert_eq!(jumps[..2], [1_323_032, 1_577_024]);
    }
}
