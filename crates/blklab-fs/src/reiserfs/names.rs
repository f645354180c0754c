// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names: entries come and go, are found and listed
//! (fs/reiserfs/{namei,dir,stree}.c, 2.6.26).
//!
//! The kernel orders a directory's entries by a hash of the name; the number
//! that stands for the name's letters stands for its hash.

use super::journal::Close;
use super::key::{Item, Key, Object, STAT_BYTES, entry_bytes};
use super::operations::BALANCE_BLOCKS;
use super::{Change, Volume, directory_items};
use crate::mount::Mount;
use blklab_pagecache::{FileId, FsError, Host};

/// Leaves that listing reads at a time (`SEARCH_BY_KEY_READA`).
const READ_AHEAD_LEAVES: usize = 16;

impl Volume {
    /// The key of a file's entry in its directory.
    fn entry_key(&mut self, directory: FileId, id: FileId, hash: u32) -> Key {
        Key::entry(self.object(directory), hash, id.0)
    }
}

impl<H: Host> Mount<'_, H, Volume> {
    fn reiser_entry(&self, directory: FileId, id: FileId) -> (Key, u32) {
        self.with(|s| {
            let name = s.files[id.idx()].name;
            let key = s.volume.entry_key(directory, id, name.hash);
            (key, entry_bytes(name.bytes))
        })
    }

    /// A file or directory comes into being (`reiserfs_create`,
    /// `reiserfs_mkdir`).
    pub(super) async fn reiser_create(&self, directory: FileId, id: FileId) -> Result<(), FsError> {
        let handle = self.reiser_begin_growing(3 * BALANCE_BLOCKS).await?;
        let made = self.reiser_make(directory, id).await;
        self.reiser_close(handle, Close::Batch).await;
        made
    }

    /// The items of a new file or directory and of its name (`reiserfs_new_inode`,
    /// `reiserfs_add_entry`).
    async fn reiser_make(&self, directory: FileId, id: FileId) -> Result<(), FsError> {
        let (object, is_directory) = self.with(|s| {
            let file = &mut s.files[id.idx()];
            let is_directory = file.directory.is_some();
            file.buffers.present = !is_directory;
            let v = &mut *s.volume;
            let parent = v.object(directory);
            let (number, locality) = (v.new_number(), v.locality_in(parent));
            let object = Object { locality, number };
            v.inode(id).object = object;
            (object, is_directory)
        });
        self.reiser_log_block(super::SUPERBLOCK).await;
        if is_directory {
            for item in directory_items(object) {
                self.reiser_change(Change::Put(item)).await?;
            }
            // The link count of the directory above.
            self.reiser_touch(directory).await?;
        } else {
            let stat = Item::new(Key::stat(object), STAT_BYTES);
            self.reiser_change(Change::Put(stat)).await?;
        }
        let (key, bytes) = self.reiser_entry(directory, id);
        self.reiser_change(Change::Put(Item::new(key, bytes)))
            .await?;
        self.reiser_touch(directory).await?;
        self.reiser_touch(id).await
    }

    /// Finds a name and its inode (`reiserfs_lookup`): reads the nodes on the way
    /// to both.
    pub(super) async fn reiser_look_up(
        &self,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        let (entry, _) = self.reiser_entry(directory, id);
        self.reiser_ready(|t, out| t.path(entry, out)).await?;
        let stat = Key::stat(self.reiser_with(|v| v.object(id)));
        self.reiser_ready(|t, out| t.path(stat, out)).await
    }

    /// Reads the leaves of a directory, up to 16 at a time (`reiserfs_readdir`,
    /// `search_by_key_reada`).
    pub(super) async fn reiser_list(&self, directory: FileId) -> Result<(), FsError> {
        let object = self.reiser_with(|v| v.object(directory));
        let mut key = Key::dots(object);
        loop {
            // The inner nodes one by one, the leaf with those behind it.
            let inner = |t: &super::Tree, out: &mut Vec<u64>| {
                t.path(key, out);
                out.pop();
            };
            self.reiser_ready(inner).await?;
            let (device, leaves) = self.reiser_with(|v| {
                let mut leaves = Vec::new();
                v.tree.siblings(key, READ_AHEAD_LEAVES, &mut leaves);
                (v.device, leaves)
            });
            let first = leaves[0];
            if !self.with(|s| s.files[device.idx()].uptodate.test(first)) {
                for leaf in leaves {
                    if !self.with(|s| s.files[device.idx()].uptodate.test(leaf)) {
                        self.submit_page(device, leaf).await;
                    }
                }
                self.wait_unlocked(device, first).await;
                self.reiser_read(first).await?;
            }
            match self.reiser_with(|v| v.tree.next_leaf_key(key)) {
                Some(next) if next.object == object => key = next,
                _ => return Ok(()),
            }
        }
    }

    /// An entry goes, and its inode has no name any more (`reiserfs_unlink`,
    /// `reiserfs_rmdir`).
    pub(super) async fn reiser_remove_entry(
        &self,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        let handle = self.reiser_begin(2 * BALANCE_BLOCKS + 2).await;
        let done = self.reiser_remove_name(directory, id).await;
        self.reiser_close(handle, Close::Batch).await;
        done
    }

    async fn reiser_remove_name(&self, directory: FileId, id: FileId) -> Result<(), FsError> {
        let (key, _) = self.reiser_entry(directory, id);
        self.reiser_change(Change::Remove(key)).await?;
        self.reiser_touch(id).await?;
        self.reiser_touch(directory).await?;
        self.reiser_save_link(id).await
    }
}
