// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the pages of files lie on the disk. Sectors are those of the whole disk.

use blklab_types::PAGE_SECTORS;
use std::ops::Range;

/// How space is handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// First sector of the filesystem's data.
    pub start_sector: u64,
    /// The sector after the last one.
    pub end_sector: u64,
    /// Longest contiguous piece of a file, in pages (128 MiB block groups:
    /// 32768); `u64::MAX` for no limit.
    pub chunk_pages: u64,
    /// Sectors left free after each full chunk.
    pub gap_sectors: u64,
    /// Pages reserved at a time for a file that grows, so that files growing
    /// side by side do not alternate page by page.
    pub growth_pages: u64,
}

impl Layout {
    /// The sectors of the volume.
    pub fn sectors(&self) -> Range<u64> {
        self.start_sector..self.end_sector
    }
}

impl Default for Layout {
    /// One partition from sector 2048 on, files contiguous, growth by 8 MiB.
    fn default() -> Layout {
        Layout {
            start_sector: 2048,
            end_sector: u64::MAX / 2,
            chunk_pages: u64::MAX,
            gap_sectors: 0,
            growth_pages: 2048,
        }
    }
}

/// A contiguous piece of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// First page of the file.
    pub page: u64,
    /// Sector of that page.
    pub sector: u64,
    /// Length in pages.
    pub pages: u64,
}

/// The pieces of one file in ascending order.
#[derive(Clone, Debug, Default)]
pub struct Extents {
    runs: Vec<Extent>,
}

impl Extents {
    /// Number of pages that have a place.
    pub fn pages(&self) -> u64 {
        self.runs.last().map_or(0, |e| e.page + e.pages)
    }

    /// The pieces.
    pub fn runs(&self) -> &[Extent] {
        &self.runs
    }

    /// Sector of `page`, and how many pages follow contiguously, itself
    /// included; none beyond the end of the file.
    pub fn map(&self, page: u64) -> Option<(u64, u64)> {
        let after = self.runs.partition_point(|e| e.page <= page);
        let e = self.runs.get(after.checked_sub(1)?)?;
        let skip = page - e.page;
        (skip < e.pages).then(|| (e.sector + skip * PAGE_SECTORS, e.pages - skip))
    }

    /// One piece at a given place, outside of what the layout hands out: a
    /// disk opened as a file.
    pub fn raw(sector: u64, pages: u64) -> Extents {
        let mut extents = Extents::default();
        extents.append(sector, pages);
        extents
    }

    /// Takes the places of a run of pages away; `gone` gets them.
    pub fn punch(&mut self, run: Range<u64>, mut gone: impl FnMut(Extent)) {
        let first = self.runs.partition_point(|e| e.page + e.pages <= run.start);
        let last = self.runs.partition_point(|e| e.page < run.end);
        if first >= last {
            return;
        }
        let (mut head, mut tail) = (None, None);
        for e in &self.runs[first..last] {
            let (from, to) = (e.page.max(run.start), (e.page + e.pages).min(run.end));
            let part = |a: u64, b: u64| Extent {
                page: a,
                sector: e.sector + (a - e.page) * PAGE_SECTORS,
                pages: b - a,
            };
            head = head.or((e.page < from).then(|| part(e.page, from)));
            tail = (to < e.page + e.pages).then(|| part(to, e.page + e.pages));
            gone(part(from, to));
        }
        self.runs.splice(first..last, head.into_iter().chain(tail));
    }

    /// Puts a run of pages to another place; `gone` gets the places that they
    /// had.
    pub fn remap(&mut self, page: u64, sector: u64, pages: u64, gone: impl FnMut(Extent)) {
        self.punch(page..page + pages, gone);
        self.insert(page, sector, pages);
    }

    /// Takes the pages from one on away.
    pub fn cut(&mut self, pages: u64) {
        while let Some(e) = self.runs.last_mut()
            && e.page + e.pages > pages
        {
            if e.page < pages {
                e.pages = pages - e.page;
            } else {
                self.runs.pop();
            }
        }
    }

    /// Whether `page` has a place, and how many pages from it on, up to `end`,
    /// have one, in one piece, or have none.
    pub fn piece(&self, page: u64, end: u64) -> (bool, u64) {
        if let Some((_, pages)) = self.map(page) {
            return (true, pages.min(end - page));
        }
        let after = self.runs.partition_point(|e| e.page <= page);
        let next = self.runs.get(after).map_or(end, |e| e.page.min(end));
        (false, next - page)
    }

    /// The piece before `page`: its sector, and its pages that lie before.
    pub fn before(&self, page: u64) -> Option<(u64, u64)> {
        let after = self.runs.partition_point(|e| e.page < page);
        let e = self.runs.get(after.checked_sub(1)?)?;
        Some((e.sector, e.pages.min(page - e.page)))
    }

    /// The first page before `end` without a place.
    pub fn next_hole(&self, end: u64) -> Option<u64> {
        let mut page = 0;
        for e in &self.runs {
            if e.page > page {
                break;
            }
            page = e.page + e.pages;
        }
        (page < end).then_some(page)
    }

