// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chunks of the device, and free space in them.
//!
//! The device is handed out in chunks: 1 GiB for data, 256 MiB for tree blocks,
//! which with duplication take the space of two. Space is looked for in
//! clusters: a run of free pages that what comes next is packed into. What is
//! freed stays taken until the commit that frees it is on the disk.
//! Places are pages of the device, from the start of the volume.

use blklab_pagecache::PageBits;
use blklab_types::PAGE_BYTES;
use std::ops::Range;

/// Pages before the first chunk (1 MiB).
const FIRST_PAGE: u64 = (1 << 20) / PAGE_BYTES;
const DATA_CHUNK: u64 = (1 << 30) / PAGE_BYTES;
const METADATA_CHUNK: u64 = (256 << 20) / PAGE_BYTES;
const SYSTEM_CHUNK: u64 = (8 << 20) / PAGE_BYTES;
/// A chunk is at most this part of the device.
const LARGEST_PART: u64 = 10;
/// The smallest chunk (16 MiB).
const SMALLEST_CHUNK: u64 = (16 << 20) / PAGE_BYTES;

/// Pages that are kept free for each (64 KiB; `BTRFS_STRIPE_LEN`).
const SUPER_STRIPE: u64 = 16;

/// What a chunk is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Data,
    Metadata,
}

/// A chunk that was handed out, and what it is for (a block group).
#[derive(Clone, Copy, Debug)]
struct Chunk {
    of: Use,
    start: u64,
    pages: u64,
    /// Where the copy of its first page lies, if there is one.
    copy: Option<u64>,
}

/// Free space of one use (`btrfs_space_info`).
#[derive(Clone, Debug, Default)]
struct Pool {
    /// What is left of the cluster (`last_ptr`, `btrfs_free_cluster`).
    cluster: Range<u64>,
    /// No cluster was found since something was freed.
    scattered: bool,
    /// Pages that are not taken.
    free: u64,
}

/// Space of a volume.
#[derive(Clone, Debug)]
pub(super) struct Space {
    pages: u64,
    /// Pages that belong to no chunk begin here.
    next: u64,
    chunks: Vec<Chunk>,
    taken: PageBits,
    data: Pool,
    metadata: Pool,
    cluster_pages: [u64; 2],
    dup: bool,
    /// Where the superblock and its copies lie.
    supers: &'static [u64],
    /// Freed since the last commit began (`pinned_extents`).
    freed: Vec<Range<u64>>,
}

impl Space {
    /// A volume of so many pages with a first chunk of each use.
    pub(super) fn new(
        pages: u64,
        dup: bool,
        cluster_bytes: [u64; 2],
        supers: &'static [u64],
    ) -> Option<Space> {
        let mut space = Space {
            pages,
            next: FIRST_PAGE,
            chunks: Vec::new(),
            taken: PageBits::default(),
            data: Pool::default(),
            metadata: Pool::default(),
            cluster_pages: cluster_bytes.map(|b| b / PAGE_BYTES),
            dup,
            supers,
            freed: Vec::new(),
        };
        space.next += SYSTEM_CHUNK * if dup { 2 } else { 1 };
        let first = space.add_chunk(Use::Metadata) && space.add_chunk(Use::Data);
        first.then_some(space)
    }

    fn pool(&mut self, of: Use) -> &mut Pool {
        match of {
            Use::Data => &mut self.data,
            Use::Metadata => &mut self.metadata,
        }
    }

    /// Pages of the device that belong to no chunk.
    fn left(&self) -> u64 {
        self.pages.saturating_sub(self.next)
    }

    /// Hands out a chunk more (`do_chunk_alloc`, `btrfs_alloc_chunk`).
    fn add_chunk(&mut self, of: Use) -> bool {
        let copies = if of == Use::Metadata && self.dup {
            2
        } else {
            1
        };
        let size = match of {
            Use::Data => DATA_CHUNK,
            Use::Metadata => METADATA_CHUNK,
        };
        let most = (self.pages / LARGEST_PART).max(SMALLEST_CHUNK);
        let pages = size.min(most).min(self.left() / copies);
        if pages < SMALLEST_CHUNK {
            return false;
        }
        self.chunks.push(Chunk {
            of,
            start: self.next,
            pages,
            copy: (copies == 2).then_some(self.next + pages),
        });
        let supers = self.keep_supers(self.next, pages, copies);
        self.next += pages * copies;
        let pool = self.pool(of);
        pool.free += pages - supers;
        pool.scattered = false;
        true
    }

    /// Nothing is put where the copies of the superblock lie
    /// (`exclude_super_stripes`). Returns the pages of a chunk that this takes.
    fn keep_supers(&mut self, start: u64, pages: u64, copies: u64) -> u64 {
        let mut kept = 0;
        for page in self.supers.iter().copied() {
            for copy in 0..copies {
                let first = start + copy * pages;
                if (first..first + pages).contains(&page) {
                    let at = page - copy * pages;
                    kept += self.taken.set(at..at + SUPER_STRIPE);
                }
            }
        }
        kept
    }

    /// Takes up to `want` pages in a row (`btrfs_reserve_extent`); a tree block
    /// takes all or nothing. None if the volume is full.
    pub(super) fn take(&mut self, of: Use, want: u64) -> Option<Range<u64>> {
        if !self.refill(of, want) {
            return None;
        }
        let pool = self.pool(of);
        let pages = want.min(pool.cluster.end - pool.cluster.start);
        let run = pool.cluster.start..pool.cluster.start + pages;
        pool.cluster.start = run.end;
        pool.free -= pages;
        let new = self.taken.set(run.clone());
        assert_eq!(new, pages, "some of the pages {run:?} are taken twice");
        Some(run)
    }

