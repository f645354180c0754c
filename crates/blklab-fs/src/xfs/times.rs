// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inodes that change in memory: times and sizes, their way to the disk with
//! write-back and fsync (fs/xfs/xfs_vnodeops.c, linux-2.6/xfs_super.c; 2.6.26).

use super::costs;
use super::flush::How;
use super::items::ItemId;
use super::volume::Volume;
use crate::mount::{Mount, View};
use blklab_pagecache::{End, FileId, Host, List, WriteControl};
use blklab_types::{BioFlags, Jiffies};

impl View<'_, Volume> {
    /// Whether an access changes the inode, by the mount's rule; notes it.
    fn accessed_xfs(&mut self, index: u32, second: u32) -> bool {
        let v = &mut *self.volume;
        let rule = v.options.atime;
        let inode = v.inodes.get(index);
        let stale = rule.touch(&mut inode.atime_s, inode.mtime_s, second);
        inode.touched |= stale;
        stale
    }

    /// An inode is dirty for the page cache's lists (`mark_inode_dirty_sync`).
    pub(super) fn mark_inode_dirty(&mut self, id: FileId, now: Jiffies) {
        let file = &mut self.files[id.idx()];
        if !std::mem::replace(&mut file.inode_dirty, true) && !file.syncing {
            file.dirtied_when = now;
            self.lists_of(id).put(id, List::Dirty, End::Newest);
        }
    }

    /// Data have reached the disk: the size on the disk may follow
    /// (`xfs_setfilesize`).
    pub(super) fn written_xfs(&mut self, id: FileId) {
        if self.files[id.idx()].removed {
            return;
        }
        let index = self.inode_of(id);
        let inode = self.volume.inodes.get(index);
        if !std::mem::replace(&mut inode.touched, true) {
            // Behind all others: its age is counted from now on.
            let now = self.last_dirtied();
            self.mark_inode_dirty(id, now);
        }
    }

    fn last_dirtied(&self) -> Jiffies {
        let newest = self.inodes.newest(List::Dirty);
        newest.map_or(Jiffies(0), |id| self.files[id.idx()].dirtied_when)
    }
}

impl<H: Host> Mount<'_, H, Volume> {
    /// Times of change, in memory.
    pub(super) fn touched_now(&self, files: &[FileId]) {
        let second = self.inode_second();
        self.with(|s| {
            for id in files {
                let index = s.inode_of(*id);
                let inode = s.volume.inodes.get(index);
                (inode.mtime_s, inode.touched) = (second, true);
            }
        });
    }

    pub(super) fn mark_inodes_dirty(&self, files: &[FileId]) {
        let now = self.host.jiffies();
        self.with(|s| files.iter().for_each(|id| s.mark_inode_dirty(*id, now)));
        self.start_flusher_timer();
    }

    /// A read has ended.
    pub(super) fn read_done_xfs(&self, id: FileId) {
        let second = self.inode_second();
        let now = self.host.jiffies();
        let changed = self.with(|s| {
            let index = s.inode_of(id);
            let changed = s.accessed_xfs(index, second);
            if changed {
                s.mark_inode_dirty(id, now);
            }
            changed
        });
        if changed {
            self.start_flusher_timer();
        }
    }

    /// The page cache's turn to write an inode (`xfs_fs_write_inode`,
    /// `xfs_inode_flush`). One that cannot go stays dirty for a later turn.
    pub(super) async fn write_inode_xfs(&self, id: FileId, control: &WriteControl) {
        let index = self.with(|s| s.inode_of(id));
        let (dirty, pinned, flushing, delayed) = self.with(|s| {
            let v = &mut *s.volume;
            let pinned = v.items.get(ItemId::inode(index)).pinned();
            let inode = *v.inodes.get(index);
            let delayed = v.options.features.delayed_inodes;
            (inode.is_dirty(), pinned, inode.flushing, delayed)
        });
        if !dirty {
            return;
        }
        if control.integrity {
            if pinned {
                self.log_force(true).await;
            }
            self.flush_inode(index, How::Wait).await;
        } else if pinned || flushing {
            self.with(|s| s.files[id.idx()].inode_dirty = true);
        } else {
            let how = if delayed { How::Later } else { How::Now };
            self.flush_inode(index, how).await;
        }
    }

    /// fsync's step (`xfs_fsync`, later `xfs_file_fsync`): the last change of the
    /// inode is in the log on the disk, and the disk's cache is empty, if it has
    /// barriers.
    pub(super) async fn sync_file_xfs(&self, id: FileId, data_only: bool) {
        let index = self.with(|s| s.inode_of(id));
        let touched = self.with(|s| {
            let inode = s.volume.inodes.get(index);
            !data_only && std::mem::take(&mut inode.touched)
        });
        if touched {
            let mut t = self.xfs_begin(costs::RESERVE_INODE).await;
            t.join_inode(index);
            t.bytes = costs::INODE;
            self.xfs_commit(t).await;
        }
        let (pinned, barrier) = self.with(|s| {
            let v = &mut *s.volume;
            let pinned = v.items.get(ItemId::inode(index)).pinned();
            (pinned, v.options.barrier)
        });
        if pinned {
            self.log_force(true).await;
        } else if barrier {
            self.flush_device().await;
        }
    }

    /// An empty flush, waited for (`xfs_blkdev_issue_flush`).
    async fn flush_device(&self) {
        let flags = if self.with(|s| s.volume.options.features.flush_fua) {
            BioFlags::SYNC | BioFlags::FLUSH
        } else {
            BioFlags::BARRIER
        };
        self.issue_flush(flags).await;
    }
}
