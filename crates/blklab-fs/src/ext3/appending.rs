// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of pages that become dirty in one step.
//!
//! A page of a file costs a handle, access to the blocks that tell its place, and a
//! block (`ext3_ordered_write_end`, 2.6.28). For most pages all of that
//! happened for the page before: the running transaction has those blocks, nobody
//! writes them, and the next block of the file's window is free. Then nothing sleeps,
//! nobody is woken, and the handle leaves no trace; so a run of such pages is done at
//! once, and comes out as if it had been done page by page.

use super::Ext;
use super::layout::{DIRECT, POINTERS, new_indirects};
use super::operations::WRITE_CREDITS;
use crate::mount::{Mount, View};
use blklab_pagecache::{FileId, Host};
use blklab_types::Jiffies;
use std::ops::Range;

/// What was done at once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AtOnce {
    /// Pages, from the first on.
    pub(super) pages: u64,
    /// Those of them that were clean.
    pub(super) clean: u64,
}

/// Pages from one on up to the next that needs a block of pointers.
fn pages_of_leaf(page: u64) -> u64 {
    match page.checked_sub(DIRECT) {
        None => DIRECT - page,
        Some(_) if new_indirects(page) > 0 => 0,
        Some(behind) => POINTERS - behind % POINTERS,
    }
}

impl View<'_, Ext> {
    /// How many pages a file can grow by with blocks that lie behind its last one, and
    /// no change of metadata that the running transaction does not have yet.
    fn growth_at_once(&mut self, id: FileId, most: u64) -> u64 {
        let (ext, file) = (&mut *self.volume, &self.state.files[id.idx()]);
        let (page, inode) = (file.extents.pages(), &ext.nodes[id]);
        if inode.last_block == 0 || file.directory.is_some() {
            return 0;
        }
        let goal = u64::from(inode.last_block) + 1;
        let most = most.min(pages_of_leaf(page));
        let pages = ext
            .space
            .free_ahead(&ext.geometry, &inode.window, goal, most);
        if pages == 0 {
            return 0;
        }
        let group = ext.space.group_of(goal);
        let changed = [
            Some(ext.geometry.block_bitmap(group)),
            Some(ext.geometry.descriptor(group)),
            ext.leaf(id, page),
            Some(ext.inode_block(inode)),
        ];
        let device = ext.device;
        let has_all = changed.into_iter().flatten().all(|block| {
            self.files[device.idx()].uptodate.test(block) && self.has_access((device, block))
        });
        if has_all { pages } else { 0 }
    }

    /// A file takes the blocks behind its last one.
    fn grow_at_once(&mut self, id: FileId, pages: u64) {
        let ext = &mut *self.volume;
        let inode = &mut ext.nodes[id];
        let first = u64::from(inode.last_block) + 1;
        let blocks = first..first + pages;
        ext.space.take_ahead(&mut inode.window, &blocks);
        inode.last_block = u32::try_from(blocks.end - 1).expect("a volume has 2^32 blocks at most");
        inode.changed = true;
        let (sector, device) = (ext.geometry.sector(first), ext.device);
        self.files[id.idx()].extents.append(sector, pages);
        // What the blocks held before is not written over them any more.
        self.clean_page(device, blocks);
    }

    /// How many pages of a run can become dirty, and get their blocks, at once: nobody
    /// holds them, and no commit awaits what they hold.
    fn dirty_at_once(&mut self, id: FileId, run: &Range<u64>, now: Jiffies) -> u64 {
        let ext = &*self.volume;
        let inode = &ext.nodes[id];
        if !ext.options.journal || inode.data_journal {
            return 0;
        }
        let file = &self.state.files[id.idx()];
        let placed = file.extents.pages();
        let end = file.locked.next_set(run.start, run.end).unwrap_or(run.end);
        let end = ext.journal.first_awaited(id, run.start..end).unwrap_or(end);
        if end <= run.start || run.start > placed || !self.handles_are_free(WRITE_CREDITS, now) {
            return 0;
        }
        if run.start < placed {
            return end.min(placed) - run.start;
        }
        let pages = self.growth_at_once(id, end - run.start);
        if pages > 0 {
            self.grow_at_once(id, pages);
        }
        pages
    }
}

impl<H: Host> Mount<'_, H, Ext> {
    /// Makes as many pages of a run dirty, and gives those behind the end their blocks,
    /// as can be without a sleep or a wake-up.
    pub(super) fn ext_dirty_at_once(&self, id: FileId, run: Range<u64>) -> AtOnce {
        let (task, now) = (self.host.current(), self.host.jiffies());
        self.with(|s| {
            let pages = s.dirty_at_once(id, &run, now);
            if pages == 0 {
                return AtOnce::default();
            }
            let clean = s.ext_dirty(id, run.start..run.start + pages, now);
            s.count_dirtying(&self.config, task, clean, false);
            AtOnce { pages, clean }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_before_the_page_that_needs_a_block_of_pointers() {
        let at = pages_of_leaf;
        assert_eq!((at(0), at(11), at(12), at(13)), (12, 1, 0, 1023));
        assert_eq!((at(1035), at(1036), at(1037)), (1, 0, 1023));
        for page in 0..5000 {
            let end = page + at(page);
            assert!((page..end).all(|p| new_indirects(p) == 0), "{page}");
            assert!(new_indirects(end) > 0, "{page}");
        }
    }
}
