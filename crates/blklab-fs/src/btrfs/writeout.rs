// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writing out: dirty ranges of files get a place, dirty tree blocks are taken
//! in ascending order; both go to the workers (fs/btrfs/inode.c,
//! `cow_file_range`, `btrfs_finish_ordered_io`; disk-io.c, `btree_writepages`).

use super::items::{self, Change, Of, What, of_file};
use super::part;
use super::progress::Ordered;
use super::space::Use;
use super::volume::Btrfs;
use crate::mount::{Mount, View};
use blklab_pagecache::{FileId, Host, WriteControl};
use blklab_types::{BioFlags, PAGE_BYTES, TaskId};
use std::ops::Range;

/// What comes next in a file.
enum Next {
    Nothing,
    /// The page is on its way, and dirty again.
    InFlight(u64),
    /// The whole file goes into its leaf.
    Inline,
    /// Pages that have a place now, and the number of their extent.
    Placed(Range<u64>, u64),
    /// There is no room for these.
    Lost(Range<u64>),
}

impl Btrfs {
    /// The items of a new extent (`insert_reserved_file_extent`,
    /// `btrfs_csum_file_blocks`, `btrfs_alloc_reserved_file_extent`).
    pub(super) fn extent_items(
        &mut self,
        id: FileId,
        page: u64,
        place: &Range<u64>,
        changes: &mut Vec<Change>,
    ) {
        let object = self.object(id);
        let pages = place.end - place.start;
        changes.push(of_file(
            items::extent(object, page),
            What::Put(items::EXTENT_BYTES),
        ));
        let per_item = items::checksums_per_item(self.block_bytes());
        let mut at = 0;
        while at < pages {
            let covered = per_item.min(pages - at);
            let (of, key) = if self.options.checksum_tree {
                (Of::Checksums, place.start + at)
            } else {
                (Of::Files, items::checksum(object, page + at))
            };
            let what = What::Put(items::checksum_bytes(covered));
            changes.push(Change { of, key, what });
            at += covered;
        }
        changes.push(of_file(items::inode(object), What::Touch));
        self.pool.references.push((place.start, true));
    }
}

impl View<'_, Btrfs> {
    /// Finds the next dirty pages of a file and gives them a place
    /// (`run_delalloc_range`, `cow_file_range`, `btrfs_add_ordered_extent`).
    fn btrfs_next(&mut self, id: FileId, range: &Range<u64>, integrity: bool) -> Next {
        let file = &self.files[id.idx()];
        let mut from = range.start;
        let run = loop {
            let Some(first) = file.dirty.next_set(from, range.end) else {
                return Next::Nothing;
            };
            if !file.writeback.test(first) {
                let end = file.dirty.next_clear(first, range.end);
                break first..file.writeback.next_set(first, end).unwrap_or(end);
            }
            if integrity {
                return Next::InFlight(first);
            }
            from = file.writeback.next_clear(first, range.end);
        };
        let small = file.size_bytes <= u64::from(self.volume.options.max_inline_bytes);
        if small && run.start == 0 && self.files[id.idx()].size_bytes > 0 {
            return Next::Inline;
        }
        let want = (run.end - run.start).min(items::MOST_EXTENT_PAGES);
        let b = &mut *self.volume;
        let Some(place) = b.pool.space.take(Use::Data, want) else {
            return Next::Lost(run);
        };
        let (pages, sector) = (place.end - place.start, b.sector(place.start));
        let placed = part(&run, run.start, pages);
        let mut gone = Vec::new();
        let b = &*self.volume;
        let extents = &mut self.state.files[id.idx()].extents;
        extents.remap(run.start, sector, pages, |e| {
            let first = b.page(e.sector);
            gone.push(first..first + e.pages);
        });
        self.start_writeback(id, placed.clone());
        let out = &mut self.volume.out;
        let number = out.next_ordered;
        out.next_ordered += 1;
        out.ordered.insert(
            number,
            Ordered {
                file: id,
                page: run.start,
                place,
                gone,
                left: pages,
            },
        );
        Next::Placed(placed, number)
    }

    /// Pages of a file or tree blocks have arrived
    /// (`btrfs_dec_test_ordered_pending`).
    pub(crate) fn btrfs_arrived(&mut self, ordered: u64, pages: u64, wake: &mut Vec<TaskId>) {
        let out = &mut self.volume.out;
        let extent = out.ordered.get_mut(&ordered);
        let extent = extent.expect("an extent lasts until its last page arrives");
        assert!(pages <= extent.left, "a page arrives once");
        extent.left -= pages;
        if extent.left == 0 {
            out.arrived.push_back(ordered);
            wake.extend(out.idle_finisher.take());
        }
    }
}

