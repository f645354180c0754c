// SPDX-License-Identifier: MIT OR Apache-2.0
//! When pages get their blocks (fs/ext4/inode.c, 2.6.32, 4.19): promises at
//! `write`, places at write-out, before direct writes, and before the run.

use super::allocation::Request;
use super::{Ext4, HAS_INODE, Inode};
use crate::jbd::{DataMode, Handle};
use crate::mount::{Mount, View};
use blklab_pagecache::{Extents, File, FileId, FsError, Host, PageCache};
use std::ops::Range;

/// Credits of a handle that allocates: bitmaps, descriptors, leaves, inode.
const ALLOCATION_CREDITS: u64 = 12;
/// Free blocks below which allocation is not delayed (`EXT4_FREEBLOCKS_WATERMARK`
/// of one processor).
const WATERMARK_BLOCKS: u64 = 128;

/// How new blocks of a file begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewBlocks {
    /// As blocks with data, which have to be on the disk before the transaction.
    Written,
    /// Marked as unwritten until their data are on the disk.
    Unwritten,
}

impl Ext4 {
    /// A block of the extent tree or of a directory (`ext4_ext_new_meta_block`).
    pub(super) fn take_meta(&mut self, inode: &Inode, extents: &Extents) -> Option<u64> {
        let request = Request {
            page: extents.pages(),
            pages: 1,
            size: 1,
            closed: false,
            data: false,
            pid: 0,
        };
        let none = FileId(u32::MAX);
        self.allocate(none, inode, extents, request)
            .map(|(block, _)| block)
    }
}

impl Ext4 {
    /// Blocks that data may still be given (`ext4_has_free_clusters`): some are
    /// kept for the metadata of what is promised (`s_resv_clusters`: a fiftieth of
    /// the volume, at most 4096 blocks).
    fn unpromised_blocks(&self) -> u64 {
        let kept = (self.geometry.blocks / 50).min(4096);
        let taken = self.promised_blocks + kept;
        self.free_blocks.saturating_sub(taken)
    }
}

/// Dirty pages of a run that have no place: their blocks are promised.
fn delayed(file: &File, run: Range<u64>) -> u64 {
    let mut at = run.start;
    let mut pages = 0;
    while let Some(first) = file.dirty.next_set(at, run.end) {
        at = file.dirty.next_clear(first, run.end);
        pages += unplaced(file, first..at)
            .map(|r| r.end - r.start)
            .sum::<u64>();
    }
    pages
}

/// The parts of a run that have no place.
fn unplaced(file: &File, run: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut at = run.start;
    std::iter::from_fn(move || {
        while at < run.end {
            if let Some((_, pages)) = file.extents.map(at) {
                at += pages;
                continue;
            }
            let first = at;
            at = file.extents.next_place(at).unwrap_or(run.end).min(run.end);
            return Some(first..at);
        }
        None
    })
}

/// The first part of a run that has no place.
fn unplaced_first<H: Host>(
    cache: &PageCache<H>,
    id: FileId,
    run: &Range<u64>,
) -> Option<Range<u64>> {
    cache.with(|s| unplaced(s.file(id), run.clone()).next())
}

