// SPDX-License-Identifier: MIT OR Apache-2.0
//! The journal's state and its handles (fs/reiserfs/journal.c, 2.6.26).
//!
//! One transaction runs. It ends when it has 900 blocks, when it is 30 s old,
//! or when somebody wants it on the disk; whoever closes the last handle then
//! ends it, and the next begins. Ended transactions wait, oldest first, to be
//! committed, and then to be flushed: their blocks written to their places
//! before the log overwrites them.
//!
//! A block belongs to the newest transaction that changed it: only from there
//! it goes to its place.

use super::Volume;
use crate::mount::{Mount, View};
use blklab_pagecache::{FileId, Host, Sleep};
use blklab_types::{Jiffies, TaskId};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Most blocks of a transaction (`JOURNAL_TRANS_MAX`).
pub(super) const MOST_BLOCKS: u64 = 1024;
/// Blocks at which a transaction takes no more handles (`JOURNAL_MAX_BATCH`).
const BATCH_BLOCKS: u64 = 900;

/// The transaction that runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Transaction {
    pub(super) tid: u64,
    /// Its metadata blocks, in order of the first change.
    pub(super) blocks: Vec<u64>,
    /// New pages whose data go to the disk first (`j_bh_list`).
    pub(super) data: Vec<(FileId, Range<u64>)>,
    /// Blocks that it freed.
    pub(super) frozen: Vec<Range<u64>>,
    /// Open handles (`j_wcount`), and the blocks that they may still add
    /// (`j_len_alloc`).
    pub(super) writers: u32,
    reserved: u64,
    /// Handles so far (`j_bcount`).
    handles: u64,
    /// `j_trans_start_time`.
    since: Option<Jiffies>,
    /// It takes no more handles (`J_WRITERS_BLOCKED`).
    closing: bool,
    /// Somebody will commit it: the work queue need not (`LIST_COMMIT_PENDING`).
    commit_pending: bool,
}

/// A transaction that has ended (`reiserfs_journal_list`).
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) tid: u64,
    /// Its descriptor, from the start of the log; blocks and the commit block
    /// follow.
    pub(super) start: u64,
    pub(super) blocks: Vec<u64>,
    pub(super) data: Vec<(FileId, Range<u64>)>,
    pub(super) frozen: Vec<Range<u64>>,
    /// Blocks of the log on their way or there, the descriptor first.
    pub(super) submitted: u64,
    pub(super) committing: bool,
    pub(super) committed: bool,
}

impl Ended {
    /// Its blocks in the log: descriptor, copies, commit block.
    pub(super) fn log_blocks(&self) -> u64 {
        self.blocks.len() as u64 + 2
    }
}

/// The journal (`reiserfs_journal`).
#[derive(Clone, Debug)]
pub(super) struct Journal {
    pub(super) running: Transaction,
    /// Oldest first (`j_journal_list`).
    pub(super) ended: VecDeque<Ended>,
    /// Where the next transaction begins in the log (`j_start`).
    pub(super) start: u64,
    /// Blocks of the log.
    pub(super) length: u64,
    /// The newest transaction of each block that is not in its place
    /// (`j_list_hash_table`).
    pub(super) newest: BTreeMap<u64, u64>,
    /// Somebody ends a transaction (`j_mutex`).
    pub(super) ending: bool,
    /// Something has been logged since a transaction last ended (`s_dirt`).
    pub(super) super_dirty: bool,
    pub(super) waiters: Vec<TaskId>,
    /// The work queue's task, and when it is to commit.
    pub(super) worker: Option<TaskId>,
    pub(super) work_due: Option<Jiffies>,
    /// Files that hold preallocated blocks (`j_prealloc_list`).
    pub(super) preallocated: Vec<FileId>,
}

/// The right to change metadata under the running transaction.
#[derive(Debug)]
pub(super) struct Handle {
    blocks: u64,
    tid: u64,
}

/// What happens when a handle is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Close {
    /// The transaction goes on if it may.
    Batch,
    /// It ends, and is committed before the caller goes on.
    Wait,
}

impl Journal {
    pub(super) fn new(length: u64) -> Journal {
        Journal {
            running: Transaction {
                tid: 1,
                ..Transaction::default()
            },
            ended: VecDeque::new(),
            start: 0,
            length,
            newest: BTreeMap::new(),
            ending: false,
            super_dirty: false,
            waiters: Vec::new(),
            worker: None,
            work_due: None,
            preallocated: Vec::new(),
        }
    }

    pub(super) fn wake_all(&mut self, wake: &mut Vec<TaskId>) {
        wake.append(&mut self.waiters);
    }

