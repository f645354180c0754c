// SPDX-License-Identifier: MIT OR Apache-2.0
//! What calls on names read and change (fs/ext4/{namei,ialloc,dir}.c; 2.6.28,
//! 2.6.32, 4.19).
//!
//! A directory's blocks are metadata. An inode whose last name goes joins the
//! list of orphans, which begins in the superblock, until its blocks are freed.

use super::layout::GROUP_BLOCKS;
use super::names::HashedDirectory;
use super::{Ext4, Inode};
use crate::cache::{FsError, PageCache};
use crate::ext3::DataMode;
use crate::file::FileId;
use crate::host::Host;
use crate::layout::Extents;
use crate::state::State;
use std::ops::Range;

/// Credits of a handle that changes names.
const NAME_CREDITS: u64 = 24;
/// Credits of a handle that frees a file's blocks, beside those of its groups.
const FREE_CREDITS: u64 = 12;
/// The block of the superblock.
const SUPERBLOCK: u64 = 0;

impl Ext4 {
    /// The blocks of the inode table that are read with an inode's: an aligned
    /// piece, as far as inodes are in use.
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

    /// Blocks of a file that goes: nobody takes them before the transaction is
    /// committed.
    fn free_run(&mut self, blocks: Range<u64>) {
        self.free_blocks += blocks.end - blocks.start;
        match self.journal.running.as_mut() {
            Some(t) => t.freed.push(blocks),
            None => self.release(blocks),
        }
    }

    /// Blocks can be taken again.
    pub(crate) fn release(&mut self, blocks: Range<u64>) {
        let nr = blocks.end - blocks.start;
        self.space.give(&self.geometry, blocks.start, nr);
    }
}

