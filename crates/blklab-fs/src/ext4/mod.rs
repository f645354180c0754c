// SPDX-License-Identifier: MIT OR Apache-2.0
//! ext4 as far as it makes block traffic (fs/ext4, fs/jbd2; 2.6.28 to 6.18).
//!
//! ```text
//! write ─► blocks are only counted ─► dirty pages
//! flusher, fsync ─► handle ─► allocation of a whole dirty range ─► large bios
//!                      │ inode, bitmap, descriptor, extent leaf
//!                      ▼                          5 s, fsync, log space
//! jbd2: lock ─► wait for new blocks' data ─► metadata to the log ─► commit block
//! ```
//!
//! The journal is that of ext3 ([`crate::ext3`]) but for the data that a commit
//! waits for: whole files with newly allocated blocks instead of pages.
//! Metadata blocks are pages of one more file, the device's.
//!
//! Left out: `bigalloc`, inline data, quotas, the inodes'
//! checksums, online growth, the switch to allocation at write when blocks get short,
//! index blocks of directories below the root.

mod allocation;
mod blocks;
mod buddy;
mod data;
mod freeing;
mod inode;
mod kind;
mod layout;
mod names;
mod namespace;
mod options;
mod placing;
mod space;
mod tree;
mod unwritten;

pub(crate) use inode::Inode;
pub(crate) use kind::EXT4;
pub use layout::default_ext4_journal_blocks;
pub use options::{Ext4Features, Ext4Options};

use crate::jbd::{Handle, Journal, Journalled};
use crate::mount::{PerFile, Shared};
use allocation::Aside;
use blklab_pagecache::{
    Config, Extents, File, FileId, FreeSpace, FsError, FsTraits, Host, Mountable, Ops, PageCache,
    Slab, State, WriteControl,
};
use blklab_types::{PAGE_BYTES, TaskId};
use inode::Inodes;
use layout::Geometry;
use space::Space;
use std::collections::BTreeMap;
use std::ops::Range;
use unwritten::Conversion;

/// ext4 as a filesystem.
pub(crate) type Ext4Fs = Shared<Ext4>;

impl Journalled for Ext4 {
    const THREAD: &'static str = "jbd2";

    fn journal(&mut self) -> &mut Journal {
        &mut self.journal
    }

    fn release(&mut self, run: Range<u64>) {
        self.release_blocks(run);
    }

    fn check_space(&self) {
        self.check_space_is_whole();
    }
}

/// Files get an inode when they come into being, and keep it until they are gone.
const HAS_INODE: &str = "a file of the volume has an inode";

/// A volume.
#[derive(Debug)]
pub struct Ext4 {
    pub(crate) options: Ext4Options,
    geometry: Geometry,
    space: Space,
    pub(crate) journal: Journal,
    inodes: Vec<Inodes>,
    /// Blocks that no file has.
    free_blocks: u64,
    /// Of those, promised to dirty pages that have no place yet.
    promised_blocks: u64,
    /// What is set aside for files, and for small files together: first block
    /// and how many.
    asides: BTreeMap<FileId, Vec<Aside>>,
    shared: Vec<(u64, u64)>,
    /// Where the last large file was given blocks.
    stream_goal: u64,
    /// Groups whose bitmaps were written once.
    known_block_bitmaps: Vec<bool>,
    known_inode_bitmaps: Vec<bool>,
    /// Handles of tasks that write out what they have given a place: which pages.
    writing_out: Vec<(TaskId, Handle, Range<u64>)>,
    /// The inodes of files.
    nodes: PerFile<Option<Box<Inode>>>,
    /// Blocks whose mark as unwritten is to go.
    conversions: Slab<Conversion>,
}

impl Ext4 {
    /// A volume on these sectors.
    pub(crate) fn new(options: Ext4Options, sectors: Range<u64>) -> Result<Ext4, String> {
        let geometry = Geometry::new(sectors, &options)?;
        let space = Space::new(&geometry);
        let groups = geometry.groups();
        let journal = Journal::new(
            options.journal_rules(),
            geometry.journal_blocks(),
            |block| geometry.sector(geometry.journal_block(block)),
        );
        Ok(Ext4 {
            options,
            journal,
            inodes: vec![Inodes::default(); groups as usize],
            free_blocks: (0..groups).map(|g| u64::from(space.free_in(g))).sum(),
            promised_blocks: 0,
            asides: BTreeMap::new(),
            shared: Vec::new(),
            stream_goal: 0,
            known_block_bitmaps: vec![false; groups as usize],
            known_inode_bitmaps: vec![false; groups as usize],
            writing_out: Vec::new(),
            nodes: PerFile::default(),
            conversions: Slab::default(),
            geometry,
            space,
        })
    }

    /// Free blocks and inodes.
    fn free(&self) -> FreeSpace {
        let groups = 0..self.geometry.groups();
        let free = self.free_blocks.saturating_sub(self.promised_blocks);
        FreeSpace::new(free, groups.map(|g| self.free_inodes(g)).sum())
    }

    /// The file of metadata pages.
    pub(crate) fn device_file(&self) -> File {
        let mut file = File::new(self.geometry.blocks * PAGE_BYTES);
        file.extents = Extents::raw(self.geometry.sector(0), self.geometry.blocks);
        file.buffers.present = true;
        file
    }
}

