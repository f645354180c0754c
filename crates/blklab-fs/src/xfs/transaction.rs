// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transactions: space in the log, the buffers they change, and their way into
//! the log's buffers (fs/xfs/xfs_trans.c, xfs_log.c, 2.6.26).
//!
//! How many bytes a change puts into the log is an estimate per operation
//! ([`super::costs`]); which buffers it pins follows from the volume's state.

use super::costs;
use super::items::{ItemId, What};
use super::log::Record;
use super::volume::Volume;
use crate::mount::{Mount, View};
use blklab_pagecache::{BioWork, FileId, Host, PageRun, Sleep};
use blklab_types::{BioFlags, Op, PAGE_SECTORS, TaskId, Time};

/// A bio of XFS that is not one of pages.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Io {
    /// Part of a record, by its buffer's place in the ring.
    Record(u32),
    /// A metadata buffer.
    Buffer(u32),
}

impl Io {
    /// The number by which the page cache knows it.
    pub(super) fn number(self) -> u64 {
        match self {
            Io::Record(nth) => u64::from(nth) << 1,
            Io::Buffer(buffer) => u64::from(buffer) << 1 | 1,
        }
    }

    /// The bio of a number.
    pub(super) fn numbered(number: u64) -> Io {
        let of = (number >> 1) as u32;
        match number & 1 {
            0 => Io::Record(of),
            _ => Io::Buffer(of),
        }
    }
}

/// A transaction that is not committed (`xfs_trans_t`).
#[derive(Debug)]
pub(super) struct Transaction {
    items: Vec<ItemId>,
    /// What it puts into the log.
    pub(super) bytes: u64,
    reserved_bytes: u64,
    /// It changes counters of the superblock.
    pub(super) counters: bool,
}

impl Transaction {
    /// `xfs_trans_add_item`.
    pub(super) fn join(&mut self, item: ItemId) {
        if !self.items.contains(&item) {
            self.items.push(item);
        }
    }

    /// `xfs_trans_ijoin`.
    pub(super) fn join_inode(&mut self, index: u32) {
        self.join(ItemId::inode(index));
    }
}

impl View<'_, Volume> {
    /// A bio of XFS has ended (`xlog_iodone`, `xfs_buf_iodone_work`).
    pub(crate) fn end_xfs(&mut self, io: Io, wake: &mut Vec<TaskId>) {
        let v = &mut *self.volume;
        match io {
            Io::Record(nth) => v.finish_record(nth as usize, wake),
            Io::Buffer(buffer) => {
                v.finish_write(buffer, wake);
                if !v.items.get(ItemId::buffer(buffer)).logged() {
                    self.set_pages_dirty(buffer, false);
                }
            }
        }
    }

    /// A buffer's pages must stay in memory, or need not any more.
    fn set_pages_dirty(&mut self, buffer: u32, dirty: bool) {
        let v = &mut *self.volume;
        let b = v.buffers.get(buffer);
        if std::mem::replace(&mut b.dirty, dirty) == dirty {
            return;
        }
        let (pages, device) = (v.pages_of(buffer), v.device);
        let pinned = &mut self.files[device.idx()].pinned;
        if dirty {
            pinned.set(pages)
        } else {
            pinned.clear(pages)
        };
    }

    /// A transaction's items may not be written until it is in the log
    /// (`xfs_buf_item_pin`, `xfs_inode_item_pin`).
    fn pin(&mut self, items: &[ItemId], now: Time) {
        for id in items {
            let v = &mut *self.volume;
            v.items.get(*id).pins += 1;
            match id.what() {
                What::Inode(i) => v.inodes.get(i).logged = true,
                What::Buffer(b) => {
                    v.buffers.queue(b, now);
                    self.set_pages_dirty(b, true);
                }
            }
        }
    }

    /// A transaction ends in the record that its last byte was copied into.
    pub(super) fn attach(&mut self, items: &[ItemId], record: Option<Record>) {
        let v = &mut *self.volume;
        let (lsn, list) = v.log.attach_to(record);
        for id in items {
            let item = v.items.get(*id);
            if item.attach(lsn) {
                list.push(*id);
            } else {
                item.unpin();
            }
        }
    }

    /// Adds items to what delayed logging has collected (`xfs_log_commit_cil`): their room
    /// in the log stays reserved until they are logged (`xlog_cil_insert_items`). Returns
    /// whether it is time for a checkpoint (`XLOG_CIL_SPACE_LIMIT`).
    fn collect(&mut self, items: &[ItemId], bytes: u64) -> bool {
        let v = &mut *self.volume;
        let each = bytes / items.len().max(1) as u64;
        for id in items {
            let item = v.items.get(*id);
            if std::mem::replace(&mut item.collected, true) {
                item.unpin();
            } else {
                v.collected.push(*id);
                v.collected_bytes += each;
                v.log.reserve(each);
            }
        }
        v.collected_bytes >= v.log.size_bytes() / 8
    }
}

