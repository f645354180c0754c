// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a new request tells about its process, and whether to idle for it;
//! and whether the device queues commands.

use super::Cfq;
use super::context::Context;
use super::queue::QueueId;
use blklab_block::sq::Core;
use blklab_block::{Cx, RqId};
use blklab_types::TaskId;

/// Mean seek distance of processes that seek, in sectors.
pub(super) const SEEKY_SECTORS: u64 = 8 * 1024;

/// Requests at the device that make it one that queues.
const HW_QUEUE_MIN: u32 = 5;

/// Completions under load that settle whether it does.
const HW_QUEUE_SAMPLES: u32 = 50;

impl Context {
    /// `CIC_SEEKY`.
    pub(super) fn is_seeky(&self) -> bool {
        self.seek.mean > SEEKY_SECTORS
    }
}

impl Cfq {
    /// Notes how long a process has thought since its last request was done
    /// (`cfq_update_io_thinktime`).
    pub(super) fn note_think(&mut self, cx: &Cx<'_>, task: TaskId) {
        let now = self.clock.now(cx);
        let context = &mut self.contexts[task];
        let elapsed = now.wrapping_sub(context.last_end_request);
        let longest = 2 * u64::from(self.set.slice_idle_jiffies);
        context.think.add(elapsed.min(longest));
    }

    /// Notes where a new request lies (`cfq_update_io_seektime`).
    pub(super) fn note_seek(&mut self, q: &Core, task: TaskId, rq: RqId) {
        let context = &mut self.contexts[task];
        let distance = match context.last_request_pos {
            0 if self.feat.first_seek_is_free => 0,
            last => q.rqs[rq].sector.abs_diff(last),
        };
        context.seek.add(distance);
    }

    /// Decides whether CFQ idles for the queue's next request
    /// (`cfq_update_idle_window`).
    pub(super) fn update_idle_window(
        &mut self,
        q: &Core,
        cx: &mut Cx<'_>,
        id: QueueId,
        task: TaskId,
    ) {
        let queue = &self.queues[id];
        if !queue.sync || (queue.prio.is_idle_class() && !self.feat.idle_class_waits) {
            return;
        }
        let c = &self.contexts[task];
        let window = self.deserves_idling(c).unwrap_or(queue.idle_window);
        if window != queue.idle_window {
            let shown = u8::from(window);
            q.message(cx, format_args!("cfq{} idle={shown}", queue.pid));
            self.queues[id].idle_window = window;
        }
    }

    /// None if nothing is known yet.
    fn deserves_idling(&self, c: &Context) -> Option<bool> {
        let seeks_end_it = !(self.feat.idles_for_seekers && self.set.low_latency);
        let seeks = seeks_end_it && self.hw_tag && c.is_seeky();
        if !c.alive || self.set.slice_idle_jiffies == 0 || seeks {
            return Some(false);
        }
        let seeker = self.feat.idles_for_seekers && c.seek.is_valid() && c.is_seeky();
        let limit = if seeker {
            self.set.min_think_jiffies
        } else {
            u64::from(self.set.slice_idle_jiffies)
        };
        c.think.is_valid().then_some(c.think.mean <= limit)
    }

    /// A completion as a sample of the device's depth (`cfq_update_hw_tag`).
    pub(super) fn update_hw_tag(&mut self) {
        if !self.feat.hw_tag_sampled {
            return;
        }
        let at_device = self.nr_in_driver();
        self.rq_in_driver_peak = self.rq_in_driver_peak.max(at_device);
        if self.rq_queued <= i64::from(HW_QUEUE_MIN) && at_device <= HW_QUEUE_MIN {
            return;
        }
        self.hw_tag_samples += 1;
        if self.hw_tag_samples > HW_QUEUE_SAMPLES {
            self.hw_tag = self.rq_in_driver_peak >= HW_QUEUE_MIN;
            self.hw_tag_samples = 0;
            self.rq_in_driver_peak = 0;
        }
    }

    /// More than four requests at once settle it for good (to 2.6.27).
    pub(super) fn note_depth(&mut self) {
        if !self.feat.hw_tag_sampled && self.nr_in_driver() >= HW_QUEUE_MIN {
            self.hw_tag = true;
        }
    }
}
