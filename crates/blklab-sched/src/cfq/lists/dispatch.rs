// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which queue is served, and which of its requests.
//! Source: block/cfq-iosched.c of 2.6.16 to 2.6.20.

use super::Cfq;
use super::queue::QueueId;
use crate::choose::{Reach, nearer, only_one};
use blklab_block::sq::Core;
use blklab_block::{Cx, RqId};
use blklab_trace::truth::Why;
use blklab_types::BioFlags;

impl Cfq {
    /// One call of the dispatch hook (`cfq_dispatch_requests`).
    pub(super) fn dispatch_rounds(&mut self, q: &mut Core, cx: &mut Cx<'_>) -> usize {
        let mut moved = 0;
        let mut previous = None;
        while let Some(id) = self.select_queue(cx) {
            if previous == Some(id) {
                break;
            }
            if !self.may_dispatch(cx, id) {
                break;
            }
            let queue = &mut self.queues[id];
            queue.turn.must_dispatch = false;
            queue.turn.wait_request = false;
            self.cancel_idle_timer(cx);
            moved += self.serve_round(q, cx, id);
            if self.feat.one_queue_per_call
                || (self.queues[id].idle_window && self.active.is_some())
            {
                break;
            }
            previous = Some(id);
        }
        moved
    }

    /// Whether a queue may have more requests at the device, as far as that is limited
    /// (`cfq_dispatch_requests`, later `cfq_may_dispatch`): beyond `max_depth` only one
    /// that is idled for.
    fn may_dispatch(&self, cx: &mut Cx<'_>, id: QueueId) -> bool {
        let is_deep = self.feat.max_depth && self.rq_in_driver >= self.set.max_depth;
        let may = self.queues[id].idle_window || !is_deep;
        if !may {
            cx.waits(Why::Quantum, self.pid_of(cx, id));
        }
        may
    }

    /// The queue to serve now; none while one is waited for (`cfq_select_queue`).
    fn select_queue(&mut self, cx: &mut Cx<'_>) -> Option<QueueId> {
        if let Some(id) = self.active {
            let queue = &self.queues[id];
            if queue.turn.must_dispatch || !self.slice_used(id, self.clock.now(cx)) {
                if !queue.waiting.is_empty() {
                    return Some(id);
                }
                if self.feat.idles_at_completion {
                    if queue.nr_on_dispatch() > 0 {
                        cx.waits(Why::InFlight, self.pid_of(cx, id));
                        return None;
                    }
                    if queue.is_class_sync() && self.arm_slice_timer(cx, id) {
                        return None;
                    }
                } else if queue.is_class_sync()
                    && self.clock.after(queue.slice_end, self.clock.now(cx))
                    && self.arm_slice_timer(cx, id)
                {
                    return None;
                }
            }
            self.expire(cx, id, false);
        }
        self.set_active_queue(cx, None)
    }

    /// Moves up to a quantum of requests of the active queue
    /// (`__cfq_dispatch_requests`).
    fn serve_round(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId) -> usize {
        cx.waits(Why::Slice, self.pid_of(cx, id));
        let most = if self.queues[id].prio.is_idle_class() {
            1
        } else {
            self.set.quantum
        };
        let mut moved = 0;
        while let Some(rq) = self.check_fifo(q, cx, id).or(self.next_of(id)) {
            self.dispatch_insert(q, rq);
            self.dispatch_slice = self.dispatch_slice.wrapping_add(1);
            moved += 1;
            if self.active_task.is_none() {
                self.active_task = Some(self.of_rq[rq].task);
            }
            if moved >= most {
                break;
            }
        }
        if self.queues[id].slice_end == 0 {
            let length = self.prio_to_slice(id);
            self.queues[id].slice_end = self.clock.now(cx).wrapping_add(length);
        }
        let queue = &self.queues[id];
        let async_done =
            !queue.is_sync() && self.dispatch_slice >= self.set.prio_to_maxrq(queue.prio.now.level);
        let no_idling = self.feat.idles_at_completion && !queue.idle_window;
        if async_done || queue.prio.is_idle_class() || no_idling {
            self.expire_active(cx, false);
        }
        moved as usize
    }

    /// Length of the slice that a queue would get now (`cfq_prio_to_slice`).
    pub(super) fn prio_to_slice(&self, id: QueueId) -> u64 {
        let queue = &self.queues[id];
        self.set
            .slice_jiffies(queue.is_sync(), queue.prio.now.level)
    }

