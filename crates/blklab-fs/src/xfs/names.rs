// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names and inodes: creation, lookup, listing, removal, truncation
//! (fs/xfs/xfs_vnodeops.c, 2.6.26).

use super::costs;
use super::directory::Growth;
use super::transaction::Transaction;
use super::volume::Volume;
use crate::mount::{Mount, View};
use blklab_pagecache::{FileId, FsError, Host, State};
use std::ops::Range;

/// Blocks of a directory that are read ahead together.
const READ_AHEAD: usize = 8;

impl View<'_, Volume> {
    /// The number of a file's inode.
    pub(super) fn inode_of(&self, id: FileId) -> u32 {
        self.volume.numbers[id].expect("a file of the volume has an inode")
    }

    /// Makes a file or directory known to the volume and to its directory.
    /// Returns the buffers touched, in the cache or not, and the bytes logged.
    fn new_entry(&mut self, parent: FileId, id: FileId) -> Option<(Vec<u32>, u64)> {
        let name = self.files[id.idx()].name;
        let is_directory = self.files[id.idx()].directory.is_some();
        let home = self.inode_of(parent);
        let v = &mut *self.volume;
        if !v.space.has(8) {
            return None;
        }
        let (index, mut touched, chunk) = v.new_inode(Some(home), is_directory)?;
        let mut bytes = if is_directory {
            costs::MKDIR
        } else {
            costs::CREATE
        };
        if is_directory {
            v.dirs.entry(id).or_default();
        }
        let mut fresh = Vec::new();
        if chunk {
            bytes += costs::CHUNK;
            fresh.extend(v.inodes.chunk_of(index).clusters);
        }
        loop {
            let growth = v.dir(parent).growth(name);
            if growth == Growth::None {
                break;
            }
            let block = v.directory_block(home, &mut touched)?;
            bytes += costs::ALLOCATE;
            fresh.push(block);
            let dir = v.dir(parent);
            match growth {
                Growth::Hashes => dir.hashes.push(block),
                _ => dir.add_block(block),
            }
        }
        let dir = v.dir(parent);
        let block = dir.add(name);
        touched.extend(dir.path(name, block));
        v.inodes.get(index).entry_block = block;
        self.volume.numbers[id] = Some(index);
        fresh.into_iter().for_each(|b| self.cache_buffer(b));
        Some((touched, bytes))
    }

    /// Puts a buffer that is made anew into the cache.
    fn cache_buffer(&mut self, buffer: u32) {
        let v = &mut *self.volume;
        let (device, pages) = (v.device, v.pages_of(buffer));
        let State {
            files,
            lru,
            nr_cached,
            ..
        } = &mut *self.state;
        super::volume::Pages {
            files,
            lru,
            nr_cached,
        }
        .cache(device, pages);
    }

    /// Gives a file its inode and its pages a place, as an earlier run left
    /// them.
    pub(super) fn lay_out_xfs(&mut self, id: FileId, pages: u64) -> Option<()> {
        let parent = self.files[id.idx()].parent;
        self.new_entry(parent, id)?;
        let index = self.inode_of(id);
        while self.files[id.idx()].extents.pages() < pages {
            let done = self.files[id.idx()].extents.pages();
            let goal = self.goal(id, index, done);
            let v = &mut *self.volume;
            if !v.space.has(1) {
                return None;
            }
            let (block, count) = v.space.take_near(goal, pages - done)?;
            let sector = v.geometry.sector(block);
            self.files[id.idx()].extents.append(sector, count);
        }
        Some(())
    }

    /// Gives all blocks of a file back. Returns the buffers touched.
    fn free_xfs_blocks(&mut self, id: FileId) -> Vec<u32> {
        let index = self.inode_of(id);
        let extents = std::mem::take(&mut self.files[id.idx()].extents);
        let mut touched = Vec::new();
        let v = &mut *self.volume;
        v.drop_spare(index, &mut touched);
        let delayed = std::mem::take(&mut v.inodes.get(index).delayed);
        v.space.release(u64::from(delayed));
        for run in extents.runs() {
            v.give_back(v.geometry.block(run.sector), run.pages, &mut touched);
        }
        touched
    }
}

