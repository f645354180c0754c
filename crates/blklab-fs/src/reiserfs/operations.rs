// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changing the tree under a handle, and what writing, cutting and syncing a
//! file cost (fs/reiserfs/{inode,file,stree}.c, 2.6.26).
//!
//! Whatever changes the tree first brings the nodes on the way into memory,
//! one after another from the root on, and the neighbours that it would use.
//! The kernel opens a handle per page; here pages that are copied together
//! share one.

use super::journal::{Close, Handle};
use super::key::{Item, Key, MOST_POINTERS, Object, POINTER_BYTES, SAVE_LINK_BYTES};
use super::space::Space;
use super::tree::{MOST_NEW_NODES, Tree};
use super::{Change, NODE_RESERVE, Volume};
use crate::jbd::DataMode;
use crate::mount::{Mount, View};
use blklab_pagecache::{Extents, FileId, FsError, Host};
use std::ops::Range;

/// Blocks that balancing the tree once may change (`JOURNAL_PER_BALANCE_CNT`).
pub(super) const BALANCE_BLOCKS: u64 = 18;

/// The items of pointers of a file after it got so many pages: those that are
/// new or longer. Items are full but for the last.
pub(super) fn pointer_items(object: Object, pages: Range<u64>) -> impl Iterator<Item = Item> {
    let items = pages.start / MOST_POINTERS..pages.end.div_ceil(MOST_POINTERS);
    items.map(move |nth| {
        let first = nth * MOST_POINTERS;
        let count = (pages.end - first).min(MOST_POINTERS) as u32;
        Item::new(Key::pointers(object, first), count * POINTER_BYTES)
    })
}

impl View<'_, Volume> {
    /// The first node of a list that is not in memory.
    fn reiser_cold(&self, device: FileId, nodes: &[u64]) -> Option<u64> {
        let uptodate = &self.files[device.idx()].uptodate;
        nodes.iter().copied().find(|b| !uptodate.test(*b))
    }
}

