// SPDX-License-Identifier: MIT OR Apache-2.0
//! Freeing a file's blocks and its inode (fs/ext4/{inode,extents,mballoc}.c,
//! 2.6.32): nobody takes them before the transaction is committed.

use super::layout::GROUP_BLOCKS;
use super::namespace::SUPERBLOCK;
use super::{Ext4, HAS_INODE};
use crate::mount::{Mount, View};
use blklab_pagecache::{FileId, FsError, Host};
use std::ops::Range;

/// Credits of a handle that frees a file's blocks, beside those of its groups.
const FREE_CREDITS: u64 = 12;

impl Ext4 {
    /// Blocks of a file that goes: nobody takes them before the transaction is
    /// committed (`ext4_mb_free_metadata`).
    fn free_run(&mut self, blocks: Range<u64>) {
        self.free_blocks += blocks.end - blocks.start;
        match self.journal.running.as_mut() {
            Some(t) => t.freed.push(blocks),
            None => self.release_blocks(blocks),
        }
    }

    /// Blocks can be taken again (`release_blocks_on_commit`, later
    /// `ext4_process_freed_data`).
    pub(super) fn release_blocks(&mut self, blocks: Range<u64>) {
        let nr = blocks.end - blocks.start;
        self.space.give(&self.geometry, blocks.start, nr);
    }
}

impl View<'_, Ext4> {
    /// Metadata blocks are no longer: the journal forgets them, and a recovery must
    /// not write them (`jbd2_journal_revoke`).
    fn ext4_forget(&mut self, blocks: &[u64]) {
        let device = self.metadata_file();
        for block in blocks {
            self.forget((device, *block));
        }
        if let Some(t) = self.journal().running.as_mut() {
            t.nr_revoked += blocks.len() as u64;
        }
    }

    /// Takes a file's blocks away (`ext4_ext_truncate`, `ext4_ext_remove_space`).
    /// Returns the metadata blocks that this changes.
    pub(super) fn ext4_free_blocks(&mut self, id: FileId) -> Vec<u64> {
        let (file, ext4) = (&mut self.state.files[id.idx()], &mut *self.volume);
        let mut inode = ext4.nodes[id].take().expect(HAS_INODE);
        ext4.discard_own(id);
        let mut first_blocks = Vec::new();
        for run in std::mem::take(&mut file.extents).runs() {
            let (mut block, mut left) = (ext4.geometry.block(run.sector), run.pages);
            while left > 0 {
                let n = left.min(GROUP_BLOCKS - block % GROUP_BLOCKS);
                ext4.free_run(block..block + n);
                first_blocks.push(block);
                block += n;
                left -= n;
            }
        }
        let mut metadata: Vec<u64> = inode.leaves.drain(..).collect();
        metadata.append(&mut inode.nodes);
        for block in &metadata {
            ext4.free_run(*block..block + 1);
            first_blocks.push(*block);
        }
        metadata.extend(inode.names.take().into_iter().flat_map(|n| n.blocks()));
        let own = inode.block;
        ext4.nodes[id] = Some(inode);
        self.ext4_forget(&metadata);
        let mut changed = vec![own];
        for block in first_blocks {
            changed.extend(self.ext4_group_blocks(block));
        }
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    /// Frees an inode (`ext4_free_inode`). Returns the blocks that this changes.
    pub(super) fn ext4_drop_inode(&mut self, id: FileId, directory: bool) -> [u64; 3] {
        let inode = self.volume.nodes[id].take().expect(HAS_INODE);
        let ext4 = &mut *self.volume;
        ext4.free_inode(&inode, directory);
        let g = &ext4.geometry;
        [
            g.inode_bitmap(inode.group),
            g.descriptor(inode.group),
            inode.block,
        ]
    }
}

impl<H: Host> Mount<'_, H, Ext4> {
    /// The blocks of a file go, and then its inode (`ext4_delete_inode`, later
    /// `ext4_evict_inode`).
    pub(super) async fn ext4_remove_inode(&self, id: FileId) -> Result<(), FsError> {
        self.ext4_load_tree(id).await?;
        let handle = self.journal_start(self.ext4_free_credits(id)).await;
        let changed = self.with(|s| {
            let mut changed = s.ext4_free_blocks(id);
            let directory = s.file(id).directory.is_some();
            changed.extend(s.ext4_drop_inode(id, directory));
            changed.push(SUPERBLOCK);
            changed
        });
        self.ext4_change_old(changed).await;
        self.journal_stop(handle);
        Ok(())
    }

    /// A file is cut to nothing.
    pub(super) async fn ext4_truncate(&self, id: FileId) -> Result<(), FsError> {
        self.ext4_load_tree(id).await?;
        let handle = self.journal_start(self.ext4_free_credits(id)).await;
        let changed = self.with(|s| {
            let mut changed = s.ext4_free_blocks(id);
            // An orphan, should the machine stop half way.
            changed.push(SUPERBLOCK);
            changed
        });
        self.ext4_change_old(changed).await;
        let now = self.ext4_time();
        self.with(|s| {
            let o = &s.volume.options;
            let flushes = o.auto_da_alloc && o.features.allocates_on_close;
            s.ext4_stamp(id, true);
            let inode = s.ext4_inode(id);
            inode.mtime = now;
            inode.allocate_on_close = flushes;
        });
        self.journal_stop(handle);
        Ok(())
    }

    /// Reads a file's extent tree.
    async fn ext4_load_tree(&self, id: FileId) -> Result<(), FsError> {
        let tree = self.with(|s| {
            let inode = s.ext4_inode(id);
            [inode.nodes.clone(), inode.leaves.clone()].concat()
        });
        for block in tree {
            self.ext4_read(block).await?;
        }
        Ok(())
    }

    /// Bitmap and descriptor of each group that a file has blocks in.
    fn ext4_free_credits(&self, id: FileId) -> u64 {
        self.with(|s| {
            let runs = s.file(id).extents.runs();
            let groups: u64 = runs.iter().map(|r| r.pages / GROUP_BLOCKS + 1).sum();
            let most = s.journal().max_credits() / 2;
            (FREE_CREDITS + 2 * groups).min(most)
        })
    }
}