impl Mountable for Ext4Fs {
    type Options = Ext4Options;

    fn traits(options: &Ext4Options) -> FsTraits {
        FsTraits {
            submits_before_sleep: true,
            // Its data never do (fs/ext4/page-io.c, `ext4_io_submit`, 6.2).
            marks_background: false,
            large_bios: options.features.large_bios,
            large_folios: options.features.large_folios,
            cgroup_writeback: true,
            ..FsTraits::GENERIC
        }
    }

    fn mount(options: Ext4Options, config: &Config, state: &mut State) -> Result<Ext4Fs, String> {
        let ext4 = Ext4::new(options, config.layout.sectors())?;
        state.add_device(ext4.device_file());
        Ok(Shared::new(ext4))
    }
}

impl<H: Host> Ops<H> for Ext4Fs {
    fn make_root(&self, state: &mut State) {
        self.with(state, |s| s.ext4_new_root());
    }

    fn start(&self, cache: &PageCache<H>) {
        self.on(cache).start_journal();
    }

    fn lay_out(&self, state: &mut State, id: FileId, pages: u64) -> bool {
        self.with(state, |s| s.ext4_lay_out(id, pages)).is_some()
    }

    fn free_space(&self, _state: &mut State) -> Option<FreeSpace> {
        Some(self.volume().free())
    }

    async fn sync(&self, cache: &PageCache<H>) {
        self.on(cache).force_commit().await;
    }

    /// A block of the log.
    fn end_io(&self, state: &mut State, io: u64, failed: bool, wake: &mut Vec<TaskId>) {
        self.with(state, |s| s.end_log(io, failed, wake));
    }

    async fn create(
        &self,
        cache: &PageCache<H>,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        self.on(cache).ext4_create(directory, id).await
    }

    async fn look_up(
        &self,
        cache: &PageCache<H>,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        self.on(cache).ext4_look_up(directory, id).await
    }

    async fn list(&self, cache: &PageCache<H>, directory: FileId) -> Result<(), FsError> {
        self.on(cache).ext4_list(directory).await
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
        self.on(cache).ext4_remove_entry(directory, id).await
    }

    async fn remove_inode(&self, cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
        self.on(cache).ext4_remove_inode(id).await
    }

    async fn truncate(&self, cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
        self.on(cache).ext4_truncate(id).await
    }

    async fn invalidate(&self, cache: &PageCache<H>, id: FileId, run: Range<u64>) {
        self.on(cache).ext4_invalidate(id, run).await;
    }

    fn dropped(&self, state: &mut State, id: FileId, run: &Range<u64>) {
        self.with(state, |s| s.ext4_forget_promises(id, run));
    }

    async fn close(&self, cache: &PageCache<H>, id: FileId, wrote: bool) {
        self.on(cache).ext4_close(id, wrote).await;
    }

    async fn begin_write(&self, cache: &PageCache<H>, id: FileId, end: u64) -> Result<(), FsError> {
        self.on(cache).ext4_modified(id, end).await;
        Ok(())
    }

    async fn dirty_written(
        &self,
        cache: &PageCache<H>,
        id: FileId,
        run: Range<u64>,
        end: u64,
    ) -> Result<(), FsError> {
        self.on(cache).ext4_dirty_pages(id, run, end).await
    }

    async fn place_direct(
        &self,
        cache: &PageCache<H>,
        id: FileId,
        end: u64,
    ) -> Result<(), FsError> {
        self.on(cache).ext4_modified(id, end).await;
        self.on(cache)
            .ext4_place_all(id, 0..end.div_ceil(PAGE_BYTES))
            .await
    }

    async fn place_dirty(
        &self,
        cache: &PageCache<H>,
        id: FileId,
        page: u64,
    ) -> Result<(), FsError> {
        self.on(cache).ext4_place_dirty(id, page).await
    }

    fn taken(&self, cache: &PageCache<H>, id: FileId, upto: u64) {
        self.on(cache).ext4_taken(id, upto);
    }

    fn keeps_written(&self, state: &mut State, id: FileId, run: &Range<u64>, failed: bool) -> bool {
        self.with(state, |s| s.ext4_data_ended(id, run, failed))
    }

    async fn work(&self, cache: &PageCache<H>, work: u64) {
        self.on(cache).ext4_convert(work).await;
    }

    async fn writes_itself(
        &self,
        cache: &PageCache<H>,
        id: FileId,
        control: &mut WriteControl,
    ) -> bool {
        if control.nr_to_write > 0 {
            let bump = self.on(cache).with(|s| s.ext4_bump(id, control));
            control.nr_to_write += bump;
            self.on(cache).write_cache_pages(id, control).await;
            control.nr_to_write -= bump;
        }
        true
    }

    async fn load_mapping(&self, cache: &PageCache<H>, id: FileId, page: u64) {
        self.on(cache).ext4_load_leaf(id, page).await;
    }

    async fn accessed(&self, cache: &PageCache<H>, id: FileId) {
        self.on(cache).ext4_accessed(id).await;
    }

    async fn sync_metadata(&self, cache: &PageCache<H>, id: FileId, data_only: bool) {
        self.on(cache).ext4_sync(id, data_only).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty volume of so many GiB.
    pub(super) fn volume(gib: u64, options: Ext4Options) -> Ext4 {
        Ext4::new(options, 0..gib << 21).expect("it is large enough")
    }
}
