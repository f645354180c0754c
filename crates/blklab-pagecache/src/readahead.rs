// SPDX-License-Identifier: MIT OR Apache-2.0
//! Read-ahead decisions: which pages to read next, and where to look again.
//!
//! Linux mm/readahead.c of 2.6.18 (two windows), 2.6.28 (on demand), 3.7 (on
//! demand with context), 3.12 (with longer context only) and 5.0 (first windows
//! no larger than others). Pure functions on
//! the state of one open file; reading the pages is the caller's business. All
//! quantities are pages.

use crate::features::Readahead;
use crate::folio;

/// Pages to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// First page.
    pub start: u64,
    /// Number of pages.
    pub pages: u64,
    /// Page that gets the marker (`PG_readahead`); reaching it starts the next
    /// window.
    pub marker: Option<u64>,
}

/// What a decision may ask about the page cache of the file.
pub trait Cached {
    /// The first uncached page after `page`, looking at no more than `max` pages
    /// from `page` on (`radix_tree_next_hole`, later `page_cache_next_miss`).
    fn next_hole(&self, page: u64, max: u64) -> Option<u64>;
    /// Cached pages immediately before `page`, at most `max`
    /// (`count_history_pages`).
    fn run_before(&self, page: u64, max: u64) -> u64;
}

/// Read-ahead state of one open file (`file_ra_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RaState {
    /// First page of the current window.
    pub start: u64,
    /// Its size.
    pub(crate) size: u64,
    /// How many pages at its end are ahead of the reader; two windows: size
    /// of the ahead window.
    pub(crate) async_size: u64,
    /// Last page of the previous call (`prev_pos`); `u64::MAX` before the first.
    pub prev: u64,
    /// Largest window (`ra_pages`); 0 turns read-ahead off.
    pub(crate) max: u64,
    /// Order of the large folios in the last window, where there are any.
    pub(crate) folio_order: u32,
    /// Misses less hits of page faults.
    pub(crate) mmap_miss: i64,
    /// Two windows: a cached page of the window was found gone.
    pub(crate) missed: bool,
    /// Two windows: pages found cached in a row by read-ahead.
    pub(crate) cache_hits: u64,
}

/// Smallest window of the two-window algorithm (16 KiB).
const MIN_WINDOW: u64 = 4;

/// Pages found cached in a row before two-window read-ahead gives up
/// (`VM_MAX_CACHE_HIT`).
const MAX_CACHE_HITS: u64 = 256;

impl RaState {
    /// The state of a file just opened.
    pub fn new(max: u64) -> RaState {
        RaState {
            start: 0,
            size: 0,
            async_size: 0,
            prev: u64::MAX,
            max,
            folio_order: folio::FIRST_ORDER,
            mmap_miss: 0,
            missed: false,
            cache_hits: 0,
        }
    }

    /// Size of the first window for a request of `req` pages (`get_init_ra_size`).
    pub(crate) fn init_size(&self, req: u64) -> u64 {
        let size = req.max(1).checked_next_power_of_two().unwrap_or(u64::MAX);
        if size <= self.max / 32 {
            size * 4
        } else if size <= self.max / 4 {
            size * 2
        } else {
            self.max
        }
    }

    /// Size of the window that follows one of `size` (`get_next_ra_size`).
    pub(crate) fn next_size(&self, size: u64) -> u64 {
        let next = if size < self.max / 16 {
            size * 4
        } else {
            size * 2
        };
        next.min(self.max)
    }

    /// The decision of the on-demand algorithms (`ondemand_readahead`,
    /// `try_context_readahead`) for a missing page (`marker` false) or a marked
    /// one, `req` pages before the end of the request.
    pub fn on_demand(
        &mut self,
        which: Readahead,
        offset: u64,
        req: u64,
        marker: bool,
        cached: &impl Cached,
    ) -> Option<Window> {
        let context = which != Readahead::OnDemandV1;
        let expected = offset == (self.start + self.size).wrapping_sub(self.async_size)
            || offset == self.start + self.size;
        let close = offset.wrapping_sub(self.prev) <= 1;
        if offset != 0 && expected {
            self.start += self.size;
            self.size = self.next_size(self.size);
            self.async_size = self.size;
        } else if marker && !(context && offset == 0) {
            let hole = cached.next_hole(offset + u64::from(context), self.max + 1)?;
            if hole - offset > self.max {
                return None;
            }
            self.start = hole;
            let ahead = hole - offset + if context { req } else { 0 };
            self.size = self.next_size(ahead);
            self.async_size = self.size;
        } else if close || req > self.max || context && offset == 0 {
            self.begin(offset, req);
        } else if context {
            let mut history = cached.run_before(offset, self.max);
            let cautious = matches!(which, Readahead::OnDemandV3 | Readahead::OnDemandV4);
            if history == 0 || cautious && history <= req {
                return Some(Window {
                    start: offset,
                    pages: req,
                    marker: None,
                });
            }
            if history >= offset {
                history *= 2;
            }
            self.start = offset;
            if cautious {
                self.size = (history + req).min(self.max);
                self.async_size = 1;
            } else {
                self.size = self.init_size(history + req);
                self.async_size = self.size;
            }
        } else {
            return Some(Window {
                start: offset,
                pages: req,
                marker: None,
            });
        }
        if context && offset == self.start && self.size == self.async_size {
            let next = self.next_size(self.size);
            if which == Readahead::OnDemandV4 && self.size + next > self.max {
                (self.size, self.async_size) = (self.max, self.max / 2);
            } else {
                (self.size, self.async_size) = (self.size + next, next);
            }
        }
        self.folio_order = if marker {
            folio::next_order(self.folio_order)
        } else {
            folio::FIRST_ORDER
        };
        Some(Window {
            start: self.start,
            pages: self.size,
            marker: Some(self.start + self.size - self.async_size),
        })
    }