impl<H: Host> Mount<'_, H, Volume> {
    pub(super) fn reiser_with<R>(&self, f: impl FnOnce(&mut Volume) -> R) -> R {
        self.with(|s| f(s.volume))
    }

    /// Reads a metadata block if it is cold.
    pub(super) async fn reiser_read(&self, block: u64) -> Result<(), FsError> {
        let device = self.reiser_with(|v| v.device);
        if self.read_page(device, block).await {
            Ok(())
        } else {
            Err(FsError::Io)
        }
    }

    /// Brings the nodes that `list` names into memory, in its order
    /// (`search_by_key`); asks again after each read.
    pub(super) async fn reiser_ready(
        &self,
        list: impl Fn(&Tree, &mut Vec<u64>),
    ) -> Result<(), FsError> {
        loop {
            let cold = self.with(|s| {
                let v = &mut *s.volume;
                let mut nodes = std::mem::take(&mut v.scratch);
                nodes.clear();
                list(&v.tree, &mut nodes);
                let device = v.device;
                let cold = s.reiser_cold(device, &nodes);
                s.volume.scratch = nodes;
                cold
            });
            match cold {
                Some(block) => self.reiser_read(block).await?,
                None => return Ok(()),
            }
        }
    }

    /// Adds a block to the running transaction. One that is on its way to its
    /// place is waited for (`reiserfs_prepare_for_journal`).
    pub(super) async fn reiser_log_block(&self, block: u64) {
        let (device, there) = self.reiser_with(|v| {
            let running = v.journal.running.tid;
            (v.device, v.journal.newest.get(&block) == Some(&running))
        });
        if !there {
            self.wait_buffer(device, block).await;
            self.with(|s| s.reiser_log(block));
        }
    }

    /// A block was taken or given back: bitmap and superblock say so.
    pub(super) async fn reiser_log_bitmap(&self, bitmap: u64) -> Result<(), FsError> {
        self.reiser_read(bitmap).await?;
        self.reiser_log_block(bitmap).await;
        self.reiser_log_block(super::SUPERBLOCK).await;
        Ok(())
    }

    /// Changes the tree, under a handle (`fix_nodes`, `do_balance`).
    pub(super) async fn reiser_change(&self, change: Change) -> Result<(), FsError> {
        let key = change.key();
        match change {
            Change::Put(item) => {
                let more = u32::from(item.bytes) + 24;
                self.reiser_ready(|t, out| t.needed_to_grow(key, more, out))
                    .await?;
                let full = self.reiser_with(|v| {
                    let grows = v.tree.bytes(key) < Some(u32::from(item.bytes));
                    grows && v.space.free() < MOST_NEW_NODES
                });
                if full {
                    return Err(FsError::NoSpace);
                }
            }
            Change::Remove(_) => {
                self.reiser_ready(|t, out| {
                    let fewer = t.bytes(key).map_or(0, |b| b + 24);
                    t.needed_to_shrink(key, fewer, out);
                })
                .await?;
            }
        }
        let changes = self.with(|s| {
            let changes = s.volume.change(change);
            for block in &changes.freed {
                s.reiser_forget(*block);
            }
            let device = s.volume.device;
            for block in &changes.new {
                s.reiser_cached(device, *block);
            }
            changes
        });
        for block in &changes.touched {
            self.reiser_log_block(*block).await;
        }
        for block in changes.new.iter().chain(&changes.freed) {
            self.reiser_log_bitmap(Space::bitmap(*block)).await?;
        }
        Ok(())
    }

    /// Changes an object's stat data (`reiserfs_update_sd`), under a handle.
    pub(super) async fn reiser_touch(&self, id: FileId) -> Result<(), FsError> {
        let key = Key::stat(self.reiser_with(|v| v.object(id)));
        self.reiser_ready(|t, out| t.path(key, out)).await?;
        let leaf = self.reiser_with(|v| {
            v.inode(id).tid = v.journal.running.tid;
            v.tree.leaf_block(key)
        });
        self.reiser_log_block(leaf).await;
        Ok(())
    }

    /// Gives blocks of a file back, under a handle (`reiserfs_free_block`): no page
    /// gets them before the commit.
    pub(super) async fn reiser_free_blocks(&self, run: Range<u64>) -> Result<(), FsError> {
        let mut at = run.start;
        while at < run.end {
            let group_end = (at / super::space::GROUP_BLOCKS + 1) * super::space::GROUP_BLOCKS;
            let end = run.end.min(group_end);
            self.reiser_log_bitmap(Space::bitmap(at)).await?;
            self.reiser_with(|v| {
                v.space.free_blocks(at..end, true);
                v.journal.running.frozen.push(at..end);
            });
            at = end;
        }
        Ok(())
    }

    /// Gives back what is set aside for files, as a transaction ends
    /// (`reiserfs_discard_all_prealloc`).
    pub(super) async fn reiser_discard_all(&self) {
        while let Some(bitmap) = self.reiser_with(|v| {
            let id = *v.journal.preallocated.last()?;
            let bitmap = v.release_preallocated(id);
            v.journal.preallocated.retain(|f| *f != id);
            bitmap
        }) {
            // The bitmap was changed when they were taken: it is in memory,
            // and most often in the transaction.
            self.reiser_log_block(bitmap).await;
            self.reiser_log_block(super::SUPERBLOCK).await;
        }
    }

    // Writing ----------------------------------------------------------------

    /// Pages have been copied: gives new ones blocks, makes all dirty
    /// (`reiserfs_write_begin`, `reiserfs_write_end`).
    pub(super) async fn reiser_write(
        &self,
        id: FileId,
        run: Range<u64>,
        end: u64,
    ) -> Result<(), FsError> {
        let second = self.inode_second();
        let (new, grows) = self.with(|s| {
            let file = &s.files[id.idx()];
            let new = file.extents.pages() < run.end;
            let grows = end > file.size_bytes;
            let inode = s.volume.inode(id);
            inode.pack |= new;
            let stamped = std::mem::replace(&mut inode.mtime_s, second) == second;
            (new, grows || !stamped)
        });
        if new || grows {
            let from = self.with(|s| s.files[id.idx()].extents.pages());
            let new = new.then_some(from..run.end);
            let handle = self.reiser_begin(3 * BALANCE_BLOCKS + 1).await;
            let mut done = self.reiser_write_handle(id, new.clone()).await;
            if done == Err(FsError::NoSpace) {
                // After a commit what was freed can be used.
                self.reiser_close(handle, Close::Wait).await;
                let handle = self.reiser_begin(3 * BALANCE_BLOCKS + 1).await;
                done = self.reiser_write_handle(id, new).await;
                self.reiser_close(handle, Close::Batch).await;
            } else {
                self.reiser_close(handle, Close::Batch).await;
            }
            done?;
        }
        self.with(|s| s.files[id.idx()].buffers.dirty.set(run.clone()));
        self.set_dirty(id, run, end, false).await;
        Ok(())
    }

    async fn reiser_write_handle(
        &self,
        id: FileId,
        new: Option<Range<u64>>,
    ) -> Result<(), FsError> {
        if let Some(run) = new {
            self.reiser_add_pages(id, run.end).await?;
            self.with(|s| {
                let v = &mut *s.volume;
                if v.options.data == DataMode::Ordered {
                    let data = &mut v.journal.running.data;
                    match data.last_mut() {
                        Some((file, last)) if *file == id && last.end == run.start => {
                            last.end = run.end;
                        }
                        _ => data.push((id, run)),
                    }
                }
            });
        }
        self.reiser_touch(id).await
    }

    /// Gives a file blocks for its pages up to one, under a handle. A page that
    /// was a tail is dirty then: its bytes are nowhere else.
    async fn reiser_add_pages(&self, id: FileId, pages: u64) -> Result<(), FsError> {
        let unpacked = self.reiser_unpack(id).await?;
        self.reiser_allocate(id, pages).await?;
        let now = self.host.jiffies();
        self.with(|s| {
            if let Some(page) = unpacked {
                s.files[id.idx()].buffers.dirty.set(page..page + 1);
                s.dirty(id, page..page + 1, now);
            }
        });
        Ok(())
    }

    /// Gives a file blocks and pointers to them up to a page
    /// (`reiserfs_get_block`).
    async fn reiser_allocate(&self, id: FileId, pages: u64) -> Result<(), FsError> {
        let object = self.reiser_with(|v| v.object(id));
        loop {
            let from = self.with(|s| s.files[id.idx()].extents.pages());
            if from >= pages {
                return Ok(());
            }
            let run = self.with(|s| {
                let file = &mut s.state.files[id.idx()];
                s.volume.take_pages(id, file, pages - from)
            });
            let run = run.ok_or(FsError::NoSpace)?;
            self.reiser_log_bitmap(Space::bitmap(run.start)).await?;
            for item in pointer_items(object, from..from + run.end - run.start) {
                self.reiser_change(Change::Put(item)).await?;
            }
        }
    }

    /// The same for a direct write, which needs them now.
    pub(super) async fn reiser_place(&self, id: FileId, pages: u64) -> Result<(), FsError> {
        if self.with(|s| s.files[id.idx()].extents.pages()) >= pages {
            return Ok(());
        }
        let handle = self.reiser_begin(3 * BALANCE_BLOCKS + 1).await;
        let done = self.reiser_add_pages(id, pages).await;
        let touched = self.reiser_touch(id).await;
        self.reiser_close(handle, Close::Batch).await;
        done.and(touched)
    }

    /// A file or a directory has been read: its access time
    /// (`reiserfs_dirty_inode`).
    pub(super) async fn reiser_accessed(&self, id: FileId) {
        let second = self.inode_second();
        let stale = self.reiser_with(|v| {
            let rule = v.options.atime;
            let inode = v.inode(id);
            rule.touch(&mut inode.atime_s, inode.mtime_s, second)
        });
        if stale {
            let handle = self.reiser_begin(BALANCE_BLOCKS).await;
            // A leaf that cannot be read keeps the old time.
            let _ = self.reiser_touch(id).await;
            self.reiser_close(handle, Close::Batch).await;
        }
    }

    // Cutting ----------------------------------------------------------------

    /// Pages are dropped (`reiserfs_invalidatepage`): their buffers are not written
    /// any more, those on their way are waited for.
    pub(super) async fn reiser_invalidate(&self, id: FileId, run: Range<u64>) {
        self.with(|s| s.files[id.idx()].buffers.dirty.clear(run.clone()));
        self.wait_buffers(id, run).await;
    }

    /// Cuts a file to nothing (`reiserfs_truncate_file`).
    pub(super) async fn reiser_truncate(&self, id: FileId) -> Result<(), FsError> {
        self.reiser_remove_body(id).await?;
        let handle = self.reiser_begin(2 * BALANCE_BLOCKS + 1).await;
        let touched = self.reiser_touch(id).await;
        self.reiser_close(handle, Close::Batch).await;
        touched
    }

    /// Takes a file's tail and its blocks away, from the end
    /// (`reiserfs_do_truncate`); a handle per item.
    async fn reiser_remove_body(&self, id: FileId) -> Result<(), FsError> {
        let (object, tail) = self.reiser_with(|v| {
            let inode = v.inode(id);
            (inode.object, std::mem::take(&mut inode.tail_bytes))
        });
        let mut pages = self.with(|s| s.files[id.idx()].extents.pages());
        if tail > 0 {
            let handle = self.reiser_begin(2 * BALANCE_BLOCKS + 1).await;
            let key = Key::tail(object, pages);
            let done = self.reiser_change(Change::Remove(key)).await;
            self.reiser_close(handle, Close::Batch).await;
            done?;
        }
        while pages > 0 {
            let first = (pages - 1) / MOST_POINTERS * MOST_POINTERS;
            let handle = self.reiser_begin(2 * BALANCE_BLOCKS + 1).await;
            let done = self.reiser_remove_pages(id, object, first..pages).await;
            self.reiser_close(handle, Close::Batch).await;
            done?;
            pages = first;
        }
        Ok(())
    }

    async fn reiser_remove_pages(
        &self,
        id: FileId,
        object: Object,
        pages: Range<u64>,
    ) -> Result<(), FsError> {
        if let Some(bitmap) = self.reiser_with(|v| v.release_preallocated(id)) {
            self.reiser_log_bitmap(bitmap).await?;
        }
        let key = Key::pointers(object, pages.start);
        self.reiser_change(Change::Remove(key)).await?;
        let runs = self.with(|s| {
            let (v, extents) = (&*s.volume, &mut s.state.files[id.idx()].extents);
            let runs = blocks_of(v, extents, pages.clone());
            extents.cut(pages.start);
            runs
        });
        for run in runs {
            self.reiser_free_blocks(run).await?;
        }
        Ok(())
    }

    /// The inode of a removed file or directory goes (`reiserfs_delete_inode`).
    pub(super) async fn reiser_remove_inode(&self, id: FileId) -> Result<(), FsError> {
        self.reiser_remove_body(id).await?;
        let handle = self.reiser_begin(3 * BALANCE_BLOCKS + 1).await;
        let done = self.reiser_remove_stat(id).await;
        self.reiser_close(handle, Close::Batch).await;
        done
    }

    async fn reiser_remove_stat(&self, id: FileId) -> Result<(), FsError> {
        let object = self.reiser_with(|v| v.object(id));
        if self.with(|s| s.files[id.idx()].directory.is_some()) {
            self.reiser_change(Change::Remove(Key::dots(object)))
                .await?;
        }
        self.reiser_change(Change::Remove(Key::stat(object)))
            .await?;
        let link = Key::save_link(object.number);
        self.reiser_change(Change::Remove(link)).await?;
        self.reiser_with(|v| {
            v.free_numbers.insert(object.number);
            *v.inode(id) = super::Inode::default();
        });
        self.reiser_log_block(super::SUPERBLOCK).await;
        Ok(())
    }

    /// Notes that an inode without a name is to be deleted (`add_save_link`).
    /// On a full volume there is none, as in the kernel.
    pub(super) async fn reiser_save_link(&self, id: FileId) -> Result<(), FsError> {
        let key = Key::save_link(self.reiser_with(|v| v.object(id)).number);
        match self
            .reiser_change(Change::Put(Item::new(key, SAVE_LINK_BYTES)))
            .await
        {
            Err(FsError::NoSpace) => Ok(()),
            done => done,
        }
    }

    /// Opens a handle if the tree has room for some changes.
    pub(super) async fn reiser_begin_growing(&self, blocks: u64) -> Result<Handle, FsError> {
        if self.reiser_with(|v| v.space.free() < NODE_RESERVE) {
            return Err(FsError::NoSpace);
        }
        Ok(self.reiser_begin(blocks).await)
    }
}

/// The blocks of some pages.
fn blocks_of(v: &Volume, extents: &Extents, pages: Range<u64>) -> Vec<Range<u64>> {
    let mut runs = Vec::new();
    let mut at = pages.start;
    while at < pages.end
        && let Some((sector, count)) = extents.map(at)
    {
        let count = count.min(pages.end - at);
        let first = v.space.block(sector);
        runs.push(first..first + count);
        at += count;
    }
    runs
}
