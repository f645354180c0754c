// SPDX-License-Identifier: MIT OR Apache-2.0
//! Completion of a request, and the end of a process.
//! Source: block/cfq-iosched.c of 2.6.16 to 2.6.20.

use super::{Cfq, now};
use blklab_block::{Cx, RqId};
use blklab_types::TaskId;

impl Cfq {
    /// The device finished a request.
    pub(super) fn finish(&mut self, cx: &mut Cx<'_>, rq: RqId) {
        let now = now(cx);
        let info = self.info(rq);
        let id = info.queue;
        self.rq_in_driver = self.rq_in_driver.saturating_sub(1);
        let count = &mut self.q_mut(id).on_dispatch[usize::from(info.sync)];
        *count = count.saturating_sub(1);
        if !self.q(id).is_idle_class() {
            self.last_end_request = now;
        }
        if self.q(id).nr_on_dispatch() == 0 {
            if self.q(id).home.is_some() {
                self.q_mut(id).service_last = now;
                self.refile(id, false);
            }
            if !self.feat.idles_at_completion {
                self.schedule_run(cx);
            }
        }
        if info.sync
            && let Some(context) = self.contexts.get_mut(info.task)
        {
            context.last_end_request = now;
        }
        if self.feat.idles_at_completion && self.active == Some(id) {
            if self.is_used(cx, id) {
                self.expire(cx, id, false);
            } else if info.sync && self.q(id).sort.is_empty() && !self.arm_idle(cx, id) {
                self.schedule_run(cx);
            }
        }
    }

    /// A process ended: its queues lose it, and the slice if they had it.
    pub(super) fn forget_task(&mut self, cx: &mut Cx<'_>, task: TaskId) {
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
