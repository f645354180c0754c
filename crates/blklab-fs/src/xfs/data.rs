// SPDX-License-Identifier: MIT OR Apache-2.0
//! File data: places promised at `write`, given at write-out
//! (fs/xfs/linux-2.6/xfs_aops.c, fs/xfs/xfs_iomap.c; 2.6.26).
//!
//! A dirty page without a place is given one with all dirty pages around it, in
//! one transaction; a file that is open gets some blocks more behind its end,
//! which go back at the close.
//!
//! Left out: preallocation calls, blocks of extents of very fragmented files,
//! real-time volumes.

use super::costs;
use super::transaction::Transaction;
use super::volume::Volume;
use crate::mount::{Mount, View};
use blklab_pagecache::{FileId, FsError, Host};
use std::ops::Range;

/// Blocks behind the end of a growing file (64 KiB; `m_writeio_blocks`).
const SPARE_BLOCKS: u64 = 16;

impl Volume {
    /// Gives the blocks behind a file's end back (`xfs_free_eofblocks`).
    pub(super) fn drop_spare(&mut self, index: u32, touched: &mut Vec<u32>) {
        let inode = self.inodes.get(index);
        let (start, blocks) = (inode.spare_start, std::mem::take(&mut inode.spare_blocks));
        if blocks > 0 {
            self.give_back(start, u64::from(blocks), touched);
        }
    }

    /// Gives blocks back.
    pub(super) fn give_back(&mut self, start: u64, blocks: u64, touched: &mut Vec<u32>) {
        self.space.put(start, blocks);
        self.touch_space(start, touched);
    }
}

/// What was found for a page without a place.
enum Placed {
    /// It has one.
    Already,
    /// It took what there was behind the file's end.
    Spare,
    /// It must be allocated.
    Missing,
}

impl View<'_, Volume> {
    /// Where the page behind `page` blocks of a file should lie
    /// (`xfs_bmap_adjacent`).
    pub(super) fn goal(&mut self, id: FileId, index: u32, page: u64) -> u64 {
        let before = self.files[id.idx()].extents.before(page);
        let v = &mut *self.volume;
        match before {
            Some((sector, pages)) => v.geometry.block(sector) + pages,
            None => v.inodes.block_of(index),
        }
    }

    /// Dirty pages of a run that have no place.
    pub(super) fn delayed_pages(&self, id: FileId, run: Range<u64>) -> u64 {
        let file = &self.files[id.idx()];
        let mut page = run.start;
        let mut count = 0;
        while let Some(first) = file.dirty.next_set(page, run.end) {
            let end = file.dirty.next_clear(first, run.end);
            page = first;
            while page < end {
                let (mapped, pages) = file.extents.piece(page, end);
                count += if mapped { 0 } else { pages };
                page += pages;
            }
        }
        count
    }

    /// Promises places to pages that are about to become dirty
    /// (`xfs_iomap_write_delay`, later `xfs_buffered_write_iomap_begin`); false if
    /// there are not enough.
    fn promise(&mut self, id: FileId, run: Range<u64>) -> bool {
        let file = &self.files[id.idx()];
        let (mut page, mut new) = (run.start, 0);
        while page < run.end {
            let (mapped, pages) = file.extents.piece(page, run.end);
            if !mapped {
                new += pages - file.dirty.count_in(page..page + pages);
            }
            page += pages;
        }
        let index = self.inode_of(id);
        let v = &mut *self.volume;
        if new > 0 && !v.space.promise(new) {
            return false;
        }
        v.inodes.get(index).delayed += new as u32;
        true
    }

    /// The dirty pages without a place around one.
    fn delayed_extent(&self, id: FileId, page: u64) -> Range<u64> {
        let file = &self.files[id.idx()];
        let (_, room) = file.extents.piece(page, u64::MAX);
        let end = file.dirty.next_clear(page, page.saturating_add(room));
        let mut start = page;
        while start > 0 && file.dirty.test(start - 1) && file.extents.map(start - 1).is_none() {
            start -= 1;
        }
        start..end.max(page + 1)
    }

    /// Uses blocks behind the file's end, if the page is the next.
    fn place_spare(&mut self, id: FileId, index: u32, page: u64) -> Placed {
        let file = &self.files[id.idx()];
        if file.extents.map(page).is_some() {
            return Placed::Already;
        }
        let run = self.delayed_extent(id, page);
        let next = self.files[id.idx()].extents.pages();
        let v = &mut *self.volume;
        let inode = v.inodes.get(index);
        if inode.spare_blocks == 0 || run.start != next {
            return Placed::Missing;
        }
        let pages = u64::from(inode.spare_blocks).min(run.end - run.start);
        let start = inode.spare_start;
        inode.spare_start += pages;
        inode.spare_blocks -= pages as u16;
        let sector = v.geometry.sector(start);
        v.settle(index, pages);
        self.files[id.idx()].extents.append(sector, pages);
        match self.files[id.idx()].extents.map(page) {
            Some(_) => Placed::Spare,
            None => Placed::Missing,
        }
    }

    /// Allocates the extent around a page (`xfs_iomap_write_allocate`, `xfs_bmapi`;
    /// later `xfs_bmapi_convert_delalloc`). Returns the buffers touched.
    fn place_extent(&mut self, id: FileId, index: u32, page: u64) -> Option<Vec<u32>> {
        let run = self.delayed_extent(id, page);
        let file = &self.files[id.idx()];
        let grows =
            file.nr_open > 0 && run.end >= file.eof_pages() && run.end > file.extents.pages();
        let want = run.end - run.start;
        let goal = self.goal(id, index, run.start);
        let v = &mut *self.volume;
        v.settle(index, want);
        let spare = if grows && v.space.has(want + SPARE_BLOCKS) {
            SPARE_BLOCKS
        } else {
            0
        };
        let (block, got) = v.space.take_near(goal, want + spare)?;
        let pages = got.min(want);
        if pages < want {
            v.promise_again(index, want - pages);
        }
        let mut touched = Vec::with_capacity(4);
        if got > pages {
            v.drop_spare(index, &mut touched);
            let inode = v.inodes.get(index);
            (inode.spare_start, inode.spare_blocks) = (block + pages, (got - pages) as u16);
        }
        v.touch_space(block, &mut touched);
        let sector = v.geometry.sector(block);
        self.files[id.idx()]
            .extents
            .insert(run.start, sector, pages);
        Some(touched)
    }
}

