// SPDX-License-Identifier: MIT OR Apache-2.0
//! What system calls cost: each is a change under the lock of the volume
//! (fs/nilfs2/{namei,dir,inode,file}.c, 2.6.32).

use super::Nilfs;
use crate::mount::{Mount, View};
use blklab_pagecache::{FileId, FsError, Host};
use blklab_types::PAGE_BYTES;
use std::ops::Range;

/// Pages of metadata that a page of data may bring with it: one in so many.
const METADATA_SHARE: u64 = 32;

impl View<'_, Nilfs> {
    /// Whether there is room for so many pages more, beside what is dirty.
    fn nilfs_has_room(&mut self, pages: u64) -> bool {
        let wanted = self.nr_dirty + pages;
        wanted + wanted / METADATA_SHARE < self.volume.segments.room()
    }

    /// Whether an access changes the inode; notes it.
    fn nilfs_ages(&mut self, id: FileId, second: u32) -> bool {
        let n = &mut *self.volume;
        let rule = n.options.atime;
        let inode = n.inode(id);
        rule.touch(&mut inode.atime_s, inode.mtime_s, second)
    }
}

impl<H: Host> Mount<'_, H, Nilfs> {
    pub(super) async fn nilfs_create(&self, directory: FileId, id: FileId) -> Result<(), FsError> {
        self.nilfs_read_directory(directory, u64::MAX).await?;
        if !self.with(|s| s.nilfs_has_room(4)) {
            return Err(FsError::NoSpace);
        }
        self.begin_change().await;
        self.nilfs_load_new_inode().await;
        self.nilfs_load_new_number().await;
        self.nilfs_load_inode(directory).await;
        let now = self.host.jiffies();
        let second = self.inode_second();
        self.with(|s| {
            s.nilfs_new_inode(id, now);
            s.nilfs_add_entry(directory, id, now);
            for file in [id, directory] {
                s.volume.inode(file).mtime_s = second;
            }
        });
        self.end_change();
        Ok(())
    }

    pub(super) async fn nilfs_look_up(&self, directory: FileId, id: FileId) -> Result<(), FsError> {
        let page = self.with(|s| s.volume.inode(id).entry_page);
        self.nilfs_read_directory(directory, u64::from(page) + 1)
            .await?;
        self.nilfs_load_inode(id).await;
        Ok(())
    }

    pub(super) async fn nilfs_remove_entry(
        &self,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        let page = self.with(|s| s.volume.inode(id).entry_page);
        self.nilfs_read_directory(directory, u64::from(page) + 1)
            .await?;
        self.begin_change().await;
        self.nilfs_load_inode(id).await;
        self.nilfs_load_inode(directory).await;
        let now = self.host.jiffies();
        let second = self.inode_second();
        self.with(|s| {
            s.nilfs_take_entry(directory, id, now);
            s.nilfs_dirty_inode(id);
            s.volume.inode(directory).mtime_s = second;
        });
        self.end_change();
        Ok(())
    }

    pub(super) async fn nilfs_remove_inode(&self, id: FileId) -> Result<(), FsError> {
        self.begin_change().await;
        self.nilfs_load_inode(id).await;
        self.nilfs_load_blocks(id).await;
        self.with(|s| s.nilfs_free_inode(id));
        self.end_change();
        Ok(())
    }

    pub(super) async fn nilfs_truncate(&self, id: FileId) -> Result<(), FsError> {
        self.begin_change().await;
        self.nilfs_load_inode(id).await;
        self.nilfs_load_blocks(id).await;
        self.with(|s| {
            s.nilfs_free_blocks(id);
            s.nilfs_dirty_inode(id);
            s.nilfs_queue(id);
        });
        self.end_change();
        Ok(())
    }

    /// Reads what freeing a file's blocks changes.
    async fn nilfs_load_blocks(&self, id: FileId) {
        let pages = self.with(|s| s.volume.inode(id).numbers.pages());
        self.nilfs_load_numbers(id, 0..pages).await;
        let (nodes, meta) = self.with(|s| {
            let n = &mut *s.volume;
            let tree = n.inode(id).tree.as_ref();
            let nodes: Vec<u32> = tree.map_or(Vec::new(), |t| t.nodes().collect());
            (nodes, n.meta.nodes)
        });
        for node in nodes {
            self.nilfs_load(meta, u64::from(node)).await;
            self.nilfs_load_numbers(meta, u64::from(node)..u64::from(node) + 1)
                .await;
        }
    }

    pub(super) async fn nilfs_begin_write(&self, id: FileId, end: u64) -> Result<(), FsError> {
        let pages = end.div_ceil(PAGE_BYTES);
        let known = self.with(|s| s.file(id).cached.count().min(pages));
        if !self.with(|s| s.nilfs_has_room(pages - known + 1)) {
            return Err(FsError::NoSpace);
        }
        let second = self.inode_second();
        if self.with(|s| std::mem::replace(&mut s.volume.inode(id).mtime_s, second) != second) {
            self.nilfs_change_inode(id).await;
        }
        Ok(())
    }

    pub(super) async fn nilfs_dirty(
        &self,
        id: FileId,
        run: Range<u64>,
        end: u64,
    ) -> Result<(), FsError> {
        self.begin_change().await;
        self.nilfs_load_new_number().await;
        self.nilfs_load_inode(id).await;
        self.with(|s| {
            s.nilfs_number(id, run.clone());
            s.nilfs_dirty_inode(id);
        });
        let new = self.set_dirty(id, run, end, false).await;
        self.with(|s| s.nilfs_changed(id, new));
        self.end_change();
        Ok(())
    }

    /// A page is about to become dirty through a mapping (`nilfs_page_mkwrite`).
    pub(super) async fn nilfs_mapped_write(&self, id: FileId, page: u64) {
        if self.with(|s| s.file(id).dirty.test(page)) {
            return;
        }
        self.begin_change().await;
        self.nilfs_load_new_number().await;
        self.nilfs_load_inode(id).await;
        self.with(|s| {
            s.nilfs_number(id, page..page + 1);
            s.nilfs_dirty_inode(id);
            s.nilfs_changed(id, 1);
        });
        self.end_change();
    }

    /// A page that became dirty through a mapping while a log was collected is
    /// not the constructor's concern yet.
    pub(super) async fn nilfs_requeue(&self, id: FileId) {
        let missed = self.with(|s| {
            let dirty = s.file(id).dirty.count() > 0;
            dirty && !s.volume.inode(id).queued
        });
        if missed {
            self.begin_change().await;
            self.with(|s| s.nilfs_queue(id));
            self.end_change();
        }
    }

    /// The end of a read: the access time.
    pub(super) async fn nilfs_accessed(&self, id: FileId) {
        let second = self.inode_second();
        if self.with(|s| s.nilfs_ages(id, second)) {
            self.nilfs_change_inode(id).await;
        }
    }

    async fn nilfs_change_inode(&self, id: FileId) {
        self.begin_change().await;
        self.nilfs_load_inode(id).await;
        self.with(|s| {
            if !s.file(id).removed {
                s.nilfs_dirty_inode(id);
            }
        });
        self.end_change();
    }
}
