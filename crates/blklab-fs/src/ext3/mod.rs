// SPDX-License-Identifier: MIT OR Apache-2.0
//! ext2 and ext3 as far as they make block traffic (fs/ext3, fs/jbd; 2.6.16 to
//! 3.7).
//!
//! ```text
//! write ─► handle ─► allocation ─► ordered data ─┐
//! read ──► access time ─► handle ─► metadata ────┤ running transaction
//!                                                ▼ 5 s, fsync, log space
//! kjournald: lock ─► data ─► metadata to the log ─► commit block
//!                                                │
//!                     dirty blocks of the device ◄┘─► pdflush, checkpoint
//! ```
//!
//! Metadata blocks are pages of one more file, the device's; a block that
//! belongs to a transaction is pinned there until it is committed. Every page
//! has one buffer: `dirty` of a page and `buffer_dirty` of its buffer are two
//! things, because the journal writes buffers behind the page's back.
//!
//! Directories and their blocks are metadata as well; blocks and inodes come
//! and go with names. Files from before the run lie in one directory, of which
//! only the inode has a place.
//!
//! Left out: links, extended attributes, quotas; descriptors and the superblock
//! stay in memory, as they do in the kernel; ext2 keeps directories among the
//! device's pages too, where the kernel has them in pages of their own.

mod allocation;
mod bitmap;
mod checkpoint;
pub(crate) mod commit;
mod directory;
mod inodes;
pub(crate) mod journal;
mod layout;
mod names;
pub(crate) mod operations;
mod options;
mod truncate;
mod volume;
mod writeout;

pub use layout::default_journal_blocks;
pub(crate) use layout::has_super;
pub(crate) use options::commit_block_flags;
pub use options::{Barrier, CommitSync, DataMode, ExtFeatures, ExtOptions, barrier};

use crate::bits::PageBits;
use crate::cache::{FsError, PageCache};
use crate::file::FileId;
use crate::filesystem::FreeSpace;
use crate::host::Host;
use crate::ops::Ops;
use crate::state::State;
use allocation::{Space, Window};
use blklab_types::PAGE_BYTES;
use directory::Blocks;
use inodes::Inodes;
use journal::Journal;
use layout::Geometry;
use std::ops::Range;

/// ext2 and ext3 as a filesystem.
#[derive(Debug)]
pub(crate) struct Ext3;

/// A volume.
#[derive(Debug)]
pub(crate) struct Ext {
    pub(crate) options: ExtOptions,
    geometry: Geometry,
    space: Space,
    inodes: Inodes,
    /// The file of the device's metadata blocks.
    device: FileId,
    journal: Journal,
}

/// A page whose one block the journal deals with: a block of the device, or
/// with `data=journal` a file's page.
pub(crate) type Place = (FileId, u64);

/// What a file has on such a volume.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inode {
    /// It lies on the volume, or is its metadata: pages are written buffer by
    /// buffer.
    pub(crate) buffers: bool,
    /// Its data are ordered: write-out of its pages goes through the journal.
    pub(crate) ordered: bool,
    /// Its data are journalled.
    pub(crate) data_journal: bool,
    /// Something that fsync must commit.
    changed: bool,
    /// Its number, from 0 on.
    number: u32,
    /// The block taken last; 0 if none.
    last_block: u32,
    /// The block of its directory that has its name, if that is known.
    entry_block: Option<u32>,
    /// Seconds of the last access and change.
    atime_s: u32,
    mtime_s: u32,
    window: Window,
    pointers: Option<Box<Pointers>>,
    /// The blocks of a directory.
    blocks: Option<Box<Blocks>>,
    /// Dirty buffers; the page may be dirty without.
    pub(crate) buffer_dirty: PageBits,
    /// Buffers that the journal is writing.
    pub(crate) buffer_locked: PageBits,
    /// Pages whose data the running, and the committing, transaction awaits.
    ordered_running: PageBits,
    ordered_committing: PageBits,
}

