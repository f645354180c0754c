// SPDX-License-Identifier: MIT OR Apache-2.0
//! segctord: when logs are written, and who waits for them
//! (fs/nilfs2/segment.c, 2.6.32: `nilfs_segctor_thread`,
//! `nilfs_segctor_construct`).
//!
//! A construction holds the lock of the volume's changes from the collection
//! to the end of its I/O: whoever creates, writes or removes waits as long.
//! The timer of 5 s runs from the first change after a checkpoint and asks for
//! the next one; too many dirty blocks, or sync, do so before.

use super::Nilfs;
use super::log::{Log, Mode, Plan};
use crate::jbd::Barrier;
use crate::mount::{Mount, View};
use blklab_pagecache::{FileId, Host, Sleep, State};
use blklab_types::{BioFlags, Jiffies, Op, PAGE_SECTORS, Span, TaskId};

/// The constructor's state (`nilfs_sc_info`), and the lock of changes
/// (`ns_segctor_sem`).
#[derive(Debug, Default)]
pub(super) struct Constructor {
    task: Option<TaskId>,
    timer: Option<TaskId>,
    /// When the timer ends.
    due: Option<Jiffies>,
    /// Files are to be written (`sc_flush_request`).
    flush: bool,
    /// Checkpoints asked for, those that a construction has taken up, and those
    /// that are done (`sc_seq_request`, `sc_seq_accepted`, `sc_seq_done`).
    requested: u64,
    done: u64,
    /// Tasks that sleep for a checkpoint.
    sleepers: Vec<TaskId>,
    /// Since when logs without a checkpoint were written.
    pub(super) unclosed: Option<Jiffies>,
    /// Jiffies of the last superblock.
    super_block: Jiffies,
    /// Changes under way.
    changing: u32,
    /// Somebody constructs, or waits for the changes to end.
    locked: bool,
    /// Tasks that sleep for the lock.
    waiters: Vec<TaskId>,
}

