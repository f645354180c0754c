// SPDX-License-Identifier: MIT OR Apache-2.0
//! kjournald: closes the running transaction and brings it to the disk
//! (fs/jbd/commit.c, 2.6.28).
//!
//! In this order: no new handles, wait for the open ones; ordered data, wait;
//! revoke records; metadata into the log behind a descriptor per batch, wait;
//! commit block, wait. Not written: the journal's superblock at the first
//! commit.

use super::journal::{Checkpoint, Transaction};
use super::{JournalRules, Journalled};
use crate::mount::{Mount, View};
use blklab_pagecache::{BioWork, FileId, Host, Place, Taken, WaitOrder};
use blklab_types::{BioFlags, Op, PAGE_SECTORS};

/// Revoke records in a block: its bytes behind a header of 16, at 4 each
/// (`journal_write_revoke_records`).
const REVOKES: u64 = (4096 - 16) / 4;

impl<V: Journalled> View<'_, V> {
    /// Looks at one ordered page; takes it if it is to be written.
    fn take_ordered(&mut self, place: Place) -> Taken {
        let (id, page) = place;
        if !self.journal().awaits(place) {
            return Taken::Clean;
        }
        let taken = self.take_buffer(place);
        if taken != Taken::Busy {
            self.journal().ordered[id].committing.clear(page..page + 1);
        }
        taken
    }

    /// The running transaction becomes the committing one.
    fn switch_transaction(&mut self) {
        let j = self.journal();
        assert!(j.committing.is_none(), "one transaction commits at a time");
        let mut t = j.running.take().expect("there is something to commit");
        assert!(
            t.locked && t.has_no_handles(),
            "transaction {} commits with open handles",
            t.tid
        );
        t.metadata.retain(|place| {
            let Some(b) = j.buffers.get_mut(place) else {
                return false;
            };
            b.listed = false;
            if std::mem::take(&mut b.running) {
                assert!(!b.committing, "{place:?} commits in two transactions");
                b.committing = true;
                return true;
            }
            // It was forgotten.
            if !b.committing {
                j.buffers.remove(place);
            }
            false
        });
        let files: Vec<FileId> = t.data.iter().map(|(file, _)| *file).collect();
        j.committing = Some(t);
        for id in files {
            let ordered = &mut self.journal().ordered[id];
            if ordered.running.count() > 0 {
                ordered.committing = std::mem::take(&mut ordered.running);
            }
        }
    }

    /// A committed block is the device's again: dirty, unless the running
    /// transaction has changed it since (`__journal_refile_buffer`).
    fn release_committed(&mut self, place: Place, now: blklab_types::Jiffies) {
        let j = self.journal();
        let b = j.buffers.get_mut(&place);
        let b = b.expect("a block that commits is known");
        assert!(b.committing, "{place:?} is released by a commit without it");
        (b.committing, b.shadow) = (false, false);
        let dropped = std::mem::take(&mut b.dropped);
        if b.running {
            return;
        }
        if !b.listed {
            j.buffers.remove(&place);
        }
        if !dropped {
            self.files[place.0.idx()].pinned.clear(place.1..place.1 + 1);
            self.dirty_buffer(place, now);
        }
    }
}