/// The blocks of pointers of a file with more than 12 pages.
#[derive(Clone, Debug, Default)]
struct Pointers {
    /// Those that point to data, in order.
    leaves: Vec<u64>,
    /// Those that point to such blocks, in order of their making.
    uppers: Vec<u64>,
}

impl Inode {
    /// Gives back the memory of empty sets of pages.
    pub(crate) fn shrink(&mut self) {
        for bits in [
            &mut self.buffer_dirty,
            &mut self.buffer_locked,
            &mut self.ordered_running,
            &mut self.ordered_committing,
        ] {
            bits.shrink();
        }
    }

    /// Blocks of pointers to data.
    fn leaves(&self) -> &[u64] {
        self.pointers.as_ref().map_or(&[], |p| &p.leaves)
    }

    /// The last block of pointers to such blocks.
    fn upper(&self) -> Option<u64> {
        self.pointers.as_ref()?.uppers.last().copied()
    }

    /// All blocks of pointers.
    fn all_pointers(&self) -> impl Iterator<Item = u64> + '_ {
        let uppers = self.pointers.iter().flat_map(|p| p.uppers.iter());
        self.leaves().iter().chain(uppers).copied()
    }
}

impl<H: Host> Ops<H> for Ext3 {
    fn start(cache: &PageCache<H>) {
        cache.start_journal();
    }

    fn lay_out(state: &mut State, id: FileId, pages: u64) -> bool {
        state.ext_lay_out(id, pages).is_some()
    }

    async fn sync(cache: &PageCache<H>) {
        if cache.has_journal() {
            cache.force_commit().await;
        }
    }

    fn free_space(state: &State) -> Option<FreeSpace> {
        state.ext.as_ref().map(|e| e.free())
    }

    async fn create(cache: &PageCache<H>, directory: FileId, id: FileId) -> Result<(), FsError> {
        cache.ext_create(directory, id).await
    }

    async fn look_up(cache: &PageCache<H>, directory: FileId, id: FileId) -> Result<(), FsError> {
        cache.ext_look_up(directory, id).await
    }

    async fn list(cache: &PageCache<H>, directory: FileId) -> Result<(), FsError> {
        cache.ext_list(directory).await
    }

    fn list_key(state: &State, id: FileId) -> u64 {
        state.ext_list_key(id)
    }

    async fn remove_entry(
        cache: &PageCache<H>,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        cache.ext_remove_entry(directory, id).await
    }

    async fn remove_inode(cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
        cache.ext_remove_inode(id).await
    }

    async fn truncate(cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
        cache.ext_truncate(id).await
    }

    async fn invalidate(cache: &PageCache<H>, id: FileId, run: Range<u64>) {
        cache.ext_invalidate(id, run).await;
    }

    async fn close(cache: &PageCache<H>, id: FileId, wrote: bool) {
        if wrote {
            cache.with(|s| s.ext_close_written(id));
        }
    }

    async fn begin_write(cache: &PageCache<H>, id: FileId, _end: u64) -> Result<(), FsError> {
        cache.ext_modified(id).await
    }

    async fn dirty_written(
        cache: &PageCache<H>,
        id: FileId,
        run: Range<u64>,
        end: u64,
    ) -> Result<(), FsError> {
        cache.ext_dirty_pages(id, run).await?;
        cache.with(|s| {
            let file = s.file(id);
            file.size_bytes = file.size_bytes.max(end);
        });
        Ok(())
    }

    async fn place_direct(cache: &PageCache<H>, id: FileId, end: u64) -> Result<(), FsError> {
        cache.ext_modified(id).await?;
        cache.ext_reserve(id, end.div_ceil(PAGE_BYTES)).await
    }

    async fn load_mapping(cache: &PageCache<H>, id: FileId, page: u64) {
        cache.ext_load_leaf(id, page).await;
    }

    async fn accessed(cache: &PageCache<H>, id: FileId) {
        cache.ext_accessed(id).await;
    }

    async fn sync_metadata(cache: &PageCache<H>, id: FileId, data_only: bool) {
        cache.ext_sync(id, data_only).await;
    }
}
