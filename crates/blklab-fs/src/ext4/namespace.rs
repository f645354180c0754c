// SPDX-License-Identifier: MIT OR Apache-2.0
//! What calls on names read and change (fs/ext4/{namei,ialloc,dir}.c; 2.6.28,
//! 2.6.32, 4.19).
//!
//! A directory's blocks are metadata. An inode whose last name goes joins the
//! list of orphans, which begins in the superblock, until its blocks are freed.

use super::layout::GROUP_BLOCKS;
use super::names::HashedDirectory;
use super::{Ext4, HAS_INODE, Inode};
use crate::jbd::DataMode;
use crate::mount::{Mount, View};
use blklab_pagecache::{Extents, FileId, FsError, Host};
use std::ops::Range;

/// Credits of a handle that changes names.
const NAME_CREDITS: u64 = 24;
/// The block of the superblock.
pub(super) const SUPERBLOCK: u64 = 0;

impl Ext4 {
    /// The blocks of the inode table that are read with an inode's
    /// (`__ext4_get_inode_loc`): an aligned piece, as far as inodes are in use.
    pub(super) fn table_readahead(&self, inode: &Inode) -> Range<u64> {
        let blocks = self.options.inode_readahead_blocks;
        if blocks == 0 {
            return inode.block..inode.block + 1;
        }
        let table = self.geometry.inode_table(inode.group);
        let first = (inode.block & !(blocks - 1)).max(table.start);
        let used = self.inodes[inode.group as usize].end();
        let last = match used.checked_sub(1) {
            Some(last) => self.geometry.inode_block(inode.group, last),
            None => inode.block,
        };
        first..(first + blocks).min(last + 1).max(inode.block + 1)
    }

    /// A long run of blocks for a file that is laid out before the run.
    pub(super) fn lay_out_run(
        &mut self,
        inode: &Inode,
        extents: &Extents,
        pages: u64,
    ) -> Option<(u64, u64)> {
        let goal = match extents.end_before(u64::MAX) {
            Some((_, sector)) => self.geometry.block(sector),
            None => {
                let first = inode.group / super::layout::FLEX_GROUPS * super::layout::FLEX_GROUPS;
                (first + 1) * GROUP_BLOCKS
            }
        };
        let most = u32::try_from(pages.min(GROUP_BLOCKS)).unwrap_or(1);
        let (block, n) = self.space.take_run(&self.geometry, goal, most)?;
        self.free_blocks -= u64::from(n);
        Some((block, u64::from(n)))
    }
}

