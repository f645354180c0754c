// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tails: a file's last bytes move into a leaf at close, and out of it when
//! the file grows (fs/reiserfs/{file,tail_conversion,stree,inode}.c, 2.6.26).

use super::Change;
use super::Volume;
use super::journal::Close;
use super::key::{Item, Key, MOST_POINTERS, POINTER_BYTES, tail_item_bytes};
use super::operations::BALANCE_BLOCKS;
use crate::mount::{Mount, View};
use blklab_pagecache::{FileId, FsError, Host};
use blklab_types::PAGE_BYTES;

impl View<'_, Volume> {
    /// The bytes of a file's last block that are to go into a leaf.
    fn reiser_tail_to_pack(&mut self, id: FileId) -> Option<u64> {
        let (size, pages) = {
            let file = &self.files[id.idx()];
            (file.size_bytes, file.extents.pages())
        };
        let v = &mut *self.volume;
        let tail = v.options.tails.tail_bytes(size)?;
        let inode = v.inode(id);
        let block = inode.tail_bytes == 0 && pages == size / PAGE_BYTES + 1;
        (inode.pack && block).then_some(tail)
    }

    /// The page of a tail that a mapping has made dirty.
    fn reiser_dirty_tail(&mut self, id: FileId) -> Option<u64> {
        let file = &self.files[id.idx()];
        let page = file.extents.pages();
        let dirty = file.on_volume && file.dirty.test(page);
        (dirty && self.volume.inode(id).tail_bytes > 0).then_some(page)
    }

    /// The page's bytes are in a leaf now: its buffer is nobody's business.
    fn reiser_drop_buffer(&mut self, id: FileId, page: u64) {
        let run = page..page + 1;
        let file = &mut self.state.files[id.idx()];
        file.buffers.dirty.clear(run.clone());
        self.state.nr_dirty -= file.dirty.clear(run.clone());
        file.towrite.clear(run);
    }
}

