// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the page cache asks of a filesystem.
//!
//! A filesystem is a value that owns its volume and its inodes and implements
//! [`Mountable`] and [`Ops`]. Where it says nothing, nothing happens: no traffic, no
//! wait. The page cache is given the type by [`Runtime::Filesystem`] and calls the
//! value that it has mounted ([`crate::volume`]). What is true of a mount from its
//! beginning to its end are its [`FsTraits`].

use crate::cache::PageCache;
use crate::config::Config;
use crate::control::WriteControl;
use crate::error::FsError;
use crate::file::FileId;
use crate::fs_traits::FsTraits;
use crate::host::Runtime;
use crate::layout::Extent;
use crate::state::State;
use blklab_types::{BioFlags, PAGE_BYTES, TaskId};
use std::ops::Range;

/// What is free on a volume (`statfs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeSpace {
    /// Bytes of free blocks.
    pub bytes: u64,
    /// Files and directories that can be made.
    pub inodes: u64,
}

impl FreeSpace {
    /// That of so many free blocks and inodes.
    pub fn new(blocks: u64, inodes: u64) -> FreeSpace {
        FreeSpace {
            bytes: blocks * PAGE_BYTES,
            inodes,
        }
    }
}

/// A filesystem that can be mounted.
pub trait Mountable: Sized + 'static {
    /// What is chosen at mount.
    type Options;

    /// What is true of a volume that is mounted so.
    fn traits(options: &Self::Options) -> FsTraits;

    /// Makes a volume on the sectors of the configured layout, and the files
    /// that its own pages are in.
    ///
    /// # Errors
    /// Says what does not fit.
    fn mount(options: Self::Options, config: &Config, state: &mut State) -> Result<Self, String>;
}

/// A machine whose filesystems work on its page cache.
pub trait Host: Runtime<Filesystem: Mountable + Ops<Self>> {}

