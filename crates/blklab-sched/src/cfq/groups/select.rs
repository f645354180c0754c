// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selection: keep the active queue, wait for it, or take the next.

use super::Cfq;
use super::queue::QueueId;
use blklab_block::Cx;
use blklab_block::sq::Core;
use blklab_trace::truth::Why;

/// What becomes of the active queue.
enum Verdict {
    Keep,
    /// Nothing is dispatched, from no queue.
    Wait(Why),
    /// Another queue, this one if it is named.
    Switch(Option<QueueId>),
}

impl Cfq {
    /// The queue to dispatch from (`cfq_select_queue`).
    pub(super) fn select_queue(&mut self, q: &Core, cx: &mut Cx<'_>) -> Option<QueueId> {
        let mut chosen = None;
        if let Some(id) = self.active {
            if self.rq_queued == 0 {
                return None;
            }
            match self.judge(q, cx, id) {
                Verdict::Keep => return Some(id),
                Verdict::Wait(why) => {
                    cx.waits(why, self.queues[id].pid);
                    return None;
                }
                Verdict::Switch(next) => chosen = next,
            }
            self.expire(q, cx, id, false);
        }
        if chosen.is_none() {
            self.choose_workload(q, cx);
        }
        self.set_active_queue(q, cx, chosen)
    }

    fn judge(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId) -> Verdict {
        let now = self.clock.now(cx);
        let queue = &self.queues[id];
        if queue.wait_busy && !queue.is_empty() {
            return Verdict::Switch(None);
        }
        if self.slice_used(id, now) && !queue.turn.must_dispatch {
            return self.judge_used(q, cx, id);
        }
        if !queue.is_empty() {
            return Verdict::Keep;
        }
        if let Some(other) = self.cooperator(q, id) {
            if self.queues[id].new_queue.is_none() {
                self.plan_merge(id, other);
            }
            return Verdict::Switch(Some(other));
        }
        if cx.timers.is_pending(self.idle_slice_timer) {
            return Verdict::Wait(Why::Idling);
        }
        if self.feat.drops_slow_deep {
            self.drop_slow_deep(id, now);
        }
        if self.queues[id].dispatched > 0 && self.should_idle(q, cx, id) {
            return Verdict::Wait(Why::InFlight);
        }
        self.judge_group(cx, id)
    }

    /// The slice is over; a group with one queue stays while requests are in
    /// flight.
    fn judge_used(&self, q: &Core, cx: &mut Cx<'_>, id: QueueId) -> Verdict {
        let queue = &self.queues[id];
        let alone = self.groups[queue.group].nr_queues == 1;
        if alone && queue.is_empty() && queue.dispatched > 0 && self.should_idle(q, cx, id) {
            return Verdict::Wait(Why::InFlight);
        }
        self.judge_group(cx, id)
    }

    /// The queue is done; the group may be worth waiting for.
    fn judge_group(&self, cx: &Cx<'_>, id: QueueId) -> Verdict {
        let group = &self.groups[self.queues[id].group];
        let idle = self.group_idle(cx);
        if self.feat.group_idle
            && idle != 0
            && group.nr_queues == 1
            && group.dispatched > 0
            && !(self.feat.tree_think_time && Self::is_slow(&group.think, idle))
        {
            return Verdict::Wait(Why::InFlight);
        }
        Verdict::Switch(None)
    }

    /// A queue with many far requests that the device serves faster than they
    /// come is not idled for.
    fn drop_slow_deep(&mut self, id: QueueId, now: u64) {
        let seeky = self.is_seeky(id);
        let left = self.slice_left(id, now);
        let queue = &mut self.queues[id];
        if seeky
            && queue.idle_window
            && (queue.slice_new || left > now.wrapping_sub(queue.slice_start))
        {
            queue.deep = false;
            queue.idle_window = false;
        }
    }
}