impl<H: Host> Mount<'_, H, Volume> {
    /// A file is closed: gives back what is set aside for it, and moves the
    /// tail into the tree (`reiserfs_file_release`).
    pub(super) async fn reiser_release(&self, id: FileId) {
        let (set_aside, tail) = self.with(|s| {
            let tail = s.reiser_tail_to_pack(id);
            let inode = s.volume.inode(id);
            (inode.preallocated.1 > 0, tail)
        });
        if !set_aside && tail.is_none() {
            return;
        }
        if set_aside {
            let handle = self.reiser_begin(2 * BALANCE_BLOCKS + 2).await;
            if let Some(bitmap) = self.reiser_with(|v| v.release_preallocated(id)) {
                self.reiser_log_block(bitmap).await;
                self.reiser_log_block(super::SUPERBLOCK).await;
            }
            self.reiser_close(handle, Close::Batch).await;
        }
        if tail.is_none() {
            return;
        }
        self.lock_inode(id).await;
        if let Some(tail) = self.with(|s| s.reiser_tail_to_pack(id)) {
            let page = self.with(|s| s.files[id.idx()].extents.pages()) - 1;
            self.wait_unlocked(id, page).await;
            // A page that cannot be read, or a full volume: the block stays.
            if self.read_page(id, page).await
                && let Ok(handle) = self.reiser_begin_growing(2 * BALANCE_BLOCKS + 1).await
            {
                let _ = self.reiser_pack(id, page, tail).await;
                self.reiser_close(handle, Close::Batch).await;
            }
        }
        self.unlock_inode(id);
    }

    /// Moves a page's bytes into a leaf (`indirect2direct`): first they are
    /// put in, then the pointer goes and the block with it.
    async fn reiser_pack(&self, id: FileId, page: u64, tail: u64) -> Result<(), FsError> {
        let object = self.reiser_with(|v| v.object(id));
        let item = Item::new(Key::tail(object, page), tail_item_bytes(tail));
        self.reiser_change(Change::Put(item)).await?;
        self.wait_buffer(id, page).await;
        let block = self.with(|s| {
            let sector = s.files[id.idx()]
                .extents
                .map(page)
                .map(|(sector, _)| sector);
            s.files[id.idx()].extents.cut(page);
            s.reiser_drop_buffer(id, page);
            let v = &mut *s.volume;
            v.inode(id).tail_bytes = tail as u16;
            v.inode(id).pack = false;
            sector.map(|sector| v.space.block(sector))
        });
        let first = page / MOST_POINTERS * MOST_POINTERS;
        let key = Key::pointers(object, first);
        let change = match (page - first) as u32 {
            0 => Change::Remove(key),
            left => Change::Put(Item::new(key, left * POINTER_BYTES)),
        };
        self.reiser_change(change).await?;
        if let Some(block) = block {
            self.reiser_free_blocks(block..block + 1).await?;
        }
        self.reiser_touch(id).await
    }

    /// Takes a file's tail out of its leaf, under a handle
    /// (`direct2indirect`). Returns its page, which has no place then and is
    /// not dirty.
    pub(super) async fn reiser_unpack(&self, id: FileId) -> Result<Option<u64>, FsError> {
        let (object, tail) = self.reiser_with(|v| {
            let inode = v.inode(id);
            (inode.object, inode.tail_bytes)
        });
        if tail == 0 {
            return Ok(None);
        }
        let page = self.with(|s| s.files[id.idx()].extents.pages());
        self.reiser_fill_tail(id, page).await?;
        self.reiser_change(Change::Remove(Key::tail(object, page)))
            .await?;
        self.reiser_with(|v| v.inode(id).tail_bytes = 0);
        Ok(Some(page))
    }

    /// A mapping may have changed a tail: its bytes go back into the leaf
    /// (`map_block_for_writepage`).
    pub(super) async fn reiser_write_tail(&self, id: FileId) {
        if self.with(|s| s.reiser_dirty_tail(id)).is_none() {
            return;
        }
        let handle = self.reiser_begin(BALANCE_BLOCKS).await;
        if let Some(page) = self.with(|s| s.reiser_dirty_tail(id)) {
            let key = Key::tail(self.reiser_with(|v| v.object(id)), page);
            // A leaf that cannot be read keeps the old bytes.
            let found = self.reiser_ready(|t, out| t.path(key, out)).await;
            if self.with(|s| s.reiser_dirty_tail(id)) == Some(page) {
                self.with(|s| s.reiser_drop_buffer(id, page));
                if found.is_ok() {
                    let leaf = self.reiser_with(|v| v.tree.leaf_block(key));
                    self.reiser_log_block(leaf).await;
                }
            }
        }
        self.reiser_close(handle, Close::Batch).await;
    }

    /// The mapping of a page is needed: the leaf with its pointer, or its
    /// bytes.
    pub(super) async fn reiser_load_mapping(&self, id: FileId, page: u64) {
        let (pages, cached) = self.with(|s| {
            let file = &s.files[id.idx()];
            (file.extents.pages(), file.uptodate.test(page))
        });
        if cached {
            return;
        }
        let (object, tail) = self.reiser_with(|v| {
            let inode = v.inode(id);
            (inode.object, inode.tail_bytes)
        });
        if page < pages {
            let key = Key::pointers(object, page / MOST_POINTERS * MOST_POINTERS);
            // What cannot be read is found again by who needs the page.
            let _ = self.reiser_ready(|t, out| t.path(key, out)).await;
        } else if page == pages && tail > 0 {
            let _ = self.reiser_fill_tail(id, page).await;
        }
    }

    /// Copies a tail from its leaf into its page.
    async fn reiser_fill_tail(&self, id: FileId, page: u64) -> Result<(), FsError> {
        let key = Key::tail(self.reiser_with(|v| v.object(id)), page);
        self.reiser_ready(|t, out| t.path(key, out)).await?;
        if self.with(|s| s.files[id.idx()].uptodate.test(page)) {
            return Ok(());
        }
        self.make_room(1).await;
        self.with(|s| {
            let run = page..page + 1;
            let file = &mut s.files[id.idx()];
            let new = file.cached.set(run.clone());
            file.uptodate.set(run.clone());
            s.nr_cached += new;
            if new > 0 {
                s.lru.add(id, run);
            }
        });
        Ok(())
    }
}