/// All operations of a filesystem, which stand here alone: the trait [`Ops`]
/// is made of them, and the code that hands each on to the one of several filesystems that
/// is mounted. The macro `$then` is called with `[$more]` and the operations: `required`
/// are those that every filesystem has; what a filesystem does not say of the `provided`
/// ones is as it stands here. Their types are to be imported where it is called.
#[macro_export]
macro_rules! filesystem_operations {
    ($then:ident! $($more:tt)*) => { $then! {
        [$($more)*]
        required {
            /// Before the run: gives a file, its inode and `pages` pages a place, as
            /// an earlier run left them; what is read to find them is in memory.
            /// Returns whether there was room.
            fn lay_out(&self, state: &mut State, id: FileId, pages: u64) -> bool;

            /// A direct write up to `end` bytes needs its blocks now.
            async fn place_direct(
                &self,
                cache: &PageCache<H>,
                id: FileId,
                end: u64,
            ) -> Result<(), FsError>;
        }
        provided {
            /// The directory at the top has been made: gives it its place.
            fn make_root(&self, state: &mut State) {}

            /// The machine starts: threads of the filesystem's own.
            fn start(&self, cache: &PageCache<H>) {}

            /// `sync`: the filesystem's own step (`sync_fs`), after writing of the dirty
            /// pages was started (up to 2.6.31), or had ended.
            async fn sync(&self, cache: &PageCache<H>) {}

            /// The periodic job comes by the superblock (`write_super`, every 5 s, before
            /// old pages are written): for filesystems that close their transaction
            /// then, in the task of that job.
            async fn write_super(&self, cache: &PageCache<H>) {}

            /// What is free on the volume, if the filesystem counts it.
            fn free_space(&self, state: &mut State) -> Option<FreeSpace> {
                None
            }

            /// Caches are dropped: forgets what was only kept to save reads.
            fn drop_caches(&self, state: &mut State) {}

            // Names ------------------------------------------------------------------

            /// A file or a directory (`File::directory` tells) comes into being and
            /// into its directory, whose mutex is held.
            async fn create(
                &self,
                cache: &PageCache<H>,
                directory: FileId,
                id: FileId,
            ) -> Result<(), FsError> {
                Ok(())
            }

            /// Reads what is needed to find a file by its name, and its inode. Not
            /// called while both are in memory.
            async fn look_up(
                &self,
                cache: &PageCache<H>,
                directory: FileId,
                id: FileId,
            ) -> Result<(), FsError> {
                Ok(())
            }

            /// A path to a file whose names and inodes are in memory is walked
            /// (`d_revalidate`): for filesystems that do not trust what is there for ever.
            async fn revalidate(&self, cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
                Ok(())
            }

            /// A file that is there is opened, its path having been walked.
            async fn opened(&self, cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
                Ok(())
            }

            /// Reads a directory for listing.
            async fn list(&self, cache: &PageCache<H>, directory: FileId) -> Result<(), FsError> {
                Ok(())
            }

            /// Where an entry stands in a listing: ascending, those that are equal in
            /// order of creation.
            fn list_key(&self, state: &mut State, id: FileId) -> u64 {
                0
            }

            /// A file's or an empty directory's entry goes; the directory's mutex is
            /// held. The inode lives on if it is open.
            async fn remove_entry(
                &self,
                cache: &PageCache<H>,
                directory: FileId,
                id: FileId,
            ) -> Result<(), FsError> {
                Ok(())
            }

            /// The inode of a removed file or directory is freed, and its blocks
            /// (`delete_inode`, later `evict_inode`); its pages are gone.
            async fn remove_inode(&self, cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
                Ok(())
            }

            /// The file is cut to nothing: frees its blocks. Its pages are gone, its
            /// mutex is held.
            async fn truncate(&self, cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
                Ok(())
            }

            /// Pages are about to be dropped whatever their state, because the file is cut
            /// or removed (`invalidatepage`).
            async fn invalidate(&self, cache: &PageCache<H>, id: FileId, run: Range<u64>) {}

            /// Pages of such a file are dropped now: those that are dirty still never get
            /// to the disk.
            fn dropped(&self, state: &mut State, id: FileId, run: &Range<u64>) {}

            /// A file is closed. `wrote`: by somebody who wrote to it.
            async fn close(&self, cache: &PageCache<H>, id: FileId, wrote: bool) {}

            // Data -------------------------------------------------------------------

            /// A write up to `end` bytes begins; the file's mutex is held.
            async fn begin_write(
                &self,
                cache: &PageCache<H>,
                id: FileId,
                end: u64,
            ) -> Result<(), FsError> {
                Ok(())
            }

            /// Pages have been copied: makes them dirty, and the file at least `end`
            /// bytes long.
            async fn dirty_written(
                &self,
                cache: &PageCache<H>,
                id: FileId,
                run: Range<u64>,
                end: u64,
            ) -> Result<(), FsError> {
                cache.set_dirty(id, run, end, false).await;
                Ok(())
            }

            /// A page is about to be written to through a mapping (`page_mkwrite`).
            async fn mapped_write(&self, cache: &PageCache<H>, id: FileId, page: u64) {}

            /// A dirty page without a place is about to be written (delayed
            /// allocation): gives it one, and others as the filesystem likes.
            async fn place_dirty(
                &self,
                cache: &PageCache<H>,
                id: FileId,
                page: u64,
            ) -> Result<(), FsError> {
                Err(FsError::NoSpace)
            }

            /// Pages up to this one are in bios, or passed over. Between `place_dirty`
            /// and this the filesystem may hold a transaction open.
            fn taken(&self, cache: &PageCache<H>, id: FileId, upto: u64) {}

            /// Somebody wants the dirty pages of a file written (`writepages`). A
            /// filesystem that writes when it likes, or has its own way of asking the page
            /// cache to, says true, and takes care of them itself.
            async fn writes_itself(
                &self,
                cache: &PageCache<H>,
                id: FileId,
                control: &mut WriteControl,
            ) -> bool {
                false
            }

            /// Writes one page whose buffers are written one by one (`writepage`). It is
            /// dirty, and nobody holds it. Returns whether it had to be put back because
            /// somebody else has its buffer.
            async fn write_page(
                &self,
                cache: &PageCache<H>,
                id: FileId,
                page: u64,
                flags: BioFlags,
                nonblocking: bool,
            ) -> bool {
                cache.lock_for_write(id, page);
                cache.write_full_page(id, page, flags, nonblocking).await
            }

            /// A bio of a file's pages has ended. True: the filesystem has something to
            /// change first, and ends their write-back itself ([`State::end_writeback`]).
            fn keeps_written(
                &self,
                state: &mut State,
                id: FileId,
                run: &Range<u64>,
                failed: bool,
            ) -> bool {
                false
            }

            /// A worker does what [`State::add_filesystem_work`] was given.
            async fn work(&self, cache: &PageCache<H>, work: u64) {
                unreachable!("the filesystem leaves nothing to workers")
            }

            /// Pages of a file have reached the disk.
            fn written(&self, state: &mut State, id: FileId, run: &Range<u64>) {}

            /// A bio that the filesystem submitted for itself has ended; `io` is the
            /// number that it gave it.
            fn end_io(&self, state: &mut State, io: u64, failed: bool, wake: &mut Vec<TaskId>) {
                unreachable!("the filesystem submits no bios of its own")
            }

            /// A group of bios with so many pages has ended, to which the filesystem gave
            /// a number.
            fn group_written(
                &self,
                state: &mut State,
                number: u64,
                pages: u64,
                wake: &mut Vec<TaskId>,
            ) {
                unreachable!("the filesystem numbers no groups of bios")
            }

            /// The pages of a dirty inode have been written back: now the inode.
            async fn write_inode(&self, cache: &PageCache<H>, id: FileId, control: &WriteControl) {}

            /// Pages that are missing in the run are to be read. A filesystem that is
            /// not on a block device of the kernel's says true, and has begun to read
            /// them: they are locked, and end as after any read.
            fn reads_itself(&self, cache: &PageCache<H>, id: FileId, run: Range<u64>) -> bool {
                false
            }

            /// A page is about to be mapped for a read (`get_block`).
            async fn load_mapping(&self, cache: &PageCache<H>, id: FileId, page: u64) {}

            /// Where a file lies, if the page cache does not know.
            fn extents_of(&self, id: FileId) -> Option<Vec<Extent>> {
                None
            }

            /// A read of a file has ended.
            async fn accessed(&self, cache: &PageCache<H>, id: FileId) {}

            /// fsync: the filesystem's own step (its `fsync`), after the file's pages were
            /// written.
            async fn sync_metadata(&self, cache: &PageCache<H>, id: FileId, data_only: bool) {}
        }
    }};
}

macro_rules! declare {
    ([]
        required {$(
            $(#[$doc:meta])*
            $($fn:ident)+ (&$this:ident $(, $arg:ident: $type:ty)* $(,)?) $(-> $result:ty)?;
        )*}
        provided {$(
            $(#[$more_doc:meta])*
            $($more_fn:ident)+ (&$me:ident $(, $more:ident: $more_type:ty)* $(,)?)
                $(-> $more_result:ty)? $body:block
        )*}
    ) => {
        /// A filesystem. Functions with `async` run in the task that made the system
        /// call, or writes back, and may sleep; the others must not.
        #[allow(
            async_fn_in_trait,
            reason = "tasks run on one thread; futures need not be Send"
        )]
        #[allow(unused_variables, reason = "where a filesystem says nothing, they are")]
        pub trait Ops<H: Host>: 'static {
            $(
                $(#[$doc])*
                $($fn)+ (&$this $(, $arg: $type)*) $(-> $result)?;
            )*
            $(
                $(#[$more_doc])*
                $($more_fn)+ (&$me $(, $more: $more_type)*) $(-> $more_result)? $body
            )*
        }
    };
}

filesystem_operations!(declare!);