impl Volume {
    /// Promised pages get a place (`xfs_bmap_add_extent_delay_real`).
    fn settle(&mut self, index: u32, pages: u64) {
        let inode = self.inodes.get(index);
        let promised = u64::from(inode.delayed).min(pages);
        inode.delayed -= promised as u32;
        self.space.release(promised);
    }

    /// Fewer got one than there was promised.
    fn promise_again(&mut self, index: u32, pages: u64) {
        if self.space.promise(pages) {
            self.inodes.get(index).delayed += pages as u32;
        }
    }
}

impl<H: Host> Mount<'_, H, Volume> {
    /// Promises places and makes pages dirty (`xfs_iomap_write_delay`).
    pub(super) async fn dirty_xfs(
        &self,
        id: FileId,
        run: Range<u64>,
        end: u64,
    ) -> Result<(), FsError> {
        if !self.with(|s| s.promise(id, run.clone())) {
            return Err(FsError::NoSpace);
        }
        self.set_dirty(id, run, end, false).await;
        Ok(())
    }

    /// Gives a dirty page a place, and those around it (`xfs_map_blocks`,
    /// `xfs_iomap_write_allocate`).
    pub(super) async fn place_xfs(&self, id: FileId, page: u64) -> Result<(), FsError> {
        let index = self.with(|s| s.inode_of(id));
        if !matches!(
            self.with(|s| s.place_spare(id, index, page)),
            Placed::Missing
        ) {
            return Ok(());
        }
        self.spend(self.config.op_costs.allocate).await;
        let t = self.xfs_begin(costs::RESERVE_WRITE).await;
        // Somebody may have been faster.
        if self.with(|s| s.files[id.idx()].extents.map(page).is_some()) {
            self.xfs_cancel(t);
            return Ok(());
        }
        let Some(touched) = self.with(|s| s.place_extent(id, index, page)) else {
            self.xfs_cancel(t);
            return Err(FsError::NoSpace);
        };
        self.xfs_finish(t, index, &touched, (costs::ALLOCATE, true))
            .await;
        // The rest of a run that was too long for one extent is its own turn.
        Ok(())
    }

    /// A direct write needs its blocks: those up to its end
    /// (`xfs_iomap_write_direct`, `xfs_bmapi`, later `xfs_bmapi_write`).
    pub(super) async fn place_direct_xfs(&self, id: FileId, end: u64) -> Result<(), FsError> {
        let index = self.with(|s| s.inode_of(id));
        let pages = end.div_ceil(blklab_types::PAGE_BYTES);
        while let Some(hole) = self.with(|s| s.files[id.idx()].extents.next_hole(pages)) {
            let t = self.xfs_begin(costs::RESERVE_WRITE).await;
            let touched = self.with(|s| {
                let file = &s.files[id.idx()];
                let (_, room) = file.extents.piece(hole, pages);
                let dirty = file.dirty.count_in(hole..hole + room);
                let goal = s.goal(id, index, hole);
                let v = &mut *s.volume;
                if !v.space.has(room.saturating_sub(dirty).max(1)) {
                    return None;
                }
                v.settle(index, dirty);
                let mut touched = Vec::with_capacity(4);
                v.drop_spare(index, &mut touched);
                let (block, got) = v.space.take_near(goal, room)?;
                v.touch_space(block, &mut touched);
                let sector = v.geometry.sector(block);
                s.files[id.idx()].extents.insert(hole, sector, got);
                Some(touched)
            });
            let Some(touched) = touched else {
                self.xfs_cancel(t);
                return Err(FsError::NoSpace);
            };
            self.xfs_finish(t, index, &touched, (costs::ALLOCATE, true))
                .await;
        }
        Ok(())
    }

    /// Ends a transaction that changed these buffers and one inode: `logs` so
    /// many bytes, and whether the superblock's counters change.
    async fn xfs_finish(&self, mut t: Transaction, index: u32, buffers: &[u32], logs: (u64, bool)) {
        self.xfs_change(&mut t, buffers).await;
        t.join_inode(index);
        (t.bytes, t.counters) = logs;
        self.xfs_commit(t).await;
    }

    /// A file is closed (`xfs_release`): what lies behind its end goes back.
    pub(super) async fn close_xfs(&self, id: FileId, wrote: bool) {
        let index = self.with(|s| {
            let index = s.inode_of(id);
            let inode = s.volume.inodes.get(index);
            let beyond = inode.spare_blocks > 0 || inode.delayed > 0;
            let last = s.files[id.idx()].nr_open == 0 && !s.files[id.idx()].removed;
            (wrote && last && beyond).then_some(index)
        });
        let Some(index) = index else {
            return;
        };
        let t = self.xfs_begin(costs::RESERVE_WRITE).await;
        let touched = self.with(|s| {
            let mut touched = Vec::new();
            s.volume.drop_spare(index, &mut touched);
            touched
        });
        self.xfs_finish(t, index, &touched, (costs::TRIM, !touched.is_empty()))
            .await;
    }
}
