// SPDX-License-Identifier: MIT OR Apache-2.0
//! Buffered reads (mm/filemap.c, `do_generic_file_read`; mm/readahead.c) of
//! 2.6.18, 2.6.28 and 3.7.
//!
//! Pages that are there are copied in runs, the processor time of which is
//! spent before the next thing that could be seen from outside: a submission,
//! a wait, the end of the call.

use crate::cache::PageCache;
use crate::error::FsError;
use crate::features::Readahead;
use crate::features::{FadviseRandom, WindowCap};
use crate::file::{Fd, File, FileId};
use crate::folio::Folios;
use crate::layout::PageRun;
use crate::ops::Host;
use crate::range::file_range;
use crate::readahead::Window;
use crate::state::State;
use crate::volume::on_volume;
use blklab_types::{Op, PAGE_BYTES, Span};

/// Pages per piece of a read-ahead that was asked for explicitly (2 MiB).
const FORCED_PAGES: u64 = 512;

/// What the next page of a request needs.
enum Look {
    /// It is not in the cache.
    Absent,
    /// It carries the marker.
    Marked,
    /// It is being read.
    Locked,
    /// Its read failed.
    Stale,
    /// So many pages are ready to be copied.
    Ready(u64),
}

impl<H: Host> PageCache<H> {
    /// `pread`: returns the bytes read, fewer at the end of the file.
    ///
    /// # Errors
    /// [`FsError::Io`] if a page cannot be read.
    pub async fn read(&self, fd: Fd, offset: u64, bytes: u64) -> Result<u64, FsError> {
        let open = self.opened(fd)?;
        let id = open.file;
        let request = file_range(offset, bytes)?;
        let end = request.end.min(self.size_bytes(id));
        if offset >= end {
            return Ok(0);
        }
        let (stop, last) = (end.div_ceil(PAGE_BYTES), request.end.div_ceil(PAGE_BYTES));
        let mut page = offset / PAGE_BYTES;
        let mut unspent = Span::ZERO;
        // A page whose marker was seen, a page that was read a second time.
        let (mut marker_seen, mut retried) = (None, None);
        let mut next_call = if self.two_windows() { page } else { u64::MAX };
        while page < stop {
            if page == next_call {
                self.spend_reading(std::mem::take(&mut unspent)).await;
                next_call = self.two_window_readahead(fd, id, page, last - page).await;
            }
            let marker = if marker_seen == Some(page) {
                None
            } else {
                Some(page)
            };
            let look = self.with(|s| look(s.file(id), page, stop.min(next_call), marker));
            if !matches!(look, Look::Ready(_)) {
                self.spend_reading(std::mem::take(&mut unspent)).await;
            }
            match look {
                Look::Ready(pages) => {
                    let from = offset.max(page * PAGE_BYTES);
                    let upto = end.min((page + pages) * PAGE_BYTES);
                    unspent += self.config.copy_cost(upto - from, pages);
                    // Going on within the page of the previous call is one use.
                    let again = from == open.prev_end && !from.is_multiple_of(PAGE_BYTES);
                    self.with(|s| s.touch(id, page + u64::from(again)..page + pages));
                    page += pages;
                }
                Look::Marked => {
                    marker_seen = Some(page);
                    self.marked_readahead(fd, id, page, last - page).await;
                }
                Look::Locked => self.wait_unlocked(id, page).await,
                Look::Absent => {
                    self.missing_readahead(fd, id, page, last - page).await;
                    if !self.with(|s| s.file(id).cached.test(page)) {
                        self.load_mapping(id, page).await;
                        self.submit_page(id, page).await;
                    }
                }
                Look::Stale if retried == Some(page) => return Err(FsError::Io),
                Look::Stale => {
                    retried = Some(page);
                    self.submit_page(id, page).await;
                }
            }
        }
        self.spend_reading(unspent).await;
        on_volume!(self, accessed(id));
        self.with(|s| {
            let open = &mut s.open[fd.0 as usize];
            open.prev_end = end;
            if next_call == u64::MAX {
                open.ra.prev = stop - 1;
            }
        });
        Ok(end - offset)
    }

    /// A page is not there: reads what the algorithm says
    /// (`page_cache_sync_readahead`).
    pub(crate) async fn missing_readahead(&self, fd: Fd, id: FileId, page: u64, req: u64) {
        if self.two_windows() {
            return self.with(|s| s.open[fd.0 as usize].ra.note_miss());
        }
        if self.opened(fd).is_ok_and(|open| open.random) {
            return self.read_forced(id, page, req).await;
        }
        self.on_demand(fd, id, page, req, false).await;
    }

