// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the page cache asks of a filesystem.
//!
//! A filesystem is a type without values that implements [`Ops`]; its data are
//! in the shared state. Where it says nothing, nothing happens: no traffic, no
//! wait. [`crate::filesystem`] calls the one that the machine has.

use crate::cache::{FsError, PageCache};
use crate::file::FileId;
use crate::filesystem::FreeSpace;
use crate::host::Host;
use crate::state::State;
use crate::writeback::WriteControl;
use std::ops::Range;

/// A filesystem. Functions with `async` run in the task that made the system
/// call, or writes back, and may sleep; the others must not.
pub(crate) trait Ops<H: Host> {
    // The volume -------------------------------------------------------------

    /// The machine starts: threads of the filesystem's own.
    fn start(_cache: &PageCache<H>) {}

    /// Before the run: gives a file, its inode and `pages` pages a place, as
    /// an earlier run left them; what is read to find them is in memory.
    /// Returns whether there was room.
    fn lay_out(state: &mut State, id: FileId, pages: u64) -> bool;

    /// `sync`: the filesystem's own step, after writing of the dirty pages was
    /// started (up to 2.6.31), or had ended.
    async fn sync(_cache: &PageCache<H>) {}

    /// The periodic job comes by the superblock (`write_super`, every 5 s, before
    /// old pages are written): for filesystems that close their transaction
    /// then, in the task of that job.
    async fn write_super(_cache: &PageCache<H>) {}

    /// What is free on the volume, if the filesystem counts it.
    fn free_space(_state: &State) -> Option<FreeSpace> {
        None
    }

    /// Caches are dropped: forgets what was only kept to save reads.
    fn drop_caches(_state: &mut State) {}

    // Names ------------------------------------------------------------------

    /// A file or a directory (`File::directory` tells) comes into being and
    /// into its directory, whose mutex is held.
    async fn create(_cache: &PageCache<H>, _directory: FileId, _id: FileId) -> Result<(), FsError> {
        Ok(())
    }

    /// Reads what is needed to find a file by its name, and its inode. Not
    /// called while both are in memory.
    async fn look_up(
        _cache: &PageCache<H>,
        _directory: FileId,
        _id: FileId,
    ) -> Result<(), FsError> {
        Ok(())
    }

    /// A path to a file whose names and inodes are in memory is walked: for
    /// filesystems that do not trust what is there for ever.
    async fn revalidate(_cache: &PageCache<H>, _id: FileId) -> Result<(), FsError> {
        Ok(())
    }

    /// A file that is there is opened, its path having been walked.
    async fn opened(_cache: &PageCache<H>, _id: FileId) -> Result<(), FsError> {
        Ok(())
    }

    /// Reads a directory for listing.
    async fn list(_cache: &PageCache<H>, _directory: FileId) -> Result<(), FsError> {
        Ok(())
    }

    /// Where an entry stands in a listing: ascending, those that are equal in
    /// order of creation.
    fn list_key(_state: &State, _id: FileId) -> u64 {
        0
    }

    /// A file's or an empty directory's entry goes; the directory's mutex is
    /// held. The inode lives on if it is open.
    async fn remove_entry(
        _cache: &PageCache<H>,
        _directory: FileId,
        _id: FileId,
    ) -> Result<(), FsError> {
        Ok(())
    }

    /// The inode of a removed file or directory is freed, and its blocks; its
    /// pages are gone.
    async fn remove_inode(_cache: &PageCache<H>, _id: FileId) -> Result<(), FsError> {
        Ok(())
    }

    /// The file is cut to nothing: frees its blocks. Its pages are gone, its
    /// mutex is held.
    async fn truncate(_cache: &PageCache<H>, _id: FileId) -> Result<(), FsError> {
        Ok(())
    }

    /// Pages are about to be dropped whatever their state, because the file is
    /// cut or removed.
    async fn invalidate(_cache: &PageCache<H>, _id: FileId, _run: Range<u64>) {}

    /// A file is closed. `wrote`: by somebody who wrote to it.
    async fn close(_cache: &PageCache<H>, _id: FileId, _wrote: bool) {}

    // Data -------------------------------------------------------------------

    /// A write up to `end` bytes begins; the file's mutex is held.
    async fn begin_write(_cache: &PageCache<H>, _id: FileId, _end: u64) -> Result<(), FsError> {
        Ok(())
    }

    /// Pages have been copied: makes them dirty, and the file at least `end`
    /// bytes long.
    async fn dirty_written(
        cache: &PageCache<H>,
        id: FileId,
        run: Range<u64>,
        end: u64,
    ) -> Result<(), FsError> {
        cache.set_dirty(id, run, end, false).await;
        Ok(())
    }

    /// A page is about to be written to through a mapping (`page_mkwrite`).
    async fn mapped_write(_cache: &PageCache<H>, _id: FileId, _page: u64) {}

    /// Whether direct writes go through the page cache, and are written out
    /// and waited for then (filesystems whose `direct_IO` takes no writes).
    async fn buffers_direct_writes(_cache: &PageCache<H>, _id: FileId) -> bool {
        false
    }

    /// A direct write up to `end` bytes needs its blocks now.
    async fn place_direct(cache: &PageCache<H>, id: FileId, end: u64) -> Result<(), FsError>;

    /// A dirty page without a place is about to be written (delayed
    /// allocation): gives it one, and others as the filesystem likes.
    async fn place_dirty(_cache: &PageCache<H>, _id: FileId, _page: u64) -> Result<(), FsError> {
        Err(FsError::NoSpace)
    }

    /// Pages up to this one are in bios, or passed over. Between `place_dirty`
    /// and this the filesystem may hold a transaction open.
    fn taken(_cache: &PageCache<H>, _id: FileId, _upto: u64) {}

    /// A walk sleeps for a page, or for a place, only when its bio is on its
    /// way: a commit waits for pages in it.
    const SUBMITS_BEFORE_SLEEP: bool = false;

    /// Bios of background writing carry the mark of it, in releases that have
    /// one.
    const MARKS_BACKGROUND: bool = true;

    /// Pages that a bio of this file may hold.
    fn bio_pages(cache: &PageCache<H>) -> u64 {
        cache.config.bio_pages
    }

    /// Somebody wants the dirty pages of a file written. A filesystem that
    /// writes when it likes, or has its own way of asking the page cache to,
    /// says true, and takes care of them itself.
    async fn writes_itself(
        _cache: &PageCache<H>,
        _id: FileId,
        _control: &mut WriteControl,
    ) -> bool {
        false
    }

    /// Pages of a file have reached the disk.
    fn written(_state: &mut State, _id: FileId, _run: &Range<u64>) {}

    /// The pages of a dirty inode have been written back: now the inode.
    async fn write_inode(_cache: &PageCache<H>, _id: FileId, _control: &WriteControl) {}

    /// Pages that are missing in the run are to be read. A filesystem that is
    /// not on a block device of the kernel's says true, and has begun to read
    /// them: they are locked, and end as after any read.
    fn reads_itself(_cache: &PageCache<H>, _id: FileId, _run: Range<u64>) -> bool {
        false
    }

    /// A page is about to be mapped for a read.
    async fn load_mapping(_cache: &PageCache<H>, _id: FileId, _page: u64) {}

    /// A read of a file has ended.
    async fn accessed(_cache: &PageCache<H>, _id: FileId) {}

    /// fsync: the filesystem's own step, after the file's pages were written.
    async fn sync_metadata(_cache: &PageCache<H>, _id: FileId, _data_only: bool) {}
}
