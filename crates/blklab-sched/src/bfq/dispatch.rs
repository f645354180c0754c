// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dispatch: which queue is asked, and what its request costs.

use super::Bfq;
use super::entity::{Ent, IDLE};
use super::expire::Reason;
use crate::queue_id::QueueId;
use blklab_block::mq::Core;
use blklab_block::{Cx, RqId};
use blklab_trace::truth::Why;

impl Bfq {
    /// The next request for the device, if BFQ does not rather wait
    /// (`__bfq_dispatch_request`).
    pub(super) fn next_request(&mut self, q: &mut Core, cx: &mut Cx<'_>) -> Option<RqId> {
        if let Some(rq) = self.dispatch.pop_front(&mut q.rqs) {
            if let Some(id) = self.of_rq.queue_if_any(rq) {
                self.queues[id].dispatched += 1;
                self.in_driver += 1;
                self.of_rq[rq].started = true;
            }
            return Some(rq);
        }
        let busy = self.nr_busy();
        q.message(
            cx,
            format_args!("bfq dispatch requests: {busy} busy queues"),
        );
        if busy == 0 {
            return None;
        }
        if self.set.strict && self.in_driver > 0 {
            let served = self.in_service.map_or(0, |id| self.pid_of(id));
            cx.waits(Why::InFlight, served);
            return None;
        }
        let id = self.select(q, cx)?;
        let rq = self.dispatch_from(q, cx, id)?;
        self.in_driver += 1;
        self.of_rq[rq].started = true;
        Some(rq)
    }

    /// `bfq_dispatch_rq_from_bfqq`.
    fn dispatch_from(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId) -> Option<RqId> {
        let rq = self.queues[id].next?;
        let charge = self.charge(q, id, rq);
        self.served(q, cx, id, charge);
        if self.in_service == Some(id) && self.injected.wait_dispatch {
            self.injected.wait_dispatch = false;
            self.injected.waited_rq = Some(rq);
        }
        if self.in_service != Some(id) {
            self.injected.sectors += charge;
        }
        self.queues[id].dispatched += 1;
        self.observe_dispatch(q, cx, id, rq);
        self.remove(q, cx, rq);
        if self.in_service == Some(id) {
            self.check_raising(q, cx, id);
            let idle_class = self.ents[Ent::of_queue(id)].class == IDLE;
            if self.nr_busy() > 1 && idle_class {
                self.expire(q, cx, id, false, Reason::BudgetExhausted);
            }
        }
        let served = self.in_service.unwrap_or(id);
        cx.waits(Why::Slice, self.pid_of(served));
        Some(rq)
    }

    /// The queue in service, as long as it has budget and time; an injected
    /// one, or none, while its next request is awaited; else the next queue
    /// (`bfq_select_queue`).
    fn select(&mut self, q: &mut Core, cx: &mut Cx<'_>) -> Option<QueueId> {
        if let Some(id) = self.in_service {
            self.say(
                q,
                cx,
                id,
                format_args!("select_queue: already in-service queue"),
            );
            if self.may_time_out(q, cx, id) && !self.must_idle(id) {
                self.expire(q, cx, id, false, Reason::BudgetTimeout);
            } else if let Some(next) = self.queues[id].next {
                if self.has_budget(q, id, next) {
                    return Some(self.keep(q, cx, id));
                }
                self.expire(q, cx, id, false, Reason::BudgetExhausted);
            } else {
                let x = &self.queues[id];
                let in_flight = x.dispatched > 0;
                if x.wait_request || (in_flight && self.is_better_to_idle(id)) {
                    return self.inject_or_wait(q, cx, id);
                }
                self.expire(q, cx, id, false, Reason::NoMoreRequests);
            }
        }
        self.select_new(q, cx)
    }

    fn has_budget(&self, q: &Core, id: QueueId, next: RqId) -> bool {
        self.charge(q, id, next) <= self.ents[Ent::of_queue(id)].budget_left()
    }

    fn keep(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId) -> QueueId {
        if std::mem::take(&mut self.queues[id].wait_request) {
            self.cancel_idle_timer(cx);
        }
        self.say(q, cx, id, format_args!("select_queue: returned this queue"));
        id
    }

    fn inject_or_wait(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId) -> Option<QueueId> {
        let injected = self.choose_injected(q, cx, id);
        if let Some(other) = injected {
            self.say(
                q,
                cx,
                other,
                format_args!("select_queue: returned this queue"),
            );
        } else {
            let x = &self.queues[id];
            let why = if x.wait_request {
                Why::Idling
            } else {
                Why::InFlight
            };
            cx.waits(why, self.pid_of(id));
            q.message(cx, format_args!("bfq select_queue: no queue returned"));
        }
        injected
    }

    /// Puts queues into service until one has a request that fits its budget
    /// (`bfq_set_in_service_queue`).
    fn select_new(&mut self, q: &mut Core, cx: &mut Cx<'_>) -> Option<QueueId> {
        loop {
            let Some(id) = self.begin_slot(q, cx) else {
                q.message(cx, format_args!("bfq select_queue: no queue returned"));
                return None;
            };
            self.say(q, cx, id, format_args!("select_queue: checking new queue"));
            match self.queues[id].next {
                Some(next) if self.has_budget(q, id, next) => {
                    return Some(self.keep(q, cx, id));
                }
                Some(_) => self.expire(q, cx, id, false, Reason::BudgetExhausted),
                None if self.queues[id].dispatched > 0 && self.is_better_to_idle(id) => {
                    return self.inject_or_wait(q, cx, id);
                }
                None => self.expire(q, cx, id, false, Reason::NoMoreRequests),
            }
        }
    }
}
