// SPDX-License-Identifier: MIT OR Apache-2.0
//! `posix_fadvise` and page faults of mappings (mm/fadvise.c and
//! `filemap_fault` of mm/filemap.c, 2.6.28, 2.6.32 and 3.7).

use crate::cache::PageCache;
use crate::error::FsError;
use crate::features::{FaultReadahead, Readahead};
use crate::file::{Advice, Fd, FileId};
use crate::folio::FIRST_ORDER;
use crate::ops::Host;
use crate::range::{file_range, pages_of};
use crate::readahead::Window;
use crate::volume::on_volume;
use blklab_types::PAGE_BYTES;

/// Misses of page faults after which only single pages are read
/// (`MMAP_LOTSAMISS`).
const MANY_MISSES: i64 = 100;

/// How a page fault went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The page was there.
    Minor,
    /// It had to be read.
    Major,
}

impl<H: Host> PageCache<H> {
    /// `posix_fadvise` (`sys_fadvise64_64`); a length of 0 means up to the end of
    /// the file.
    ///
    /// # Errors
    /// [`FsError::BadHandle`], [`FsError::TooBig`].
    pub async fn fadvise(
        &self,
        fd: Fd,
        offset: u64,
        bytes: u64,
        advice: Advice,
    ) -> Result<(), FsError> {
        let id = self.opened(fd)?.file;
        let mut range = file_range(offset, bytes)?;
        if bytes == 0 {
            range.end = u64::MAX / PAGE_BYTES * PAGE_BYTES;
        }
        let device = self.config.read_ahead_pages();
        let (max, random) = match advice {
            Advice::Normal => (device, false),
            Advice::Sequential => (device * 2, false),
            Advice::Random if self.random_reads_whole() => (device, true),
            Advice::Random => (0, false),
            Advice::WillNeed => {
                let pages = pages_of(&range);
                self.read_forced(id, pages.start, pages.end - pages.start)
                    .await;
                return Ok(());
            }
            Advice::DontNeed => {
                if !self.config.features.congestion || !self.host.write_congested() {
                    self.write_out(id, 0..u64::MAX, false).await;
                }
                // A first page that is not whole stays; a last one goes, as
                // the range's end is rounded up.
                let (start, end) = (
                    range.start.div_ceil(PAGE_BYTES),
                    range.end.div_ceil(PAGE_BYTES),
                );
                self.with(|s| s.drop_clean(id, start..end.max(start)));
                return Ok(());
            }
        };
        self.with(|s| {
            let open = &mut s.open[fd.0 as usize];
            open.ra.max = max;
            open.random = random;
        });
        Ok(())
    }

    /// `madvise` on the file's mapping: Normal, Sequential and Random; the
    /// others do nothing here.
    ///
    /// # Errors
    /// [`FsError::BadHandle`].
    pub fn madvise(&self, fd: Fd, advice: Advice) -> Result<(), FsError> {
        self.opened(fd)?;
        if matches!(advice, Advice::Normal | Advice::Sequential | Advice::Random) {
            self.with(|s| s.open[fd.0 as usize].mapped_as = advice);
        }
        Ok(())
    }

    /// A program touches a page of the file's mapping for the first time
    /// (`filemap_fault`); a write makes the page dirty.
    ///
    /// # Errors
    /// [`FsError::TooBig`] behind the end of the file (the program would get
    /// SIGBUS), [`FsError::Io`].
    pub async fn fault(&self, fd: Fd, page: u64, write: bool) -> Result<Fault, FsError> {
        let open = self.opened(fd)?;
        let id = open.file;
        if self.with(|s| page >= s.file(id).eof_pages()) {
            return Err(FsError::TooBig);
        }
        let cached = || self.with(|s| s.file(id).cached.test(page));
        let mut fault = Fault::Minor;
        match open.mapped_as {
            Advice::Sequential => {
                if !cached() {
                    fault = Fault::Major;
                }
                self.sequential_fault(fd, id, page).await;
            }
            Advice::Random if !cached() => fault = Fault::Major,
            Advice::Random => {}
            _ if cached() => self.hit(fd, id, page).await,
            _ => {
                fault = Fault::Major;
                self.miss(fd, id, page).await;
            }
        }
        self.wait_unlocked(id, page).await;
        // Not read by now, or in vain: once more, alone.
        self.load_mapping(id, page).await;
        if !self.read_page(id, page).await {
            return Err(FsError::Io);
        }
        self.with(|s| {
            s.touch(id, page..page + 1);
            let marked = self.config.features.fault_readahead == FaultReadahead::AroundMarked;
            if !self.two_windows() && !marked {
                s.open[fd.0 as usize].ra.prev = page;
            }
        });
        self.spend(self.config.page_cost).await;
        if write {
            if self.config.features.stable_pages {
                self.wait_writeback_run(id, page..page + 1).await;
            }
            on_volume!(self, mapped_write(id, page));
            let size = self.size_bytes(id);
            if self.set_dirty(id, page..page + 1, size, true).await > 0 {
                self.balance_ratelimited(1).await;
            }
        }
        Ok(fault)
    }