    /// A first or oversize window.
    fn begin(&mut self, offset: u64, req: u64) {
        self.start = offset;
        self.size = self.init_size(req);
        self.async_size = if self.size > req {
            self.size - req
        } else {
            self.size
        };
    }

    /// The decision of the two-window algorithm at the start of a request of `req`
    /// pages (`page_cache_readahead`): up to two windows to read. `congested`: do
    /// not read ahead what nobody waits for.
    pub fn two_window(&mut self, offset: u64, req: u64, congested: bool) -> [Option<Window>; 2] {
        let exact = |start, pages| {
            Some(Window {
                start,
                pages,
                marker: None,
            })
        };
        let (mut offset, mut req) = (offset, req);
        if offset == self.prev {
            req -= 1;
            if req == 0 {
                return [None; 2];
            }
            offset += 1;
        }
        let sequential = offset == self.prev.wrapping_add(1);
        let n = req.min(self.max);
        self.prev = offset;
        if n == 0 || self.cache_hits >= MAX_CACHE_HITS {
            return [None; 2];
        }
        self.prev = offset + n - 1;
        if sequential && self.size == 0 {
            self.size = self.init_size(n);
            self.start = offset;
            let window = exact(self.start, self.size);
            return [
                window,
                if req >= self.max {
                    self.ahead(false)
                } else {
                    None
                },
            ];
        }
        if !sequential {
            (self.start, self.size, self.async_size) = (0, 0, 0);
            return [exact(offset, n), None];
        }
        let mut windows = [None; 2];
        if self.async_size == 0 {
            let reached = offset >= self.start + self.size;
            windows[0] = self.ahead(congested && !reached);
            if self.async_size == 0 {
                return windows;
            }
        }
        if self.prev >= self.start + self.size {
            self.start += self.size;
            self.size = self.async_size;
            self.async_size = 0;
            windows[1] = self.ahead(congested);
        }
        windows
    }

    /// Plans the ahead window behind the current one (`make_ahead_window`).
    fn ahead(&mut self, blocked: bool) -> Option<Window> {
        if blocked {
            return None;
        }
        let next = if std::mem::take(&mut self.missed) {
            self.size.saturating_sub(2).max(MIN_WINDOW).min(self.max)
        } else {
            self.next_size(self.size)
        };
        self.async_size = next;
        Some(Window {
            start: self.start + self.size,
            pages: next,
            marker: None,
        })
    }

    /// Two windows: a page of a request was not there although its window had been
    /// read; later windows shrink (`handle_ra_miss`).
    pub(crate) fn note_miss(&mut self) {
        self.missed = true;
        self.cache_hits = 0;
    }

    /// Two windows: read-ahead of `pages` pages found `read` of them missing. After
    /// 256 cached ones in a row it gives up until a page is missing
    /// (`check_ra_success`).
    pub fn note_read(&mut self, pages: u64, read: u64) {
        self.cache_hits = if read > 0 { 0 } else { self.cache_hits + pages };
    }
}

/// For tests: a file whose first pages are cached.
#[cfg(test)]
pub(crate) struct Prefix(pub(crate) u64);

