// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log's state: the ring of buffers in memory, and its space on the disk
//! (fs/xfs/xfs_log.c, 2.6.26).
//!
//! Transactions are copied into the active buffer. A full one is written as one
//! record, and the next in the ring becomes active, if it is free: else whoever
//! wants to copy sleeps. A record that has been written counts only when all
//! before it have, so buffers become free in the order of the ring. Positions
//! (`lsn`) are sectors counted from the first mount on; a position's place in
//! the log is its remainder by the log's size.

use super::items::ItemId;
use blklab_types::TaskId;
use std::collections::VecDeque;

/// Bytes of a header, and how many bytes of a record need one.
const HEADER_BYTES: u64 = 512;
const BYTES_PER_HEADER: u64 = 32 << 10;
/// What remains in a buffer is given up if it cannot hold two of these.
const REGION_HEADER_BYTES: u64 = 12;

/// What becomes of a buffer (`ic_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Free, or being filled (`XLOG_STATE_ACTIVE`).
    Active,
    /// On its way to the disk (`XLOG_STATE_SYNCING`).
    Syncing,
    /// On the disk, but not all before it (`XLOG_STATE_DONE_SYNC`).
    Done,
}

/// A buffer in memory (`xlog_in_core_t`, an iclog).
#[derive(Clone, Debug)]
struct Buffer {
    stage: Stage,
    /// Where its record lies, once something is in it.
    lsn: u64,
    used_bytes: u64,
    /// What the transactions that end in it changed (`ic_callback`).
    items: Vec<ItemId>,
    /// Bios on their way.
    pending: u8,
}

/// A record that must be written now: one bio, or two around the log's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// The buffer in the ring.
    pub(super) nth: usize,
    /// Sector of the log, and sectors; the second part is at the log's
    /// beginning, and may be empty.
    pub(super) sector: u64,
    pub(super) nr_sectors: [u32; 2],
}

/// What came of copying into the active buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copied {
    /// No buffer is free.
    Busy,
    /// So many bytes are in; the buffer may have become full.
    Took(u64, Option<Record>),
}

/// The log of a volume (`xlog_t`).
#[derive(Debug)]
pub(super) struct Log {
    /// `l_iclog`.
    ring: Vec<Buffer>,
    active: usize,
    buffer_bytes: u64,
    /// Sectors of the log on the disk.
    size: u64,
    /// Where the active buffer's record will lie (`l_curr_cycle`, `l_curr_block`).
    head: u64,
    /// All records before this position are on the disk (`l_last_sync_lsn`).
    pub(super) done: u64,
    /// Bytes that open transactions may write (`l_grant_reserve_bytes`).
    reserved_bytes: u64,
    /// Tasks that wait for a buffer, or for a record to be on the disk.
    pub(super) waiters: Vec<TaskId>,
    /// Tasks that wait for space, the first one first (`l_reserve_headq`, later
    /// `l_reserve_head`).
    pub(super) space_queue: VecDeque<TaskId>,
}

impl Log {
    pub(super) fn new(buffers: u32, buffer_bytes: u32, sectors: u64) -> Log {
        let buffer = Buffer {
            stage: Stage::Active,
            lsn: 0,
            used_bytes: 0,
            items: Vec::new(),
            pending: 0,
        };
        Log {
            ring: vec![buffer; buffers.max(2) as usize],
            active: 0,
            buffer_bytes: u64::from(buffer_bytes),
            size: sectors,
            // The first cycle begins behind an old, empty record.
            head: sectors,
            done: sectors,
            reserved_bytes: 0,
            waiters: Vec::new(),
            space_queue: VecDeque::new(),
        }
    }

    fn headers_bytes(&self) -> u64 {
        self.buffer_bytes.div_ceil(BYTES_PER_HEADER) * HEADER_BYTES
    }

    /// Bytes of transactions that a buffer holds.
    pub(super) fn capacity_bytes(&self) -> u64 {
        self.buffer_bytes - self.headers_bytes()
    }

    /// Whether a buffer can be copied into.
    pub(super) fn is_ready(&self) -> bool {
        self.ring[self.active].stage == Stage::Active
    }

    /// Copies what fits of so many bytes into the active buffer
    /// (`xlog_state_get_iclog_space`, `xlog_write`).
    pub(super) fn copy(&mut self, bytes: u64) -> Copied {
        if !self.is_ready() {
            return Copied::Busy;
        }
        let (capacity, head) = (self.capacity_bytes(), self.head);
        let buffer = &mut self.ring[self.active];
        buffer.lsn = head;
        let took = bytes.min(capacity - buffer.used_bytes);
        buffer.used_bytes += took;
        let full = capacity - buffer.used_bytes < 2 * REGION_HEADER_BYTES;
        Copied::Took(took, full.then(|| self.close()))
    }

