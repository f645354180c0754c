// SPDX-License-Identifier: MIT OR Apache-2.0
//! Read-ahead windows that end where folios do (mm/readahead.c of 7.3,
//! `page_cache_sync_ra`, `page_cache_async_ra`).
//!
//! A window that a missing page starts has folios of one page. Each that a marker starts
//! has four times as large ones as the last, and ends at a multiple of that size, or of
//! the largest power of two that the largest window is a multiple of. What was read then
//! is what counts: where a file has no large folios the size is forgotten each time.

use crate::folio;
use crate::readahead::{Cached, RaState, Window};

impl RaState {
    /// The decision for a missing page (`marker` false) or a marked one, `req` pages before
    /// the end of the request; `large`: whether the file has large folios.
    pub(crate) fn aligned(
        &mut self,
        offset: u64,
        req: u64,
        marker: bool,
        large: bool,
        cached: &impl Cached,
    ) -> Option<Window> {
        if marker {
            self.follow(offset, req, cached)?;
            self.end_with_folios();
        } else {
            let is_new = offset == 0 || req > self.max || offset.wrapping_sub(self.prev) <= 1;
            if is_new {
                self.start_at(offset, req);
            } else if !self.resume(offset, req, cached) {
                return Some(Window {
                    start: offset,
                    pages: req,
                    marker: None,
                });
            }
            self.folio_order = 0;
        }
        self.folio_order = if large {
            folio::order_within(self.folio_order, self.size)
        } else {
            0
        };
        Some(Window {
            start: self.start,
            pages: self.size,
            marker: Some(self.start + self.size - self.async_size),
        })
    }

    /// The window behind the one whose marker was met, or behind what is cached.
    fn follow(&mut self, offset: u64, req: u64, cached: &impl Cached) -> Option<()> {
        if offset == (self.start + self.size).wrapping_sub(self.async_size) {
            self.start += self.size;
            self.size = self.size.max(self.next_size(self.size));
            return Some(());
        }
        let hole = cached.next_hole(offset + 1, self.max + 1)?;
        if hole - offset > self.max {
            return None;
        }
        self.start = hole;
        self.size = self.next_size(hole - offset + req);
        Some(())
    }

    /// Ends it with a folio, if one ends in it.
    fn end_with_folios(&mut self) {
        self.folio_order += 2;
        let order = self.folio_order.min(self.max.trailing_zeros());
        let end = self.start + self.size;
        let aligned = end >> order << order;
        if aligned > self.start {
            self.size = aligned - self.start;
        }
        self.async_size = self.size;
    }

    /// A first or oversize window.
    fn start_at(&mut self, offset: u64, req: u64) {
        self.start = offset;
        self.size = self.init_size(req);
        self.async_size = if self.size > req {
            self.size - req
        } else {
            self.size / 2
        };
    }

    /// A window behind what an earlier reader left, if that is longer than the request.
    fn resume(&mut self, offset: u64, req: u64, cached: &impl Cached) -> bool {
        let mut history = cached.run_before(offset, self.max);
        if history <= req {
            return false;
        }
        if history >= offset {
            history *= 2;
        }
        self.start = offset;
        self.size = (history + req).min(self.max);
        self.async_size = 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readahead::Prefix;

    /// The first windows of a reader of single pages.
    fn windows(max: u64, large: bool, n: usize) -> Vec<(u64, u64)> {
        let mut ra = RaState::new(max);
        let mut next = ra.aligned(0, 1, false, large, &Prefix(0));
        let mut seen = Vec::new();
        while let Some(w) = next.filter(|_| seen.len() < n) {
            seen.push((w.start, w.pages));
            let page = w.marker.expect("the next one has a beginning");
            next = ra.aligned(page, 1, true, large, &Prefix(w.start + w.pages));
        }
        seen
    }

    /// Recorded on 7.3.4, `bufr2-d31-mqd`: windows of 5 MiB at most.
    #[test]
    fn windows_of_a_measured_reader() {
        let measured = [
            (0, 4),
            (4, 16),
            (20, 60),
            (80, 240),
            (320, 448),
            (768, 768),
            (1536, 1280),
        ];
        assert_eq!(windows(1280, true, 7), measured);
    }

    #[test]
    fn without_large_folios_windows_end_at_multiples_of_four_pages() {
        let all = windows(32, false, 5);
        assert_eq!(all, [(0, 4), (4, 8), (12, 16), (28, 32), (60, 32)]);
    }

    #[test]
    fn random_reads_are_exact_and_leave_the_state_alone() {
        let mut ra = RaState::new(32);
        ra.prev = 7;
        let before = ra;
        let w = ra.aligned(1000, 11, false, true, &Prefix(0));
        let exact = Window {
            start: 1000,
            pages: 11,
            marker: None,
        };
        assert_eq!((w, ra), (Some(exact), before));
    }
}
