// SPDX-License-Identifier: MIT OR Apache-2.0
//! ReiserFS 3.6 as far as it makes block traffic (fs/reiserfs, 2.6.16 to
//! 2.6.38; read in 2.6.26).
//!
//! ```text
//! write ─► block near the file ─► new data ──┐
//! close ─► tail into the leaf ───────────────┤ running transaction
//! create, unlink ─► leaves of one tree ──────┘
//!                        ▼ 900 blocks, 5 s (superblock), 30 s, fsync
//! work queue, pdflush: new data ─► log ─► commit block
//!                        ▼
//!          dirty blocks of the device ─► pdflush, flush before the log wraps
//! ```
//!
//! Everything but the contents of whole blocks is in one balanced tree
//! ([`tree`]): stat data, entries, pointers, tails. Metadata blocks are pages
//! of the device's file and are read when they are cold. Tree, blocks and keys
//! are real; the contents of items are only lengths.
//!
//! The big kernel lock is held while a task computes and given up while it
//! sleeps for I/O. Between two sleeps nobody else runs here, so it never
//! holds anybody up beyond the one processor. What does is the journal: while
//! a transaction ends, nobody opens a handle.
//!
//! Left out: extended attributes, quotas, links, renaming, holes, data=journal,
//! a journal on another device; that a list of freed object numbers can
//! overflow; pages that cache the log's own blocks.

mod commit;
mod journal;
mod key;
mod kind;
mod names;
mod operations;
mod options;
mod space;
mod tails;
mod tree;

pub(crate) use kind::REISERFS;
pub use options::{ReiserOptions, Tails};

use crate::mount::{Shared, View};
use blklab_pagecache::{
    Config, Extents, File, FileId, FreeSpace, FsError, FsTraits, Host, Mountable, Ops, PageCache,
    State, WriteControl,
};
use blklab_types::PAGE_BYTES;
use journal::Journal;
use key::{DOTS_BYTES, Item, Key, Object, STAT_BYTES, entry_bytes, tail_item_bytes};
use operations::pointer_items;
use space::{FIRST_ROOT, JOURNAL_BLOCKS, SUPERBLOCK, Space, Want};
use std::collections::BTreeSet;
use std::ops::Range;
use tree::{Blocks, Changes, Tree};

/// ReiserFS as a filesystem.
pub(crate) type ReiserFs = Shared<Volume>;

/// The top directory.
const ROOT: Object = Object {
    locality: 1,
    number: 2,
};

/// Blocks that only the tree may take, so that what is there can always be
/// changed and removed.
const NODE_RESERVE: u64 = 64;

/// Blocks set aside behind those that a file asks for (`preallocsize`).
const PREALLOCATED_BLOCKS: u64 = 16;

/// A volume.
#[derive(Debug)]
pub struct Volume {
    options: ReiserOptions,
    space: Space,
    tree: Tree,
    journal: Journal,
    /// The file of the device's metadata blocks.
    device: FileId,
    /// By file.
    inodes: Vec<Inode>,
    /// Object numbers: the next that was never used, and those given back.
    next_number: u32,
    free_numbers: BTreeSet<u32>,
    /// Room for lists of nodes, kept to save allocations.
    scratch: Vec<u64>,
}

/// What a file has on such a volume.
#[derive(Clone, Debug, Default)]
struct Inode {
    object: Object,
    /// Bytes of its last block that are in a leaf.
    tail_bytes: u16,
    /// Somebody wrote: its tail may go into a leaf at close.
    pack: bool,
    /// Blocks set aside for it.
    preallocated: (u64, u8),
    /// The transaction that last changed it.
    tid: u64,
    atime_s: u32,
    mtime_s: u32,
}

/// Blocks for the tree, and what becomes of those that it gives back.
struct NodeBlocks<'a> {
    space: &'a mut Space,
}

impl Blocks for NodeBlocks<'_> {
    fn take(&mut self, near: u64) -> u64 {
        let want = Want {
            page: false,
            first: false,
            blocks: 1,
        };
        // There is room: changes that take blocks begin with a look at it.
        self.space.take(near, want).map_or(near, |r| r.start)
    }

    fn free(&mut self, block: u64) {
        self.space.free_blocks(block..block + 1, true);
    }
}

