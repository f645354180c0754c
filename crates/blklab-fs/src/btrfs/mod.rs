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
mod log;
mod operations;
mod options;
mod reads;
mod space;
mod tree;
mod volume;
mod workers;
mod writeout;

pub use options::BtrfsOptions;

use crate::cache::{FsError, PageCache};
use crate::file::FileId;
use crate::filesystem::FreeSpace;
use crate::host::Host;
use crate::ops::Ops;
use crate::state::State;
use crate::writeback::WriteControl;
use std::ops::Range;
pub(crate) use volume::Btrfs;

/// btrfs as a filesystem.
#[derive(Debug)]
pub(crate) struct BtrfsFs;

impl<H: Host> Ops<H> for BtrfsFs {
    fn start(cache: &PageCache<H>) {
        cache.start_btrfs();
    }

    fn lay_out(state: &mut State, id: FileId, pages: u64) -> bool {
        state.btrfs_lay_out(id, pages)
    }

    fn free_space(state: &State) -> Option<FreeSpace> {
        state.btrfs.as_ref().map(|v| v.free())
    }

    async fn sync(cache: &PageCache<H>) {
        cache.btrfs_sync_volume().await;
    }

    async fn create(cache: &PageCache<H>, directory: FileId, id: FileId) -> Result<(), FsError> {
        cache.btrfs_create(directory, id).await
    }

    async fn look_up(cache: &PageCache<H>, directory: FileId, id: FileId) -> Result<(), FsError> {
        cache.btrfs_look_up(directory, id).await
    }

    async fn list(cache: &PageCache<H>, directory: FileId) -> Result<(), FsError> {
        cache.btrfs_list(directory).await
    }

    fn list_key(state: &State, id: FileId) -> u64 {
        state.btrfs.as_ref().map_or(0, |b| b.index_of(id))
    }

    async fn remove_entry(
        cache: &PageCache<H>,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        cache.btrfs_remove_entry(directory, id).await
    }

    async fn remove_inode(cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
        cache.btrfs_remove_inode(id).await
    }

    async fn truncate(cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
        cache.btrfs_truncate(id).await
    }

    async fn begin_write(cache: &PageCache<H>, id: FileId, end: u64) -> Result<(), FsError> {
        cache.btrfs_begin_write(id, end).await
    }

    async fn place_direct(cache: &PageCache<H>, id: FileId, end: u64) -> Result<(), FsError> {
        cache.btrfs_begin_write(id, end).await
    }

    async fn buffers_direct_writes(_cache: &PageCache<H>, _id: FileId) -> bool {
        true
    }

    async fn writes_itself(cache: &PageCache<H>, id: FileId, control: &mut WriteControl) -> bool {
        if cache.with(|s| s.btrfs().is_device(id)) {
            cache.btrfs_write_metadata(control).await;
        } else {
            cache.btrfs_write_data(id, control).await;
        }
        true
    }

    async fn load_mapping(cache: &PageCache<H>, id: FileId, page: u64) {
        cache.btrfs_load_mapping(id, page).await;
    }

    async fn accessed(cache: &PageCache<H>, id: FileId) {
        cache.btrfs_accessed(id).await;
    }

    async fn sync_metadata(cache: &PageCache<H>, id: FileId, _data_only: bool) {
        cache.btrfs_sync_file(id).await;
    }
}

/// The pages of a run from a page on, at most so many.
fn part(run: &Range<u64>, from: u64, most: u64) -> Range<u64> {
    from..run.end.min(from + most)
}
