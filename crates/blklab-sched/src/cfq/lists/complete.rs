// SPDX-License-Identifier: MIT OR Apache-2.0
//! Completion of a request, and the end of a process.
//! Source: block/cfq-iosched.c of 2.6.16 to 2.6.20.

use super::Cfq;
use blklab_block::{Cx, RqId};
use blklab_types::TaskId;

impl Cfq {
    /// The device finished a request (`cfq_completed_request`).
    pub(super) fn completed_request(&mut self, cx: &mut Cx<'_>, rq: RqId) {
        let now = self.clock.now(cx);
        let (id, info) = (self.of_rq.queue(rq), self.of_rq[rq]);
        assert!(self.rq_in_driver > 0, "what completes was at the driver");
        self.rq_in_driver -= 1;
        let on_dispatch = &mut self.queues[id].on_dispatch[usize::from(info.sync)];
        assert!(*on_dispatch > 0, "what completes left its queue");
        *on_dispatch -= 1;
        if !self.queues[id].prio.is_idle_class() {
            self.last_end_request = now;
        }
        if self.queues[id].nr_on_dispatch() == 0 {
            if self.queues[id].filed.is_some() {
                self.queues[id].service_last = now;
                self.resort(id, false);
            }
            if !self.feat.idles_at_completion {
                self.schedule_dispatch(cx);
            }
        }
        if info.sync {
            self.contexts[info.task].last_end_request = now;
        }
        if self.feat.idles_at_completion && self.active == Some(id) {
            if self.slice_used(id, self.clock.now(cx)) {
                self.expire(cx, id, false);
            } else if info.sync
                && self.queues[id].waiting.is_empty()
                && !self.arm_slice_timer(cx, id)
            {
                self.schedule_dispatch(cx);
            }
        }
    }

    /// A process ended: its queues lose it, and the slice if they had it
    /// (`cfq_exit_io_context`).
    pub(super) fn exit_context(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        if !self.is_alive(task) {
            return;
        }
        let context = &mut self.contexts[task];
        context.alive = false;
        for id in std::mem::take(&mut context.queues).into_iter().flatten() {
            if self.active == Some(id) {
                self.expire(cx, id, false);
            }
            self.put_queue(cx, id);
        }
    }
}
