// SPDX-License-Identifier: MIT OR Apache-2.0
//! A new request: its place in its queue, and what it does to the slice that runs.
//! Source: block/cfq-iosched.c of 2.6.16 to 2.6.20.

use super::Cfq;
use super::queue::QueueId;
use blklab_block::sq::Core;
use blklab_block::{Cx, RqId};
use blklab_types::{Bio, BioFlags};

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
            self.request_enqueued(q, cx, id, rq);
        } else if self.feat.async_ends_wait
            && self.active_task == Some(info.task)
            && self.cancel_idle_timer(cx)
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

    /// What a new sync request tells of its process, and does to the slice that runs
    /// (`cfq_crq_enqueued`).
    fn request_enqueued(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId, rq: RqId) {
        let task = self.of_rq[rq].task;
        self.note_think(cx, task);
        self.note_seek(q, task, rq);
        self.contexts[task].last_request_pos = q.rqs[rq].end();
        self.update_idle_window(id, task);
        if self.active == Some(id) {
            if self.queues[id].turn.wait_request {
                self.awaited_came(q, cx, id);
            }
        } else if self.should_preempt(q, id, rq) {
            self.preempt_queue(cx, id);
            self.queues[id].turn.must_dispatch = true;
            q.run_requested = true;
        }
    }

    /// A request came for the active queue, which CFQ idles for.
    fn awaited_came(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId) {
        self.queues[id].turn.must_dispatch = true;
        self.cancel_idle_timer(cx);
        q.run_requested = true;
    }

    /// A request grew at its front (`cfq_reposition_crq_rb`).
    pub(super) fn reposition(&mut self, q: &mut Core, rq: RqId) {
        let id = self.of_rq.queue(rq);
        if self.feat.chooses_after_dispatch && self.queues[id].waiting.next_rq == Some(rq) {
            let next = self.find_next_rq(q, id, rq);
            self.queues[id].waiting.next_rq = next;
        }
        let tree = &mut self.queues[id].waiting.sort;
        tree.remove(&mut self.nodes, rq);
        self.add_sorted(q, rq);
        if self.feat.chooses_after_dispatch {
            self.rechoose(q, rq);
        }
    }

    /// A waiting request of the submitter's queue behind the bio
    /// (`cfq_find_rq_fmerge`).
    pub(super) fn front_candidate(&self, q: &Core, cx: &Cx<'_>, bio: &Bio) -> Option<RqId> {
        let id = if self.feat.front_merge_in_own_queue {
            self.own_queue(bio.task)?
        } else {
            let own = self.goes_to_own(bio.op, bio.flags);
            self.find_queue(cx, bio.task, own)?
        };
        self.queues[id].waiting.front_merge(&self.nodes, q, bio)
    }
}
