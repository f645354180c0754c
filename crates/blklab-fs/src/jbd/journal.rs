// SPDX-License-Identifier: MIT OR Apache-2.0
//! The journal's state, handles, and access to metadata blocks
//! (fs/jbd/transaction.c, 2.6.28).
//!
//! One transaction runs, at most one commits, the others wait to be
//! checkpointed. A task changes metadata under a handle of the running one. It
//! sleeps to open a handle while that transaction is being closed, has too
//! many credits, or the log too little room; and to change a block while its
//! only copy is on its way to the log.

use super::{JournalRules, Journalled};
use crate::mount::{Mount, PerFile, View};
use blklab_pagecache::{FileId, Host, PageBits, Place, Sleep};
use blklab_types::{BioFlags, Jiffies, PAGE_SECTORS, TaskId};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// A transaction of the journal (`transaction_t`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Transaction {
    /// `t_tid`.
    pub(super) tid: u64,
    /// It is being closed: no more handles (`T_LOCKED`).
    pub(super) locked: bool,
    /// Open handles, and the credits that they hold (`t_updates`,
    /// `t_outstanding_credits`).
    updates: u32,
    credits: u64,
    /// When it is old enough to be committed (`t_expires`).
    expires: Jiffies,
    /// Its metadata blocks, in order of the first change (`t_buffers`); some may
    /// have been forgotten since.
    pub(super) metadata: Vec<Place>,
    /// Blocks that it freed: nobody takes them before it is committed.
    pub(crate) freed: Vec<Range<u64>>,
    /// Freed blocks of metadata, which a recovery must not write.
    pub(crate) nr_revoked: u64,
    /// Pages whose data go to the disk first, in order of the first write
    /// (`t_sync_datalist`).
    pub(super) data: Vec<(FileId, Range<u64>)>,
    /// Files whose new blocks' data go to the disk first (jbd2; `t_inode_list`).
    pub(crate) inodes: Vec<FileId>,
    /// A handle was synchronous (`t_synchronous_commit`).
    pub(super) sync: bool,
    /// A task waits for it.
    pub(super) waited: bool,
}

/// A committed transaction whose blocks may not be in their places
/// (`t_checkpoint_list`).
#[derive(Clone, Debug)]
pub(crate) struct Checkpoint {
    pub(super) blocks: Vec<Place>,
    pub(super) log_blocks: u64,
}

/// Which transactions hold a metadata block (`journal_head`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Buffer {
    pub(super) running: bool,
    pub(super) committing: bool,
    /// It stands in the running transaction's list.
    pub(super) listed: bool,
    /// Its file's page is gone: it is not to be written to its place.
    pub(super) dropped: bool,
    /// It is being written to the log from its only copy (`BJ_Shadow`).
    pub(super) shadow: bool,
}

/// Pages of a file whose data the running, and the committing, transaction awaits.
#[derive(Clone, Debug, Default)]
pub(super) struct Ordered {
    pub(super) running: PageBits,
    pub(super) committing: PageBits,
}

impl Transaction {
    /// Whether all handles are closed, and have given back their credits.
    pub(super) fn has_no_handles(&self) -> bool {
        self.updates == 0 && self.credits == 0
    }

    /// Whether it may have so many credits more.
    fn fits(&self, credits: u64, max: u64) -> bool {
        self.metadata.len() as u64 + self.credits + credits <= max
    }
}

/// The journal (`journal_t`).
#[derive(Debug)]
pub(crate) struct Journal {
    pub(super) rules: JournalRules,
    /// Sectors of its blocks, in pieces that are contiguous on the disk: the
    /// first block, its sector.
    places: Vec<(u64, u64)>,
    /// `j_running_transaction`.
    pub(crate) running: Option<Transaction>,
    /// `j_committing_transaction`.
    pub(super) committing: Option<Transaction>,
    /// `j_transaction_sequence`.
    last_tid: u64,
    /// The youngest transaction whose commit is wanted (`j_commit_request`), and
    /// that is committed (`j_commit_sequence`).
    pub(super) requested: u64,
    pub(super) committed: u64,
    pub(super) buffers: BTreeMap<Place, Buffer>,
    pub(super) ordered: PerFile<Ordered>,
    /// `j_maxlen`.
    pub(super) blocks: u64,
    /// Next block of the log, and how many are free (`j_head`, `j_free`).
    pub(super) head: u64,
    pub(super) free: u64,
    /// `j_checkpoint_transactions`.
    pub(super) checkpoints: VecDeque<Checkpoint>,
    pub(super) checkpointing: bool,
    /// Which of the log blocks on their way have arrived.
    pub(super) log_done: Vec<bool>,
    /// One of them failed.
    pub(super) log_failed: bool,
    /// Tasks that wait for anything of the journal to change.
    pub(super) waiters: Vec<TaskId>,
    pub(super) thread: Option<TaskId>,
    pub(super) timer: Option<TaskId>,
}

