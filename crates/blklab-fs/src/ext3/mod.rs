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
//! has one buffer: a page and its buffer are dirty separately, which are two
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
mod appending;
mod bitmap;
mod directory;
mod inodes;
mod kind;
mod layout;
mod names;
mod operations;
mod options;
mod truncate;
mod volume;
mod writeout;

pub(crate) use kind::{EXT2, EXT3};
pub use layout::default_journal_blocks;
pub(crate) use layout::has_super;
pub use options::{ExtFeatures, ExtOptions, JournalPlace};

use crate::jbd::{Journal, Journalled};
use crate::mount::{PerFile, Shared};
use allocation::{Space, Window};
use blklab_pagecache::{
    Config, FileId, FreeSpace, FsError, FsTraits, Host, Mountable, Ops, PageCache, State,
};
use blklab_types::{BioFlags, PAGE_BYTES, TaskId};
use directory::Blocks;
use inodes::Inodes;
use layout::Geometry;
use std::ops::Range;

/// ext2 and ext3 as a filesystem.
pub(crate) type Ext3 = Shared<Ext>;

impl Journalled for Ext {
    const THREAD: &'static str = "kjournald";

    fn journal(&mut self) -> &mut Journal {
        &mut self.journal
    }

    fn release(&mut self, run: Range<u64>) {
        self.space.release(run);
    }

    fn check_space(&self) {
        self.space.check();
    }
}

/// A volume.
#[derive(Debug)]
pub struct Ext {
    pub(crate) options: ExtOptions,
    geometry: Geometry,
    space: Space,
    inodes: Inodes,
    /// The file of the device's metadata blocks.
    device: FileId,
    journal: Journal,
    /// The inodes of files.
    nodes: PerFile<Inode>,
}

/// What a file has on such a volume.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inode {
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

impl Mountable for Ext3 {
    type Options = ExtOptions;

    fn traits(options: &ExtOptions) -> FsTraits {
        FsTraits {
            flushes_on_fsync: !options.journal,
            cgroup_writeback: true,
            ..FsTraits::GENERIC
        }
    }

    fn mount(options: ExtOptions, config: &Config, state: &mut State) -> Result<Ext3, String> {
        let device = state.next_file();
        let ext = Ext::new(options, config.layout.sectors(), device)?;
        state.add_device(ext.device_file());
        Ok(Shared::new(ext))
    }
}

impl<H: Host> Ops<H> for Ext3 {
    fn make_root(&self, state: &mut State) {
        self.with(state, |s| {
            let root = s.root;
            s.volume.make_root(root, &mut s.state.files[root.idx()]);
        });
    }

    fn start(&self, cache: &PageCache<H>) {
        let mount = self.on(cache);
        if mount.has_journal() {
            mount.start_journal();
        }
    }

    fn lay_out(&self, state: &mut State, id: FileId, pages: u64) -> bool {
        self.with(state, |s| s.ext_lay_out(id, pages)).is_some()
    }

    async fn write_page(
        &self,
        cache: &PageCache<H>,
        id: FileId,
        page: u64,
        flags: BioFlags,
        nonblocking: bool,
    ) -> bool {
        self.on(cache)
            .ext_write_page(id, page, flags, nonblocking)
            .await
    }

    async fn sync(&self, cache: &PageCache<H>) {
        if self.on(cache).has_journal() {
            self.on(cache).force_commit().await;
        }
    }

    fn free_space(&self, _state: &mut State) -> Option<FreeSpace> {
        Some(self.volume().free())
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
        self.on(cache).ext_create(directory, id).await
    }

    async fn look_up(
        &self,
        cache: &PageCache<H>,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        self.on(cache).ext_look_up(directory, id).await
    }

    async fn list(&self, cache: &PageCache<H>, directory: FileId) -> Result<(), FsError> {
        self.on(cache).ext_list(directory).await
    }

    fn list_key(&self, state: &mut State, id: FileId) -> u64 {
        self.with(state, |s| s.ext_list_key(id))
    }

    async fn remove_entry(
        &self,
        cache: &PageCache<H>,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        self.on(cache).ext_remove_entry(directory, id).await
    }

    async fn remove_inode(&self, cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
        let freed = self.on(cache).ext_remove_inode(id).await;
        let mut volume = self.volume_mut();
        volume.nodes.forget(id);
        volume.journal.forget_file(id);
        freed
    }

    async fn truncate(&self, cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
        self.on(cache).ext_truncate(id).await
    }

    async fn invalidate(&self, cache: &PageCache<H>, id: FileId, run: Range<u64>) {
        self.on(cache).ext_invalidate(id, run).await;
    }

    async fn close(&self, cache: &PageCache<H>, id: FileId, wrote: bool) {
        if wrote {
            self.on(cache).with(|s| s.ext_close_written(id));
        }
    }

    async fn begin_write(
        &self,
        cache: &PageCache<H>,
        id: FileId,
        _end: u64,
    ) -> Result<(), FsError> {
        self.on(cache).ext_modified(id).await
    }

    async fn dirty_written(
        &self,
        cache: &PageCache<H>,
        id: FileId,
        run: Range<u64>,
        end: u64,
    ) -> Result<(), FsError> {
        self.on(cache).ext_dirty_pages(id, run).await?;
        self.on(cache).with(|s| {
            let file = s.file(id);
            file.size_bytes = file.size_bytes.max(end);
        });
        Ok(())
    }

    async fn place_direct(
        &self,
        cache: &PageCache<H>,
        id: FileId,
        end: u64,
    ) -> Result<(), FsError> {
        self.on(cache).ext_modified(id).await?;
        self.on(cache)
            .ext_reserve(id, end.div_ceil(PAGE_BYTES))
            .await
    }

    async fn load_mapping(&self, cache: &PageCache<H>, id: FileId, page: u64) {
        self.on(cache).ext_load_leaf(id, page).await;
    }

    async fn accessed(&self, cache: &PageCache<H>, id: FileId) {
        self.on(cache).ext_accessed(id).await;
    }

    async fn sync_metadata(&self, cache: &PageCache<H>, id: FileId, data_only: bool) {
        self.on(cache).ext_sync(id, data_only).await;
    }
}
