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
use crate::ops::{FreeSpace, Host, Ops};
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
        filesystem: <H::Filesystem as Ops<H>>::Options,
    ) -> Result<PageCache<H>, ConfigError> {
        config.validate()?;
        let mut state = State::new(&config);
        let mounted: H::Filesystem =
            Ops::<H>::mount(filesystem, &config, &mut state).map_err(ConfigError::new)?;
        state.new_root();
        mounted.make_root(&mut state);
        Ok(PageCache::from_parts(host, config, mounted, state))
    }

    /// Whether a file belongs to the volume.
    pub(crate) fn is_on_volume(&self, id: FileId) -> bool {
        self.with(|s| s.files.get(id.idx()).is_some_and(|f| f.on_volume))
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
        if self.is_on_volume(id) && !self.filesystem.has_direct_io() {
            Err(FsError::NoDirect)
        } else {
            Ok(())
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

    /// Whether a walk over a file must not sleep with a bio in its hands.
    pub(crate) fn submits_before_sleep(&self, id: FileId) -> bool {
        self.is_on_volume(id) && self.filesystem.submits_before_sleep()
    }

    /// Whether background writes of a file carry the mark.
    pub(crate) fn marks_background(&self, id: FileId) -> bool {
        !self.is_on_volume(id) || self.filesystem.marks_background()
    }

    /// Pages that a bio of a file may hold.
    pub(crate) fn bio_pages(&self, on_volume: bool) -> u64 {
        if on_volume {
            self.filesystem.bio_pages(&self.config)
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

    /// Whether a file can be given the space that it will need before it is
    /// written ([`PageCache::create_empty`]).
    pub fn sets_space_aside(&self) -> bool {
        self.filesystem.sets_space_aside()
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
    type Options = ();

    fn mount(_options: (), _config: &Config, _state: &mut State) -> Result<BlockDevice, String> {
        Ok(BlockDevice)
    }

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
