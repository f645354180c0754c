// SPDX-License-Identifier: MIT OR Apache-2.0
//! The slice of a queue: its length, its begin, its end, and what its group
//! pays for it.

use super::Cfq;
use super::group::{Class, GroupId};
use super::queue::QueueId;
use blklab_block::Cx;
use blklab_block::sq::Core;
use blklab_trace::truth::Why;

impl Cfq {
    /// Length of a queue's slice, scaled so that everybody gets one within
    /// the target latency (`cfq_scaled_cfqq_slice`).
    pub(super) fn scaled_slice(&mut self, id: QueueId) -> u64 {
        let queue = &self.queues[id];
        let (group, class) = (queue.group, queue.class());
        let slice = self.prio_slice(queue.sync, queue.prio.now.level);
        if !self.set.low_latency {
            return slice;
        }
        let queues = u64::from(self.average_queues(group, class));
        let all = self.sync_slice().wrapping_mul(queues);
        let share = self.group_slice(group);
        if all <= share {
            return slice;
        }
        let low = self.set.slice_idle.wrapping_mul(2).wrapping_mul(slice) / self.sync_slice();
        (slice.wrapping_mul(share) / all.max(1)).max(slice.min(low))
    }

    /// The decaying maximum of busy queues: what a queue has to expect
    /// (`cfq_group_get_avg_queues`).
    fn average_queues(&mut self, group: GroupId, class: Class) -> u32 {
        let side = usize::from(class == Class::RealTime);
        let counted = if side == 1 {
            Class::RealTime
        } else {
            Class::BestEffort
        };
        let busy = self.nr_of_class(group, counted);
        let average = &mut self.groups[group].busy_average[side];
        *average = (3 * (*average).max(busy) + (*average).min(busy) + 2) / 4;
        *average
    }

    /// The slice begins, with the first completion (`cfq_set_prio_slice`).
    pub(super) fn begin_slice(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId) {
        let now = self.clock.now(cx);
        let length = self.scaled_slice(id);
        let queue = &mut self.queues[id];
        queue.slice_start = now;
        queue.slice_end = now.wrapping_add(length);
        queue.allocated_slice = length;
        queue.slice_new = false;
        self.say(q, cx, id, format_args!("set_slice={length}"));
    }

    /// `cfq_slice_used`.
    pub(super) fn slice_used(&self, id: QueueId, now: u64) -> bool {
        let queue = &self.queues[id];
        !queue.slice_new && !self.clock.before(now, queue.slice_end)
    }

    /// What is left of the slice; huge if it is over.
    pub(super) fn slice_left(&self, id: QueueId, now: u64) -> u64 {
        self.queues[id].slice_end.wrapping_sub(now)
    }

    /// Makes a queue the active one, or the next of the workload
    /// (`cfq_set_active_queue`).
    pub(super) fn set_active_queue(
        &mut self,
        q: &Core,
        cx: &mut Cx<'_>,
        chosen: Option<QueueId>,
    ) -> Option<QueueId> {
        self.active = chosen.or_else(|| self.get_next_queue());
        let id = self.active?;
        if self.feat.long_messages {
            let (class, kind) = (self.serving.class as u8, self.serving.kind as u8);
            let text = format_args!("set_active wl_class:{class} wl_type:{kind}");
            self.say(q, cx, id, text);
        } else {
            self.say(q, cx, id, format_args!("set_active"));
        }
        let now = self.clock.now(cx);
        let queue = &mut self.queues[id];
        queue.slice_start = 0;
        queue.dispatch_start = now;
        queue.allocated_slice = 0;
        queue.slice_end = 0;
        queue.slice_dispatch = 0;
        queue.slice_sectors = 0;
        queue.turn.wait_request = false;
        queue.turn.must_dispatch = false;
        queue.turn.must_alloc_slice = false;
        queue.turn.fifo_expire = false;
        queue.slice_new = true;
        cx.waits(Why::Slice, queue.pid);
        self.cancel_idle_timer(cx);
        Some(id)
    }

    /// Ends a queue's turn. `timed_out`: it is given back what it did not use
    /// (`__cfq_slice_expired`).
    pub(super) fn expire(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId, timed_out: bool) {
        let t = u8::from(timed_out);
        self.say(q, cx, id, format_args!("slice expired t={t}"));
        if self.queues[id].turn.wait_request {
            self.cancel_idle_timer(cx);
        }
        self.queues[id].turn.wait_request = false;
        self.queues[id].wait_busy = false;
        if self.queues[id].coop && self.is_seeky(id) {
            self.queues[id].split = true;
        }
        if timed_out {
            self.keep_residual(q, cx, id);
        }
        self.charge(q, cx, id);
        if self.queues[id].on_rr && self.queues[id].is_empty() {
            self.del_queue_rr(q, cx, id);
        }
        self.resort(q, cx, id);
        if self.active == Some(id) {
            self.active = None;
        }
        self.active_task = None;
    }

    fn keep_residual(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId) {
        let residual = if !self.queues[id].slice_new {
            self.slice_left(id, self.clock.now(cx))
        } else if self.feat.unused_slice_is_kept {
            self.scaled_slice(id)
        } else {
            return;
        };
        self.queues[id].slice_resid = residual as i64;
        let residual = self.queues[id].slice_resid;
        self.say(q, cx, id, format_args!("resid={residual}"));
    }

    /// Ends the active queue's turn, if there is one (`cfq_slice_expired`).
    pub(super) fn expire_active(&mut self, q: &Core, cx: &mut Cx<'_>, timed_out: bool) {
        if let Some(id) = self.active {
            self.expire(q, cx, id, timed_out);
        }
    }

    /// The group of a queue pays for its turn.
    fn charge(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId) {
        let now = self.clock.now(cx);
        let used = self.slice_usage(id, now);
        let queue = &self.queues[id];
        let (group, sectors, dispatched) = (queue.group, queue.slice_sectors, queue.slice_dispatch);
        let nr_sync = self.groups[group]
            .nr_queues
            .wrapping_sub(self.nr_async(group));
        let charge = if self.iops_mode() {
            u64::from(dispatched)
        } else if !queue.sync && nr_sync == 0 {
            queue.allocated_slice
        } else {
            used
        };
        if self.feat.long_messages {
            let iops = u8::from(self.iops_mode());
            let text = format_args!(
                "sl_used={used} disp={dispatched} charge={charge} iops={iops} sect={sectors}"
            );
            self.say(q, cx, id, text);
        } else {
            self.say(q, cx, id, format_args!("sl_used={used} sect={sectors}"));
        }
        self.groups.charge(group, charge);
        self.save_workload(group, now);
    }

    /// Time that a queue had the device: at least a tick (`cfq_cfqq_slice_usage`).
    fn slice_usage(&self, id: QueueId, now: u64) -> u64 {
        let queue = &self.queues[id];
        if queue.slice_start == 0 || queue.slice_start == now {
            now.wrapping_sub(queue.dispatch_start)
                .max(self.clock.jiffy())
        } else {
            now.wrapping_sub(queue.slice_start)
                .min(queue.allocated_slice)
        }
    }
}
