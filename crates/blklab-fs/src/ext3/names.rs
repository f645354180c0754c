// SPDX-License-Identifier: MIT OR Apache-2.0
//! What names cost: creating, looking up, listing, removing entries
//! (fs/ext3/{namei,dir,ialloc}.c, 2.6.28).
//!
//! A lookup reads the directory's blocks up to the one that has the name, with
//! an index two of them, else in groups of eight; then the block of the inode.
//! An entry is made under one handle: inode bitmap, descriptor and inode, the
//! directory's block, its inode. With an index listings come in order of
//! hashes, one block after the other; else through read-ahead of the device.
//!
//! Left out: entries of files from before the run (only their inodes are read).

use super::Ext;
use super::directory::{Blocks, Entry, hash};
use crate::mount::{Mount, View};
use blklab_pagecache::{FileId, FsError, Host, RaState, Readahead};

/// Credits of a handle that makes a name.
const CREATE_CREDITS: u64 = 12 + 8 + 3;
/// Credits of a handle that removes one.
pub(super) const REMOVE_CREDITS: u64 = 2 * 12 + 64;
/// Blocks of a directory read at a time (`NAMEI_RA_SIZE`).
const SEARCH_BATCH: usize = 8;

impl View<'_, Ext> {
    /// Where an entry stands in its directory's listing.
    pub(super) fn ext_list_key(&self, id: FileId) -> u64 {
        let file = &self.files[id.idx()];
        if self.volume.options.dir_index {
            u64::from(hash(file.name))
        } else {
            u64::from(self.volume.nodes[id].entry_block.unwrap_or(0))
        }
    }

    /// The blocks of the disk that a search for a file in a directory reads;
    /// none for a directory without a place.
    fn searched(&mut self, directory: FileId, id: FileId) -> Vec<u64> {
        let name = self.files[id.idx()].name;
        let block = self.volume.nodes[id].entry_block;
        let own = self.volume.nodes[directory].blocks.as_ref();
        let searched = own.map_or(Vec::new(), |b| b.searched(name, block));
        self.blocks_of(directory, &searched)
    }

    /// Where pages of a directory lie.
    fn blocks_of(&self, directory: FileId, pages: &[u32]) -> Vec<u64> {
        let (ext, file) = (&*self.volume, &self.files[directory.idx()]);
        let places = pages.iter().map(|p| ext.block_of(file, u64::from(*p)));
        places.flatten().collect()
    }

    /// The group for a new file or directory, chosen by its parent.
    fn choose_group(&mut self, directory: FileId, id: FileId) -> Option<u64> {
        let is_directory = self.files[id.idx()].directory.is_some();
        let in_root = directory == self.root;
        let parent = u64::from(self.volume.nodes[directory].number);
        let ext = &mut *self.volume;
        let free = ext.space.free();
        match (is_directory, in_root) {
            (true, true) => ext.inodes.group_in_root(free),
            (true, false) => {
                let group = parent / ext.geometry.inodes_per_group;
                ext.inodes.group_below(group, free)
            }
            (false, _) => ext.inodes.group_of_file(parent, free),
        }
    }

    /// Gives a file an inode of a group.
    fn take_inode(&mut self, id: FileId, group: u64) -> bool {
        let ext = &mut *self.volume;
        let file = &mut self.state.files[id.idx()];
        let directory = file.directory.is_some();
        let Some(number) = ext.inodes.take(group, directory) else {
            return false;
        };
        file.buffers.present = ext.writes_by_buffer(directory);
        ext.nodes[id] = ext.inode(number, directory);
        ext.nodes[id].changed = true;
        true
    }

    /// Puts a file's name into its directory. Returns the directory's pages
    /// that this changes.
    fn add_entry(&mut self, directory: FileId, id: FileId) -> Vec<u32> {
        let index = self.volume.options.dir_index;
        let name = self.files[id.idx()].name;
        let grows = {
            let blocks = self.volume.nodes[directory].blocks.as_ref();
            blocks.is_some_and(|b| b.needs(name, index) > 0)
        };
        let others = if grows {
            self.entries_of(directory)
        } else {
            Vec::new()
        };
        let Some(blocks) = &mut self.volume.nodes[directory].blocks else {
            return Vec::new();
        };
        let change = blocks.add(name, index, others);
        for (file, block) in change.moved {
            self.volume.nodes[file].entry_block = Some(block);
        }
        self.volume.nodes[id].entry_block = Some(change.block);
        change.touched
    }

    fn entries_of(&self, directory: FileId) -> Vec<Entry> {
        let entries = self.files[directory.idx()].directory.as_ref();
        let entries = entries.map_or(&[][..], |d| &d.entries);
        let placed = entries.iter().filter_map(|file| {
            let f = &self.files[file.idx()];
            Some(Entry {
                file: *file,
                name: f.name,
                block: self.volume.nodes[*file].entry_block?,
            })
        });
        placed.collect()
    }
}

