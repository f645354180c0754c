// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ending, committing and flushing transactions (fs/reiserfs/journal.c,
//! `do_journal_end`, `flush_commit_list`, `flush_used_journal_lists`; 2.6.26).
//!
//! Commit, older transactions first: new data, wait; descriptor and copies
//! into the log, and while at it those of the next transactions up to 256
//! blocks, wait; the commit block, wait. Then the blocks are dirty in the
//! device's pages, if no newer transaction has them. The log's blocks are
//! pages of the device here, too, but take no memory.

use super::Volume;
use super::journal::{Ended, Journal, MOST_BLOCKS};
use super::space::{JOURNAL, JOURNAL_HEADER};
use crate::jbd::Barrier;
use crate::mount::{Mount, View};
use blklab_pagecache::{FileId, Flusher, Host, Taken, WaitOrder};
use blklab_types::{BioFlags, Jiffies, Span};

/// Buffers collected before they are submitted (`CHUNK_SIZE`).
const CHUNK: usize = 32;
/// Blocks of the log that a commit submits at the least, if there are any.
const PUSH_BLOCKS: u64 = 256;
/// Blocks, and transactions, that are flushed at a time.
const FLUSH_BLOCKS: usize = 256;
const FLUSH_TRANSACTIONS: usize = 256;
/// The work queue commits so long after a transaction has ended.
const WORK_DELAY_MS: u64 = 100;

/// Transactions leave the list of those that have ended only after their commit.
const HAS_ENDED: &str = "a transaction has ended before it is committed";

/// What the flush does with a block.
enum Place {
    /// A newer transaction has it, or it is in its place.
    Done,
    /// A newer one that is not committed yet.
    Newer(u64),
    Busy,
    Write,
}

impl Journal {
    /// Blocks of the log, by number on the volume, that a commit submits now:
    /// its own, then those behind it.
    fn take_log_blocks(&mut self, tid: u64, out: &mut Vec<u64>) {
        let (length, mut passed) = (self.length, 0);
        for e in self.ended.iter_mut().skip_while(|e| e.tid < tid) {
            let all = e.log_blocks() - 1;
            let most = if e.tid == tid {
                all
            } else {
                all.min(PUSH_BLOCKS.saturating_sub(passed))
            };
            for nth in e.submitted..most {
                out.push(JOURNAL + (e.start + nth) % length);
            }
            e.submitted = e.submitted.max(most);
            passed += e.log_blocks();
            if passed >= PUSH_BLOCKS {
                break;
            }
        }
    }

    /// The last of the transactions that are flushed together
    /// (`kupdate_transactions`): the oldest, and those behind it that are committed.
    fn last_of_group(&self) -> u64 {
        let oldest = self.ended.front();
        let mut last = oldest.expect("what fills the log has ended").tid;
        let mut blocks = 0;
        for e in self.ended.iter().take(FLUSH_TRANSACTIONS) {
            if !e.committed || blocks >= FLUSH_BLOCKS {
                break;
            }
            last = e.tid;
            let held = |b: &&u64| self.newest.get(b) == Some(&e.tid);
            blocks += e.blocks.iter().filter(held).count();
        }
        last
    }

    /// The oldest transaction up to one that is not committed.
    fn uncommitted(&mut self, tid: u64) -> Option<&mut Ended> {
        self.ended.iter_mut().find(|e| e.tid <= tid && !e.committed)
    }
}