/// The right to change metadata under the running transaction (`handle_t`).
#[derive(Debug)]
pub(crate) struct Handle {
    credits: u64,
}

impl Journal {
    /// An empty journal of so many blocks, block by block at these sectors.
    pub(crate) fn new(rules: JournalRules, blocks: u64, sector_of: impl Fn(u64) -> u64) -> Journal {
        let mut places: Vec<(u64, u64)> = Vec::new();
        for block in 0..blocks {
            let sector = sector_of(block);
            let follows = places
                .last()
                .is_some_and(|(first, at)| at + (block - first) * PAGE_SECTORS == sector);
            if !follows {
                places.push((block, sector));
            }
        }
        Journal {
            rules,
            places,
            blocks,
            // Block 0 is the superblock.
            head: 1,
            free: usable(blocks),
            running: None,
            committing: None,
            last_tid: 0,
            requested: 0,
            committed: 0,
            buffers: BTreeMap::new(),
            ordered: PerFile::default(),
            checkpoints: VecDeque::new(),
            checkpointing: false,
            log_done: Vec::new(),
            log_failed: false,
            waiters: Vec::new(),
            thread: None,
            timer: None,
        }
    }

    /// Checks that each usable block of the log is free, or is that of a transaction
    /// that waits for its checkpoint, while none commits.
    pub(super) fn check_log(&self) {
        let held: u64 = self.checkpoints.iter().map(|c| c.log_blocks).sum();
        debug_assert_eq!(
            self.free + held,
            usable(self.blocks),
            "free blocks of the log and those of {} checkpoints are not all there are",
            self.checkpoints.len()
        );
    }

    /// The sector of a block of the journal.
    pub(super) fn sector(&self, block: u64) -> u64 {
        let after = self.places.partition_point(|(first, _)| *first <= block);
        let place = after.checked_sub(1).and_then(|i| self.places.get(i));
        let (first, sector) = place.expect("each block of the journal has a place");
        sector + (block - first) * PAGE_SECTORS
    }

    /// Flags of commit blocks; without a barrier once the disk has refused one.
    pub(crate) fn commit_block_flags(&self) -> BioFlags {
        self.rules.commit_block
    }

    /// Pages of a file are dropped: no transaction awaits their data.
    pub(crate) fn forget_data(&mut self, id: FileId, run: &Range<u64>) {
        let ordered = &mut self.ordered[id];
        ordered.running.clear(run.clone());
        ordered.committing.clear(run.clone());
    }

    /// Whether the committing transaction awaits a page's data.
    pub(crate) fn awaits(&self, (id, page): Place) -> bool {
        self.ordered[id].committing.test(page)
    }

    /// The first page of a run whose data the committing transaction awaits.
    pub(crate) fn first_awaited(&self, id: FileId, run: Range<u64>) -> Option<u64> {
        self.ordered[id].committing.next_set(run.start, run.end)
    }

    /// A file is gone.
    pub(crate) fn forget_file(&mut self, id: FileId) {
        self.ordered.forget(id);
    }

    /// The youngest transaction that is committed.
    pub(crate) fn committed_tid(&self) -> u64 {
        self.committed
    }

    /// The transaction that a handle belongs to.
    pub(crate) fn running_tid(&self) -> u64 {
        self.running.as_ref().map_or(0, |t| t.tid)
    }