    /// The request that is next in the queue's own order.
    fn next_of(&self, id: QueueId) -> Option<RqId> {
        let queue = &self.queues[id];
        queue.waiting.next_rq.or(queue.waiting.sort.first())
    }

    /// The oldest request, if it has expired; one per slice (`cfq_check_fifo`).
    fn check_fifo(&mut self, q: &Core, cx: &Cx<'_>, id: QueueId) -> Option<RqId> {
        let queue = &self.queues[id];
        if queue.turn.fifo_expire {
            return None;
        }
        let rq = queue.waiting.fifo.front()?;
        let start = self.clock.at(q.rqs[rq].start_time);
        let age = self.set.fifo_expire_jiffies[usize::from(queue.is_class_sync())];
        if !self.clock.after(self.clock.now(cx), start + age) {
            return None;
        }
        self.queues[id].turn.fifo_expire = true;
        Some(rq)
    }

    /// Moves a request to the dispatch list (`cfq_dispatch_insert`).
    pub(super) fn dispatch_insert(&mut self, q: &mut Core, rq: RqId) {
        let (id, sync) = (self.of_rq.queue(rq), self.of_rq[rq].sync);
        if self.feat.chooses_after_dispatch {
            let next = self.find_next_rq(q, id, rq);
            self.queues[id].waiting.next_rq = next;
        }
        self.remove_request(q, rq);
        self.queues[id].on_dispatch[usize::from(sync)] += 1;
        q.dispatch_sort(rq);
        if self.feat.knows_head
            && let Some(last) = q.queue_head.back()
        {
            self.last_position = q.rqs[last].end();
        }
    }

    /// Takes a request out of its queue (`cfq_remove_request`).
    pub(super) fn remove_request(&mut self, q: &mut Core, rq: RqId) {
        let id = self.of_rq.queue(rq);
        if self.queues[id].waiting.next_rq == Some(rq) {
            let next = self.find_next_rq(q, id, rq);
            self.queues[id].waiting.next_rq = next;
        }
        let queue = &mut self.queues[id];
        queue.waiting.remove(&mut self.nodes, &mut q.rqs, rq);
        if q.rqs[rq].flags.has(BioFlags::META) {
            assert!(queue.meta_pending > 0, "metadata that leaves was counted");
            queue.meta_pending -= 1;
        }
        if queue.waiting.is_empty() {
            self.del_queue_rr(id);
        }
    }

    /// The better of the request behind `rq` (from the end on: the first) and
    /// the one before it (`cfq_find_next_crq`).
    pub(super) fn find_next_rq(&self, q: &Core, id: QueueId, rq: RqId) -> Option<RqId> {
        let [behind, before] = self.queues[id].waiting.neighbours(&self.nodes, rq);
        self.choose(q, behind, before)
    }

    /// The better of two requests: sync first, then metadata, then the one
    /// nearer to the head (`cfq_choose_req`).
    pub(super) fn choose(&self, q: &Core, a: Option<RqId>, b: Option<RqId>) -> Option<RqId> {
        let (Some(a), Some(b)) = (a, b) else {
            return a.or(b);
        };
        match (self.of_rq[a].sync, self.of_rq[b].sync) {
            (true, false) => return Some(a),
            (false, true) => return Some(b),
            _ => {}
        }
        if self.feat.metadata {
            let meta = only_one((a, &q.rqs[a]), (b, &q.rqs[b]), |rq| {
                rq.flags.has(BioFlags::META)
            });
            if meta.is_some() {
                return meta;
            }
        }
        let reach = Reach {
            last: self.last_position,
            back_max: self.set.back_max_sectors,
            penalty: self.set.back_penalty,
        };
        Some(nearer(&reach, (a, q.rqs[a].sector), (b, q.rqs[b].sector)))
    }

    /// Moves everything out (`cfq_forced_dispatch`).
    pub(super) fn forced_dispatch(&mut self, q: &mut Core, cx: &mut Cx<'_>) -> usize {
        let mut moved = 0;
        while let Some(id) = self.rr.first_forced() {
            while let Some(rq) = self.next_of(id) {
                self.dispatch_insert(q, rq);
                moved += 1;
            }
        }
        self.expire_active(cx, false);
        moved
    }
}