    /// Pages of a hole get their place.
    pub fn insert(&mut self, page: u64, sector: u64, pages: u64) {
        let mut at = self.runs.partition_point(|e| e.page < page);
        let new = Extent {
            page,
            sector,
            pages,
        };
        let joins = |a: &Extent, b: &Extent| {
            a.page + a.pages == b.page && a.sector + a.pages * PAGE_SECTORS == b.sector
        };
        if at > 0 && joins(&self.runs[at - 1], &new) {
            at -= 1;
            self.runs[at].pages += pages;
        } else {
            self.runs.insert(at, new);
        }
        if at + 1 < self.runs.len() && joins(&self.runs[at], &self.runs[at + 1]) {
            self.runs[at].pages += self.runs[at + 1].pages;
            self.runs.remove(at + 1);
        }
    }

    /// Where the pieces that begin before `page` end: page and sector behind
    /// the last of them.
    pub fn end_before(&self, page: u64) -> Option<(u64, u64)> {
        let after = self.runs.partition_point(|e| e.page < page);
        let e = self.runs.get(after.checked_sub(1)?)?;
        Some((e.page + e.pages, e.sector + e.pages * PAGE_SECTORS))
    }

    /// The piece that begins last before `page`, or the first one: its page and
    /// its sector.
    pub fn nearest(&self, page: u64) -> Option<(u64, u64)> {
        let e = self.runs.get(self.index_of(page))?;
        Some((e.page, e.sector))
    }

    /// The number of the piece that a page lies in, or would.
    pub fn index_of(&self, page: u64) -> usize {
        let after = self.runs.partition_point(|e| e.page <= page);
        after.saturating_sub(1)
    }

    /// The first page from `page` on that has a place.
    pub fn next_place(&self, page: u64) -> Option<u64> {
        let after = self.runs.partition_point(|e| e.page + e.pages <= page);
        self.runs.get(after).map(|e| e.page.max(page))
    }

    /// Pages at the end of the file.
    pub fn append(&mut self, sector: u64, pages: u64) {
        let page = self.pages();
        match self.runs.last_mut() {
            Some(e) if e.sector + e.pages * PAGE_SECTORS == sector => e.pages += pages,
            _ => {
                // Most files are one piece.
                if self.runs.is_empty() {
                    self.runs.reserve_exact(1);
                }
                self.runs.push(Extent {
                    page,
                    sector,
                    pages,
                });
            }
        }
    }
}

/// A contiguous run of pages of a file, on the disk and in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRun {
    /// The first page.
    pub start: u64,
    /// How many.
    pub pages: u64,
    /// The sector of the first.
    pub sector: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_found_around_a_hole() {
        let mut a = Extents::default();
        a.insert(10, 800, 5);
        a.insert(0, 80, 2);
        a.insert(3, 104, 1);
        assert_eq!(a.map(2), None);
        assert_eq!((a.next_place(2), a.next_place(11)), (Some(3), Some(11)));
        assert_eq!((a.end_before(10), a.end_before(0)), (Some((4, 112)), None));
        assert_eq!(
            (a.nearest(7), a.nearest(12)),
            (Some((3, 104)), Some((10, 800)))
        );
        a.insert(2, 96, 1);
        assert_eq!((a.runs().len(), a.index_of(3), a.index_of(12)), (2, 0, 1));
    }

    #[test]
    fn pages_move_elsewhere_and_leave_their_places_behind() {
        let mut e = Extents::raw(800, 10);
        let mut gone = Vec::new();
        e.remap(3, 1600, 4, |x| gone.push((x.page, x.sector, x.pages)));
        assert_eq!(gone, [(3, 824, 4)]);
        assert_eq!(e.map(2), Some((816, 1)));
        assert_eq!(e.map(4), Some((1608, 3)));
        assert_eq!(e.map(7), Some((856, 3)));
        e.remap(7, 1632, 1, |_| {});
        assert_eq!(e.runs().len(), 3, "it continues the piece before");
        gone.clear();
        e.punch(1..9, |x| gone.push((x.page, x.sector, x.pages)));
        assert_eq!(gone, [(1, 808, 2), (3, 1600, 5), (8, 864, 1)]);
        assert_eq!(
            (e.map(0), e.map(1), e.map(9)),
            (Some((800, 1)), None, Some((872, 1)))
        );
        e.punch(0..u64::MAX, |_| {});
        assert_eq!(e.pages(), 0);
    }

    #[test]
    fn holes_are_filled_in_any_order() {
        let mut e = Extents::default();
        e.insert(10, 800, 5);
        e.insert(2, 160, 3);
        assert_eq!(e.next_hole(20), Some(0));
        assert_eq!(e.piece(5, 20), (false, 5));
        assert_eq!(e.piece(11, 13), (true, 2));
        assert_eq!((e.map(7), e.map(12)), (None, Some((816, 3))));
        assert_eq!(e.before(10), Some((160, 3)));
        e.insert(5, 760, 5);
        assert_eq!(e.runs().len(), 2, "joined with what follows");
        e.insert(0, 144, 2);
        assert_eq!((e.runs().len(), e.next_hole(15)), (2, None));
        assert_eq!(e.next_hole(16), Some(15));
    }
}
