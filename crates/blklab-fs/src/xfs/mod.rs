// SPDX-License-Identifier: MIT OR Apache-2.0
//! XFS as far as it makes block traffic (fs/xfs; 2.6.16 to 3.7).
//!
//! ```text
//! create, unlink, allocation ─► transaction ─► log buffers (ring) ─► records
//!                                   │ pinned until its record is on the disk
//!                                   ▼
//!                     list of logged things, by position
//!        pusher of the tail, queue of old buffers, page cache, sync
//!                                   │
//!                                   ▼
//! write ─► promised pages ─► page walk ─► one extent ─► bios    in place
//! ```
//!
//! - [`layout`], [`space`], [`inodes`], [`directory`]: where things are.
//! - [`log`], [`items`], [`buffers`], [`volume`]: state without tasks.
//! - [`transaction`], [`logging`], [`flush`], [`daemons`], [`names`], [`data`],
//!   [`times`]: what tasks do.
//!
//! Left out: real-time and external logs, quotas, extended attributes, the
//! summary that an idle log is given, mapping trees of very fragmented files,
//! locks of inodes and of buffers while a transaction is open (those of buffers
//! that are being written, and of the superblock's counters, are there).

mod buffers;
mod costs;
mod daemons;
mod data;
mod directory;
mod flush;
mod inodes;
mod items;
mod kind;
mod layout;
mod log;
mod logging;
mod names;
mod options;
mod space;
mod times;
mod transaction;
mod volume;

use blklab_pagecache::{
    Config, FileId, FreeSpace, FsError, FsTraits, Host, Mountable, Ops, PageCache, State,
    WriteControl,
};
pub(crate) use kind::XFS;
pub use layout::default_log_blocks;
pub use options::{XfsFeatures, XfsOptions};
use transaction::Io;
pub(crate) use volume::Volume;

use crate::mount::Shared;
use blklab_types::TaskId;
use std::ops::Range;

/// XFS as a filesystem.
pub(crate) type Xfs = Shared<Volume>;

impl Mountable for Xfs {
    type Options = XfsOptions;

    fn traits(options: &XfsOptions) -> FsTraits {
        FsTraits {
            // Its own lock is shared by direct I/O.
            locks_direct_io: false,
            large_folios: options.features.large_folios,
            cgroup_writeback: true,
            ..FsTraits::GENERIC
        }
    }

    fn mount(options: XfsOptions, config: &Config, state: &mut State) -> Result<Xfs, String> {
        let device = state.next_file();
        let root = FileId(device.0 + 1);
        let volume = Volume::new(options, config.layout.sectors(), device, root)?;
        state.add_device(volume.device_file());
        Ok(Shared::new(volume))
    }
}

impl<H: Host> Ops<H> for Xfs {
    /// The top directory has the first inode.
    fn make_root(&self, state: &mut State) {
        self.volume_mut().numbers[state.root] = Some(0);
    }

    fn start(&self, cache: &PageCache<H>) {
        self.on(cache).start_xfs();
    }

    fn lay_out(&self, state: &mut State, id: FileId, pages: u64) -> bool {
        self.with(state, |s| s.lay_out_xfs(id, pages)).is_some()
    }

    fn free_space(&self, _state: &mut State) -> Option<FreeSpace> {
        Some(self.volume().free())
    }

    async fn sync(&self, cache: &PageCache<H>) {
        self.on(cache).sync_xfs().await;
    }

    async fn create(
        &self,
        cache: &PageCache<H>,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        self.on(cache).create_xfs(directory, id).await
    }

    async fn look_up(
        &self,
        cache: &PageCache<H>,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        self.on(cache).look_up_xfs(directory, id).await;
        Ok(())
    }

    async fn list(&self, cache: &PageCache<H>, directory: FileId) -> Result<(), FsError> {
        self.on(cache).list_xfs(directory).await;
        Ok(())
    }

    async fn remove_entry(
        &self,
        cache: &PageCache<H>,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        self.on(cache).remove_entry_xfs(directory, id).await;
        Ok(())
    }

    async fn remove_inode(&self, cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
        self.on(cache).remove_inode_xfs(id).await;
        self.volume_mut().numbers.forget(id);
        Ok(())
    }

    async fn truncate(&self, cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
        self.on(cache).truncate_xfs(id).await;
        Ok(())
    }

    async fn invalidate(&self, cache: &PageCache<H>, id: FileId, run: Range<u64>) {
        self.on(cache).invalidate_xfs(id, run);
    }

    async fn close(&self, cache: &PageCache<H>, id: FileId, wrote: bool) {
        self.on(cache).close_xfs(id, wrote).await;
    }

    async fn begin_write(
        &self,
        cache: &PageCache<H>,
        id: FileId,
        _end: u64,
    ) -> Result<(), FsError> {
        self.on(cache).touched_now(&[id]);
        Ok(())
    }

    async fn dirty_written(
        &self,
        cache: &PageCache<H>,
        id: FileId,
        run: Range<u64>,
        end: u64,
    ) -> Result<(), FsError> {
        self.on(cache).dirty_xfs(id, run, end).await
    }

    async fn place_direct(
        &self,
        cache: &PageCache<H>,
        id: FileId,
        end: u64,
    ) -> Result<(), FsError> {
        self.on(cache).touched_now(&[id]);
        self.on(cache).place_direct_xfs(id, end).await
    }

    async fn place_dirty(
        &self,
        cache: &PageCache<H>,
        id: FileId,
        page: u64,
    ) -> Result<(), FsError> {
        self.on(cache).place_xfs(id, page).await
    }

    fn written(&self, state: &mut State, id: FileId, _run: &Range<u64>) {
        self.with(state, |s| s.written_xfs(id));
    }

    fn end_io(&self, state: &mut State, io: u64, _failed: bool, wake: &mut Vec<TaskId>) {
        self.with(state, |s| s.end_xfs(Io::numbered(io), wake));
    }

    async fn write_inode(&self, cache: &PageCache<H>, id: FileId, control: &WriteControl) {
        self.on(cache).write_inode_xfs(id, control).await;
    }

    async fn accessed(&self, cache: &PageCache<H>, id: FileId) {
        self.on(cache).read_done_xfs(id);
    }

    async fn sync_metadata(&self, cache: &PageCache<H>, id: FileId, data_only: bool) {
        self.on(cache).sync_file_xfs(id, data_only).await;
    }
}
