// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which queue is served, and how much of it may go to the device.

use super::Cfq;
use super::features::AsyncRamp;
use super::queue::QueueId;
use crate::cfq::{ASYNC, SYNC};
use blklab_block::Cx;
use blklab_block::sq::Core;
use blklab_trace::truth::{Kind, Why};

/// A lone queue may have this many quanta at the device.
const LONE_QUANTA: u32 = 4;

impl Cfq {
    /// The queue to be served now: the active one as long as its slice lasts
    /// and something of it may still come, else the first of the tree. None
    /// while CFQ waits for the active one (`cfq_select_queue`).
    pub(super) fn select_queue(&mut self, q: &Core, cx: &mut Cx<'_>) -> Option<QueueId> {
        let Some(active) = self.active else {
            return self.set_active_queue(q, cx, None);
        };
        let queue = &self.queues[active];
        let kept = self.feat.keeps_idling && queue.turn.must_dispatch;
        if self.slice_used(active, self.clock.now(cx)) && !kept {
            self.expire_active(q, cx, false);
            return self.set_active_queue(q, cx, None);
        }
        if self.feat.rt_cuts_in && !queue.prio.is_rt() && self.busy_rt_queues != 0 {
            q.message(cx, format_args!("cfq{} preempt", queue.pid));
            self.expire_active(q, cx, true);
            return self.set_active_queue(q, cx, None);
        }
        if !queue.waiting.is_empty() {
            return Some(active);
        }
        if let Some(close) = self.cooperator(q, active) {
            self.queues[close].coop = true;
            self.expire_active(q, cx, false);
            return self.set_active_queue(q, cx, Some(close));
        }
        let queue = &self.queues[active];
        if cx.timers.is_pending(self.idle_slice_timer) {
            cx.waits(Why::Idling, queue.pid);
            return None;
        }
        if queue.dispatched > 0 && queue.idle_window {
            cx.waits(Why::InFlight, queue.pid);
            return None;
        }
        self.expire_active(q, cx, false);
        self.set_active_queue(q, cx, None)
    }

    /// The next queue of the tree, unless it is to wait (`cfq_get_next_queue`).
    pub(super) fn get_next_queue(&mut self, cx: &mut Cx<'_>) -> Option<QueueId> {
        let first = self.service.first()?;
        (!self.must_wait_for_quiet(cx, first)).then_some(first)
    }

    /// The idle class is not served within a tenth of a second of other I/O;
    /// a timer looks again (to 2.6.24).
    fn must_wait_for_quiet(&mut self, cx: &mut Cx<'_>, first: QueueId) -> bool {
        if !self.feat.idle_class_waits || !self.queues[first].prio.is_idle_class() {
            return false;
        }
        let Some(left) = self.grace_left(self.clock.now(cx)) else {
            return false;
        };
        cx.waits(Why::IdleClass, 0);
        self.arm_idle_class_timer(cx, left);
        true
    }

    /// Jiffies until the disk counts as quiet; none if it does.
    pub(super) fn grace_left(&self, now: u64) -> Option<u64> {
        let grace = self.set.idle_grace_jiffies;
        let left = self.last_end_request.wrapping_add(grace).wrapping_sub(now);
        (1..=grace).contains(&left).then_some(left)
    }

    /// How many requests of a queue may go now; none if it has to wait
    /// (`cfq_may_dispatch`).
    pub(super) fn may_dispatch(&self, cx: &mut Cx<'_>, id: QueueId) -> Option<u32> {
        match self.allowed(self.clock.now(cx), id) {
            Ok(nr) => Some(nr),
            Err(why) => {
                let nobody = matches!(why, Why::SyncInFlight | Why::AsyncInFlight);
                cx.waits(why, if nobody { 0 } else { self.queues[id].pid });
                None
            }
        }
    }

    /// The same, or why it has to wait.
    fn allowed(&self, now: u64, id: QueueId) -> Result<u32, Why> {
        let queue = &self.queues[id];
        if self.feat.drain_async && queue.idle_window && self.rq_in_driver[ASYNC] > 0 {
            return Err(Why::AsyncInFlight);
        }
        if self.sync_flight > 0 && !queue.sync {
            return Err(Why::SyncInFlight);
        }
        let quantum = if queue.prio.is_idle_class() {
            1
        } else {
            self.set.quantum
        };
        if queue.dispatched >= quantum {
            let lone =
                self.busy_queues <= 1 && !(self.feat.single_dispatch && queue.prio.is_idle_class());
            let limit = quantum.saturating_mul(LONE_QUANTA);
            if !lone || (self.feat.lone_limit && queue.dispatched >= limit) {
                return Err(Why::Quantum);
            }
        }
        if queue.sync {
            return Ok(quantum);
        }
        match self.async_depth(now, queue.dispatched) {
            Some(depth) if queue.dispatched >= depth => Err(Why::AsyncRamp),
            Some(depth) => Ok(quantum.min(depth - queue.dispatched)),
            None => Ok(quantum),
        }
    }

    /// Depth that async requests have reached since the last sync request
    /// that counts; none if nothing holds them down.
    fn async_depth(&self, now: u64, dispatched: u32) -> Option<u32> {
        let since = match self.feat.async_ramp {
            AsyncRamp::SinceSync if self.set.low_latency => self.last_end_sync_rq,
            AsyncRamp::SinceDelayedSync if self.set.low_latency => self.last_delayed_sync,
            _ => return None,
        };
        let slice = u64::from(self.set.slice_jiffies[SYNC].max(1));
        let depth = u32::try_from(now.wrapping_sub(since) / slice).unwrap_or(u32::MAX);
        Some(if depth == 0 && dispatched == 0 {
            1
        } else {
            depth
        })
    }

    /// Requests that end the turn of an async queue beside others, in the kernel's int
    /// arithmetic (`cfq_prio_to_maxrq`).
    pub(super) fn prio_to_maxrq(&self, id: QueueId) -> i32 {
        let level = i32::from(self.queues[id].prio.now.level.min(7));
        let base = self.set.slice_async_rq as i32;
        base.wrapping_mul(8 - level).wrapping_mul(2)
    }

    /// Stops idling for a request.
    pub(super) fn cancel_idle_timer(&mut self, cx: &mut Cx<'_>) {
        if cx.timers.cancel(self.idle_slice_timer) {
            cx.truth_note(Kind::TimerCancel, 0, cx.timers.name(self.idle_slice_timer));
        }
    }
}
