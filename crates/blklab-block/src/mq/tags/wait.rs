// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks that sleep for a tag: eight wait queues, woken in batches.

use crate::mq::TagWakes;
use blklab_types::TaskId;
use std::collections::VecDeque;

/// Wait queues of a bitmap of tags (`SBQ_WAIT_QUEUES`).
pub(super) const QUEUES: usize = 8;

/// The wait queues of a bitmap (`sbq_wait_state`).
#[derive(Debug)]
pub(super) struct Waiters {
    rule: TagWakes,
    /// How many freed tags wake, and how many tasks are woken (`wake_batch`).
    batch: u32,
    queues: [VecDeque<TaskId>; QUEUES],
    /// The hardware queues that wait in each, as a mask.
    hctxs: [u64; QUEUES],
    /// Those that were woken.
    woken: u64,
    /// The queue whose turn it is to be woken (`wake_index`).
    next_wake: usize,
    /// Freed tags since the last batch.
    freed: u32,
    /// [`TagWakes::PerQueue`]: tags to be freed until the queue's next batch
    /// (`wait_cnt`).
    left: [u32; QUEUES],
    /// Tasks that sleep or were woken and did not run yet, and hardware queues that wait
    /// (`ws_active`).
    active: u32,
}

impl Waiters {
    pub(super) fn new(rule: TagWakes) -> Waiters {
        Waiters {
            rule,
            batch: 1,
            queues: Default::default(),
            hctxs: [0; QUEUES],
            woken: 0,
            next_wake: 0,
            freed: 0,
            left: [1; QUEUES],
            active: 0,
        }
    }

    /// Sets the first batch size.
    pub(super) fn start(&mut self, batch: u32) {
        self.batch = batch;
        self.left = [batch; QUEUES];
    }

    /// Changes the batch size (`sbitmap_queue_update_wake_batch`). Sleepers of the
    /// old size are woken soon.
    pub(super) fn change_batch(&mut self, batch: u32) {
        if batch != self.batch {
            self.batch = batch;
            self.left = [1; QUEUES];
        }
    }

    pub(super) fn wait(&mut self, queue: u8, task: TaskId) {
        self.queues[usize::from(queue)].push_back(task);
        self.active += 1;
    }

    pub(super) fn wait_as_queue(&mut self, queue: u8, hctx: u16) {
        self.hctxs[usize::from(queue)] |= 1 << hctx;
        self.active += 1;
    }

    pub(super) fn has_waiting(&self, hctx: u16) -> bool {
        self.hctxs.iter().any(|mask| mask >> hctx & 1 != 0)
    }

    pub(super) fn take_woken(&mut self) -> u64 {
        std::mem::take(&mut self.woken)
    }

    /// Whether anybody waits in a queue (`waitqueue_active`).
    fn is_active(&self, queue: usize) -> bool {
        !self.queues[queue].is_empty() || self.hctxs[queue] != 0
    }

    pub(super) fn finish(&mut self) {
        debug_assert!(self.active as usize > self.sleepers(), "nobody was woken");
        self.active -= 1;
    }

    pub(super) fn cancel(&mut self, queue: u8, task: TaskId) {
        let sleepers = &mut self.queues[usize::from(queue)];
        let before = sleepers.len();
        sleepers.retain(|t| *t != task);
        self.active -= (before - sleepers.len()) as u32;
    }

    pub(super) fn sleepers(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    /// A tag was freed (`sbitmap_queue_wake_up`).
    pub(super) fn freed(&mut self, wakes: &mut Vec<TaskId>) {
        if self.active == 0 {
            return;
        }
        if self.rule == TagWakes::PerQueue {
            self.count_for_queue(wakes);
            return;
        }
        self.freed += 1;
        if self.freed < self.batch {
            return;
        }
        self.freed -= self.batch;
        let mut wanted = self.batch as usize;
        for _ in 0..QUEUES {
            let queue = self.next_wake;
            self.next_wake = (queue + 1) % QUEUES;
            if self.is_active(queue) {
                wanted -= self.wake(queue, wanted, wakes);
                if wanted == 0 || self.rule == TagWakes::OneQueue {
                    return;
                }
            }
        }
    }

    /// A tag was freed, with a count for each wait queue (`__sbq_wake_up` of 5.10).
    fn count_for_queue(&mut self, wakes: &mut Vec<TaskId>) {
        let turn = (0..QUEUES).map(|i| (self.next_wake + i) % QUEUES);
        let Some(queue) = turn.into_iter().find(|&q| self.is_active(q)) else {
            return;
        };
        self.next_wake = queue;
        self.left[queue] -= 1;
        if self.left[queue] == 0 {
            self.left[queue] = self.batch;
            self.next_wake = (queue + 1) % QUEUES;
            self.wake(queue, self.batch as usize, wakes);
        }
    }

    /// Wakes up to `wanted` tasks of a queue, and all hardware queues there; returns how many
    /// tasks.
    fn wake(&mut self, queue: usize, wanted: usize, wakes: &mut Vec<TaskId>) -> usize {
        let hctxs = std::mem::take(&mut self.hctxs[queue]);
        self.active -= hctxs.count_ones();
        self.woken |= hctxs;
        let sleepers = &mut self.queues[queue];
        let woken = wanted.min(sleepers.len());
        for _ in 0..woken {
            wakes.extend(sleepers.pop_front());
        }
        woken
    }
}
