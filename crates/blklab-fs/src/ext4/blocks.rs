// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metadata blocks: reading and changing them (fs/ext4/{inode,super}.c,
//! `__ext4_get_inode_loc`; 2.6.32).

use super::layout::GROUP_BLOCKS;
use super::{Ext4, HAS_INODE};
use crate::mount::{Mount, View};
use blklab_pagecache::{FileId, FsError, Host, PageRun};
use blklab_types::Op;

impl View<'_, Ext4> {
    /// Submits nothing if the block is there, or somebody reads it.
    fn ext4_take_cold(&mut self, device: FileId, block: u64) -> Option<PageRun> {
        let file = &self.files[device.idx()];
        let (sector, _) = file.extents.map(block)?;
        if file.uptodate.test(block) || file.locked.test(block) {
            return None;
        }
        self.add_locked(device, block..block + 1);
        Some(PageRun {
            start: block,
            pages: 1,
            sector,
        })
    }

    /// A bitmap that was never written is made in memory (`uninit_bg`;
    /// `ext4_init_block_bitmap`, `ext4_init_inode_bitmap`).
    pub(super) fn ext4_new_bitmap(&mut self, block: u64, group: u64, inodes: bool) {
        let ext4 = &mut *self.volume;
        let known = if inodes {
            &mut ext4.known_inode_bitmaps
        } else {
            &mut ext4.known_block_bitmaps
        };
        if !std::mem::replace(&mut known[group as usize], true) {
            let device = self.metadata_file();
            self.cache_block((device, block));
        }
    }

    /// The bitmap and the descriptor of the group that a block lies in, the
    /// bitmap made in memory if it is new.
    pub(super) fn ext4_group_blocks(&mut self, block: u64) -> [u64; 2] {
        let group = block / GROUP_BLOCKS;
        let g = &self.volume.geometry;
        let blocks = [g.block_bitmap(group), g.descriptor(group)];
        self.ext4_new_bitmap(blocks[0], group, false);
        blocks
    }
}

impl<H: Host> Mount<'_, H, Ext4> {
    /// Starts reading a block if it is not in memory.
    async fn ext4_submit_read(&self, device: FileId, block: u64) {
        if self.with(|s| s.file(device).uptodate.test(block)) {
            return;
        }
        self.make_room(1).await;
        if let Some(run) = self.with(|s| s.ext4_take_cold(device, block)) {
            let flags = self.with(|s| s.volume.options.features.read_flags);
            self.submit(Op::Read, flags, device, run).await;
        }
    }

    /// Reads a block if it is not in memory.
    pub(super) async fn ext4_read(&self, block: u64) -> Result<(), FsError> {
        let device = self.with(|s| s.metadata_file());
        if self.with(|s| s.file(device).uptodate.test(block)) {
            return Ok(());
        }
        self.ext4_submit_read(device, block).await;
        self.wait_unlocked(device, block).await;
        if self.with(|s| s.file(device).uptodate.test(block)) {
            Ok(())
        } else {
            Err(FsError::Io)
        }
    }

    /// Reads the block of an inode, and those around it in the inode table that
    /// have inodes in use (`__ext4_get_inode_loc`).
    pub(super) async fn ext4_read_inode(&self, id: FileId) -> Result<(), FsError> {
        let device = self.with(|s| s.metadata_file());
        let around = self.with(|s| {
            let ext4 = &*s.volume;
            let inode = ext4.nodes[id].as_ref().expect(HAS_INODE);
            let cold = !s.files[device.idx()].uptodate.test(inode.block);
            cold.then(|| (inode.block, ext4.table_readahead(inode)))
        });
        let Some((block, around)) = around else {
            return Ok(());
        };
        self.host.start_plug();
        for near in around {
            self.ext4_submit_read(device, near).await;
        }
        self.host.finish_plug();
        self.ext4_read(block).await
    }

    /// Changes blocks under an open handle (`ext4_journal_get_write_access`).
    pub(super) async fn ext4_change(&self, blocks: impl IntoIterator<Item = u64>) {
        let device = self.with(|s| s.metadata_file());
        for block in blocks {
            self.journal_access((device, block)).await;
        }
    }
}
