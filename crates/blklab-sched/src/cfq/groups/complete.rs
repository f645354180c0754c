// SPDX-License-Identifier: MIT OR Apache-2.0
//! Completion: what is learnt from it, and what becomes of the active queue.

use super::Cfq;
use super::group::Kind;
use super::queue::QueueId;
use crate::cfq::SYNC;
use blklab_block::sq::Core;
use blklab_block::{Cx, RqId};

impl Cfq {
    /// A request finished (`cfq_completed_request`).
    pub(super) fn completed_request(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let id = self.of_rq.queue(rq);
        let (sync, noidle) = (q.rqs[rq].is_sync(), self.is_noidle(q, rq));
        let shown = u8::from(noidle);
        self.say(q, cx, id, format_args!("complete rqnoidle {shown}"));
        self.update_hw_tag();
        assert!(self.rq_in_driver > 0, "what completes was at the driver");
        assert!(
            self.queues[id].dispatched > 0,
            "what completes left its queue"
        );
        self.rq_in_driver -= 1;
        self.async_in_driver -= u32::from(!sync);
        let group = self.of_rq[rq].group;
        self.groups[group].dispatched -= 1;
        self.queues[id].dispatched -= 1;
        self.rq_in_flight[usize::from(self.queues[id].sync)] -= 1;
        let now = self.clock.now(cx);
        if sync {
            self.note_sync_end(q, id, rq, now);
        }
        let group = self.queues[id].group;
        self.groups[group].think.last_end = now;
        if self.active == Some(id) {
            self.complete_active(q, cx, id, rq, now);
        }
        if self.rq_in_driver == 0 {
            self.schedule_dispatch(q, cx);
        }
    }

    fn note_sync_end(&mut self, q: &Core, id: QueueId, rq: RqId, now: u64) {
        self.contexts[q.rqs[rq].task].think.last_end = now;
        let place = self.queues[id].filed.unwrap_or_else(|| self.place_of(id));
        self.tree_mut(place).think.last_end = now;
        let allocated = if self.clock.is_ns() {
            self.clock.start().wrapping_add(q.rqs[rq].allocated.0)
        } else {
            self.clock.start().wrapping_add(q.rqs[rq].start_time.0)
        };
        let late = allocated.wrapping_add(self.set.fifo_expire[SYNC]);
        if !self.clock.after(late, now) {
            self.last_delayed_sync = now;
        }
    }

    fn complete_active(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId, rq: RqId, now: u64) {
        let empty = self.queues[id].is_empty();
        if self.queues[id].slice_new {
            self.begin_slice(q, cx, id);
        }
        if self.should_wait_busy(cx, id) {
            self.wait_busy(q, cx, id);
        }
        if self.slice_used(id, now) || self.queues[id].prio.is_idle_class() {
            self.expire(q, cx, id, true);
        } else if q.rqs[rq].is_sync()
            && empty
            && self.cooperator(q, id).is_none()
            && (self.feat.noidle_in_window || self.wants_idling(q, id, rq))
        {
            self.arm_slice_timer(q, cx, id);
        }
    }

    /// Whether the kind of queue served, or its requests, want idling.
    fn wants_idling(&mut self, q: &Core, id: QueueId, rq: RqId) -> bool {
        self.serving.wants_idling |= !self.is_noidle(q, rq);
        self.serving.kind == Kind::Sync
            || self.serving.wants_idling
            || self.groups[self.queues[id].group].nr_queues == 1
    }
}
