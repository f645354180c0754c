// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a new request tells about its process and its queue, and whether to idle for
//! them; and whether the device queues commands.

use super::Cfq;
use super::cooperators::CLOSE_SECTORS;
use super::group::Think;
use super::queue::QueueId;
use blklab_block::sq::Core;
use blklab_block::{Cx, RqId};
use blklab_types::TaskId;

/// Waiting requests that make a queue deep.
const DEEP: u32 = 4;

/// Distance in sectors that is a seek in the history (2.6.34).
const FAR_SECTORS: u64 = 8 * 100;
/// Requests shorter than this are small to a device that does not seek.
const SMALL_SECTORS: u32 = 64;

impl Cfq {
    /// Notes how long a process, and a tree and a group with it, has thought since its
    /// last request was done (`cfq_update_io_thinktime`).
    pub(super) fn note_think(&mut self, cx: &Cx<'_>, id: QueueId, task: TaskId) {
        let now = self.clock.now(cx);
        let idle = self.set.slice_idle;
        if !self.feat.tree_think_time {
            add_think(&mut self.contexts[task].think, now, idle);
            return;
        }
        if self.queues[id].sync {
            add_think(&mut self.contexts[task].think, now, idle);
            if let Some(place) = self.queues[id].filed {
                add_think(&mut self.tree_mut(place).think, now, idle);
            }
        }
        if cx.tasks.has_groups() {
            let group_idle = self.group_idle(cx);
            let group = self.queues[id].group;
            add_think(&mut self.groups[group].think, now, group_idle);
        }
    }

    /// Notes where a new request lies (`cfq_update_io_seektime`).
    pub(super) fn note_seek(&mut self, q: &Core, id: QueueId, rq: RqId) {
        let rq = &q.rqs[rq];
        let queue = &mut self.queues[id];
        let distance = match queue.last_pos {
            0 => 0,
            last => rq.sector.abs_diff(last),
        };
        if self.feat.seek_history {
            let far = if q.limits.queue.rotational {
                distance > FAR_SECTORS
            } else {
                rq.nr_sectors < SMALL_SECTORS
            };
            queue.seek_history = queue.seek_history << 1 | u32::from(far);
        } else {
            queue.seeks.add(distance);
        }
    }

    /// `CFQQ_SEEKY`.
    pub(super) fn is_seeky(&self, id: QueueId) -> bool {
        let queue = &self.queues[id];
        if self.feat.seek_history {
            queue.seek_history.count_ones() > 4
        } else {
            queue.seeks.mean > CLOSE_SECTORS
        }
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
        if !queue.sync || queue.prio.is_idle_class() {
            return;
        }
        let deep = queue.deep || queue.waiting.sort.len() >= DEEP;
        let next_is_last = self.feat.noidle_in_window
            && queue
                .waiting
                .next_rq
                .is_some_and(|next| self.is_noidle(q, next));
        let seeks = self.is_seeky(id) && (self.feat.seek_history || queue.seeks.is_valid());
        let think = &self.contexts[task].think.time;
        let window =
            if next_is_last || !self.is_alive(task) || self.set.slice_idle == 0 || (!deep && seeks)
            {
                false
            } else if think.is_valid() {
                think.mean <= self.set.slice_idle
            } else {
                queue.idle_window
            };
        self.queues[id].deep = deep;
        if window != self.queues[id].idle_window {
            self.say(q, cx, id, format_args!("idle={}", u8::from(window)));
            self.queues[id].idle_window = window;
        }
    }

    /// Looks at the depth of a device that has much to do: whether it takes
    /// more than one request at a time. Undecided counts as yes
    /// (`cfq_update_hw_tag`).
    pub(super) fn update_hw_tag(&mut self) {
        /// Requests, waiting or at the device, that are much.
        const BUSY: u32 = 5;
        const SAMPLES: u32 = 50;
        self.hw_tag_est_depth = self.hw_tag_est_depth.max(self.rq_in_driver);
        if self.hw_tag == 1 || (self.rq_queued <= BUSY && self.rq_in_driver <= BUSY) {
            return;
        }
        if let Some(id) = self.active {
            let queue = &self.queues[id];
            if queue.idle_window
                && queue.dispatched + queue.waiting.sort.len() < BUSY
                && self.rq_in_driver < BUSY
            {
                return;
            }
        }
        if self.hw_tag_samples < SAMPLES {
            self.hw_tag_samples += 1;
            return;
        }
        self.hw_tag = i8::from(self.hw_tag_est_depth >= BUSY);
    }
}

fn add_think(think: &mut Think, now: u64, idle: u64) {
    let elapsed = now.wrapping_sub(think.last_end);
    think.time.add(elapsed.min(idle.wrapping_mul(2)));
}
