// SPDX-License-Identifier: MIT OR Apache-2.0
//! The waiting requests of a queue: by sector, by arrival, and the preferred
//! next one.

use super::Cfq;
use super::queue::QueueId;
use crate::choose::{Reach, better, is_meta};
use blklab_block::sq::Core;
use blklab_block::{Cx, RqId};

impl Cfq {
    /// Which of two requests is better next: sync before async, metadata
    /// before data, then the nearer to the head (`cfq_choose_req`).
    fn choose(&self, q: &Core, a: Option<RqId>, b: Option<RqId>) -> Option<RqId> {
        let reach = Reach {
            last: self.last_position,
            back_max: self.set.back_max_sectors,
            penalty: self.set.back_penalty,
        };
        better(&q.rqs, a, b, is_meta, &reach)
    }

    /// The better of the neighbours of a waiting request; the sweep wraps
    /// around at the upper end (`cfq_find_next_rq`).
    fn find_next_rq(&self, q: &Core, id: QueueId, rq: RqId) -> Option<RqId> {
        let [behind, before] = self.queues[id].waiting.neighbours(&self.nodes, rq);
        self.choose(q, behind, before)
    }

    /// Adds a request by its sector. One that already waits there goes out
    /// (`cfq_add_rq_rb`).
    pub(super) fn add_sorted(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId, rq: RqId) {
        let sector = q.rqs[rq].sector;
        while let Some(old) = self.queues[id].waiting.sort.find(&self.nodes, sector) {
            self.dispatch_insert(q, cx, old);
        }
        let sort = &mut self.queues[id].waiting.sort;
        sort.insert(&mut self.nodes, rq, sector);
        if !self.queues[id].on_rr {
            self.add_queue_rr(q, cx, id);
        }
        let before = self.queues[id].waiting.next_rq;
        let next = self.choose(q, before, Some(rq));
        self.queues[id].waiting.next_rq = next;
        if next != before {
            self.file_position(q, id);
        }
    }

    /// A front merge moved the start of a waiting request (`cfq_reposition_rq_rb`).
    pub(super) fn reposition(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let id = self.of_rq.queue(rq);
        self.queues[id].waiting.sort.remove(&mut self.nodes, rq);
        self.add_sorted(q, cx, id, rq);
    }

    /// Takes a request out of its queue (`cfq_remove_request`).
    pub(super) fn remove_request(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId, rq: RqId) {
        if self.queues[id].waiting.next_rq == Some(rq) {
            self.queues[id].waiting.next_rq = self.find_next_rq(q, id, rq);
        }
        let queue = &mut self.queues[id];
        queue.waiting.remove(&mut self.nodes, &mut q.rqs, rq);
        if queue.on_rr && queue.waiting.is_empty() {
            self.del_queue_rr(q, cx, id);
        }
        self.rq_queued = self.rq_queued.wrapping_sub(1);
        if is_meta(&q.rqs[rq]) {
            let queue = &mut self.queues[id];
            queue.meta_pending = queue.meta_pending.wrapping_sub(1);
        }
    }

    /// Moves a waiting request to its place in the dispatch list
    /// (`cfq_dispatch_insert`).
    pub(super) fn dispatch_insert(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let id = self.of_rq.queue(rq);
        let pid = self.queues[id].pid;
        q.message(cx, format_args!("cfq{pid} dispatch_insert"));
        if self.feat.next_follows_every_move {
            self.queues[id].waiting.next_rq = self.find_next_rq(q, id, rq);
        }
        self.remove_request(q, cx, id, rq);
        let queue = &mut self.queues[id];
        queue.dispatched += 1;
        if queue.sync {
            self.sync_flight += 1;
        }
        q.dispatch_sort(rq);
    }

    /// The oldest request, if it is old enough to go first; looked at once
    /// per slice (`cfq_check_fifo`).
    pub(super) fn check_fifo(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId) -> Option<RqId> {
        let queue = &mut self.queues[id];
        if std::mem::replace(&mut queue.turn.fifo_expire, true) {
            return None;
        }
        let oldest = queue.waiting.fifo.front()?;
        let expiry = if self.feat.age_from_insertion {
            self.of_rq[oldest].fifo_time
        } else {
            let age = u64::from(self.set.fifo_expire_jiffies[queue.kind()]);
            self.clock.at(q.rqs[oldest].start_time).wrapping_add(age)
        };
        let aged = self
            .clock
            .reached(self.clock.now(cx), expiry)
            .then_some(oldest);
        let shown = if aged.is_some() { "ptr" } else { "none" };
        q.message(cx, format_args!("cfq{} fifo={shown}", queue.pid));
        aged
    }
}