    /// The buffer that the last copied byte lies in, with its position: where a
    /// transaction that has just ended is attached (`xfs_log_notify`).
    pub(super) fn attach_to(&mut self, record: Option<Record>) -> (u64, &mut Vec<ItemId>) {
        let nth = record.map_or(self.active, |r| r.nth);
        let buffer = &mut self.ring[nth];
        (buffer.lsn, &mut buffer.items)
    }

    /// Closes the active buffer: it is to be written, the next becomes active
    /// (`xlog_state_switch_iclogs`, `xlog_sync`).
    fn close(&mut self) -> Record {
        let nth = self.active;
        let headers = self.headers_bytes();
        let buffer = &mut self.ring[nth];
        assert_eq!(
            buffer.stage,
            Stage::Active,
            "buffer {nth} of the log is written twice"
        );
        let sectors = (headers + buffer.used_bytes).div_ceil(512);
        buffer.stage = Stage::Syncing;
        let at = buffer.lsn % self.size;
        let first = sectors.min(self.size - at);
        let second = sectors - first;
        buffer.pending = 1 + u8::from(second > 0);
        self.head += sectors;
        self.active = (nth + 1) % self.ring.len();
        Record {
            nth,
            sector: at,
            nr_sectors: [first as u32, second as u32],
        }
    }

    /// Begins to force what is in the buffers to the disk (`xlog_state_sync_all`).
    /// Returns the record to be written, if there is one, and the position up to
    /// which the log must be on the disk then.
    pub(super) fn force(&mut self) -> (Option<Record>, u64) {
        let buffer = &self.ring[self.active];
        let fresh = buffer.stage == Stage::Active && buffer.used_bytes > 0;
        let record = fresh.then(|| self.close());
        (record, self.head)
    }

    /// A bio of a record has ended (`xlog_state_done_syncing`). Records that are on
    /// the disk in turn are handed to `finished` with their positions
    /// (`xlog_state_do_callback`); returns whether there was one.
    pub(super) fn end_bio(
        &mut self,
        nth: usize,
        mut finished: impl FnMut(u64, &mut Vec<ItemId>),
    ) -> bool {
        let buffer = &mut self.ring[nth];
        let left = buffer.pending.checked_sub(1);
        buffer.pending = left.expect("a bio of the buffer was on its way");
        if buffer.pending > 0 {
            return false;
        }
        assert_eq!(
            buffer.stage,
            Stage::Syncing,
            "a record of buffer {nth} ends that was not written"
        );
        buffer.stage = Stage::Done;
        let (count, mut any) = (self.ring.len(), false);
        for i in (0..count).map(|i| (self.active + i) % count) {
            let buffer = &mut self.ring[i];
            match buffer.stage {
                Stage::Active => {}
                Stage::Syncing => break,
                Stage::Done => {
                    finished(buffer.lsn, &mut buffer.items);
                    buffer.items.clear();
                    buffer.stage = Stage::Active;
                    buffer.used_bytes = 0;
                    any = true;
                    let done = self.next_undone(i);
                    assert!(
                        self.done <= done,
                        "records are done in the order of the log"
                    );
                    self.done = done;
                }
            }
        }
        any
    }

    /// The position behind a record that has just become done.
    fn next_undone(&self, nth: usize) -> u64 {
        let next = &self.ring[(nth + 1) % self.ring.len()];
        match next.stage {
            Stage::Active => self.head,
            Stage::Syncing | Stage::Done => next.lsn,
        }
    }

    /// The oldest position that is not only in its place: what the items on the
    /// list say, or all that is not done (`xlog_assign_tail_lsn`).
    pub(super) fn tail(&self, oldest_item: Option<u64>) -> u64 {
        oldest_item.unwrap_or(self.done).min(self.done)
    }

    /// Bytes of the log.
    pub(super) fn size_bytes(&self) -> u64 {
        self.size * 512
    }

    /// Bytes that nobody uses or has reserved (`xlog_space_left`). A transaction counts
    /// twice while it is copied: what is in the log already is still reserved. So there may
    /// be less than nothing, which is nothing.
    pub(super) fn free_bytes(&self, tail: u64) -> u64 {
        let unused = self.size_bytes().checked_sub((self.head - tail) * 512);
        let unused = unused.expect("the log's head does not pass its tail");
        unused.saturating_sub(self.buffer_bytes + self.reserved_bytes)
    }

