// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writing for integrity: fsync, `O_SYNC`, `sync_file_range`, sync (fs/sync.c,
//! mm/filemap.c, 2.6.28).
//!
//! On the filesystem `extents` and on a block device there is no metadata: there
//! fdatasync is the same as fsync, and their last step is to flush the disk's
//! cache (flush.rs).

use crate::cache::PageCache;
use crate::control::WriteControl;
use crate::error::FsError;
use crate::features::{DeviceFlush, Flusher};
use crate::file::{Fd, FileId, OSync, OpenFile};
use crate::inode_lists::List;
use crate::ops::Host;
use crate::range::{file_range, pages_of};
use crate::state::aio::SyncRange;
use crate::state::pdflush::Job;
use crate::volume::on_volume;
use std::ops::Range;

impl<H: Host> PageCache<H> {
    /// `fsync` (`do_fsync`, later `vfs_fsync_range`): writes all dirty pages of the
    /// file, takes its mutex for the filesystem's step, and waits for all its
    /// writes.
    ///
    /// # Errors
    /// [`FsError::Io`] if a write failed since the last call.
    pub async fn fsync(&self, fd: Fd) -> Result<(), FsError> {
        let id = self.opened(fd)?.file;
        self.sync_written(id, 0..u64::MAX, false).await
    }

    /// `fdatasync`: the filesystem's step is left out if only times changed.
    ///
    /// # Errors
    /// As [`PageCache::fsync`].
    pub async fn fdatasync(&self, fd: Fd) -> Result<(), FsError> {
        let id = self.opened(fd)?.file;
        self.sync_written(id, 0..u64::MAX, true).await
    }

    /// `sync_file_range` (`do_sync_mapping_range`); a length of 0 means up to the
    /// end of the file.
    ///
    /// # Errors
    /// [`FsError::Io`] if a write that it waited for failed.
    pub async fn sync_file_range(
        &self,
        fd: Fd,
        offset: u64,
        bytes: u64,
        steps: SyncRange,
    ) -> Result<(), FsError> {
        let id = self.opened(fd)?.file;
        let mut pages = pages_of(&file_range(offset, bytes)?);
        if bytes == 0 {
            pages.end = u64::MAX;
        }
        if steps.wait_before {
            self.wait_writeback_run(id, pages.clone()).await;
        }
        if steps.write {
            self.write_out(id, pages.clone(), false).await;
        }
        if steps.wait_after {
            self.wait_writeback_run(id, pages).await;
        }
        if steps.wait_before || steps.wait_after {
            self.take_write_error(id)
        } else {
            Ok(())
        }
    }

    /// `sync`: lets pdflush start, writes all dirty files and the device's
    /// pages, takes the filesystem's step, and does the first once more with
    /// waiting for all (`do_sync`, 2.6.28). From 2.6.32 on the flusher writes
    /// the files, and the filesystem's step comes behind them.
    pub async fn sync(&self) {
        let min_pages = self.with(|s| s.nr_dirty) as i64;
        self.offer(Job::Background { min_pages });
        if self.config.features.flusher == Flusher::PerDevice {
            self.flush_and_wait().await;
            self.wait_all_written().await;
            self.sync_filesystem().await;
            return self.sync_device().await;
        }
        self.sync_inodes(false).await;
        self.sync_filesystem().await;
        self.sync_inodes(false).await;
        self.sync_inodes(true).await;
    }

