// SPDX-License-Identifier: MIT OR Apache-2.0
//! The filesystems: what can be mounted, and what is mounted.

use crate::btrfs::BtrfsFs;
use crate::ext3::Ext3;
use crate::ext4::Ext4Fs;
use crate::extents::ExtentLayout;
use crate::kind::Kind;
use crate::nilfs2::Nilfs2;
use crate::ntfs3g::NtfsFs;
use crate::reiserfs::ReiserFs;
use crate::xfs::Xfs;
use blklab_pagecache::{
    Config, Extent, FileId, FreeSpace, FsError, Host, Ops, PageCache, State, WriteControl,
};
use blklab_types::{BioFlags, TaskId};
use std::ops::Range;

/// What `$body` makes of the filesystem that is mounted.
macro_rules! each {
    ($mounted:expr, [$($variant:ident)*], $fs:ident => $body:expr) => {
        match $mounted {
            $(Mounted::$variant($fs) => $body,)*
        }
    };
}

macro_rules! filesystems {
    ($($(#[$doc:meta])* $variant:ident: $fs:ty, $options:ty, [$($kind:path),*];)*) => {
        filesystems!(@ [$($variant)*] $($(#[$doc])* $variant: $fs, $options, [$($kind),*];)*);
    };
    (@ $all:tt $($(#[$doc:meta])* $variant:ident: $fs:ty, $options:ty, [$($kind:path),*];)*) => {
        /// All filesystems, by the names that they are chosen by.
        pub const ALL: &[Kind<Filesystem>] = &[$($(Kind {
            name: $kind.name,
            summary: $kind.summary,
            page: $kind.page,
            since: $kind.since,
            until: $kind.until,
            options: $kind.options,
            charges_write_back: $kind.charges_write_back,
            changes: $kind.changes,
            choose: |m| Filesystem::$variant(($kind.choose)(m)),
            notes: $kind.notes,
        }),*),*];

        /// What the files lie on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Filesystem {
            $($(#[$doc])* $variant($options),)*
        }

        /// The filesystem that a machine has.
        #[derive(Debug)]
        pub enum Mounted {
            $($(#[$doc])* $variant($fs),)*
        }

        // Each method is handed on: its default would be what no filesystem does.
        #[warn(clippy::missing_trait_methods)]
        impl<H: Host> Ops<H> for Mounted {
            type Options = Filesystem;

            fn mount(
                options: Filesystem,
                config: &Config,
                state: &mut State,
            ) -> Result<Mounted, String> {
                Ok(match options {
                    $(Filesystem::$variant(options) => {
                        let mounted: $fs = Ops::<H>::mount(options, config, state)?;
                        Mounted::$variant(mounted)
                    })*
                })
            }

            fn make_root(&self, state: &mut State) {
                each!(self, $all, fs => Ops::<H>::make_root(fs, state));
            }

            fn start(&self, cache: &PageCache<H>) {
                each!(self, $all, fs => fs.start(cache));
            }

            fn lay_out(&self, state: &mut State, id: FileId, pages: u64) -> bool {
                each!(self, $all, fs => Ops::<H>::lay_out(fs, state, id, pages))
            }

            fn sets_space_aside(&self) -> bool {
                each!(self, $all, fs => Ops::<H>::sets_space_aside(fs))
            }

            async fn sync(&self, cache: &PageCache<H>) {
                each!(self, $all, fs => fs.sync(cache).await);
            }

            async fn write_super(&self, cache: &PageCache<H>) {
                each!(self, $all, fs => fs.write_super(cache).await);
            }

            fn free_space(&self, state: &mut State) -> Option<FreeSpace> {
                each!(self, $all, fs => Ops::<H>::free_space(fs, state))
            }

            fn drop_caches(&self, state: &mut State) {
                each!(self, $all, fs => Ops::<H>::drop_caches(fs, state));
            }

            async fn create(
                &self,
                cache: &PageCache<H>,
                directory: FileId,
                id: FileId,
            ) -> Result<(), FsError> {
                each!(self, $all, fs => fs.create(cache, directory, id).await)
            }

            async fn look_up(
                &self,
                cache: &PageCache<H>,
                directory: FileId,
                id: FileId,
            ) -> Result<(), FsError> {
                each!(self, $all, fs => fs.look_up(cache, directory, id).await)
            }

            async fn revalidate(&self, cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
                each!(self, $all, fs => fs.revalidate(cache, id).await)
            }

            async fn opened(&self, cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
                each!(self, $all, fs => fs.opened(cache, id).await)
            }

            async fn list(&self, cache: &PageCache<H>, directory: FileId) -> Result<(), FsError> {
                each!(self, $all, fs => fs.list(cache, directory).await)
            }

            fn list_key(&self, state: &mut State, id: FileId) -> u64 {
                each!(self, $all, fs => Ops::<H>::list_key(fs, state, id))
            }

            async fn remove_entry(
                &self,
                cache: &PageCache<H>,
                directory: FileId,
                id: FileId,
            ) -> Result<(), FsError> {
                each!(self, $all, fs => fs.remove_entry(cache, directory, id).await)
            }

            async fn remove_inode(&self, cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
                each!(self, $all, fs => fs.remove_inode(cache, id).await)
            }

            async fn truncate(&self, cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
                each!(self, $all, fs => fs.truncate(cache, id).await)
            }

            async fn invalidate(&self, cache: &PageCache<H>, id: FileId, run: Range<u64>) {
                each!(self, $all, fs => fs.invalidate(cache, id, run).await);
            }

            fn dropped(&self, state: &mut State, id: FileId, run: &Range<u64>) {
                each!(self, $all, fs => Ops::<H>::dropped(fs, state, id, run));
            }

            async fn close(&self, cache: &PageCache<H>, id: FileId, wrote: bool) {
                each!(self, $all, fs => fs.close(cache, id, wrote).await);
            }

            async fn begin_write(
                &self,
                cache: &PageCache<H>,
                id: FileId,
                end: u64,
            ) -> Result<(), FsError> {
                each!(self, $all, fs => fs.begin_write(cache, id, end).await)
            }

            async fn dirty_written(
                &self,
                cache: &PageCache<H>,
                id: FileId,
                run: Range<u64>,
                end: u64,
            ) -> Result<(), FsError> {
                each!(self, $all, fs => fs.dirty_written(cache, id, run, end).await)
            }

            async fn mapped_write(&self, cache: &PageCache<H>, id: FileId, page: u64) {
                each!(self, $all, fs => fs.mapped_write(cache, id, page).await);
            }

            fn has_direct_io(&self) -> bool {
                each!(self, $all, fs => Ops::<H>::has_direct_io(fs))
            }

            fn locks_direct_io(&self) -> bool {
                each!(self, $all, fs => Ops::<H>::locks_direct_io(fs))
            }

            fn leaves_direct_io_alone(&self) -> bool {
                each!(self, $all, fs => Ops::<H>::leaves_direct_io_alone(fs))
            }

            fn overwrites_with_fua(&self) -> bool {
                each!(self, $all, fs => Ops::<H>::overwrites_with_fua(fs))
            }

            async fn buffers_direct_writes(&self, cache: &PageCache<H>, id: FileId) -> bool {
                each!(self, $all, fs => fs.buffers_direct_writes(cache, id).await)
            }

            async fn place_direct(
                &self,
                cache: &PageCache<H>,
                id: FileId,
                end: u64,
            ) -> Result<(), FsError> {
                each!(self, $all, fs => fs.place_direct(cache, id, end).await)
            }

            async fn place_dirty(
                &self,
                cache: &PageCache<H>,
                id: FileId,
                page: u64,
            ) -> Result<(), FsError> {
                each!(self, $all, fs => fs.place_dirty(cache, id, page).await)
            }

            fn taken(&self, cache: &PageCache<H>, id: FileId, upto: u64) {
                each!(self, $all, fs => fs.taken(cache, id, upto));
            }

            fn submits_before_sleep(&self) -> bool {
                each!(self, $all, fs => Ops::<H>::submits_before_sleep(fs))
            }

            fn marks_background(&self) -> bool {
                each!(self, $all, fs => Ops::<H>::marks_background(fs))
            }

            fn has_large_folios(&self) -> bool {
                each!(self, $all, fs => Ops::<H>::has_large_folios(fs))
            }

            fn bio_pages(&self, config: &Config) -> u64 {
                each!(self, $all, fs => Ops::<H>::bio_pages(fs, config))
            }

            async fn writes_itself(
                &self,
                cache: &PageCache<H>,
                id: FileId,
                control: &mut WriteControl,
            ) -> bool {
                each!(self, $all, fs => fs.writes_itself(cache, id, control).await)
            }

            async fn write_page(
                &self,
                cache: &PageCache<H>,
                id: FileId,
                page: u64,
                flags: BioFlags,
                nonblocking: bool,
            ) -> bool {
                each!(self, $all, fs => fs.write_page(cache, id, page, flags, nonblocking).await)
            }

            fn keeps_written(
                &self,
                state: &mut State,
                id: FileId,
                run: &Range<u64>,
                failed: bool,
            ) -> bool {
                each!(self, $all, fs => Ops::<H>::keeps_written(fs, state, id, run, failed))
            }

            async fn work(&self, cache: &PageCache<H>, work: u64) {
                each!(self, $all, fs => fs.work(cache, work).await);
            }

            fn written(&self, state: &mut State, id: FileId, run: &Range<u64>) {
                each!(self, $all, fs => Ops::<H>::written(fs, state, id, run));
            }

            fn end_io(&self, state: &mut State, io: u64, failed: bool, wake: &mut Vec<TaskId>) {
                each!(self, $all, fs => Ops::<H>::end_io(fs, state, io, failed, wake));
            }

            fn group_written(
                &self,
                state: &mut State,
                number: u64,
                pages: u64,
                wake: &mut Vec<TaskId>,
            ) {
                each!(self, $all, fs => Ops::<H>::group_written(fs, state, number, pages, wake));
            }

            async fn write_inode(&self, cache: &PageCache<H>, id: FileId, control: &WriteControl) {
                each!(self, $all, fs => fs.write_inode(cache, id, control).await);
            }

            fn reads_itself(&self, cache: &PageCache<H>, id: FileId, run: Range<u64>) -> bool {
                each!(self, $all, fs => fs.reads_itself(cache, id, run))
            }

            async fn load_mapping(&self, cache: &PageCache<H>, id: FileId, page: u64) {
                each!(self, $all, fs => fs.load_mapping(cache, id, page).await);
            }

            fn extents_of(&self, id: FileId) -> Option<Vec<Extent>> {
                each!(self, $all, fs => Ops::<H>::extents_of(fs, id))
            }

            async fn accessed(&self, cache: &PageCache<H>, id: FileId) {
                each!(self, $all, fs => fs.accessed(cache, id).await);
            }

            async fn sync_metadata(&self, cache: &PageCache<H>, id: FileId, data_only: bool) {
                each!(self, $all, fs => fs.sync_metadata(cache, id, data_only).await);
            }

            fn flushes_after_fsync(&self) -> bool {
                each!(self, $all, fs => Ops::<H>::flushes_after_fsync(fs))
            }
        }
    };
}

filesystems! {
    /// Space in ascending order, no metadata ([`blklab_pagecache::Layout`]).
    Extents: ExtentLayout, (), [crate::extents::EXTENTS];
    /// ext2 or ext3.
    Ext: Ext3, crate::ext3::ExtOptions, [crate::ext3::EXT2, crate::ext3::EXT3];
    /// ext4.
    Ext4: Ext4Fs, crate::ext4::Ext4Options, [crate::ext4::EXT4];
    /// btrfs.
    Btrfs: BtrfsFs, crate::btrfs::BtrfsOptions,
        [crate::btrfs::BTRFS, crate::btrfs::BTRFS_0_16, crate::btrfs::BTRFS_UNSTABLE];
    /// NILFS2.
    Nilfs: Nilfs2, crate::nilfs2::NilfsOptions, [crate::nilfs2::NILFS2];
    /// ReiserFS 3.6.
    Reiser: ReiserFs, crate::reiserfs::ReiserOptions, [crate::reiserfs::REISERFS];
    /// XFS.
    Xfs: Xfs, crate::xfs::XfsOptions, [crate::xfs::XFS];
    /// NTFS-3G.
    Ntfs: NtfsFs, crate::ntfs3g::NtfsOptions, [crate::ntfs3g::NTFS_3G];
}

/// The filesystem of a name.
pub fn find(name: &str) -> Option<&'static Kind<Filesystem>> {
    ALL.iter().find(|kind| kind.name == name)
}