    /// A page has the marker: reads the next window, unless the device has
    /// too much to read already (`page_cache_async_readahead`).
    pub(crate) async fn marked_readahead(&self, fd: Fd, id: FileId, page: u64, req: u64) {
        let off = self.with(|s| {
            let off = s.open[fd.0 as usize].ra.max == 0 || s.file(id).writeback.test(page);
            if !off {
                s.file(id).marker.clear(page..page + 1);
            }
            off
        });
        let congested = self.config.features.congestion && self.host.read_congested();
        if !off && !congested {
            self.on_demand(fd, id, page, req, true).await;
        }
    }

    /// `ondemand_readahead`.
    async fn on_demand(&self, fd: Fd, id: FileId, page: u64, req: u64, marker: bool) {
        let which = self.config.features.readahead;
        let large = which == Readahead::Aligned && self.has_large_folios(id);
        let window = self.with(|s| {
            let asked = s.open[fd.0 as usize].ra.max;
            let max = self.window_max(s, asked, req);
            if asked == 0 || max == 0 {
                return None;
            }
            let State { open, files, .. } = s;
            let ra = &mut open[fd.0 as usize].ra;
            ra.max = max;
            let file = &files[id.idx()];
            let window = match which {
                Readahead::Aligned => ra.aligned(page, req, marker, large, file),
                _ => ra.on_demand(which, page, req, marker, file),
            };
            ra.max = asked;
            // What is read exactly gets single pages.
            let order = |w: Window| w.marker.map_or(0, |_| ra.folio_order);
            window.map(|w| (w, order(w)))
        });
        if let Some((window, order)) = window {
            self.read_folios(id, window, order).await;
        }
    }

    /// Reads what the two-window algorithm says (`page_cache_readahead`, up to
    /// 2.6.22). Returns the page at which it is to be asked again.
    pub(crate) async fn two_window_readahead(
        &self,
        fd: Fd,
        id: FileId,
        page: u64,
        req: u64,
    ) -> u64 {
        let congested = self.host.read_congested();
        let (windows, next) = self.with(|s| {
            let ra = &mut s.open[fd.0 as usize].ra;
            (ra.two_window(page, req, congested), ra.prev.wrapping_add(1))
        });
        for window in windows.into_iter().flatten() {
            let read = self.read_window(id, window).await;
            self.with(|s| s.open[fd.0 as usize].ra.note_read(window.pages, read));
        }
        next
    }

    /// The largest window for a request, of a file whose own setting is `max`.
    fn window_max(&self, s: &State, max: u64, req: u64) -> u64 {
        match self.config.features.window_cap {
            WindowCap::None | WindowCap::Device => max,
            WindowCap::Memory => max.min(self.spare_pages(s)),
            WindowCap::TwoMib => max.min(FORCED_PAGES),
            WindowCap::Request if req > max => max.max(req.min(self.config.request_pages)),
            WindowCap::Request => max,
        }
    }

    /// The most that can be asked for explicitly in one call.
    fn forced_max(&self, s: &State) -> u64 {
        let device = self.config.read_ahead_pages();
        match self.config.features.window_cap {
            WindowCap::None => u64::MAX,
            WindowCap::Memory => self.spare_pages(s),
            WindowCap::TwoMib => FORCED_PAGES,
            WindowCap::Device => device,
            WindowCap::Request => device.max(self.config.request_pages),
        }
    }

    /// Half of the inactive and the free memory (`max_sane_readahead`).
    fn spare_pages(&self, s: &State) -> u64 {
        let capacity = self.config.cache_pages();
        capacity.saturating_sub(s.lru.nr_active()) / 2
    }

    /// Reads pages that an advice or a random reader asked for, in pieces
    /// (`force_page_cache_readahead`).
    pub(crate) async fn read_forced(&self, id: FileId, start: u64, pages: u64) {
        let most = self.with(|s| self.forced_max(s));
        let end = start
            .saturating_add(pages.min(most))
            .min(self.with(|s| s.file(id).eof_pages()));
        let mut page = start;
        while page < end {
            let pages = FORCED_PAGES.min(end - page);
            self.read_window(
                id,
                Window {
                    start: page,
                    pages,
                    marker: None,
                },
            )
            .await;
            page += pages;
        }
    }

    /// Puts an empty page into the cache.
    pub fn fill_hole(&self, id: FileId, page: u64) {
        self.waking(|s, wake| {
            if !s.file(id).cached.test(page) {
                s.add_locked(id, page..page + 1);
                s.end_read(id, &(page..page + 1), false, wake);
            }
        });
    }

    /// Reads a window page by page in memory.
    pub async fn read_window(&self, id: FileId, window: Window) -> u64 {
        self.read_folios(id, window, 0).await
    }

    /// Whether read-ahead caches a file in large folios.
    fn has_large_folios(&self, id: FileId) -> bool {
        let features = &self.config.features;
        let is_device = self.with(|s| Some(id) == s.device);
        features.large_folios
            && if is_device {
                features.device_large_folios
            } else {
                self.traits_of(id).large_folios
            }
    }

