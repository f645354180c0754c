// SPDX-License-Identifier: MIT OR Apache-2.0
//! What BFQ remembers about the process behind a sync queue: think time, seeks
//! and how much of the time it has requests.

use super::Bfq;
use super::clock::{has_come, is_over, jiffies, now_ns};
use super::entity::{Ent, IDLE};
use crate::queue_id::QueueId;
use blklab_block::mq::Core;
use blklab_block::{Cx, Request, RqId};

/// Distance in sectors that makes a seek.
const SEEK_SECTORS: u64 = 800;
/// Without seek times a request of so many sectors is as good as sequential.
pub(super) const LARGE_SECTORS: u32 = 64;
/// Span over which I/O intensity is looked at.
const INTENSITY_SPAN_NS: u64 = 200_000_000;
/// Arrivals in time that show a process to have requests all the time.
const IN_TIME_ARRIVALS: u32 = 120;

impl Bfq {
    /// Whether a request is far from where the one before ended (`BFQ_RQ_SEEKY`).
    pub(super) fn is_far(&self, last_end: u64, rq: &Request) -> bool {
        last_end != 0
            && rq.sector.abs_diff(last_end) > SEEK_SECTORS
            && (self.rotational || rq.nr_sectors < LARGE_SECTORS)
    }

    /// A request came: think time, then seeks
    /// (`bfq_update_io_seektime`, `bfq_update_has_short_ttime`).
    pub(super) fn learn(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId, rq: RqId) {
        if self.queues[id].sync {
            self.sample_think_time(cx, id);
            self.update_short_think(cx, id, true);
        }
        let far = self.is_far(self.queues[id].last_end_sector, &q.rqs[rq]);
        let x = &mut self.queues[id];
        x.seek_history = x.seek_history << 1 | u32::from(far);
        self.check_seeky_soft_rt(cx, id);
    }

    /// `bfq_update_io_thinktime`.
    fn sample_think_time(&mut self, cx: &Cx<'_>, id: QueueId) {
        let x = &mut self.queues[id];
        if self.feat.think_needs_idleness && (x.dispatched > 0 || x.busy) {
            return;
        }
        let elapsed = now_ns(cx).saturating_sub(x.last_end_ns);
        x.think.add(elapsed.min(2 * self.set.slice_idle_ns));
    }

    /// `bfq_update_has_short_ttime`.
    fn update_short_think(&mut self, cx: &mut Cx<'_>, id: QueueId, process_lives: bool) {
        let idle_class = self.ents[Ent::of_queue(id)].class == IDLE;
        let x = &self.queues[id];
        if idle_class
            || self.set.slice_idle_ns == 0
            || !is_over(cx, x.split_time + self.set.min_idle_jiffies)
        {
            return;
        }
        let limit = if self.feat.think_needs_idleness {
            self.set.slice_idle_ns >> 1
        } else {
            self.set.slice_idle_ns
        };
        let long = !process_lives || (x.think.is_valid() && x.think.mean > limit);
        let changed = x.short_think == long;
        self.queues[id].short_think = !long;
        let x = &self.queues[id];
        if changed && x.alone_ns == 0 && (has_come(cx, x.lowered + self.set.ms(100)) || long) {
            self.reset_inject_limit(cx, id);
        }
    }

    /// Whether the process has requests four fifths of the time
    /// (`bfq_update_io_intensity`).
    pub(super) fn update_intensity(&mut self, cx: &Cx<'_>, id: QueueId) {
        let now = now_ns(cx);
        let x = &mut self.queues[id];
        let span = now - x.io_start_ns;
        if x.is_empty() && x.dispatched == 0 {
            x.idle_ns += now.saturating_sub(x.last_end_ns);
        }
        if x.just_created {
            return;
        }
        x.io_bound = x.idle_ns * 5 <= span;
        if span > INTENSITY_SPAN_NS {
            x.io_start_ns = now - span / 2;
            x.idle_ns /= 2;
        }
    }

    /// The older rule: a process is I/O-bound when it came back in time so often
    /// without fail.
    pub(super) fn count_in_time(&mut self, id: QueueId, in_time: bool) {
        let x = &mut self.queues[id];
        if x.io_bound {
            return;
        }
        x.in_time = if in_time { x.in_time + 1 } else { 0 };
        if x.in_time >= IN_TIME_ARRIVALS {
            x.io_bound = true;
        }
    }

    /// Whether injection has to be learned anew after so many ms.
    pub(super) fn limit_is_old(&self, cx: &Cx<'_>, id: QueueId, ms: u64) -> bool {
        self.queues[id].lowered + self.set.ms(ms) <= jiffies(cx)
    }
}