    /// Writes all dirty files, and waits for them if told so; then the device's
    /// pages, for which it always waits (`sync_inodes`).
    async fn sync_inodes(&self, wait: bool) {
        let lists = [List::MoreIo, List::Io, List::Dirty];
        let files = self.with(|s| {
            let dirty = lists.into_iter().flat_map(|l| s.inodes.iter(l));
            let mut files: Vec<FileId> = dirty.collect();
            if wait {
                // What is only on its way is waited for as well.
                let clean = s
                    .files
                    .iter()
                    .enumerate()
                    .filter(|(_, f)| !f.inode_dirty && f.writeback.count() > 0);
                files.extend(clean.map(|(i, _)| FileId(i as u32)));
                files.retain(|id| s.device != Some(*id));
            }
            files
        });
        for id in files {
            self.write_out(id, 0..u64::MAX, wait).await;
            if wait {
                self.wait_writeback_run(id, 0..u64::MAX).await;
            }
        }
        self.sync_device().await;
    }

    /// Writes the device's pages and waits for them (`sync_blockdev`).
    async fn sync_device(&self) {
        if let Some(device) = self.with(|s| s.device) {
            self.write_out(device, 0..u64::MAX, true).await;
            self.wait_writeback_run(device, 0..u64::MAX).await;
        }
    }

    /// Waits for all that is on its way to the disk (`wait_sb_inodes`).
    async fn wait_all_written(&self) {
        let files = self.with(|s| s.files.len() as u32);
        for id in (0..files).map(FileId) {
            self.wait_writeback_run(id, 0..u64::MAX).await;
        }
    }

    /// Writes pages for integrity and waits for them. `data_only`: times do
    /// not matter.
    pub(crate) async fn sync_written(
        &self,
        id: FileId,
        pages: Range<u64>,
        data_only: bool,
    ) -> Result<(), FsError> {
        self.host.set_sync_writes(true);
        self.write_out(id, pages.clone(), true).await;
        let waits_first = self.config.features.fsync_waits_first;
        if waits_first {
            self.wait_writeback_run(id, pages.clone()).await;
        }
        let flush = self.fsync_flush(id);
        self.lock_inode(id).await;
        on_volume!(self, sync_metadata(id, data_only));
        if flush == DeviceFlush::UnderMutex {
            self.wait_writeback_run(id, pages.clone()).await;
            self.issue_flush(self.config.features.flush_flags).await;
        }
        self.unlock_inode(id);
        if !waits_first {
            self.wait_writeback_run(id, pages).await;
        }
        if flush == DeviceFlush::Together {
            self.issue_flush(self.config.features.flush_flags).await;
        }
        self.host.set_sync_writes(false);
        self.take_write_error(id)
    }

    /// The last part of a write of these bytes, if the file is open with `O_SYNC`
    /// or `O_DSYNC` (`generic_write_sync`).
    pub(crate) async fn sync_write(
        &self,
        open: &OpenFile,
        written: &Range<u64>,
    ) -> Result<(), FsError> {
        if open.sync == OSync::None {
            return Ok(());
        }
        let (pages, data_only) = self.synced_by_write(open.sync, written);
        self.sync_written(open.file, pages, data_only).await
    }

    /// The pages that such a write writes and waits for, and whether times do not
    /// matter: up to 2.6.32 all pages that are dirty, and there is no `O_DSYNC`.
    pub(crate) fn synced_by_write(&self, sync: OSync, written: &Range<u64>) -> (Range<u64>, bool) {
        if self.config.features.o_sync_whole_file {
            (0..u64::MAX, true)
        } else {
            (pages_of(written), sync != OSync::File)
        }
    }

    /// Starts writing the dirty pages of a run (`__filemap_fdatawrite_range`).
    pub async fn write_out(&self, id: FileId, pages: Range<u64>, integrity: bool) {
        let nr_to_write = self.with(|s| s.file(id).cached.count() as i64 * 2);
        let range = Some(pages);
        let mut control = WriteControl {
            integrity,
            nr_to_write,
            range,
            ..WriteControl::default()
        };
        self.write_pages(id, &mut control).await;
    }

    fn take_write_error(&self, id: FileId) -> Result<(), FsError> {
        let failed = self.with(|s| std::mem::take(&mut s.file(id).write_error));
        if failed { Err(FsError::Io) } else { Ok(()) }
    }
}
