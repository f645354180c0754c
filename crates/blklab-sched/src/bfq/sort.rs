// SPDX-License-Identifier: MIT OR Apache-2.0
//! The waiting requests of a queue: by sector, by arrival, and the preferred
//! next one, which the queue's budget follows.

use super::Bfq;
use super::clock::now_ns;
use super::entity::Ent;
use super::settings::ASYNC_CHARGE;
use crate::choose::{Reach, better, is_meta};
use crate::queue_id::QueueId;
use blklab_block::mq::Core;
use blklab_block::{Cx, RqId};

impl Bfq {
    /// Which of two requests is better next: sync before async, metadata
    /// before data, then the nearer to `last`.
    pub(super) fn choose(
        &self,
        q: &Core,
        a: Option<RqId>,
        b: Option<RqId>,
        last: u64,
    ) -> Option<RqId> {
        let reach = Reach {
            last,
            back_max: self.set.back_max_sectors,
            penalty: self.set.back_penalty,
        };
        better(&q.rqs, a, b, is_meta, &reach)
    }

    /// The next request after `rq`: once per slot the oldest if it is old
    /// enough, else the better neighbour; the sweep wraps at the upper end.
    fn next_after(&mut self, q: &Core, cx: &Cx<'_>, id: QueueId, rq: RqId) -> Option<RqId> {
        let x = &mut self.queues[id];
        if !std::mem::replace(&mut x.age_seen, true)
            && let Some(oldest) = x.fifo.front()
            && oldest != rq
            && now_ns(cx) >= self.of_rq[oldest].expiry_ns
        {
            return Some(oldest);
        }
        let wrapped = || self.queues[id].sort.first().filter(|&f| f != rq);
        let behind = self.nodes.next(rq).or_else(wrapped);
        self.choose(q, behind, self.nodes.prev(rq), q.rqs[rq].sector)
    }

    /// What a request takes from its queue's budget, in sectors: async ones
    /// more than they have, where that hurts nobody's share.
    pub(super) fn charge(&self, q: &Core, id: QueueId, rq: RqId) -> i64 {
        let sectors = i64::from(q.rqs[rq].nr_sectors);
        if self.queues[id].sync || self.wr(id) > 1 || self.is_asymmetric(id) {
            sectors
        } else {
            sectors * ASYNC_CHARGE
        }
    }

    /// The budget follows the next request of a queue that is not in service.
    pub(super) fn follow_next(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId) {
        let Some(next) = self.queues[id].next else {
            return;
        };
        if self.in_service == Some(id) {
            return;
        }
        let ent = Ent::of_queue(id);
        let charge = self.charge(q, id, next);
        let wanted = self.queues[id].max_budget.max(charge);
        let e = &mut self.ents[ent];
        let wanted = wanted.max(e.service);
        if e.budget != wanted {
            e.budget = wanted;
            self.say(
                q,
                cx,
                id,
                format_args!("updated next rq: new budget {wanted}"),
            );
            self.requeue_queue(q, cx, id, false);
        }
    }

    /// Takes a waiting request out of its queue.
    pub(super) fn remove(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let id = self.of_rq.queue(rq);
        if self.queues[id].next == Some(rq) {
            self.queues[id].next = self.next_after(q, cx, id, rq);
            self.follow_next(q, cx, id);
        }
        let sync = usize::from(q.rqs[rq].is_sync());
        let x = &mut self.queues[id];
        x.fifo.remove(&mut q.rqs, rq);
        assert!(
            x.queued[sync] > 0 && self.queued > 0,
            "what leaves a queue was counted in it"
        );
        x.queued[sync] -= 1;
        self.queued -= 1;
        x.sort.remove(&mut self.nodes, rq);
        self.of_rq[rq].waits = false;
        if !self.queues[id].is_empty() {
            self.file_position(q, cx, id);
            return;
        }
        self.queues[id].next = None;
        if self.queues[id].busy && self.in_service != Some(id) {
            self.leave_busy(q, cx, id, false);
            let e = &mut self.ents[Ent::of_queue(id)];
            e.budget = 0;
            e.service = 0;
        }
        self.unfile_position(id);
    }

    /// A front merge moved the start of a waiting request.
    pub(super) fn reposition(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let id = self.of_rq.queue(rq);
        let passed = self
            .nodes
            .prev(rq)
            .is_some_and(|p| q.rqs[rq].sector < q.rqs[p].sector);
        let sector = q.rqs[rq].sector;
        let sort = &mut self.queues[id].sort;
        sort.remove(&mut self.nodes, rq);
        sort.insert(&mut self.nodes, rq, sector);
        if !passed {
            return;
        }
        let before = self.queues[id].next;
        let next = self.choose(q, before, Some(rq), self.last_position);
        self.queues[id].next = next;
        if next != before {
            self.follow_next(q, cx, id);
            self.file_position(q, cx, id);
        }
    }

    /// One request absorbed another: in one queue the older place by arrival
    /// stays.
    pub(super) fn absorb(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId, next: RqId) {
        let next_waits = self.waits(next);
        if let Some(id) = self.of_rq.queue_if_any(rq) {
            let same = self.of_rq.queue_if_any(next) == Some(id);
            let both_wait = next_waits && self.waits(rq);
            let (age, next_age) = (self.of_rq[rq].expiry_ns, self.of_rq[next].expiry_ns);
            let x = &mut self.queues[id];
            if same && both_wait && next_age < age {
                x.fifo.move_behind(&mut q.rqs, next, rq);
                self.of_rq[rq].expiry_ns = next_age;
            }
            if x.next == Some(next) {
                x.next = Some(rq);
            }
        }
        if next_waits {
            self.remove(q, cx, next);
        }
    }
}
