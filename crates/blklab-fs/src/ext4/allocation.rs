// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which blocks a file gets: goals, sizes of requests, and what is set aside
//! (fs/ext4/mballoc.c, fs/ext4/extents.c; 2.6.32, 4.19).
//!
//! Small files share runs of 512 blocks that are set aside for all of them;
//! larger ones get requests rounded to powers of two, of which the rest stays
//! theirs while they grow. One processor, so one pool of shared runs.

use super::Ext4;
use super::inode::Inode;
use super::layout::{FLEX_GROUPS, GROUP_BLOCKS, Geometry};
use super::space::Wanted;
use blklab_pagecache::{Extents, FileId};

/// Files of more blocks do not share (`mb_stream_req`, 64 KiB).
const STREAM_BLOCKS: u64 = 16;
/// Blocks set aside at a time for files that share (`mb_group_prealloc`).
const SHARED_BLOCKS: u32 = 512;
/// The largest request: 8 MiB.
const LARGEST_BLOCKS: u64 = 2048;
/// Processes start in one of so many places of a group (up to 2.6.29).
const COLOURS: u64 = 16;

/// Blocks set aside for one file (`ext4_prealloc_space`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Aside {
    /// The file's page that the first of them is for.
    page: u64,
    block: u64,
    blocks: u64,
}

/// A request for blocks (`ext4_allocation_request`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) page: u64,
    pub(super) pages: u64,
    /// Pages of the file.
    pub(super) size: u64,
    /// Nobody has it open.
    pub(super) closed: bool,
    /// It is a regular file.
    pub(super) data: bool,
    pub(super) pid: u32,
}

/// How a request is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Exactly what is needed.
    Exact,
    /// From the runs of small files.
    Shared,
    /// With room to grow.
    Own,
}

impl Ext4 {
    /// Takes blocks for a request, for its first page and as many of the following
    /// as lie in a row (`ext4_mb_new_blocks`): the first block, and how many. None
    /// if the volume is full.
    pub(super) fn allocate(
        &mut self,
        id: FileId,
        inode: &Inode,
        extents: &Extents,
        r: Request,
    ) -> Option<(u64, u64)> {
        let got = self.try_allocate(id, inode, extents, r);
        let got = got.or_else(|| {
            self.discard_all();
            self.try_allocate(id, inode, extents, r)
        })?;
        assert!(
            got.1 <= self.free_blocks,
            "{} blocks are taken of {} that are free",
            got.1,
            self.free_blocks
        );
        self.free_blocks -= got.1;
        Some(got)
    }

    fn try_allocate(
        &mut self,
        id: FileId,
        inode: &Inode,
        extents: &Extents,
        r: Request,
    ) -> Option<(u64, u64)> {
        if let Some(found) = r.data.then(|| self.use_own(id, r)).flatten() {
            return Some(found);
        }
        let goal = self.goal(inode, extents, r);
        match self.kind(r) {
            Kind::Exact => {
                let at_goal = follows(extents, r.page);
                self.take(goal, r.pages, at_goal, r.data)
            }
            Kind::Shared => self.use_shared(goal, r),
            Kind::Own => self.take_own(id, goal, extents, r),
        }
    }

    /// `ext4_mb_group_or_file`.
    fn kind(&self, r: Request) -> Kind {
        let end = r.page + r.pages;
        let exact = self.options.features.exact_if_closed && r.closed && end == r.size;
        match () {
            () if !r.data || exact => Kind::Exact,
            () if end.max(r.size) > STREAM_BLOCKS => Kind::Own,
            () => Kind::Shared,
        }
    }

    /// Where a block should lie (`ext4_ext_find_goal`).
    fn goal(&self, inode: &Inode, extents: &Extents, r: Request) -> u64 {
        if let Some((page, sector)) = extents.nearest(r.page) {
            let block = self.geometry.block(sector);
            let there = (block + r.page).checked_sub(page).unwrap_or(block);
            return there.min(self.geometry.blocks - 1);
        }
        let mut group = inode.group;
        if self.options.features.spreads_directories {
            group = group / FLEX_GROUPS * FLEX_GROUPS;
            if r.data && group + 1 < self.geometry.groups() {
                group += 1;
            }
            if self.options.delalloc {
                return Geometry::group_start(group);
            }
        }
        let colour = u64::from(r.pid) % COLOURS * (GROUP_BLOCKS / COLOURS);
        Geometry::group_start(group) + colour
    }

    fn take(&mut self, goal: u64, pages: u64, at_goal: bool, data: bool) -> Option<(u64, u64)> {
        let wanted = Wanted {
            goal,
            blocks: u32::try_from(pages.min(GROUP_BLOCKS - 10)).unwrap_or(1),
            at_goal,
            data: data && self.options.features.spreads_directories,
        };
        let (first, blocks) = self.space.take(&self.geometry, wanted)?;
        Some((first, u64::from(blocks)))
    }

