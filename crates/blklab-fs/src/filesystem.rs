// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which filesystem the machine has, and calling it.
//!
//! What a filesystem is asked is in [`crate::ops`]. Files that do not belong to
//! the volume (a disk opened as a file, a filesystem's own pages) are treated as
//! if they lay on extents.

use crate::btrfs::BtrfsOptions;
use crate::cache::{FsError, PageCache};
use crate::config::Config;
use crate::ext3::ExtOptions;
use crate::ext4::Ext4Options;
use crate::file::FileId;
use crate::host::Host;
use crate::layout::ExtentLayout;
use crate::nilfs2::NilfsOptions;
use crate::ntfs3g::NtfsOptions;
use crate::ops::Ops;
use crate::reiserfs::ReiserOptions;
use crate::state::State;
use crate::xfs::XfsOptions;
use blklab_types::PAGE_BYTES;
use std::ops::Range;

/// What the files lie on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filesystem {
    /// Space in ascending order, no metadata ([`crate::Layout`]).
    #[default]
    Extents,
    /// ext2 or ext3.
    Ext(ExtOptions),
    /// ext4.
    Ext4(Ext4Options),
    /// btrfs.
    Btrfs(BtrfsOptions),
    /// NILFS2.
    Nilfs(NilfsOptions),
    /// ReiserFS 3.6.
    Reiser(ReiserOptions),
    /// NTFS-3G.
    Ntfs(NtfsOptions),
    /// XFS.
    Xfs(XfsOptions),
}

/// What is free on a volume (`statfs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeSpace {
    /// Bytes of free blocks.
    pub bytes: u64,
    /// Files and directories that can be made.
    pub inodes: u64,
}

impl FreeSpace {
    /// Of so many free blocks.
    pub(crate) fn of(blocks: u64, inodes: u64) -> FreeSpace {
        FreeSpace {
            bytes: blocks * PAGE_BYTES,
            inodes,
        }
    }
}

/// An expression in which `$fs` is the type of a filesystem.
macro_rules! with_type {
    ($filesystem:expr, $fs:ident => $body:expr) => {
        match $filesystem {
            $crate::filesystem::Filesystem::Extents => {
                type $fs = $crate::layout::ExtentLayout;
                $body
            }
            $crate::filesystem::Filesystem::Ext(_) => {
                type $fs = $crate::ext3::Ext3;
                $body
            }
            $crate::filesystem::Filesystem::Ext4(_) => {
                type $fs = $crate::ext4::Ext4Fs;
                $body
            }
            $crate::filesystem::Filesystem::Btrfs(_) => {
                type $fs = $crate::btrfs::BtrfsFs;
                $body
            }
            $crate::filesystem::Filesystem::Nilfs(_) => {
                type $fs = $crate::nilfs2::Nilfs2;
                $body
            }
            $crate::filesystem::Filesystem::Reiser(_) => {
                type $fs = $crate::reiserfs::ReiserFs;
                $body
            }
            $crate::filesystem::Filesystem::Ntfs(_) => {
                type $fs = $crate::ntfs3g::NtfsFs;
                $body
            }
            $crate::filesystem::Filesystem::Xfs(_) => {
                type $fs = $crate::xfs::Xfs;
                $body
            }
        }
    };
}
pub(crate) use with_type;

/// Calls an operation of the filesystem that its first file lies on, and awaits
/// it.
macro_rules! on_volume {
    ($cache:expr, $op:ident($first:expr $(, $rest:expr)*)) => {
        $crate::filesystem::with_type!($cache.filesystem_of($first), Fs => {
            <Fs as $crate::ops::Ops<H>>::$op($cache, $first $(, $rest)*).await
        })
    };
}
pub(crate) use on_volume;

/// The same for an operation that does not sleep.
macro_rules! on_kind {
    ($filesystem:expr, $op:ident($($arg:expr),*)) => {
        with_type!($filesystem, Fs => <Fs as Ops<H>>::$op($($arg),*))
    };
}

impl State {
    /// Makes the volume.
    pub(crate) fn mount(&mut self, config: &Config) -> Result<(), String> {
        let sectors = config.layout.start_sector..config.layout.end_sector;
        match config.filesystem {
            Filesystem::Extents => {}
            Filesystem::Ext(options) => self.mount_ext(options, sectors)?,
            Filesystem::Ext4(options) => self.mount_ext4(options, sectors)?,
            Filesystem::Btrfs(options) => self.mount_btrfs(options, sectors)?,
            Filesystem::Nilfs(options) => self.mount_nilfs(options, sectors)?,
            Filesystem::Reiser(options) => self.mount_reiser(options, sectors)?,
            Filesystem::Ntfs(options) => {
                self.mount_ntfs(options, sectors, config.read_ahead_pages())?;
            }
            Filesystem::Xfs(options) => self.mount_xfs(options, sectors)?,
        }
        self.new_root();
        match config.filesystem {
            Filesystem::Extents => {}
            Filesystem::Ext(_) => self.ext_root(),
            Filesystem::Ext4(_) => self.ext4_new_root(),
            Filesystem::Btrfs(_) => self.btrfs_root(),
            Filesystem::Nilfs(_) => self.nilfs_root(),
            Filesystem::Reiser(_) => self.reiser_root(),
            Filesystem::Ntfs(_) => self.ntfs_root(),
            Filesystem::Xfs(_) => self.xfs_root(),
        }
        Ok(())
    }
}

