// SPDX-License-Identifier: MIT OR Apache-2.0
//! Making room in the log (fs/jbd/checkpoint.c, 2.6.28).
//!
//! The task that needs the room writes the blocks of the oldest transactions
//! to their places, in batches, and then the journal's superblock. Others that
//! need room wait for it.

use super::Journalled;
use super::journal::Journal;
use crate::mount::{Mount, View};
use blklab_pagecache::{BioWork, File, Host, Place};
use blklab_types::{BioFlags, Op, PAGE_SECTORS};

/// Blocks written at a time (`NR_BATCH`).
const BATCH: usize = 64;

/// The next thing to do for the oldest transaction.
enum Step {
    /// The log has room.
    Enough,
    /// Nothing is left to write back: a transaction must be committed.
    Commit(u64),
    /// These blocks go to their places.
    Write(Vec<Place>),
    /// Somebody writes this one.
    Busy(Place),
    /// It is done with; the log's tail moves.
    Advance,
}

impl<H: Host, V: Journalled> Mount<'_, H, V> {
    /// Makes room for a transaction, or waits for who does (`__log_wait_for_space`,
    /// `log_do_checkpoint`).
    pub(super) async fn make_log_space(&self) {
        if self.with(|s| std::mem::replace(&mut s.journal().checkpointing, true)) {
            self.journal_wait().await;
            return;
        }
        loop {
            match self.with(|s| s.checkpoint_step()) {
                Step::Enough => break,
                Step::Commit(tid) => {
                    self.waking(|s, wake| {
                        let j = s.journal();
                        j.requested = j.requested.max(tid);
                        wake.extend(j.thread);
                    });
                    self.wait_commit(tid).await;
                }
                Step::Write(mut batch) => {
                    let blocks = batch.clone();
                    self.submit_buffers(&mut batch, self.checkpoint_flags())
                        .await;
                    for (id, page) in blocks {
                        self.wait_buffer(id, page).await;
                    }
                }
                Step::Busy((id, page)) => self.wait_buffer(id, page).await,
                Step::Advance => self.advance_tail().await,
            }
        }
        self.waking(|s, wake| {
            let j = s.journal();
            let held = std::mem::replace(&mut j.checkpointing, false);
            assert!(held, "two tasks make room in the log");
            j.wake_all(wake);
        });
    }

    fn checkpoint_flags(&self) -> BioFlags {
        let rules = self.with(|s| s.journal().rules);
        if rules.sync_checkpoint {
            rules.sync | rules.mark
        } else {
            BioFlags::NONE
        }
    }

    /// Forgets the oldest transaction, and those behind it of which nothing is left
    /// to write, and writes the journal's superblock (`cleanup_journal_tail`,
    /// `journal_update_superblock`).
    async fn advance_tail(&self) {
        let me = self.host.current();
        let (sector, flags, bio) = self.with(|s| {
            s.drop_checkpoints();
            let j = s.journal();
            let flags = j.rules.sync | BioFlags::UNPLUG | j.rules.mark;
            (j.sector(0), flags, s.bios.insert(BioWork::Waited(me)))
        });
        self.submit_sectors(Op::Write, flags, sector, PAGE_SECTORS as u32, bio)
            .await;
        while self.with(|s| s.bios.is_in_flight(bio)) {
            self.host.unplug();
            if self.with(|s| s.bios.is_in_flight(bio)) {
                self.host.suspend_for_io().await;
            }
        }
    }
}

impl<V: Journalled> View<'_, V> {
    /// Files and the journal, to be looked at together.
    fn files_and_journal(&mut self) -> (&mut Vec<File>, &mut Journal) {
        (&mut self.state.files, self.volume.journal())
    }

    /// The tail of the log moves behind the oldest transaction and those that are
    /// in their places (`__journal_drop_transaction`).
    fn drop_checkpoints(&mut self) {
        let (files, j) = self.files_and_journal();
        loop {
            let oldest = j.checkpoints.pop_front();
            j.free += oldest.expect("there is one to be done with").log_blocks;
            assert!(
                j.free < j.blocks,
                "a checkpoint frees blocks that were not used"
            );
            let buffers = &j.buffers;
            let waits = |place: &Place| {
                let file = &files[place.0.idx()];
                let held = buffers.get(place);
                held.is_some_and(|b| b.running || b.committing)
                    || file.buffers.dirty.test(place.1)
                    || file.buffers.locked.test(place.1)
                    || file.writeback.test(place.1)
            };
            let next = j.checkpoints.front();
            if next.is_none_or(|c| c.blocks.iter().any(waits)) {
                return;
            }
        }
    }

    /// Looks at the blocks of the oldest transaction (`log_do_checkpoint`,
    /// `__process_buffer`).
    fn checkpoint_step(&mut self) -> Step {
        let (files, j) = self.files_and_journal();
        let running = j.running.as_ref().map(|t| t.tid);
        let committing = j.committing.as_ref().map(|t| t.tid);
        let needed = j.max_credits() + j.committing.as_ref().map_or(0, |t| t.metadata.len() as u64);
        if j.free >= needed {
            return Step::Enough;
        }
        let Some(oldest) = j.checkpoints.front_mut() else {
            let next = committing.or(running);
            return Step::Commit(next.expect("what fills the log is in a transaction"));
        };
        let (mut batch, mut busy, mut held) = (Vec::new(), None, None);
        oldest.blocks.retain(|place| {
            let (id, page) = *place;
            let file = &mut files[id.idx()];
            if let Some(b) = j.buffers.get(place).filter(|b| b.running || b.committing) {
                held = held.or(Some(b.committing));
                return true;
            }
            if file.buffers.locked.test(page) || file.writeback.test(page) {
                busy = busy.or(Some(*place));
                return true;
            }
            if batch.len() == BATCH {
                return true;
            }
            let run = page..page + 1;
            if file.buffers.dirty.clear(run.clone()) > 0 {
                file.buffers.locked.set(run);
                batch.push(*place);
            }
            false
        });
        match (batch.is_empty(), busy, held) {
            (false, ..) => Step::Write(batch),
            (true, Some(place), _) => Step::Busy(place),
            (true, None, Some(by_committing)) => {
                let holder = if by_committing { committing } else { running };
                Step::Commit(holder.expect("who holds a block is there"))
            }
            (true, None, None) => Step::Advance,
        }
    }
}
