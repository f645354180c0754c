// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the device is kept idle for the next request of the queue in
//! service, and for how long.

use super::Bfq;
use super::clock::{Jiffy, jiffies, now_ns};
use super::entity::{Ent, IDLE};
use super::expire::Reason;
use super::settings::{MIN_THINK_NS, RAISED_IDLE_NS};
use crate::queue_id::QueueId;
use blklab_block::Cx;
use blklab_block::mq::Core;
use blklab_engine::TimerId;
use blklab_trace::truth::{Kind, Why};
use blklab_types::Span;

/// Requests of others at the driver that make a raised queue's lower latency
/// impossible without idling.
const MANY_OF_OTHERS: u32 = 4;

/// The device is kept idle for a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Idling {
    /// `idle_slice_timer`.
    pub(super) timer: TimerId,
    /// When it began last.
    pub(super) since_ns: u64,
    pub(super) since: Jiffy,
}

impl Idling {
    pub(super) fn new(timer: TimerId, start: Jiffy) -> Idling {
        Idling {
            timer,
            since_ns: 0,
            since: start,
        }
    }
}

impl Bfq {
    /// Processes that use a queue, or will by a merge under way
    /// (`bfqq_process_refs`).
    pub(super) fn process_refs(&self, id: QueueId) -> u32 {
        let (x, e) = (&self.queues[id], &self.ents[Ent::of_queue(id)]);
        let held = u32::from(e.on_st) + u32::from(e.counted.is_some());
        x.refs - e.allocated - held - x.stable_refs
    }

    /// Whether idling raises throughput and harms nobody
    /// (`idling_boosts_thr_without_issues`).
    pub(super) fn idling_boosts(&self, id: QueueId) -> bool {
        if self.process_refs(id) == 0 {
            return false;
        }
        let x = &self.queues[id];
        let seq = !x.is_seeky() && x.io_bound && x.short_think;
        let queues = self.queueing.may_queue();
        let boosts = (self.rotational && !queues) || ((self.rotational || !queues) && seq);
        boosts && self.wr_busy == 0
    }

    /// Whether the queue would not get its share without idling
    /// (`idling_needed_for_service_guarantees`).
    pub(super) fn is_idling_needed(&self, id: QueueId) -> bool {
        if self.process_refs(id) == 0 {
            return false;
        }
        let busy = self.nr_busy();
        let others = self.in_driver >= self.queues[id].dispatched + MANY_OF_OTHERS;
        (self.wr(id) > 1 && (self.wr_busy < busy || others))
            || self.is_asymmetric(id)
            || (self.feat.idles_for_only_queue && busy == 1)
    }

    /// Whether idling for a queue is better than serving others
    /// (`bfq_better_to_idle`).
    pub(super) fn is_better_to_idle(&self, id: QueueId) -> bool {
        if self.process_refs(id) == 0 {
            return false;
        }
        if self.set.strict {
            return true;
        }
        let idle_class = self.ents[Ent::of_queue(id)].class == IDLE;
        if self.set.slice_idle_ns == 0 || !self.queues[id].sync || idle_class {
            return false;
        }
        self.idling_boosts(id) || self.is_idling_needed(id)
    }

    /// `bfq_bfqq_must_idle`.
    pub(super) fn must_idle(&self, id: QueueId) -> bool {
        self.queues[id].is_empty() && self.is_better_to_idle(id)
    }

    /// Starts to idle for the queue in service (`bfq_arm_slice_timer`).
    pub(super) fn arm_idle_timer(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        self.queues[id].wait_request = true;
        let mut length = self.set.slice_idle_ns;
        let raised = self.wr(id) > 1;
        if self.queues[id].is_seeky() && !raised && !self.is_asymmetric(id) {
            length = length.min(MIN_THINK_NS);
        } else if raised {
            length = length.max(RAISED_IDLE_NS);
        }
        self.idling.since_ns = now_ns(cx);
        self.idling.since = jiffies(cx);
        cx.timers.arm_at(self.idling.timer, cx.now + Span(length));
        cx.truth_note(Kind::TimerArm, length, cx.timers.name(self.idling.timer));
        cx.waits(Why::Idling, self.pid_of(id));
    }

    pub(super) fn cancel_idle_timer(&self, cx: &mut Cx<'_>) {
        if cx.timers.cancel(self.idling.timer) {
            cx.truth_note(Kind::TimerCancel, 0, cx.timers.name(self.idling.timer));
        }
    }

    /// The time to idle is over (`bfq_idle_slice_timer`).
    pub(super) fn idle_timer_fired(&mut self, q: &mut Core, cx: &mut Cx<'_>) {
        if let Some(id) = self.in_service {
            self.queues[id].wait_request = false;
            if self.is_timed_out(cx, id) {
                self.expire(q, cx, id, true, Reason::BudgetTimeout);
            } else if self.queues[id].is_empty() {
                self.expire(q, cx, id, true, Reason::TooIdle);
            }
        }
        self.schedule_dispatch(q, cx);
    }

    /// kblockd is to ask for requests, if there are any (`bfq_schedule_dispatch`).
    pub(super) fn schedule_dispatch(&self, q: &mut Core, cx: &mut Cx<'_>) {
        if self.queued > 0 {
            q.message(cx, format_args!("bfq schedule dispatch"));
            q.run_all();
        }
    }
}