impl<H: Host, V: Journalled> Mount<'_, H, V> {
    /// Starts the journal's thread and its timer, as at mount.
    pub(crate) fn start_journal(&self) {
        self.spawn(V::THREAD, |kept| async move {
            kept.mount().kjournald().await;
        });
        self.spawn("jbd_timer", |kept| async move {
            kept.mount().commit_timer().await;
        });
    }

    /// Asks for a commit when the running transaction has expired
    /// (`commit_timeout`).
    async fn commit_timer(&self) {
        let me = self.host.current();
        self.with(|s| s.journal().timer = Some(me));
        loop {
            let Some(expires) = self.with(|s| s.journal().expires()) else {
                self.host.suspend().await;
                continue;
            };
            if self.host.jiffies() < expires {
                self.sleep_until_tick(expires).await;
                continue;
            }
            self.waking(|s, wake| {
                let j = s.journal();
                let tid = j.running.as_ref().map_or(0, |t| t.tid);
                j.requested = j.requested.max(tid);
                wake.extend(j.thread);
            });
        }
    }

    async fn kjournald(&self) {
        let me = self.host.current();
        self.with(|s| s.journal().thread = Some(me));
        loop {
            let wanted = self.with(|s| {
                let j = s.journal();
                j.running.as_ref().is_some_and(|t| j.requested >= t.tid)
            });
            if wanted {
                self.commit().await;
            } else {
                self.host.suspend().await;
            }
        }
    }

    /// Commits the running transaction (`journal_commit_transaction`,
    /// `jbd2_journal_commit_transaction`): ordered data go first
    /// (`journal_submit_data_buffers`).
    async fn commit(&self) {
        self.with(|s| {
            if let Some(t) = s.journal().running.as_mut() {
                t.locked = true;
            }
        });
        while self.with(|s| s.journal().updates()) > 0 {
            self.host.suspend().await;
        }
        self.waking(|s, wake| {
            s.switch_transaction();
            s.journal().wake_all(wake);
        });
        let rules = self.with(|s| s.journal().rules);
        let (data, inodes, metadata, nr_revoked) = self.with(|s| {
            let t = s.journal().committing.as_mut();
            let t = t.expect("it has just been switched");
            let data = std::mem::take(&mut t.data);
            let inodes = std::mem::take(&mut t.inodes);
            (data, inodes, t.metadata.clone(), t.nr_revoked)
        });
        let flags = self.with(|s| {
            let t = s.journal().committing.as_ref();
            t.map_or(BioFlags::NONE, |t| rules.commit_flags(t.sync, t.waited))
        });
        let take = |place| self.with(|s| s.take_ordered(place));
        self.write_ordered(data, JournalRules::BATCH, WaitOrder::Runs, flags, take)
            .await;
        self.write_ordered_inodes(&inodes).await;
        let mut log_blocks = 0;
        if !metadata.is_empty() || nr_revoked > 0 {
            log_blocks = self
                .write_metadata(&metadata, nr_revoked, &inodes, flags)
                .await;
            log_blocks += self.write_commit_block(rules.commit_block).await;
        } else {
            self.wait_ordered_inodes(&inodes).await;
        }
        self.finish_commit(metadata, log_blocks);
    }

    /// Writes the commit block and waits for it (`journal_write_commit_record`); if
    /// the disk refuses the barrier, again without, and all that follow. Returns
    /// the blocks of the log that it took.
    async fn write_commit_block(&self, flags: BioFlags) -> u64 {
        self.with(|s| {
            let j = s.journal();
            j.log_done.clear();
            j.log_failed = false;
        });
        self.write_log(flags).await;
        self.wait_log(0).await;
        let refused = self.with(|s| std::mem::take(&mut s.journal().log_failed));
        if !refused || !flags.has(BioFlags::BARRIER) {
            return 1;
        }
        let plain = flags.without(BioFlags::BARRIER);
        self.with(|s| {
            let j = s.journal();
            j.rules.commit_block = plain;
            j.log_done.clear();
            // The same block of the log.
            j.head = if j.head == 1 { j.blocks } else { j.head } - 1;
            j.free += 1;
        });
        self.write_log(plain).await;
        self.wait_log(0).await;
        1
    }

    /// Its blocks wait for a checkpoint from now on
    /// (`__journal_insert_checkpoint`), and what it freed may be used.
    fn finish_commit(&self, blocks: Vec<Place>, log_blocks: u64) {
        let now = self.host.jiffies();
        let mut sorted = blocks.clone();
        sorted.sort_unstable();
        self.waking(|s, wake| {
            for block in &blocks {
                s.release_committed(*block, now);
            }
            let j = s.journal();
            // A block that is committed again waits for the later checkpoint.
            for c in &mut j.checkpoints {
                c.blocks.retain(|b| sorted.binary_search(b).is_err());
            }
            if log_blocks > 0 {
                j.checkpoints.push_back(Checkpoint { blocks, log_blocks });
            }
            let done = j.committing.take();
            let done: Transaction = done.expect("only its own commit ends a transaction");
            assert!(
                done.tid > j.committed,
                "transaction {} is committed behind {}",
                done.tid,
                j.committed
            );
            j.committed = done.tid;
            j.check_log();
            j.wake_all(wake);
            for run in done.freed {
                s.volume.release(run);
            }
            if cfg!(debug_assertions) {
                s.volume.check_space();
            }
        });
    }

    /// Writes revoke records and metadata, behind descriptors, to the log
    /// (`journal_write_metadata_buffer`); waits for all, and before that for the
    /// data of files (jbd2). Returns the blocks of the log that it took.
    async fn write_metadata(
        &self,
        blocks: &[Place],
        nr_revoked: u64,
        files: &[FileId],
        flags: BioFlags,
    ) -> u64 {
        let per_descriptor = self.with(|s| {
            let j = s.journal();
            j.log_done.clear();
            j.rules.batch - 1
        });
        let mut descriptors = Vec::with_capacity(nr_descriptors(blocks.len(), per_descriptor));
        self.host.start_plug();
        let revoke_blocks = nr_revoked.div_ceil(REVOKES) as usize;
        for nth in 0..revoke_blocks {
            self.write_log(flags).await;
            descriptors.push(nth);
        }
        let mut nth = revoke_blocks;
        for batch in blocks.chunks(per_descriptor) {
            descriptors.push(nth);
            self.with(|s| {
                for block in batch {
                    if let Some(b) = s.journal().buffers.get_mut(block) {
                        // Changed since: a frozen copy goes to the log.
                        b.shadow = !b.running;
                    }
                }
            });
            for _ in 0..=batch.len() {
                self.write_log(flags).await;
                nth += 1;
            }
        }
        self.wait_ordered_inodes(files).await;
        self.host.finish_plug();
        // From the last to the first, so that it is woken less often.
        let mut at = nth;
        for batch in blocks.chunks(per_descriptor).rev() {
            for block in batch.iter().rev() {
                at -= 1;
                self.wait_log(at).await;
                self.waking(|s, wake| {
                    let j = s.journal();
                    if let Some(b) = j.buffers.get_mut(block)
                        && std::mem::take(&mut b.shadow)
                    {
                        j.wake_all(wake);
                    }
                });
            }
            // Its descriptor.
            at -= 1;
        }
        for descriptor in descriptors.into_iter().rev() {
            self.wait_log(descriptor).await;
        }
        nth as u64
    }

    /// Submits the next block of the log (`journal_next_log_block`).
    async fn write_log(&self, flags: BioFlags) {
        let (sector, mark, bio) = self.with(|s| {
            s.stats.write_bios += 1;
            let j = s.journal();
            let mark = j.rules.mark;
            let sector = j.sector(j.head);
            j.head += 1;
            if j.head == j.blocks {
                j.head = 1;
            }
            assert!(j.free > 0, "a transaction fits into the log");
            j.free -= 1;
            j.log_done.push(false);
            let nth = j.log_done.len() - 1;
            (sector, mark, s.bios.insert(BioWork::Filesystem(nth as u64)))
        });
        let flags = flags | mark;
        self.submit_sectors(Op::Write, flags, sector, PAGE_SECTORS as u32, bio)
            .await;
    }

    /// Sleeps until a block of the log has arrived.
    async fn wait_log(&self, nth: usize) {
        let done = || self.with(|s| s.journal().log_done.get(nth).copied().unwrap_or(true));
        while !done() {
            self.host.unplug();
            if !done() {
                self.host.suspend_for_io().await;
            }
        }
    }
}

/// Descriptors for so many blocks.
fn nr_descriptors(blocks: usize, per_descriptor: usize) -> usize {
    blocks.div_ceil(per_descriptor)
}

impl<V: Journalled> View<'_, V> {
    /// A block of the log has arrived (`journal_end_buffer_io_sync`).
    pub(crate) fn end_log(&mut self, nth: u64, failed: bool, wake: &mut Vec<blklab_types::TaskId>) {
        let j = self.journal();
        j.log_failed |= failed;
        let arrived = std::mem::replace(&mut j.log_done[nth as usize], true);
        assert!(!arrived, "block {nth} of a commit arrives in the log twice");
        wake.extend(j.thread);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_blocks_take_1003_of_the_log() {
        assert_eq!(
            1000 + nr_descriptors(1000, JournalRules::BATCH - 1) + 1,
            1003
        );
    }
}
