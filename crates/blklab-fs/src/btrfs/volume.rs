// SPDX-License-Identifier: MIT OR Apache-2.0
//! The volume: its trees, its blocks, its inodes, and changes in them that do
//! not sleep.

use super::items::{self, Change, Of, What, of_file};
use super::options::BtrfsOptions;
use super::progress::{Commit, WriteOut};
use super::space::{Space, Use};
use super::tree::{Blocks, NO_BLOCK, Tree};
use crate::mount::View;
use blklab_pagecache::{Extents, File, FileId, FreeSpace, PageBits};
use blklab_types::{Jiffies, PAGE_BYTES, PAGE_SECTORS};
use std::ops::Range;

/// What a file has on such a volume.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Inode {
    /// Its number.
    pub(super) object: u32,
    /// Its place in its directory's listing.
    pub(super) index: u32,
    /// The index that the next entry gets, if it is a directory.
    pub(super) next_index: u32,
    /// The transaction that changed it last (`last_trans`).
    pub(super) changed: u32,
    pub(super) atime_s: u32,
    pub(super) mtime_s: u32,
}

/// Tree blocks: where they come from, and what became of them.
#[derive(Debug)]
pub(super) struct BlockPool {
    pub(super) space: Space,
    /// The running transaction (its `transid`).
    pub(super) transaction: u32,
    /// Pages of blocks that were written since they were placed.
    pub(super) written: PageBits,
    pub(super) node_pages: u64,
    /// Pages whose items in the extent tree are to come (true) or to go.
    pub(super) references: Vec<(u64, bool)>,
    /// Blocks that became dirty (true) or were given up before they were
    /// written, in order.
    events: Vec<(u32, bool)>,
    /// There was no room for a block since the last commit.
    pub(super) full: bool,
}

impl BlockPool {
    /// Whether a block may be changed where it is (`should_cow_block` is false).
    fn is_own(&self, block: u32, generation: u32) -> bool {
        generation == self.transaction && !self.written.test(u64::from(block))
    }

    fn pages(&self, block: u32) -> Range<u64> {
        u64::from(block)..u64::from(block) + self.node_pages
    }
}

impl Blocks for BlockPool {
    fn own(&mut self, block: u32, generation: u32) -> (u32, u32) {
        if block != NO_BLOCK && self.is_own(block, generation) {
            return (block, generation);
        }
        let Some(run) = self.space.take(Use::Metadata, self.node_pages) else {
            // Nothing is left: it is written over.
            self.full = true;
            return (block, generation);
        };
        self.written.clear(run.clone());
        self.references.push((run.start, true));
        self.events.push((run.start as u32, true));
        if block != NO_BLOCK {
            self.release(block, generation);
        }
        (run.start as u32, self.transaction)
    }

    fn release(&mut self, block: u32, generation: u32) {
        if block == NO_BLOCK {
            return;
        }
        self.references.push((u64::from(block), false));
        if self.is_own(block, generation) {
            self.events.push((block, false));
            self.space.free_at_once(self.pages(block));
        } else {
            self.space.free(self.pages(block));
        }
    }
}

/// A volume.
#[derive(Debug)]
pub struct Btrfs {
    pub(super) options: BtrfsOptions,
    pub(super) start_sector: u64,
    /// The file of tree blocks.
    pub(super) device: FileId,
    pub(super) pool: BlockPool,
    pub(super) trees: [Tree; 4],
    /// What fsync wrote since the last commit.
    pub(super) log: Tree,
    pub(super) inodes: Vec<Inode>,
    next_object: u32,
    pub(super) commit: Commit,
    pub(super) out: WriteOut,
}

