// SPDX-License-Identifier: MIT OR Apache-2.0
//! kjournald: closes the running transaction and brings it to the disk
//! (fs/jbd/commit.c, 2.6.28).
//!
//! In this order: no new handles, wait for the open ones; ordered data, wait;
//! metadata into the log behind a descriptor per batch, wait; commit block,
//! wait. Not written: revoke records (nothing is freed), the journal's
//! superblock at the first commit.

use super::journal::{Checkpoint, Transaction};
use crate::cache::PageCache;
use crate::file::FileId;
use crate::host::Host;
use crate::state::{BioWork, State};
use blklab_types::{BioFlags, Op, PAGE_SECTORS};
use std::ops::Range;

/// Buffers handed to the block layer at a time (block size over 8): a
/// descriptor and what it describes.
pub(crate) const BATCH: usize = 512;

/// What commit does with a page of its list.
enum Page {
    /// It is clean, or another transaction's.
    Drop,
    /// Somebody writes it already.
    Remember,
    /// Its buffer is dirty, and locked by somebody who writes it.
    Busy,
    /// Taken for writing.
    Write,
}

impl State {
    /// Looks at one ordered page; takes it if it is to be written.
    fn take_ordered(&mut self, id: FileId, page: u64) -> Page {
        let file = &mut self.files[id.idx()];
        let run = page..page + 1;
        if !file.ext.ordered_committing.test(page) {
            return Page::Drop;
        }
        let locked = file.ext.buffer_locked.test(page) || file.writeback.test(page);
        let dirty = file.ext.buffer_dirty.test(page);
        if locked && dirty {
            return Page::Busy;
        }
        file.ext.ordered_committing.clear(run.clone());
        if dirty {
            file.ext.buffer_dirty.clear(run.clone());
            file.ext.buffer_locked.set(run);
            return Page::Write;
        }
        if locked { Page::Remember } else { Page::Drop }
    }

    /// The running transaction becomes the committing one.
    fn switch_transaction(&mut self) {
        let j = self.journal();
        let Some(t) = j.running.take() else {
            return;
        };
        for block in &t.metadata {
            if let Some(b) = j.buffers.get_mut(block) {
                b.running = false;
                b.committing = true;
            }
        }
        let files: Vec<FileId> = t.data.iter().map(|(file, _)| *file).collect();
        j.committing = Some(t);
        for id in files {
            let inode = &mut self.files[id.idx()].ext;
            if inode.ordered_running.count() > 0 {
                inode.ordered_committing = std::mem::take(&mut inode.ordered_running);
            }
        }
    }

    /// A committed block is the device's again: dirty, unless the running
    /// transaction has changed it since.
    fn release_committed(&mut self, block: u64, now: blklab_types::Jiffies) {
        let device = self.device.unwrap_or_default();
        let j = self.journal();
        let Some(b) = j.buffers.get_mut(&block) else {
            return;
        };
        (b.committing, b.shadow) = (false, false);
        if b.running {
            return;
        }
        j.buffers.remove(&block);
        self.files[device.idx()].pinned.clear(block..block + 1);
        self.ext_dirty_block(block, now);
    }
}

impl<H: Host> PageCache<H> {
    /// Starts the journal's thread and its timer, as at mount.
    pub(crate) fn start_journal(&self) {
        if self.has_journal() {
            let name = self.with(|s| {
                if s.ext4.is_some() {
                    "jbd2"
                } else {
                    "kjournald"
                }
            });
            self.host.spawn(name, Box::pin(self.clone().kjournald()));
            self.host
                .spawn("jbd_timer", Box::pin(self.clone().commit_timer()));
        }
    }

