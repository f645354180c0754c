// SPDX-License-Identifier: MIT OR Apache-2.0
//! Idling: the timers, and what completions and the end of waiting bring.

use super::Cfq;
use super::queue::QueueId;
use blklab_block::sq::Core;
use blklab_block::{Cx, Effect, RqId};
use blklab_engine::TimerId;
use blklab_trace::truth::{Kind, Why};

impl Cfq {
    /// kblockd is to call the driver, if anything waits (`cfq_schedule_dispatch`).
    pub(super) fn schedule_dispatch(&self, q: &Core, cx: &mut Cx<'_>) {
        if self.busy_queues > 0 {
            q.message(cx, format_args!("cfq schedule dispatch"));
            cx.ask(Effect::RunWork);
        }
    }

    /// Starts idling for the active queue, if that is worth it
    /// (`cfq_arm_slice_timer`).
    pub(super) fn arm_slice_timer(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId) {
        if self.feat.arm_skips_nonrot && !q.limits.queue.rotational && self.hw_tag {
            return;
        }
        let slice_idle = u64::from(self.set.slice_idle_jiffies);
        if slice_idle == 0 || !self.queues[id].idle_window {
            return;
        }
        if self.feat.arm_needs_empty_driver && self.nr_in_driver() > 0 {
            return;
        }
        let Some(c) = self.active_task.and_then(|t| self.context(t)) else {
            return;
        };
        let left = self.queues[id].slice_end.wrapping_sub(self.clock.now(cx));
        if self.feat.arm_weighs_think_time && c.think.is_valid() && left < c.think.mean {
            return;
        }
        let length = if c.seek.is_valid() && c.is_seeky() {
            slice_idle.min(self.set.min_think_jiffies)
        } else {
            slice_idle
        };
        self.queues[id].turn.wait_request = true;
        arm_timer(cx, self.idle_slice_timer, length);
        q.message(cx, format_args!("cfq arm_idle: {length}"));
        cx.waits(Why::Idling, self.queues[id].pid);
    }

    /// A request came for the active queue, which CFQ idles for.
    pub(super) fn awaited_came(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId, rq: RqId) {
        self.queues[id].turn.must_dispatch = true;
        let is_large = q.rqs[rq].nr_sectors > blklab_types::PAGE_SECTORS as u32;
        if !self.feat.keeps_idling || is_large || self.busy_queues > 1 {
            self.cancel_idle_timer(cx);
            q.run_requested = true;
        }
    }

    /// The time to idle is over (`cfq_idle_slice_timer`).
    pub(super) fn idle_slice_timer_fired(&mut self, q: &Core, cx: &mut Cx<'_>) {
        q.message(cx, format_args!("cfq idle timer fired"));
        if let Some(active) = self.active {
            let queue = &self.queues[active];
            let (waits, kept) = (!queue.waiting.is_empty(), queue.turn.must_dispatch);
            if self.feat.keeps_idling && kept {
                self.schedule_dispatch(q, cx);
                return;
            }
            if !self.slice_used(active, self.clock.now(cx)) {
                if self.busy_queues == 0 {
                    return;
                }
                if waits {
                    self.queues[active].turn.must_dispatch = true;
                    self.schedule_dispatch(q, cx);
                    return;
                }
            }
            self.expire_active(q, cx, false);
        }
        self.schedule_dispatch(q, cx);
    }

    /// Looks again whether the disk is quiet enough for the idle class in
    /// `left` jiffies.
    pub(super) fn arm_idle_class_timer(&self, cx: &mut Cx<'_>, left: u64) {
        if let Some(timer) = self.idle_class_timer {
            arm_timer(cx, timer, left);
        }
    }

    pub(super) fn cancel_idle_class_timer(&self, cx: &mut Cx<'_>) {
        if let Some(timer) = self.idle_class_timer
            && cx.timers.cancel(timer)
        {
            cx.truth_note(Kind::TimerCancel, 0, cx.timers.name(timer));
        }
    }

    /// `cfq_idle_class_timer`.
    pub(super) fn idle_class_timer_fired(&mut self, q: &Core, cx: &mut Cx<'_>) {
        match self.grace_left(self.clock.now(cx)) {
            Some(left) => self.arm_idle_class_timer(cx, left),
            None => self.schedule_dispatch(q, cx),
        }
    }
}

fn arm_timer(cx: &mut Cx<'_>, timer: TimerId, delay: u64) {
    cx.timers.arm(timer, cx.jiffies.plus(delay));
    cx.truth_note(Kind::TimerArm, delay, cx.timers.name(timer));
}