impl<H: Host> Mount<'_, H, Volume> {
    /// A file or directory comes into being, in its directory (`xfs_create`,
    /// `xfs_mkdir`).
    pub(super) async fn create_xfs(&self, parent: FileId, id: FileId) -> Result<(), FsError> {
        let mut t = self.xfs_begin(costs::RESERVE_NAMES).await;
        let Some((touched, bytes)) = self.with(|s| s.new_entry(parent, id)) else {
            self.xfs_cancel(t);
            return Err(FsError::NoSpace);
        };
        self.xfs_change(&mut t, &touched).await;
        self.join_files(&mut t, &[parent, id]);
        (t.bytes, t.counters) = (bytes, true);
        self.touched_now(&[parent, id]);
        self.xfs_commit(t).await;
        self.mark_inodes_dirty(&[parent, id]);
        Ok(())
    }

    fn join_files(&self, t: &mut Transaction, files: &[FileId]) {
        for id in files {
            t.join_inode(self.with(|s| s.inode_of(*id)));
        }
    }

    /// Finds an entry and its inode (`xfs_lookup`): reads what is cold.
    pub(super) async fn look_up_xfs(&self, parent: FileId, id: FileId) {
        let path = self.with(|s| {
            let name = s.files[id.idx()].name;
            let index = s.inode_of(id);
            let v = &mut *s.volume;
            let block = v.inodes.get(index).entry_block;
            let mut path: Vec<u32> = v.dir(parent).path(name, block).collect();
            path.push(v.inodes.cluster_of(index));
            path
        });
        for buffer in path {
            self.read_buffer(buffer).await;
        }
    }

    /// Reads a directory's blocks, some ahead (`xfs_readdir`,
    /// `xfs_dir2_leaf_getdents`).
    pub(super) async fn list_xfs(&self, directory: FileId) {
        let blocks: Vec<u32> = self.with(|s| {
            let blocks = &s.volume.dir(directory).blocks;
            blocks.iter().filter_map(|b| b.buffer).collect()
        });
        for (i, buffer) in blocks.iter().enumerate() {
            if i % READ_AHEAD == 0 {
                for ahead in &blocks[i..blocks.len().min(i + READ_AHEAD)] {
                    self.start_read(*ahead).await;
                }
            }
            self.read_buffer(*buffer).await;
        }
    }

    async fn start_read(&self, buffer: u32) {
        let (device, pages, sector, cold) = self.with(|s| {
            let v = &mut *s.volume;
            let (device, pages) = (v.device, v.pages_of(buffer));
            let sector = v.geometry.sector(pages.start);
            let file = s.file(device);
            let cold = !file.uptodate.test(pages.start) && !file.locked.test(pages.start);
            (device, pages, sector, cold)
        });
        if cold {
            self.submit_metadata_read(device, pages, sector).await;
        }
    }

    /// A file's entry goes (`xfs_remove`).
    pub(super) async fn remove_entry_xfs(&self, parent: FileId, id: FileId) {
        let mut t = self.xfs_begin(costs::RESERVE_NAMES).await;
        let touched = self.with(|s| {
            let name = s.files[id.idx()].name;
            let index = s.inode_of(id);
            let v = &mut *s.volume;
            let block = v.inodes.get(index).entry_block;
            let dir = v.dir(parent);
            let mut touched: Vec<u32> = dir.path(name, block).collect();
            let back = dir.remove(name, block);
            touched.retain(|b| !back.contains(b));
            for buffer in back {
                v.free_buffer(buffer, &mut touched);
            }
            // The list of inodes without a name.
            let ag = v.geometry.ag_of(v.inodes.block_of(index));
            touched.push(v.groups[ag as usize].agi);
            touched
        });
        self.xfs_change(&mut t, &touched).await;
        self.join_files(&mut t, &[parent, id]);
        t.bytes = costs::REMOVE;
        self.touched_now(&[parent, id]);
        self.xfs_commit(t).await;
        self.mark_inodes_dirty(&[parent, id]);
    }

    /// A file is cut to nothing (`xfs_itruncate_finish`, later
    /// `xfs_itruncate_extents`).
    pub(super) async fn truncate_xfs(&self, id: FileId) {
        let mut t = self.xfs_begin(costs::RESERVE_WRITE).await;
        let touched = self.with(|s| s.free_xfs_blocks(id));
        self.xfs_change(&mut t, &touched).await;
        self.join_files(&mut t, &[id]);
        (t.bytes, t.counters) = (costs::TRUNCATE, !touched.is_empty());
        self.xfs_commit(t).await;
    }

    /// A removed file's inode is freed (`xfs_inactive`, `xfs_ifree`).
    pub(super) async fn remove_inode_xfs(&self, id: FileId) {
        self.truncate_xfs(id).await;
        let index = self.with(|s| s.inode_of(id));
        let mut t = self.xfs_begin(costs::RESERVE_NAMES).await;
        let (touched, stays) = self.with(|s| {
            let v = &mut *s.volume;
            v.dirs.remove(&id);
            let mut freed = v.free_inode(index);
            let inode = v.inodes.get(index);
            (inode.spare_blocks, inode.delayed) = (0, 0);
            freed.0.dedup();
            freed
        });
        self.xfs_change(&mut t, &touched).await;
        if stays {
            t.join_inode(index);
        }
        (t.bytes, t.counters) = (costs::FREE_INODE, true);
        self.xfs_commit(t).await;
    }

    /// Pages are dropped whatever their state: those without a place are no
    /// longer promised one.
    pub(super) fn invalidate_xfs(&self, id: FileId, run: Range<u64>) {
        self.with(|s| {
            let lost = s.delayed_pages(id, run);
            let index = s.inode_of(id);
            let v = &mut *s.volume;
            let inode = v.inodes.get(index);
            let lost = (lost as u32).min(inode.delayed);
            inode.delayed -= lost;
            v.space.release(u64::from(lost));
        });
    }
}
