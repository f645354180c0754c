// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transactions, and how one is committed (fs/btrfs/{transaction,disk-io}.c,
//! 2.6.32).
//!
//! A commit keeps new changes out and waits for those under way; brings the
//! extent tree up to date, which makes more blocks, until nothing is left to
//! bring; lets changes in again; writes all dirty tree blocks in ascending
//! order and waits for them; and writes the superblock, after which what the
//! transaction freed may be used again.

use super::Btrfs;
use super::items::{self, Change, Of, What};
use crate::mount::{Mount, View};
use blklab_pagecache::{FileId, Host, Sleep};
use blklab_types::{BioFlags, Jiffies, Op, PAGE_BYTES, PAGE_SECTORS, Span};

/// How often the commit thread looks.
const LOOK: Span = Span::from_s(5);
/// Changes to the extent tree between two looks at the clock.
const BATCH: usize = 256;

impl<H: Host> Mount<'_, H, Btrfs> {
    /// Begins a change: joins the running transaction (`btrfs_start_transaction`),
    /// or waits until there may be a new one (`wait_current_trans`).
    pub(super) async fn btrfs_begin(&self) {
        let me = self.host.current();
        let enter = |s: &mut View<'_, Btrfs>| {
            let c = &mut s.volume.commit;
            if c.blocked {
                c.waiters.push(me);
            } else {
                c.changing += 1;
            }
            !c.blocked
        };
        self.sleep_until(Sleep::Transaction, || self.with(enter))
            .await;
    }

    /// Ends a change (`btrfs_end_transaction`); much dirty metadata counts for the
    /// dirty limits (`btrfs_btree_balance_dirty`).
    pub(super) async fn btrfs_end(&self) {
        self.btrfs_leave();
        let much = self.with(|s| {
            let b = &mut *s.volume;
            let limit = b.options.metadata_dirty_bytes / PAGE_BYTES;
            let device = b.device;
            s.file(device).dirty.count() > limit
        });
        if much {
            self.balance_ratelimited(1).await;
        }
    }

    /// Ends a change of a worker.
    pub(super) fn btrfs_leave(&self) {
        self.waking(|s, wake| {
            let c = &mut s.volume.commit;
            assert!(c.changing > 0, "a change ends that did not begin");
            c.changing -= 1;
            if c.changing == 0 && c.blocked {
                wake.append(&mut c.waiters);
            }
        });
        self.start_flusher_timer();
    }

    /// btrfs-transaction: commits what is old (`transaction_kthread`).
    pub(super) async fn btrfs_commit_thread(&self) {
        let hz = u64::from(self.host.hz().0);
        let age = self.with(|s| u64::from(s.volume.options.commit_s)) * hz;
        loop {
            self.host.sleep(LOOK).await;
            let now = self.host.jiffies();
            if self.with(|s| s.volume.commit.since.is_some_and(|t| now >= t.plus(age))) {
                self.btrfs_commit().await;
            }
        }
    }

    /// Commits the running transaction, or waits for who does
    /// (`btrfs_commit_transaction`, `wait_for_commit`).
    pub(super) async fn btrfs_commit(&self) {
        let me = self.host.current();
        let wanted = self.with(|s| {
            let b = &mut *s.volume;
            let running = b.pool.transaction;
            match b.commit.since {
                Some(_) => running,
                None => running - 1,
            }
        });
        let done = |s: &mut View<'_, Btrfs>| s.volume.commit.committed >= wanted;
        self.sleeping(Sleep::Transaction, async {
            while !self.with(done) {
                let mine = self.with(|s| {
                    let c = &mut s.volume.commit;
                    let busy = std::mem::replace(&mut c.busy, true);
                    if busy {
                        c.waiters.push(me);
                    }
                    !busy
                });
                if mine {
                    self.btrfs_commit_now().await;
                } else {
                    self.host.suspend().await;
                }
            }
        })
        .await;
    }

    /// `btrfs_commit_transaction`.
    async fn btrfs_commit_now(&self) {
        let me = self.host.current();
        self.with(|s| s.volume.commit.blocked = true);
        while self.with(|s| {
            let c = &mut s.volume.commit;
            if c.changing > 0 {
                c.waiters.push(me);
            }
            c.changing > 0
        }) {
            self.host.suspend().await;
        }
        self.with(|s| {
            let b = &mut *s.volume;
            b.log.clear(&mut b.pool);
            let now = Jiffies(0);
            s.btrfs_note_blocks(now);
        });
        self.btrfs_update_roots().await;
        let (device, transaction, runs, freed) = self.with(|s| {
            let b = &mut *s.volume;
            let (device, transaction) = (b.device, b.pool.transaction);
            assert!(
                b.commit.busy && b.commit.blocked && b.commit.changing == 0,
                "transaction {transaction} closes while {} changes are under way",
                b.commit.changing
            );
            b.pool.transaction += 1;
            (b.commit.since, b.commit.blocked) = (None, false);
            let freed = b.pool.space.take_freed();
            (device, transaction, s.file(device).dirty_runs(), freed)
        });
        self.waking(|s, wake| wake.append(&mut s.volume.commit.waiters));
        self.btrfs_write_blocks(&runs).await;
        for run in &runs {
            self.wait_writeback_run(device, run.clone()).await;
        }
        self.btrfs_write_super(false).await;
        self.waking(|s, wake| {
            let b = &mut *s.volume;
            freed.iter().for_each(|run| b.pool.space.release(run));
            b.pool.full = false;
            assert!(
                transaction > b.commit.committed,
                "transaction {transaction} is committed behind {}",
                b.commit.committed
            );
            b.commit.committed = transaction;
            b.commit.busy = false;
            wake.append(&mut b.commit.waiters);
        });
    }

    /// The roots that changed are noted (`commit_cowonly_roots`), and the extent
    /// tree is told of all blocks that came and went, until that makes no more
    /// (`btrfs_run_delayed_refs`; up to 2.6.29 `finish_current_insert`,
    /// `del_pending_extents`).
    async fn btrfs_update_roots(&self) {
        let touched = |of: Of| Change {
            of: Of::Roots,
            key: of as u64,
            what: What::Touch,
        };
        let roots = [Of::Extents, Of::Files, Of::Checksums].map(touched);
        self.btrfs_change(&roots).await;
        loop {
            let references = self.with(|s| std::mem::take(&mut s.volume.pool.references));
            if references.is_empty() {
                return;
            }
            for batch in items::changes_of(references).chunks(BATCH) {
                self.btrfs_change(batch).await;
            }
        }
    }

    /// Writes the superblock and, unless only a log was written, its copies
    /// (`write_all_supers`); waits for them.
    pub(super) async fn btrfs_write_super(&self, log: bool) {
        let (sectors, options) = self.with(|s| {
            let b = &mut *s.volume;
            let device = b.device;
            let (options, start) = (b.options, b.start_sector);
            let end = s.file(device).eof_pages();
            let copies = if log { 1 } else { usize::MAX };
            let places = options.super_pages().iter().take(copies);
            let there = places.filter(|page| **page < end);
            let sectors: Vec<u64> = there.map(|p| start + p * PAGE_SECTORS).collect();
            (sectors, options)
        });
        let group = self.open_group();
        for (i, sector) in sectors.into_iter().enumerate() {
            self.with(|s| s.stats.write_bios += 1);
            let flags: BioFlags = options.super_flags(i == 0);
            self.submit_of_group(group, Op::Write, flags, sector, PAGE_SECTORS as u32)
                .await;
        }
        self.close_group(group).await;
    }

    /// `sync`: data that is on its way arrives and is entered; then a commit
    /// (`btrfs_sync_fs`).
    pub(super) async fn btrfs_sync_volume(&self) {
        self.btrfs_wait_ordered(None).await;
        self.btrfs_commit().await;
    }

    /// fsync: the file's data are entered, then what changed is committed, or
    /// logged.
    pub(super) async fn btrfs_sync_file(&self, id: FileId) {
        self.btrfs_wait_ordered(Some(id)).await;
        let (stale, log) = self.with(|s| {
            let b = &mut *s.volume;
            let changed = b.inode(id).changed;
            (changed > b.commit.committed, b.options.log_tree)
        });
        match (stale, log) {
            (false, _) => {}
            (true, false) => self.btrfs_commit().await,
            (true, true) => self.btrfs_log_file(id).await,
        }
    }
}
