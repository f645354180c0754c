// SPDX-License-Identifier: MIT OR Apache-2.0
//! Large folios: pages of a read-ahead window that lie side by side in memory
//! (mm/readahead.c, 5.18, `page_cache_ra_order`).
//!
//! A folio has a power of two of pages and begins at a multiple of its size in
//! the file. A window that a missing page started gets folios of 16 KiB; each
//! further one, four times as large ones, up to 2 MiB. At its ends, and where it
//! is smaller, it gets smaller ones. Here that counts for the segments of bios
//! alone: pages are locked, marked and dropped one by one.

use blklab_types::PAGE_BYTES;
use std::ops::Range;

/// Order of the folios of a first window: 16 KiB.
pub(crate) const FIRST_ORDER: u32 = 2;

/// The largest order: 2 MiB.
const MAX_ORDER: u32 = 9;

/// Pages of the smallest window that gets large folios.
const MIN_WINDOW: u64 = 4;

/// Pages that a segment may have: 64 KiB.
const SEGMENT_PAGES: u64 = (64 << 10) / PAGE_BYTES;

/// Order of the folios of the window behind one of `order`.
pub(crate) fn next_order(order: u32) -> u32 {
    (order + 2).min(MAX_ORDER)
}

/// The order of the folios that a window of so many pages gets where it may have that one.
pub(crate) fn order_within(order: u32, pages: u64) -> u32 {
    order.min(MAX_ORDER).min(pages.max(1).ilog2())
}

/// The folios that a window was filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Folios {
    order: u32,
    end: u64,
}

impl Folios {
    /// Of the pages of a window, in folios of that order at most.
    pub(crate) fn of_window(window: &Range<u64>, order: u32) -> Folios {
        let pages = window.end - window.start;
        Folios {
            order: if pages < MIN_WINDOW {
                0
            } else {
                order.min(pages.ilog2())
            },
            end: window.end,
        }
    }

    /// Pages of so many of the largest.
    pub(crate) fn pages_of(&self, folios: u64) -> u64 {
        folios << self.order
    }

    /// Segments of a bio of these pages.
    pub(crate) fn segments(&self, run: &Range<u64>) -> u16 {
        let (mut page, mut segments) = (run.start, 0);
        while page < run.end {
            let pages = self.size_at(page).min(run.end - page);
            segments += pages.div_ceil(SEGMENT_PAGES);
            page += pages;
        }
        u16::try_from(segments).unwrap_or(u16::MAX)
    }

    /// Pages of the folio that begins at a page. There are none of two.
    fn size_at(&self, page: u64) -> u64 {
        let mut order = self.order.min(page.trailing_zeros());
        while order == 1 || order > 0 && page + (1 << order) > self.end {
            order -= 1;
        }
        1 << order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(window: Range<u64>, order: u32) -> Vec<u64> {
        let folios = Folios::of_window(&window, order);
        let mut page = window.start;
        let mut sizes = Vec::new();
        while page < window.end {
            sizes.push(folios.size_at(page));
            page += folios.size_at(page);
        }
        sizes
    }

    #[test]
    fn folios_are_aligned_and_end_with_the_window() {
        assert_eq!(sizes(0..16, FIRST_ORDER), [4; 4]);
        assert_eq!(sizes(16..48, 4), [16, 16]);
        // 3 is odd; 4 is a multiple of 4, 8 of 8; 1 and 2 pages are left.
        assert_eq!(sizes(3..19, 3), [1, 4, 8, 1, 1, 1]);
        assert_eq!(sizes(0..3, FIRST_ORDER), [1; 3]);
        assert_eq!(sizes(0..6, MAX_ORDER), [4, 1, 1]);
    }

    #[test]
    fn orders_grow_by_two_up_to_two_mib() {
        let orders = std::iter::successors(Some(FIRST_ORDER), |o| Some(next_order(*o)));
        assert_eq!(orders.take(6).collect::<Vec<_>>(), [2, 4, 6, 8, 9, 9]);
    }

    #[test]
    fn a_segment_has_64_kib_at_most() {
        let window = 0..512;
        let segments = |order, run| Folios::of_window(&window, order).segments(&run);
        assert_eq!(segments(0, 0..256), 256);
        assert_eq!(segments(2, 0..256), 64);
        assert_eq!(segments(4, 0..256), 16);
        assert_eq!(segments(9, 0..256), 16);
        assert_eq!(segments(9, 256..512), 16);
        assert_eq!(segments(2, 4..10), 2);
    }
}
