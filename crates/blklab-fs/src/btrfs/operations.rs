// SPDX-License-Identifier: MIT OR Apache-2.0
//! What system calls change in the trees (fs/btrfs/{inode,file}.c).

use super::items::{self, Change, What, of_file};
use super::space::Use;
use super::volume::Btrfs;
use crate::mount::{Mount, View};
use blklab_pagecache::{FileId, FsError, Host, Name};
use blklab_types::{PAGE_BYTES, Span};
use std::ops::Range;

/// Tree blocks that a call may dirty.
const CALL_BLOCKS: u64 = 64;

impl Btrfs {
    /// The items of a new file and of its entry (`btrfs_new_inode`,
    /// `btrfs_add_link`).
    pub(super) fn new_entry(&mut self, directory: FileId, id: FileId, name: Name) -> Vec<Change> {
        let above = self.object(directory);
        let inode = *self.inode(id);
        let entry = What::Put(items::entry_bytes(name.bytes));
        let inode_bytes = What::Put(items::INODE_BYTES);
        let back = What::Put(items::ref_bytes(name.bytes));
        vec![
            of_file(items::inode(inode.object), inode_bytes),
            of_file(items::inode_ref(inode.object, above), back),
            of_file(items::dir_item(above, name.hash), entry),
            of_file(items::dir_index(above, inode.index), entry),
            of_file(items::inode(above), What::Touch),
        ]
    }

    /// The entry of a file and the reference to it go (`btrfs_unlink_inode`).
    fn gone_entry(&mut self, directory: FileId, id: FileId, name: Name) -> [Change; 5] {
        let above = self.object(directory);
        let inode = *self.inode(id);
        [
            of_file(items::dir_item(above, name.hash), What::Remove),
            of_file(items::dir_index(above, inode.index), What::Remove),
            of_file(items::inode_ref(inode.object, above), What::Remove),
            of_file(items::inode(inode.object), What::Touch),
            of_file(items::inode(above), What::Touch),
        ]
    }

    /// Whether an access changes the inode; notes it.
    fn ages(&mut self, id: FileId, second: u32) -> bool {
        let rule = self.options.atime;
        let inode = self.inode(id);
        rule.touch(&mut inode.atime_s, inode.mtime_s, second)
    }
}

impl View<'_, Btrfs> {
    /// Takes a file's pages from their places.
    fn btrfs_take_places(&mut self, id: FileId) -> Vec<Range<u64>> {
        let mut gone = Vec::new();
        let b = &*self.volume;
        self.state.files[id.idx()].extents.punch(0..u64::MAX, |e| {
            let first = b.page(e.sector);
            gone.push(first..first + e.pages);
        });
        gone
    }
}