impl View<'_, Ext4> {
    /// Promises blocks to the clean pages of a run that have no place
    /// (`ext4_da_reserve_space`). False if there are not enough.
    pub(super) fn ext4_promise(&mut self, id: FileId, run: Range<u64>) -> bool {
        let file = &self.files[id.idx()];
        let new: u64 = unplaced(file, run)
            .map(|r| r.end - r.start - file.dirty.count_in(r))
            .sum();
        let ext4 = &mut *self.volume;
        let there = new <= ext4.unpromised_blocks();
        if there {
            ext4.promised_blocks += new;
        }
        there
    }

    /// Dirty pages go before they got their blocks
    /// (`ext4_da_page_release_reservation`).
    pub(super) fn ext4_forget_promises(&mut self, id: FileId, run: &Range<u64>) {
        let pages = delayed(&self.files[id.idx()], run.clone());
        self.volume.take_promises(pages);
    }

    /// Whether blocks are so short that allocation must not be delayed
    /// (`ext4_nonda_switch`).
    pub(super) fn ext4_is_short(&self) -> bool {
        let (free, promised) = (self.volume.free_blocks, self.volume.promised_blocks);
        2 * free < 3 * promised || free < promised + WATERMARK_BLOCKS
    }

    /// The pages from one on that are dirty, free to be written, and have no place
    /// (`write_cache_pages_da`, later `mpage_prepare_extent_to_map`).
    fn ext4_delayed_range(&self, id: FileId, page: u64) -> Range<u64> {
        let file = &self.files[id.idx()];
        let most = self.volume.options.features.range_pages;
        let end = file.dirty.next_clear(page, page + most);
        let end = file.locked.next_set(page + 1, end).unwrap_or(end);
        let end = file.writeback.next_set(page, end).unwrap_or(end);
        let end = file.extents.next_place(page).unwrap_or(end).min(end);
        page..end.max(page + 1)
    }

    /// Gives the first pages of a run their place (`ext4_ext_get_blocks`, later
    /// `ext4_ext_map_blocks`). Returns the page behind them, and the metadata
    /// blocks that this changes; None if the volume is full.
    pub(super) fn ext4_place(
        &mut self,
        id: FileId,
        run: Range<u64>,
        (begin, pid): (NewBlocks, u32),
    ) -> Option<(u64, Vec<u64>)> {
        let (file, ext4) = (&mut self.state.files[id.idx()], &mut *self.volume);
        let mut inode = ext4.nodes[id].take().expect(HAS_INODE);
        let request = Request {
            page: run.start,
            pages: run.end - run.start,
            size: file.eof_pages(),
            closed: file.nr_open == 0,
            data: file.directory.is_none(),
            pid,
        };
        let got = ext4.allocate(id, &inode, &file.extents, request);
        let mut new = None;
        if let Some((block, pages)) = got {
            let placed = run.start..run.start + pages;
            let promised = delayed(file, placed.clone());
            ext4.take_promises(promised);
            let sector = ext4.geometry.sector(block);
            file.extents.insert(placed.start, sector, pages);
            let grown = ext4.grow_tree(&mut inode, &file.extents);
            new = grown.map(|new| (block..block + pages, placed.end, new));
        }
        let leaf = inode.leaf(&file.extents, run.start);
        let own = inode.block;
        ext4.nodes[id] = Some(inode);
        let (blocks, end, new) = new?;
        if begin == NewBlocks::Unwritten {
            self.ext4_mark_unwritten(id, run.start..end);
        }
        let first = blocks.start;
        // Metadata that were there are not written over the data any more.
        let device = self.metadata_file();
        self.clean_page(device, blocks);
        let mut changed = Vec::with_capacity(4 + 3 * new.len());
        for block in std::iter::once(first).chain(new.iter().copied()) {
            changed.extend(self.ext4_group_blocks(block));
        }
        changed.extend(new);
        changed.extend(leaf);
        changed.push(own);
        changed.sort_unstable();
        changed.dedup();
        Some((end, changed))
    }

    /// Before the run: an inode and blocks in long runs, metadata in the
    /// cache.
    pub(super) fn ext4_lay_out(&mut self, id: FileId, pages: u64) -> Option<()> {
        let parent = self.files[id.idx()].parent;
        let hash = self.files[id.idx()].name.hash;
        self.ext4_new_inode(parent, id, hash)?;
        while self.files[id.idx()].extents.pages() < pages {
            let (file, ext4) = (&mut self.state.files[id.idx()], &mut *self.volume);
            let mut inode = ext4.nodes[id].take().expect(HAS_INODE);
            let at = file.extents.pages();
            let got = ext4.lay_out_run(&inode, &file.extents, pages - at);
            let grown = got.and_then(|(block, n)| {
                let sector = ext4.geometry.sector(block);
                file.extents.append(sector, n);
                ext4.grow_tree(&mut inode, &file.extents)
            });
            let leaves = inode.leaves.clone();
            ext4.nodes[id] = Some(inode);
            grown?;
            let [bitmap, descriptor] = self.ext4_group_blocks(got?.0);
            let device = self.metadata_file();
            for block in leaves.into_iter().chain([bitmap, descriptor]) {
                self.cache_block((device, block));
            }
        }
        Some(())
    }

    /// Puts a file on the running transaction's list (`ext4_jbd2_file_inode`).
    pub(super) fn ext4_attach(&mut self, id: FileId) {
        let j = self.journal();
        let tid = j.running_tid();
        if std::mem::replace(&mut self.ext4_inode(id).ordered_tid, tid) != tid
            && let Some(t) = self.journal().running.as_mut()
        {
            t.inodes.push(id);
        }
    }
}

impl Ext4 {
    /// Pages that were promised blocks have got them
    /// (`ext4_da_update_reserve_space`), or are gone.
    fn take_promises(&mut self, pages: u64) {
        assert!(
            pages <= self.promised_blocks,
            "{pages} dirty pages had a promise, but only {} blocks are promised",
            self.promised_blocks
        );
        self.promised_blocks -= pages;
    }
}

