// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which queue is served, and which of its requests.
//! Source: block/cfq-iosched.c of 2.6.16 to 2.6.20.

use super::queue::QueueId;
use super::{BASE_TICKS, Cfq, after, now};
use crate::choose::{Reach, nearer, only_one};
use blklab_block::sq::Core;
use blklab_block::{Cx, RqId};
use blklab_trace::truth::Why;
use blklab_types::BioFlags;

impl Cfq {
    /// One call of the dispatch hook.
    pub(super) fn dispatch_some(&mut self, q: &mut Core, cx: &mut Cx<'_>) -> usize {
        let mut moved = 0;
        let mut previous = None;
        while let Some(id) = self.select(cx) {
            if previous == Some(id) {
                break;
            }
            if !self.q(id).idle_window && self.is_too_deep() {
                cx.waits(Why::Quantum, self.pid_of(cx, id));
                break;
            }
            let queue = self.q_mut(id);
            queue.must_dispatch = false;
            queue.wait_request = false;
            self.stop_timer(cx, self.idle_slice_timer);
            moved += self.serve_round(q, cx, id);
            if self.feat.one_queue_per_call || (self.q(id).idle_window && self.active.is_some()) {
                break;
            }
            previous = Some(id);
        }
        moved
    }

    /// Whether `max_depth` requests are at the device.
    fn is_too_deep(&self) -> bool {
        self.feat.max_depth && self.rq_in_driver >= self.set.max_depth
    }

    /// The queue to serve now; none while one is waited for.
    fn select(&mut self, cx: &mut Cx<'_>) -> Option<QueueId> {
        if let Some(id) = self.active {
            let queue = self.q(id);
            if queue.must_dispatch || !self.is_used(cx, id) {
                if !queue.sort.is_empty() {
                    return Some(id);
                }
                if self.feat.idles_at_completion {
                    if queue.nr_on_dispatch() > 0 {
                        cx.waits(Why::InFlight, self.pid_of(cx, id));
                        return None;
                    }
                    if queue.is_class_sync() && self.arm_idle(cx, id) {
                        return None;
                    }
                } else if queue.is_class_sync()
                    && after(queue.slice_end, now(cx))
                    && self.arm_idle(cx, id)
                {
                    return None;
                }
            }
            self.expire(cx, id, false);
        }
        self.activate_next(cx)
    }

    /// Moves up to a quantum of requests of the active queue.
    fn serve_round(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId) -> usize {
        cx.waits(Why::Slice, self.pid_of(cx, id));
        let most = if self.q(id).is_idle_class() {
            1
        } else {
            self.set.quantum
        };
        let mut moved = 0;
        while let Some(rq) = self.take_expired(q, cx, id).or(self.next_of(id)) {
            self.move_out(q, rq);
            self.slice_dispatched = self.slice_dispatched.wrapping_add(1);
            moved += 1;
            if self.active_context.is_none() {
                self.active_context = Some(self.info(rq).task);
            }
            if moved >= most {
                break;
            }
        }
        if self.q(id).slice_end == 0 {
            let length = self.slice_length(id);
            self.q_mut(id).slice_end = now(cx).wrapping_add(length);
        }
        let queue = self.q(id);
        let async_done =
            !queue.is_sync() && self.slice_dispatched >= self.set.maxrq(queue.prio.level);
        let no_idling = self.feat.idles_at_completion && !queue.idle_window;
        if async_done || queue.is_idle_class() || no_idling {
            self.expire_active(cx, false);
        }
        moved as usize
    }

    /// Length of the slice that a queue would get now.
    pub(super) fn slice_length(&self, id: QueueId) -> u64 {
        let queue = self.q(id);
        self.set.slice_jiffies(queue.is_sync(), queue.prio.level)
    }

    /// The request that is next in the queue's own order.
    fn next_of(&self, id: QueueId) -> Option<RqId> {
        let queue = self.q(id);
        queue.next_rq.or(queue.sort.first())
    }

    /// The oldest request, if it has expired; one per slice.
    fn take_expired(&mut self, q: &Core, cx: &Cx<'_>, id: QueueId) -> Option<RqId> {
        let queue = self.q(id);
        if queue.fifo_expired {
            return None;
        }
        let rq = queue.fifo.front()?;
        let start = q.rqs[rq].start_time.0 + BASE_TICKS;
        let age = self.set.fifo_expire_jiffies[usize::from(queue.is_class_sync())];
        if !after(now(cx), start + age) {
            return None;
        }
        self.q_mut(id).fifo_expired = true;
        Some(rq)
    }

    /// Moves a request to the dispatch list.
    pub(super) fn move_out(&mut self, q: &mut Core, rq: RqId) {
        let info = self.info(rq);
        if self.feat.chooses_after_dispatch {
            let next = self.beside(q, info.queue, rq);
            self.q_mut(info.queue).next_rq = next;
        }
        self.take_out(q, rq);
        self.q_mut(info.queue).on_dispatch[usize::from(info.sync)] += 1;
        q.dispatch_sort(rq);
        if self.feat.knows_head
            && let Some(last) = q.queue_head.back()
        {
            self.last_sector = q.rqs[last].end();
        }
    }

    /// Takes a request out of its queue.
    pub(super) fn take_out(&mut self, q: &mut Core, rq: RqId) {
        let id = self.info(rq).queue;
        if self.q(id).next_rq == Some(rq) {
            let next = self.beside(q, id, rq);
            self.q_mut(id).next_rq = next;
        }
        let queue = &mut self.queues[id];
        queue.fifo.remove(&mut q.rqs, rq);
        queue.sort.remove(&mut self.nodes, rq);
        if q.rqs[rq].flags.has(BioFlags::META) {
            queue.meta_pending = queue.meta_pending.saturating_sub(1);
        }
        if queue.sort.is_empty() {
            self.leave_lists(id);
        }
    }

    /// The better of the request behind `rq` (from the end on: the first) and
    /// the one before it.
    pub(super) fn beside(&self, q: &Core, id: QueueId, rq: RqId) -> Option<RqId> {
        let first = || self.q(id).sort.first().filter(|&f| f != rq);
        let behind = self.nodes.next(rq).or_else(first);
        self.choose(q, behind, self.nodes.prev(rq))
    }

    /// The better of two requests: sync first, then metadata, then the one
    /// nearer to the head.
    pub(super) fn choose(&self, q: &Core, a: Option<RqId>, b: Option<RqId>) -> Option<RqId> {
        let (Some(a), Some(b)) = (a, b) else {
            return a.or(b);
        };
        match (self.info(a).sync, self.info(b).sync) {
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
            last: self.last_sector,
            back_max: self.set.back_max_sectors,
            penalty: self.set.back_penalty,
        };
        Some(nearer(&reach, (a, q.rqs[a].sector), (b, q.rqs[b].sector)))
    }

    /// Moves everything out.
    pub(super) fn dispatch_all(&mut self, q: &mut Core, cx: &mut Cx<'_>) -> usize {
        let mut moved = 0;
        while let Some(id) = self.rr.first_forced() {
            while let Some(rq) = self.next_of(id) {
                self.move_out(q, rq);
                moved += 1;
            }
        }
        self.expire_active(cx, false);
        moved
    }
}
