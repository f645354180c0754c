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
use directory::Blocks;
use inodes::Inodes;
use journal::Journal;
use layout::{Geometry, ROOT_BLOCKS, ROOT_INODE, leaf_index, new_indirects};
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

impl Ext {
    /// A volume on these sectors, whose metadata pages are `device`.
    pub(crate) fn new(
        options: ExtOptions,
        sectors: Range<u64>,
        device: FileId,
    ) -> Result<Ext, String> {
        let geometry = Geometry::new(sectors, &options)?;
        let mut inodes = Inodes::new(&geometry, options.seed);
        if options.directory_group > 0 {
            // The directory that holds the files from before the run.
            inodes.take(u64::from(options.directory_group), true);
        }
        Ok(Ext {
            options,
            space: Space::new(&geometry),
            inodes,
            journal: Journal::new(options.journal_rules(), geometry.journal_blocks, |block| {
                geometry.sector(geometry.journal_block(block))
            }),
            geometry,
            device,
        })
    }

    /// The file of metadata pages.
    pub(crate) fn device_file(&self) -> File {
        let mut file = File::new(self.geometry.blocks * blklab_types::PAGE_BYTES);
        file.extents = Extents::raw(self.geometry.start_sector, self.geometry.blocks);
        file.ext.buffers = true;
        file
    }

    /// The root directory: its inode, its block and those of lost+found.
    pub(crate) fn make_root(&mut self, id: FileId, root: &mut File) {
        root.ext = self.inode(ROOT_INODE, true);
        root.ext.blocks = Some(Box::new(Blocks::new()));
        let first = self.geometry.first_data(0);
        for block in first..first + ROOT_BLOCKS {
            let got = self.space.allocate(&self.geometry, id, None, block);
            debug_assert_eq!(got, Some(block), "the volume is empty");
        }
        root.extents.append(self.geometry.sector(first), 1);
        root.ext.last_block = first as u32;
    }

    /// An inode of that number. The data of directories are metadata.
    fn inode(&self, number: u64, directory: bool) -> Inode {
        let ordered = self.options.ordered() && !directory;
        let data_journal = self.options.journals_data() && !directory;
        Inode {
            buffers: ordered || data_journal,
            ordered,
            data_journal,
            number: number as u32,
            ..Inode::default()
        }
    }

    /// Gives a file from before the run its inode: the lowest free one of the
    /// directory's group, or of one behind it.
    fn inode_before_run(&mut self) -> Option<Inode> {
        let groups = self.geometry.groups();
        let first = u64::from(self.options.directory_group);
        let mut behind = (0..groups).map(|i| (first + i) % groups);
        let number = behind.find_map(|group| self.inodes.take(group, false))?;
        Some(self.inode(number, false))
    }

    /// The block that holds an inode.
    fn inode_block(&self, inode: &Inode) -> u64 {
        self.geometry.inode_block(u64::from(inode.number))
    }

    /// The group of an inode.
    fn group_of(&self, inode: &Inode) -> u64 {
        u64::from(inode.number) / self.geometry.inodes_per_group
    }

    /// Where the next block of a file should lie.
    fn goal(&self, inode: &Inode, pid: u32) -> u64 {
        match inode.last_block {
            0 => coloured_goal(self.group_of(inode), pid),
            last => u64::from(last) + 1,
        }
    }

    /// Takes a block of pointers or data.
    fn take(&mut self, id: FileId, file: &mut File, pid: u32) -> Option<u64> {
        let goal = self.goal(&file.ext, pid);
        let window = match file.directory {
            Some(_) => None,
            None => Some(&mut file.ext.window),
        };
        let block = self.space.allocate(&self.geometry, id, window, goal)?;
        file.ext.last_block = u32::try_from(block).unwrap_or_default();
        Some(block)
    }

    /// Takes the block of a file's next page, and the blocks of pointers that
    /// it needs before. Returns it and how many of those there are. A block of
    /// pointers that is there already when the volume turns out to be full is
    /// used by the next attempt.
    fn grow(&mut self, id: FileId, file: &mut File, pid: u32) -> Option<(u64, u64)> {
        let page = file.extents.pages();
        let pointers = new_indirects(page);
        let there = match leaf_index(page) {
            Some(leaf) if file.ext.leaves().len() as u64 > leaf => pointers,
            _ => 0,
        };
        for nth in there..pointers {
            let block = self.take(id, file, pid)?;
            let own = file.ext.pointers.get_or_insert_default();
            if nth + 1 == pointers {
                own.leaves.push(block);
            } else {
                own.uppers.push(block);
            }
        }
        let block = self.take(id, file, pid)?;
        file.extents.append(self.geometry.sector(block), 1);
        Some((block, pointers))
    }

    /// The block of pointers to a page.
    fn leaf(&self, file: &File, page: u64) -> Option<u64> {
        file.ext.leaves().get(leaf_index(page)? as usize).copied()
    }

    /// The block of a file's page.
    fn block_of(&self, file: &File, page: u64) -> Option<u64> {
        let (sector, _) = file.extents.map(page)?;
        Some(self.geometry.block_at(sector))
    }

    /// Free blocks and inodes.
    pub(crate) fn free(&self) -> (u64, u64) {
        (self.space.free_by_group().iter().sum(), self.inodes.free())
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

impl State {
    /// Gives a file its inode and its first pages a place, as an earlier run
    /// of `fio` left them: metadata in the cache, nothing dirty. None if the
    /// volume is full.
    fn ext_lay_out(&mut self, id: FileId, pages: u64) -> Option<()> {
        let State { files, ext, .. } = self;
        let ext = ext.as_mut()?;
        let file = &mut files[id.idx()];
        file.ext = ext.inode_before_run()?;
        let mut warm = vec![ext.inode_block(&file.ext)];
        let pid = ext.options.creator_pid;
        while file.extents.pages() < pages {
            let (block, _) = ext.grow(id, file, pid)?;
            let bitmap = ext.geometry.block_bitmap(ext.space.group_of(block));
            if warm.last() != Some(&bitmap) {
                warm.push(bitmap);
            }
        }
        warm.extend(file.ext.leaves());
        warm.extend(file.ext.upper());
        ext.space.discard(&mut file.ext.window);
        let device = ext.device;
        for block in warm {
            self.ext_cached((device, block));
        }
        Some(())
    }

    /// The last writer of a file closes it: its window goes.
    fn ext_close_written(&mut self, id: FileId) {
        let State { files, ext, .. } = self;
        let file = &mut files[id.idx()];
        if let Some(ext) = ext
            && file.nr_open == 0
        {
            ext.space.discard(&mut file.ext.window);
        }
    }

    /// Puts a page that the journal deals with into the cache.
    pub(crate) fn ext_cached(&mut self, (id, page): Place) {
        let run = page..page + 1;
        let file = &mut self.files[id.idx()];
        if !file.cached.test(page) {
            self.nr_cached += file.cached.set(run.clone());
            file.uptodate.set(run.clone());
            self.lru.add(id, run);
        }
    }
}