impl Btrfs {
    pub(super) fn new(
        options: BtrfsOptions,
        sectors: Range<u64>,
        device: FileId,
    ) -> Result<Btrfs, String> {
        let pages = sectors.end.saturating_sub(sectors.start) / PAGE_SECTORS;
        let clusters = [options.data_cluster_bytes, options.metadata_cluster_bytes];
        let supers = options.super_pages();
        let space = Space::new(pages, options.metadata_dup, clusters, supers)
            .filter(|_| pages < u64::from(u32::MAX))
            .ok_or("btrfs needs a volume of 72 MiB to 16 TiB")?;
        let bytes = options.node_pages * PAGE_BYTES as u32;
        Ok(Btrfs {
            options,
            start_sector: sectors.start,
            device,
            pool: BlockPool {
                space,
                transaction: 1,
                written: PageBits::default(),
                node_pages: u64::from(options.node_pages),
                references: Vec::new(),
                events: Vec::new(),
                full: false,
            },
            trees: [0; 4].map(|_| Tree::new(bytes)),
            log: Tree::new(bytes),
            inodes: Vec::new(),
            next_object: 256,
            commit: Commit::default(),
            out: WriteOut::default(),
        })
    }

    /// Pages that data may still take, and files that can be numbered.
    pub(crate) fn free(&self) -> FreeSpace {
        let (free, _) = self.pool.space.room(Use::Data);
        FreeSpace::new(free, u64::from(items::LAST_OBJECT - self.next_object))
    }

    /// Whether a file is that of the tree blocks.
    pub(crate) fn is_device(&self, id: FileId) -> bool {
        self.device == id
    }

    /// The file of tree blocks on these sectors.
    pub(super) fn device_file(sectors: Range<u64>) -> File {
        let pages = (sectors.end - sectors.start) / PAGE_SECTORS;
        let mut file = File::new(pages * PAGE_BYTES);
        file.extents = Extents::raw(sectors.start, pages);
        file.on_volume = true;
        file.metadata = true;
        file
    }

    /// Where a file stands in its directory's listing.
    pub(super) fn index_of(&self, id: FileId) -> u64 {
        self.inodes.get(id.idx()).map_or(0, |i| u64::from(i.index))
    }

    pub(super) fn inode(&mut self, id: FileId) -> &mut Inode {
        if self.inodes.len() <= id.idx() {
            self.inodes.resize_with(id.idx() + 1, Inode::default);
        }
        &mut self.inodes[id.idx()]
    }

    pub(super) fn object(&mut self, id: FileId) -> u32 {
        self.inode(id).object
    }

    /// The sector of a page of the device.
    pub(super) fn sector(&self, page: u64) -> u64 {
        self.start_sector + page * PAGE_SECTORS
    }

    /// The page of the device that a sector begins.
    pub(super) fn page(&self, sector: u64) -> u64 {
        (sector - self.start_sector) / PAGE_SECTORS
    }

    /// Bytes of a tree block.
    pub(super) fn block_bytes(&self) -> u32 {
        self.options.node_pages * PAGE_BYTES as u32
    }

    /// Makes a change in a tree.
    pub(super) fn apply(&mut self, change: Change) {
        let (tree, pool) = (&mut self.trees[change.of as usize], &mut self.pool);
        match change.what {
            What::Put(bytes) => tree.insert(pool, change.key, bytes),
            What::Touch => tree.touch(pool, change.key),
            What::Remove => {
                tree.remove(pool, change.key);
            }
        }
    }

    /// Numbers a new file; None if there are no numbers left.
    pub(super) fn number(&mut self, directory: FileId, id: FileId) -> Option<()> {
        if self.next_object >= items::LAST_OBJECT {
            return None;
        }
        let above = self.inode(directory);
        let index = above.next_index;
        above.next_index += 1;
        *self.inode(id) = Inode {
            object: self.next_object,
            index,
            next_index: 2,
            ..Inode::default()
        };
        self.next_object += 1;
        Some(())
    }

    /// Whether metadata and data have room for so many pages more: up to 85 %
    /// of what there is, as 2.6.29's `btrfs_check_free_space`.
    pub(super) fn has_room(&self, of: Use, pages: u64) -> bool {
        let (free, taken) = self.pool.space.room(of);
        !self.pool.full && (taken + pages) * 100 < (free + taken) * 85
    }
}

