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
    /// The driver found the dispatch list empty.
    pub(super) fn dispatch_some(&mut self, q: &mut Core, cx: &mut Cx<'_>) -> usize {
        if self.busy_queues == 0 {
            0
        } else if self.feat.single_dispatch {
            self.dispatch_one(q, cx)
        } else {
            self.dispatch_rounds(q, cx)
        }
    }

    /// Rounds of one queue after the other, until one has to wait
    /// (`cfq_dispatch_requests`).
    fn dispatch_rounds(&mut self, q: &mut Core, cx: &mut Cx<'_>) -> usize {
        let mut moved = 0;
        while let Some(queue) = self.select_queue(q, cx) {
            let Some(room) = self.room(cx, queue) else {
                break;
            };
            self.stop_waiting(cx, queue);
            moved += self.serve_round(q, cx, queue, room) as usize;
        }
        q.message(cx, format_args!("cfq dispatched={moved}"));
        moved
    }

    /// Up to `room` requests of a queue (`__cfq_dispatch_requests`).
    fn serve_round(&mut self, q: &mut Core, cx: &mut Cx<'_>, queue: QueueId, room: u32) -> u32 {
        let mut moved = 0;
        loop {
            self.move_next(q, cx, queue);
            moved += 1;
            let x = &self.queues[queue];
            let yields = self.feat.rt_cuts_in && !x.prio.is_rt() && self.busy_rt_queues != 0;
            if moved >= room || x.waiting.is_empty() || yields {
                break;
            }
        }
        self.expire_if_served(q, cx, queue, moved);
        moved
    }

    /// One request, if the queue may send one at all (`cfq_dispatch_requests`).
    fn dispatch_one(&mut self, q: &mut Core, cx: &mut Cx<'_>) -> usize {
        let Some(queue) = self.select_queue(q, cx) else {
            return 0;
        };
        if self.room(cx, queue).is_none() {
            return 0;
        }
        if !self.feat.keeps_idling {
            self.stop_waiting(cx, queue);
        }
        self.move_next(q, cx, queue);
        let x = &mut self.queues[queue];
        x.slice_dispatch = x.slice_dispatch.saturating_add(1);
        x.turn.must_dispatch = false;
        let moved = x.slice_dispatch;
        self.expire_if_served(q, cx, queue, moved);
        let pid = self.queues[queue].pid;
        q.message(cx, format_args!("cfq{pid} dispatched a request"));
        1
    }

    /// What CFQ idled for has come.
    fn stop_waiting(&mut self, cx: &mut Cx<'_>, queue: QueueId) {
        self.queues[queue].turn.wait_request = false;
        self.cancel_idle_timer(cx);
    }

    fn move_next(&mut self, q: &mut Core, cx: &mut Cx<'_>, queue: QueueId) {
        let expired = self.check_fifo(q, cx, queue);
        let rq = expired.or(self.queues[queue].waiting.next_rq);
        let rq = rq.expect(IS_BUSY);
        self.dispatch_insert(q, cx, rq);
        if self.active_task.is_none() {
            self.active_task = Some(q.rqs[rq].task);
        }
        cx.waits(Why::Slice, self.queues[queue].pid);
    }

    /// Async queues and the idle class give way to others early.
    fn expire_if_served(&mut self, q: &Core, cx: &mut Cx<'_>, queue: QueueId, moved: u32) {
        let enough = !self.queues[queue].sync && self.exceeds_maxrq(queue, moved);
        if self.busy_queues > 1 && (enough || self.queues[queue].prio.is_idle_class()) {
            self.queues[queue].slice_end = self.clock.now(cx).wrapping_add(1);
            self.expire_active(q, cx, false);
        }
    }

    /// Everything, queue by queue: for barriers (`cfq_forced_dispatch`).
    pub(super) fn forced_dispatch(&mut self, q: &mut Core, cx: &mut Cx<'_>) -> usize {
        let mut moved = 0;
        while let Some(queue) = self.service.first() {
            while let Some(rq) = self.queues[queue].waiting.next_rq {
                self.dispatch_insert(q, cx, rq);
                moved += 1;
            }
        }
        self.expire_active(q, cx, false);
        q.message(cx, format_args!("cfq forced_dispatch={moved}"));
        moved
    }
}
