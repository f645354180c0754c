// SPDX-License-Identifier: MIT OR Apache-2.0
//! `O_DIRECT` (fs/direct-io.c, mm/filemap.c, 2.6.28).
//!
//! Dirty pages of the range are written and waited for, a write drops the
//! range from the cache, then one bio per contiguous run is submitted. Left
//! out: pinning user pages.

use crate::cache::PageCache;
use crate::error::FsError;
use crate::features::{DevicePlug, QueuedSync};
use crate::file::{Fd, FileId, OSync, OpenFile};
use crate::fs_traits::DirectIo;
use crate::ops::Host;
use crate::range::{file_range, pages_of};
use crate::state::aio::{AioEvent, Deferred, Direct, Waits, Work};
use crate::state::{BioWork, State};
use crate::volume::on_volume;
use blklab_types::{BioFlags, Op, PAGE_BYTES, SECTOR_BYTES, TaskId};
use std::ops::Range;

/// How a direct write is made.
#[derive(Clone, Debug, Default)]
struct Means {
    /// Who is told; the caller waits if nobody.
    context: Option<Waits>,
    /// FUA, or nothing.
    flags: BioFlags,
    /// Left to a worker, if the write is queued.
    sync: Option<Work>,
}

impl State {
    /// The direct I/O of a key that somebody has.
    #[inline]
    fn direct(&mut self, key: u64) -> &mut Direct {
        let direct = self.directs.get_mut(key);
        direct.expect("a direct I/O lasts until its last part ends")
    }

    /// One bio, or the submitter, is done with a direct I/O: whether it was the last.
    #[inline]
    fn end_part(&mut self, key: u64, failed: bool) -> bool {
        let direct = self.direct(key);
        direct.failed |= failed;
        direct.pending -= 1;
        direct.pending == 0
    }

    /// A direct I/O is done. Whether that leaves work to a worker.
    #[inline]
    fn end_direct(&mut self, key: u64, wake: &mut Vec<TaskId>) -> bool {
        let direct = self.direct(key);
        match direct.waits {
            Waits::Task(task) => {
                wake.push(task);
                false
            }
            Waits::Context { context, user_data } => {
                let result = if direct.failed {
                    Err(FsError::Io)
                } else {
                    Ok(direct.bytes)
                };
                let event = AioEvent { user_data, result };
                let sync = direct.sync.take().filter(|_| result.is_ok());
                self.directs.remove(key);
                let Some(work) = sync else {
                    self.aio[context].post(event, wake);
                    return false;
                };
                self.workers.add(Deferred::Aio {
                    context,
                    event,
                    work,
                });
                true
            }
        }
    }
}

impl<H: Host> PageCache<H> {
    /// One bio, or the submitter, is done with a direct I/O (`dio_bio_end_aio`,
    /// `dio_complete`).
    #[inline]
    pub(crate) fn end_direct(&self, key: u64, failed: bool) {
        if self.with(|s| s.end_part(key, failed)) {
            self.tell_end_of_direct(key);
        }
    }

    /// All parts of a direct I/O are done.
    fn tell_end_of_direct(&self, key: u64) {
        let mut leaves_work = false;
        self.waking(|s, wake| leaves_work = s.end_direct(key, wake));
        if leaves_work {
            self.send_workers();
        }
    }

    /// `pread` with `O_DIRECT`: returns the bytes read.
    ///
    /// # Errors
    /// [`FsError::Unaligned`], [`FsError::NoDirect`], [`FsError::Io`].
    pub async fn direct_read(&self, fd: Fd, offset: u64, bytes: u64) -> Result<u64, FsError> {
        let done = self.read_direct(fd, offset, bytes, None).await?;
        Ok(done.unwrap_or(0))
    }

    /// `pwrite` with `O_DIRECT`: returns the bytes written.
    ///
    /// # Errors
    /// [`FsError::Unaligned`], [`FsError::NoDirect`], [`FsError::NoSpace`],
    /// [`FsError::Io`].
    pub async fn direct_write(&self, fd: Fd, offset: u64, bytes: u64) -> Result<u64, FsError> {
        let done = self.write_direct(fd, offset, bytes, None).await?;
        Ok(done.unwrap_or(0))
    }

    /// A direct read (`generic_file_aio_read`, `__blockdev_direct_IO`). With a
    /// context it returns `None` when everything is submitted.
    pub(crate) async fn read_direct(
        &self,
        fd: Fd,
        offset: u64,
        bytes: u64,
        context: Option<Waits>,
    ) -> Result<Option<u64>, FsError> {
        let id = self.opened(fd)?.file;
        self.allows_direct(id)?;
        let mut range = aligned_range(offset, bytes)?;
        // Up to the last sector that the file reaches into.
        range.end = range
            .end
            .min(self.size_bytes(id).next_multiple_of(SECTOR_BYTES));
        if range.start >= range.end {
            return Ok(Some(0));
        }
        let locks = self.locks_direct(id);
        self.write_and_wait(id, &range).await;
        if locks {
            self.lock_inode(id).await;
            self.write_and_wait(id, &range).await;
        }
        self.load_mapping(id, range.start / PAGE_BYTES).await;
        let means = Means {
            context,
            ..Means::default()
        };
        let key = self.submit_direct(id, Op::Read, &range, means).await;
        if locks {
            self.unlock_inode(id);
        }
        self.finish_direct(key, context.is_some()).await
    }