impl View<'_, Ext4> {
    /// The root directory.
    pub(crate) fn ext4_new_root(&mut self) {
        let root = self.root;
        let device = self.metadata_file();
        let ext4 = &mut *self.volume;
        let mut inode = Inode {
            index: 1,
            block: ext4.geometry.inode_block(0, 1),
            ..Inode::default()
        };
        let mut extents = Extents::default();
        if let Some(block) = ext4.take_meta(&inode, &extents) {
            extents.insert(0, ext4.geometry.sector(block), 1);
            inode.names = Some(Box::new(HashedDirectory::new(block)));
            self.files[root.idx()].extents = extents;
            self.cache_block((device, block));
            let [_, descriptor] = self.ext4_group_blocks(block);
            self.cache_block((device, descriptor));
        }
        self.cache_block((device, SUPERBLOCK));
        self.cache_block((device, inode.block));
        self.volume.nodes[root] = Some(Box::new(inode));
    }

    /// Gives a file its inode, in memory (later `__ext4_new_inode`). Returns the
    /// metadata blocks that this changes; whether the inode's own block has to be
    /// read first.
    pub(super) fn ext4_new_inode(
        &mut self,
        parent: FileId,
        id: FileId,
        hash: u32,
    ) -> Option<([u64; 3], bool)> {
        let top = parent == self.root;
        let directory = self.files[id.idx()].directory.is_some();
        let mut above = self.volume.nodes[parent].take().expect(HAS_INODE);
        let new = self.volume.new_inode(&mut above, top, directory, hash);
        self.volume.nodes[parent] = Some(above);
        let mut inode = new?;
        let ext4 = &*self.volume;
        let g = &ext4.geometry;
        let (group, block) = (inode.group, inode.block);
        let (bitmap, descriptor) = (g.inode_bitmap(group), g.descriptor(group));
        let old = ext4.has_neighbours(&inode);
        let journalled = ext4.options.data == DataMode::Journal && !directory;
        inode.data_journal = journalled;
        self.volume.nodes[id] = Some(Box::new(inode));
        self.files[id.idx()].buffers.present = journalled;
        self.ext4_new_bitmap(bitmap, group, true);
        if !old {
            let device = self.metadata_file();
            self.cache_block((device, block));
        }
        Some(([bitmap, descriptor, block], old))
    }

    /// Puts a name into its directory (`ext4_add_entry`). Returns the blocks that
    /// this changes.
    fn ext4_add_name(&mut self, directory: FileId, id: FileId) -> Option<Vec<u64>> {
        let name = self.files[id.idx()].name;
        let (file, ext4) = (&mut self.state.files[directory.idx()], &mut *self.volume);
        let mut inode = ext4.nodes[directory].take().expect(HAS_INODE);
        let mut new = Vec::new();
        let growth = inode.names().growth(name.hash, name.bytes);
        for _ in 0..growth {
            let Some(block) = ext4.take_meta(&inode, &file.extents) else {
                break;
            };
            let page = file.extents.pages();
            file.extents.insert(page, ext4.geometry.sector(block), 1);
            new.push(block);
        }
        let tree = ext4.grow_tree(&mut inode, &file.extents);
        let full = new.len() < growth || tree.is_none();
        let changed = (!full).then(|| inode.names().add(name.hash, name.bytes, &new));
        let own = inode.block;
        ext4.nodes[directory] = Some(inode);
        let (mut changed, tree) = (changed?, tree?);
        changed.push(own);
        for block in new.iter().chain(&tree) {
            changed.extend(self.ext4_group_blocks(*block));
        }
        changed.extend(tree);
        Some(changed)
    }

    /// The first block of a new directory (`ext4_mkdir`). Returns the blocks that
    /// this changes.
    fn ext4_new_directory(&mut self, id: FileId) -> Option<Vec<u64>> {
        let (file, ext4) = (&mut self.state.files[id.idx()], &mut *self.volume);
        let mut inode = ext4.nodes[id].take().expect(HAS_INODE);
        let block = ext4.take_meta(&inode, &file.extents);
        if let Some(block) = block {
            file.extents.insert(0, ext4.geometry.sector(block), 1);
            inode.names = Some(Box::new(HashedDirectory::new(block)));
        }
        ext4.nodes[id] = Some(inode);
        let block = block?;
        let mut changed = vec![block];
        changed.extend(self.ext4_group_blocks(block));
        Some(changed)
    }

    /// A new directory gets its first block, and a new inode its name. Returns the
    /// blocks that this changes; None if the volume is full.
    fn ext4_enter(&mut self, parent: FileId, id: FileId, directory: bool) -> Option<Vec<u64>> {
        let mut changed = Vec::new();
        if directory {
            changed.extend(self.ext4_new_directory(id)?);
        }
        changed.extend(self.ext4_add_name(parent, id)?);
        Some(changed)
    }

    /// Whether a block is one that is read before it is changed, and not in
    /// memory: everything but blocks that are new.
    pub(super) fn ext4_is_cold_bitmap(&self, block: u64) -> bool {
        let (ext4, device) = (&*self.volume, self.metadata_file());
        let group = block / GROUP_BLOCKS;
        let cold = !self.files[device.idx()].uptodate.test(block);
        cold && ext4.geometry.is_bitmap(block) && group < ext4.geometry.groups()
    }
}