    /// From what is set aside for the file (`ext4_mb_use_preallocated`,
    /// `ext4_mb_use_inode_pa`).
    fn use_own(&mut self, id: FileId, r: Request) -> Option<(u64, u64)> {
        let own = self.asides.get_mut(&id)?;
        let i = own
            .iter()
            .position(|a| (a.page..a.page + a.blocks).contains(&r.page))?;
        let aside = &mut own[i];
        let skip = r.page - aside.page;
        let got = (aside.block + skip, r.pages.min(aside.blocks - skip));
        let rest = Aside {
            page: r.page + got.1,
            block: got.0 + got.1,
            blocks: aside.blocks - skip - got.1,
        };
        // What lies before the request stays as well.
        aside.blocks = skip;
        let empty = skip == 0;
        if empty {
            own.remove(i);
        }
        if rest.blocks > 0 {
            own.push(rest);
        }
        if own.is_empty() {
            self.asides.remove(&id);
        }
        Some(got)
    }

    /// A request with room to grow (`ext4_mb_normalize_request`); what is not
    /// needed now is set aside for the file (`ext4_mb_new_inode_pa`).
    fn take_own(
        &mut self,
        id: FileId,
        goal: u64,
        extents: &Extents,
        r: Request,
    ) -> Option<(u64, u64)> {
        let (start, end) = self.round(id, extents, r);
        let at_goal = follows(extents, start);
        let goal = if at_goal {
            goal.saturating_sub(r.page - start)
        } else {
            self.stream_goal
        };
        let wanted = Wanted {
            goal,
            blocks: u32::try_from(end - start).unwrap_or(1),
            at_goal,
            data: self.options.features.spreads_directories,
        };
        let (first, blocks) = self.space.take(&self.geometry, wanted)?;
        let blocks = u64::from(blocks);
        self.stream_goal = first;
        // What was found covers the request's first page, even if it is short.
        let page = if r.page < start + blocks {
            start
        } else {
            r.page
        };
        self.asides.entry(id).or_default().push(Aside {
            page,
            block: first,
            blocks,
        });
        self.use_own(id, r)
    }

    /// The pages that a request is made for (`ext4_mb_normalize_request`): powers
    /// of two up to 1 MiB, then aligned pieces of 2, 4 and 8 MiB; not what has its
    /// place, or is set aside for the file.
    fn round(&self, id: FileId, extents: &Extents, r: Request) -> (u64, u64) {
        let size = (r.page + r.pages).max(r.size);
        let (mut start, mut pages) = match size {
            0..=256 => (0, size.next_power_of_two().max(4)),
            257..=1024 => (r.page / 512 * 512, 512),
            1025..=2048 => (r.page / 1024 * 1024, 1024),
            _ => (r.page / LARGEST_BLOCKS * LARGEST_BLOCKS, LARGEST_BLOCKS),
        };
        if let Some((before, _)) = extents.end_before(r.page)
            && before > start
        {
            pages -= (before - start).min(pages);
            start = before;
        }
        let mut end = (start + pages).max(r.page + 1);
        if let Some(next) = extents.next_place(r.page) {
            end = end.min(next);
        }
        for aside in self.asides.get(&id).into_iter().flatten() {
            if aside.page > r.page {
                end = end.min(aside.page);
            } else {
                start = start.max(aside.page + aside.blocks);
            }
        }
        (start.min(r.page), end)
    }

    /// From a run that small files share: the one nearest to the goal, of those
    /// that have room (`ext4_mb_use_group_pa`); else from a new one
    /// (`ext4_mb_new_group_pa`).
    fn use_shared(&mut self, goal: u64, r: Request) -> Option<(u64, u64)> {
        let fits = |(_, blocks): &&mut (u64, u64)| *blocks >= r.pages;
        let nearest = self
            .shared
            .iter_mut()
            .filter(fits)
            .min_by_key(|(first, _)| first.abs_diff(goal));
        if let Some((first, blocks)) = nearest {
            let got = *first;
            *first += r.pages;
            *blocks -= r.pages;
            self.shared.retain(|(_, blocks)| *blocks > 0);
            return Some((got, r.pages));
        }
        let (first, blocks) = self.take(goal, u64::from(SHARED_BLOCKS), false, r.data)?;
        let got = r.pages.min(blocks);
        if blocks > got {
            self.shared.push((first + got, blocks - got));
        }
        Some((first, got))
    }

    /// Checks that the blocks that no file has are free, set aside, or freed by the
    /// transaction that runs, and that promises are kept.
    pub(super) fn check_space_is_whole(&self) {
        let groups = 0..self.geometry.groups();
        let free: u64 = groups.map(|g| u64::from(self.space.free_in(g))).sum();
        let asides: u64 = self.asides.values().flatten().map(|a| a.blocks).sum();
        let shared: u64 = self.shared.iter().map(|(_, blocks)| blocks).sum();
        let running = self.journal.running.iter().flat_map(|t| &t.freed);
        let freed: u64 = running.map(|run| run.end - run.start).sum();
        debug_assert_eq!(
            free + asides + shared + freed,
            self.free_blocks,
            "blocks that are free ({free}), set aside for a file ({asides}) or for small files \
             ({shared}), or freed ({freed})"
        );
    }

