// SPDX-License-Identifier: MIT OR Apache-2.0
//! btrfs as far as it makes block traffic: 0.16 and the development tree of
//! August 2008, and today's.
//!
//! ```text
//! create, unlink ─► items in trees ─► copies of blocks, dirty pages ──┐
//! write ─► dirty pages ─► flusher: a place per dirty range            │
//!            small: into the leaf ◄─┤                                 │
//!                                   ▼                                 │
//!              checksum workers ─► submit thread ─► disk              │
//!                                                    │ all arrived    │
//!                extent items ◄─ endio worker ◄──────┘                │
//!                                                                     ▼
//! 30 s, sync, fsync: commit: references, tree blocks ─► workers, superblock
//! ```
//!
//! Tree blocks are pages of one more file, the device's (the kernel's btree
//! inode): dirty pages like any other. Files' pages are placed when they are
//! written out, elsewhere each time; the items that say so enter the trees when
//! the data are on the disk.
//!
//! Left out: snapshots and subvolumes, compression, several devices, the trees
//! of chunks and devices, reading the second copy, balancing; the space of an
//! extent that was overwritten in part is free at once, not when all of it was
//! overwritten; direct writes go through the page cache (there were none in
//! 2008).

mod commit;
mod items;
mod kind;
mod log;
mod operations;
mod options;
mod progress;
mod reads;
mod space;
mod tree;
mod volume;
mod workers;
mod writeout;

pub(crate) use kind::{BTRFS, BTRFS_0_16, BTRFS_UNSTABLE};
pub use options::BtrfsOptions;

use crate::mount::Shared;
use blklab_pagecache::{
    Config, DirectIo, FileId, FreeSpace, FsError, FsTraits, Host, Mountable, Ops, PageCache, State,
    WriteControl,
};
use blklab_types::TaskId;
use std::ops::Range;
pub(crate) use volume::Btrfs;

/// btrfs as a filesystem.
pub(crate) type BtrfsFs = Shared<Btrfs>;

impl Mountable for BtrfsFs {
    type Options = BtrfsOptions;

    fn traits(_options: &BtrfsOptions) -> FsTraits {
        FsTraits {
            direct_io: DirectIo::Reads,
            ..FsTraits::GENERIC
        }
    }

    fn mount(options: BtrfsOptions, config: &Config, state: &mut State) -> Result<BtrfsFs, String> {
        let device = state.next_file();
        let volume = Btrfs::new(options, config.layout.sectors(), device)?;
        state
            .files
            .push(Btrfs::device_file(config.layout.sectors()));
        Ok(Shared::new(volume))
    }
}

impl<H: Host> Ops<H> for BtrfsFs {
    fn make_root(&self, state: &mut State) {
        self.with(state, |s| s.btrfs_root());
    }

    fn group_written(&self, state: &mut State, number: u64, pages: u64, wake: &mut Vec<TaskId>) {
        self.with(state, |s| s.btrfs_arrived(number, pages, wake));
    }

    fn start(&self, cache: &PageCache<H>) {
        self.on(cache).start_btrfs();
    }

    fn lay_out(&self, state: &mut State, id: FileId, pages: u64) -> bool {
        self.with(state, |s| s.btrfs_lay_out(id, pages))
    }

    fn free_space(&self, _state: &mut State) -> Option<FreeSpace> {
        Some(self.volume().free())
    }

    async fn sync(&self, cache: &PageCache<H>) {
        self.on(cache).btrfs_sync_volume().await;
    }

    async fn create(
        &self,
        cache: &PageCache<H>,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        self.on(cache).btrfs_create(directory, id).await
    }

    async fn look_up(
        &self,
        cache: &PageCache<H>,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        self.on(cache).btrfs_look_up(directory, id).await
    }

    async fn list(&self, cache: &PageCache<H>, directory: FileId) -> Result<(), FsError> {
        self.on(cache).btrfs_list(directory).await
    }

    fn list_key(&self, _state: &mut State, id: FileId) -> u64 {
        self.volume().index_of(id)
    }

    async fn remove_entry(
        &self,
        cache: &PageCache<H>,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        self.on(cache).btrfs_remove_entry(directory, id).await
    }

    async fn remove_inode(&self, cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
        self.on(cache).btrfs_remove_inode(id).await
    }

    async fn truncate(&self, cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
        self.on(cache).btrfs_truncate(id).await
    }

    async fn begin_write(&self, cache: &PageCache<H>, id: FileId, end: u64) -> Result<(), FsError> {
        self.on(cache).btrfs_begin_write(id, end).await
    }

    async fn place_direct(
        &self,
        cache: &PageCache<H>,
        id: FileId,
        end: u64,
    ) -> Result<(), FsError> {
        self.on(cache).btrfs_begin_write(id, end).await
    }

    async fn writes_itself(
        &self,
        cache: &PageCache<H>,
        id: FileId,
        control: &mut WriteControl,
    ) -> bool {
        if self.volume().is_device(id) {
            self.on(cache).btrfs_write_metadata(control).await;
        } else {
            self.on(cache).btrfs_write_data(id, control).await;
        }
        true
    }

    async fn load_mapping(&self, cache: &PageCache<H>, id: FileId, page: u64) {
        self.on(cache).btrfs_load_mapping(id, page).await;
    }

    async fn accessed(&self, cache: &PageCache<H>, id: FileId) {
        self.on(cache).btrfs_accessed(id).await;
    }

    async fn sync_metadata(&self, cache: &PageCache<H>, id: FileId, _data_only: bool) {
        self.on(cache).btrfs_sync_file(id).await;
    }
}

/// The pages of a run from a page on, at most so many.
fn part(run: &Range<u64>, from: u64, most: u64) -> Range<u64> {
    from..run.end.min(from + most)
}