    /// Reserves bytes (`xlog_grant_add_space`).
    pub(super) fn reserve(&mut self, bytes: u64) {
        self.reserved_bytes += bytes;
    }

    /// Gives reserved bytes back (`xlog_ungrant_log_space`).
    pub(super) fn unreserve(&mut self, bytes: u64) {
        let left = self.reserved_bytes.checked_sub(bytes);
        self.reserved_bytes = left.expect("what is given back was reserved");
    }

    /// The position up to which the tail is pushed when a transaction wants so many
    /// bytes (`xlog_grant_push_ail`): none while there is enough.
    pub(super) fn push_target(&self, tail: u64, bytes: u64) -> Option<u64> {
        let wanted = bytes.max(self.size_bytes() / 4).max(128 << 10);
        (self.free_bytes(tail) < wanted).then(|| (tail + wanted / 512).min(self.done))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(log: &mut Log) -> Record {
        let bytes = log.capacity_bytes();
        match log.copy(bytes) {
            Copied::Took(took, Some(record)) if took == bytes => record,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_ninth_record_sleeps_and_records_lie_128_sectors_apart() {
        let mut log = Log::new(8, 64 << 10, 20_480);
        let records: Vec<Record> = (0..8).map(|_| fill(&mut log)).collect();
        assert!(records.iter().all(|r| r.nr_sectors == [128, 0]));
        assert!(records.windows(2).all(|w| w[0].sector + 128 == w[1].sector));
        assert_eq!(8 * log.capacity_bytes(), 8 * (65_536 - 2 * 512));
        assert_eq!(log.copy(1), Copied::Busy);
    }

    #[test]
    fn buffers_become_free_in_the_order_of_the_ring() {
        let mut log = Log::new(4, 32 << 10, 20_480);
        let records: Vec<Record> = (0..4).map(|_| fill(&mut log)).collect();
        let done = |log: &mut Log, nth| {
            let mut lsns = Vec::new();
            log.end_bio(nth, |lsn, _| lsns.push(lsn - 20_480));
            lsns
        };
        assert!(done(&mut log, records[2].nth).is_empty());
        assert_eq!(log.copy(1), Copied::Busy);
        assert_eq!(done(&mut log, records[0].nth), [0]);
        assert!(log.is_ready());
        assert_eq!(log.done, 20_480 + 64);
        assert_eq!(done(&mut log, records[1].nth), [64, 128]);
        assert_eq!(done(&mut log, records[3].nth), [192]);
        assert_eq!(log.done, log.head);
    }

    #[test]
    fn a_record_is_split_at_the_end_of_the_log() {
        let mut log = Log::new(2, 32 << 10, 100);
        let first = fill(&mut log);
        log.end_bio(first.nth, |_, _| {});
        let second = fill(&mut log);
        assert_eq!((second.sector, second.nr_sectors), (64, [36, 28]));
        assert!(!log.end_bio(second.nth, |_, _| {}));
        assert!(log.end_bio(second.nth, |_, _| {}));
    }

    /// The last transaction that there is room for is copied: half of it is in the log, and
    /// all of it is still reserved.
    #[test]
    fn a_transaction_that_is_being_copied_leaves_nothing_free() {
        let mut log = Log::new(8, 32 << 10, 20_480);
        let tail = log.tail(None);
        log.reserve(log.free_bytes(tail));
        assert_eq!(log.free_bytes(tail), 0);
        fill(&mut log);
        assert_eq!(log.free_bytes(tail), 0);
    }

    #[test]
    fn a_force_writes_what_is_there_and_nothing_twice() {
        let mut log = Log::new(8, 32 << 10, 20_480);
        assert_eq!(log.force(), (None, 20_480));
        log.copy(1000);
        let (record, upto) = log.force();
        assert_eq!(record.map(|r| r.nr_sectors), Some([3, 0]));
        assert_eq!(upto, 20_480 + 3);
        assert_eq!(log.force(), (None, upto), "it is on its way");
    }

    #[test]
    fn the_tail_is_pushed_when_a_quarter_is_left() {
        let mut log = Log::new(8, 32 << 10, 20_480);
        let tail = log.tail(None);
        assert_eq!(log.push_target(tail, 1000), None);
        log.reserve(8 << 20);
        log.done += 10;
        let target = log.push_target(tail, 1000);
        assert_eq!(
            target,
            Some(tail + 10),
            "no further than what is on the disk"
        );
        log.unreserve(8 << 20);
        assert_eq!(log.free_bytes(tail), (10 << 20) - (32 << 10));
    }
}