    /// Sees to it that the cluster has what is wanted (`find_free_extent`): a run
    /// with room for the cluster behind it, else a run of that size, else a new
    /// chunk, else whatever there is.
    fn refill(&mut self, of: Use, want: u64) -> bool {
        let extra = self.cluster_pages[of as usize];
        let from = self.pool(of).cluster.clone();
        if from.end - from.start >= want {
            return true;
        }
        let mut found = None;
        if !self.pool(of).scattered {
            found = self.find(of, from.end, want + extra);
            self.pool(of).scattered = found.is_none();
        }
        if found.is_none() && self.add_chunk(of) {
            let chunk = self.chunks.last().copied();
            found = chunk.and_then(|c| self.find_in(&c, c.start, want));
        }
        let found = found.or_else(|| self.find(of, from.end, want));
        let found = found.or_else(|| {
            let some = (of == Use::Data).then(|| self.find(of, 0, 1));
            some.flatten()
        });
        if let Some(run) = found {
            self.pool(of).cluster = run;
        }
        let pool = self.pool(of);
        let there = pool.cluster.end - pool.cluster.start;
        there >= want || of == Use::Data && there > 0
    }

    /// The first run of so many free pages at or behind a page, else before it.
    fn find(&self, of: Use, from: u64, pages: u64) -> Option<Range<u64>> {
        let chunks = || self.chunks.iter().filter(|c| c.of == of);
        let behind = chunks().find_map(|c| self.find_in(c, from, pages));
        behind.or_else(|| chunks().find_map(|c| self.find_in(c, 0, pages)))
    }

    fn find_in(&self, chunk: &Chunk, from: u64, pages: u64) -> Option<Range<u64>> {
        let end = chunk.start + chunk.pages;
        let mut page = from.max(chunk.start);
        while page < end {
            let first = self.taken.next_clear(page, end);
            let last = self.taken.next_set(first, end).unwrap_or(end);
            if first < end && last - first >= pages {
                return Some(first..last);
            }
            page = last.max(page + 1);
        }
        None
    }

    /// Pages are no longer used (`btrfs_free_extent`); they may be taken again
    /// after the commit.
    pub(super) fn free(&mut self, run: Range<u64>) {
        self.freed.push(run);
    }

    /// A tree block that nobody has seen on the disk is free at once
    /// (`pin_down_bytes`, later `btrfs_free_tree_block`).
    pub(super) fn free_at_once(&mut self, run: Range<u64>) {
        self.release(&run);
    }

    /// What was freed so far, as a commit takes it up.
    pub(super) fn take_freed(&mut self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.freed)
    }

    /// Pages may be taken again (`btrfs_finish_extent_commit`).
    pub(super) fn release(&mut self, run: &Range<u64>) {
        let pages = self.taken.clear(run.clone());
        assert_eq!(
            pages,
            run.end - run.start,
            "some of the pages {run:?} are given back twice"
        );
        let of = self.chunk_of(run.start).map_or(Use::Data, |c| c.of);
        let pool = self.pool(of);
        pool.free += pages;
        pool.scattered = false;
    }

    /// Where the copy of a page lies (`btrfs_map_block`).
    pub(super) fn copy_of(&self, page: u64) -> Option<u64> {
        let chunk = self.chunk_of(page)?;
        Some(chunk.copy? + page - chunk.start)
    }

    fn chunk_of(&self, page: u64) -> Option<&Chunk> {
        let after = self.chunks.partition_point(|c| c.start <= page);
        self.chunks.get(after.checked_sub(1)?)
    }

    /// Pages of a use that could still be taken, with chunks to come, and those
    /// that are taken.
    pub(super) fn room(&self, of: Use) -> (u64, u64) {
        let (pool, copies) = match of {
            Use::Data => (&self.data, 1),
            Use::Metadata => (&self.metadata, if self.dup { 2 } else { 1 }),
        };
        let chunks = self.chunks.iter().filter(|c| c.of == of);
        let all: u64 = chunks.map(|c| c.pages).sum();
        (pool.free + self.left() / copies, all - pool.free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space() -> Space {
        Space::new(4 << 18, true, [2 << 20, 64 << 10], &[16, 16_384]).expect("4 GiB")
    }

    #[test]
    fn chunks_follow_one_another_and_tree_blocks_have_a_copy() {
        let mut s = space();
        let block = s.take(Use::Metadata, 1).expect("room");
        // 1 MiB, two copies of 8 MiB for the system, then 256 MiB twice.
        assert_eq!(block, 256 + 4096..256 + 4096 + 1);
        assert_eq!(s.copy_of(block.start), Some(block.start + 65_536));
        let data = s.take(Use::Data, 10).expect("room");
        assert_eq!(data.start, 256 + 4096 + 2 * 65_536);
        assert_eq!(s.copy_of(data.start), None);
        let next = s.take(Use::Data, 3).expect("room");
        assert_eq!(next.start, data.end, "packed");
    }

    #[test]
    fn what_is_freed_comes_back_after_the_commit() {
        let mut s = space();
        let (free, taken) = s.room(Use::Data);
        assert_eq!(taken, 0);
        let mut runs = Vec::new();
        while let Some(run) = s.take(Use::Data, 5000) {
            runs.push(run);
        }
        let got: u64 = runs.iter().map(|r| r.end - r.start).sum();
        let unusable = free - got;
        assert!(unusable < SMALLEST_CHUNK, "{unusable}");
        let supers = 16_384..16_400;
        assert!(
            runs.iter()
                .all(|r| r.end <= supers.start || r.start >= supers.end)
        );
        s.free(runs[3].clone());
        assert_eq!(s.take(Use::Data, 1), None);
        for run in s.take_freed() {
            s.release(&run);
        }
        assert_eq!(s.take(Use::Data, 5000), Some(runs[3].clone()));
    }
}
