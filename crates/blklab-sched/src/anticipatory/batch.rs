// SPDX-License-Identifier: MIT OR Apache-2.0
//! Batches of sync and async requests that take turns, and how long they are.
//!
//! Source: block/as-iosched.c of 2.6.16 to 2.6.32. A batch has a time; an
//! async one also a number of requests, which is fitted to that time at every
//! change to a sync batch.

use super::settings::Settings;
use super::{ASYNC, SYNC};

/// The batch that runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    /// What it consists of; async at first.
    pub(super) kind: usize,
    /// Jiffy after which it has used up its time.
    pub(super) expires: u64,
    /// It begins when the device has finished the batch before.
    pub(super) waits_for_drain: bool,
    /// A sync batch of which nothing has completed yet: it has no end.
    pub(super) is_new: bool,
    /// Requests of an async batch.
    write_count: i32,
    /// Requests left to the async batch.
    writes_left: i32,
    /// The async batch ran out of requests or ran alone, so it cannot be
    /// timed.
    writes_idled: bool,
}

impl Batch {
    pub(super) fn new(set: &Settings, now: u64) -> Batch {
        Batch {
            kind: ASYNC,
            expires: now + set.first_batch,
            waits_for_drain: false,
            is_new: false,
            write_count: set.first_write_count,
            writes_left: 0,
            writes_idled: false,
        }
    }

    /// Whether it has to give way to the other kind (`as_batch_expired`).
    pub(super) fn has_expired(&self, now: u64) -> bool {
        if self.waits_for_drain || self.is_new {
            return false;
        }
        now > self.expires || (self.kind == ASYNC && self.writes_left == 0)
    }

    /// The driver asks: an async batch without competition is not timed.
    pub(super) fn note_idling(&mut self, async_waits: bool, sync_waits: bool) {
        if self.kind == ASYNC && !sync_waits && (self.writes_left == 0 || !async_waits) {
            self.writes_idled = true;
        }
    }

    /// Everything was sent: a sync batch without anything to time.
    pub(super) fn reset(&mut self) {
        self.kind = SYNC;
        self.waits_for_drain = false;
        self.is_new = false;
    }

    /// Turns to sync requests.
    pub(super) fn turn_to_sync(&mut self) {
        self.waits_for_drain |= self.kind == ASYNC;
        self.kind = SYNC;
    }

    /// Turns to async requests.
    pub(super) fn turn_to_async(&mut self) {
        if self.kind == SYNC {
            self.waits_for_drain = true;
            self.is_new = false;
        }
        self.kind = ASYNC;
        self.writes_left = self.write_count;
        self.writes_idled = false;
    }

    /// The device is empty: the batch begins.
    pub(super) fn begin(&mut self, set: &Settings, now: u64) {
        if self.kind == ASYNC {
            self.expires = now + set.batch_expire[ASYNC];
        } else {
            self.is_new = true;
        }
        self.waits_for_drain = false;
    }

    /// The device finished the last request of the batch before.
    pub(super) fn drained(&mut self, set: &Settings, now: u64, gets_time: bool) {
        if gets_time {
            self.expires = now + set.batch_expire[self.kind];
        }
        self.waits_for_drain = false;
        self.is_new |= self.kind == SYNC;
    }

    /// An async request leaves.
    pub(super) fn count_write(&mut self) {
        if self.writes_left != 0 {
            self.writes_left -= 1;
        }
    }

    /// The first request of a sync batch has completed: its time runs, and
    /// the async batch before it is judged.
    pub(super) fn first_completion(&mut self, set: &Settings, now: u64) {
        self.fit_write_count(set.batch_expire[ASYNC], now);
        self.expires = now + set.batch_expire[SYNC];
        self.is_new = false;
    }

    /// Async batches get fewer requests if the last one took longer than its
    /// time, and more if it was done early (`update_write_batch`).
    fn fit_write_count(&mut self, limit: u64, now: u64) {
        let over = now.wrapping_sub(self.expires).wrapping_add(limit) as i64;
        let took = over.max(0) as u64;
        let count = self.write_count;
        self.write_count = if took > limit && !self.writes_idled {
            if took > limit.saturating_mul(3) {
                count / 2
            } else {
                count - 1
            }
        } else if took < limit && self.writes_left == 0 {
            if limit > took.saturating_mul(3) {
                count.wrapping_mul(2)
            } else {
                count.wrapping_add(1)
            }
        } else {
            count
        }
        .max(1);
    }

    #[cfg(test)]
    fn with(write_count: i32, writes_left: i32, writes_idled: bool) -> Batch {
        Batch {
            kind: SYNC,
            expires: 10_000,
            waits_for_drain: false,
            is_new: true,
            write_count,
            writes_left,
            writes_idled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The new count after an async batch of `took` jiffies with a limit of
    /// 125.
    fn fitted(took: u64, writes_left: i32, writes_idled: bool) -> i32 {
        let mut b = Batch::with(12, writes_left, writes_idled);
        b.fit_write_count(125, 10_000 - 125 + took);
        b.write_count
    }

    #[test]
    fn the_write_count_follows_the_time_taken() {
        assert_eq!(fitted(376, 0, false), 6, "more than three times");
        assert_eq!(fitted(375, 0, false), 11);
        assert_eq!(fitted(126, 5, false), 11);
        assert_eq!(fitted(126, 5, true), 12, "it had idled");
        assert_eq!(fitted(125, 0, false), 12);
        assert_eq!(fitted(124, 0, false), 13);
        assert_eq!(fitted(42, 0, false), 13);
        assert_eq!(fitted(41, 0, false), 24, "less than a third");
        assert_eq!(fitted(0, 1, false), 12, "the count was not used up");
    }

    #[test]
    fn the_write_count_stays_above_zero_and_wraps() {
        let mut b = Batch::with(1, 0, false);
        b.fit_write_count(10, 10_000 + 100);
        assert_eq!(b.write_count, 1);
        let mut b = Batch::with(i32::MAX / 2 + 1, 0, false);
        b.fit_write_count(10, 0);
        assert_eq!(b.write_count, 1, "the kernel's int overflows");
        let mut b = Batch::with(i32::MAX, 0, false);
        b.fit_write_count(u64::MAX, 20_000);
        assert!(b.write_count >= 1);
    }
}