    /// Gives back what is set aside for a file (`ext4_discard_preallocations`).
    pub(super) fn discard_own(&mut self, id: FileId) {
        for aside in self.asides.remove(&id).into_iter().flatten() {
            self.space.give(&self.geometry, aside.block, aside.blocks);
        }
    }

    /// Gives back all that is set aside: blocks are short
    /// (`ext4_mb_discard_preallocations`).
    fn discard_all(&mut self) {
        for (_, own) in std::mem::take(&mut self.asides) {
            for aside in own {
                self.space.give(&self.geometry, aside.block, aside.blocks);
            }
        }
        for (first, blocks) in std::mem::take(&mut self.shared) {
            self.space.give(&self.geometry, first, blocks);
        }
    }
}

/// Whether a page follows one that has its place.
fn follows(extents: &Extents, page: u64) -> bool {
    extents.end_before(page).is_some_and(|(end, _)| end == page)
}

#[cfg(test)]
mod tests {
    use super::super::options::{Ext4Features, Ext4Options};
    use super::super::tests::volume;
    use super::*;
    use blklab_kernel::KernelVersion;
    use blklab_types::PAGE_SECTORS;

    fn request(page: u64, pages: u64, size: u64) -> Request {
        Request {
            page,
            pages,
            size,
            closed: false,
            data: true,
            pid: 4160,
        }
    }

    /// Writes a file piece by piece; returns the blocks of each piece.
    fn write(v: &mut Ext4, id: u32, pieces: &[(u64, u64)], size: u64) -> Vec<(u64, u64)> {
        let inode = Inode::default();
        let mut extents = Extents::default();
        let mut got = Vec::new();
        for (page, pages) in pieces {
            let r = request(*page, *pages, size);
            let (block, n) = v.allocate(FileId(id), &inode, &extents, r).unwrap();
            extents.insert(*page, block * PAGE_SECTORS, n);
            got.push((block, n));
        }
        got
    }

    fn release(release: KernelVersion) -> Ext4 {
        volume(20, Ext4Options::new(Ext4Features::of(release)))
    }

    #[test]
    fn requests_are_rounded() {
        let v = release(KernelVersion::new(4, 19));
        let none = Extents::default();
        let round = |page, pages, size| v.round(FileId(9), &none, request(page, pages, size));
        assert_eq!(round(0, 3, 3), (0, 4));
        assert_eq!(round(16, 1, 17), (0, 32));
        assert_eq!(round(0, 256, 256), (0, 256));
        assert_eq!(round(0, 257, 257), (0, 512));
        assert_eq!(round(600, 1, 601), (512, 1024));
        assert_eq!(round(1100, 10, 1110), (1024, 2048));
        assert_eq!(round(5000, 10, 9000), (4096, 6144));
    }

    #[test]
    fn a_large_file_is_contiguous_in_pieces_of_8_mib() {
        let mut v = release(KernelVersion::new(4, 19));
        let got = write(&mut v, 0, &[(0, 2048), (2048, 2048), (4096, 2048)], 100_000);
        let first = 32768 + 2048;
        assert_eq!(
            got,
            [(first, 2048), (first + 2048, 2048), (first + 4096, 2048)]
        );
    }

    #[test]
    fn small_files_share_a_run_of_512_blocks() {
        let mut v = release(KernelVersion::new(4, 19));
        let a = write(&mut v, 0, &[(0, 3)], 3)[0];
        let b = write(&mut v, 1, &[(0, 16)], 16)[0];
        assert_eq!(a, (32768 + 1536, 3));
        assert_eq!(b, (a.0 + 3, 16));
        // One block more, and a file is on its own.
        let c = write(&mut v, 2, &[(0, 17)], 17)[0];
        assert_eq!(v.asides[&FileId(2)][0].blocks, 32 - 17);
        assert_eq!(c.0 % 32, 0);
        v.discard_own(FileId(2));
        assert!(v.asides.is_empty());
    }

    #[test]
    fn closed_files_get_what_they_need_from_2_6_32_on() {
        let closed = Request {
            closed: true,
            ..request(0, 3, 3)
        };
        assert_eq!(release(KernelVersion::v2_6(31)).kind(closed), Kind::Shared);
        assert_eq!(release(KernelVersion::v2_6(32)).kind(closed), Kind::Exact);
        let part = Request { size: 5, ..closed };
        assert_eq!(release(KernelVersion::v2_6(32)).kind(part), Kind::Shared);
    }
}
