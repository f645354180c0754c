// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading, writing and syncing files (fs/ext4/{inode,file,fsync}.c; 2.6.28,
//! 2.6.32, 4.19).
//!
//! `write` only counts the blocks that its pages will need, and changes the
//! inode's times under a handle of its own. Write-out gives a dirty range its
//! place under a handle that stays open until the range is in bios.

use super::placing::NewBlocks;
use super::{Ext4, HAS_INODE, Inode};
use crate::mount::{Mount, View};
use blklab_pagecache::{Atime, DAY_S, FileId, FsError, Host, WriteControl};
use blklab_types::Jiffies;
use std::ops::Range;

/// Credits of a handle that changes an inode.
const INODE_CREDITS: u64 = 2;

impl View<'_, Ext4> {
    /// Whether a file's data go through the journal.
    pub(super) fn ext4_journals_data(&self, id: FileId) -> bool {
        self.volume.nodes[id]
            .as_ref()
            .is_some_and(|i| i.data_journal)
    }

    /// A file's inode.
    pub(super) fn ext4_inode(&mut self, id: FileId) -> &mut Inode {
        self.volume.nodes[id].as_deref_mut().expect(HAS_INODE)
    }

    /// Pages beyond the flusher's that a visit to a file may write
    /// (`ext4_da_writepages`): up to the end of the dirty range at its cursor, or
    /// for a whole file eight times as many as asked for.
    pub(crate) fn ext4_bump(&self, id: FileId, control: &WriteControl) -> i64 {
        let file = &self.files[id.idx()];
        let most = self.volume.options.features.bump_pages;
        if most == 0 {
            return 0;
        }
        let asked = control.nr_to_write;
        let wanted = match &control.range {
            Some(r) if *r == (0..u64::MAX) => asked.saturating_mul(8),
            other => {
                let from = other.as_ref().map_or(file.cursor, |r| r.start);
                let first = file.dirty.next_set(from, u64::MAX).unwrap_or(from);
                (file.dirty.next_clear(first, first + most) - first) as i64
            }
        };
        (wanted.min(most as i64) - asked).max(0)
    }

    /// Notes that the running transaction has changed an inode
    /// (`ext4_update_inode_fsync_trans`).
    pub(super) fn ext4_stamp(&mut self, id: FileId, data: bool) {
        let tid = self.journal().running_tid();
        let inode = self.ext4_inode(id);
        inode.sync_tid = tid;
        if data {
            inode.datasync_tid = tid;
        }
    }

    /// Whether an access changes the inode, by the mount's rule; notes it.
    fn ext4_touched(&mut self, id: FileId, now: Jiffies, hz: u64) -> bool {
        let rule = self.volume.options.atime;
        let inode = self.ext4_inode(id);
        let stale = match rule {
            Atime::Strict => inode.atime != now,
            Atime::Relative => {
                inode.atime <= inode.mtime || now.0 >= inode.atime.0 + u64::from(DAY_S) * hz
            }
            Atime::Never => false,
        };
        if stale {
            inode.atime = now;
        }
        stale
    }
}

