// SPDX-License-Identifier: MIT OR Apache-2.0
//! What reading, writing and syncing a file cost in metadata
//! (fs/ext3/{inode,balloc,fsync}.c, fs/inode.c, 2.6.28).
//!
//! Appending a page changes the inode's block, the group's bitmap and
//! descriptor, and the block of pointers; overwriting one changes nothing but,
//! once a second, the inode's time. ext2 makes the same blocks dirty without a
//! journal. A bitmap, a block of inodes or of pointers that is not in the cache
//! is read first.
//!
//! Left out: the orphan list around direct writes that extend a file.

use super::Ext;
use crate::jbd::Handle;
use crate::mount::{Mount, View};
use blklab_pagecache::{FileId, FsError, Host};
use blklab_types::{BioFlags, Jiffies};
use std::ops::Range;

/// Credits of a handle that may allocate a page's blocks.
pub(super) const WRITE_CREDITS: u64 = 10;
/// Credits of a handle that changes an inode's times.
const INODE_CREDITS: u64 = 2;

/// What the next block of a growing file touches.
struct Growth {
    /// The bitmap that is searched first.
    bitmap: u64,
    descriptor: u64,
    /// The block of pointers that the page's goes into, if there is one yet.
    leaf: Option<u64>,
    inode: u64,
    pid: u32,
}

impl View<'_, Ext> {
    fn growth(&self, id: FileId, pid: u32) -> Growth {
        let (ext, file) = (&*self.volume, &self.files[id.idx()]);
        let group = ext.space.group_of(ext.goal(&ext.nodes[id], pid));
        Growth {
            bitmap: ext.geometry.block_bitmap(group),
            descriptor: ext.geometry.descriptor(group),
            leaf: ext.leaf(id, file.extents.pages()),
            inode: ext.inode_block(&ext.nodes[id]),
            pid,
        }
    }

    /// Takes the next block of a file. Returns the metadata blocks that this
    /// changed beside those of the goal's group.
    fn grow(&mut self, id: FileId, pid: u32) -> Option<[Option<u64>; 4]> {
        let (ext, file) = (&mut *self.volume, &mut self.state.files[id.idx()]);
        let (block, pointers) = ext.grow(id, file, pid)?;
        let group = ext.space.group_of(block);
        let inode = &mut ext.nodes[id];
        let new = inode.leaves().last().copied().filter(|_| pointers > 0);
        inode.changed = true;
        let upper = inode.upper().filter(|_| pointers > 0);
        let changed = [
            Some(ext.geometry.block_bitmap(group)),
            Some(ext.geometry.descriptor(group)),
            new,
            upper,
        ];
        // What the block held before is not written over it any more.
        let device = ext.device;
        self.clean_page(device, block..block + 1);
        Some(changed)
    }

    /// Makes pages dirty, their buffers with them, and known to the journal. Returns how
    /// many were clean.
    pub(super) fn ext_dirty(&mut self, id: FileId, run: Range<u64>, now: Jiffies) -> u64 {
        let buffers = &mut self.state.files[id.idx()].buffers;
        if buffers.present {
            buffers.dirty.set(run.clone());
            if self.volume.nodes[id].ordered {
                self.attach_data(id, run.clone());
            }
        }
        self.dirty(id, run, now)
    }

    /// Whether an access changes the inode, by the mount's rule; notes it.
    fn accessed(&mut self, id: FileId, second: u32) -> bool {
        let rule = self.volume.options.atime;
        let inode = &mut self.volume.nodes[id];
        rule.touch(&mut inode.atime_s, inode.mtime_s, second)
    }
}