impl View<'_, Volume> {
    /// Takes a page of new data for writing. One whose bytes have moved into a leaf
    /// since has no block any more, and is not written here even if a mapping has
    /// made it dirty again (fs/reiserfs/inode.c, `unmap_buffers`).
    fn reiser_take_data(&mut self, (id, page): (FileId, u64)) -> Taken {
        match self.files[id.idx()].extents.map(page) {
            Some(_) => self.take_buffer((id, page)),
            None => Taken::Clean,
        }
    }

    /// A transaction is committed: its blocks are dirty in the device's pages,
    /// what it freed can be used.
    fn reiser_committed(&mut self, tid: u64, now: Jiffies) {
        let v = &mut *self.volume;
        let device = v.device;
        let e = v.journal.ended(tid);
        let e = e.expect("what commits has ended, and is not forgotten");
        assert!(
            e.committing && !e.committed,
            "transaction {tid} is committed twice"
        );
        e.committed = true;
        let blocks = e.blocks.clone();
        for run in std::mem::take(&mut e.frozen) {
            v.space.thaw(run);
        }
        for block in blocks {
            if self.reiser_journal().newest.get(&block) == Some(&tid) {
                let run = block..block + 1;
                let file = &mut self.files[device.idx()];
                file.pinned.clear(run.clone());
                file.buffers.dirty.set(run.clone());
                self.dirty(device, run, now);
            }
        }
    }

    /// What is to be done to bring a block of a committed transaction to its place
    /// (`write_one_transaction`); takes it if it is to be written.
    fn reiser_take_block(&mut self, tid: u64, block: u64) -> Place {
        let v = &mut *self.volume;
        let device = v.device;
        match v.journal.newest.get(&block).copied() {
            Some(newest) if newest == tid => {}
            Some(newest) => {
                let open = v.journal.ended(newest).is_some_and(|e| !e.committed);
                return if open {
                    Place::Newer(newest)
                } else {
                    Place::Done
                };
            }
            None => return Place::Done,
        }
        let file = &mut self.files[device.idx()];
        let run = block..block + 1;
        if file.buffers.locked.test(block) || file.writeback.test(block) {
            return Place::Busy;
        }
        if file.buffers.dirty.clear(run.clone()) == 0 {
            return Place::Done;
        }
        file.buffers.locked.set(run);
        Place::Write
    }

    /// Forgets transactions whose blocks are in their places.
    fn reiser_forget_flushed(&mut self, last: u64) {
        let j = self.reiser_journal();
        while j.ended.front().is_some_and(|e| e.tid <= last) {
            let e = j.ended.pop_front().expect("it was just looked at");
            assert!(
                e.committed,
                "transaction {} leaves the log before its commit",
                e.tid
            );
            for block in e.blocks {
                if j.newest.get(&block) == Some(&e.tid) {
                    j.newest.remove(&block);
                }
            }
        }
    }

    /// Marks blocks of the device as being written.
    fn reiser_lock_blocks(&mut self, blocks: &[u64]) -> FileId {
        let device = self.volume.device;
        let locked = &mut self.files[device.idx()].buffers.locked;
        for block in blocks {
            locked.set(*block..*block + 1);
        }
        device
    }
}

