// SPDX-License-Identifier: MIT OR Apache-2.0
//! A new request: its place in its queue, and whether it starts the driver.
//! Source: block/cfq-iosched.c of 2.6.16 to 2.6.20.

use super::Cfq;
use super::features::Preemption;
use super::queue::QueueId;
use blklab_block::sq::Core;
use blklab_block::{Cx, RqId};
use blklab_types::BioFlags;

impl Cfq {
    /// A request enters its queue (`cfq_insert_request`).
    pub(super) fn insert(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let (id, info) = (self.of_rq.queue(rq), self.of_rq[rq]);
        self.refresh_prio(cx, id, info.task);
        self.add_sorted(q, rq);
        let queue = &mut self.queues[id];
        queue.waiting.fifo.push_back(&mut q.rqs, rq);
        if q.rqs[rq].flags.has(BioFlags::META) {
            queue.meta_pending += 1;
        }
        self.rechoose(q, rq);
        if info.sync {
            let (sector, end) = (q.rqs[rq].sector, q.rqs[rq].end());
            self.learn(cx, id, info.task, sector, end);
            self.request_enqueued(q, cx, rq);
        } else if self.feat.async_ends_wait
            && self.active_task == Some(info.task)
            && self.cancel_timer(cx, self.idle_slice_timer)
        {
            self.expire_active(cx, false);
            q.run_requested = true;
        }
    }

    /// Puts a request into the tree. Those that start at the same sector go
    /// to the driver first (`cfq_add_crq_rb`).
    pub(super) fn add_sorted(&mut self, q: &mut Core, rq: RqId) {
        let id = self.of_rq.queue(rq);
        let sector = q.rqs[rq].sector;
        while let Some(alias) = self.queues[id].waiting.sort.find(&self.nodes, sector) {
            self.dispatch_insert(q, alias);
        }
        let tree = &mut self.queues[id].waiting.sort;
        tree.insert(&mut self.nodes, rq, sector);
        if self.queues[id].filed.is_none() {
            self.add_queue_rr(id);
        }
    }

    /// The new request may be better than the one that was next (`cfq_add_crq_rb`).
    pub(super) fn rechoose(&mut self, q: &Core, rq: RqId) {
        let id = self.of_rq.queue(rq);
        let next = self.choose(q, self.queues[id].waiting.next_rq, Some(rq));
        self.queues[id].waiting.next_rq = next;
    }

    /// A sync request was added: its queue is waited for, or preempts
    /// (`cfq_crq_enqueued`).
    fn request_enqueued(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let id = self.of_rq.queue(rq);
        if self.active == Some(id) {
            if self.queues[id].turn.wait_request {
                self.queues[id].turn.must_dispatch = true;
                self.cancel_timer(cx, self.idle_slice_timer);
                q.run_requested = true;
            }
        } else if self.should_preempt(q, rq) {
            self.preempt_queue(cx, id);
            self.queues[id].turn.must_dispatch = true;
            q.run_requested = true;
        }
    }

    /// Whether a sync request of a queue that is not active takes the disk
    /// away from the active one. As only the active queue is ever waited for,
    /// in effect only the idle class loses it (`cfq_should_preempt`).
    fn should_preempt(&self, q: &Core, rq: RqId) -> bool {
        let new = &self.queues[self.of_rq.queue(rq)];
        if new.prio.is_idle_class() {
            return false;
        }
        let Some(active) = self.active.map(|a| &self.queues[a]) else {
            return self.feat.preemption == Preemption::ExpiresItself;
        };
        if active.prio.is_idle_class() {
            return true;
        }
        if !new.turn.wait_request || new.slice_resid < self.set.slice_idle_jiffies {
            return false;
        }
        let meta =
            self.feat.metadata && q.rqs[rq].flags.has(BioFlags::META) && active.meta_pending == 0;
        !active.is_sync() || meta
    }

    /// `cfq_preempt_queue`.
    fn preempt_queue(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        match self.feat.preemption {
            Preemption::ExpiresItself | Preemption::TakesOver => {
                self.refile_current();
                self.grant_half_slice(cx, id);
                if self.feat.preemption == Preemption::ExpiresItself {
                    self.expire(cx, id, true);
                } else {
                    self.expire_active(cx, true);
                }
                self.set_active_queue(cx, Some(id));
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
        let half = (self.prio_to_slice(id) as i64 / 2) as u64;
        let queue = &mut self.queues[id];
        if queue.slice_resid == 0 {
            queue.slice_resid = half;
        }
        queue.slice_end = self.clock.now(cx).wrapping_add(queue.slice_resid);
    }
}
