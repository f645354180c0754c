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
//! Left out: directories and names (all files lie in one directory and exist
//! before the run), truncation, `data=journal`, inode blocks that are cold
//! when a file is opened.

mod allocation;
mod checkpoint;
pub(crate) mod commit;
pub(crate) mod journal;
mod layout;
pub(crate) mod operations;
mod options;

pub use layout::default_journal_blocks;
pub(crate) use options::commit_block_flags;
pub use options::{Atime, Barrier, CommitSync, DataMode, ExtFeatures, ExtOptions, barrier};

use crate::bits::PageBits;
use crate::cache::{FsError, PageCache};
use crate::file::{File, FileId};
use crate::host::Host;
use crate::layout::Extents;
use crate::ops::Ops;
use crate::state::State;
use allocation::{Space, Window, coloured_goal};
use blklab_types::PAGE_BYTES;
use journal::Journal;
use layout::{Geometry, leaf_index, new_indirects};
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
    /// The file of the device's metadata blocks.
    device: FileId,
    /// Files that have an inode.
    nr_inodes: u64,
    journal: Journal,
}

/// What a file has on such a volume.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inode {
    /// It lies on the volume, or is its metadata: pages are written buffer by
    /// buffer.
    pub(crate) buffers: bool,
    /// Write-out of its pages goes through the journal.
    pub(crate) journalled: bool,
    group: u64,
    /// The block that holds the inode.
    block: u64,
    /// Blocks of pointers, those that point to data in order.
    leaves: Vec<u64>,
    /// The last block of pointers to such blocks.
    upper: Option<u64>,
    window: Window,
    last_block: u64,
    atime_s: u64,
    mtime_s: u64,
    /// Something that fsync must commit.
    changed: bool,
    /// Dirty buffers; the page may be dirty without.
    pub(crate) buffer_dirty: PageBits,
    /// Buffers that the journal is writing.
    pub(crate) buffer_locked: PageBits,
    /// Pages whose data the running, and the committing, transaction awaits.
    ordered_running: PageBits,
    ordered_committing: PageBits,
}

impl Ext {
    /// A volume on these sectors, whose metadata pages are `device`.
    pub(crate) fn new(
        options: ExtOptions,
        sectors: Range<u64>,
        device: FileId,
    ) -> Result<Ext, String> {
        let geometry = Geometry::new(sectors, &options)?;
        Ok(Ext {
            options,
            space: Space::new(&geometry),
            journal: Journal::new(options.journal_rules(), geometry.journal_blocks, |block| {
                geometry.sector(geometry.journal_block(block))
            }),
            geometry,
            device,
            nr_inodes: 0,
        })
    }

    /// The file of metadata pages.
    pub(crate) fn device_file(&self) -> File {
        let mut file = File::new(self.geometry.blocks * blklab_types::PAGE_BYTES);
        file.extents = Extents::raw(self.geometry.start_sector, self.geometry.blocks);
        file.ext.buffers = true;
        file
    }

    /// Gives a new file its inode: the lowest free one of the directory's
    /// group, or of one behind it.
    fn new_inode(&mut self) -> Inode {
        let mut group = u64::from(self.options.directory_group);
        let mut index = Geometry::first_inode(group) + self.nr_inodes;
        self.nr_inodes += 1;
        while index >= self.geometry.inodes_per_group {
            index -= self.geometry.inodes_per_group;
            group = (group + 1) % self.geometry.groups();
        }
        Inode {
            buffers: self.options.ordered(),
            journalled: self.options.ordered(),
            group,
            block: self.geometry.inode_block(group, index),
            ..Inode::default()
        }
    }

    /// Where the next block of a file should lie.
    fn goal(&self, inode: &Inode, pid: u32) -> u64 {
        match inode.last_block {
            0 => coloured_goal(inode.group, pid),
            last => last + 1,
        }
    }

    /// Takes a block of pointers or data.
    fn take(&mut self, id: FileId, inode: &mut Inode, pid: u32) -> Option<u64> {
        let goal = self.goal(inode, pid);
        let block = self
            .space
            .allocate(&self.geometry, id, &mut inode.window, goal)?;
        inode.last_block = block;
        Some(block)
    }

    /// Takes the block of a file's next page, and the blocks of pointers that
    /// it needs before. Returns it and how many of those there are.
    fn grow(&mut self, id: FileId, file: &mut File, pid: u32) -> Option<(u64, u64)> {
        let page = file.extents.pages();
        let pointers = new_indirects(page);
        for nth in 0..pointers {
            let block = self.take(id, &mut file.ext, pid)?;
            if nth + 1 == pointers {
                file.ext.leaves.push(block);
            } else {
                file.ext.upper = Some(block);
            }
        }
        let block = self.take(id, &mut file.ext, pid)?;
        file.extents.append(self.geometry.sector(block), 1);
        Some((block, pointers))
    }

    /// The block of pointers to a page.
    fn leaf(&self, file: &File, page: u64) -> Option<u64> {
        file.ext.leaves.get(leaf_index(page)? as usize).copied()
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

    async fn begin_write(cache: &PageCache<H>, id: FileId, _end: u64) -> Result<(), FsError> {
        cache.ext_modified(id).await;
        Ok(())
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
        cache.ext_modified(id).await;
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

impl State {
    /// Gives a file its inode and its first pages a place, as an earlier run
    /// of `fio` left them: metadata in the cache, nothing dirty. None if the
    /// volume is full.
    fn ext_lay_out(&mut self, id: FileId, pages: u64) -> Option<()> {
        let State { files, ext, .. } = self;
        let ext = ext.as_mut()?;
        let file = &mut files[id.idx()];
        file.ext = ext.new_inode();
        let mut warm = vec![file.ext.block];
        let pid = ext.options.creator_pid;
        while file.extents.pages() < pages {
            let (block, _) = ext.grow(id, file, pid)?;
            let bitmap = ext.geometry.block_bitmap(ext.space.group_of(block));
            if warm.last() != Some(&bitmap) {
                warm.push(bitmap);
            }
        }
        warm.extend(&file.ext.leaves);
        warm.extend(file.ext.upper);
        ext.space.discard(&mut file.ext.window);
        let device = ext.device;
        for block in warm {
            self.ext_cached(device, block);
        }
        Some(())
    }

    /// Puts a metadata block into the cache.
    pub(crate) fn ext_cached(&mut self, device: FileId, block: u64) {
        let run = block..block + 1;
        let file = &mut self.files[device.idx()];
        if !file.cached.test(block) {
            self.nr_cached += file.cached.set(run.clone());
            file.uptodate.set(run.clone());
            self.lru.add(device, run);
        }
    }
}