impl<H: Host> Mount<'_, H, Btrfs> {
    // Data -------------------------------------------------------------------

    /// Writes dirty pages of a file (`extent_writepages`).
    pub(super) async fn btrfs_write_data(&self, id: FileId, control: &mut WriteControl) {
        if control.nr_to_write <= 0 {
            return;
        }
        if control.nonblocking && self.host.write_congested() {
            control.congested = true;
            return;
        }
        let mut range = control.range.clone().unwrap_or(0..u64::MAX);
        let flags = self.write_flags(id, control);
        while control.nr_to_write > 0 || control.integrity {
            match self.with(|s| s.btrfs_next(id, &range, control.integrity)) {
                Next::Nothing => return,
                Next::InFlight(page) => self.wait_writeback(id, page).await,
                Next::Inline => {
                    control.nr_to_write -= 1;
                    self.btrfs_write_inline(id).await;
                }
                Next::Placed(run, ordered) => {
                    control.nr_to_write -= (run.end - run.start) as i64;
                    range.start = run.end;
                    self.btrfs_queue(id, run, flags, Some(ordered)).await;
                }
                Next::Lost(run) => {
                    range.start = run.end;
                    self.with(|s| run.for_each(|page| s.lose_page(id, page)));
                }
            }
        }
    }

    /// Puts a small file into its leaf (`cow_file_range_inline`).
    async fn btrfs_write_inline(&self, id: FileId) {
        self.btrfs_begin().await;
        // While this waited for the transaction another task may have done it, or be at it:
        // in the kernel the page's lock keeps them apart.
        let is_due = |s: &mut View<'_, Btrfs>| {
            let file = s.file(id);
            file.dirty.test(0) && !file.writeback.test(0)
        };
        if !self.with(is_due) {
            return self.btrfs_leave();
        }
        let (changes, gone) = self.with(|s| {
            let size = s.file(id).size_bytes;
            let mut gone = Vec::new();
            let b = &*s.volume;
            s.state.files[id.idx()].extents.punch(0..1, |e| {
                let first = b.page(e.sector);
                gone.push(first..first + e.pages);
            });
            let object = s.volume.object(id);
            let inline = What::Put(items::inline_bytes(size));
            let changes = [
                of_file(items::extent(object, 0), inline),
                of_file(items::inode(object), What::Touch),
            ];
            s.start_writeback(id, 0..1);
            (changes, gone)
        });
        self.btrfs_change(&changes).await;
        self.with(|s| s.btrfs_free_data(&gone));
        self.btrfs_mark_changed(&[id]);
        self.waking(|s, wake| s.end_writeback(id, &(0..1), false, wake));
        self.btrfs_leave();
    }

    /// btrfs-endio-wri: enters data that have arrived into the trees.
    pub(super) async fn btrfs_finisher(&self) {
        let me = self.host.current();
        loop {
            let next = self.with(|s| {
                let out = &mut s.volume.out;
                let number = out.arrived.pop_front();
                if number.is_none() {
                    out.idle_finisher = Some(me);
                }
                number.and_then(|n| Some((n, out.ordered.get(&n)?.clone())))
            });
            match next {
                Some((number, extent)) => self.btrfs_finish(number, extent).await,
                None => self.host.suspend().await,
            }
        }
    }

    /// `btrfs_finish_ordered_io`.
    async fn btrfs_finish(&self, number: u64, extent: Ordered) {
        self.btrfs_begin().await;
        let mut changes = Vec::new();
        let id = extent.file;
        self.with(|s| {
            s.volume
                .extent_items(id, extent.page, &extent.place, &mut changes);
        });
        self.btrfs_change(&changes).await;
        self.with(|s| s.btrfs_free_data(&extent.gone));
        self.btrfs_mark_changed(&[id]);
        self.waking(|s, wake| {
            let out = &mut s.volume.out;
            out.ordered.remove(&number);
            wake.append(&mut out.ordered_waiters);
        });
        self.btrfs_leave();
    }

    /// Waits until the data of a file, or all, that have a place now are in the
    /// trees (`btrfs_wait_ordered_range`, `btrfs_wait_ordered_extents`).
    pub(super) async fn btrfs_wait_ordered(&self, file: Option<FileId>) {
        let me = self.host.current();
        let end = self.with(|s| s.volume.out.next_ordered);
        let waits = |s: &mut View<'_, Btrfs>| {
            let out = &mut s.volume.out;
            let mut waiting = out.ordered.range(..end).map(|(_, o)| o);
            let waits = waiting.any(|o| file.is_none_or(|f| f == o.file));
            if waits {
                out.ordered_waiters.push(me);
            }
            waits
        };
        while self.with(waits) {
            self.host.unplug();
            self.host.suspend().await;
        }
    }

    // Tree blocks ------------------------------------------------------------

    /// The flusher comes to the tree blocks (`btree_writepages`): it writes them
    /// only if there are many, and never because they are old.
    pub(super) async fn btrfs_write_metadata(&self, control: &mut WriteControl) {
        let (device, limit, kept) = self.with(|s| {
            let o = s.volume.options;
            let limit = o.metadata_dirty_bytes / PAGE_BYTES;
            (s.volume.device, limit, u64::from(o.kept_back_percent))
        });
        let dirty = self.with(|s| s.file(device).dirty.count());
        let few = control.older_than.is_some() || dirty <= limit;
        if !control.integrity && few || control.nr_to_write <= 0 {
            return;
        }
        let mut most = if control.integrity {
            u64::MAX
        } else {
            (dirty * (100 - kept.min(100)) / 100).min(control.nr_to_write as u64)
        };
        let mut runs = self.with(|s| s.file(device).dirty_runs());
        for run in &mut runs {
            run.end = run.end.min(run.start.saturating_add(most));
            most -= run.end - run.start;
        }
        let pages: u64 = runs.iter().map(|r| r.end - r.start).sum();
        control.nr_to_write -= pages as i64;
        self.btrfs_write_blocks(&runs).await;
    }

    /// Writes what is dirty of runs of tree blocks, without waiting
    /// (`btrfs_write_marked_extents`).
    pub(super) async fn btrfs_write_blocks(&self, runs: &[Range<u64>]) {
        let device = self.with(|s| s.volume.device);
        for run in runs {
            let mut page = run.start;
            while page < run.end {
                let taken = self.with(|s| {
                    let file = s.file(device);
                    let first = file.dirty.next_set(page, run.end)?;
                    let end = file.dirty.next_clear(first, run.end);
                    let busy = file.writeback.next_set(first, end);
                    if busy == Some(first) {
                        return Some((first, first));
                    }
                    let end = busy.unwrap_or(end);
                    s.start_writeback(device, first..end);
                    s.volume.pool.written.set(first..end);
                    Some((first, end))
                });
                match taken {
                    None => break,
                    Some((first, end)) if first == end => {
                        self.wait_writeback(device, first).await;
                        page = first;
                    }
                    Some((first, end)) => {
                        page = end;
                        self.btrfs_queue(device, first..end, BioFlags::NONE, None)
                            .await;
                    }
                }
            }
        }
    }
}
