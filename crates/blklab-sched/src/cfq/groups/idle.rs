// SPDX-License-Identifier: MIT OR Apache-2.0
//! Idling: whether CFQ waits for the next request of a queue or a group, the
//! timer, and the busy wait that keeps a group on its tree.

use super::Cfq;
use super::group::Think;
use super::queue::QueueId;
use blklab_block::sq::Core;
use blklab_block::{Cx, RqId};
use blklab_trace::truth::{Kind as Note, Why};
use blklab_types::BioFlags;

/// Requests larger than this make CFQ stop waiting for more.
const PAGE_SECTORS: u32 = 8;

impl Cfq {
    pub(super) fn group_idle(&self, cx: &Cx<'_>) -> u64 {
        let compiled_in = cx.tasks.has_groups();
        if self.feat.group_idle_on_nonrot && !compiled_in {
            return 0;
        }
        self.set.group_idle(compiled_in)
    }

    /// Whether the device has a queue and does not seek: waiting is a waste.
    fn is_deep_nonrot(&self, q: &Core) -> bool {
        !q.limits.queue.rotational && self.hw_tag != 0
    }

    /// Whether think time is known to be longer than `limit`.
    pub(super) fn is_slow(think: &Think, limit: u64) -> bool {
        think.time.is_valid() && think.time.mean > limit
    }

    /// Whether the device is better left idle for a while than given to
    /// another queue (`cfq_should_idle`).
    pub(super) fn should_idle(&self, q: &Core, cx: &mut Cx<'_>, id: QueueId) -> bool {
        let queue = &self.queues[id];
        if self.feat.group_idle && self.set.slice_idle == 0 {
            return false;
        }
        if queue.prio.is_idle_class() {
            return false;
        }
        if queue.idle_window && !self.is_deep_nonrot(q) {
            return true;
        }
        let place = queue.filed.unwrap_or_else(|| self.place_of(id));
        let tree = self.tree(place);
        let count = tree.queues.len();
        if count == 1
            && queue.sync
            && !(self.feat.tree_think_time && Self::is_slow(&tree.think, self.set.slice_idle))
        {
            return true;
        }
        if self.feat.long_messages {
            let text = format_args!("Not idling. st->count:{count}");
            self.say(q, cx, id, text);
        }
        false
    }

    /// The active queue ran empty: waits for its next request if that is
    /// worth while (`cfq_arm_slice_timer`).
    pub(super) fn arm_slice_timer(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId) {
        let group_idle = self.group_idle(cx);
        let spared = self.feat.group_idle_on_nonrot && group_idle != 0;
        if self.is_deep_nonrot(q) && !spared {
            return;
        }
        let for_queue = self.set.slice_idle != 0 && self.should_idle(q, cx, id);
        if !for_queue && (!self.feat.group_idle || group_idle == 0) {
            return;
        }
        let now = self.clock.now(cx);
        let queue = &self.queues[id];
        if queue.dispatched > 0 {
            return;
        }
        let Some(task) = self.active_task.filter(|&t| self.is_alive(t)) else {
            return;
        };
        let think = &self.contexts[task].think.time;
        if think.is_valid() && self.slice_left(id, now) < think.mean {
            if self.feat.long_messages {
                let text = format_args!("Not idling. think_time:{}", think.mean);
                self.say(q, cx, id, text);
            }
            return;
        }
        if !for_queue && !self.may_idle_on_group(id, group_idle) {
            return;
        }
        let pid = queue.pid;
        self.queues[id].turn.wait_request = true;
        let length = if for_queue {
            self.set.slice_idle
        } else {
            group_idle
        };
        self.arm_timer(cx, length);
        if self.feat.long_messages {
            let group = u8::from(!for_queue);
            let text = format_args!("arm_idle: {length} group_idle: {group}");
            self.say(q, cx, id, text);
        } else {
            self.say(q, cx, id, format_args!("arm_idle: {length}"));
        }
        cx.waits(Why::Idling, pid);
    }

    /// The group would run empty, and is soon to have more.
    fn may_idle_on_group(&self, id: QueueId, group_idle: u64) -> bool {
        let queue = &self.queues[id];
        let place = queue.filed.unwrap_or_else(|| self.place_of(id));
        let slow =
            self.feat.group_idle_asks_think && Self::is_slow(&self.tree(place).think, group_idle);
        self.groups[queue.group].nr_queues <= 1 && !slow
    }

