// SPDX-License-Identifier: MIT OR Apache-2.0
//! Freeing blocks and inodes (fs/ext3/{inode,balloc,ialloc}.c, fs/jbd/revoke.c,
//! 2.6.28).
//!
//! The blocks that the inode points to go first, then those of each block of
//! pointers, which is read if it is cold and goes after them. A block of
//! pointers or of a directory leaves its transaction, and a record at the next
//! commit keeps a recovery from writing it. A handle that has used up its
//! credits is ended and another one begun between two pieces.

use super::Ext;
use super::layout::{DIRECT, GROUP_BLOCKS, POINTERS};
use crate::jbd::Handle;
use crate::mount::{Mount, View};
use blklab_pagecache::{Extents, FileId, FsError, Host, Place};
use std::ops::Range;

/// Most blocks of a handle that cuts a file, beside those for one allocation.
const MAX_CREDITS: u64 = 64;
/// Credits kept for the inode and one allocation.
const RESERVED_CREDITS: u64 = 12;
/// Credits of a piece without its bitmaps: inode, block of pointers.
const PIECE_CREDITS: u64 = 2;

/// Blocks that are freed together.
#[derive(Debug, Default)]
struct Piece {
    /// The block of pointers to them, freed behind them.
    pointers: Option<u64>,
    /// In order, each in one group.
    blocks: Vec<Range<u64>>,
}

impl View<'_, Ext> {
    /// Takes all blocks from a file.
    fn take_blocks(&mut self, id: FileId) -> Vec<Piece> {
        let ext = &mut *self.volume;
        let file = &mut self.state.files[id.idx()];
        let own = ext.nodes[id].pointers.take().unwrap_or_default();
        let mut pieces: Vec<Piece> = Vec::with_capacity(1 + own.leaves.len() + own.uppers.len());
        pieces.push(Piece::default());
        let pointers = own.leaves.iter().chain(&own.uppers);
        pieces.extend(pointers.map(|block| Piece {
            pointers: Some(*block),
            blocks: Vec::new(),
        }));
        for run in file.extents.runs() {
            let (mut page, end) = (run.page, run.page + run.pages);
            while page < end {
                let block = ext.geometry.block_at(run.sector) + (page - run.page);
                let (piece, piece_end) = piece_of(page);
                let group_end = page + (GROUP_BLOCKS - block % GROUP_BLOCKS);
                let upto = end.min(piece_end).min(group_end);
                if let Some(piece) = pieces.get_mut(piece) {
                    push(&mut piece.blocks, block..block + (upto - page));
                }
                page = upto;
            }
        }
        file.extents = Extents::default();
        let inode = &mut ext.nodes[id];
        (inode.last_block, inode.changed) = (0, true);
        pieces.retain(|p| p.pointers.is_some() || !p.blocks.is_empty());
        pieces
    }

    /// A run of blocks of one group is free.
    fn free_run(&mut self, run: Range<u64>) {
        let ext = &mut *self.volume;
        ext.space.give_back(&run);
        match &mut ext.journal.running {
            Some(t) if ext.options.journal => push(&mut t.freed, run),
            _ => ext.space.release(run),
        }
    }

    /// A block of metadata is freed: nothing of it is written any more
    /// (`ext3_forget`, `journal_revoke`).
    fn drop_metadata(&mut self, block: u64) {
        let (device, options) = (self.volume.device, self.volume.options);
        let place: Place = (device, block);
        if !options.journal {
            return self.clean_page(device, block..block + 1);
        }
        self.forget(place);
        // Journalled data make records needless.
        if let Some(t) = self.journal().running.as_mut()
            && !options.journals_data()
        {
            t.nr_revoked += 1;
        }
    }
}

/// The piece that a page belongs to, and the page behind it.
fn piece_of(page: u64) -> (usize, u64) {
    match page.checked_sub(DIRECT) {
        None => (0, DIRECT),
        Some(behind) => {
            let leaf = behind / POINTERS;
            (1 + leaf as usize, DIRECT + (leaf + 1) * POINTERS)
        }
    }
}

/// Adds a run, to the last one if it continues it.
fn push(runs: &mut Vec<Range<u64>>, run: Range<u64>) {
    match runs.last_mut() {
        Some(last) if last.end == run.start && !run.start.is_multiple_of(GROUP_BLOCKS) => {
            last.end = run.end;
        }
        _ => runs.push(run),
    }
}

