// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metadata buffers: a sector, a block or a cluster of inodes, what is known
//! of each in memory, and the queue of those to be written later
//! (fs/xfs/linux-2.6/xfs_buf.c, 2.6.26).
//!
//! Their contents are in pages of the device's file, so they can be read again
//! when memory is short; a buffer that is changed pins its pages there.

use blklab_types::{TaskId, Time};
use std::collections::VecDeque;

/// A buffer (`xfs_buf_t`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    /// Sector of the disk.
    pub(super) sector: u64,
    pub(super) nr_sectors: u32,
    /// The first inode in it, if it is a cluster.
    pub(super) inodes: Option<u32>,
    /// It is being written: nobody may change it.
    pub(super) busy: bool,
    /// It is changed and pins its pages.
    pub(super) dirty: bool,
    /// Its blocks were given back; it is never written (`XBF_STALE`).
    pub(super) stale: bool,
    /// Position of the change that is being written.
    pub(super) write_lsn: u64,
    /// When it was queued for writing (`b_queuetime`).
    pub(super) queued: Option<Time>,
}

/// All buffers, by number.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    table: Vec<Buffer>,
    unused: Vec<u32>,
    /// Queued ones with the times that they were queued at, oldest first; one
    /// that has another time now was written meanwhile.
    queue: VecDeque<(u32, Time)>,
    /// Tasks that wait until a buffer is not busy.
    waiters: Vec<(u32, TaskId)>,
}

impl Buffers {
    pub(super) fn add(&mut self, sector: u64, nr_sectors: u32, inodes: Option<u32>) -> u32 {
        let buffer = Buffer {
            sector,
            nr_sectors,
            inodes,
            busy: false,
            dirty: false,
            stale: false,
            write_lsn: 0,
            queued: None,
        };
        if let Some(index) = self.unused.pop() {
            self.table[index as usize] = buffer;
            return index;
        }
        self.table.push(buffer);
        self.table.len() as u32 - 1
    }

    pub(super) fn get(&mut self, index: u32) -> &mut Buffer {
        &mut self.table[index as usize]
    }

    /// The number may be used again.
    pub(super) fn forget(&mut self, index: u32) {
        debug_assert!(
            !self.unused.contains(&index),
            "the number of buffer {index} is given up twice"
        );
        self.unused.push(index);
    }

    /// Queues a buffer for writing later, unless it is queued
    /// (`xfs_buf_delwri_queue`).
    pub(super) fn queue(&mut self, index: u32, now: Time) {
        let buffer = self.get(index);
        if buffer.queued.is_none() {
            buffer.queued = Some(now);
            self.queue.push_back((index, now));
        }
    }

    /// Queued buffers that are at least as old as `limit` says and that `ready`
    /// lets go leave the queue for `out`, busy from now on
    /// (`xfs_buf_delwri_split`).
    pub(super) fn take_old(
        &mut self,
        limit: Time,
        mut ready: impl FnMut(u32) -> bool,
        out: &mut Vec<u32>,
    ) {
        let mut kept = Vec::new();
        while let Some((index, time)) = self.queue.front().copied() {
            if time > limit {
                break;
            }
            self.queue.pop_front();
            let buffer = &mut self.table[index as usize];
            if buffer.queued != Some(time) || buffer.stale {
                continue;
            }
            if buffer.busy || !ready(index) {
                kept.push((index, time));
                continue;
            }
            (buffer.queued, buffer.busy) = (None, true);
            out.push(index);
        }
        for entry in kept.into_iter().rev() {
            self.queue.push_front(entry);
        }
    }

    /// Registers a task to be woken when a buffer is not busy any more; false
    /// if it is not.
    pub(super) fn wait(&mut self, index: u32, task: TaskId) -> bool {
        let busy = self.get(index).busy;
        if busy {
            self.waiters.push((index, task));
        }
        busy
    }

    /// The write of a buffer has ended.
    pub(super) fn end_write(&mut self, index: u32, wake: &mut Vec<TaskId>) {
        let busy = std::mem::replace(&mut self.get(index).busy, false);
        assert!(busy, "a write of buffer {index} ends that nobody began");
        self.waiters.retain(|(waited, task)| {
            let hit = *waited == index;
            if hit {
                wake.push(*task);
            }
            !hit
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_buffers_leave_in_order_and_pinned_ones_stay() {
        let mut b = Buffers::default();
        for i in 0..4 {
            b.add(i * 8, 8, None);
            b.queue(i as u32, Time(i + 10));
        }
        b.queue(0, Time(99));
        b.get(2).queued = None;
        let mut out = Vec::new();
        b.take_old(Time(12), |i| i != 0, &mut out);
        assert_eq!(out, [1]);
        out.clear();
        b.take_old(Time(50), |_| true, &mut out);
        assert_eq!(out, [0, 3]);
        assert!(b.get(0).busy && !b.get(2).busy);
    }
}