impl<H: Host> Mount<'_, H, Ext4> {
    /// `create` and `mkdir`.
    pub(super) async fn ext4_create(&self, directory: FileId, id: FileId) -> Result<(), FsError> {
        let hash = self.with(|s| s.file(id).name.hash);
        self.ext4_read_path(directory, hash).await?;
        let is_directory = self.with(|s| s.file(id).directory.is_some());
        let handle = self.journal_start(NAME_CREDITS).await;
        let made = self.ext4_make(directory, id, is_directory).await;
        self.journal_stop(handle);
        made
    }

    async fn ext4_make(&self, parent: FileId, id: FileId, directory: bool) -> Result<(), FsError> {
        let hash = self.with(|s| s.file(id).name.hash);
        let inode = self.with(|s| s.ext4_new_inode(parent, id, hash));
        let (blocks, old) = inode.ok_or(FsError::NoSpace)?;
        self.ext4_read_old(blocks[0]).await;
        if old {
            self.ext4_read_inode(id).await?;
        }
        self.ext4_change(blocks).await;
        let Some(changed) = self.with(|s| s.ext4_enter(parent, id, directory)) else {
            self.ext4_unmake(id, directory).await;
            return Err(FsError::NoSpace);
        };
        self.ext4_change_old(changed).await;
        let now = self.ext4_time();
        self.with(|s| {
            for id in [parent, id] {
                s.ext4_stamp(id, true);
                s.ext4_inode(id).mtime = now;
            }
        });
        Ok(())
    }

    /// There was no block for the name or the directory: gives the inode back.
    async fn ext4_unmake(&self, id: FileId, directory: bool) {
        let changed = self.with(|s| {
            let changed = s.ext4_free_blocks(id);
            s.ext4_drop_inode(id, directory);
            changed
        });
        self.ext4_change_old(changed).await;
    }

    /// Changes blocks; bitmaps are read before.
    pub(super) async fn ext4_change_old(&self, blocks: Vec<u64>) {
        for block in blocks {
            self.ext4_read_old(block).await;
            self.ext4_change([block]).await;
        }
    }

    /// Reads the blocks of a directory on the way to a name (`ext4_find_entry`).
    async fn ext4_read_path(&self, directory: FileId, hash: u32) -> Result<(), FsError> {
        let path = self.with(|s| s.ext4_inode(directory).names().path(hash));
        for block in path {
            self.ext4_read(block).await?;
        }
        Ok(())
    }

    /// Reads what leads to a file's inode, and that (`ext4_lookup`).
    pub(super) async fn ext4_look_up(&self, directory: FileId, id: FileId) -> Result<(), FsError> {
        let hash = self.with(|s| s.file(id).name.hash);
        self.ext4_read_path(directory, hash).await?;
        self.ext4_read_inode(id).await
    }

    /// Reads a directory, block by block in order of hash (`ext4_readdir`).
    pub(super) async fn ext4_list(&self, directory: FileId) -> Result<(), FsError> {
        let blocks = self.with(|s| s.ext4_inode(directory).names().blocks());
        for block in blocks {
            self.ext4_read(block).await?;
        }
        Ok(())
    }

    /// `unlink` and `rmdir`: the entry goes (`ext4_delete_entry`), the inode
    /// becomes an orphan (`ext4_orphan_add`).
    pub(super) async fn ext4_remove_entry(
        &self,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        let name = self.with(|s| s.file(id).name);
        self.ext4_read_path(directory, name.hash).await?;
        self.ext4_read_inode(id).await?;
        let handle = self.journal_start(NAME_CREDITS).await;
        let changed = self.with(|s| {
            let parent = s.ext4_inode(directory);
            let leaf = parent.names().remove(name.hash, name.bytes);
            let blocks = [parent.block, SUPERBLOCK, s.ext4_inode(id).block];
            leaf.into_iter().chain(blocks)
        });
        self.ext4_change(changed).await;
        let now = self.ext4_time();
        self.with(|s| {
            s.ext4_stamp(directory, true);
            s.ext4_inode(directory).mtime = now;
        });
        self.journal_stop(handle);
        Ok(())
    }
}
