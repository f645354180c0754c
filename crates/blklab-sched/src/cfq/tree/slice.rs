// SPDX-License-Identifier: MIT OR Apache-2.0
//! The life of a slice: its length, its start and end, and the place of a
//! queue in the round.

use super::Cfq;
use super::queue::QueueId;
use crate::cfq::SYNC;
use blklab_block::Cx;
use blklab_block::sq::Core;
use blklab_trace::truth::Why;

/// Part of the slice at level 4 by which levels differ.
const SLICE_SCALE: i32 = 5;

impl Cfq {
    /// Slice of a level in jiffies, in the kernel's int arithmetic
    /// (`cfq_prio_slice`).
    fn prio_slice(&self, kind: usize, level: u8) -> i32 {
        let base = self.set.slice_jiffies[kind] as i32;
        let step = base / SLICE_SCALE;
        base.wrapping_add(step.wrapping_mul(4 - i32::from(level)))
    }

    /// `cfq_prio_to_slice`.
    fn prio_to_slice(&self, id: QueueId) -> i32 {
        let queue = &self.queues[id];
        self.prio_slice(queue.kind(), queue.prio.now.level)
    }

    /// How far shorter slices put a queue back: what the others may use more,
    /// in unsigned int arithmetic (`cfq_slice_offset`).
    fn slice_offset(&self, id: QueueId) -> u64 {
        let less = self
            .prio_slice(SYNC, 0)
            .wrapping_sub(self.prio_to_slice(id));
        let others = self.busy_queues.wrapping_sub(1);
        u64::from(others.wrapping_mul(less as u32))
    }

    /// Key of a queue in front of all others of its class, or one that uses up what was
    /// left of its slice.
    fn new_key(&mut self, now: u64, id: QueueId, front: bool) -> u64 {
        if self.queues[id].prio.is_idle_class() && !self.feat.idle_class_waits {
            let last = self.service.last().filter(|&l| l != id);
            let base = last.map_or(now, |l| self.queues[l].rb_key);
            return base.wrapping_add(self.set.idle_delay_jiffies);
        }
        if front && self.feat.front_is_relative {
            let first = self.service.first();
            let base = first.map_or(now, |f| self.queues[f].rb_key);
            return base.wrapping_sub(self.set.second_jiffies);
        }
        if front {
            return 0;
        }
        let rest = std::mem::take(&mut self.queues[id].slice_resid) as u64;
        let key = self.slice_offset(id).wrapping_add(now);
        if self.feat.rest_moves_forward {
            key.wrapping_sub(rest)
        } else {
            key.wrapping_add(rest)
        }
    }

    /// Puts a busy queue where it belongs, or first of its class
    /// (`cfq_service_tree_add`).
    pub(super) fn service_tree_add(&mut self, now: u64, id: QueueId, front: bool) {
        let key = self.new_key(now, id, front);
        if self.queues[id].filed.is_some() {
            if self.queues[id].rb_key == key {
                return;
            }
            self.service.remove(&mut self.queues, id);
        }
        self.queues[id].rb_key = key;
        self.service.insert(&mut self.queues, id);
    }

    /// Sorts a busy queue anew (`cfq_resort_rr_list`).
    fn resort(&mut self, q: &Core, now: u64, id: QueueId) {
        if self.queues[id].on_rr {
            self.service_tree_add(now, id, false);
            self.file_position(q, id);
        }
    }

    /// A queue got its first request (`cfq_add_cfqq_rr`).
    pub(super) fn add_queue_rr(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId) {
        let queue = &mut self.queues[id];
        q.message(cx, format_args!("cfq{} add_to_rr", queue.pid));
        queue.on_rr = true;
        self.busy_queues += 1;
        if queue.prio.is_rt() {
            self.busy_rt_queues = self.busy_rt_queues.wrapping_add(1);
        }
        self.resort(q, self.clock.now(cx), id);
    }

    /// The last request of a queue left it (`cfq_del_cfqq_rr`).
    pub(super) fn del_queue_rr(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId) {
        let queue = &mut self.queues[id];
        q.message(cx, format_args!("cfq{} del_from_rr", queue.pid));
        queue.on_rr = false;
        assert!(self.busy_queues > 0, "a queue that stops being busy was");
        self.busy_queues -= 1;
        if queue.prio.is_rt() {
            self.busy_rt_queues = self.busy_rt_queues.wrapping_sub(1);
        }
        self.service.remove(&mut self.queues, id);
        self.unfile_position(id);
    }

    /// Makes a queue the active one, or the next of the tree. Its slice starts; the end
    /// stays open until the first completion (`cfq_set_active_queue`).
    pub(super) fn set_active_queue(
        &mut self,
        q: &Core,
        cx: &mut Cx<'_>,
        chosen: Option<QueueId>,
    ) -> Option<QueueId> {
        let id = chosen.or_else(|| self.get_next_queue(cx))?;
        let queue = &mut self.queues[id];
        let keeps_coop = std::mem::take(&mut queue.coop_preempt) || chosen.is_some();
        queue.coop &= keeps_coop;
        q.message(cx, format_args!("cfq{} set_active", queue.pid));
        queue.slice_end = 0;
        queue.slice_dispatch = 0;
        queue.turn.must_alloc_slice = false;
        queue.turn.fifo_expire = false;
        queue.slice_new = true;
        cx.waits(Why::Slice, queue.pid);
        self.active = Some(id);
        if self.feat.keeps_idling {
            let queue = &mut self.queues[id];
            queue.turn.wait_request = false;
            queue.turn.must_dispatch = false;
            self.cancel_idle_timer(cx);
        }
        self.cancel_idle_class_timer(cx);
        Some(id)
    }

    /// The first completion of a slice: it ends a slice's length from now
    /// (`cfq_set_prio_slice`).
    pub(super) fn begin_slice(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId) {
        let length = i64::from(self.prio_to_slice(id));
        let queue = &mut self.queues[id];
        queue.slice_end = self.clock.now(cx).wrapping_add_signed(length);
        queue.slice_new = false;
        q.message(
            cx,
            format_args!("cfq{} set_slice={}", queue.pid, length as u64),
        );
    }

    /// Whether a slice is over. One without a completion is not (`cfq_slice_used`).
    pub(super) fn slice_used(&self, id: QueueId, now: u64) -> bool {
        let queue = &self.queues[id];
        !queue.slice_new && self.clock.reached(now, queue.slice_end)
    }

    /// Ends the slice of the active queue, if there is one. With `timed_out`
    /// what is left of it counts at the queue's next place in the round
    /// (`cfq_slice_expired`).
    pub(super) fn expire_active(&mut self, q: &Core, cx: &mut Cx<'_>, timed_out: bool) {
        let Some(id) = self.active else { return };
        let now = self.clock.now(cx);
        let pid = self.queues[id].pid;
        let shown = u8::from(timed_out);
        q.message(cx, format_args!("cfq{pid} slice expired t={shown}"));
        if self.queues[id].turn.wait_request {
            self.cancel_idle_timer(cx);
        }
        let queue = &mut self.queues[id];
        queue.turn.wait_request = false;
        if timed_out && !queue.slice_new {
            queue.slice_resid = queue.slice_end.wrapping_sub(now) as i64;
            q.message(cx, format_args!("cfq{pid} resid={}", queue.slice_resid));
        }
        self.resort(q, now, id);
        self.active = None;
        self.active_task = None;
    }
}
