// SPDX-License-Identifier: MIT OR Apache-2.0
//! NILFS2 as far as it makes block traffic (fs/nilfs2 of 2.6.32; the module of
//! 2008 is taken to be alike).
//!
//! ```text
//! write, create, unlink ─► dirty pages ──┐
//! inode, translation ─► dirty pages of   │ 5 s, 3600 blocks, sync, fsync
//!   files that hold metadata ────────────┤
//!                                        ▼
//! segctord: all changes wait ─► logs, one behind the other, in segments
//!                                        ▲
//! nilfs_cleanerd: what still lives in an old segment is written again
//! ```
//!
//! Metadata are files: inodes (`ifile`), checkpoints, the use of segments, the
//! translation of virtual block numbers (`dat`), and the B-tree nodes of all
//! files. Their pages count as dirty pages like any other, but only the
//! constructor writes them; the flusher passes over the files of the volume.
//!
//! Left out: reading the B-tree nodes of the metadata files themselves;
//! snapshots; recovery; segment summaries of more than one virtual block
//! number per block; the second superblock.

mod changes;
mod cleaner;
mod constructor;
mod kind;
mod log;
mod operations;
mod options;
mod reads;
mod segments;
mod tables;
mod tree;

pub(crate) use kind::NILFS2;
pub use options::NilfsOptions;

use crate::mount::{Shared, View};
use blklab_pagecache::{
    Config, DirectIo, Extents, File, FileId, FreeSpace, FsError, FsTraits, Host, Mountable, Ops,
    PageCache, State, WriteControl,
};
use blklab_types::{Jiffies, PAGE_BYTES, PAGE_SECTORS, TaskId, Time};
use constructor::Constructor;
use segments::Segments;
use std::ops::Range;
use tables::Table;
use tree::Tree;

/// NILFS2 as a filesystem.
pub(crate) type Nilfs2 = Shared<Nilfs>;

/// Bytes of an inode on the disk.
const INODE_BYTES: u64 = 128;
/// Bytes of a translation entry.
const TRANSLATION_BYTES: u64 = 32;
/// Checkpoints of a block (192 bytes each).
const CHECKPOINTS_PER_BLOCK: u64 = 21;
/// Segments whose use a block records (16 bytes each).
const USAGES_PER_BLOCK: u64 = 256;

/// The files that hold metadata.
#[derive(Clone, Copy, Debug)]
struct MetaFiles {
    inodes: FileId,
    checkpoints: FileId,
    usage: FileId,
    translation: FileId,
    /// B-tree nodes of all files, by number.
    nodes: FileId,
}

impl MetaFiles {
    /// In the order in which a log holds them.
    fn all(&self) -> [FileId; 5] {
        [
            self.inodes,
            self.checkpoints,
            self.usage,
            self.translation,
            self.nodes,
        ]
    }
}

/// What a file has on such a volume.
#[derive(Clone, Debug, Default)]
struct Inode {
    /// Its number.
    number: u32,
    /// Virtual block numbers of its pages, as if they were blocks of a disk.
    numbers: Extents,
    tree: Option<Box<Tree>>,
    /// The page of the directory that holds its entry.
    entry_page: u32,
    /// Free bytes of each page, if it is a directory.
    free_bytes: Option<Vec<u16>>,
    /// It waits for the constructor.
    queued: bool,
    /// No checkpoint has it yet.
    fresh: bool,
    atime_s: u32,
    mtime_s: u32,
}

/// A volume.
#[derive(Debug)]
pub struct Nilfs {
    options: NilfsOptions,
    start_sector: u64,
    segments: Segments,
    meta: MetaFiles,
    inodes: Vec<Inode>,
    inode_table: Table,
    translation: Table,
    /// Virtual block number of each node; those not in use have none.
    node_numbers: Vec<u32>,
    free_nodes: Vec<u32>,
    /// Files with something to write, in the order in which they got it.
    queue: Vec<FileId>,
    /// Blocks of files that became dirty since the last log.
    dirty_blocks: u64,
    checkpoint: u64,
    constructor: Constructor,
}

impl Nilfs {
    fn new(options: NilfsOptions, sectors: Range<u64>, meta: MetaFiles) -> Result<Nilfs, String> {
        let blocks = u64::from(options.segment_blocks);
        let percent = u64::from(options.reserved_percent);
        let segments = Segments::new(sectors.clone(), blocks, percent).ok_or_else(|| {
            format!(
                "nilfs2 needs at least 16 segments of {blocks} blocks, {} MiB",
                (16 * blocks * PAGE_BYTES) >> 20
            )
        })?;
        Ok(Nilfs {
            options,
            start_sector: sectors.start,
            segments,
            meta,
            inodes: Vec::new(),
            inode_table: Table::new(INODE_BYTES),
            translation: Table::new(TRANSLATION_BYTES),
            node_numbers: Vec::new(),
            free_nodes: Vec::new(),
            queue: Vec::new(),
            dirty_blocks: 0,
            checkpoint: 1,
            constructor: Constructor::default(),
        })
    }

    /// Blocks that writers may still fill, and inodes that can be numbered.
    pub(crate) fn free(&self) -> FreeSpace {
        let inodes = u64::from(u32::MAX) - self.inode_table.next();
        FreeSpace::new(self.segments.room(), inodes)
    }

