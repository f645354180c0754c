// SPDX-License-Identifier: MIT OR Apache-2.0
//! A new request: its place in its queue, and whether it starts the driver.
//! Source: block/cfq-iosched.c of 2.6.16 to 2.6.20.

use super::features::Preemption;
use super::queue::QueueId;
use super::{Cfq, now};
use blklab_block::sq::Core;
use blklab_block::{Cx, RqId};
use blklab_types::BioFlags;

impl Cfq {
    /// A request enters its queue.
    pub(super) fn insert(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let info = self.info(rq);
        let id = info.queue;
        self.refresh_prio(cx, id, info.task);
        self.sort_in(q, rq);
        let queue = &mut self.queues[id];
        queue.fifo.push_back(&mut q.rqs, rq);
        if q.rqs[rq].flags.has(BioFlags::META) {
            queue.meta_pending += 1;
        }
        self.rechoose(q, rq);
        if info.sync {
            let (sector, end) = (q.rqs[rq].sector, q.rqs[rq].end());
            self.learn(cx, id, info.task, sector, end);
            self.start_if_called_for(q, cx, rq);
        } else if self.feat.async_ends_wait
            && self.active_context == Some(info.task)
            && self.stop_timer(cx, self.idle_slice_timer)
        {
            self.expire_active(cx, false);
            q.run_requested = true;
        }
    }

    /// Puts a request into the tree. Those that start at the same sector go
    /// to the driver first.
    pub(super) fn sort_in(&mut self, q: &mut Core, rq: RqId) {
        let id = self.info(rq).queue;
        let sector = q.rqs[rq].sector;
        while let Some(alias) = self.q(id).sort.find(&self.nodes, sector) {
            self.move_out(q, alias);
        }
        let tree = &mut self.queues[id].sort;
        tree.insert(&mut self.nodes, rq, sector);
        if self.q(id).home.is_none() {
            self.join_lists(id);
        }
    }

    /// The new request may be better than the one that was next.
    pub(super) fn rechoose(&mut self, q: &Core, rq: RqId) {
        let id = self.info(rq).queue;
        let next = self.choose(q, self.q(id).next_rq, Some(rq));
        self.q_mut(id).next_rq = next;
    }

    /// A sync request was added: its queue is waited for, or preempts.
    fn start_if_called_for(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let id = self.info(rq).queue;
        if self.active == Some(id) {
            if self.q(id).wait_request {
                self.q_mut(id).must_dispatch = true;
                self.stop_timer(cx, self.idle_slice_timer);
                q.run_requested = true;
            }
        } else if self.preempts(q, rq) {
            self.preempt(cx, id);
            self.q_mut(id).must_dispatch = true;
            q.run_requested = true;
        }
    }

    /// Whether a sync request of a queue that is not active takes the disk
    /// away from the active one. As only the active queue is ever waited for,
    /// in effect only the idle class loses it.
    fn preempts(&self, q: &Core, rq: RqId) -> bool {
        let new = self.q(self.info(rq).queue);
        if new.is_idle_class() {
            return false;
        }
        let Some(active) = self.active.map(|a| self.q(a)) else {
            return self.feat.preemption == Preemption::ExpiresItself;
        };
        if active.is_idle_class() {
            return true;
        }
        if !new.wait_request || new.slice_left < self.set.slice_idle_jiffies {
            return false;
        }
        let meta =
            self.feat.metadata && q.rqs[rq].flags.has(BioFlags::META) && active.meta_pending == 0;
        !active.is_sync() || meta
    }

    fn preempt(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        match self.feat.preemption {
            Preemption::ExpiresItself | Preemption::TakesOver => {
                self.refile_current();
                self.grant_half_slice(cx, id);
                if self.feat.preemption == Preemption::ExpiresItself {
                    self.expire(cx, id, true);
                } else {
                    self.expire_active(cx, true);
                }
                self.activate_queue(cx, Some(id));
            }
            Preemption::NextInLine => {
                self.expire_active(cx, true);
                self.move_to_front(id);
                self.grant_half_slice(cx, id);
            }
        }
    }

    /// A queue that preempts without a slice left gets half a slice, which
    /// its activation takes away again.
    fn grant_half_slice(&mut self, cx: &Cx<'_>, id: QueueId) {
        let half = (self.slice_length(id) as i64 / 2) as u64;
        let queue = self.q_mut(id);
        if queue.slice_left == 0 {
            queue.slice_left = half;
        }
        queue.slice_end = now(cx).wrapping_add(queue.slice_left);
    }
}
