// SPDX-License-Identifier: MIT OR Apache-2.0
//! Request pools: allocation, batching, sleeping in FIFO order.

use crate::sq::{MayQueue, Queue};
use crate::{Cx, Effect, Pending, RqId, RqState};
use blklab_trace::truth::Kind;
use blklab_trace::{Action, Counter};
use blklab_types::{Bio, TaskId};
use std::collections::VecDeque;

/// The two pools of a queue (`request_list`): reads and writes (to 2.6.29), async
/// and sync (from 2.6.30).
#[derive(Debug, Default)]
pub(crate) struct Pools {
    pub(crate) count: [u32; 2],
    full: [bool; 2],
    pub(crate) congested: [bool; 2],
    starved: [bool; 2],
    wait: [VecDeque<TaskId>; 2],
}

/// Thresholds of a pool of `nr` requests (`blk_queue_congestion_threshold`):
/// congestion begins at the first and ends below the second; the third is never
/// exceeded.
pub(crate) fn thresholds(nr: u32) -> (u32, u32, u32) {
    let on = nr.min(nr - nr / 8 + 1);
    let off = (nr - nr / 8 - nr / 16).saturating_sub(1).max(1);
    (on, off, nr + nr / 2)
}

impl Queue {
    /// Tells how many requests of each pool are in use, and what a pool has.
    pub(crate) fn counters(&self, mut tell: impl FnMut(Counter, u32)) {
        let pools = if self.core.feat.pools_by_sync {
            [Counter::AsyncRequests, Counter::SyncRequests]
        } else {
            [Counter::ReadRequests, Counter::WriteRequests]
        };
        tell(pools[0], self.pools.count[0]);
        tell(pools[1], self.pools.count[1]);
        tell(Counter::PoolRequests, self.core.limits.nr_requests);
    }

    fn pool_of(&self, bio: &Bio) -> usize {
        if self.core.feat.pools_by_sync {
            usize::from(bio.is_sync())
        } else {
            bio.op.data_dir()
        }
    }

    /// One attempt to get a request (G if granted).
    #[inline(always)]
    pub(crate) fn get_request(&mut self, cx: &mut Cx<'_>, bio: &Bio) -> Option<RqId> {
        let k = self.pool_of(bio);
        let nr = self.core.limits.nr_requests;
        let (on, _, cap) = thresholds(nr);
        let may = self.elv.may_queue(&self.core, cx, bio);
        let mut near_full = false;
        let mut refused = may == MayQueue::No;
        if !refused && self.pools.count[k] + 1 >= on {
            if self.pools.count[k] + 1 >= nr {
                near_full = true;
                if !self.pools.full[k] {
                    self.grant_batch(cx, bio);
                    self.pools.full[k] = true;
                } else if may != MayQueue::Must && !self.is_batching(cx, bio.task) {
                    return None;
                }
            }
            self.pools.congested[k] = true;
        }
        refused |= self.pools.count[k] >= cap;
        if refused {
            if self.pools.count[k] == 0 {
                self.pools.starved[k] = true;
            }
            return None;
        }
        self.pools.count[k] += 1;
        assert!(self.pools.count[k] <= cap, "a pool never exceeds its cap");
        self.pools.starved[k] = false;
        let rq = self.core.rqs.alloc(bio.op, bio.flags, bio.task, cx.jiffies);
        self.core.rqs[rq].allocated = cx.now;
        self.core.rqs[rq].pool = k as u8;
        self.core.rqs[rq].state |= RqState::POOLED;
        self.elv.set_request(&mut self.core, cx, rq, bio);
        if (near_full || self.core.feat.charge_always) && self.is_batching(cx, bio.task) {
            cx.tasks.get_mut(bio.task).batch_left -= 1;
        }
        self.core
            .bio_event(cx, Action::GetRequest, Kind::GetRequest, bio);
        Some(rq)
    }

    /// Whether the task may allocate from a full pool (`ioc_batching`). A full
    /// batch stays valid however long the task takes to run.
    fn is_batching(&self, cx: &Cx<'_>, task: TaskId) -> bool {
        let ioc = cx.tasks.get(task);
        ioc.batch_left == self.core.limits.batch_requests
            || (ioc.batch_left > 0 && cx.jiffies < ioc.batch_until)
    }

    /// Gives the task a batch, unless it has one (`ioc_set_batching`).
    pub(crate) fn grant_batch(&mut self, cx: &mut Cx<'_>, bio: &Bio) {
        if self.is_batching(cx, bio.task) {
            return;
        }
        let validity = self.core.limits.batch_jiffies[bio.op.data_dir()];
        let until = cx.jiffies.plus(validity);
        let ioc = cx.tasks.get_mut(bio.task);
        ioc.batch_left = self.core.limits.batch_requests;
        ioc.batch_until = until;
    }

    /// The task goes to the end of the wait list (S) and starts what waits
    /// (`get_request_wait`).
    pub(crate) fn sleep_for_request(&mut self, cx: &mut Cx<'_>, pending: &Pending) {
        let k = self.pool_of(&pending.bio);
        self.pools.wait[k].push_back(pending.bio.task);
        self.core
            .bio_event(cx, Action::SleepRequest, Kind::SleepRequest, &pending.bio);
        if self.core.feat.task_plug {
            self.flush_plug_to_sleep(cx, pending.bio.task);
        } else {
            self.unplug_and_run(cx);
        }
    }

    /// Frees a request whose bios are gone and wakes who waits for one
    /// (`__blk_put_request`).
    #[inline(always)]
    pub(crate) fn put_request(&mut self, cx: &mut Cx<'_>, rq: RqId) {
        let pooled = self.core.rqs[rq].state.has(RqState::POOLED);
        let k = usize::from(self.core.rqs[rq].pool);
        if pooled {
            self.elv.put_request(&mut self.core, cx, rq);
            self.wake_as_requested(cx);
        }
        self.core.rqs.free(rq);
        if pooled {
            assert!(self.pools.count[k] > 0, "a pool counts what it gave");
            self.pools.count[k] -= 1;
            self.freed(cx, k);
            if self.pools.starved[1 - k] {
                self.freed(cx, 1 - k);
            }
        }
    }

    /// Wakes sleepers for the scheduler.
    fn wake_as_requested(&mut self, cx: &mut Cx<'_>) {
        let wanted = std::mem::take(&mut self.core.wake_requested);
        for (wait, _) in self.pools.wait.iter_mut().zip(wanted).filter(|w| w.1) {
            if let Some(task) = wait.pop_front() {
                cx.ask(Effect::Wake(task));
            }
        }
    }

    /// A request of a pool was freed (`freed_request`, `__freed_request`).
    #[inline(always)]
    fn freed(&mut self, cx: &mut Cx<'_>, k: usize) {
        let nr = self.core.limits.nr_requests;
        let (_, off, _) = thresholds(nr);
        if self.pools.count[k] < off && std::mem::take(&mut self.pools.congested[k]) {
            cx.ask(Effect::Uncongested);
        }
        if self.pools.count[k] < nr {
            if let Some(task) = self.pools.wait[k].pop_front() {
                cx.ask(Effect::Wake(task));
            }
            self.pools.full[k] = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::thresholds;

    #[test]
    fn thresholds_of_the_specification() {
        assert_eq!(thresholds(4), (4, 3, 6));
        assert_eq!(thresholds(128), (113, 103, 192));
        assert_eq!(thresholds(512), (449, 415, 768));
    }
}