impl View<'_, Btrfs> {
    /// The root directory.
    pub(crate) fn btrfs_root(&mut self) {
        let root = self.root;
        let b = &mut *self.volume;
        b.number(root, root);
        for of in [Of::Roots, Of::Extents, Of::Files, Of::Checksums] {
            let bytes = 239 + super::tree::ITEM_BYTES;
            b.apply(Change {
                of: Of::Roots,
                key: of as u64,
                what: What::Put(bytes),
            });
        }
        let object = b.object(root);
        b.apply(of_file(items::inode(object), What::Put(items::INODE_BYTES)));
        self.btrfs_settle();
    }

    /// Makes changes, and their blocks dirty pages.
    pub(super) fn btrfs_apply(&mut self, changes: &[Change], now: Jiffies) {
        let b = &mut *self.volume;
        changes.iter().for_each(|c| b.apply(*c));
        self.btrfs_note_blocks(now);
    }

    /// What became of tree blocks happens to their pages.
    pub(super) fn btrfs_note_blocks(&mut self, now: Jiffies) {
        let b = &mut *self.volume;
        b.commit.begin(now);
        let (device, pages) = (b.device, b.pool.node_pages);
        let mut events = std::mem::take(&mut b.pool.events);
        for (block, dirty) in events.drain(..) {
            let run = u64::from(block)..u64::from(block) + pages;
            if dirty {
                self.dirty(device, run, now);
                continue;
            }
            let state = &mut *self.state;
            let file = &mut state.files[device.idx()];
            state.nr_dirty -= file.dirty.clear(run.clone());
            file.towrite.clear(run.clone());
            state.nr_cached -= state.lru.forget_pages(file, run);
        }
        self.volume.pool.events = events;
    }

    /// The places of a file's pages are no longer used.
    pub(super) fn btrfs_free_data(&mut self, gone: &[Range<u64>]) {
        let pool = &mut self.volume.pool;
        for run in gone {
            pool.space.free(run.clone());
            pool.references.push((run.start, false));
        }
    }

    /// Brings all that changed to the disk, as an earlier run left it.
    fn btrfs_settle(&mut self) {
        loop {
            let references = std::mem::take(&mut self.volume.pool.references);
            if references.is_empty() {
                break;
            }
            let changes = items::changes_of(references);
            self.btrfs_apply(&changes, Jiffies(0));
        }
        let b = &mut *self.volume;
        b.pool.transaction += 1;
        b.commit = Commit::default();
        b.commit.committed = b.pool.transaction - 1;
        let device = b.device;
        for run in b.pool.space.take_freed() {
            b.pool.space.release(&run);
        }
        let file = &mut self.state.files[device.idx()];
        self.state.nr_dirty -= file.dirty.clear(0..u64::MAX);
        file.inode_dirty = false;
        self.lists_of(device).remove(device);
    }

    /// Gives a file its first pages a place before the run.
    pub(super) fn btrfs_lay_out(&mut self, id: FileId, pages: u64) -> bool {
        let root = self.root;
        let b = &mut *self.volume;
        if !b.has_room(Use::Data, pages) || b.number(root, id).is_none() {
            return false;
        }
        let name = self.files[id.idx()].name;
        let mut changes = self.volume.new_entry(root, id, name);
        let mut page = 0;
        while page < pages {
            let b = &mut *self.volume;
            let want = items::MOST_EXTENT_PAGES.min(pages - page);
            let Some(run) = b.pool.space.take(Use::Data, want) else {
                return false;
            };
            let (sector, got) = (b.sector(run.start), run.end - run.start);
            b.extent_items(id, page, &run, &mut changes);
            let place = &mut self.files[id.idx()].extents;
            place.remap(page, sector, got, |_| {});
            page += got;
        }
        self.btrfs_apply(&changes, Jiffies(0));
        self.btrfs_settle();
        true
    }
}