impl Volume {
    /// A volume on these sectors, whose metadata pages are `device`.
    ///
    /// # Errors
    /// If there is no room.
    pub(crate) fn new(
        options: ReiserOptions,
        sectors: Range<u64>,
        device: FileId,
    ) -> Result<Volume, String> {
        let mut v = Volume {
            options,
            space: Space::new(sectors)?,
            tree: Tree::new(FIRST_ROOT),
            journal: Journal::new(JOURNAL_BLOCKS),
            device,
            inodes: Vec::new(),
            next_number: ROOT.number + 1,
            free_numbers: BTreeSet::new(),
            scratch: Vec::new(),
        };
        for item in directory_items(ROOT) {
            v.change(Change::Put(item));
        }
        Ok(v)
    }

    /// The file of metadata pages.
    pub(crate) fn device_file(&self) -> File {
        let mut file = File::new(self.space.blocks() * PAGE_BYTES);
        file.extents = Extents::raw(self.space.sector(0), self.space.blocks());
        file.buffers.present = true;
        file
    }

    /// The blocks that are in memory after mounting.
    pub(crate) fn mounted_blocks(&self) -> [u64; 2] {
        [SUPERBLOCK, FIRST_ROOT]
    }

    /// Free blocks, and objects that can be made.
    pub(crate) fn free(&self) -> FreeSpace {
        let never_used = u64::from(u32::MAX - self.next_number);
        let blocks = self.space.free();
        FreeSpace::new(blocks, never_used + self.free_numbers.len() as u64)
    }

    /// Says which file the top directory is.
    pub(crate) fn set_root(&mut self, id: FileId) {
        self.inode(id).object = ROOT;
    }

    fn inode(&mut self, id: FileId) -> &mut Inode {
        if self.inodes.len() <= id.idx() {
            self.inodes.resize(id.idx() + 1, Inode::default());
        }
        &mut self.inodes[id.idx()]
    }

    fn object(&mut self, id: FileId) -> Object {
        self.inode(id).object
    }

    /// The lowest object number that is free (`reiserfs_get_unused_objectid`).
    fn new_number(&mut self) -> u32 {
        self.free_numbers.pop_first().unwrap_or_else(|| {
            self.next_number += 1;
            self.next_number - 1
        })
    }

    /// The packing locality of what is made in a directory
    /// (`reiserfs_choose_packing`): the directory's own as long as its group has
    /// room.
    fn locality_in(&mut self, directory: Object) -> u32 {
        if directory.locality == 1 || self.space.group_used(directory.locality) {
            directory.number
        } else {
            directory.locality
        }
    }

    /// Takes blocks for the next pages of a file (`reiserfs_new_unf_blocknrs`):
    /// those set aside for it, or the next free ones behind its last, with up to 16
    /// more set aside. None if the volume is full.
    fn take_pages(&mut self, id: FileId, file: &mut File, pages: u64) -> Option<Range<u64>> {
        let (mut start, mut count) = self.inode(id).preallocated;
        if count == 0 {
            if self.space.free() <= NODE_RESERVE {
                return None;
            }
            let goal = match file.extents.runs().last() {
                Some(e) => self.space.block(e.sector) + e.pages - 1,
                None => {
                    let locality = self.object(id).locality;
                    self.space.first_page_goal(locality)
                }
            };
            let want = Want {
                page: true,
                first: file.extents.pages() == 0,
                blocks: 1 + PREALLOCATED_BLOCKS,
            };
            let run = self.space.take(goal, want)?;
            (start, count) = (run.start, (run.end - run.start) as u8);
        }
        let used = u64::from(count).min(pages);
        let left = count - used as u8;
        self.inode(id).preallocated = (start + used, left);
        let known = self.journal.preallocated.iter().position(|f| *f == id);
        match known {
            None if left > 0 => self.journal.preallocated.push(id),
            Some(at) if left == 0 => {
                self.journal.preallocated.remove(at);
            }
            _ => {}
        }
        file.extents.append(self.space.sector(start), used);
        Some(start..start + used)
    }

    /// Gives the blocks that were set aside for a file back
    /// (`reiserfs_discard_prealloc`). Returns the bitmap that says so, if there
    /// were any.
    fn release_preallocated(&mut self, id: FileId) -> Option<u64> {
        let (start, count) = std::mem::take(&mut self.inode(id).preallocated);
        if count == 0 {
            return None;
        }
        self.journal.preallocated.retain(|f| *f != id);
        self.space
            .free_blocks(start..start + u64::from(count), false);
        Some(Space::bitmap(start))
    }