impl<H: Host> Mount<'_, H, Btrfs> {
    /// Makes changes in one transaction: reads what is not in memory, spends
    /// the time.
    pub(super) async fn btrfs_change(&self, changes: &[Change]) {
        for change in changes {
            self.btrfs_load(change.of, change.key).await;
        }
        let cost = self.with(|s| s.volume.options.change_cost);
        self.spend(Span(cost.ns().saturating_mul(changes.len() as u64)))
            .await;
        let now = self.host.jiffies();
        self.with(|s| s.btrfs_apply(changes, now));
    }

    /// A file is not as the last commit has it.
    pub(super) fn btrfs_mark_changed(&self, ids: &[FileId]) {
        self.with(|s| {
            let b = &mut *s.volume;
            let now = b.pool.transaction;
            for id in ids {
                b.inode(*id).changed = now;
            }
        });
    }

    pub(super) async fn btrfs_create(&self, directory: FileId, id: FileId) -> Result<(), FsError> {
        let second = self.inode_second();
        let numbered = self.with(|s| {
            let b = &mut *s.volume;
            let room = b.has_room(Use::Metadata, CALL_BLOCKS);
            room.then(|| b.number(directory, id)).flatten()
        });
        numbered.ok_or(FsError::NoSpace)?;
        self.btrfs_begin().await;
        let changes = self.with(|s| {
            let name = s.file(id).name;
            let b = &mut *s.volume;
            for file in [directory, id] {
                b.inode(file).mtime_s = second;
            }
            b.new_entry(directory, id, name)
        });
        self.btrfs_change(&changes).await;
        self.btrfs_mark_changed(&[directory, id]);
        self.btrfs_end().await;
        Ok(())
    }

    /// `btrfs_unlink`, `btrfs_rmdir`.
    pub(super) async fn btrfs_remove_entry(
        &self,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        let second = self.inode_second();
        self.btrfs_begin().await;
        let changes = self.with(|s| {
            let name = s.file(id).name;
            let b = &mut *s.volume;
            b.inode(directory).mtime_s = second;
            b.gone_entry(directory, id, name)
        });
        self.btrfs_change(&changes).await;
        self.btrfs_mark_changed(&[directory, id]);
        self.btrfs_end().await;
        Ok(())
    }

    /// `btrfs_delete_inode`, later `btrfs_evict_inode`.
    pub(super) async fn btrfs_remove_inode(&self, id: FileId) -> Result<(), FsError> {
        self.btrfs_wait_ordered(Some(id)).await;
        self.btrfs_begin().await;
        self.btrfs_drop_extents(id).await;
        let object = self.with(|s| s.volume.object(id));
        self.btrfs_change(&[of_file(items::inode(object), What::Remove)])
            .await;
        self.btrfs_end().await;
        Ok(())
    }

    pub(super) async fn btrfs_truncate(&self, id: FileId) -> Result<(), FsError> {
        self.btrfs_wait_ordered(Some(id)).await;
        self.btrfs_begin().await;
        self.btrfs_drop_extents(id).await;
        let object = self.with(|s| s.volume.object(id));
        self.btrfs_change(&[of_file(items::inode(object), What::Touch)])
            .await;
        self.btrfs_mark_changed(&[id]);
        self.btrfs_end().await;
        Ok(())
    }

    /// Takes the items of a file's extents and checksums out of the trees, and
    /// frees the extents (`btrfs_truncate_inode_items`).
    async fn btrfs_drop_extents(&self, id: FileId) {
        let (keys, gone) = self.with(|s| {
            let object = s.volume.object(id);
            let tree = &s.volume.trees[items::Of::Files as usize];
            let (mut keys, mut at) = (Vec::new(), items::extent(object, 0));
            let end = items::checksum(object, u64::MAX);
            while let Some(key) = tree.next_key(at).filter(|k| *k <= end) {
                keys.push(of_file(key, What::Remove));
                at = key + 1;
            }
            (keys, s.btrfs_take_places(id))
        });
        let mut changes = keys;
        if self.with(|s| s.volume.options.checksum_tree) {
            let checksums = |run: &Range<u64>| Change {
                of: items::Of::Checksums,
                key: run.start,
                what: What::Remove,
            };
            changes.extend(gone.iter().map(checksums));
        }
        self.btrfs_change(&changes).await;
        self.with(|s| s.btrfs_free_data(&gone));
    }

    pub(super) async fn btrfs_begin_write(&self, id: FileId, end: u64) -> Result<(), FsError> {
        let pages = end.div_ceil(PAGE_BYTES);
        let room = self.with(|s| {
            let known = s.file(id).cached.count().min(pages);
            let more = s.nr_dirty + pages - known;
            let b = &mut *s.volume;
            // A small file takes a leaf rather than a page.
            let small = end <= u64::from(b.options.max_inline_bytes);
            let blocks = CALL_BLOCKS + if small { more } else { 0 };
            b.has_room(Use::Data, more) && b.has_room(Use::Metadata, blocks)
        });
        if !room {
            return Err(FsError::NoSpace);
        }
        let second = self.inode_second();
        if self.with(|s| std::mem::replace(&mut s.volume.inode(id).mtime_s, second) != second) {
            self.btrfs_change_inode(id).await;
        }
        Ok(())
    }

    /// The end of a read: the access time.
    pub(super) async fn btrfs_accessed(&self, id: FileId) {
        let second = self.inode_second();
        if self.with(|s| !s.file(id).removed && s.volume.ages(id, second)) {
            self.btrfs_change_inode(id).await;
        }
    }

    /// The inode's item changes (`btrfs_update_inode`).
    async fn btrfs_change_inode(&self, id: FileId) {
        self.btrfs_begin().await;
        let object = self.with(|s| s.volume.object(id));
        self.btrfs_change(&[of_file(items::inode(object), What::Touch)])
            .await;
        self.btrfs_mark_changed(&[id]);
        self.btrfs_end().await;
    }
}