impl<H: Host> Mount<'_, H, Ext4> {
    /// Gives all pages of a run that have none a place.
    pub(super) async fn ext4_place_all(&self, id: FileId, run: Range<u64>) -> Result<(), FsError> {
        let next = |from: u64| unplaced_first(self, id, &(from..run.end));
        let mut at = run.start;
        while let Some(mut hole) = next(at) {
            let room = self.with(|s| {
                let promised = s.file(id).dirty.test(hole.start);
                let there = s.volume.unpromised_blocks();
                if promised { 1 } else { there }
            });
            if room == 0 {
                return Err(FsError::NoSpace);
            }
            hole.end = hole.end.min(hole.start + room);
            let (placed, handle) = self.ext4_allocate_anew(id, hole, NewBlocks::Written).await;
            self.journal_stop(handle);
            at = placed?;
        }
        Ok(())
    }

    /// Opens a handle and gives the first pages of a run a place. If there is no
    /// room, what was freed lately may be free after a commit
    /// (`ext4_should_retry_alloc`).
    pub(super) async fn ext4_allocate_anew(
        &self,
        id: FileId,
        run: Range<u64>,
        begin: NewBlocks,
    ) -> (Result<u64, FsError>, Handle) {
        let handle = self.journal_start(ALLOCATION_CREDITS).await;
        let placed = self.ext4_allocate(id, run.clone(), begin).await;
        if placed.is_ok() {
            return (placed, handle);
        }
        self.journal_stop(handle);
        self.force_commit().await;
        let handle = self.journal_start(ALLOCATION_CREDITS).await;
        (self.ext4_allocate(id, run, begin).await, handle)
    }

    /// Gives the first pages of a run a place, under an open handle
    /// (`ext4_map_blocks`). Returns the page behind them.
    async fn ext4_allocate(
        &self,
        id: FileId,
        run: Range<u64>,
        begin: NewBlocks,
    ) -> Result<u64, FsError> {
        let pid = self.host.pid();
        // Somebody else may have begun, during the sleep.
        let first = unplaced_first(self, id, &run);
        let Some(run) = first else {
            return Ok(run.end);
        };
        let placed = self.with(|s| s.ext4_place(id, run, (begin, pid)));
        let (end, changed) = placed.ok_or(FsError::NoSpace)?;
        for block in &changed {
            // What is new is in memory; other blocks may have to be read.
            self.ext4_read_old(*block).await;
        }
        self.ext4_change(changed).await;
        self.with(|s| {
            s.ext4_stamp(id, true);
            if s.volume.options.data == DataMode::Ordered && begin == NewBlocks::Written {
                s.ext4_attach(id);
            }
        });
        Ok(end)
    }

    /// Reads a bitmap or leaf that is on the disk and not in memory. A block
    /// that the journal has is in memory.
    pub(super) async fn ext4_read_old(&self, block: u64) {
        if self.with(|s| s.ext4_is_cold_bitmap(block)) {
            // An error shows when the block is needed again.
            let _ = self.ext4_read(block).await;
        }
    }

    /// Gives a dirty page a place, and those behind it (`mpage_da_map_blocks`, later
    /// `mpage_map_and_submit_extent`). The handle stays open until they are in bios.
    pub(super) async fn ext4_place_dirty(&self, id: FileId, page: u64) -> Result<(), FsError> {
        let (run, begin) = self.with(|s| {
            let begin = if s.volume.options.dioread_nolock {
                NewBlocks::Unwritten
            } else {
                NewBlocks::Written
            };
            (s.ext4_delayed_range(id, page), begin)
        });
        let first = run.start;
        let (placed, handle) = self.ext4_allocate_anew(id, run, begin).await;
        match placed {
            Ok(end) => {
                let me = self.host.current();
                self.with(|s| s.volume.writing_out.push((me, handle, first..end)));
                Ok(())
            }
            Err(error) => {
                self.journal_stop(handle);
                self.with(|s| s.ext4_forget_promises(id, &(page..page + 1)));
                Err(error)
            }
        }
    }

    /// Closes the handle under which this task gave pages their place, if all
    /// of them are in bios.
    pub(super) fn ext4_taken(&self, id: FileId, upto: u64) {
        let me = self.host.current();
        let handle = self.with(|s| {
            let open = &mut s.volume.writing_out;
            let at = open
                .iter()
                .position(|(t, _, run)| *t == me && upto >= run.end)?;
            let (_, handle, run) = open.swap_remove(at);
            s.ext4_leave_unwritten(id, &run);
            Some(handle)
        });
        if let Some(handle) = handle {
            self.journal_stop(handle);
            self.send_workers();
        }
    }
}