    /// Most blocks of a transaction (`j_max_transaction_buffers`).
    pub(crate) fn max_credits(&self) -> u64 {
        self.blocks / 4
    }

    /// Whether the log has room for another transaction (`__log_space_left`,
    /// `jbd_space_needed`).
    fn has_room(&self) -> bool {
        let committing = self
            .committing
            .as_ref()
            .map_or(0, |t| t.metadata.len() as u64);
        self.free >= self.max_credits() + committing
    }

    /// Takes whoever waits for the journal.
    pub(super) fn wake_all(&mut self, wake: &mut Vec<TaskId>) {
        wake.append(&mut self.waiters);
    }

    /// Asks for the commit of a transaction (`__log_start_commit`).
    fn request(&mut self, tid: u64, wake: &mut Vec<TaskId>) {
        if self.requested < tid {
            self.requested = tid;
            wake.extend(self.thread);
        }
    }

    /// Open handles of the transaction that is being closed.
    pub(super) fn updates(&self) -> u32 {
        self.running.as_ref().map_or(0, |t| t.updates)
    }

    /// When the running transaction expires, if its commit is not under way.
    pub(super) fn expires(&self) -> Option<Jiffies> {
        self.running
            .as_ref()
            .filter(|t| !t.locked && self.requested < t.tid)
            .map(|t| t.expires)
    }

    /// Whether the running transaction takes a handle of so many blocks.
    fn takes(&self, credits: u64) -> bool {
        let (max, has_room) = (self.max_credits(), self.has_room());
        let running = self.running.as_ref();
        running.is_some_and(|t| !t.locked && has_room && t.fits(credits, max))
    }
}

/// Blocks of the log that transactions may fill: its superblock and 32 more are kept.
fn usable(blocks: u64) -> u64 {
    blocks.saturating_sub(33)
}

/// What stands in the way of a handle.
enum Start {
    Open(Handle),
    Wait,
    Checkpoint,
}

