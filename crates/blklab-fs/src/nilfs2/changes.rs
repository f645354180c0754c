// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a change makes dirty: blocks of metadata, virtual block numbers, B-tree
//! nodes, the queue of the constructor. Nothing here sleeps; what must be in
//! memory was read before ([`super::reads`]).

use super::Inode;
use super::Nilfs;
use super::segments::NO_NUMBER;
use super::tree::{DIRECT_BLOCKS, NODE_CHILDREN};
use crate::mount::View;
use blklab_pagecache::FileId;
use blklab_types::{Jiffies, PAGE_BYTES, PAGE_SECTORS};
use std::ops::Range;

impl View<'_, Nilfs> {
    /// A page of a metadata file is dirty (`nilfs_mdt_mark_buffer_dirty`). Such
    /// files stand on no list.
    pub(super) fn nilfs_dirty_meta(&mut self, id: FileId, page: u64) {
        let run = page..page + 1;
        let file = &mut self.state.files[id.idx()];
        if file.dirty.test(page) {
            return;
        }
        if !file.cached.test(page) {
            self.state.nr_cached += file.cached.set(run.clone());
            self.state.lru.add(id, run.clone());
        }
        file.uptodate.set(run.clone());
        self.state.lru.touch(file, run.clone());
        self.state.nr_dirty += file.dirty.set(run);
        file.size_bytes = file.size_bytes.max((page + 1) * PAGE_BYTES);
        self.state.count_dirtied(id, 1);
    }

    /// The block of a file's inode is dirty (`nilfs_mark_inode_dirty`).
    pub(super) fn nilfs_dirty_inode(&mut self, id: FileId) {
        let n = &mut *self.volume;
        let (meta, number) = (n.meta.inodes, u64::from(n.inode(id).number));
        let block = n.inode_table.block(number);
        self.nilfs_dirty_meta(meta, block);
    }

    /// The file is the constructor's concern (`nilfs_set_file_dirty`).
    pub(super) fn nilfs_queue(&mut self, id: FileId) {
        let n = &mut *self.volume;
        if !std::mem::replace(&mut n.inode(id).queued, true) {
            n.queue.push(id);
        }
    }

    /// Gives a new file or directory its inode (`nilfs_ifile_create_inode`).
    pub(super) fn nilfs_new_inode(&mut self, id: FileId, now: Jiffies) {
        let directory = self.files[id.idx()].directory.is_some();
        let n = &mut *self.volume;
        let (number, _) = n.inode_table.take(1);
        *n.inode(id) = Inode {
            number: number as u32,
            fresh: true,
            free_bytes: directory.then(Vec::new),
            ..Inode::default()
        };
        let meta = n.meta.inodes;
        let blocks = [
            n.inode_table.descriptor_block(number),
            n.inode_table.bitmap_block(number),
            n.inode_table.block(number),
        ];
        for block in blocks {
            self.nilfs_dirty_meta(meta, block);
        }
        if directory {
            self.nilfs_grow_directory(id, now);
        }
        self.nilfs_queue(id);
    }

    /// Adds an empty page to a directory.
    fn nilfs_grow_directory(&mut self, id: FileId, now: Jiffies) {
        let page = self.files[id.idx()].eof_pages();
        if let Some(free) = &mut self.volume.inode(id).free_bytes {
            free.push(PAGE_BYTES as u16);
        }
        self.files[id.idx()].size_bytes = (page + 1) * PAGE_BYTES;
        self.nilfs_dirty_data(id, page..page + 1, now);
    }

    /// Puts an entry into a directory: into the first page with room
    /// (`nilfs_add_link`).
    pub(super) fn nilfs_add_entry(&mut self, directory: FileId, id: FileId, now: Jiffies) {
        let bytes = self.nilfs_entry_bytes(id);
        let page = self.nilfs_entry_page(directory, bytes);
        if page == self.files[directory.idx()].eof_pages() {
            self.nilfs_grow_directory(directory, now);
        }
        self.nilfs_change_entry(directory, page, |free| free.saturating_sub(bytes), now);
        self.volume.inode(id).entry_page = page as u32;
    }

    /// Takes an entry out of its directory (`nilfs_delete_entry`).
    pub(super) fn nilfs_take_entry(&mut self, directory: FileId, id: FileId, now: Jiffies) {
        let bytes = self.nilfs_entry_bytes(id);
        let page = u64::from(self.volume.inode(id).entry_page);
        self.nilfs_change_entry(directory, page, |free| free.saturating_add(bytes), now);
    }

    fn nilfs_change_entry(
        &mut self,
        directory: FileId,
        page: u64,
        change: impl FnOnce(u16) -> u16,
        now: Jiffies,
    ) {
        if let Some(free) = &mut self.volume.inode(directory).free_bytes
            && let Some(free) = free.get_mut(page as usize)
        {
            *free = change(*free);
        }
        self.nilfs_dirty_data(directory, page..page + 1, now);
        self.nilfs_dirty_inode(directory);
    }

    /// Bytes of a file's entry: a header of 12 bytes and the name, in eights.
    fn nilfs_entry_bytes(&self, id: FileId) -> u16 {
        (12 + u16::from(self.files[id.idx()].name.bytes)).next_multiple_of(8)
    }

    /// The page that a new entry goes to.
    fn nilfs_entry_page(&mut self, directory: FileId, bytes: u16) -> u64 {
        let free = self.volume.inode(directory).free_bytes.as_ref();
        let pages = free.map_or(0, Vec::len);
        let room = free.and_then(|f| f.iter().position(|b| *b >= bytes));
        room.unwrap_or(pages) as u64
    }

    /// Pages of a file or a directory are dirty: numbers for those without.
    /// Returns how many were clean.
    pub(super) fn nilfs_dirty_data(&mut self, id: FileId, run: Range<u64>, now: Jiffies) -> u64 {
        self.nilfs_number(id, run.clone());
        let new = self.dirty(id, run, now);
        self.nilfs_changed(id, new);
        new
    }

    /// So many pages of a file became dirty.
    pub(super) fn nilfs_changed(&mut self, id: FileId, pages: u64) {
        self.volume.dirty_blocks += pages;
        self.nilfs_queue(id);
    }

    /// Gives virtual block numbers to the pages of a run that have none.
    pub(super) fn nilfs_number(&mut self, id: FileId, run: Range<u64>) {
        let mut page = run.start;
        while page < run.end {
            let known = self.volume.inode(id).numbers.map(page);
            if let Some((_, pages)) = known {
                page += pages;
                continue;
            }
            let (first, pages) = self.nilfs_take_numbers(1);
            let inode = self.volume.inode(id);
            inode
                .numbers
                .remap(page, first * PAGE_SECTORS, pages, |_| {});
            page += pages;
        }
        let pages = self.volume.inode(id).numbers.pages();
        self.nilfs_grow_tree(id, pages);
        self.nilfs_dirty_paths(id, run);
    }

    /// Adds the B-tree nodes that a file of so many pages needs
    /// (`nilfs_btree_insert`).
    pub(super) fn nilfs_grow_tree(&mut self, id: FileId, pages: u64) {
        if pages <= DIRECT_BLOCKS {
            return;
        }
        let n = &mut *self.volume;
        let mut tree = n.inode(id).tree.take().unwrap_or_default();
        let mut new = Vec::new();
        tree.grow(pages, || {
            let node = n.free_nodes.pop().unwrap_or_else(|| {
                n.node_numbers.push(NO_NUMBER);
                n.node_numbers.len() as u32 - 1
            });
            new.push(node);
            node
        });
        let physical = id == n.meta.translation;
        n.inode(id).tree = Some(tree);
        for node in new {
            self.nilfs_new_node(node, !physical);
        }
    }

    fn nilfs_new_node(&mut self, node: u32, numbered: bool) {
        if numbered {
            let (number, _) = self.nilfs_take_numbers(1);
            self.volume.node_numbers[node as usize] = number as u32;
        }
        let meta = self.volume.meta.nodes;
        self.nilfs_dirty_meta(meta, u64::from(node));
    }

    /// The lowest B-tree nodes above pages are dirty.
    pub(super) fn nilfs_dirty_paths(&mut self, id: FileId, run: Range<u64>) {
        let mut page = run.start;
        while page < run.end {
            self.nilfs_dirty_path(id, page);
            page = (page / NODE_CHILDREN + 1) * NODE_CHILDREN;
        }
    }

    /// The lowest B-tree node above a page is dirty (`nilfs_btree_propagate`).
    fn nilfs_dirty_path(&mut self, id: FileId, page: u64) {
        let n = &mut *self.volume;
        let node = n.inode(id).tree.as_ref().and_then(|t| t.path(page).next());
        let meta = n.meta.nodes;
        if let Some(node) = node {
            self.nilfs_dirty_meta(meta, u64::from(node));
        }
    }

    /// Takes virtual block numbers (`nilfs_dat_prepare_alloc`).
    pub(super) fn nilfs_take_numbers(&mut self, most: u64) -> (u64, u64) {
        let (first, count) = self.volume.translation.take(most);
        for number in first..first + count {
            self.nilfs_dirty_number(number, true);
        }
        (first, count)
    }

    /// A translation entry changes; `bitmap`: it is taken or given back.
    pub(super) fn nilfs_dirty_number(&mut self, number: u64, bitmap: bool) {
        let n = &mut *self.volume;
        let (meta, t) = (n.meta.translation, &n.translation);
        let blocks = [
            t.block(number),
            t.bitmap_block(number),
            t.descriptor_block(number),
        ];
        for block in &blocks[..if bitmap { 3 } else { 1 }] {
            self.nilfs_dirty_meta(meta, *block);
        }
    }

    /// Gives a virtual block number back (`nilfs_dat_freev`).
    pub(super) fn nilfs_free_number(&mut self, number: u64) {
        self.volume.translation.give(number);
        self.nilfs_dirty_number(number, true);
    }

    /// A number's block is no longer part of the filesystem
    /// (`nilfs_dat_prepare_end`). If it lies in a segment, its entry keeps the time
    /// of that until the segment is cleaned.
    fn nilfs_end_number(&mut self, number: u64, placed: bool) {
        if placed {
            self.nilfs_dirty_number(number, false);
        } else {
            self.nilfs_free_number(number);
        }
    }

    /// Frees all blocks of a file (`nilfs_bmap_truncate`).
    pub(super) fn nilfs_free_blocks(&mut self, id: FileId) {
        let inode = self.volume.inode(id);
        let (numbers, tree) = (std::mem::take(&mut inode.numbers), inode.tree.take());
        let places = std::mem::take(&mut self.files[id.idx()].extents);
        for run in numbers.runs() {
            for i in 0..run.pages {
                let placed = places.map(run.page + i).is_some();
                self.nilfs_end_number(run.sector / PAGE_SECTORS + i, placed);
            }
        }
        for node in tree.iter().flat_map(|t| t.nodes()) {
            self.nilfs_free_node(node);
        }
    }

    fn nilfs_free_node(&mut self, node: u32) {
        let n = &mut *self.volume;
        let meta = n.meta.nodes;
        let number = std::mem::replace(&mut n.node_numbers[node as usize], NO_NUMBER);
        n.free_nodes.push(node);
        let run = u64::from(node)..u64::from(node) + 1;
        let file = &mut self.state.files[meta.idx()];
        let placed = file.extents.map(run.start).is_some();
        file.extents.punch(run.clone(), |_| {});
        self.state.nr_dirty -= file.dirty.clear(run.clone());
        // A node on its way to the disk stays in memory until it is there.
        if !file.writeback.test(run.start) {
            self.state.nr_cached -= self.state.lru.forget_pages(file, run);
        }
        if number != NO_NUMBER {
            self.nilfs_end_number(u64::from(number), placed);
        }
    }

    /// Frees a file's inode and blocks (`nilfs_ifile_delete_inode`).
    pub(super) fn nilfs_free_inode(&mut self, id: FileId) {
        self.nilfs_free_blocks(id);
        let n = &mut *self.volume;
        let number = u64::from(n.inode(id).number);
        n.inode_table.give(number);
        let meta = n.meta.inodes;
        let blocks = [
            n.inode_table.descriptor_block(number),
            n.inode_table.bitmap_block(number),
            n.inode_table.block(number),
        ];
        let entry_page = n.inode(id).entry_page;
        let queued = n.inode(id).queued;
        *n.inode(id) = Inode {
            entry_page,
            queued,
            ..Inode::default()
        };
        for block in blocks {
            self.nilfs_dirty_meta(meta, block);
        }
    }

    /// Gives a file its first pages a place before the run.
    pub(super) fn nilfs_lay_out(&mut self, id: FileId, pages: u64) -> bool {
        let room = self.volume.segments.room();
        if pages + pages / 64 + 64 > room {
            return false;
        }
        self.nilfs_new_inode(id, Jiffies(0));
        let root = self.root;
        self.nilfs_add_entry(root, id, Jiffies(0));
        if pages > 0 {
            self.nilfs_number(id, 0..pages);
        }
        let plan = super::log::Plan {
            moved: vec![(id, 0..pages)],
            ..super::log::Plan::checkpoint()
        };
        let log = self.nilfs_collect(&plan, blklab_types::Time::ZERO);
        self.nilfs_finish(&log, false, &mut Vec::new());
        let n = &mut *self.volume;
        (n.dirty_blocks, n.constructor.unclosed) = (0, None);
        self.nilfs_put_off_lists(root);
        true
    }

    /// A file without dirty pages need not stand on a list.
    pub(super) fn nilfs_put_off_lists(&mut self, id: FileId) {
        let file = &mut self.files[id.idx()];
        if file.dirty.count() == 0 && !file.syncing {
            file.inode_dirty = false;
            self.lists_of(id).remove(id);
        }
    }
}