impl State {
    /// The root directory.
    pub(crate) fn ext4_new_root(&mut self) {
        let root = self.root;
        let (Some(ext4), Some(device)) = (self.ext4.as_mut(), self.device) else {
            return;
        };
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
            self.ext_cached((device, block));
            if let Some(blocks) = self.ext4_group_blocks(block) {
                self.ext_cached((device, blocks[1]));
            }
        }
        self.ext_cached((device, SUPERBLOCK));
        self.ext_cached((device, inode.block));
        self.files[root.idx()].ext4 = Some(Box::new(inode));
    }

    /// Gives a file its inode, in memory. Returns the metadata blocks that this
    /// changes; whether the inode's own block has to be read first.
    pub(super) fn ext4_new_inode(
        &mut self,
        parent: FileId,
        id: FileId,
        hash: u32,
    ) -> Option<([u64; 3], bool)> {
        let top = parent == self.root;
        let directory = self.files[id.idx()].directory.is_some();
        let mut above = self.files[parent.idx()].ext4.take()?;
        let new = self
            .ext4
            .as_mut()
            .and_then(|e| e.new_inode(&mut above, top, directory, hash));
        self.files[parent.idx()].ext4 = Some(above);
        let inode = new?;
        let ext4 = self.ext4.as_ref()?;
        let g = &ext4.geometry;
        let (group, block) = (inode.group, inode.block);
        let (bitmap, descriptor) = (g.inode_bitmap(group), g.descriptor(group));
        let old = ext4.has_neighbours(&inode);
        let journalled = ext4.options.data == DataMode::Journal && !directory;
        let file = &mut self.files[id.idx()];
        file.ext4 = Some(Box::new(inode));
        file.ext.buffers = journalled;
        file.ext.data_journal = journalled;
        self.ext4_new_bitmap(bitmap, group, true);
        if !old {
            let device = self.device?;
            self.ext_cached((device, block));
        }
        Some(([bitmap, descriptor, block], old))
    }

    /// Puts a name into its directory. Returns the blocks that this changes.
    fn ext4_add_name(&mut self, directory: FileId, id: FileId) -> Option<Vec<u64>> {
        let name = self.files[id.idx()].name;
        let State { files, ext4, .. } = &mut *self;
        let (file, ext4) = (&mut files[directory.idx()], ext4.as_mut()?);
        let mut inode = file.ext4.take()?;
        let mut new = Vec::new();
        let growth = inode
            .names
            .as_ref()
            .map_or(0, |n| n.growth(name.hash, name.bytes));
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
        let mut changed = match inode.names.as_mut() {
            Some(names) if !full => names.add(name.hash, name.bytes, &new),
            _ => Vec::new(),
        };
        changed.push(inode.block);
        file.ext4 = Some(inode);
        if full {
            return None;
        }
        let tree = tree.unwrap_or_default();
        for block in new.iter().chain(&tree) {
            changed.extend(self.ext4_group_blocks(*block)?);
        }
        changed.extend(tree);
        Some(changed)
    }

    /// The first block of a new directory. Returns the blocks that this
    /// changes.
    fn ext4_new_directory(&mut self, id: FileId) -> Option<Vec<u64>> {
        let State { files, ext4, .. } = &mut *self;
        let (file, ext4) = (&mut files[id.idx()], ext4.as_mut()?);
        let mut inode = file.ext4.take()?;
        let block = ext4.take_meta(&inode, &file.extents);
        if let Some(block) = block {
            file.extents.insert(0, ext4.geometry.sector(block), 1);
            inode.names = Some(Box::new(HashedDirectory::new(block)));
        }
        file.ext4 = Some(inode);
        let block = block?;
        let mut changed = vec![block];
        changed.extend(self.ext4_group_blocks(block)?);
        Some(changed)
    }

    /// Whether a block is one that is read before it is changed, and not in
    /// memory: everything but blocks that are new.
    pub(super) fn ext4_is_cold_bitmap(&self, block: u64) -> bool {
        let Some((ext4, device)) = self.ext4.as_ref().zip(self.device) else {
            return false;
        };
        let group = block / GROUP_BLOCKS;
        let cold = !self.files[device.idx()].uptodate.test(block);
        cold && ext4.geometry.is_bitmap(block) && group < ext4.geometry.groups()
    }

    /// Metadata blocks are no longer: the journal forgets them, and a recovery
    /// must not write them.
    fn ext4_forget(&mut self, blocks: &[u64]) {
        let Some(device) = self.device else {
            return;
        };
        for block in blocks {
            self.forget((device, *block));
        }
        if let Some(t) = self.journal().running.as_mut() {
            t.nr_revoked += blocks.len() as u64;
        }
    }

    /// Takes a file's blocks away. Returns the metadata blocks that this
    /// changes.
    fn ext4_free_blocks(&mut self, id: FileId) -> Vec<u64> {
        let State { files, ext4, .. } = &mut *self;
        let file = &mut files[id.idx()];
        let (Some(ext4), Some(inode)) = (ext4.as_mut(), file.ext4.as_mut()) else {
            return Vec::new();
        };
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
        self.ext4_forget(&metadata);
        let mut changed = vec![own];
        for block in first_blocks {
            changed.extend(self.ext4_group_blocks(block).into_iter().flatten());
        }
        changed.sort_unstable();
        changed.dedup();
        changed
    }
}