impl<H: Host> Mount<'_, H, Nilfs> {
    /// Starts the constructor, its timer, and the cleaner, as at mount.
    pub(super) fn start_constructor(&self) {
        self.spawn(
            "segctord",
            |kept| async move { kept.mount().segctord().await },
        );
        self.spawn("segctor_timer", |kept| async move {
            kept.mount().segctor_timer().await;
        });
        if self.with(|s| s.volume.options.cleaner) {
            self.spawn("nilfs_cleanerd", |kept| async move {
                kept.mount().cleanerd().await;
            });
        }
    }

    // The lock of changes ----------------------------------------------------

    /// Begins a change; sleeps while a log is constructed
    /// (`nilfs_transaction_begin`).
    pub(super) async fn begin_change(&self) {
        let me = self.host.current();
        let enter = |s: &mut View<'_, Nilfs>| {
            let c = &mut s.volume.constructor;
            if c.locked {
                c.waiters.push(me);
            } else {
                c.changing += 1;
            }
            !c.locked
        };
        self.sleep_until(Sleep::Transaction, || self.with(enter))
            .await;
    }

    /// Ends a change: starts the timer, and the constructor if much is dirty
    /// (`nilfs_transaction_commit`).
    pub(super) fn end_change(&self) {
        let now = self.host.jiffies();
        let hz = u64::from(self.host.hz().0);
        self.waking(|s, wake| {
            let n = &mut *s.volume;
            let c = &mut n.constructor;
            assert!(c.changing > 0, "a change ends that did not begin");
            c.changing -= 1;
            if c.changing == 0 && c.locked {
                wake.append(&mut c.waiters);
            }
            if c.due.is_none() {
                c.due = Some(now.plus(u64::from(n.options.interval_s) * hz));
                wake.extend(c.timer);
            }
            if n.dirty_blocks > u64::from(n.options.watermark_blocks)
                && !std::mem::replace(&mut c.flush, true)
            {
                wake.extend(c.task);
            }
        });
    }

    /// Keeps changes out, and waits for those under way (`nilfs_transaction_lock`).
    pub(super) async fn lock_changes(&self) {
        let me = self.host.current();
        while self.with(|s| {
            let c = &mut s.volume.constructor;
            let held = c.locked;
            if held {
                c.waiters.push(me);
            } else {
                c.locked = true;
            }
            held
        }) {
            self.host.suspend().await;
        }
        while self.with(|s| {
            let c = &mut s.volume.constructor;
            if c.changing > 0 {
                c.waiters.push(me);
            }
            c.changing > 0
        }) {
            self.host.suspend().await;
        }
    }

    /// `nilfs_transaction_unlock`.
    pub(super) fn unlock_changes(&self) {
        self.waking(|s, wake| {
            let c = &mut s.volume.constructor;
            assert!(
                c.locked && c.changing == 0,
                "changes are let in again by who did not keep them out: {} are under way",
                c.changing
            );
            c.locked = false;
            wake.append(&mut c.waiters);
        });
    }

    // The thread -------------------------------------------------------------

    /// `nilfs_construction_timeout`.
    async fn segctor_timer(&self) {
        let me = self.host.current();
        self.with(|s| s.volume.constructor.timer = Some(me));
        loop {
            let Some(due) = self.with(|s| s.volume.constructor.due) else {
                self.host.suspend().await;
                continue;
            };
            if self.host.jiffies() < due {
                self.sleep_until_tick(due).await;
                continue;
            }
            self.waking(|s, wake| wake.extend(s.volume.constructor.task));
            self.host.suspend().await;
        }
    }

    /// `nilfs_segctor_thread`.
    async fn segctord(&self) {
        let me = self.host.current();
        self.with(|s| s.volume.constructor.task = Some(me));
        loop {
            let now = self.host.jiffies();
            let hz = u64::from(self.host.hz().0);
            match self.with(|s| s.volume.next_mode(now, hz)) {
                Some(mode) => {
                    self.lock_changes().await;
                    self.construct(Plan::new(mode)).await;
                    self.unlock_changes();
                }
                None => self.host.suspend().await,
            }
        }
    }

    /// One construction, by whoever has the lock of changes
    /// (`nilfs_segctor_construct`, `nilfs_segctor_do_construct`).
    pub(super) async fn construct(&self, plan: Plan) {
        let accepted = self.with(|s| s.volume.constructor.requested);
        self.read_for_log(&plan).await;
        let blocks = self.with(|s| s.blocks_of_log(&plan));
        if blocks > 0 {
            let cost = self.with(|s| s.volume.options.block_cost);
            self.spend(Span(cost.ns().saturating_mul(blocks))).await;
            let now = self.host.now();
            let log = self.with(|s| s.nilfs_collect(&plan, now));
            let good = self.write_log_parts(&log).await;
            self.waking(|s, wake| s.nilfs_finish(&log, !good, wake));
        }
        let now = self.host.jiffies();
        let hz = u64::from(self.host.hz().0);
        let write_super = self.with(|s| {
            let n = &mut *s.volume;
            let period = u64::from(n.options.super_block_s) * hz;
            let due = now >= n.constructor.super_block.plus(period);
            let writes = plan.mode == Mode::Checkpoint && blocks > 0 && due;
            if writes {
                n.constructor.super_block = now;
            }
            writes
        });
        if write_super {
            self.write_super_block().await;
        }
        self.waking(|s, wake| s.volume.note_constructed(plan.mode, accepted, now, wake));
    }

    /// Writes logs one behind the other, and waits for all (`nilfs_segctor_write`,
    /// `nilfs_segctor_wait`). Returns whether all went well.
    async fn write_log_parts(&self, log: &Log) -> bool {
        let group = self.open_group();
        let most = self.config.bio_pages;
        self.host.start_plug();
        for (sector, blocks) in &log.parts {
            let mut at = 0;
            while at < *blocks {
                let pages = most.min(blocks - at);
                let last = at + pages == *blocks;
                let flags = if last {
                    BioFlags::SYNC | BioFlags::UNPLUG
                } else {
                    BioFlags::NONE
                };
                self.with(|s| s.stats.write_bios += 1);
                let sectors = (pages * PAGE_SECTORS) as u32;
                let from = sector + at * PAGE_SECTORS;
                self.submit_of_group(group, Op::Write, flags, from, sectors)
                    .await;
                at += pages;
            }
        }
        self.host.finish_plug();
        self.close_group(group).await
    }

    /// `nilfs_commit_super`.
    async fn write_super_block(&self) {
        let (sector, flags) = self.with(|s| {
            let n = &mut *s.volume;
            (n.start_sector, n.options.super_block_flags())
        });
        let group = self.open_group();
        self.with(|s| s.stats.write_bios += 1);
        self.submit_of_group(group, Op::Write, flags, sector, PAGE_SECTORS as u32)
            .await;
        self.close_group(group).await;
    }

    // Those who ask ----------------------------------------------------------

    /// Asks for a checkpoint and sleeps until it is there
    /// (`nilfs_segctor_sync`).
    pub(super) async fn construct_and_wait(&self) {
        let me = self.host.current();
        let mut wanted = 0;
        self.waking(|s, wake| {
            let c = &mut s.volume.constructor;
            c.requested += 1;
            wanted = c.requested;
            wake.extend(c.task);
        });
        let waits = |s: &mut View<'_, Nilfs>| {
            let c = &mut s.volume.constructor;
            if c.done < wanted {
                c.sleepers.push(me);
            }
            c.done < wanted
        };
        while self.with(waits) {
            self.host.suspend().await;
        }
    }

    /// fsync and fdatasync, the data being written: a checkpoint, unless only
    /// data count or nothing of the file has changed since the last one; from
    /// 2.6.37 on with barriers a flush of the disk's cache
    /// (`nilfs_sync_file`).
    pub(super) async fn nilfs_sync_file(&self, id: FileId, data_only: bool) {
        let queued = self.with(|s| s.volume.inode(id).queued);
        if data_only {
            self.construct_data(id).await;
        } else if queued {
            self.construct_and_wait().await;
        }
        if self.with(|s| s.volume.options.barrier == Barrier::FlushFua) {
            let group = self.open_group();
            self.submit_of_group(group, Op::Write, BioFlags::FLUSH, 0, 0)
                .await;
            self.close_group(group).await;
        }
    }

    /// Brings the data of a file to the disk in a log of its own, if a
    /// checkpoint has the file and no log is open
    /// (`nilfs_construct_dsync_segment`).
    pub(super) async fn construct_data(&self, id: FileId) {
        self.lock_changes().await;
        let (clean, whole) = self.with(|s| {
            let dirty = s.file(id).dirty.count() > 0;
            let n = &mut *s.volume;
            let open = n.constructor.unclosed.is_some();
            let inode = n.inode(id);
            (!dirty && !inode.fresh, inode.fresh || open)
        });
        if !clean && !whole {
            self.construct(Plan::new(Mode::Data(id))).await;
        }
        self.unlock_changes();
        if !clean && whole {
            self.construct_and_wait().await;
        }
    }
}

