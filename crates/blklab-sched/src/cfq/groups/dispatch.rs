// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dispatch: one request per call, if the limits allow it.

use super::Cfq;
use super::features::QuantumRule;
use super::group::{GroupId, NR_TREES, Place};
use super::queue::QueueId;
use crate::cfq::{ASYNC, IS_BUSY, SYNC};
use crate::choose::{Reach, better, is_meta};
use blklab_block::sq::Core;
use blklab_block::{Cx, Request, RqId};
use blklab_trace::truth::Why;
use blklab_types::BioFlags;

/// No limit.
const UNLIMITED: u32 = u32::MAX;

impl Cfq {
    /// Moves a request to the dispatch list, if there is one to move
    /// (`cfq_dispatch_requests`).
    pub(super) fn dispatch_one(&mut self, q: &mut Core, cx: &mut Cx<'_>) -> usize {
        if self.busy_queues == 0 {
            return 0;
        }
        let Some(id) = self.select_queue(q, cx) else {
            return 0;
        };
        if !self.dispatch_from(q, cx, id) {
            return 0;
        }
        let now = self.clock.now(cx);
        let maxrq = self.prio_to_maxrq(id);
        let queue = &mut self.queues[id];
        queue.slice_dispatch += 1;
        queue.turn.must_dispatch = false;
        let enough = !queue.sync && u64::from(queue.slice_dispatch) >= maxrq;
        if self.busy_queues > 1 && (enough || queue.prio.is_idle_class()) {
            queue.slice_end = now.wrapping_add(1);
            self.expire_active(q, cx, false);
        }
        self.say(q, cx, id, format_args!("dispatched a request"));
        1
    }

    /// Requests of an async queue per slice beside others (`cfq_prio_to_maxrq`).
    pub(super) fn prio_to_maxrq(&self, id: QueueId) -> u64 {
        let level = u64::from(self.queues[id].prio.now.level.min(7));
        2 * u64::from(self.set.slice_async_rq) * (8 - level)
    }

    /// `cfq_dispatch_request`.
    fn dispatch_from(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId) -> bool {
        let expired = if self.feat.must_dispatch_passes {
            let expired = self.check_fifo(q, cx, id);
            self.queues[id].turn.must_dispatch |= expired.is_some();
            if !self.may_dispatch(q, cx, id) {
                return false;
            }
            if expired.is_some() {
                self.say(q, cx, id, format_args!("fifo=ptr"));
            }
            expired
        } else {
            if !self.may_dispatch(q, cx, id) {
                return false;
            }
            self.check_fifo(q, cx, id)
        };
        let rq = expired.or(self.queues[id].waiting.next_rq);
        let rq = rq.expect(IS_BUSY);
        let task = q.rqs[rq].task;
        self.dispatch_insert(q, cx, rq);
        self.active_task.get_or_insert(task);
        true
    }

    /// The oldest request of a queue if it has expired; once per slice
    /// (`cfq_check_fifo`).
    fn check_fifo(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId) -> Option<RqId> {
        let queue = &mut self.queues[id];
        if std::mem::replace(&mut queue.turn.fifo_expire, true) {
            return None;
        }
        let oldest = queue.waiting.fifo.front()?;
        let now = self.clock.now(cx);
        let expired = !self.clock.before(now, self.of_rq[oldest].fifo_time);
        if !self.feat.must_dispatch_passes {
            let shown = if expired { "ptr" } else { "none" };
            self.say(q, cx, id, format_args!("fifo={shown}"));
        }
        expired.then_some(oldest)
    }

    /// Whether the queue may have one more request at the device
    /// (`cfq_may_dispatch`).
    fn may_dispatch(&self, q: &Core, cx: &mut Cx<'_>, id: QueueId) -> bool {
        let pid = self.queues[id].pid;
        if self.feat.must_dispatch_passes && self.queues[id].turn.must_dispatch {
            return true;
        }
        let draining = if self.feat.drains_by_queue {
            self.rq_in_flight[ASYNC]
        } else {
            self.async_in_driver
        };
        if self.should_idle(q, cx, id) && draining > 0 {
            cx.waits(Why::AsyncInFlight, pid);
            return false;
        }
        let queue = &self.queues[id];
        if self.rq_in_flight[SYNC] > 0 && !queue.sync {
            cx.waits(Why::SyncInFlight, pid);
            return false;
        }
        let Some(mut limit) = self.quantum_limit(cx, id) else {
            cx.waits(Why::Quantum, pid);
            return false;
        };
        let mut why = Why::Quantum;
        if !queue.sync && self.set.low_latency {
            let since = self.clock.now(cx).wrapping_sub(self.last_delayed_sync);
            let mut depth = since / self.sync_slice();
            if depth == 0 && queue.dispatched == 0 {
                depth = 1;
            }
            if depth < u64::from(limit) {
                limit = depth as u32;
                why = Why::AsyncRamp;
            }
        }
        if queue.dispatched >= limit {
            cx.waits(why, pid);
        }
        queue.dispatched < limit
    }

