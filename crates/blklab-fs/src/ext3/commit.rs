// SPDX-License-Identifier: MIT OR Apache-2.0
//! kjournald: closes the running transaction and brings it to the disk
//! (fs/jbd/commit.c, 2.6.28).
//!
//! In this order: no new handles, wait for the open ones; ordered data, wait;
//! revoke records; metadata into the log behind a descriptor per batch, wait;
//! commit block, wait. Not written: the journal's superblock at the first
//! commit.

use super::Place;
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

/// Revoke records in a block: its bytes behind a header of 16, at 4 each.
const REVOKES: u64 = (4096 - 16) / 4;

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
        let Some(mut t) = j.running.take() else {
            return;
        };
        t.metadata.retain(|place| {
            let Some(b) = j.buffers.get_mut(place) else {
                return false;
            };
            b.listed = false;
            if std::mem::take(&mut b.running) {
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
            let inode = &mut self.files[id.idx()].ext;
            if inode.ordered_running.count() > 0 {
                inode.ordered_committing = std::mem::take(&mut inode.ordered_running);
            }
        }
    }

    /// A committed block is the device's again: dirty, unless the running
    /// transaction has changed it since.
    fn release_committed(&mut self, place: Place, now: blklab_types::Jiffies) {
        let j = self.journal();
        let Some(b) = j.buffers.get_mut(&place) else {
            return;
        };
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
            self.ext_dirty_buffer(place, now);
        }
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
        let rules = self.with(|s| s.journal().rules);
        let Some((data, inodes, metadata, nr_revoked)) = self.with(|s| {
            let t = s.journal().committing.as_mut()?;
            let data = std::mem::take(&mut t.data);
            let inodes = std::mem::take(&mut t.inodes);
            Some((data, inodes, t.metadata.clone(), t.nr_revoked))
        }) else {
            return;
        };
        let flags = self.with(|s| {
            let t = s.journal().committing.as_ref();
            t.map_or(BioFlags::NONE, |t| rules.commit_flags(t.sync, t.waited))
        });
        self.write_ordered(data, flags).await;
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

    /// Writes the commit block and waits for it; if the disk refuses the
    /// barrier, again without, and all that follow. Returns the blocks of the
    /// log that it took.
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
            let done: Transaction = j.committing.take().unwrap_or_default();
            j.committed = j.committed.max(done.tid);
            j.wake_all(wake);
            for run in done.freed {
                if let Some(ext) = &mut s.ext {
                    ext.space.release(run);
                } else if let Some(ext4) = &mut s.ext4 {
                    ext4.release(run);
                }
            }
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
    pub(crate) async fn submit_buffers(&self, batch: &mut Vec<(FileId, u64)>, flags: BioFlags) {
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

    /// Writes revoke records and metadata, behind descriptors, to the log; waits
    /// for all, and before that for the data of files (jbd2). Returns the blocks
    /// of the log that it took.
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
        let mut at = revoke_blocks;
        for batch in blocks.chunks(per_descriptor) {
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
        let (sector, mark, cookie) = self.with(|s| {
            s.stats.write_bios += 1;
            let j = s.journal();
            let mark = j.rules.mark;
            let sector = j.sector(j.head);
            j.head += 1;
            if j.head == j.blocks {
                j.head = 1;
            }
            j.free = j.free.saturating_sub(1);
            j.log_done.push(false);
            let nth = j.log_done.len() - 1;
            (sector, mark, s.bios.insert(BioWork::Log(nth)))
        });
        let flags = flags | mark;
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
fn nr_descriptors(blocks: usize, per_descriptor: usize) -> usize {
    blocks.div_ceil(per_descriptor)
}

fn remember(waits: &mut Vec<(FileId, Range<u64>)>, id: FileId, page: u64) {
    match waits.last_mut() {
        Some((file, run)) if *file == id && run.end == page => run.end = page + 1,
        _ => waits.push((id, page..page + 1)),
    }
}

impl State {
    /// A block of the log has arrived.
    pub(crate) fn end_log(
        &mut self,
        nth: usize,
        failed: bool,
        wake: &mut Vec<blklab_types::TaskId>,
    ) {
        let j = self.journal();
        j.log_failed |= failed;
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
        assert_eq!(1000 + nr_descriptors(1000, BATCH - 1) + 1, 1003);
    }
}