impl<H: Host> Mount<'_, H, Ext> {
    /// Pages are about to be dropped: the journal has nothing to do with them
    /// any more, once it has written what it is writing
    /// (`journal_invalidatepage`).
    pub(super) async fn ext_invalidate(&self, id: FileId, run: Range<u64>) {
        self.with(|s| {
            s.journal().forget_data(id, &run);
            if s.volume.nodes[id].data_journal {
                let mut page = run.start;
                while let Some(next) = s.file(id).cached.next_set(page, run.end) {
                    s.forget((id, next));
                    page = next + 1;
                }
            } else if s.file(id).buffers.present {
                s.file(id).buffers.dirty.clear(run.clone());
            }
        });
        self.wait_buffers(id, run).await;
    }

    /// Cuts a file to nothing (`ext3_setattr`, `ext3_truncate`).
    pub(super) async fn ext_truncate(&self, id: FileId) -> Result<(), FsError> {
        let pieces = self.with(|s| s.take_blocks(id));
        let handle = self.begin(credits(&pieces)).await;
        let orphan = self.change_orphan(id).await;
        let handle = self.free_pieces(id, pieces, handle).await;
        let done = self.change_orphan(id).await;
        self.end(handle);
        orphan.and(done)
    }

    /// Frees an inode that has no name any more, and its blocks
    /// (`ext3_delete_inode`).
    pub(super) async fn ext_remove_inode(&self, id: FileId) -> Result<(), FsError> {
        let pieces = self.with(|s| {
            let ext = &mut *s.volume;
            ext.space.discard(&mut ext.nodes[id].window);
            s.take_blocks(id)
        });
        let handle = self.begin(credits(&pieces)).await;
        let handle = self.free_pieces(id, pieces, handle).await;
        let freed = self.free_inode(id).await;
        self.end(handle);
        freed
    }

    /// `ext3_free_inode`, and the end of being an orphan.
    async fn free_inode(&self, id: FileId) -> Result<(), FsError> {
        self.change_orphan(id).await?;
        let (number, directory, bitmap, descriptor) = self.with(|s| {
            let (ext, file) = (&*s.volume, &s.files[id.idx()]);
            let group = ext.group_of(&ext.nodes[id]);
            (
                u64::from(ext.nodes[id].number),
                file.directory.is_some(),
                ext.geometry.inode_bitmap(group),
                ext.geometry.descriptor(group),
            )
        });
        self.ext_read(bitmap).await?;
        self.change_block(bitmap).await;
        self.change_block(descriptor).await;
        self.with(|s| {
            s.volume.inodes.give_back(number, directory);
        });
        Ok(())
    }

    /// Frees pieces under a handle, or several (`ext3_free_branches`). Returns the
    /// last one.
    async fn free_pieces(
        &self,
        id: FileId,
        pieces: Vec<Piece>,
        mut handle: Option<Handle>,
    ) -> Option<Handle> {
        let directory = self.with(|s| s.file(id).directory.is_some());
        let mut left = credits(&pieces);
        for piece in pieces {
            let needed = piece.blocks.len() as u64 * 2 + PIECE_CREDITS;
            if left < needed + RESERVED_CREDITS {
                // What cannot be noted in the inode now is noted at the end.
                let _ = self.change_inode(id).await;
                self.end(handle);
                left = MAX_CREDITS + RESERVED_CREDITS;
                handle = self.begin(left).await;
            }
            left = left.saturating_sub(needed);
            self.free_piece(piece, directory).await;
        }
        handle
    }

    /// Frees what one block of pointers points to, and then that block
    /// (`ext3_free_data`).
    async fn free_piece(&self, piece: Piece, directory: bool) {
        if let Some(block) = piece.pointers {
            // Blocks that an unreadable block points to are lost on a real
            // volume; here they are known.
            let _ = self.ext_read(block).await;
        }
        for run in piece.blocks {
            self.free_blocks(run, directory).await;
        }
        if let Some(block) = piece.pointers {
            self.free_blocks(block..block + 1, true).await;
        }
    }

    /// Frees a run of blocks of one group (`ext3_free_blocks`).
    async fn free_blocks(&self, run: Range<u64>, metadata: bool) {
        let (bitmap, descriptor) = self.with(|s| {
            let (ext, group) = (&*s.volume, run.start / GROUP_BLOCKS);
            (
                ext.geometry.block_bitmap(group),
                ext.geometry.descriptor(group),
            )
        });
        let _ = self.ext_read(bitmap).await;
        self.change_block(bitmap).await;
        self.change_block(descriptor).await;
        self.with(|s| {
            if metadata {
                run.clone().for_each(|block| s.drop_metadata(block));
            }
            s.free_run(run);
        });
    }
}

/// Credits of a handle that frees these (`blocks_for_truncate`).
fn credits(pieces: &[Piece]) -> u64 {
    let blocks = pieces.iter().flat_map(|p| &p.blocks);
    let nr: u64 = blocks.map(|run| run.end - run.start).sum();
    nr.clamp(2, MAX_CREDITS) + RESERVED_CREDITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_what_one_block_points_to() {
        assert_eq!(piece_of(0), (0, 12));
        assert_eq!(piece_of(11), (0, 12));
        assert_eq!(piece_of(12), (1, 1036));
        assert_eq!(piece_of(1036), (2, 2060));
    }

    #[test]
    fn runs_join_within_a_group() {
        let mut runs = Vec::new();
        push(&mut runs, 32_766..32_767);
        push(&mut runs, 32_767..32_768);
        push(&mut runs, 32_768..32_770);
        assert_eq!(runs, [32_766..32_768, 32_768..32_770]);
    }

    #[test]
    fn a_handle_has_between_14_and_76_credits() {
        let piece = |blocks| Piece {
            pointers: None,
            blocks,
        };
        assert_eq!(credits(&[]), 14);
        assert_eq!(credits(&[piece(vec![0..10, 20..30])]), 32);
        assert_eq!(credits(&[piece(vec![0..1000, 2000..2001])]), 76);
    }
}