    /// Changes the tree.
    fn change(&mut self, change: Change) -> Changes {
        let mut out = Changes::default();
        let mut blocks = NodeBlocks {
            space: &mut self.space,
        };
        match change {
            Change::Put(item) => self.tree.put(item, &mut blocks, &mut out),
            Change::Remove(key) => {
                self.tree.remove(key, &mut blocks, &mut out);
            }
        }
        out.touched.retain(|b| !out.freed.contains(b));
        out
    }
}

/// A change of the tree.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// An item comes, or gets another size.
    Put(Item),
    Remove(Key),
}

impl Change {
    fn key(&self) -> Key {
        match self {
            Change::Put(item) => item.key,
            Change::Remove(key) => *key,
        }
    }
}

/// What an empty directory has in the tree.
fn directory_items(object: Object) -> [Item; 2] {
    [
        Item::new(Key::stat(object), STAT_BYTES),
        Item::new(Key::dots(object), DOTS_BYTES),
    ]
}

impl View<'_, Volume> {
    /// Puts a metadata block into the cache.
    pub(crate) fn reiser_cached(&mut self, device: FileId, block: u64) {
        let run = block..block + 1;
        let file = &mut self.state.files[device.idx()];
        if !file.cached.test(block) {
            self.state.nr_cached += file.cached.set(run.clone());
            self.state.lru.add(device, run.clone());
        }
        file.uptodate.set(run);
    }

    /// A block becomes part of the running transaction
    /// (`journal_mark_dirty`); it is in memory.
    fn reiser_log(&mut self, block: u64) {
        let v = &mut *self.volume;
        let device = v.device;
        if !v.journal.add(block) {
            return;
        }
        self.reiser_cached(device, block);
        let run = block..block + 1;
        let file = &mut self.state.files[device.idx()];
        file.buffers.dirty.clear(run.clone());
        file.pinned.set(run.clone());
        self.state.lru.touch(file, run);
    }

    fn reiser_log_superblock(&mut self) {
        self.reiser_log(SUPERBLOCK);
    }

    /// A node's block is free: nothing of it is to be written.
    fn reiser_forget(&mut self, block: u64) {
        let v = &mut *self.volume;
        let device = v.device;
        v.journal.forget(block);
        v.journal.running.frozen.push(block..block + 1);
        let file = &mut self.state.files[device.idx()];
        let run = block..block + 1;
        file.buffers.dirty.clear(run.clone());
        self.state.nr_dirty -= file.dirty.clear(run.clone());
        file.towrite.clear(run.clone());
        file.pinned.clear(run);
    }

    /// Gives a file its inode and its first pages a place, as an earlier run
    /// left them: what leads to them is in the cache, nothing is dirty. None
    /// if the volume is full.
    fn reiser_lay_out(&mut self, id: FileId, pages: u64) -> Option<()> {
        let root = self.root;
        let (v, file) = (&mut *self.volume, &mut self.state.files[id.idx()]);
        if v.space.free() < pages + pages / 256 + 2 * NODE_RESERVE {
            return None;
        }
        let directory = v.object(root);
        let (number, locality) = (v.new_number(), v.locality_in(directory));
        let object = Object { locality, number };
        v.inode(id).object = object;
        let mut warm = Vec::new();
        let mut put = |v: &mut Volume, key, bytes| {
            warm.extend(v.change(Change::Put(Item::new(key, bytes))).touched);
        };
        put(v, Key::stat(object), STAT_BYTES);
        put(v, Key::entry(directory, id.0, id.0), entry_bytes(8));
        // Whoever wrote the file has closed it: the tail is in the tree.
        let tail = v.options.tails.tail_bytes(file.size_bytes);
        let tail = tail.filter(|_| pages > 0);
        let whole = pages - u64::from(tail.is_some());
        while file.extents.pages() < whole {
            let from = file.extents.pages();
            let run = v.take_pages(id, file, whole - from)?;
            for item in pointer_items(object, from..from + run.end - run.start) {
                put(v, item.key, u32::from(item.bytes));
            }
        }
        if let Some(bytes) = tail {
            v.inode(id).tail_bytes = bytes as u16;
            put(v, Key::tail(object, whole), tail_item_bytes(bytes));
        }
        v.release_preallocated(id);
        for e in file.extents.runs() {
            let first = v.space.block(e.sector);
            warm.extend((first..first + e.pages).step_by(4096).map(Space::bitmap));
        }
        file.buffers.present = true;
        let device = v.device;
        warm.sort_unstable();
        warm.dedup();
        for block in warm {
            self.reiser_cached(device, block);
        }
        Some(())
    }
}