impl<H: Host> PageCache<H> {
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
        let mut changed = Vec::new();
        if directory {
            let new = self.with(|s| s.ext4_new_directory(id));
            changed.extend(new.ok_or(FsError::NoSpace)?);
        }
        let named = self.with(|s| s.ext4_add_name(parent, id));
        let Some(named) = named else {
            self.ext4_unmake(id, directory).await;
            return Err(FsError::NoSpace);
        };
        changed.extend(named);
        self.ext4_change_old(changed).await;
        let now = self.ext4_time();
        self.with(|s| {
            for id in [parent, id] {
                s.ext4_stamp(id, true);
                if let Some(inode) = s.ext4_inode(id) {
                    inode.mtime = now;
                }
            }
        });
        Ok(())
    }

    /// There was no block for the name: gives the inode back.
    async fn ext4_unmake(&self, id: FileId, directory: bool) {
        let changed = self.with(|s| {
            let changed = s.ext4_free_blocks(id);
            s.ext4_drop_inode(id, directory);
            changed
        });
        self.ext4_change_old(changed).await;
    }

    /// Changes blocks; bitmaps are read before.
    async fn ext4_change_old(&self, blocks: Vec<u64>) {
        for block in blocks {
            self.ext4_read_old(block).await;
            self.ext4_change([block]).await;
        }
    }

    /// Reads the blocks of a directory on the way to a name.
    async fn ext4_read_path(&self, directory: FileId, hash: u32) -> Result<(), FsError> {
        let path = self.with(|s| {
            let names = s.ext4_inode(directory).and_then(|i| i.names.as_ref());
            names.map_or(Vec::new(), |n| n.path(hash))
        });
        for block in path {
            self.ext4_read(block).await?;
        }
        Ok(())
    }

    /// Reads what leads to a file's inode, and that.
    pub(super) async fn ext4_look_up(&self, directory: FileId, id: FileId) -> Result<(), FsError> {
        let hash = self.with(|s| s.file(id).name.hash);
        self.ext4_read_path(directory, hash).await?;
        self.ext4_read_inode(id).await
    }

    /// Reads a directory, block by block in order of hash.
    pub(super) async fn ext4_list(&self, directory: FileId) -> Result<(), FsError> {
        let blocks = self.with(|s| {
            let names = s.ext4_inode(directory).and_then(|i| i.names.as_ref());
            names.map_or(Vec::new(), |n| n.blocks())
        });
        for block in blocks {
            self.ext4_read(block).await?;
        }
        Ok(())
    }

    /// `unlink` and `rmdir`: the entry goes, the inode becomes an orphan.
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
            let mut changed: Vec<u64> = parent.map_or(Vec::new(), |inode| {
                let names = inode.names.as_mut();
                let leaf = names.and_then(|n| n.remove(name.hash, name.bytes));
                leaf.into_iter().chain([inode.block]).collect()
            });
            changed.push(SUPERBLOCK);
            changed.extend(s.ext4_inode(id).map(|i| i.block));
            changed
        });
        self.ext4_change(changed).await;
        let now = self.ext4_time();
        self.with(|s| {
            s.ext4_stamp(directory, true);
            if let Some(inode) = s.ext4_inode(directory) {
                inode.mtime = now;
            }
        });
        self.journal_stop(handle);
        Ok(())
    }

    /// The blocks of a file go, and then its inode.
    pub(super) async fn ext4_remove_inode(&self, id: FileId) -> Result<(), FsError> {
        self.ext4_load_tree(id).await?;
        let handle = self.journal_start(self.ext4_free_credits(id)).await;
        let changed = self.with(|s| {
            let mut changed = s.ext4_free_blocks(id);
            let directory = s.file(id).directory.is_some();
            changed.extend(s.ext4_drop_inode(id, directory).into_iter().flatten());
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
            let o = s.ext4.as_ref().map(|e| e.options);
            let flushes = o.is_some_and(|o| o.auto_da_alloc && o.features.allocates_on_close);
            s.ext4_stamp(id, true);
            if let Some(inode) = s.ext4_inode(id) {
                inode.mtime = now;
                inode.allocate_on_close = flushes;
            }
        });
        self.journal_stop(handle);
        Ok(())
    }

    /// Reads a file's extent tree.
    async fn ext4_load_tree(&self, id: FileId) -> Result<(), FsError> {
        let tree = self.with(|s| {
            s.ext4_inode(id)
                .map_or(Vec::new(), |i| [i.nodes.clone(), i.leaves.clone()].concat())
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

impl State {
    /// Frees an inode. Returns the blocks that this changes.
    fn ext4_drop_inode(&mut self, id: FileId, directory: bool) -> Option<[u64; 3]> {
        let inode = self.files[id.idx()].ext4.take()?;
        let ext4 = self.ext4.as_mut()?;
        ext4.free_inode(&inode, directory);
        let g = &ext4.geometry;
        Some([
            g.inode_bitmap(inode.group),
            g.descriptor(inode.group),
            inode.block,
        ])
    }
}
