// SPDX-License-Identifier: MIT OR Apache-2.0
//! From queues to the dispatch list: rounds of a quantum (to 2.6.29) or one
//! request per call.

use super::Cfq;
use super::queue::QueueId;
use crate::cfq::IS_BUSY;
use blklab_block::Cx;
use blklab_block::sq::Core;
use blklab_trace::truth::Why;

impl Cfq {
    /// Rounds of one queue after the other, until one has to wait
    /// (`cfq_dispatch_requests`).
    pub(super) fn dispatch_rounds(&mut self, q: &mut Core, cx: &mut Cx<'_>) -> usize {
        let mut moved = 0;
        while let Some(id) = self.select_queue(q, cx) {
            let Some(room) = self.may_dispatch(cx, id) else {
                break;
            };
            self.stop_waiting(cx, id);
            moved += self.serve_round(q, cx, id, room) as usize;
        }
        q.message(cx, format_args!("cfq dispatched={moved}"));
        moved
    }

    /// Up to `room` requests of a queue (`__cfq_dispatch_requests`).
    fn serve_round(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId, room: u32) -> u32 {
        let mut moved = 0;
        loop {
            self.dispatch_from(q, cx, id);
            moved += 1;
            let queue = &self.queues[id];
            let yields = self.feat.rt_cuts_in && !queue.prio.is_rt() && self.busy_rt_queues != 0;
            if moved >= room || queue.waiting.is_empty() || yields {
                break;
            }
        }
        self.expire_if_served(q, cx, id, moved);
        moved
    }

    /// One request, if the queue may send one at all (`cfq_dispatch_requests`).
    pub(super) fn dispatch_one(&mut self, q: &mut Core, cx: &mut Cx<'_>) -> usize {
        let Some(id) = self.select_queue(q, cx) else {
            return 0;
        };
        if self.may_dispatch(cx, id).is_none() {
            return 0;
        }
        if !self.feat.keeps_idling {
            self.stop_waiting(cx, id);
        }
        self.dispatch_from(q, cx, id);
        let queue = &mut self.queues[id];
        queue.slice_dispatch = queue.slice_dispatch.saturating_add(1);
        queue.turn.must_dispatch = false;
        let moved = queue.slice_dispatch;
        self.expire_if_served(q, cx, id, moved);
        let pid = self.queues[id].pid;
        q.message(cx, format_args!("cfq{pid} dispatched a request"));
        1
    }

    /// What CFQ idled for has come.
    fn stop_waiting(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        self.queues[id].turn.wait_request = false;
        self.cancel_idle_timer(cx);
    }

    /// Moves one request of a queue (`cfq_dispatch_request`).
    fn dispatch_from(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId) {
        let expired = self.check_fifo(q, cx, id);
        let rq = expired.or(self.queues[id].waiting.next_rq);
        let rq = rq.expect(IS_BUSY);
        self.dispatch_insert(q, cx, rq);
        if self.active_task.is_none() {
            self.active_task = Some(q.rqs[rq].task);
        }
        cx.waits(Why::Slice, self.queues[id].pid);
    }

    /// Async queues and the idle class give way to others early. What was moved, up to
    /// 2.6.29 in one round, then in the slice, is compared as int first, then as
    /// unsigned int.
    fn expire_if_served(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId, moved: u32) {
        let most = self.prio_to_maxrq(id);
        let is_much = if self.feat.single_dispatch {
            moved >= most as u32
        } else {
            i64::from(moved) >= i64::from(most)
        };
        let enough = !self.queues[id].sync && is_much;
        if self.busy_queues > 1 && (enough || self.queues[id].prio.is_idle_class()) {
            self.queues[id].slice_end = self.clock.now(cx).wrapping_add(1);
            self.expire_active(q, cx, false);
        }
    }

    /// Everything, queue by queue: for barriers (`cfq_forced_dispatch`).
    pub(super) fn forced_dispatch(&mut self, q: &mut Core, cx: &mut Cx<'_>) -> usize {
        let mut moved = 0;
        while let Some(id) = self.service.first() {
            while let Some(rq) = self.queues[id].waiting.next_rq {
                self.dispatch_insert(q, cx, rq);
                moved += 1;
            }
        }
        self.expire_active(q, cx, false);
        q.message(cx, format_args!("cfq forced_dispatch={moved}"));
        moved
    }
}
