// SPDX-License-Identifier: MIT OR Apache-2.0
//! The life of a slice: a queue becomes active, is idled for, expires.
//! Source: block/cfq-iosched.c of 2.6.16 to 2.6.20.

use super::Cfq;
use super::queue::QueueId;
use blklab_block::{Cx, Effect};
use blklab_engine::TimerId;
use blklab_trace::truth::{Kind, Why};

impl Cfq {
    /// kblockd is to call the driver, if anything waits here
    /// (`cfq_schedule_dispatch`).
    pub(super) fn schedule_dispatch(&self, cx: &mut Cx<'_>) {
        if self.rr.busy_queues > 0 {
            cx.ask(Effect::RunWork);
        }
    }

    /// Sets a timer to a tick.
    pub(super) fn arm_timer(&self, cx: &mut Cx<'_>, timer: TimerId, expires: u64) {
        cx.timers.arm(timer, self.clock.jiffies(expires));
        let delay = expires.saturating_sub(self.clock.now(cx));
        cx.truth_note(Kind::TimerArm, delay, cx.timers.name(timer));
    }

    /// Stops a timer; false if it was not set.
    fn cancel_timer(&self, cx: &mut Cx<'_>, timer: TimerId) -> bool {
        let was_set = cx.timers.cancel(timer);
        if was_set {
            cx.truth_note(Kind::TimerCancel, 0, cx.timers.name(timer));
        }
        was_set
    }

    /// Stops idling for a request; false if CFQ does not.
    pub(super) fn cancel_idle_timer(&self, cx: &mut Cx<'_>) -> bool {
        self.cancel_timer(cx, self.idle_slice_timer)
    }

    /// Makes a queue the active one, or the next of the lists. It stays on its list
    /// (`__cfq_set_active_queue`).
    pub(super) fn set_active_queue(
        &mut self,
        cx: &mut Cx<'_>,
        chosen: Option<QueueId>,
    ) -> Option<QueueId> {
        self.active = chosen.or_else(|| self.get_next_queue(cx));
        let id = self.active?;
        self.cancel_timer(cx, self.idle_class_timer);
        let queue = &mut self.queues[id];
        queue.slice_end = 0;
        queue.slice_resid = 0;
        queue.turn.must_alloc_slice = false;
        queue.turn.fifo_expire = false;
        Some(id)
    }

    /// The next queue of the lists. The idle class has to wait until the disk has been
    /// quiet for a while (`cfq_get_next_queue`).
    fn get_next_queue(&mut self, cx: &mut Cx<'_>) -> Option<QueueId> {
        let next = self.rr.next(self.feat.busy_queues_serve);
        if next.is_some() {
            return next;
        }
        let id = self.rr.next_idle_class()?;
        let quiet = self.last_end_request + self.set.idle_grace_jiffies;
        if self.clock.after(quiet, self.clock.now(cx)) {
            self.arm_timer(cx, self.idle_class_timer, quiet);
            cx.waits(Why::IdleClass, self.pid_of(cx, id));
            return None;
        }
        Some(id)
    }

    /// Whether the slice of a queue is over. A slice that has no end yet is
    /// (`cfq_slice_used`).
    pub(super) fn slice_used(&self, id: QueueId, now: u64) -> bool {
        self.clock.after(now, self.queues[id].slice_end)
    }

    /// Expires the active queue, if there is one (`cfq_slice_expired`).
    pub(super) fn expire_active(&mut self, cx: &mut Cx<'_>, preempted: bool) {
        if let Some(id) = self.active {
            self.expire(cx, id, preempted);
        }
    }

    /// Ends the slice of a queue, which need not be the active one
    /// (`__cfq_slice_expired`).
    pub(super) fn expire(&mut self, cx: &mut Cx<'_>, id: QueueId, preempted: bool) {
        let now = self.clock.now(cx);
        if self.queues[id].turn.wait_request {
            self.cancel_idle_timer(cx);
        }
        if !preempted && self.queues[id].nr_on_dispatch() == 0 {
            self.queues[id].service_last = now;
            // A queue that `max_depth` kept from being served is expired and
            // chosen again at every call: the kernel's kblockd spins until a
            // request completes. Here the completion alone calls the driver.
            if !(self.feat.max_depth && self.queues[id].slice_end == 0) {
                self.schedule_dispatch(cx);
            }
        }
        let queue = &mut self.queues[id];
        queue.turn.must_dispatch = false;
        queue.turn.wait_request = false;
        queue.is_new = false;
        queue.slice_resid = if self.clock.after(queue.slice_end, now) {
            queue.slice_end.wrapping_sub(now)
        } else {
            0
        };
        self.resort(id, preempted);
        if self.active == Some(id) {
            self.active = None;
        }
        self.active_task = None;
        self.dispatch_slice = 0;
    }

    /// Waits for the next request of the active queue's process; false if
    /// that is not worth while (`cfq_arm_slice_timer`).
    pub(super) fn arm_slice_timer(&mut self, cx: &mut Cx<'_>, id: QueueId) -> bool {
        if self.set.slice_idle_jiffies == 0 || !self.queues[id].idle_window {
            return false;
        }
        let seeky = match self.active_task {
            Some(task) if !self.is_alive(task) => return false,
            None if !self.feat.arms_without_context => return false,
            Some(task) => self.contexts[task].is_known_seeky(),
            None => false,
        };
        let queue = &mut self.queues[id];
        queue.turn.must_dispatch = true;
        queue.turn.wait_request = true;
        // The kernel compares a time with a length here.
        let mut length = queue
            .slice_end
            .wrapping_sub(1)
            .min(self.set.slice_idle_jiffies);
        if seeky && self.feat.seeky_idle_is_two_ticks {
            length = 2;
        } else if seeky {
            length = length.min(self.set.seeky_idle_jiffies);
        }
        self.arm_timer(
            cx,
            self.idle_slice_timer,
            self.clock.now(cx).wrapping_add(length),
        );
        cx.waits(Why::Idling, self.pid_of(cx, id));
        true
    }

    /// The idle timer fired (`cfq_idle_slice_timer`).
    pub(super) fn idle_slice_timer_fired(&mut self, cx: &mut Cx<'_>) {
        if let Some(id) = self.active
            && !self.slice_used(id, self.clock.now(cx))
        {
            if self.rr.busy_queues == 0 {
                if self.feat.idle_timer_repeats {
                    let next = self.clock.now(cx).wrapping_add(self.set.slice_idle_jiffies);
                    let expires = next.min(self.queues[id].slice_end);
                    self.arm_timer(cx, self.idle_slice_timer, expires);
                }
                return;
            }
            if !self.queues[id].waiting.is_empty() {
                self.queues[id].turn.must_dispatch = true;
                self.schedule_dispatch(cx);
                return;
            }
        }
        self.expire_active(cx, false);
        self.schedule_dispatch(cx);
    }

    /// The timer of the idle class fired (`cfq_idle_class_timer`).
    pub(super) fn idle_class_timer_fired(&mut self, cx: &mut Cx<'_>) {
        let quiet = self.last_end_request + self.set.idle_grace_jiffies;
        if self.clock.after(quiet, self.clock.now(cx)) {
            self.arm_timer(cx, self.idle_class_timer, quiet);
        } else {
            self.schedule_dispatch(cx);
        }
    }
}
