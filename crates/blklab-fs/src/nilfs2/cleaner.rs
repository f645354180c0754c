// SPDX-License-Identifier: MIT OR Apache-2.0
//! nilfs_cleanerd: makes old segments clean again.
//!
//! Every few seconds it takes the segments that were written longest ago, if
//! that is longer ago than the protection period; reads their summaries and
//! what still lives in them; and has that written again in a log with a
//! checkpoint, after which the segments are clean. As in 2008 it does so
//! however much space is free.
//!
//! Left out: its processor time, its reads of the segment usage.

use super::Nilfs;
use super::log::{Mode, Plan};
use super::segments::{NO_NUMBER, Piece};
use crate::mount::{Mount, View};
use blklab_pagecache::{FileId, Host};
use blklab_types::{BioFlags, Op, PAGE_SECTORS, Span, Time};
use std::ops::Range;

/// Live pages of a file, and the sector of the first.
type Live = (FileId, Range<u64>, u64);

impl View<'_, Nilfs> {
    /// What lives in a segment, and the virtual numbers of what does not.
    fn nilfs_live(&mut self, segment: u64) -> (Vec<Live>, Vec<u64>) {
        let n = &mut *self.volume;
        let start = n.segments.first_sector(segment);
        let pieces: Vec<Piece> = n.segments.pieces(segment).to_vec();
        let (mut live, mut dead) = (Vec::new(), Vec::new());
        for piece in pieces {
            let id = FileId(piece.file);
            for i in 0..u64::from(piece.pages) {
                let page = u64::from(piece.page) + i;
                let sector = start + (u64::from(piece.offset) + i) * PAGE_SECTORS;
                let place = self.files[id.idx()].extents.map(page);
                if place.is_some_and(|(at, _)| at == sector) {
                    push(&mut live, id, page, sector);
                } else if piece.number != NO_NUMBER {
                    dead.push(u64::from(piece.number) + i);
                }
            }
        }
        (live, dead)
    }
}

impl View<'_, Nilfs> {
    /// The pages of runs that are not dirty.
    fn nilfs_clean_parts(&self, runs: &[(FileId, Range<u64>)]) -> Vec<(FileId, Range<u64>)> {
        let mut parts = Vec::new();
        for (id, run) in runs {
            let dirty = &self.files[id.idx()].dirty;
            let mut page = run.start;
            while page < run.end {
                let first = dirty.next_clear(page, run.end);
                page = dirty.next_set(first, run.end).unwrap_or(run.end);
                if first < page {
                    parts.push((*id, first..page));
                }
            }
        }
        parts
    }
}

fn push(live: &mut Vec<Live>, id: FileId, page: u64, sector: u64) {
    if let Some((file, run, first)) = live.last_mut()
        && *file == id
        && run.end == page
        && *first + (page - run.start) * PAGE_SECTORS == sector
    {
        run.end += 1;
        return;
    }
    live.push((id, page..page + 1, sector));
}

impl<H: Host> Mount<'_, H, Nilfs> {
    pub(super) async fn cleanerd(&self) {
        let options = self.with(|s| s.volume.options);
        let period = Span::from_s(u64::from(options.cleaning_interval_s.max(1)));
        let protected = Span::from_s(u64::from(options.protection_s));
        loop {
            self.host.sleep(period).await;
            let Some(limit) = self.host.now().0.checked_sub(protected.0) else {
                continue;
            };
            let most = options.segments_per_clean as usize;
            let old = self.with(|s| s.volume.segments.oldest(Time(limit), most));
            if !old.is_empty() {
                self.clean(old).await;
            }
        }
    }

    /// Makes segments clean (`nilfs_clean_segments`).
    async fn clean(&self, segments: Vec<u64>) {
        for segment in &segments {
            let (live, _) = self.with(|s| s.nilfs_live(*segment));
            self.read_live(*segment, &live).await;
        }
        self.lock_changes().await;
        let (mut moved, mut dead) = (Vec::new(), Vec::new());
        for segment in &segments {
            // Changes may have come in between.
            let (live, gone) = self.with(|s| s.nilfs_live(*segment));
            moved.extend(live.into_iter().map(|(id, run, _)| (id, run)));
            dead.extend(gone);
        }
        self.nilfs_load_entries(&dead).await;
        self.with(|s| {
            dead.iter().for_each(|n| s.nilfs_free_number(*n));
            // What is dirty goes into the log as it is.
            moved = s.nilfs_clean_parts(&moved);
            // The use of the segments that become clean changes.
            let usage = s.volume.meta.usage;
            for segment in &segments {
                s.nilfs_dirty_meta(usage, 1 + segment / super::USAGES_PER_BLOCK);
            }
        });
        let plan = Plan {
            mode: Mode::Checkpoint,
            moved,
            released: segments,
        };
        self.construct(plan).await;
        self.unlock_changes();
    }

    /// Reads a segment's summary, then what lives in it.
    async fn read_live(&self, segment: u64, live: &[Live]) {
        let (start, most) = self.with(|s| {
            let first = s.volume.segments.first_sector(segment);
            (first, self.config.bio_pages)
        });
        let group = self.open_group();
        let page = PAGE_SECTORS as u32;
        self.submit_of_group(group, Op::Read, BioFlags::NONE, start, page)
            .await;
        self.close_group(group).await;
        let group = self.open_group();
        self.host.start_plug();
        for (_, run, sector) in live {
            let mut at = 0;
            while at < run.end - run.start {
                let pages = most.min(run.end - run.start - at);
                let from = sector + at * PAGE_SECTORS;
                let sectors = (pages * PAGE_SECTORS) as u32;
                self.with(|s| {
                    s.stats.read_bios += 1;
                    s.stats.pages_read += pages;
                });
                self.submit_of_group(group, Op::Read, BioFlags::NONE, from, sectors)
                    .await;
                at += pages;
            }
        }
        self.host.finish_plug();
        self.close_group(group).await;
    }
}
