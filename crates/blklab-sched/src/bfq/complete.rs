// SPDX-License-Identifier: MIT OR Apache-2.0
//! A request leaves the driver: whether the device queues commands, the clocks
//! of its queue, and what becomes of the slot.

use super::Bfq;
use super::clock::{jiffies, now_ns};
use super::expire::Reason;
use super::settings::RAISED;
use crate::queue_id::QueueId;
use blklab_block::mq::Core;
use blklab_block::{Cx, RqId};

impl Bfq {
    /// A request that has a queue is done with, or goes back to be inserted
    /// again (`bfq_finish_requeue_request`).
    pub(super) fn release(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let Some((id, of)) = self.of_rq.unbind(rq) else {
            return;
        };
        if of.started {
            if self.injected.waited_rq == Some(rq) {
                self.update_inject_limit(cx, id);
            }
            self.left_driver(q, cx, id);
        }
        self.put_allocated(id);
        let c = self.context_mut(q.rqs[rq].task);
        c.requests = c.requests.saturating_sub(1);
        self.put_queue(q, cx, id);
    }

    /// `bfq_completed_request`.
    fn left_driver(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId) {
        self.sample_depth();
        assert!(self.in_driver > 0, "what completes was at the driver");
        assert!(
            self.queues[id].dispatched > 0,
            "what completes left its queue"
        );
        self.in_driver -= 1;
        self.queues[id].dispatched -= 1;
        let now = now_ns(cx);
        if self.queues[id].dispatched == 0 && !self.queues[id].busy {
            self.queues[id].budget_timeout = jiffies(cx);
            self.forget_pending(q, cx, id);
        }
        self.queues[id].last_end_ns = now;
        self.observe_completion(q, cx);
        self.last_completion_ns = now;
        self.last_completed = (!self.queues[id].coop).then_some(id);
        let x = &self.queues[id];
        if x.soft_rt_update && x.dispatched == 0 && x.is_empty() && self.wr(id) != RAISED {
            self.queues[id].soft_rt_next = self.soft_rt_next_start(cx, id);
        }
        if self.in_service == Some(id) && self.completed_in_slot(q, cx, id) {
            return;
        }
        if self.in_driver == 0 {
            self.schedule_dispatch(q, cx);
        }
    }

    /// Whether the device is kept waiting for the queue's next request
    /// (`bfq_completed_request`).
    fn completed_in_slot(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId) -> bool {
        if self.must_idle(id) {
            if self.queues[id].dispatched == 0 {
                self.arm_idle_timer(cx, id);
            }
            return true;
        }
        if self.may_time_out(q, cx, id) {
            self.expire(q, cx, id, false, Reason::BudgetTimeout);
        } else if self.queues[id].is_empty()
            && (self.queues[id].dispatched == 0 || !self.is_better_to_idle(id))
        {
            self.expire(q, cx, id, false, Reason::NoMoreRequests);
        }
        false
    }

    /// Finds out whether the device takes several commands at once
    /// (`bfq_update_hw_tag`).
    fn sample_depth(&mut self) {
        let of_service = self.in_service.map(|id| {
            let x = &self.queues[id];
            let own = x.dispatched + x.queued[0] + x.queued[1];
            (own, x.short_think)
        });
        self.queueing
            .sample(self.in_driver, self.queued, of_service);
    }
}