    /// A direct write. With a context it returns `None` when everything is
    /// submitted, unless it extends the file: that is waited for in any case.
    pub(crate) async fn write_direct(
        &self,
        fd: Fd,
        offset: u64,
        bytes: u64,
        context: Option<Waits>,
    ) -> Result<Option<u64>, FsError> {
        let open = self.opened(fd)?;
        self.allows_direct(open.file)?;
        let range = aligned_range(offset, bytes)?;
        if range.is_empty() {
            return Ok(Some(0));
        }
        let plugs = self.config.features.device_plug == DevicePlug::Writes
            && self.with(|s| s.file(open.file).is_device);
        if plugs {
            self.host.start_plug();
        }
        let result = self.write_direct_synced(&open, &range, context).await;
        if plugs {
            self.host.finish_plug();
        }
        result
    }

    /// A direct write and, with `O_SYNC` or `O_DSYNC`, its sync.
    async fn write_direct_synced(
        &self,
        open: &OpenFile,
        range: &Range<u64>,
        context: Option<Waits>,
    ) -> Result<Option<u64>, FsError> {
        let is_device = self.with(|s| s.file(open.file).is_device);
        let queued_sync = if is_device {
            self.config.features.device_queued_sync
        } else {
            self.config.features.file_queued_sync
        };
        let forces = queued_sync == QueuedSync::ForcedAccess
            && open.sync != OSync::None
            && (is_device || self.overwrites_with_fua(open, range));
        let in_worker = match queued_sync {
            QueuedSync::InWorker | QueuedSync::ForcedAccess => open.sync != OSync::None && !forces,
            QueuedSync::Never | QueuedSync::AtSubmission => false,
        };
        let means = Means {
            context,
            flags: if forces {
                BioFlags::FUA
            } else {
                BioFlags::NONE
            },
            sync: in_worker.then(|| {
                let (pages, data_only) = self.synced_by_write(open.sync, range);
                Work::SyncWritten {
                    file: open.file,
                    pages,
                    data_only,
                }
            }),
        };
        let locks = self.locks_direct(open.file);
        if locks {
            self.lock_inode(open.file).await;
        }
        let result = self.direct_write_locked(open.file, range, means).await;
        if locks {
            self.unlock_inode(open.file);
        }
        let syncs = match result {
            // A block device is flushed even where the write carried FUA
            // (`generic_write_sync` in `blkdev_write_iter`).
            Ok(Some(_)) => is_device || !forces,
            Ok(None) => queued_sync == QueuedSync::AtSubmission,
            Err(_) => false,
        };
        if syncs {
            self.sync_write(open, range).await?;
        }
        result
    }

    /// Whether FUA alone makes a direct write to a file durable: it is for
    /// `O_DSYNC`, changes no metadata, and the disk knows FUA
    /// (`iomap_dio_bio_iter`, fs/iomap/direct-io.c).
    fn overwrites_with_fua(&self, open: &OpenFile, range: &Range<u64>) -> bool {
        open.sync == OSync::Data
            && self.config.fua
            && self.traits_of(open.file).overwrites_with_fua
            && range.end <= self.size_bytes(open.file)
    }

    /// Whether direct I/O holds the inode's lock: never that of a block device.
    fn locks_direct(&self, id: FileId) -> bool {
        self.traits_of(id).locks_direct_io
    }

    /// Whether the bios of a direct I/O are collected in a plug of their own.
    fn plugs_submission(&self, id: FileId, range: &Range<u64>) -> bool {
        self.config.features.device_plug == DevicePlug::Submission
            || range.end - range.start > self.config.bio_pages * PAGE_BYTES
            || !self.with(|s| s.file(id).is_device)
    }

    /// The write itself (`generic_file_direct_write`).
    async fn direct_write_locked(
        &self,
        id: FileId,
        range: &Range<u64>,
        means: Means,
    ) -> Result<Option<u64>, FsError> {
        if self.traits_of(id).direct_io != DirectIo::Both {
            self.write_locked(id, range.start, range.end).await?;
            self.write_and_wait(id, range).await;
            self.invalidate(id, range).await;
            return Ok(Some(range.end - range.start));
        }
        on_volume!(self, place_direct(id, range.end))?;
        self.write_and_wait(id, range).await;
        self.invalidate(id, range).await;
        let extends = range.end > self.size_bytes(id);
        let means = if extends {
            Means {
                context: None,
                sync: None,
                ..means
            }
        } else {
            means
        };
        let queued = means.context.is_some();
        let key = self.submit_direct(id, Op::Write, range, means).await;
        let done = self.finish_direct(key, queued).await?;
        self.with(|s| s.file(id).size_bytes = s.file(id).size_bytes.max(range.end));
        if done.is_some() {
            // Pages that were read in the meantime hold old data.
            self.invalidate(id, range).await;
        }
        Ok(done)
    }

