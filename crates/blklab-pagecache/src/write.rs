// SPDX-License-Identifier: MIT OR Apache-2.0
//! Buffered writes (mm/filemap.c, `generic_file_buffered_write`, 2.6.28).
//!
//! The kernel copies page by page under the page's lock. Here the pages up to
//! the next check of the dirty limits are copied in one sleep, and become
//! dirty when it ends; a page that somebody else has locked is waited for
//! before it becomes dirty. The file's mutex is held all the while.

use crate::cache::PageCache;
use crate::error::FsError;
use crate::file::{Fd, FileId};
use crate::layout::PageRun;
use crate::ops::Host;
use crate::range::file_range;
use crate::volume::on_volume;
use blklab_types::{BioFlags, Op, PAGE_BYTES};
use std::ops::Range;

impl<H: Host> PageCache<H> {
    /// `pwrite` (`generic_file_aio_write`): returns the bytes written.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] before anything is written; [`FsError::Io`] if a
    /// page to be changed in part cannot be read, or an `O_SYNC` write fails.
    pub async fn write(&self, fd: Fd, offset: u64, bytes: u64) -> Result<u64, FsError> {
        let open = self.opened(fd)?;
        let end = file_range(offset, bytes)?.end;
        if bytes == 0 {
            return Ok(0);
        }
        self.with(|s| s.open[fd.0 as usize].wrote = true);
        self.lock_inode(open.file).await;
        let result = self.write_locked(open.file, offset, end).await;
        self.unlock_inode(open.file);
        result?;
        self.sync_write(&open, &(offset..end)).await?;
        Ok(bytes)
    }

    /// The write itself, under the file's mutex (`generic_file_buffered_write`,
    /// `generic_perform_write`; XFS later `iomap_file_buffered_write`).
    pub(crate) async fn write_locked(
        &self,
        id: FileId,
        offset: u64,
        end: u64,
    ) -> Result<(), FsError> {
        on_volume!(self, begin_write(id, end))?;
        let mut at = offset;
        while at < end {
            let page = at / PAGE_BYTES;
            let whole = if at.is_multiple_of(PAGE_BYTES) {
                (end - at) / PAGE_BYTES
            } else {
                0
            };
            let pages = if whole == 0 {
                1
            } else {
                whole.min(self.pages_until_check())
            };
            let upto = end.min((page + pages) * PAGE_BYTES);
            let run = page..page + pages;
            self.prepare(id, run.clone(), whole == 0).await?;
            let cost = self.config.write_cost(upto - at, pages, at == offset);
            self.spend_in_pieces(cost, pages).await;
            self.attach_group(id);
            on_volume!(self, dirty_written(id, run, upto))?;
            at = upto;
            self.balance_ratelimited(pages).await;
        }
        Ok(())
    }

    /// Brings pages into a state to be written to: room for those that are
    /// missing; a page written to in part is read first, unless it lies behind
    /// the end of the file.
    async fn prepare(&self, id: FileId, run: Range<u64>, partial: bool) -> Result<(), FsError> {
        if self.config.features.stable_pages {
            self.wait_writeback_run(id, run.clone()).await;
        }
        let page = run.start;
        if partial && self.with(|s| page < s.file(id).eof_pages()) {
            self.wait_unlocked(id, page).await;
            self.load_mapping(id, page).await;
            if !self.read_page(id, page).await {
                return Err(FsError::Io);
            }
        }
        let missing = self.with(|s| run.end - run.start - s.file(id).cached.count_in(run));
        if missing > 0 {
            self.make_room(missing).await;
        }
        Ok(())
    }

    /// The first task that writes to a file gives it its control group
    /// (`inode_attach_wb`).
    fn attach_group(&self, id: FileId) {
        if self.config.cgroup_writeback {
            let group = self.host.group();
            self.with(|s| {
                s.file(id).written_by.get_or_insert(group);
            });
        }
    }

    /// Makes pages dirty as their locks allow, and the file at least `end`
    /// bytes long. Returns how many were clean.
    pub async fn set_dirty(&self, id: FileId, run: Range<u64>, end: u64, mapped: bool) -> u64 {
        self.attach_group(id);
        let task = self.host.current();
        let mut page = run.start;
        let mut clean = 0;
        while page < run.end {
            let now = self.host.jiffies();
            let stop = self.with(|s| {
                let stop = s.file(id).locked.next_set(page, run.end).unwrap_or(run.end);
                if page < stop {
                    // Dirty pages have dirty buffers
                    // (`__set_page_dirty_buffers`).
                    if s.file(id).buffers.present {
                        s.file(id).buffers.dirty.set(page..stop);
                    }
                    let new = s.dirty(id, page..stop, now);
                    s.count_dirtying(&self.config, task, new, mapped);
                    clean += new;
                }
                stop
            });
            page = stop;
            if page < run.end {
                self.wait_unlocked(id, page).await;
            }
        }
        self.with(|s| {
            let file = s.file(id);
            file.size_bytes = file.size_bytes.max(end);
        });
        self.start_flusher_timer();
        clean
    }

    /// Reads one page if it is not up to date, and waits for it. Returns
    /// whether it is then.
    pub async fn read_page(&self, id: FileId, page: u64) -> bool {
        self.read_page_as(id, page, BioFlags::NONE).await
    }

    /// The same with flags for its bio, such as that of metadata.
    pub async fn read_page_as(&self, id: FileId, page: u64, flags: BioFlags) -> bool {
        if self.with(|s| s.file(id).uptodate.test(page)) {
            return true;
        }
        self.submit_page_as(id, page, flags).await;
        self.wait_unlocked(id, page).await;
        self.with(|s| s.file(id).uptodate.test(page))
    }

    /// Reads one page that nobody has locked, on its own. One in a hole is
    /// there at once.
    pub async fn submit_page(&self, id: FileId, page: u64) {
        self.submit_page_as(id, page, BioFlags::NONE).await;
    }

    /// The same with flags for its bio.
    pub async fn submit_page_as(&self, id: FileId, page: u64, flags: BioFlags) {
        if !self.with(|s| s.file(id).cached.test(page)) {
            self.make_room(1).await;
        }
        let place = self.with(|s| {
            let file = s.file(id);
            let place = file.extents.map(page);
            // Somebody else may have begun to read it during the sleep.
            let wanted = !file.locked.test(page) && !file.uptodate.test(page);
            if wanted && place.is_some() {
                s.add_locked(id, page..page + 1);
            } else if wanted {
                s.add_zeroes(id, page..page + 1);
            }
            place.filter(|_| wanted)
        });
        if let Some((sector, _)) = place {
            self.submit(
                Op::Read,
                flags,
                id,
                PageRun {
                    start: page,
                    pages: 1,
                    sector,
                },
            )
            .await;
        }
    }
}
