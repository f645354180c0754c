// SPDX-License-Identifier: MIT OR Apache-2.0
//! A volume: how it is made, and how files on it get inodes and blocks.

use super::allocation::{Space, coloured_goal};
use super::directory::Blocks;
use super::inodes::Inodes;
use super::layout::{Geometry, ROOT_BLOCKS, ROOT_INODE, leaf_index, new_indirects};
use super::{Ext, ExtOptions, Inode};
use crate::jbd::Journal;
use crate::mount::{PerFile, View};
use blklab_pagecache::{Extents, File, FileId, FreeSpace};
use blklab_types::PAGE_BYTES;
use std::ops::Range;

impl Ext {
    /// A volume on these sectors, whose metadata pages are `device`.
    pub(crate) fn new(
        options: ExtOptions,
        sectors: Range<u64>,
        device: FileId,
    ) -> Result<Ext, String> {
        let geometry = Geometry::new(sectors, &options)?;
        let mut inodes = Inodes::new(&geometry, options.seed);
        if options.directory_group > 0 {
            // The directory that holds the files from before the run.
            inodes.take(u64::from(options.directory_group), true);
        }
        Ok(Ext {
            options,
            space: Space::new(&geometry),
            inodes,
            journal: Journal::new(options.journal_rules(), geometry.journal_blocks, |block| {
                geometry.sector(geometry.journal_block(block))
            }),
            geometry,
            device,
            nodes: PerFile::default(),
        })
    }

    /// The file of metadata pages.
    pub(crate) fn device_file(&self) -> File {
        let mut file = File::new(self.geometry.blocks * PAGE_BYTES);
        file.extents = Extents::raw(self.geometry.start_sector, self.geometry.blocks);
        file.buffers.present = true;
        file.metadata = true;
        file
    }

    /// The root directory: its inode, its block and those of lost+found.
    pub(crate) fn make_root(&mut self, id: FileId, root: &mut File) {
        let mut inode = self.inode(ROOT_INODE, true);
        inode.blocks = Some(Box::new(Blocks::new()));
        let first = self.geometry.first_data(0);
        for block in first..first + ROOT_BLOCKS {
            let got = self.space.allocate(&self.geometry, id, None, block);
            debug_assert_eq!(got, Some(block), "the volume is empty");
        }
        root.extents.append(self.geometry.sector(first), 1);
        inode.last_block = first as u32;
        self.nodes[id] = inode;
    }

    /// Whether pages of files, or of directories, are written through buffers.
    pub(super) fn writes_by_buffer(&self, directory: bool) -> bool {
        !directory && (self.options.ordered() || self.options.journals_data())
    }

    /// An inode of that number. The data of directories are metadata.
    pub(super) fn inode(&self, number: u64, directory: bool) -> Inode {
        let ordered = self.options.ordered() && !directory;
        let data_journal = self.options.journals_data() && !directory;
        Inode {
            ordered,
            data_journal,
            number: number as u32,
            ..Inode::default()
        }
    }

    /// Gives a file from before the run its inode: the lowest free one of the
    /// directory's group, or of one behind it.
    fn inode_before_run(&mut self) -> Option<Inode> {
        let groups = self.geometry.groups();
        let first = u64::from(self.options.directory_group);
        let mut behind = (0..groups).map(|i| (first + i) % groups);
        let number = behind.find_map(|group| self.inodes.take(group, false))?;
        Some(self.inode(number, false))
    }

    /// The block that holds an inode.
    pub(super) fn inode_block(&self, inode: &Inode) -> u64 {
        self.geometry.inode_block(u64::from(inode.number))
    }

    /// The group of an inode.
    pub(super) fn group_of(&self, inode: &Inode) -> u64 {
        u64::from(inode.number) / self.geometry.inodes_per_group
    }

