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
mod layout;
mod log;
mod logging;
mod names;
mod options;
mod space;
mod times;
mod transaction;
mod volume;

pub use layout::default_log_blocks;
pub use options::{XfsFeatures, XfsOptions};
pub(crate) use transaction::Io;
pub(crate) use volume::Volume;

use crate::cache::{FsError, PageCache};
use crate::file::FileId;
use crate::filesystem::FreeSpace;
use crate::host::Host;
use crate::ops::Ops;
use crate::state::State;
use crate::writeback::WriteControl;
use std::ops::Range;

/// XFS as a filesystem.
#[derive(Debug)]
pub(crate) struct Xfs;

impl State {
    /// Makes the volume.
    pub(crate) fn mount_xfs(
        &mut self,
        options: XfsOptions,
        sectors: Range<u64>,
    ) -> Result<(), String> {
        let device = FileId(self.files.len() as u32);
        let root = FileId(device.0 + 1);
        let volume = Volume::new(options, sectors, device, root)?;
        self.files.push(volume.device_file());
        self.device = Some(device);
        self.xfs = Some(Box::new(volume));
        Ok(())
    }

    /// The top directory has the first inode.
    pub(crate) fn xfs_root(&mut self) {
        self.files[self.root.idx()].xfs_inode = Some(0);
    }
}

impl<H: Host> Ops<H> for Xfs {
    fn start(cache: &PageCache<H>) {
        cache.start_xfs();
    }

    fn lay_out(state: &mut State, id: FileId, pages: u64) -> bool {
        state.lay_out_xfs(id, pages).is_some()
    }

    fn free_space(state: &State) -> Option<FreeSpace> {
        state.xfs.as_ref().map(|v| v.free())
    }

    async fn sync(cache: &PageCache<H>) {
        cache.sync_xfs().await;
    }

    async fn create(cache: &PageCache<H>, directory: FileId, id: FileId) -> Result<(), FsError> {
        cache.create_xfs(directory, id).await
    }

    async fn look_up(cache: &PageCache<H>, directory: FileId, id: FileId) -> Result<(), FsError> {
        cache.look_up_xfs(directory, id).await;
        Ok(())
    }

    async fn list(cache: &PageCache<H>, directory: FileId) -> Result<(), FsError> {
        cache.list_xfs(directory).await;
        Ok(())
    }

    async fn remove_entry(
        cache: &PageCache<H>,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        cache.remove_entry_xfs(directory, id).await;
        Ok(())
    }

    async fn remove_inode(cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
        cache.remove_inode_xfs(id).await;
        Ok(())
    }

    async fn truncate(cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
        cache.truncate_xfs(id).await;
        Ok(())
    }

    async fn invalidate(cache: &PageCache<H>, id: FileId, run: Range<u64>) {
        cache.invalidate_xfs(id, run);
    }

    async fn close(cache: &PageCache<H>, id: FileId, wrote: bool) {
        cache.close_xfs(id, wrote).await;
    }

    async fn begin_write(cache: &PageCache<H>, id: FileId, _end: u64) -> Result<(), FsError> {
        cache.touched_now(&[id]);
        Ok(())
    }

    async fn dirty_written(
        cache: &PageCache<H>,
        id: FileId,
        run: Range<u64>,
        end: u64,
    ) -> Result<(), FsError> {
        cache.dirty_xfs(id, run, end).await
    }

    async fn place_direct(cache: &PageCache<H>, id: FileId, end: u64) -> Result<(), FsError> {
        cache.touched_now(&[id]);
        cache.place_direct_xfs(id, end).await
    }

    async fn place_dirty(cache: &PageCache<H>, id: FileId, page: u64) -> Result<(), FsError> {
        cache.place_xfs(id, page).await
    }

    fn written(state: &mut State, id: FileId, _run: &Range<u64>) {
        state.written_xfs(id);
    }

    async fn write_inode(cache: &PageCache<H>, id: FileId, control: &WriteControl) {
        cache.write_inode_xfs(id, control).await;
    }

    async fn accessed(cache: &PageCache<H>, id: FileId) {
        cache.read_done_xfs(id);
    }

    async fn sync_metadata(cache: &PageCache<H>, id: FileId, data_only: bool) {
        cache.sync_file_xfs(id, data_only).await;
    }
}
