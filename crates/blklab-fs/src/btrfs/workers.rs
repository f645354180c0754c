// SPDX-License-Identifier: MIT OR Apache-2.0
//! Worker threads between who writes out and the block layer (fs/btrfs/
//! {async-thread,volumes}.c): checksums are computed by some, bios are
//! submitted by another, so that only that one sleeps for requests. Who queues
//! too much sleeps until there is less.

use super::Btrfs;
use super::progress::Job;
use crate::mount::{Mount, View};
use blklab_pagecache::{BioWork, FileId, Group, GroupEnd, Host};
use blklab_types::{BioFlags, Op, PAGE_SECTORS, Span};
use std::ops::Range;

impl<H: Host> Mount<'_, H, Btrfs> {
    /// Starts the threads, as at mount.
    pub(super) fn start_btrfs(&self) {
        let workers = self.with(|s| s.volume.options.workers.max(1));
        for _ in 0..workers {
            self.spawn("btrfs-worker", |kept| async move {
                kept.mount().btrfs_worker().await;
            });
        }
        self.spawn("btrfs-submit", |kept| async move {
            kept.mount().btrfs_submitter().await;
        });
        self.spawn("btrfs-endio-wri", |kept| async move {
            kept.mount().btrfs_finisher().await;
        });
        self.spawn("btrfs-transacti", |kept| async move {
            kept.mount().btrfs_commit_thread().await;
        });
    }

    /// Queues the write of pages that are on their way (`btrfs_wq_submit_bio`).
    pub(super) async fn btrfs_queue(
        &self,
        id: FileId,
        run: Range<u64>,
        flags: BioFlags,
        ordered: Option<u64>,
    ) {
        let most = self.config.bio_pages;
        let mut page = run.start;
        while page < run.end {
            let piece = super::part(&run, page, most);
            page = piece.end;
            self.waking(|s, wake| {
                s.btrfs_queue_bio(id, &piece, flags, ordered);
                wake.extend(s.volume.out.idle_workers.pop());
            });
        }
        self.btrfs_wait_queue().await;
    }

    /// Sleeps while too much is queued (`btrfs_async_submit_limit`).
    async fn btrfs_wait_queue(&self) {
        let me = self.host.current();
        while self.with(|s| {
            let b = &mut *s.volume;
            let full = b.out.queued > b.options.queued_bios;
            if full {
                b.out.waiters.push(me);
            }
            full
        }) {
            self.host.suspend().await;
        }
    }

    /// btrfs-worker: checksums (`run_one_async_start`, `btrfs_csum_one_bio`).
    async fn btrfs_worker(&self) {
        let me = self.host.current();
        loop {
            let (job, cost) = self.with(|s| {
                let b = &mut *s.volume;
                let job = b.out.checks.pop_front();
                if job.is_none() {
                    b.out.idle_workers.push(me);
                }
                (job, b.options.checksum_cost)
            });
            let Some(job) = job else {
                self.host.suspend().await;
                continue;
            };
            self.spend(Span(cost.ns().saturating_mul(job.pages))).await;
            self.waking(|s, wake| {
                let out = &mut s.volume.out;
                out.submits.push_back(job);
                wake.extend(out.idle_submitter.take());
            });
        }
    }

    /// btrfs-submit: bios (`run_scheduled_bios`).
    async fn btrfs_submitter(&self) {
        let me = self.host.current();
        loop {
            self.host.start_plug();
            while let Some(job) = self.with(|s| s.volume.out.submits.pop_front()) {
                for sector in [Some(job.sector), job.copy].into_iter().flatten() {
                    let bio = self.with(|s| {
                        s.stats.write_bios += 1;
                        s.bios.insert(BioWork::Group(job.group))
                    });
                    let sectors = (job.pages * PAGE_SECTORS) as u32;
                    self.submit_sectors(Op::Write, job.flags, sector, sectors, bio)
                        .await;
                }
                self.waking(|s, wake| {
                    let b = &mut *s.volume;
                    assert!(b.out.queued > 0, "a job is done that was not queued");
                    b.out.queued -= 1;
                    if b.out.queued <= b.options.queued_bios {
                        wake.append(&mut b.out.waiters);
                    }
                });
            }
            self.host.finish_plug();
            self.host.unplug();
            let idle = self.with(|s| {
                let out = &mut s.volume.out;
                let idle = out.submits.is_empty();
                if idle {
                    out.idle_submitter = Some(me);
                }
                idle
            });
            if idle {
                self.host.suspend().await;
            }
        }
    }
}

impl View<'_, Btrfs> {
    fn btrfs_queue_bio(
        &mut self,
        id: FileId,
        run: &Range<u64>,
        flags: BioFlags,
        ordered: Option<u64>,
    ) {
        let place = self.files[id.idx()].extents.map(run.start);
        let (sector, _) = place.expect("pages that are written have a place");
        let b = &mut *self.volume;
        let copy = b.pool.space.copy_of(b.page(sector));
        let copy = copy.map(|page| b.sector(page));
        let pages = run.end - run.start;
        self.stats.pages_written += pages;
        let group = self.groups.insert(Group {
            left: 1 + u32::from(copy.is_some()),
            failed: false,
            then: GroupEnd::Written {
                file: id,
                run: run.clone(),
                number: ordered,
            },
        });
        let out = &mut self.volume.out;
        out.queued += 1;
        out.checks.push_back(Job {
            group,
            sector,
            copy,
            pages,
            flags,
        });
    }
}