impl<V: Journalled> View<'_, V> {
    /// Tries to open a handle (`start_this_handle`); says what to wait for.
    fn try_start(
        &mut self,
        credits: u64,
        now: Jiffies,
        interval: u64,
        wake: &mut Vec<TaskId>,
    ) -> Start {
        let j = self.journal();
        if j.running.is_none() {
            j.last_tid += 1;
            j.running = Some(Transaction {
                tid: j.last_tid,
                expires: now.plus(interval),
                ..Transaction::default()
            });
            wake.extend(j.timer);
        }
        let max = j.max_credits();
        let Some(t) = j.running.as_ref() else {
            return Start::Wait;
        };
        if t.locked {
            return Start::Wait;
        }
        if !t.fits(credits, max) {
            let tid = t.tid;
            j.request(tid, wake);
            return Start::Wait;
        }
        match self.open_at_once(credits) {
            Some(handle) => Start::Open(handle),
            None => Start::Checkpoint,
        }
    }

    /// Closes a handle (`journal_stop`).
    fn stop(&mut self, handle: &Handle, sync: bool, now: Jiffies, wake: &mut Vec<TaskId>) {
        let j = self.journal();
        let t = j.running.as_mut();
        let t = t.expect("a transaction runs while a handle is open");
        assert!(
            t.updates > 0 && t.credits >= handle.credits,
            "a handle of {} credits is closed twice: {} handles are open, with {} credits",
            handle.credits,
            t.updates,
            t.credits
        );
        t.updates -= 1;
        t.credits -= handle.credits;
        t.sync |= sync;
        let (tid, due) = (t.tid, sync || now >= t.expires);
        if t.locked && t.updates == 0 {
            wake.extend(j.thread);
        }
        if due {
            j.request(tid, wake);
        }
    }

    /// Takes a block into the running transaction, unless it is being written
    /// (`do_get_write_access`). Returns whether that was possible.
    fn try_access(&mut self, place: Place) -> bool {
        let j = self.journal();
        assert!(
            j.updates() > 0,
            "{place:?} is changed under no open handle of the running transaction"
        );
        let buffer = j.buffers.entry(place).or_default();
        if buffer.running {
            return true;
        }
        if buffer.shadow {
            return false;
        }
        buffer.running = true;
        if !std::mem::replace(&mut buffer.listed, true)
            && let Some(t) = j.running.as_mut()
        {
            t.metadata.push(place);
        }
        self.cache_block(place);
        let (id, run) = (place.0, place.1..place.1 + 1);
        let file = &mut self.state.files[id.idx()];
        file.buffers.dirty.clear(run.clone());
        file.pinned.set(run.clone());
        self.state.lru.touch(file, run);
        true
    }

    /// A block of metadata has been freed, or a page of journalled data
    /// dropped: the running transaction has nothing to do with it any more
    /// (`journal_forget`).
    pub(crate) fn forget(&mut self, place: Place) {
        let (id, run) = (place.0, place.1..place.1 + 1);
        let metadata = self.files[id.idx()].metadata;
        let j = self.journal();
        if let Some(buffer) = j.buffers.get_mut(&place) {
            buffer.running = false;
            buffer.dropped |= buffer.committing && !metadata;
            if !buffer.committing || !metadata {
                self.files[id.idx()].pinned.clear(run.clone());
            }
        }
        self.clean_page(id, run);
    }

    /// Adds the data of pages to those that the running transaction awaits
    /// (`journal_dirty_data`).
    pub(crate) fn attach_data(&mut self, id: FileId, run: Range<u64>) {
        let j = self.journal();
        let ordered = &mut j.ordered[id];
        ordered.committing.clear(run.clone());
        let t = j.running.as_mut();
        let t = t.expect("data are attached under a handle");
        assert!(
            t.updates > 0 || !t.locked,
            "data of {id:?} are attached to a transaction that is closed"
        );
        let mut at = run.start;
        while at < run.end {
            let first = ordered.running.next_clear(at, run.end);
            at = ordered.running.next_set(first, run.end).unwrap_or(run.end);
            if first == at {
                continue;
            }
            ordered.running.set(first..at);
            match t.data.last_mut() {
                Some((file, last)) if *file == id && last.end == first => last.end = at,
                _ => t.data.push((id, first..at)),
            }
        }
    }

    /// Whether a handle could be opened and closed now, one after another as often
    /// as one likes, and nothing else would come of it.
    pub(crate) fn handles_are_free(&mut self, credits: u64, now: Jiffies) -> bool {
        let j = self.journal();
        let commits_soon = j.expires().is_some_and(|time| now >= time);
        !commits_soon && j.takes(credits)
    }

    /// Whether the running transaction has a metadata block already and nobody writes
    /// it: access to it changes nothing and does not sleep.
    pub(crate) fn has_access(&mut self, place: Place) -> bool {
        let (id, page) = place;
        let file = &self.state.files[id.idx()];
        let is_written = file.buffers.locked.test(page) || file.writeback.test(page);
        let buffer = self.volume.journal().buffers.get(&place);
        !is_written && buffer.is_some_and(|b| b.running)
    }

    /// Opens a handle, if that is possible at once (`start_this_handle`).
    pub(crate) fn open_at_once(&mut self, credits: u64) -> Option<Handle> {
        let j = self.journal();
        if !j.takes(credits) {
            return None;
        }
        let t = j.running.as_mut()?;
        t.updates += 1;
        t.credits += credits;
        Some(Handle { credits })
    }
}

