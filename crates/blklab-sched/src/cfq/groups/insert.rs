// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests enter and leave their queues.

use super::Cfq;
use super::queue::QueueId;
use blklab_block::sq::Core;
use blklab_block::{Cx, RqId};
use blklab_types::Bio;

impl Cfq {
    /// A request enters its queue (`cfq_insert_request`).
    pub(super) fn insert(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let id = self.of_rq.queue(rq);
        self.say(q, cx, id, format_args!("insert_request"));
        self.refresh_prio(cx, id, q.rqs[rq].task);
        let expire = self.set.fifo_expire[usize::from(q.rqs[rq].is_sync())];
        self.of_rq[rq].fifo_time = self.clock.now(cx).wrapping_add(expire);
        self.queues[id].waiting.fifo.push_back(&mut q.rqs, rq);
        self.add_sorted(q, cx, id, rq);
        self.request_enqueued(q, cx, id, rq);
    }

    /// What a new request tells of its process, and does to the slice that runs
    /// (`cfq_rq_enqueued`).
    fn request_enqueued(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId, rq: RqId) {
        let task = q.rqs[rq].task;
        self.rq_queued += 1;
        if q.rqs[rq].flags.has(self.boost_flag()) {
            self.queues[id].prio_pending += 1;
        }
        self.note_think(cx, id, task);
        self.note_seek(q, id, rq);
        self.update_idle_window(q, cx, id, task);
        self.queues[id].last_pos = q.rqs[rq].end();
        if self.active == Some(id) {
            if self.queues[id].turn.wait_request {
                self.awaited_came(q, cx, id, rq);
            }
        } else if self.should_preempt(q, cx, id, rq) {
            self.preempt_queue(q, cx, id);
            q.run_requested = true;
        }
    }

    /// Puts a request into its queue's order (`cfq_add_rq_rb`).
    pub(super) fn add_sorted(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId, rq: RqId) {
        let sector = q.rqs[rq].sector;
        if !self.feat.keeps_equal_sectors {
            while let Some(older) = self.queues[id].waiting.sort.find(&self.nodes, sector) {
                self.dispatch_insert(q, cx, older);
            }
        }
        self.queues[id]
            .waiting
            .sort
            .insert(&mut self.nodes, rq, sector);
        if !self.queues[id].on_rr {
            self.add_queue_rr(q, cx, id);
        }
        let old = self.queues[id].waiting.next_rq;
        let next = self.choose(q, old, Some(rq), self.last_position);
        self.queues[id].waiting.next_rq = next;
        if next != old {
            self.file_position(q, id);
        }
    }

    /// Takes a request out of its queue (`cfq_remove_request`).
    pub(super) fn remove_request(&mut self, q: &mut Core, id: QueueId, rq: RqId) {
        if self.queues[id].waiting.next_rq == Some(rq) {
            self.queues[id].waiting.next_rq = self.find_next_rq(q, id, rq);
        }
        let queue = &mut self.queues[id];
        queue.waiting.remove(&mut self.nodes, &mut q.rqs, rq);
        if self.queues[id].on_rr && self.queues[id].is_empty() {
            self.unfile_position(id);
        }
        assert!(self.rq_queued > 0, "what leaves a queue was counted in it");
        self.rq_queued -= 1;
        if q.rqs[rq].flags.has(self.boost_flag()) {
            let pending = &mut self.queues[id].prio_pending;
            assert!(*pending > 0, "what boosts a queue was counted in it");
            *pending -= 1;
        }
    }

    /// A request grew at its front (`cfq_reposition_rq_rb`).
    pub(super) fn reposition(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let id = self.of_rq.queue(rq);
        self.queues[id].waiting.sort.remove(&mut self.nodes, rq);
        self.add_sorted(q, cx, id, rq);
    }

    /// `rq` absorbed `next` (`cfq_merged_requests`).
    pub(super) fn absorb(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId, next: RqId) {
        let (id, other) = (self.of_rq.queue(rq), self.of_rq.queue(next));
        let (expiry, earlier) = (self.of_rq[rq].fifo_time, self.of_rq[next].fifo_time);
        if id == other
            && self.clock.before(earlier, expiry)
            && q.rqs[rq].is_sync() == q.rqs[next].is_sync()
        {
            self.queues[id]
                .waiting
                .fifo
                .move_behind(&mut q.rqs, next, rq);
            self.of_rq[rq].fifo_time = earlier;
        }
        if self.queues[other].waiting.next_rq == Some(next) && id == other {
            self.queues[other].waiting.next_rq = Some(rq);
        }
        self.remove_request(q, other, next);
        let queue = &self.queues[other];
        if queue.on_rr && queue.is_empty() && self.active != Some(other) {
            self.del_queue_rr(q, cx, other);
        }
    }

    /// A request that waits in front of which a bio fits (`cfq_find_rq_fmerge`).
    pub(super) fn front_candidate(&self, q: &Core, bio: &Bio) -> Option<RqId> {
        let id = self.queue_of(bio.task, bio.is_sync())?;
        self.queues[id].waiting.front_merge(&self.nodes, q, bio)
    }
}