    fn inode(&mut self, id: FileId) -> &mut Inode {
        if self.inodes.len() <= id.idx() {
            self.inodes.resize_with(id.idx() + 1, Inode::default);
        }
        &mut self.inodes[id.idx()]
    }

    /// The virtual block number of a page.
    fn number(&self, id: FileId, page: u64) -> Option<u64> {
        if id == self.meta.nodes {
            let number = self.node_numbers.get(page as usize).copied();
            return number.filter(|n| *n != segments::NO_NUMBER).map(u64::from);
        }
        let inode = self.inodes.get(id.idx())?;
        let (place, _) = inode.numbers.map(page)?;
        Some(place / PAGE_SECTORS)
    }
}

impl View<'_, Nilfs> {
    /// The root has an inode and no entry.
    pub(crate) fn nilfs_root(&mut self) {
        let root = self.root;
        self.nilfs_new_inode(root, Jiffies(0));
        self.nilfs_settle();
    }

    /// Puts all that is dirty into segments, as an earlier run left it.
    fn nilfs_settle(&mut self) {
        let log = self.nilfs_collect(&log::Plan::checkpoint(), Time::ZERO);
        let mut wake: Vec<TaskId> = Vec::new();
        self.nilfs_finish(&log, false, &mut wake);
        let n = &mut *self.volume;
        n.queue.clear();
        n.dirty_blocks = 0;
    }
}

impl Mountable for Nilfs2 {
    type Options = NilfsOptions;

    fn traits(_options: &NilfsOptions) -> FsTraits {
        FsTraits {
            direct_io: DirectIo::Reads,
            ..FsTraits::GENERIC
        }
    }

    fn mount(options: NilfsOptions, config: &Config, state: &mut State) -> Result<Nilfs2, String> {
        let mut file = || {
            let id = state.next_file();
            let mut file = File::new(0);
            file.metadata = true;
            state.files.push(file);
            id
        };
        let meta = MetaFiles {
            inodes: file(),
            checkpoints: file(),
            usage: file(),
            translation: file(),
            nodes: file(),
        };
        Ok(Shared::new(Nilfs::new(
            options,
            config.layout.sectors(),
            meta,
        )?))
    }
}

impl<H: Host> Ops<H> for Nilfs2 {
    fn make_root(&self, state: &mut State) {
        self.with(state, |s| s.nilfs_root());
    }

    fn start(&self, cache: &PageCache<H>) {
        self.on(cache).start_constructor();
    }

    fn lay_out(&self, state: &mut State, id: FileId, pages: u64) -> bool {
        self.with(state, |s| s.nilfs_lay_out(id, pages))
    }

    fn free_space(&self, _state: &mut State) -> Option<FreeSpace> {
        Some(self.volume().free())
    }

    async fn sync(&self, cache: &PageCache<H>) {
        self.on(cache).construct_and_wait().await;
    }

    async fn create(
        &self,
        cache: &PageCache<H>,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        self.on(cache).nilfs_create(directory, id).await
    }

    async fn look_up(
        &self,
        cache: &PageCache<H>,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        self.on(cache).nilfs_look_up(directory, id).await
    }

    async fn list(&self, cache: &PageCache<H>, directory: FileId) -> Result<(), FsError> {
        self.on(cache)
            .nilfs_read_directory(directory, u64::MAX)
            .await
    }

    fn list_key(&self, _state: &mut State, id: FileId) -> u64 {
        let volume = self.volume();
        let inode = volume.inodes.get(id.idx());
        inode.map_or(0, |i| u64::from(i.entry_page))
    }

    async fn remove_entry(
        &self,
        cache: &PageCache<H>,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        self.on(cache).nilfs_remove_entry(directory, id).await
    }

    async fn remove_inode(&self, cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
        self.on(cache).nilfs_remove_inode(id).await
    }

    async fn truncate(&self, cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
        self.on(cache).nilfs_truncate(id).await
    }

    async fn begin_write(&self, cache: &PageCache<H>, id: FileId, end: u64) -> Result<(), FsError> {
        self.on(cache).nilfs_begin_write(id, end).await
    }

    async fn dirty_written(
        &self,
        cache: &PageCache<H>,
        id: FileId,
        run: Range<u64>,
        end: u64,
    ) -> Result<(), FsError> {
        self.on(cache).nilfs_dirty(id, run, end).await
    }

    async fn place_direct(
        &self,
        cache: &PageCache<H>,
        id: FileId,
        end: u64,
    ) -> Result<(), FsError> {
        self.on(cache).nilfs_begin_write(id, end).await
    }

    async fn mapped_write(&self, cache: &PageCache<H>, id: FileId, page: u64) {
        self.on(cache).nilfs_mapped_write(id, page).await;
    }

    async fn writes_itself(
        &self,
        cache: &PageCache<H>,
        id: FileId,
        control: &mut WriteControl,
    ) -> bool {
        if control.integrity {
            self.on(cache).construct_data(id).await;
        } else {
            self.on(cache).nilfs_requeue(id).await;
        }
        true
    }

    async fn load_mapping(&self, cache: &PageCache<H>, id: FileId, page: u64) {
        self.on(cache).nilfs_load_mapping(id, page).await;
    }

    async fn accessed(&self, cache: &PageCache<H>, id: FileId) {
        self.on(cache).nilfs_accessed(id).await;
    }

    async fn sync_metadata(&self, cache: &PageCache<H>, id: FileId, data_only: bool) {
        self.on(cache).nilfs_sync_file(id, data_only).await;
    }
}