impl<H: Host> Mount<'_, H, Ext> {
    pub(crate) fn has_journal(&self) -> bool {
        self.with(|s| s.volume.options.journal)
    }

    /// Opens a handle, if there is a journal.
    pub(super) async fn begin(&self, credits: u64) -> Option<Handle> {
        if self.has_journal() {
            Some(self.journal_start(credits).await)
        } else {
            None
        }
    }

    /// Closes it.
    pub(super) fn end(&self, handle: Option<Handle>) {
        if let Some(handle) = handle {
            self.journal_stop(handle);
        }
    }

    /// Reads a bitmap or a block of pointers if it is not in the cache.
    pub(super) async fn ext_read(&self, block: u64) -> Result<(), FsError> {
        self.ext_read_as(block, BioFlags::NONE).await
    }

    /// Reads a block of inodes or of a directory if it is not in the cache
    /// (`ext3_get_inode_loc`, `ext3_bread`).
    pub(super) async fn ext_read_named(&self, block: u64) -> Result<(), FsError> {
        let flags = self.with(|s| s.volume.options.features.read_flags);
        self.ext_read_as(block, flags).await
    }

    async fn ext_read_as(&self, block: u64, flags: BioFlags) -> Result<(), FsError> {
        let device = self.with(|s| s.volume.device);
        if self.read_page_as(device, block, flags).await {
            Ok(())
        } else {
            Err(FsError::Io)
        }
    }

    /// Changes a metadata block: in the running transaction
    /// (`ext3_journal_get_write_access`), or in place.
    pub(super) async fn change_block(&self, block: u64) {
        let device = self.with(|s| s.volume.device);
        if self.has_journal() {
            self.journal_access((device, block)).await;
        } else {
            let now = self.host.jiffies();
            self.with(|s| s.dirty_buffer((device, block), now));
        }
    }

    /// Changes the block of an inode (`ext3_reserve_inode_write`).
    pub(super) async fn change_inode(&self, id: FileId) -> Result<(), FsError> {
        let block = self.with(|s| s.volume.inode_block(&s.volume.nodes[id]));
        self.ext_read_named(block).await?;
        self.change_block(block).await;
        Ok(())
    }

    /// Changes an inode under a handle of its own (`ext3_dirty_inode`).
    async fn touch_inode(&self, id: FileId) -> Result<(), FsError> {
        let handle = self.begin(INODE_CREDITS).await;
        let changed = self.change_inode(id).await;
        self.end(handle);
        changed
    }

    /// The end of a read: the access time (`touch_atime`).
    pub(crate) async fn ext_accessed(&self, id: FileId) {
        let second = self.inode_second();
        if self.with(|s| s.accessed(id, second)) {
            // A read does not fail because its time cannot be noted.
            let _ = self.touch_inode(id).await;
        }
    }

    /// The beginning of a write: the times of change (`file_update_time`).
    pub(crate) async fn ext_modified(&self, id: FileId) -> Result<(), FsError> {
        let second = self.inode_second();
        if self.with(|s| std::mem::replace(&mut s.volume.nodes[id].mtime_s, second) != second) {
            self.touch_inode(id).await
        } else {
            Ok(())
        }
    }

    /// Makes pages dirty one by one, each under a handle, and gives those behind
    /// the end their blocks (`ext3_write_begin`, `ext3_ordered_write_end`). Returns
    /// how many were clean.
    pub(crate) async fn ext_dirty_pages(
        &self,
        id: FileId,
        run: Range<u64>,
    ) -> Result<u64, FsError> {
        let (mut clean, mut page) = (0, run.start);
        while page < run.end {
            let at_once = self.ext_dirty_at_once(id, page..run.end);
            if at_once.pages > 0 {
                page += at_once.pages;
                clean += at_once.clean;
                continue;
            }
            self.wait_unlocked(id, page).await;
            let mut retries = 0;
            loop {
                let handle = self.begin(WRITE_CREDITS).await;
                let placed = self.ext_place(id, page).await;
                if placed.is_ok() {
                    clean += self.ext_dirty_placed(id, page).await;
                }
                self.end(handle);
                match placed {
                    Err(FsError::NoSpace) if self.ext_retry(&mut retries).await => {}
                    other => break other?,
                }
            }
            page += 1;
        }
        self.start_flusher_timer();
        Ok(clean)
    }

    /// Makes a page that has its block dirty (journalled data:
    /// `ext3_journalled_write_end`). Returns 1 if it was clean.
    async fn ext_dirty_placed(&self, id: FileId, page: u64) -> u64 {
        if self.with(|s| s.volume.nodes[id].data_journal) {
            self.journal_access((id, page)).await;
            return 0;
        }
        self.write_committing_page(id, page).await;
        let (task, now) = (self.host.current(), self.host.jiffies());
        self.with(|s| {
            let new = s.ext_dirty(id, page..page + 1, now);
            s.count_dirtying(&self.config, task, new, false);
            new
        })
    }

    /// The volume is full: whether blocks that an uncommitted transaction freed
    /// can be had, which this then commits (`ext3_should_retry_alloc`).
    pub(super) async fn ext_retry(&self, retries: &mut u32) -> bool {
        *retries += 1;
        let some = self.with(|s| s.volume.free().bytes > 0);
        let again = some && *retries <= 3 && self.has_journal();
        if again {
            self.force_commit().await;
        }
        again
    }

    /// Gives a file blocks up to an end, for a direct write.
    pub(crate) async fn ext_reserve(&self, id: FileId, pages: u64) -> Result<(), FsError> {
        let mut retries = 0;
        while self.with(|s| s.file(id).extents.pages()) < pages {
            let page = self.with(|s| s.file(id).extents.pages());
            let handle = self.begin(WRITE_CREDITS).await;
            let placed = self.ext_place(id, page).await;
            self.end(handle);
            match placed {
                Err(FsError::NoSpace) if self.ext_retry(&mut retries).await => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Gives a file blocks up to a page (`ext3_get_blocks_handle`).
    pub(super) async fn ext_place(&self, id: FileId, page: u64) -> Result<(), FsError> {
        while self.with(|s| s.file(id).extents.pages()) <= page {
            let pid = self.host.pid();
            let g = self.with(|s| s.growth(id, pid));
            for block in [Some(g.bitmap), g.leaf].into_iter().flatten() {
                self.ext_read(block).await?;
            }
            self.ext_read_named(g.inode).await?;
            for block in [Some(g.bitmap), Some(g.descriptor), g.leaf, Some(g.inode)]
                .into_iter()
                .flatten()
            {
                self.change_block(block).await;
            }
            let changed = self.with(|s| s.grow(id, g.pid)).ok_or(FsError::NoSpace)?;
            if changed[0] != Some(g.bitmap)
                && let Some(bitmap) = changed[0]
            {
                self.ext_read(bitmap).await?;
            }
            for block in changed.into_iter().flatten() {
                self.change_block(block).await;
            }
        }
        Ok(())
    }

    /// Reads the block of pointers to a page if it is not in the cache
    /// (`ext3_get_branch`).
    pub(crate) async fn ext_load_leaf(&self, id: FileId, page: u64) {
        if let Some((device, leaf)) = self.ext_cold_leaf(id, page) {
            self.read_page(device, leaf).await;
        }
    }

    /// The block of pointers to a page, if it has to be read.
    pub(crate) fn ext_cold_leaf(&self, id: FileId, page: u64) -> Option<(FileId, u64)> {
        self.with(|s| {
            let ext = &*s.volume;
            let leaf = ext.leaf(id, page)?;
            let device = ext.device;
            let cold = !s.files[device.idx()].uptodate.test(leaf);
            cold.then_some((device, leaf))
        })
    }

    /// The filesystem's step of fsync (`ext3_sync_file`): commits, if something
    /// changed that is not committed. For data alone a change of times does not
    /// count.
    pub(crate) async fn ext_sync(&self, id: FileId, data_only: bool) {
        let wanted = self.with(|s| {
            let inode = &mut s.volume.nodes[id];
            let times = inode.atime_s.max(inode.mtime_s) > 0;
            // fsync commits journalled data in any case.
            std::mem::take(&mut inode.changed) || times && !data_only || inode.data_journal
        });
        if !wanted {
            // A commit would have flushed the disk's cache (`ext3_sync_file`, from
            // 2.6.33 on; here where the data is on the disk by now).
            if self.has_journal() && self.config.features.fsync_waits_first {
                self.flush_behind_journal().await;
            }
            return;
        }
        if self.has_journal() {
            self.force_commit().await;
            return;
        }
        let (device, blocks) = self.with(|s| {
            let ext = &*s.volume;
            let (device, inode) = (ext.device, &s.volume.nodes[id]);
            let own = std::iter::once(ext.inode_block(inode));
            let mut blocks: Vec<u64> = inode.all_pointers().chain(own).collect();
            let dirty = &s.files[device.idx()].buffers.dirty;
            blocks.retain(|b| dirty.test(*b));
            (device, blocks)
        });
        for block in blocks {
            self.write_out(device, block..block + 1, true).await;
            self.wait_writeback(device, block).await;
        }
    }
}