impl<H: Host> PageCache<H> {
    /// The filesystem that a file lies on.
    pub(crate) fn filesystem_of(&self, id: FileId) -> Filesystem {
        match self.with(|s| s.files.get(id.idx()).is_some_and(|f| f.on_volume)) {
            true => self.config.filesystem,
            false => Filesystem::Extents,
        }
    }

    /// Starts the filesystem's threads.
    pub(crate) fn start_filesystem(&self) {
        on_kind!(self.config.filesystem, start(self));
    }

    /// A page is about to be mapped for a read.
    pub(crate) async fn load_mapping(&self, id: FileId, page: u64) {
        on_volume!(self, load_mapping(id, page));
    }

    /// The filesystem's step of `sync`.
    pub(crate) async fn sync_filesystem(&self) {
        with_type!(self.config.filesystem, Fs => <Fs as Ops<H>>::sync(self).await);
    }

    /// Whether the filesystem reads pages of a file itself; then it has begun
    /// to read the missing ones of the run.
    pub(crate) fn reads_itself(&self, id: FileId, run: Range<u64>) -> bool {
        on_kind!(self.filesystem_of(id), reads_itself(self, id, run))
    }

    /// Refuses direct I/O where the kernel does: FUSE has none (2.6.26).
    pub(crate) fn allows_direct(&self, id: FileId) -> Result<(), FsError> {
        match self.filesystem_of(id) {
            Filesystem::Ntfs(_) => Err(FsError::NoDirect),
            _ => Ok(()),
        }
    }

    /// The superblock's turn of the periodic job (`sync_supers`).
    pub(crate) async fn write_super(&self) {
        with_type!(self.config.filesystem, Fs => <Fs as Ops<H>>::write_super(self).await);
    }

    /// Pages of a file up to one are in bios, or passed over.
    pub(crate) fn taken(&self, id: FileId, upto: u64) {
        on_kind!(self.filesystem_of(id), taken(self, id, upto));
    }

    /// Whether a walk over a file must not sleep with a bio in its hands.
    pub(crate) fn submits_before_sleep(&self, id: FileId) -> bool {
        with_type!(self.filesystem_of(id), Fs => <Fs as Ops<H>>::SUBMITS_BEFORE_SLEEP)
    }

    /// Whether background writes of a file carry the mark.
    pub(crate) fn marks_background(&self, id: FileId) -> bool {
        with_type!(self.filesystem_of(id), Fs => <Fs as Ops<H>>::MARKS_BACKGROUND)
    }

    /// Pages that a bio of a file may hold.
    pub(crate) fn bio_pages(&self, on_volume: bool) -> u64 {
        if !on_volume {
            return self.config.bio_pages;
        }
        on_kind!(self.config.filesystem, bio_pages(self))
    }

    /// Gives a file a place before the run.
    pub(crate) fn lay_out(&self, s: &mut State, id: FileId, pages: u64) -> bool {
        on_kind!(self.config.filesystem, lay_out(s, id, pages))
    }

    /// Forgets what the filesystem keeps to save reads.
    pub(crate) fn drop_filesystem_caches(&self, s: &mut State) {
        on_kind!(self.config.filesystem, drop_caches(s));
    }

    /// Where a file stands in the listing of its directory: entries come in
    /// ascending order.
    pub fn listing_place(&self, id: FileId) -> (u64, u64) {
        (self.with(|s| self.list_key(s, id)), u64::from(id.0))
    }

    /// Where an entry stands in a listing.
    pub(crate) fn list_key(&self, s: &State, id: FileId) -> u64 {
        on_kind!(self.config.filesystem, list_key(s, id))
    }

    /// Free space of the volume; none on a filesystem that does not count it.
    pub fn free_space(&self) -> Option<FreeSpace> {
        self.with(|s| on_kind!(self.config.filesystem, free_space(s)))
    }

    /// Pages have reached the disk.
    pub(crate) fn written(&self, s: &mut State, id: FileId, run: &Range<u64>) {
        if s.files[id.idx()].on_volume {
            on_kind!(self.config.filesystem, written(s, id, run));
        }
    }
}

impl<H: Host> Ops<H> for ExtentLayout {
    fn lay_out(state: &mut State, id: FileId, pages: u64) -> bool {
        let State { files, space, .. } = state;
        space.ensure(&mut files[id.idx()].extents, pages, false)
    }

    async fn begin_write(cache: &PageCache<H>, id: FileId, end: u64) -> Result<(), FsError> {
        cache.allocate(id, end)
    }

    async fn place_direct(cache: &PageCache<H>, id: FileId, end: u64) -> Result<(), FsError> {
        cache.allocate(id, end)
    }
}