    /// The number of requests a queue may have at the device; none if it is
    /// refused outright.
    fn quantum_limit(&self, cx: &Cx<'_>, id: QueueId) -> Option<u32> {
        let queue = &self.queues[id];
        let soft = self.feat.quantum_rule == QuantumRule::Soft;
        let max = match self.set.quantum {
            _ if queue.prio.is_idle_class() => 1,
            quantum if soft => (quantum / 2).max(1),
            quantum => quantum,
        };
        if queue.dispatched < max {
            return Some(max);
        }
        if queue.prio.is_idle_class() {
            return None;
        }
        if self.feat.quantum_needs_low_latency && !self.set.low_latency {
            return Some(UNLIMITED);
        }
        let promoted =
            self.feat.promotes_lone_sync && soft && queue.sync && self.busy_sync_queues == 1;
        if self.busy_queues > 1 && !promoted && self.is_used_soon(cx, id) {
            return None;
        }
        let hard = soft && self.busy_queues > 1 && !promoted;
        Some(if hard { self.set.quantum } else { UNLIMITED })
    }

    /// Whether the requests at the device are expected to use the slice up
    /// (`cfq_slice_used_soon`).
    fn is_used_soon(&self, cx: &Cx<'_>, id: QueueId) -> bool {
        let queue = &self.queues[id];
        let n = queue.dispatched;
        let log2 = |n: u32| n.max(1).ilog2();
        let factor = match self.feat.quantum_rule {
            QuantumRule::Hard => return true,
            QuantumRule::One => 1,
            QuantumRule::Linear | QuantumRule::Soft => u64::from(n),
            QuantumRule::Log => u64::from(log2(n.saturating_add(1))),
            QuantumRule::Sqrt => 1 << (log2(n.saturating_add(1)) >> 1),
        };
        let reach = self.set.slice_idle.wrapping_mul(factor);
        let reached = self.clock.now(cx).wrapping_add(reach);
        queue.slice_new || self.clock.after(reached, queue.slice_end)
    }

    /// Moves a request to its place in the dispatch list (`cfq_dispatch_insert`).
    pub(super) fn dispatch_insert(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let id = self.of_rq.queue(rq);
        self.say(q, cx, id, format_args!("dispatch_insert"));
        self.queues[id].waiting.next_rq = self.find_next_rq(q, id, rq);
        self.remove_request(q, id, rq);
        let group = self.of_rq[rq].group;
        self.groups[group].dispatched += 1;
        let queue = &mut self.queues[id];
        queue.dispatched += 1;
        queue.slice_sectors += u64::from(q.rqs[rq].nr_sectors);
        self.rq_in_flight[usize::from(queue.sync)] += 1;
        q.dispatch_sort(rq);
    }

    /// The request to follow one that leaves its queue (`cfq_find_next_rq`).
    pub(super) fn find_next_rq(&self, q: &Core, id: QueueId, rq: RqId) -> Option<RqId> {
        let [behind, before] = self.queues[id].waiting.neighbours(&self.nodes, rq);
        self.choose(q, behind, before, q.rqs[rq].sector)
    }

    /// The better of two requests for a head at `last` (`cfq_choose_req`).
    pub(super) fn choose(
        &self,
        q: &Core,
        a: Option<RqId>,
        b: Option<RqId>,
        last: u64,
    ) -> Option<RqId> {
        let boosted: fn(&Request) -> bool = if self.feat.prio_flag {
            |rq| rq.flags.has(BioFlags::PRIO)
        } else {
            is_meta
        };
        let reach = Reach {
            last,
            back_max: self.set.back_max_sectors,
            penalty: self.set.back_penalty,
        };
        better(&q.rqs, a, b, boosted, &reach)
    }

    /// Everything goes: before a barrier, or when the scheduler is changed
    /// (`cfq_forced_dispatch`).
    pub(super) fn forced_dispatch(&mut self, q: &mut Core, cx: &mut Cx<'_>) -> usize {
        let mut moved = 0;
        if self.feat.forced_is_active {
            self.expire_active(q, cx, false);
        }
        while let Some(id) = self.next_forced() {
            if self.feat.forced_is_active {
                self.set_active_queue(q, cx, Some(id));
            }
            while let Some(rq) = self.queues[id].waiting.next_rq {
                self.dispatch_insert(q, cx, rq);
                moved += 1;
            }
            self.expire(q, cx, id, false);
        }
        if !self.feat.forced_is_active {
            self.expire_active(q, cx, false);
        }
        q.message(cx, format_args!("cfq forced_dispatch={moved}"));
        moved
    }

    /// Any busy queue, in the order of groups and trees
    /// (`cfq_get_next_queue_forced`).
    fn next_forced(&mut self) -> Option<QueueId> {
        let group: GroupId = self.groups.first()?;
        (0..NR_TREES).find_map(|tree| self.leftmost(Place { group, tree }))
    }
}