    /// Submits reads of the missing pages of a window, as far as the file goes,
    /// without waiting for them (`__do_page_cache_readahead`, later
    /// `page_cache_ra_unbounded`). Returns how many there were. `order`: of its
    /// folios, if the file has large ones.
    pub(crate) async fn read_folios(&self, id: FileId, window: Window, order: u32) -> u64 {
        let (missing, end) = self.with(|s| {
            let file = s.file(id);
            let end = window
                .start
                .saturating_add(window.pages)
                .min(file.eof_pages())
                .max(window.start);
            (
                end - window.start - file.cached.count_in(window.start..end),
                end,
            )
        });
        if missing == 0 {
            return 0;
        }
        self.make_room(missing).await;
        if self.reads_itself(id, window.start..end) {
            self.with(|s| {
                if let Some(marker) = window.marker.filter(|m| *m < end) {
                    s.file(id).marker.set(marker..marker + 1);
                }
            });
            return missing;
        }
        let folios = (order > 0 && self.has_large_folios(id))
            .then(|| Folios::of_window(&(window.start..end), order));
        let bio_pages = match folios {
            Some(folios) if self.config.features.readahead == Readahead::Aligned => {
                folios.pages_of(self.config.bio_pages)
            }
            _ => self.config.bio_pages,
        };
        self.host.start_plug();
        let mut page = window.start;
        let mut bio: Option<PageRun> = None;
        self.load_mapping(id, page).await;
        while let Some((run, continues)) = self.with(|s| {
            page = s.fill_holes(id, page, end);
            let (run, continues) = next_missing(s.file(id), page, end, bio, bio_pages)?;
            let pages = run.start..run.start + run.pages;
            s.add_locked(id, pages.clone());
            if let Some(marker) = window.marker.filter(|m| pages.contains(m)) {
                s.file(id).marker.set(marker..marker + 1);
            }
            Some((run, continues))
        }) {
            page = run.start + run.pages;
            match &mut bio {
                Some(bio) if continues => bio.pages += run.pages,
                _ => {
                    // The page is locked while the bio before it is submitted.
                    if let Some(full) = bio.replace(run) {
                        self.submit_ahead(id, full, folios).await;
                    }
                }
            }
        }
        if let Some(rest) = bio {
            self.submit_ahead(id, rest, folios).await;
        }
        self.host.finish_plug();
        missing
    }

    /// Submits one bio of a window.
    async fn submit_ahead(&self, id: FileId, run: PageRun, folios: Option<Folios>) {
        let flags = self.config.features.readahead_flags;
        let pages = run.start..run.start + run.pages;
        if let Some(segments) = folios.map(|f| f.segments(&pages)) {
            self.submit_segments(Op::Read, flags, id, run, segments)
                .await;
        } else {
            self.submit(Op::Read, flags, id, run).await;
        }
    }

    /// Whether the advice of random access reads whole requests.
    pub(crate) fn random_reads_whole(&self) -> bool {
        self.config.features.fadvise_random == FadviseRandom::WholeRequest
    }
}

impl State {
    /// Holes at the beginning of a window are zeroes. Returns the page behind
    /// them.
    fn fill_holes(&mut self, id: FileId, page: u64, end: u64) -> u64 {
        let mut at = page;
        loop {
            let file = &self.files[id.idx()];
            let hole = file.cached.next_clear(at, end);
            let place = file.extents.next_place(hole).unwrap_or(end).min(end);
            if hole >= place {
                return at;
            }
            at = file.cached.next_set(hole, place).unwrap_or(place);
            self.add_zeroes(id, hole..at);
        }
    }
}

/// The next missing pages of a window: those that continue the bio under
/// construction, or the one page that begins another.
fn next_missing(
    file: &File,
    page: u64,
    end: u64,
    bio: Option<PageRun>,
    most: u64,
) -> Option<(PageRun, bool)> {
    let start = file.cached.next_clear(page, end);
    if start >= end {
        return None;
    }
    let (sector, contiguous) = file.extents.map(start)?;
    let room = bio.map_or(0, |b| b.room(start, sector, most));
    if room == 0 {
        return Some((
            PageRun {
                start,
                pages: 1,
                sector,
            },
            false,
        ));
    }
    let missing = file.cached.next_set(start, end).unwrap_or(end) - start;
    Some((
        PageRun {
            start,
            pages: missing.min(contiguous).min(room),
            sector,
        },
        true,
    ))
}

/// Looks at the next page, whose marker counts only if it is `marker`.
fn look(file: &File, page: u64, stop: u64, marker: Option<u64>) -> Look {
    if !file.cached.test(page) {
        return Look::Absent;
    }
    if marker == Some(page) && file.marker.test(page) {
        return Look::Marked;
    }
    if !file.uptodate.test(page) {
        return if file.locked.test(page) {
            Look::Locked
        } else {
            Look::Stale
        };
    }
    let end = file.uptodate.next_clear(page, stop.max(page + 1));
    Look::Ready(file.marker.next_set(page + 1, end).unwrap_or(end) - page)
}