#[cfg(test)]
impl Cached for Prefix {
    fn next_hole(&self, page: u64, max: u64) -> Option<u64> {
        let hole = page.max(self.0);
        (hole - page < max).then_some(hole)
    }
    fn run_before(&self, page: u64, max: u64) -> u64 {
        if page <= self.0 { page.min(max) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a file sequentially and lists (trigger, start, size, marker).
    fn sequential(which: Readahead, call_pages: u64, end: u64) -> Vec<(u64, u64, u64, u64)> {
        let mut ra = RaState::new(32);
        let (mut cached, mut marker, mut seen) = (0, None, Vec::new());
        for call in 0..end / call_pages {
            let last = (call + 1) * call_pages;
            for page in call * call_pages..last {
                for hit in [false, true] {
                    if (hit && marker == Some(page)) || (!hit && page >= cached) {
                        let w = ra.on_demand(which, page, last - page, hit, &Prefix(cached));
                        let w = w.expect("sequential reading reads ahead");
                        seen.push((page, w.start, w.pages, w.marker.expect("a window")));
                        (cached, marker) = (w.start + w.pages, w.marker);
                    }
                }
            }
            ra.prev = last - 1;
        }
        seen
    }

    #[test]
    fn first_windows() {
        let ra = RaState::new(32);
        let got: Vec<_> = [1, 2, 3, 4, 5, 8, 9, 32].map(|s| ra.init_size(s)).into();
        assert_eq!(got, [4, 4, 8, 8, 16, 16, 32, 32]);
    }

    #[test]
    fn v1_grows_to_the_maximum_and_stays_one_window_ahead() {
        assert_eq!(
            sequential(Readahead::OnDemandV1, 1, 64),
            [
                (0, 0, 4, 1),
                (1, 4, 8, 4),
                (4, 12, 16, 12),
                (12, 28, 32, 28),
                (28, 60, 32, 60),
                (60, 92, 32, 92)
            ]
        );
    }

    #[test]
    fn v2_starts_large_requests_with_two_windows() {
        assert_eq!(
            sequential(Readahead::OnDemandV2, 32, 128),
            [
                (0, 0, 64, 32),
                (32, 64, 32, 64),
                (64, 96, 32, 96),
                (96, 128, 32, 128)
            ]
        );
    }

    #[test]
    fn v4_reads_no_first_window_larger_than_the_maximum() {
        assert_eq!(
            sequential(Readahead::OnDemandV4, 32, 128),
            [
                (0, 0, 32, 16),
                (16, 32, 32, 32),
                (32, 64, 32, 64),
                (64, 96, 32, 96),
                (96, 128, 32, 128)
            ]
        );
        // Smaller ones grow as before.
        assert_eq!(
            sequential(Readahead::OnDemandV4, 1, 16),
            sequential(Readahead::OnDemandV3, 1, 16)
        );
    }

    #[test]
    fn folios_grow_with_each_window_that_a_marker_starts() {
        let mut ra = RaState::new(32);
        let mut orders = Vec::new();
        for (page, marker) in [(0, false), (1, true), (4, true), (12, true)] {
            let w = ra.on_demand(Readahead::OnDemandV4, page, 1, marker, &Prefix(page));
            assert!(w.is_some_and(|w| w.marker.is_some()));
            orders.push(ra.folio_order);
        }
        assert_eq!(orders, [2, 4, 6, 8]);
        ra.on_demand(Readahead::OnDemandV4, 0, 1, false, &Prefix(0));
        assert_eq!(ra.folio_order, 2);
    }

    #[test]
    fn context_of_earlier_readers_starts_a_window() {
        let after = |which, cached, offset, req| {
            let mut ra = RaState::new(32);
            ra.prev = 5000;
            let w = ra.on_demand(which, offset, req, false, &Prefix(cached));
            let w = w.expect("the page is missing");
            (w.start, w.pages, w.marker)
        };
        use Readahead::{OnDemandV2, OnDemandV3};
        // Pages 0 to 99 are there: h = 32, but not the whole file before.
        assert_eq!(after(OnDemandV2, 100, 100, 2), (100, 64, Some(132)));
        assert_eq!(after(OnDemandV3, 100, 100, 2), (100, 32, Some(131)));
        // Three pages from the start of the file count twice: 6 + 1.
        assert_eq!(after(OnDemandV2, 3, 3, 1), (3, 16 + 32, Some(19)));
        assert_eq!(after(OnDemandV3, 3, 3, 1), (3, 7, Some(9)));
        assert_eq!(after(OnDemandV3, 3, 3, 3), (3, 3, None), "too little");
        assert_eq!(after(OnDemandV2, 3, 50, 3), (50, 3, None));
    }

    #[test]
    fn random_reads_are_exact_and_leave_the_state_alone() {
        let mut ra = RaState::new(32);
        ra.prev = 7;
        let before = ra;
        let w = ra.on_demand(Readahead::OnDemandV1, 1000, 11, false, &Prefix(0));
        assert_eq!(
            w,
            Some(Window {
                start: 1000,
                pages: 11,
                marker: None
            })
        );
        assert_eq!(ra, before);
    }

    #[test]
    fn two_windows_keep_one_ahead_of_the_reader() {
        let mut ra = RaState::new(32);
        let mut seen = Vec::new();
        for page in 0..64 {
            for w in ra.two_window(page, 1, false).into_iter().flatten() {
                seen.push((page, w.start, w.pages));
            }
        }
        let want = [
            (0, 0, 4),
            (1, 4, 8),
            (4, 12, 16),
            (12, 28, 32),
            (28, 60, 32),
            (60, 92, 32),
        ];
        assert_eq!(seen, want);
        let random = ra.two_window(500, 5, false);
        assert_eq!(
            random,
            [
                Some(Window {
                    start: 500,
                    pages: 5,
                    marker: None
                }),
                None
            ]
        );
    }
}
