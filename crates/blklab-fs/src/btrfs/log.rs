// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log tree: what fsync writes instead of a commit (fs/btrfs/tree-log.c,
//! from 0.17 on).
//!
//! The items of the file are copied into a tree of its own, whose new blocks
//! are written and waited for; then the superblock, which points to it. The
//! next commit makes the tree void. Left out: the entries of directories that
//! a new file needs in the log.

use super::Btrfs;
use super::items;
use super::items::Of;
use super::tree::ITEM_BYTES;
use crate::mount::{Mount, View};
use blklab_pagecache::{FileId, Host};
use std::ops::Range;

impl View<'_, Btrfs> {
    /// Copies a file's items into the log (`btrfs_log_inode`). Returns the log's
    /// dirty pages.
    fn btrfs_copy_to_log(&mut self, id: FileId, now: blklab_types::Jiffies) -> Vec<Range<u64>> {
        let b = &mut *self.volume;
        let object = b.object(id);
        let (mut at, end) = (items::inode(object), items::checksum(object, u64::MAX));
        let device = b.device;
        while let Some((key, size)) = b.trees[Of::Files as usize].next_item(at) {
            if key > end {
                break;
            }
            b.log.insert(&mut b.pool, key, size.max(ITEM_BYTES));
            at = key + 1;
        }
        let mut blocks = b.log.all_blocks();
        self.btrfs_note_blocks(now);
        let pages = self.volume.pool.node_pages;
        blocks.sort_unstable();
        let dirty = &self.files[device.idx()].dirty;
        blocks.retain(|block| dirty.test(*block));
        let mut runs: Vec<Range<u64>> = Vec::new();
        for block in blocks {
            match runs.last_mut() {
                Some(run) if run.end == block => run.end += pages,
                _ => runs.push(block..block + pages),
            }
        }
        runs
    }
}

impl<H: Host> Mount<'_, H, Btrfs> {
    /// Writes a file's items to the log, and waits for them
    /// (`btrfs_log_dentry_safe`, `btrfs_sync_log`).
    pub(super) async fn btrfs_log_file(&self, id: FileId) {
        self.btrfs_begin().await;
        let now = self.host.jiffies();
        let runs = self.with(|s| s.btrfs_copy_to_log(id, now));
        let device = self.with(|s| s.volume.device);
        self.btrfs_write_blocks(&runs).await;
        for run in runs {
            self.wait_writeback_run(device, run).await;
        }
        self.btrfs_write_super(true).await;
        self.with(|s| s.volume.inode(id).changed = 0);
        self.btrfs_leave();
    }
}