impl<H: Host> Mount<'_, H, Ext> {
    /// Makes an inode and its name (`ext3_create`, `ext3_mkdir`).
    pub(super) async fn ext_create(&self, directory: FileId, id: FileId) -> Result<(), FsError> {
        // That the name is not there is found out first.
        self.ext_search(directory, id).await?;
        let mut retries = 0;
        loop {
            let handle = self.begin(CREATE_CREDITS).await;
            let made = self.make_inode(directory, id).await;
            let made = match made {
                Ok(()) => self.make_entry(directory, id).await,
                Err(e) => Err(e),
            };
            self.end(handle);
            if made.is_err() && self.with(|s| s.volume.nodes[id].changed) {
                self.ext_remove_inode(id).await?;
                self.with(|s| {
                    s.volume.nodes.forget(id);
                    s.file(id).buffers.present = false;
                });
            }
            match made {
                Err(FsError::NoSpace) if self.ext_retry(&mut retries).await => {}
                made => return made,
            }
        }
    }

    /// Takes an inode; a directory gets its first block (`ext3_new_inode`).
    async fn make_inode(&self, directory: FileId, id: FileId) -> Result<(), FsError> {
        let group = loop {
            let group = self.with(|s| s.choose_group(directory, id));
            let group = group.ok_or(FsError::NoSpace)?;
            let bitmap = self.with(|s| s.volume.geometry.inode_bitmap(group));
            self.ext_read(bitmap).await?;
            self.change_block(bitmap).await;
            if self.with(|s| s.take_inode(id, group)) {
                break group;
            }
        };
        let (descriptor, block, alone) = self.with(|s| {
            let ext = &*s.volume;
            let number = u64::from(s.volume.nodes[id].number);
            let beside = ext.geometry.inodes_beside(number);
            (
                ext.geometry.descriptor(group),
                ext.geometry.inode_block(number),
                ext.inodes.alone(number, beside),
            )
        });
        self.change_block(descriptor).await;
        if !alone {
            self.ext_read_named(block).await?;
        }
        self.change_block(block).await;
        if self.with(|s| s.file(id).directory.is_some()) {
            self.ext_grow_directory(id).await?;
            self.with(|s| s.volume.nodes[id].blocks = Some(Box::new(Blocks::new())));
        }
        Ok(())
    }

    /// Gives a directory one more block.
    async fn ext_grow_directory(&self, id: FileId) -> Result<(), FsError> {
        let page = self.with(|s| s.file(id).extents.pages());
        self.ext_place(id, page).await?;
        for block in self.with(|s| s.blocks_of(id, &[page as u32])) {
            self.change_block(block).await;
        }
        Ok(())
    }

    /// Puts the name into the directory (`ext3_add_entry`).
    async fn make_entry(&self, directory: FileId, id: FileId) -> Result<(), FsError> {
        // Blocks of an attempt that found the volume full are used first.
        while self.with(|s| {
            let (index, name) = (s.volume.options.dir_index, s.file(id).name);
            let file = &s.files[directory.idx()];
            let needed = s.volume.nodes[directory].blocks.as_ref();
            let needed = needed.map_or(0, |b| b.len() + b.needs(name, index));
            file.extents.pages() < u64::from(needed)
        }) {
            self.ext_grow_directory(directory).await?;
        }
        let touched = self.with(|s| {
            let touched = s.add_entry(directory, id);
            s.blocks_of(directory, &touched)
        });
        for block in touched {
            self.ext_read_named(block).await?;
            self.change_block(block).await;
        }
        self.change_inode(directory).await
    }

    /// Reads what a search for a name in its directory reads (`ext3_find_entry`).
    async fn ext_search(&self, directory: FileId, id: FileId) -> Result<(), FsError> {
        let blocks = self.with(|s| s.searched(directory, id));
        for batch in blocks.chunks(self.search_batch(directory)) {
            self.ext_read_together(batch).await?;
        }
        self.with(|s| {
            let found = s.volume.nodes[id].entry_block;
            if let (Some(found), Some(own)) = (found, &mut s.volume.nodes[directory].blocks) {
                own.found(found);
            }
        });
        Ok(())
    }

    /// Blocks of a directory that a search submits together.
    fn search_batch(&self, directory: FileId) -> usize {
        let indexed = self.with(|s| {
            let blocks = s.volume.nodes[directory].blocks.as_ref();
            blocks.is_some_and(|b| b.is_indexed())
        });
        if indexed { 1 } else { SEARCH_BATCH }
    }

    /// Submits reads of blocks, then waits for them in order.
    async fn ext_read_together(&self, blocks: &[u64]) -> Result<(), FsError> {
        let (device, flags) =
            self.with(|s| (s.volume.device, s.volume.options.features.read_flags));
        for block in blocks {
            if !self.with(|s| s.file(device).cached.test(*block)) {
                self.submit_page_as(device, *block, flags).await;
            }
        }
        for block in blocks {
            self.ext_read_named(*block).await?;
        }
        Ok(())
    }

    /// Finds a file by its name and reads its inode (`ext3_lookup`).
    pub(super) async fn ext_look_up(&self, directory: FileId, id: FileId) -> Result<(), FsError> {
        self.ext_search(directory, id).await?;
        let block = self.with(|s| s.volume.inode_block(&s.volume.nodes[id]));
        self.ext_read_named(block).await
    }

    /// Reads a directory for listing (`ext3_readdir`).
    pub(super) async fn ext_list(&self, directory: FileId) -> Result<(), FsError> {
        let (device, blocks, hashed) = self.with(|s| {
            let own = s.volume.nodes[directory].blocks.as_ref();
            let listed = own.map_or(Vec::new(), |b| b.listed());
            let ext = &*s.volume;
            let hashed = ext.options.dir_index;
            let hashed = hashed && (listed.len() == 1 || own_is_indexed(s, directory));
            (ext.device, s.blocks_of(directory, &listed), hashed)
        });
        let mut ahead = RaState::new(self.config.read_ahead_pages());
        for block in blocks {
            if !hashed {
                self.read_ahead_of(device, &mut ahead, block).await;
            }
            self.ext_read_named(block).await?;
        }
        Ok(())
    }

    /// Reads ahead on the device, as a sequential reader of it would.
    async fn read_ahead_of(&self, device: FileId, ahead: &mut RaState, block: u64) {
        let which = self.config.features.readahead;
        if which == Readahead::TwoWindow {
            let congested = self.host.read_congested();
            for window in ahead.two_window(block, 1, congested).into_iter().flatten() {
                let read = self.read_window(device, window).await;
                ahead.note_read(window.pages, read);
            }
            return;
        }
        let window = self.with(|s| {
            let file = s.file(device);
            let cached = file.cached.test(block);
            let marked = cached && file.marker.clear(block..block + 1) > 0;
            if cached && !marked {
                None
            } else {
                ahead.on_demand(which, block, 1, marked, file)
            }
        });
        if let Some(window) = window {
            self.read_window(device, window).await;
        }
        ahead.prev = block;
    }

    /// Removes a name; the inode goes to the list of orphans
    /// (`ext3_unlink`, `ext3_rmdir`).
    pub(super) async fn ext_remove_entry(
        &self,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        // Whether a directory is empty is seen in its blocks.
        let own = self.with(|s| {
            let blocks = s.volume.nodes[id].blocks.as_ref();
            let listed = blocks.map_or(Vec::new(), |b| b.listed());
            s.blocks_of(id, &listed)
        });
        for block in own {
            self.ext_read_named(block).await?;
        }
        let block = self.with(|s| {
            let page = s.volume.nodes[id].entry_block;
            let blocks = page.map_or(Vec::new(), |p| s.blocks_of(directory, &[p]));
            blocks.first().copied()
        });
        if let Some(block) = block {
            self.ext_read_named(block).await?;
        }
        let handle = self.begin(REMOVE_CREDITS).await;
        if let Some(block) = block {
            self.change_block(block).await;
        }
        let times = self.change_inode(directory).await;
        let orphan = self.change_orphan(id).await;
        self.end(handle);
        times.and(orphan)?;
        self.with(|s| {
            let (name, page) = (s.file(id).name, s.volume.nodes[id].entry_block);
            if let (Some(page), Some(blocks)) = (page, &mut s.volume.nodes[directory].blocks) {
                blocks.remove(name, page);
            }
        });
        Ok(())
    }

    /// An inode enters or leaves the list of orphans, which begins in the
    /// superblock (`ext3_orphan_add`, `ext3_orphan_del`).
    pub(super) async fn change_orphan(&self, id: FileId) -> Result<(), FsError> {
        if self.has_journal() {
            self.change_block(0).await;
        }
        self.change_inode(id).await
    }
}

fn own_is_indexed(s: &View<'_, Ext>, directory: FileId) -> bool {
    let blocks = s.volume.nodes[directory].blocks.as_ref();
    blocks.is_some_and(|b| b.is_indexed())
}