    /// Where the next block of a file should lie (`ext3_find_goal`).
    pub(super) fn goal(&self, inode: &Inode, pid: u32) -> u64 {
        match inode.last_block {
            0 => coloured_goal(self.group_of(inode), pid),
            last => u64::from(last) + 1,
        }
    }

    /// Takes a block of pointers or data.
    fn take(&mut self, id: FileId, directory: bool, pid: u32) -> Option<u64> {
        let goal = self.goal(&self.nodes[id], pid);
        let inode = &mut self.nodes[id];
        let window = if directory {
            None
        } else {
            Some(&mut inode.window)
        };
        let block = self.space.allocate(&self.geometry, id, window, goal)?;
        inode.last_block = u32::try_from(block).expect("a volume has 2^32 blocks at most");
        Some(block)
    }

    /// Takes the block of a file's next page, and the blocks of pointers that it
    /// needs before (`ext3_alloc_branch`). Returns it and how many of those there
    /// are. A block of pointers that is there already when the volume turns out to
    /// be full is used by the next attempt.
    pub(super) fn grow(&mut self, id: FileId, file: &mut File, pid: u32) -> Option<(u64, u64)> {
        let directory = file.directory.is_some();
        let page = file.extents.pages();
        let pointers = new_indirects(page);
        let there = match leaf_index(page) {
            Some(leaf) if self.nodes[id].leaves().len() as u64 > leaf => pointers,
            _ => 0,
        };
        for nth in there..pointers {
            let block = self.take(id, directory, pid)?;
            let own = self.nodes[id].pointers.get_or_insert_default();
            if nth + 1 == pointers {
                own.leaves.push(block);
            } else {
                own.uppers.push(block);
            }
        }
        let block = self.take(id, directory, pid)?;
        file.extents.append(self.geometry.sector(block), 1);
        Some((block, pointers))
    }

    /// The block of pointers to a page.
    pub(super) fn leaf(&self, id: FileId, page: u64) -> Option<u64> {
        self.nodes[id]
            .leaves()
            .get(leaf_index(page)? as usize)
            .copied()
    }

    /// The block of a file's page.
    pub(super) fn block_of(&self, file: &File, page: u64) -> Option<u64> {
        let (sector, _) = file.extents.map(page)?;
        Some(self.geometry.block_at(sector))
    }

    /// Free blocks and inodes.
    pub(super) fn free(&self) -> FreeSpace {
        FreeSpace::new(self.space.free().sum, self.inodes.free())
    }
}

impl View<'_, Ext> {
    /// Gives a file its inode and its first pages a place, as an earlier run
    /// of `fio` left them: metadata in the cache, nothing dirty. None if the
    /// volume is full.
    pub(super) fn ext_lay_out(&mut self, id: FileId, pages: u64) -> Option<()> {
        let ext = &mut *self.volume;
        let file = &mut self.state.files[id.idx()];
        ext.nodes[id] = ext.inode_before_run()?;
        file.buffers.present = ext.writes_by_buffer(false);
        let mut warm = vec![ext.inode_block(&ext.nodes[id])];
        let pid = ext.options.creator_pid;
        while file.extents.pages() < pages {
            let (block, _) = ext.grow(id, file, pid)?;
            let bitmap = ext.geometry.block_bitmap(ext.space.group_of(block));
            if warm.last() != Some(&bitmap) {
                warm.push(bitmap);
            }
        }
        let inode = &mut ext.nodes[id];
        warm.extend(inode.leaves());
        warm.extend(inode.upper());
        ext.space.discard(&mut inode.window);
        let device = ext.device;
        for block in warm {
            self.cache_block((device, block));
        }
        Some(())
    }

    /// The last writer of a file closes it (`ext3_release_file`): its window goes.
    pub(super) fn ext_close_written(&mut self, id: FileId) {
        if self.files[id.idx()].nr_open == 0 {
            let ext = &mut *self.volume;
            ext.space.discard(&mut ext.nodes[id].window);
        }
    }
}