impl super::Nilfs {
    /// What there is to construct (`nilfs_segctor_flush_mode`).
    fn next_mode(&self, now: Jiffies, hz: u64) -> Option<Mode> {
        let c = &self.constructor;
        let expired = c.due.is_some_and(|due| now >= due);
        if expired || c.requested > c.done {
            return Some(Mode::Checkpoint);
        }
        let long = u64::from(self.options.super_root_s) * hz;
        let late = c.unclosed.is_some_and(|since| now >= since.plus(long));
        match (c.flush, late) {
            (false, _) => None,
            (true, false) => Some(Mode::Files),
            (true, true) => Some(Mode::Checkpoint),
        }
    }

    /// A construction has ended (`nilfs_segctor_notify`).
    fn note_constructed(
        &mut self,
        mode: Mode,
        accepted: u64,
        now: Jiffies,
        wake: &mut Vec<TaskId>,
    ) {
        let c = &mut self.constructor;
        match mode {
            Mode::Checkpoint => {
                (c.flush, c.due) = (false, None);
                c.done = c.done.max(accepted);
                wake.append(&mut c.sleepers);
                self.dirty_blocks = 0;
            }
            Mode::Files => {
                c.flush = false;
                c.unclosed = c.unclosed.or(Some(now));
                self.dirty_blocks = 0;
            }
            Mode::Data(_) => {}
        }
    }
}

impl View<'_, Nilfs> {
    /// Blocks that a log will hold, without its summary; none if there is
    /// nothing to write.
    fn blocks_of_log(&mut self, plan: &Plan) -> u64 {
        let moved: u64 = plan.moved.iter().map(|(_, run)| run.end - run.start).sum();
        let dirty = |s: &State, id: FileId| s.files[id.idx()].dirty.count();
        let queue = std::mem::take(&mut self.volume.queue);
        let files: u64 = queue.iter().map(|id| dirty(self, *id)).sum();
        let waiting = !queue.is_empty();
        self.volume.queue = queue;
        let meta = self.volume.meta;
        let blocks = match plan.mode {
            Mode::Data(id) => dirty(self, id),
            Mode::Files => files,
            Mode::Checkpoint => {
                let inodes = dirty(self, meta.inodes);
                let translation = dirty(self, meta.translation);
                if !waiting && inodes + translation == 0 && plan.released.is_empty() {
                    return 0;
                }
                files + inodes + translation + dirty(self, meta.nodes) + 5
            }
        };
        blocks + moved
    }
}
