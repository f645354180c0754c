// SPDX-License-Identifier: MIT OR Apache-2.0
//! Completion: the clocks of a process and of the slice.

use super::Cfq;
use super::queue::QueueId;
use blklab_block::sq::Core;
use blklab_block::{Cx, Request, RqId};
use blklab_types::BioFlags;

impl Cfq {
    /// A request finished (`cfq_completed_request`).
    pub(super) fn completed_request(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let id = self.of_rq.queue(rq);
        let pid = self.queues[id].pid;
        q.message(cx, format_args!("cfq{pid} complete"));
        self.update_hw_tag();
        self.leave_device(&q.rqs[rq], id);
        self.note_completion(self.clock.now(cx), &q.rqs[rq], id);
        if self.active == Some(id) {
            self.complete_active(q, cx, id, rq);
        }
        if self.nr_in_driver() == 0 {
            self.schedule_dispatch(q, cx);
        }
    }

    fn leave_device(&mut self, rq: &Request, id: QueueId) {
        let in_driver = &mut self.rq_in_driver[usize::from(rq.is_sync())];
        assert!(*in_driver > 0, "what completes was at the driver");
        *in_driver -= 1;
        let queue = &mut self.queues[id];
        assert!(queue.dispatched > 0, "what completes left its queue");
        queue.dispatched -= 1;
        if queue.sync {
            self.sync_flight -= 1;
        }
    }

    fn note_completion(&mut self, now: u64, rq: &Request, id: QueueId) {
        if !self.queues[id].prio.is_idle_class() {
            self.last_end_request = now;
        }
        if !rq.is_sync() {
            return;
        }
        self.contexts[rq.task].last_end_request = now;
        self.last_end_sync_rq = now;
        let late = u64::from(self.set.fifo_expire_jiffies[crate::cfq::SYNC]);
        if self
            .clock
            .reached(now, self.clock.at(rq.start_time).wrapping_add(late))
        {
            self.last_delayed_sync = now;
        }
    }

    fn complete_active(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId, rq: RqId) {
        if self.queues[id].slice_new {
            self.begin_slice(q, cx, id);
        }
        let queue = &self.queues[id];
        let gives_way = queue.prio.is_idle_class() && !self.feat.idle_class_waits;
        if self.slice_used(id, self.clock.now(cx)) || gives_way {
            self.expire_active(q, cx, true);
            return;
        }
        let rq = &q.rqs[rq];
        let declined = self.feat.noidle && rq.flags.has(BioFlags::NOIDLE);
        if rq.is_sync() && queue.waiting.is_empty() && !declined && self.cooperator(q, id).is_none()
        {
            self.arm_slice_timer(q, cx, id);
        }
    }
}