impl Mountable for ReiserFs {
    type Options = ReiserOptions;

    fn traits(_options: &ReiserOptions) -> FsTraits {
        FsTraits::GENERIC
    }

    fn mount(
        options: ReiserOptions,
        config: &Config,
        state: &mut State,
    ) -> Result<ReiserFs, String> {
        let device = state.next_file();
        let volume = Volume::new(options, config.layout.sectors(), device)?;
        state.add_device(volume.device_file());
        for block in volume.mounted_blocks() {
            state.cache_block((device, block));
        }
        Ok(Shared::new(volume))
    }
}

impl<H: Host> Ops<H> for ReiserFs {
    fn make_root(&self, state: &mut State) {
        let root = state.root;
        self.with(state, |s| s.volume.set_root(root));
    }

    fn start(&self, cache: &PageCache<H>) {
        self.on(cache).reiser_start();
    }

    fn lay_out(&self, state: &mut State, id: FileId, pages: u64) -> bool {
        self.with(state, |s| s.reiser_lay_out(id, pages)).is_some()
    }

    fn free_space(&self, _state: &mut State) -> Option<FreeSpace> {
        Some(self.volume().free())
    }

    async fn sync(&self, cache: &PageCache<H>) {
        self.on(cache).reiser_sync_journal(true).await;
    }

    async fn write_super(&self, cache: &PageCache<H>) {
        self.on(cache).reiser_sync_journal(false).await;
    }

    async fn create(
        &self,
        cache: &PageCache<H>,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        self.on(cache).reiser_create(directory, id).await
    }

    async fn look_up(
        &self,
        cache: &PageCache<H>,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        self.on(cache).reiser_look_up(directory, id).await
    }

    async fn list(&self, cache: &PageCache<H>, directory: FileId) -> Result<(), FsError> {
        self.on(cache).reiser_list(directory).await
    }

    fn list_key(&self, state: &mut State, id: FileId) -> u64 {
        u64::from(state.files[id.idx()].name.hash)
    }

    async fn remove_entry(
        &self,
        cache: &PageCache<H>,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        self.on(cache).reiser_remove_entry(directory, id).await
    }

    async fn remove_inode(&self, cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
        self.on(cache).reiser_remove_inode(id).await
    }

    async fn truncate(&self, cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
        self.on(cache).reiser_truncate(id).await
    }

    async fn invalidate(&self, cache: &PageCache<H>, id: FileId, run: Range<u64>) {
        self.on(cache).reiser_invalidate(id, run).await;
    }

    async fn close(&self, cache: &PageCache<H>, id: FileId, _wrote: bool) {
        self.on(cache).reiser_release(id).await;
    }

    async fn dirty_written(
        &self,
        cache: &PageCache<H>,
        id: FileId,
        run: Range<u64>,
        end: u64,
    ) -> Result<(), FsError> {
        self.on(cache).reiser_write(id, run, end).await
    }

    async fn place_direct(
        &self,
        cache: &PageCache<H>,
        id: FileId,
        end: u64,
    ) -> Result<(), FsError> {
        self.on(cache)
            .reiser_place(id, end.div_ceil(PAGE_BYTES))
            .await
    }

    async fn writes_itself(
        &self,
        cache: &PageCache<H>,
        id: FileId,
        _control: &mut WriteControl,
    ) -> bool {
        self.on(cache).reiser_write_tail(id).await;
        false
    }

    async fn load_mapping(&self, cache: &PageCache<H>, id: FileId, page: u64) {
        self.on(cache).reiser_load_mapping(id, page).await;
    }

    async fn accessed(&self, cache: &PageCache<H>, id: FileId) {
        self.on(cache).reiser_accessed(id).await;
    }

    async fn sync_metadata(&self, cache: &PageCache<H>, id: FileId, _data_only: bool) {
        let tid = self.on(cache).with(|s| s.volume.inode(id).tid);
        self.on(cache).reiser_commit_transaction(tid).await;
    }
}