    fn arm_timer(&self, cx: &mut Cx<'_>, length: u64) {
        let timer = self.idle_slice_timer;
        if self.clock.is_ns() {
            let due = blklab_types::Time(cx.now.0.saturating_add(length));
            cx.timers.arm_at(timer, due);
        } else {
            cx.timers.arm(timer, cx.jiffies.plus(length));
        }
        cx.truth_note(Note::TimerArm, length, cx.timers.name(timer));
    }

    pub(super) fn cancel_idle_timer(&self, cx: &mut Cx<'_>) {
        if cx.timers.cancel(self.idle_slice_timer) {
            cx.truth_note(Note::TimerCancel, 0, cx.timers.name(self.idle_slice_timer));
        }
    }

    /// Nothing came while CFQ idled (`cfq_idle_slice_timer`).
    pub(super) fn idle_slice_timer_fired(&mut self, q: &Core, cx: &mut Cx<'_>) {
        cx.truth_note(Note::TimerFire, 0, cx.timers.name(self.idle_slice_timer));
        q.message(cx, format_args!("cfq idle timer fired"));
        let now = self.clock.now(cx);
        if let Some(id) = self.active {
            let queue = &self.queues[id];
            if !queue.turn.must_dispatch {
                if self.slice_used(id, now) {
                    self.expire(q, cx, id, false);
                } else if self.busy_queues == 0 {
                    return;
                } else if queue.is_empty() {
                    self.queues[id].deep = false;
                    self.expire(q, cx, id, false);
                }
            }
        }
        self.schedule_dispatch(q, cx);
    }

    /// A request came for the active queue, which CFQ idles for. A large one,
    /// or one beside others, is dispatched at once; a small one may be merged
    /// with the next.
    pub(super) fn awaited_came(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId, rq: RqId) {
        if q.rqs[rq].nr_sectors > PAGE_SECTORS || self.busy_queues > 1 {
            self.cancel_idle_timer(cx);
            self.queues[id].turn.wait_request = false;
            q.run_requested = true;
        } else {
            self.queues[id].turn.must_dispatch = true;
        }
    }

    /// Whether the slice is prolonged after a completion, so that a group
    /// with one queue does not leave its tree between two requests
    /// (`cfq_should_wait_busy`).
    pub(super) fn should_wait_busy(&self, cx: &Cx<'_>, id: QueueId) -> bool {
        let queue = &self.queues[id];
        let group = &self.groups[queue.group];
        if (self.feat.busy_wait_if_empty && !queue.is_empty()) || group.nr_queues > 1 {
            return false;
        }
        if self.feat.tree_think_time && Self::is_slow(&group.think, self.group_idle(cx)) {
            return false;
        }
        let now = self.clock.now(cx);
        if self.slice_used(id, now) {
            return true;
        }
        let left = self.slice_left(id, now);
        if let Some(task) = self.active_task {
            let think = &self.contexts[task].think.time;
            if think.is_valid() && left < think.mean {
                return true;
            }
        }
        if self.clock.is_ns() {
            left <= self.clock.jiffy()
        } else {
            left == 1
        }
    }

    /// Prolongs the slice for that.
    pub(super) fn wait_busy(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId) {
        let length = match self.set.slice_idle {
            0 if self.feat.group_idle => self.group_idle(cx),
            idle => idle,
        };
        let queue = &mut self.queues[id];
        queue.slice_end = self.clock.now(cx).wrapping_add(length);
        queue.wait_busy = true;
        if self.feat.long_messages {
            self.say(q, cx, id, format_args!("will busy wait"));
        }
    }

    /// Whether a request says that nothing comes behind it (`rq_noidle`).
    pub(super) fn is_noidle(&self, q: &Core, rq: RqId) -> bool {
        let rq = &q.rqs[rq];
        let plain_sync = BioFlags::SYNC | BioFlags::NOIDLE;
        if self.feat.noidle_needs_sync_write {
            rq.op == blklab_types::Op::Write && rq.flags.has(plain_sync)
        } else {
            rq.flags.has(BioFlags::NOIDLE)
        }
    }
}
