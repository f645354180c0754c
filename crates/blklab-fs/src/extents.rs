// SPDX-License-Identifier: MIT OR Apache-2.0
//! The filesystem `extents`: space in ascending order, and no metadata.
//!
//! Space is handed out in ascending order, each
//! file contiguous, or in chunks with a gap after each, the way block groups
//! interrupt a large file. Mapping a page never reads
//! the disk, files have no holes, and nothing is ever freed.

use crate::kind::{Kind, switch};
use crate::mount::{PerFile, Shared};
use blklab_pagecache::{
    Config, Extents, FileId, FsError, FsTraits, Host, Layout, Mountable, Ops, PageCache, State,
};
use blklab_types::{PAGE_BYTES, PAGE_SECTORS};

/// The option by which files are block devices.
pub const PARTS: &str = "parts";

/// `extents`.
pub(crate) const EXTENTS: Kind<()> = Kind {
    name: "extents",
    summary: "space in ascending order: no metadata, no journal, no access times",
    options: &[switch(
        PARTS,
        "0",
        "1: each file is a part of the disk and a block device of its own, as on the target kernel",
    )],
    choose: |_| (),
    ..Kind::PLAIN
};

/// The filesystem.
pub(crate) type ExtentLayout = Shared<Allocator>;

impl ExtentLayout {
    /// Makes sure that the file has a place for its bytes up to `end`.
    fn ensure<H: Host>(&self, cache: &PageCache<H>, id: FileId, end: u64) -> Result<(), FsError> {
        let room = self.on(cache).with(|s| {
            let file = &mut s.state.files[id.idx()];
            let pages = end.div_ceil(PAGE_BYTES);
            s.volume.ensure(id, &mut file.extents, pages, file.grows)
        });
        room.then_some(()).ok_or(FsError::NoSpace)
    }
}

/// Hands out space.
#[derive(Clone, Debug)]
pub struct Allocator {
    layout: Layout,
    next_sector: u64,
    /// What is set aside behind the last piece of a file: the sector, pages.
    reserved: PerFile<(u64, u64)>,
}

impl Allocator {
    fn new(layout: Layout) -> Allocator {
        Allocator {
            layout,
            next_sector: layout.start_sector,
            reserved: PerFile::default(),
        }
    }

    /// Gives a file a place for its first `pages` pages. A file of known size
    /// takes what it needs; one that grows takes a reservation. Returns
    /// whether the space was there.
    #[must_use]
    fn ensure(&mut self, id: FileId, file: &mut Extents, pages: u64, grows: bool) -> bool {
        let (mut sector, mut reserved) = self.reserved[id];
        let missing = pages.saturating_sub(file.pages());
        let left = self.layout.end_sector.saturating_sub(self.next_sector) / PAGE_SECTORS;
        if missing > reserved.saturating_add(left) {
            return false;
        }
        while file.pages() < pages {
            if reserved == 0 {
                let want = pages - file.pages();
                let want = if grows {
                    want.max(self.layout.growth_pages)
                } else {
                    want
                };
                (sector, reserved) = self.take(want).expect("there are as many left");
            }
            let take = reserved.min(pages - file.pages());
            file.append(sector, take);
            sector += take * PAGE_SECTORS;
            reserved -= take;
        }
        self.reserved[id] = (sector, reserved);
        true
    }

    /// One contiguous piece of at most `want` pages.
    fn take(&mut self, want: u64) -> Option<(u64, u64)> {
        let left = self.layout.end_sector.saturating_sub(self.next_sector) / PAGE_SECTORS;
        let pages = want.min(self.layout.chunk_pages).min(left);
        let sector = self.next_sector;
        self.next_sector += pages * PAGE_SECTORS;
        if pages == self.layout.chunk_pages {
            self.next_sector = self.next_sector.saturating_add(self.layout.gap_sectors);
        }
        (pages > 0).then_some((sector, pages))
    }
}

impl Mountable for ExtentLayout {
    type Options = ();

    fn traits(_options: &()) -> FsTraits {
        FsTraits {
            plain_direct_io: true,
            overwrites_with_fua: true,
            flushes_on_fsync: true,
            large_folios: true,
            cgroup_writeback: true,
            sets_space_aside: true,
            ..FsTraits::GENERIC
        }
    }

    fn mount(_options: (), config: &Config, _state: &mut State) -> Result<ExtentLayout, String> {
        Ok(Shared::new(Allocator::new(config.layout)))
    }
}

impl<H: Host> Ops<H> for ExtentLayout {
    fn lay_out(&self, state: &mut State, id: FileId, pages: u64) -> bool {
        self.with(state, |s| {
            let extents = &mut s.state.files[id.idx()].extents;
            s.volume.ensure(id, extents, pages, false)
        })
    }

    async fn remove_inode(&self, _cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
        self.volume_mut().reserved.forget(id);
        Ok(())
    }

    async fn begin_write(&self, cache: &PageCache<H>, id: FileId, end: u64) -> Result<(), FsError> {
        self.ensure(cache, id, end)
    }

    async fn place_direct(
        &self,
        cache: &PageCache<H>,
        id: FileId,
        end: u64,
    ) -> Result<(), FsError> {
        self.ensure(cache, id, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_lie_one_after_another_in_chunks() {
        let mut space = Allocator::new(Layout {
            start_sector: 80,
            end_sector: 80 + 100 * 8,
            chunk_pages: 10,
            gap_sectors: 8,
            growth_pages: 4,
        });
        let mut a = Extents::default();
        assert!(space.ensure(FileId(0), &mut a, 25, false));
        let want = [(0, 80, 10), (10, 168, 10), (20, 256, 5)];
        let got: Vec<_> = a
            .runs()
            .iter()
            .map(|e| (e.page, e.sector, e.pages))
            .collect();
        assert_eq!(got, want);
        assert_eq!(a.map(12), Some((184, 8)));
        assert_eq!(a.map(25), None);

        let (mut b, mut c) = (Extents::default(), Extents::default());
        assert!(space.ensure(FileId(1), &mut b, 1, true));
        assert!(space.ensure(FileId(2), &mut c, 1, true));
        assert!(space.ensure(FileId(1), &mut b, 5, true));
        assert_eq!(b.runs().len(), 2, "four pages, then behind the other file");
        assert!(
            !space.ensure(FileId(1), &mut b, 1000, true),
            "the disk is full"
        );
    }
}