    pub(super) fn ended(&mut self, tid: u64) -> Option<&mut Ended> {
        self.ended.iter_mut().find(|e| e.tid == tid)
    }

    /// Blocks that the running transaction has or may get.
    fn planned(&self) -> u64 {
        self.running.blocks.len() as u64 + self.running.reserved
    }

    fn too_old(&self, now: Jiffies, max_age: u64) -> bool {
        let since = self.running.since;
        since.is_some_and(|s| now.0 > s.0 + max_age)
    }

    /// Adds a block to the running transaction (`journal_mark_dirty`). Returns
    /// whether it is new.
    pub(super) fn add(&mut self, block: u64) -> bool {
        let tid = self.running.tid;
        if self.newest.insert(block, tid) == Some(tid) {
            return false;
        }
        self.running.blocks.push(block);
        self.super_dirty = true;
        true
    }

    /// A block is not metadata any more (`journal_mark_freed`).
    pub(super) fn forget(&mut self, block: u64) {
        if self.newest.remove(&block) == Some(self.running.tid)
            && let Some(at) = self.running.blocks.iter().rposition(|b| *b == block)
        {
            self.running.blocks.remove(at);
        }
    }

    /// Ends the running transaction: it joins the others, and the next runs.
    pub(super) fn rotate(&mut self) -> u64 {
        let tid = self.running.tid;
        assert!(
            self.running.writers == 0 && self.running.reserved == 0,
            "transaction {tid} ends with open handles"
        );
        let next = Transaction {
            tid: tid + 1,
            ..Transaction::default()
        };
        let t = std::mem::replace(&mut self.running, next);
        let ended = Ended {
            tid,
            start: self.start,
            blocks: t.blocks,
            data: t.data,
            frozen: t.frozen,
            submitted: 0,
            committing: false,
            committed: false,
        };
        self.start = (self.start + ended.log_blocks()) % self.length;
        self.ended.push_back(ended);
        debug_assert!(
            self.ended.iter().map(Ended::log_blocks).sum::<u64>() <= self.length,
            "transaction {tid} overwrites one in the log that is not flushed"
        );
        self.super_dirty = false;
        tid
    }

    /// Whether the next transaction could overwrite the oldest one.
    pub(super) fn may_overwrite(&self) -> bool {
        let Some(oldest) = self.ended.front() else {
            return false;
        };
        let used = (self.start + self.length - oldest.start) % self.length;
        // The log is full when both begin at the same block.
        let used = if used == 0 { self.length } else { used };
        used + MOST_BLOCKS + 1 >= self.length
    }
}

/// What stands in the way of a handle.
enum Start {
    Open(u64),
    Wait,
    End,
}

impl View<'_, Volume> {
    pub(super) fn reiser_journal(&mut self) -> &mut Journal {
        &mut self.volume.journal
    }

    /// Tries to open a handle (`do_journal_begin_r`).
    fn try_begin(&mut self, blocks: u64, now: Jiffies, max_age: u64) -> Start {
        let j = self.reiser_journal();
        if j.ending || j.running.closing {
            return Start::Wait;
        }
        let full = j.planned() + blocks + 2 >= BATCH_BLOCKS;
        if full || j.too_old(now, max_age) {
            j.running.closing = true;
            return if j.running.writers == 0 {
                Start::End
            } else {
                Start::Wait
            };
        }
        let t = &mut j.running;
        t.writers += 1;
        t.handles += 1;
        t.reserved += blocks;
        t.since.get_or_insert(now);
        Start::Open(t.tid)
    }

    /// Closes a handle (`check_journal_end`). Returns whether the caller has to end
    /// the transaction.
    fn try_close(&mut self, handle: &Handle, how: Close, now: Jiffies, max_age: u64) -> bool {
        let j = self.reiser_journal();
        let t = &j.running;
        assert!(
            t.tid == handle.tid && t.writers > 0 && t.reserved >= handle.blocks,
            "a handle of transaction {} is closed twice, or after it: {} runs, with {} handles",
            handle.tid,
            t.tid,
            t.writers
        );
        j.running.writers -= 1;
        j.running.reserved -= handle.blocks;
        j.running.closing |=
            how == Close::Wait || j.too_old(now, max_age) || j.planned() >= BATCH_BLOCKS;
        j.running.commit_pending |= how == Close::Wait;
        j.running.closing && j.running.writers == 0
    }
}

