// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calling the filesystem that a file lies on.
//!
//! What a filesystem is asked is in [`crate::ops`]. Files that do not belong to
//! the volume (a disk opened as a file, a filesystem's own pages) are those of
//! the [`BlockDevice`].

use crate::cache::PageCache;
use crate::config::{Config, ConfigError};
use crate::error::FsError;
use crate::file::FileId;
use crate::fs_traits::{DirectIo, FsTraits};
use crate::ops::{FreeSpace, Host, Mountable, Ops};
use crate::state::State;
use blklab_types::{PAGE_BYTES, TaskId};
use std::ops::Range;

/// The device without a filesystem: its pages have places from the beginning,
/// and nothing else is known of them.
#[derive(Debug)]
pub(crate) struct BlockDevice;

/// Calls an operation of the filesystem that its first file lies on, and awaits
/// it.
macro_rules! on_volume {
    ($cache:expr, $op:ident($id:expr $(, $rest:expr)*)) => {
        if $cache.is_on_volume($id) {
            let filesystem = &*$cache.filesystem;
            $crate::ops::Ops::<H>::$op(filesystem, $cache, $id $(, $rest)*).await
        } else {
            let device = &$crate::volume::BlockDevice;
            $crate::ops::Ops::<H>::$op(device, $cache, $id $(, $rest)*).await
        }
    };
}
pub(crate) use on_volume;

impl<H: Host> PageCache<H> {
    /// An empty cache. [`PageCache::start`] starts the threads that write it
    /// back.
    ///
    /// # Errors
    /// Settings that cannot work.
    pub fn new(
        host: H,
        config: Config,
        filesystem: <H::Filesystem as Mountable>::Options,
    ) -> Result<PageCache<H>, ConfigError> {
        config.validate()?;
        let mut state = State::new(&config);
        let traits = H::Filesystem::traits(&filesystem);
        let mounted =
            H::Filesystem::mount(filesystem, &config, &mut state).map_err(ConfigError::new)?;
        state.new_root();
        mounted.make_root(&mut state);
        Ok(PageCache::from_parts(host, config, mounted, traits, state))
    }

    /// Whether a file belongs to the volume.
    pub(crate) fn is_on_volume(&self, id: FileId) -> bool {
        self.with(|s| s.files.get(id.idx()).is_some_and(|f| f.on_volume))
    }

    /// What is true of what a file lies on.
    pub(crate) fn traits_of(&self, id: FileId) -> &FsTraits {
        if self.is_on_volume(id) {
            &self.traits
        } else {
            &FsTraits::BLOCK_DEVICE
        }
    }

    /// Starts the filesystem's threads.
    pub(crate) fn start_filesystem(&self) {
        self.filesystem.start(self);
    }

    /// A page is about to be mapped for a read.
    pub(crate) async fn load_mapping(&self, id: FileId, page: u64) {
        on_volume!(self, load_mapping(id, page));
    }

    /// The filesystem's step of `sync`.
    pub(crate) async fn sync_filesystem(&self) {
        self.filesystem.sync(self).await;
    }

    /// Whether the filesystem reads pages of a file itself; then it has begun
    /// to read the missing ones of the run.
    pub(crate) fn reads_itself(&self, id: FileId, run: Range<u64>) -> bool {
        self.is_on_volume(id) && self.filesystem.reads_itself(self, id, run)
    }

    /// Refuses direct I/O where the filesystem has none.
    pub(crate) fn allows_direct(&self, id: FileId) -> Result<(), FsError> {
        match self.traits_of(id).direct_io {
            DirectIo::Refused => Err(FsError::NoDirect),
            DirectIo::Reads | DirectIo::Both => Ok(()),
        }
    }

    /// The superblock's turn of the periodic job (`sync_supers`).
    pub(crate) async fn write_super(&self) {
        self.filesystem.write_super(self).await;
    }

    /// Pages of a file up to one are in bios, or passed over.
    pub(crate) fn taken(&self, id: FileId, upto: u64) {
        if self.is_on_volume(id) {
            self.filesystem.taken(self, id, upto);
        }
    }

    /// Pages that a bio of a file may hold.
    pub(crate) fn bio_pages(&self, on_volume: bool) -> u64 {
        if on_volume && !self.traits.large_bios {
            1
        } else {
            self.config.bio_pages
        }
    }

    /// Forgets what the filesystem keeps to save reads.
    pub(crate) fn drop_filesystem_caches(&self, s: &mut State) {
        self.filesystem.drop_caches(s);
    }

    /// Where a file stands in the listing of its directory: entries come in
    /// ascending order.
    pub fn listing_place(&self, id: FileId) -> (u64, u64) {
        (
            self.with(|s| self.filesystem.list_key(s, id)),
            u64::from(id.0),
        )
    }

    /// What is true of the filesystem.
    pub fn traits(&self) -> &FsTraits {
        &self.traits
    }

    /// Free space of the volume; none on a filesystem that does not count it.
    pub fn free_space(&self) -> Option<FreeSpace> {
        self.with(|s| self.filesystem.free_space(s))
    }

    /// A bio of pages has ended, and with it their write-back, unless the filesystem
    /// has something to change first: true if that may need a worker.
    pub(crate) fn end_pages(
        &self,
        s: &mut State,
        id: FileId,
        run: &Range<u64>,
        failed: bool,
        wake: &mut Vec<TaskId>,
    ) -> bool {
        let on_volume = s.files[id.idx()].on_volume;
        if on_volume && self.filesystem.keeps_written(s, id, run, failed) {
            return true;
        }
        s.end_writeback(id, run, failed, wake);
        if on_volume {
            self.filesystem.written(s, id, run);
        }
        false
    }
}

impl BlockDevice {
    /// A device does not grow.
    fn holds<H: Host>(cache: &PageCache<H>, id: FileId, end: u64) -> Result<(), FsError> {
        let pages = cache.with(|s| s.file(id).extents.pages());
        if end.div_ceil(PAGE_BYTES) <= pages {
            Ok(())
        } else {
            Err(FsError::NoSpace)
        }
    }
}

impl<H: Host> Ops<H> for BlockDevice {
    fn lay_out(&self, _state: &mut State, _id: FileId, _pages: u64) -> bool {
        unreachable!("files are laid out on a volume")
    }

    async fn begin_write(&self, cache: &PageCache<H>, id: FileId, end: u64) -> Result<(), FsError> {
        BlockDevice::holds(cache, id, end)
    }

    async fn place_direct(
        &self,
        cache: &PageCache<H>,
        id: FileId,
        end: u64,
    ) -> Result<(), FsError> {
        BlockDevice::holds(cache, id, end)
    }
}