impl<H: Host, V: Journalled> Mount<'_, H, V> {
    /// Sleeps until something of the journal changes; the caller tests again.
    pub(super) async fn journal_wait(&self) {
        let me = self.host.current();
        self.with(|s| s.journal().waiters.push(me));
        self.host.suspend().await;
        self.with(|s| s.journal().waiters.retain(|t| *t != me));
    }

    /// Opens a handle for so many blocks (`journal_start`).
    pub(crate) async fn journal_start(&self, credits: u64) -> Handle {
        loop {
            if let Some(handle) = self.with(|s| s.open_at_once(credits)) {
                return handle;
            }
            let now = self.host.jiffies();
            let interval = self.commit_interval();
            let mut start = Start::Wait;
            self.waking(|s, wake| start = s.try_start(credits, now, interval, wake));
            match start {
                Start::Open(handle) => return handle,
                Start::Wait => self.sleeping(Sleep::Transaction, self.journal_wait()).await,
                Start::Checkpoint => self.sleeping(Sleep::LogSpace, self.make_log_space()).await,
            }
        }
    }

    fn commit_interval(&self) -> u64 {
        u64::from(self.with(|s| s.journal().rules.commit_s)) * u64::from(self.host.hz().0)
    }

    /// Closes a handle (`journal_stop`).
    pub(crate) fn journal_stop(&self, handle: Handle) {
        self.journal_stop_after(handle, |_| {});
    }

    /// Does the last thing under a handle, and closes it.
    pub(crate) fn journal_stop_after(&self, handle: Handle, last: impl FnOnce(&mut View<'_, V>)) {
        let now = self.host.jiffies();
        self.waking(|s, wake| {
            last(s);
            s.stop(&handle, false, now, wake);
        });
    }

    /// Makes a metadata block part of the running transaction
    /// (`journal_get_write_access`).
    pub(crate) async fn journal_access(&self, place: Place) {
        loop {
            // A block on its way to its own place is locked.
            self.wait_buffer(place.0, place.1).await;
            if self.with(|s| s.try_access(place)) {
                return;
            }
            self.host.unplug();
            self.sleeping(Sleep::Log, self.journal_wait()).await;
        }
    }

    /// Commits a transaction if it still runs, and waits for it; says whether
    /// there was need to (`jbd2_complete_transaction`).
    pub(crate) async fn complete_transaction(&self, tid: u64) -> bool {
        if self.with(|s| s.journal().committed >= tid) {
            return false;
        }
        self.waking(|s, wake| {
            let j = s.journal();
            if let Some(t) = j.running.as_mut().filter(|t| t.tid == tid) {
                t.sync = true;
                j.request(tid, wake);
            }
        });
        self.wait_commit(tid).await;
        true
    }

    /// Commits whatever runs or commits, and waits for it
    /// (`journal_force_commit`).
    pub(crate) async fn force_commit(&self) {
        let mut tid = 0;
        let now = self.host.jiffies();
        self.waking(|s, wake| {
            let j = s.journal();
            if let Some(t) = j.running.as_mut() {
                t.sync = true;
                t.expires = t.expires.min(now);
                tid = t.tid;
                j.request(tid, wake);
            } else if let Some(t) = &j.committing {
                tid = t.tid;
            }
        });
        self.wait_commit(tid).await;
    }

    /// Flushes the disk's cache behind what is committed, if there are barriers.
    pub(crate) async fn flush_behind_journal(&self) {
        let commit_block = self.with(|s| s.journal().commit_block_flags());
        if commit_block.any(BioFlags::FLUSH | BioFlags::BARRIER) {
            self.issue_flush(self.config.features.flush_flags).await;
        }
    }

    /// Sleeps until a transaction is committed (`log_wait_commit`).
    pub(crate) async fn wait_commit(&self, tid: u64) {
        while self.with(|s| {
            let j = s.journal();
            let both = [&mut j.running, &mut j.committing];
            for t in both.into_iter().flatten().filter(|t| t.tid == tid) {
                t.waited = true;
            }
            j.committed < tid
        }) {
            self.journal_wait().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::CommitSync;
    use super::*;

    #[test]
    fn a_transaction_may_have_a_quarter_of_the_log() {
        let journal = Journal::new(rules(), 32768, |block| block * 8);
        assert_eq!(journal.max_credits(), 8192);
    }

    #[test]
    fn blocks_lie_where_the_volume_has_them() {
        let journal = Journal::new(rules(), 3000, |b| 80 + b * 8 + (b / 1000) * 4096);
        assert_eq!(journal.places, [(0, 80), (1000, 12_176), (2000, 24_272)]);
        assert_eq!(journal.sector(999), 80 + 999 * 8);
        assert_eq!(journal.sector(2001), 24_280);
    }

    fn rules() -> JournalRules {
        JournalRules {
            commit_sync: CommitSync::Never,
            sync: BioFlags::SYNC,
            commit_block: BioFlags::NONE,
            mark: BioFlags::NONE,
            sync_checkpoint: false,
            commit_s: 5,
            batch: JournalRules::BATCH,
            writes_inodes: false,
        }
    }
}