    /// Waits for the bios of a synchronous I/O (`dio_await_completion`).
    async fn finish_direct(&self, key: u64, queued: bool) -> Result<Option<u64>, FsError> {
        if queued {
            self.end_direct(key, false);
            return Ok(None);
        }
        self.wait_direct(key, true).await.map(Some)
    }

    /// The submitter has nothing more, and waits for the bios; whether it unplugs
    /// before it sleeps.
    pub(crate) async fn wait_direct(&self, key: u64, unplugs: bool) -> Result<u64, FsError> {
        self.end_direct(key, false);
        let pending = || self.with(|s| s.directs.get_mut(key).is_some_and(|d| d.pending > 0));
        while pending() {
            if unplugs {
                self.host.unplug();
            }
            if pending() {
                self.host.suspend_for_io().await;
            }
        }
        match self.with(|s| s.directs.remove(key)) {
            Some(direct) if !direct.failed => Ok(direct.bytes),
            _ => Err(FsError::Io),
        }
    }

    /// Submits all bios of a range (`direct_io_worker`, `do_direct_IO`; with iomap,
    /// `iomap_dio_rw`); the submitter's part is still pending.
    async fn submit_direct(&self, id: FileId, op: Op, range: &Range<u64>, means: Means) -> u64 {
        let flags = match op {
            Op::Read => BioFlags::NONE,
            _ => self.config.features.direct_write_flags | means.flags,
        };
        let waits = means.context.unwrap_or(Waits::Task(self.host.current()));
        let bytes = match op {
            // The last sector may reach beyond the end of the file.
            Op::Read => range.end.min(self.size_bytes(id)) - range.start,
            _ => range.end - range.start,
        };
        let key = self.with(|s| {
            s.directs.insert(Direct {
                pending: 1,
                failed: false,
                bytes,
                waits,
                sync: means.sync,
            })
        });
        let bio_bytes = self.config.bio_pages * PAGE_BYTES;
        let mut at = range.start;
        let plugs = self.plugs_submission(id, range);
        if plugs {
            self.host.start_plug();
        }
        while at < range.end {
            let hole = self.with(|s| {
                let pages = range.end.div_ceil(PAGE_BYTES);
                let piece = s.file(id).extents.piece(at / PAGE_BYTES, pages);
                (!piece.0).then_some(at / PAGE_BYTES + piece.1)
            });
            if let Some(end) = hole {
                // Nothing is read there, and nothing written: a write has
                // filled its holes.
                at = end * PAGE_BYTES;
                continue;
            }
            let bio = self.with(|s| {
                let (sector, pages) = s.file(id).extents.map(at / PAGE_BYTES)?;
                let skip = at % PAGE_BYTES;
                let len = (pages * PAGE_BYTES - skip)
                    .min(bio_bytes)
                    .min(range.end - at);
                s.directs.get_mut(key)?.pending += 1;
                s.stats.direct_bios += 1;
                Some((
                    sector + skip / SECTOR_BYTES,
                    len,
                    s.bios.insert(BioWork::Direct(key)),
                ))
            });
            let Some((sector, len, bio_key)) = bio else {
                break;
            };
            let nr_sectors = (len / SECTOR_BYTES) as u32;
            self.submit_bio(self.new_bio(op, flags, sector, nr_sectors, bio_key))
                .await;
            at += len;
        }
        if plugs {
            self.host.finish_plug();
        }
        key
    }

    /// Writes what is dirty of a range and waits for it
    /// (`filemap_write_and_wait_range`).
    async fn write_and_wait(&self, id: FileId, range: &Range<u64>) {
        let pages = pages_of(range);
        let busy = self.with(|s| {
            let file = s.file(id);
            file.dirty.next_set(pages.start, pages.end).is_some()
                || file.writeback.next_set(pages.start, pages.end).is_some()
        });
        if busy {
            self.write_out(id, pages.clone(), true).await;
            self.wait_writeback_run(id, pages).await;
        }
    }

    /// Drops the range from the cache, page after page as they become idle
    /// (`invalidate_inode_pages2_range`).
    async fn invalidate(&self, id: FileId, range: &Range<u64>) {
        let pages = pages_of(range);
        let mut page = pages.start;
        while let Some(next) = self.with(|s| s.file(id).cached.next_set(page, pages.end)) {
            self.wait_unlocked(id, next).await;
            self.wait_writeback(id, next).await;
            page = self.with(|s| {
                let end = s
                    .file(id)
                    .next_busy(next..pages.end)
                    .unwrap_or(pages.end)
                    .max(next + 1);
                s.drop_clean(id, next..end);
                end
            });
        }
    }
}

/// The bytes of a direct I/O: whole sectors.
fn aligned_range(offset: u64, bytes: u64) -> Result<Range<u64>, FsError> {
    if offset.is_multiple_of(SECTOR_BYTES) && bytes.is_multiple_of(SECTOR_BYTES) {
        file_range(offset, bytes)
    } else {
        Err(FsError::Unaligned)
    }
}