impl<H: Host> Mount<'_, H, Volume> {
    /// Starts the work queue's task, and where pdflush does not come by the
    /// superblock, the thread that does (`bdi_sync_supers`, 2.6.32).
    pub(super) fn reiser_start(&self) {
        self.spawn("reiserfs", |kept| async move {
            kept.mount().reiser_worker().await;
        });
        let centisecs = self.config.dirty_writeback_centisecs;
        if self.config.features.flusher == Flusher::PerDevice && centisecs > 0 {
            let period = Span::from_ms(centisecs * 10);
            self.spawn("sync_supers", |kept| async move {
                kept.mount().reiser_sync_supers(period).await;
            });
        }
    }

    async fn reiser_sync_supers(&self, period: Span) {
        loop {
            self.host.sleep(period).await;
            self.reiser_sync_journal(false).await;
        }
    }

    /// Commits what has ended, a while after it has (`flush_async_commits`).
    async fn reiser_worker(&self) {
        let me = self.host.current();
        self.with(|s| s.reiser_journal().worker = Some(me));
        loop {
            let Some(due) = self.with(|s| s.reiser_journal().work_due) else {
                self.host.suspend().await;
                continue;
            };
            if self.host.jiffies() < due {
                self.sleep_until_tick(due).await;
            }
            let youngest = self.with(|s| {
                let j = s.reiser_journal();
                j.work_due = None;
                j.ended.back().map(|e| e.tid)
            });
            if let Some(tid) = youngest {
                self.reiser_commit_up_to(tid).await;
            }
        }
    }

    /// Ends the running transaction, whose handles are closed
    /// (`do_journal_end`); makes room in the log for the next.
    pub(super) async fn reiser_end_transaction(&self) {
        let due = self
            .host
            .jiffies()
            .plus(self.host.hz().from_ms(WORK_DELAY_MS));
        self.with(|s| s.reiser_journal().ending = true);
        self.reiser_discard_all().await;
        self.waking(|s, wake| {
            if s.reiser_journal().running.blocks.is_empty() {
                s.reiser_log_superblock();
            }
            let j = s.reiser_journal();
            let pending = j.running.commit_pending();
            j.rotate();
            if !pending && j.work_due.is_none() {
                j.work_due = Some(due);
                wake.extend(j.worker);
            }
        });
        while self.with(|s| s.reiser_journal().may_overwrite()) {
            self.reiser_flush_group().await;
        }
        self.waking(|s, wake| {
            let j = s.reiser_journal();
            j.ending = false;
            j.wake_all(wake);
        });
    }

    /// Commits all transactions up to one, and waits (`flush_older_commits`).
    pub(super) async fn reiser_commit_up_to(&self, tid: u64) {
        loop {
            let next = self.with(|s| {
                let e = s.reiser_journal().uncommitted(tid)?;
                Some((e.tid, std::mem::replace(&mut e.committing, true)))
            });
            match next {
                None => return,
                Some((_, true)) => self.reiser_wait().await,
                Some((tid, false)) => self.reiser_commit(tid).await,
            }
        }
    }

    /// Commits one transaction (`flush_commit_list`).
    async fn reiser_commit(&self, tid: u64) {
        let data = self.with(|s| {
            let e = s.reiser_journal().ended(tid).expect(HAS_ENDED);
            std::mem::take(&mut e.data)
        });
        let take = |place| self.with(|s| s.reiser_take_data(place));
        self.write_ordered(data, CHUNK, WaitOrder::Pages, BioFlags::NONE, take)
            .await;
        let mut log = Vec::new();
        let (own, commit_block, options) = self.with(|s| {
            let v = &mut *s.volume;
            v.journal.take_log_blocks(tid, &mut log);
            let length = v.journal.length;
            let e = v.journal.ended(tid).expect(HAS_ENDED);
            let at = |nth| JOURNAL + (e.start + nth) % length;
            let last = e.log_blocks() - 1;
            ((0..last).map(at).collect::<Vec<u64>>(), at(last), v.options)
        });
        self.reiser_write_blocks(&log, BioFlags::NONE).await;
        let barrier = options.barrier != Barrier::Off;
        if !barrier {
            self.reiser_wait_blocks(&own).await;
        }
        self.reiser_write_blocks(&[commit_block], options.commit_block_flags())
            .await;
        if barrier {
            self.reiser_wait_blocks(&own).await;
        }
        self.reiser_wait_blocks(&[commit_block]).await;
        let now = self.host.jiffies();
        self.waking(|s, wake| {
            s.reiser_committed(tid, now);
            s.reiser_journal().wake_all(wake);
        });
        self.start_flusher_timer();
    }

    /// Submits blocks of the device, one bio each.
    async fn reiser_write_blocks(&self, blocks: &[u64], flags: BioFlags) {
        let device = self.with(|s| s.reiser_lock_blocks(blocks));
        let mut batch: Vec<(FileId, u64)> = blocks.iter().map(|b| (device, *b)).collect();
        self.host.start_plug();
        self.submit_buffers(&mut batch, flags).await;
        self.host.finish_plug();
    }

    /// WaitOrder until blocks of the device are written.
    async fn reiser_wait_blocks(&self, blocks: &[u64]) {
        let device = self.with(|s| s.volume.device);
        for block in blocks {
            self.wait_buffer(device, *block).await;
        }
    }

    /// Writes the blocks of the oldest transactions to their places, and the
    /// journal's header (`flush_used_journal_lists`,
    /// `update_journal_header_block`).
    async fn reiser_flush_group(&self) {
        let last = self.with(|s| s.reiser_journal().last_of_group());
        self.reiser_commit_up_to(last).await;
        let blocks: Vec<(u64, u64)> = self.with(|s| {
            let group = s.reiser_journal().ended.iter().filter(|e| e.tid <= last);
            group
                .flat_map(|e| e.blocks.iter().map(|b| (e.tid, *b)))
                .collect()
        });
        let device = self.with(|s| s.volume.device);
        let mut batch: Vec<(FileId, u64)> = Vec::with_capacity(CHUNK);
        let mut waits = Vec::new();
        for (tid, block) in blocks {
            match self.with(|s| s.reiser_take_block(tid, block)) {
                Place::Done => {}
                Place::Newer(newer) => {
                    self.submit_buffers(&mut batch, BioFlags::NONE).await;
                    self.reiser_commit_up_to(newer).await;
                }
                Place::Busy => waits.push(block),
                Place::Write => {
                    waits.push(block);
                    batch.push((device, block));
                    if batch.len() == CHUNK {
                        self.submit_buffers(&mut batch, BioFlags::NONE).await;
                    }
                }
            }
        }
        self.submit_buffers(&mut batch, BioFlags::NONE).await;
        self.reiser_wait_blocks(&waits).await;
        let flags = self.with(|s| s.volume.options.commit_block_flags());
        self.reiser_write_blocks(&[JOURNAL_HEADER], flags).await;
        self.reiser_wait_blocks(&[JOURNAL_HEADER]).await;
        self.with(|s| s.reiser_forget_flushed(last));
    }
}

/// A transaction and its frame fit into the log many times.
const _: () = assert!(MOST_BLOCKS * 4 < super::space::JOURNAL_BLOCKS);