impl<H: Host> Mount<'_, H, Ext4> {
    /// Changes an inode's block under a handle of its own (`ext4_dirty_inode`).
    async fn ext4_change_inode(&self, id: FileId, data: bool) {
        let block = self.with(|s| s.ext4_inode(id).block);
        let handle = self.journal_start(INODE_CREDITS).await;
        self.ext4_change([block]).await;
        self.with(|s| s.ext4_stamp(id, data));
        self.journal_stop(handle);
    }

    /// The resolution of time stamps: a tick, or with small inodes a second
    /// (`ext4_current_time`).
    pub(super) fn ext4_time(&self) -> Jiffies {
        let (now, hz) = (self.host.jiffies().0, u64::from(self.host.hz().0));
        let small = self.with(|s| s.volume.options.inode_size < 256);
        // 0 is the time of files from before the run.
        Jiffies(if small { now / hz * hz + 1 } else { now + 1 })
    }

    /// The end of a read: the access time.
    pub(super) async fn ext4_accessed(&self, id: FileId) {
        let (now, hz) = (self.ext4_time(), u64::from(self.host.hz().0));
        if self.with(|s| s.ext4_touched(id, now, hz)) {
            self.ext4_change_inode(id, false).await;
        }
    }

    /// The beginning of a write: the times of change (`file_update_time`). A write
    /// that makes the file longer changes the inode in any case.
    pub(super) async fn ext4_modified(&self, id: FileId, end: u64) {
        let now = self.ext4_time();
        let (changed, longer) = self.with(|s| {
            let longer = end > s.files[id.idx()].size_bytes;
            let old = std::mem::replace(&mut s.ext4_inode(id).mtime, now);
            (old != now, longer)
        });
        if changed || longer {
            self.ext4_change_inode(id, longer).await;
        }
    }

    /// Pages have been copied: promises blocks to them (`ext4_da_write_begin`), or
    /// gives them blocks if allocation is not delayed (`ext4_write_begin`).
    pub(super) async fn ext4_dirty_pages(
        &self,
        id: FileId,
        run: Range<u64>,
        end: u64,
    ) -> Result<(), FsError> {
        if self.with(|s| s.ext4_journals_data(id)) {
            return self.ext4_journal_pages(id, run, end).await;
        }
        let delays = self.with(|s| {
            let asked = s.volume.options.delalloc;
            asked && !s.ext4_is_short()
        });
        if delays {
            // write_begin opens a handle even if it will not change anything.
            let handle = self.journal_start(1).await;
            self.journal_stop(handle);
            if !self.with(|s| s.ext4_promise(id, run.clone())) {
                return Err(FsError::NoSpace);
            }
        } else {
            self.ext4_place_all(id, run.clone()).await?;
        }
        self.set_dirty(id, run, end, false).await;
        Ok(())
    }

    /// `data=journal`: pages get their blocks at once, and join the transaction as
    /// metadata do (`ext4_journalled_write_end`).
    async fn ext4_journal_pages(
        &self,
        id: FileId,
        run: Range<u64>,
        end: u64,
    ) -> Result<(), FsError> {
        for page in run {
            self.wait_unlocked(id, page).await;
            let (placed, handle) = self
                .ext4_allocate_anew(id, page..page + 1, NewBlocks::Written)
                .await;
            if placed.is_ok() {
                self.journal_access((id, page)).await;
                self.with(|s| s.ext4_stamp(id, true));
            }
            self.journal_stop(handle);
            placed?;
        }
        self.with(|s| {
            let file = s.file(id);
            file.size_bytes = file.size_bytes.max(end);
        });
        Ok(())
    }

    /// Pages are about to be dropped: the journal forgets those that it has
    /// (`ext4_invalidatepage`, `ext4_journalled_invalidatepage`).
    pub(super) async fn ext4_invalidate(&self, id: FileId, run: Range<u64>) {
        let journalled = self.with(|s| {
            s.ext4_leave_unwritten(id, &run);
            let journalled = s.ext4_journals_data(id);
            let mut page = run.start;
            while journalled && let Some(next) = s.file(id).cached.next_set(page, run.end) {
                s.forget((id, next));
                page = next + 1;
            }
            journalled
        });
        self.send_workers();
        if journalled {
            self.wait_buffers(id, run).await;
        }
    }

    /// Reads the leaf that points to a page if it is not in memory
    /// (`ext4_ext_find_extent`, later `ext4_find_extent`).
    pub(super) async fn ext4_load_leaf(&self, id: FileId, page: u64) {
        let leaf = self.with(|s| {
            let inode = s.volume.nodes[id].as_ref().expect(HAS_INODE);
            inode.leaf(&s.files[id.idx()].extents, page)
        });
        if let Some(leaf) = leaf {
            // An error shows when the page is read.
            let _ = self.ext4_read(leaf).await;
        }
    }

    /// A file is closed (`ext4_release_file`): what was cut to nothing and written
    /// again is allocated now (`ext4_alloc_da_blocks`); what is set aside for it is
    /// given back.
    pub(super) async fn ext4_close(&self, id: FileId, wrote: bool) {
        let allocate = self.with(|s| {
            let inode = s.ext4_inode(id);
            wrote && std::mem::take(&mut inode.allocate_on_close)
        });
        if allocate {
            self.write_out(id, 0..u64::MAX, false).await;
        }
        self.with(|s| {
            let file = &s.files[id.idx()];
            let unused = file.nr_open == 0 && file.dirty.count() == 0;
            if unused {
                s.volume.discard_own(id);
            }
        });
    }

    /// The filesystem's step of fsync (`ext4_sync_file`).
    pub(super) async fn ext4_sync(&self, id: FileId, data_only: bool) {
        if self.with(|s| s.ext4_journals_data(id)) {
            return self.force_commit().await;
        }
        let (by_tid, tid) = self.with(|s| {
            let by_tid = s.volume.options.features.fsync_by_transaction;
            let inode = s.ext4_inode(id);
            let tid = if data_only {
                inode.datasync_tid
            } else {
                inode.sync_tid
            };
            (by_tid, tid)
        });
        if by_tid {
            // A commit flushes the cache, too.
            if !self.complete_transaction(tid).await {
                self.flush_behind_journal().await;
            }
        } else if self.with(|s| s.journal().committed_tid() < tid) {
            self.force_commit().await;
            self.flush_behind_journal().await;
        }
    }
}