    /// A fault finds its page: fewer misses, and from 2.6.32 on the next window if
    /// the page carries the marker (`do_async_mmap_readahead`).
    async fn hit(&self, fd: Fd, id: FileId, page: u64) {
        let around = self.config.features.fault_readahead == FaultReadahead::Around;
        let (marked, max) = self.with(|s| {
            let marked = s.file(id).marker.test(page);
            let ra = &mut s.open[fd.0 as usize].ra;
            if around || ra.mmap_miss > 0 {
                ra.mmap_miss -= 1;
            }
            (marked && !around, ra.max)
        });
        if marked {
            self.marked_readahead(fd, id, page, max).await;
        }
    }

    /// A fault does not find its page (`do_sync_mmap_readahead`).
    async fn miss(&self, fd: Fd, id: FileId, page: u64) {
        let ra = self.with(|s| s.open[fd.0 as usize].ra);
        let follows = ra.prev.wrapping_add(1) == page;
        if follows && self.config.features.fault_readahead == FaultReadahead::AroundOrSequential {
            self.missing_readahead(fd, id, page, ra.max).await;
        } else {
            self.read_around(fd, page).await;
        }
    }

    /// Reads ahead as `read` would: for one page, from 2.6.32 on for as many as
    /// a window has.
    async fn sequential_fault(&self, fd: Fd, id: FileId, page: u64) {
        if self.two_windows() {
            self.two_window_readahead(fd, id, page, 1).await;
        }
        let req = match self.config.features.fault_readahead {
            FaultReadahead::Around => 1,
            _ => self.with(|s| s.open[fd.0 as usize].ra.max),
        };
        if !self.with(|s| s.file(id).cached.test(page)) {
            self.missing_readahead(fd, id, page, req).await;
        }
        if self.with(|s| s.file(id).marker.test(page)) {
            self.marked_readahead(fd, id, page, req).await;
        }
    }

    /// Reads a window around a missing page, unless such reads mostly missed
    /// or (up to 2.6.31) the device has too much to read already.
    async fn read_around(&self, fd: Fd, page: u64) {
        let (id, miss, max) = self.with(|s| {
            let open = &mut s.open[fd.0 as usize];
            open.ra.mmap_miss += 1;
            (open.file, open.ra.mmap_miss, open.ra.max)
        });
        let how = self.config.features.fault_readahead;
        let yields = how == FaultReadahead::Around && self.host.read_congested();
        if miss > MANY_MISSES || max == 0 || yields {
            return;
        }
        let order = match self.config.features.readahead {
            Readahead::Aligned => 0,
            _ => FIRST_ORDER,
        };
        let start = page.saturating_sub(max / 2);
        let ahead = if how == FaultReadahead::AroundMarked {
            max / 4
        } else {
            0
        };
        if how != FaultReadahead::Around {
            self.with(|s| {
                let ra = &mut s.open[fd.0 as usize].ra;
                (ra.start, ra.size, ra.async_size) = (start, max, ahead);
                ra.folio_order = order;
            });
        }
        let window = Window {
            start,
            pages: max,
            marker: (ahead > 0).then_some(start + max - ahead),
        };
        self.read_folios(id, window, order).await;
    }
}