impl<H: Host> Mount<'_, H, Volume> {
    /// Begins a transaction that may write so many bytes (`xfs_trans_reserve`,
    /// `xfs_log_reserve`): sleeps while the log has no room for them
    /// (`xlog_grant_log_space`, later `xlog_grant_head_wait`).
    pub(super) async fn xfs_begin(&self, reserve_bytes: u64) -> Transaction {
        let most = self.with(|s| s.volume.log.size_bytes() / 8);
        let reserve_bytes = reserve_bytes.min(most);
        self.push_tail(reserve_bytes).await;
        let fits = |s: &mut View<'_, Volume>| {
            let v = &mut *s.volume;
            let tail = v.tail();
            let fits = v.log.free_bytes(tail) >= reserve_bytes;
            if fits {
                v.log.reserve(reserve_bytes);
            }
            fits
        };
        if !self.with(|s| s.volume.log.space_queue.is_empty() && fits(s)) {
            let wait = async {
                let me = self.host.current();
                self.with(|s| s.volume.log.space_queue.push_back(me));
                loop {
                    let first =
                        |s: &mut View<'_, Volume>| s.volume.log.space_queue.front() == Some(&me);
                    if self.with(|s| first(s) && fits(s)) {
                        break;
                    }
                    self.push_tail(reserve_bytes).await;
                    self.flush_task_plug();
                    if self.with(|s| first(s) && fits(s)) {
                        break;
                    }
                    self.host.suspend().await;
                }
                self.waking(|s, wake| {
                    s.volume.log.space_queue.pop_front();
                    s.volume.tail_moved(wake);
                });
            };
            self.sleeping(Sleep::LogSpace, wait).await;
        }
        Transaction {
            items: Vec::with_capacity(8),
            bytes: 0,
            reserved_bytes: reserve_bytes,
            counters: false,
        }
    }

    /// Joins buffers to a transaction (`xfs_trans_read_buf`, `xfs_trans_log_buf`):
    /// reads those that are cold, waits for those that are being written.
    pub(super) async fn xfs_change(&self, t: &mut Transaction, buffers: &[u32]) {
        for buffer in buffers {
            self.read_buffer(*buffer).await;
            self.wait_buffer_idle(*buffer).await;
            t.join(ItemId::buffer(*buffer));
        }
    }

    /// Brings a buffer into memory (`xfs_buf_read_flags`).
    pub(super) async fn read_buffer(&self, buffer: u32) {
        loop {
            let (device, pages, sector) = self.with(|s| {
                let v = &mut *s.volume;
                let pages = v.pages_of(buffer);
                (v.device, pages.clone(), v.geometry.sector(pages.start))
            });
            let cold = self.with(|s| {
                let file = s.file(device);
                pages.clone().find(|p| !file.uptodate.test(*p))
            });
            let Some(cold) = cold else {
                return;
            };
            if !self.with(|s| s.file(device).locked.test(cold)) {
                self.submit_metadata_read(device, pages, sector).await;
            }
            self.wait_unlocked(device, cold).await;
            if !self.with(|s| s.file(device).uptodate.test(cold)) {
                // The read failed; what is in memory goes for it.
                self.with(|s| s.file(device).uptodate.set(cold..cold + 1));
            }
        }
    }

    /// Starts reading pages of the device that are not all in memory.
    pub(super) async fn submit_metadata_read(
        &self,
        device: FileId,
        pages: std::ops::Range<u64>,
        sector: u64,
    ) {
        self.make_room(pages.end - pages.start).await;
        let flags = self.with(|s| s.volume.options.buffer_mark());
        let start = self.with(|s| {
            let file = s.file(device);
            let free = pages
                .clone()
                .all(|p| !file.locked.test(p) && !file.uptodate.test(p));
            if free {
                s.add_locked(device, pages.clone());
            }
            free
        });
        if start {
            let run = PageRun {
                start: pages.start,
                pages: pages.end - pages.start,
                sector,
            };
            self.submit(Op::Read, flags, device, run).await;
            return;
        }
        for page in pages {
            self.submit_page_as(device, page, flags).await;
        }
    }

    /// Sleeps until nobody writes a buffer (`xfs_buf_lock`).
    pub(super) async fn wait_buffer_idle(&self, buffer: u32) {
        if !self.with(|s| s.volume.buffers.get(buffer).busy) {
            return;
        }
        let me = self.host.current();
        let wait = async {
            loop {
                self.host.unplug();
                if !self.with(|s| s.volume.buffers.wait(buffer, me)) {
                    return;
                }
                self.host.suspend().await;
            }
        };
        self.sleeping(Sleep::MetadataWrite, wait).await;
    }

    /// Ends a transaction (`xfs_trans_commit`): what it changed is in the log's
    /// memory, or among what is collected.
    pub(super) async fn xfs_commit(&self, mut t: Transaction) {
        let options = self.with(|s| s.volume.options);
        let counters = t.counters && !options.lazy_count;
        if counters {
            self.lock_counters().await;
            let superblock = self.with(|s| s.volume.superblock);
            self.xfs_change(&mut t, &[superblock]).await;
            t.bytes += costs::SUPERBLOCK_BYTES;
        }
        let now = self.host.now();
        self.with(|s| s.pin(&t.items, now));
        if options.delayed_logging {
            if self.with(|s| s.collect(&t.items, t.bytes)) {
                self.checkpoint().await;
            }
        } else {
            self.copy_to_log(t.bytes, &t.items).await;
        }
        self.waking(|s, wake| {
            let v = &mut *s.volume;
            if counters {
                wake.extend(v.counters.unlock());
            }
            v.log.unreserve(t.reserved_bytes);
            v.tail_moved(wake);
        });
    }

    /// Gives a transaction up that changed nothing (`xfs_trans_cancel`).
    pub(super) fn xfs_cancel(&self, t: Transaction) {
        self.waking(|s, wake| {
            let v = &mut *s.volume;
            v.log.unreserve(t.reserved_bytes);
            v.tail_moved(wake);
        });
    }

    /// The running task is about to sleep for something that is no I/O of its
    /// own: what it has plugged goes out, where tasks have plugs. The queue's
    /// plug of older kernels stays.
    pub(super) fn flush_task_plug(&self) {
        if self.with(|s| s.volume.options.features.task_plugs) {
            self.host.unplug();
        }
    }

    /// Sleeps until nobody else has the superblock's buffer (`xfs_trans_getsb`).
    async fn lock_counters(&self) {
        let me = self.host.current();
        if self.with(|s| s.volume.counters.lock_or_queue(me)) {
            return;
        }
        let wait = async {
            self.flush_task_plug();
            while !self.with(|s| s.volume.counters.granted(me)) {
                self.host.suspend().await;
            }
        };
        self.sleeping(Sleep::Transaction, wait).await;
    }

    /// Writes a buffer that is in memory and not pinned, and that nobody else
    /// writes (`xfs_buf_iorequest`); does not wait for it.
    pub(super) async fn write_metadata_buffer(&self, buffer: u32, flags: BioFlags) {
        let flags = flags | self.with(|s| s.volume.options.buffer_mark());
        let (sector, nr_sectors, bio) = self.with(|s| {
            s.stats.write_bios += 1;
            let v = &mut *s.volume;
            let lsn = v.items.get(ItemId::buffer(buffer)).lsn;
            let b = v.buffers.get(buffer);
            (b.busy, b.queued, b.write_lsn) = (true, None, lsn);
            let (sector, nr_sectors) = (b.sector, b.nr_sectors);
            s.set_pages_dirty(buffer, true);
            let bio = s
                .bios
                .insert(BioWork::Filesystem(Io::Buffer(buffer).number()));
            s.stats.pages_written += u64::from(nr_sectors).div_ceil(PAGE_SECTORS);
            (sector, nr_sectors, bio)
        });
        self.submit_sectors(Op::Write, flags, sector, nr_sectors, bio)
            .await;
    }
}