    /// Asks for a commit when the running transaction has expired.
    async fn commit_timer(self) {
        let me = self.host.current();
        let hz = self.host.hz();
        self.with(|s| s.journal().timer = Some(me));
        loop {
            let Some(expires) = self.with(|s| s.journal().expires()) else {
                self.host.suspend().await;
                continue;
            };
            if self.host.jiffies() < expires {
                self.host
                    .sleep(hz.start_of(expires).since(self.host.now()))
                    .await;
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

    async fn kjournald(self) {
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

    /// Commits the running transaction.
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
        let (rules, data, inodes, metadata, flags) = self.with(|s| {
            let j = s.journal();
            let rules = j.rules;
            let Some(t) = j.committing.as_mut() else {
                return (rules, Vec::new(), Vec::new(), Vec::new(), BioFlags::NONE);
            };
            let flags = rules.commit_flags(t.sync, t.waited);
            (
                rules,
                std::mem::take(&mut t.data),
                std::mem::take(&mut t.inodes),
                t.metadata.clone(),
                flags,
            )
        });
        self.write_ordered(data, flags).await;
        self.write_ordered_inodes(inodes).await;
        let mut log_blocks = 0;
        if !metadata.is_empty() {
            log_blocks = self.write_metadata(&metadata, rules.batch, flags).await;
            log_blocks += 1;
            self.with(|s| s.journal().log_done.clear());
            self.write_log(rules.commit_block).await;
            self.wait_log(0).await;
        }
        self.finish_commit(metadata, log_blocks);
    }

    fn finish_commit(&self, blocks: Vec<u64>, log_blocks: u64) {
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
            let tid = j.committing.take().map_or(0, |t: Transaction| t.tid);
            j.committed = j.committed.max(tid);
            j.wake_all(wake);
        });
    }

    /// Writes the data of a transaction, in order of attachment, and waits for
    /// all of it.
    async fn write_ordered(&self, data: Vec<(FileId, Range<u64>)>, flags: BioFlags) {
        let mut batch: Vec<(FileId, u64)> = Vec::with_capacity(BATCH);
        let mut waits: Vec<(FileId, Range<u64>)> = Vec::new();
        self.host.start_plug();
        for (id, run) in data {
            let mut page = run.start;
            while page < run.end {
                match self.with(|s| s.take_ordered(id, page)) {
                    Page::Drop => page += 1,
                    Page::Busy => {
                        self.submit_buffers(&mut batch, flags).await;
                        self.wait_buffer(id, page).await;
                    }
                    Page::Remember => {
                        remember(&mut waits, id, page);
                        page += 1;
                    }
                    Page::Write => {
                        batch.push((id, page));
                        remember(&mut waits, id, page);
                        page += 1;
                        if batch.len() == BATCH {
                            self.submit_buffers(&mut batch, flags).await;
                        }
                    }
                }
            }
        }
        self.submit_buffers(&mut batch, flags).await;
        self.host.finish_plug();
        for (id, run) in waits.into_iter().rev() {
            self.wait_buffers(id, run).await;
        }
    }

    /// Submits buffers that are locked for it, one bio each.
    pub(super) async fn submit_buffers(&self, batch: &mut Vec<(FileId, u64)>, flags: BioFlags) {
        for (file, page) in batch.drain(..) {
            let (sector, cookie) = self.with(|s| {
                s.stats.pages_written += 1;
                s.stats.write_bios += 1;
                let sector = s
                    .file(file)
                    .extents
                    .map(page)
                    .map_or(0, |(sector, _)| sector);
                (sector, s.bios.insert(BioWork::Buffer { file, page }))
            });
            self.submit_sectors(Op::Write, flags, sector, PAGE_SECTORS as u32, cookie)
                .await;
        }
    }

    /// Writes metadata to the log behind descriptors; waits for both. Returns
    /// the blocks of the log that it took.
    async fn write_metadata(&self, blocks: &[u64], batch: usize, flags: BioFlags) -> u64 {
        self.with(|s| s.journal().log_done.clear());
        let mut descriptors = Vec::with_capacity(nr_descriptors(blocks.len(), batch));
        self.host.start_plug();
        let mut nth = 0;
        for batch in blocks.chunks(batch - 1) {
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
        self.host.finish_plug();
        let mut at = 0;
        for batch in blocks.chunks(batch - 1) {
            at += 1;
            for block in batch {
                self.wait_log(at).await;
                at += 1;
                self.waking(|s, wake| {
                    let j = s.journal();
                    if let Some(b) = j.buffers.get_mut(block)
                        && std::mem::take(&mut b.shadow)
                    {
                        j.wake_all(wake);
                    }
                });
            }
        }
        for descriptor in descriptors {
            self.wait_log(descriptor).await;
        }
        nth as u64
    }

    /// Submits the next block of the log.
    async fn write_log(&self, flags: BioFlags) {
        let (sector, cookie) = self.with(|s| {
            s.stats.write_bios += 1;
            let j = s.journal();
            let sector = j.sector(j.head);
            j.head += 1;
            if j.head == j.blocks {
                j.head = 1;
            }
            j.free = j.free.saturating_sub(1);
            j.log_done.push(false);
            let nth = j.log_done.len() - 1;
            (sector, s.bios.insert(BioWork::Log(nth)))
        });
        self.submit_sectors(Op::Write, flags, sector, PAGE_SECTORS as u32, cookie)
            .await;
    }

    /// Sleeps until a block of the log has arrived.
    async fn wait_log(&self, nth: usize) {
        let done = || self.with(|s| s.journal().log_done.get(nth).copied().unwrap_or(true));
        while !done() {
            self.host.unplug();
            if !done() {
                self.host.suspend().await;
            }
        }
    }
}

/// Descriptors for so many blocks.
fn nr_descriptors(blocks: usize, batch: usize) -> usize {
    blocks.div_ceil(batch - 1)
}

fn remember(waits: &mut Vec<(FileId, Range<u64>)>, id: FileId, page: u64) {
    match waits.last_mut() {
        Some((file, run)) if *file == id && run.end == page => run.end = page + 1,
        _ => waits.push((id, page..page + 1)),
    }
}

impl State {
    /// A block of the log has arrived.
    pub(crate) fn end_log(&mut self, nth: usize, wake: &mut Vec<blklab_types::TaskId>) {
        let j = self.journal();
        if let Some(done) = j.log_done.get_mut(nth) {
            *done = true;
        }
        wake.extend(j.thread);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_blocks_take_1003_of_the_log() {
        assert_eq!(1000 + nr_descriptors(1000, BATCH) + 1, 1003);
    }
}