impl<H: Host> Mount<'_, H, Volume> {
    /// Sleeps until something of the journal changes; the caller tests again.
    pub(super) async fn reiser_wait(&self) {
        let me = self.host.current();
        self.with(|s| s.reiser_journal().waiters.push(me));
        self.host.suspend().await;
        self.with(|s| s.reiser_journal().waiters.retain(|t| *t != me));
    }

    fn reiser_max_age(&self) -> u64 {
        let seconds = self.with(|s| s.volume.options.max_age_s);
        u64::from(seconds) * u64::from(self.host.hz().0)
    }

    /// Opens a handle for so many blocks (`journal_begin`).
    pub(super) async fn reiser_begin(&self, blocks: u64) -> Handle {
        loop {
            let (now, max_age) = (self.host.jiffies(), self.reiser_max_age());
            match self.with(|s| s.try_begin(blocks, now, max_age)) {
                Start::Open(tid) => return Handle { blocks, tid },
                Start::Wait => self.sleeping(Sleep::Transaction, self.reiser_wait()).await,
                Start::End => {
                    self.sleeping(Sleep::LogSpace, self.reiser_end_transaction())
                        .await;
                }
            }
        }
    }

    /// Closes a handle (`journal_end`, `journal_end_sync`).
    pub(super) async fn reiser_close(&self, handle: Handle, how: Close) {
        let (now, max_age) = (self.host.jiffies(), self.reiser_max_age());
        if self.with(|s| s.try_close(&handle, how, now, max_age)) {
            self.sleeping(Sleep::LogSpace, self.reiser_end_transaction())
                .await;
        }
        if how == Close::Wait {
            let running = |s: &mut View<'_, Volume>| s.reiser_journal().running.tid == handle.tid;
            while self.with(running) {
                self.sleeping(Sleep::Transaction, self.reiser_wait()).await;
            }
            self.sleeping(Sleep::Log, self.reiser_commit_up_to(handle.tid))
                .await;
        }
    }

    /// Ends the running transaction, now, and waits for its commit
    /// (`reiserfs_sync_fs`). `always`: even if nothing was logged (`sync_fs`;
    /// `write_super` looks first).
    pub(super) async fn reiser_sync_journal(&self, always: bool) {
        if always || self.with(|s| s.reiser_journal().super_dirty) {
            let handle = self.reiser_begin(1).await;
            self.with(|s| s.reiser_log_superblock());
            self.reiser_close(handle, Close::Wait).await;
        }
    }

    /// Brings a transaction to the disk for an fsync: waits a tick at a time
    /// while others add to it (`reiserfs_commit_for_inode`).
    pub(super) async fn reiser_commit_transaction(&self, tid: u64) {
        let handles = |s: &mut View<'_, Volume>| {
            let t = &mut s.reiser_journal().running;
            t.commit_pending |= t.tid == tid;
            (t.tid == tid).then_some(t.handles)
        };
        let mut before = self.with(handles);
        while before.is_some() {
            let next = self.host.jiffies().plus(1);
            self.sleep_until_tick(next).await;
            let now = self.with(handles);
            if now == before {
                let handle = self.reiser_begin(1).await;
                // Somebody may have ended it meanwhile.
                let how = if self.with(handles).is_some() {
                    Close::Wait
                } else {
                    Close::Batch
                };
                self.reiser_close(handle, how).await;
                break;
            }
            before = now;
        }
        self.sleeping(Sleep::Log, self.reiser_commit_up_to(tid))
            .await;
    }
}

impl Transaction {
    /// Whether somebody waits to commit it.
    pub(super) fn commit_pending(&self) -> bool {
        self.commit_pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_transaction_is_in_the_way_when_a_full_one_would_reach_it() {
        let mut j = Journal::new(8192);
        assert!(!j.may_overwrite());
        for n in 0..7 {
            j.running.blocks = (0..998).map(|b| n * 2000 + b).collect();
            j.rotate();
        }
        // 7 times 1000 blocks used, and 1024 + 1 to come, of 8192.
        assert!(!j.may_overwrite());
        j.running.blocks = (0..165).collect();
        j.rotate();
        assert!(j.may_overwrite(), "7167 and 1025 make 8192");
        j.ended.pop_front();
        assert!(!j.may_overwrite());
    }

    #[test]
    fn a_block_belongs_to_the_newest_transaction() {
        let mut j = Journal::new(8192);
        assert!(j.add(5) && !j.add(5));
        j.rotate();
        assert!(j.add(5) && j.add(6));
        assert_eq!(j.newest[&5], 2);
        j.forget(5);
        assert_eq!(j.running.blocks, [6]);
        assert_eq!((j.start, j.ended[0].log_blocks()), (3, 3));
    }
}
