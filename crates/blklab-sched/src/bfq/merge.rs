// SPDX-License-Identifier: MIT OR Apache-2.0
//! Merging of queues: a process is redirected from its queue to another one,
//! at once when both are new, later, or when they turn out to cooperate.

use super::Bfq;
use super::clock::{Jiffy, LONG_AGO, jiffies};
use super::entity::Ent;
use super::queue::SHARED_PID;
use super::settings::RAISED;
use super::split::Saved;
use crate::queue_id::QueueId;
use blklab_block::Cx;
use blklab_block::mq::Core;
use blklab_types::TaskId;

/// Queues created within this time of another are merged with it.
const TOGETHER_MS: u64 = 180;
/// After so long a new queue starts a new group of them.
const APART_MS: u64 = 600;

impl Bfq {
    /// The last queue of the chain that begins behind `id`, if it has one.
    pub(super) fn end_of_chain(&self, id: QueueId) -> Option<QueueId> {
        let mut end = self.queues[id].target?;
        while let Some(next) = self.queues[end].target {
            end = next;
        }
        Some(end)
    }

    /// Decides that `id` is merged into the end of the chain of `target`, which
    /// expects its processes from then on (`bfq_setup_merge`).
    pub(super) fn set_up_merge(
        &mut self,
        q: &Core,
        cx: &mut Cx<'_>,
        id: QueueId,
        target: QueueId,
    ) -> Option<QueueId> {
        if self.process_refs(target) == 0 {
            return None;
        }
        let mut end = target;
        while let Some(next) = self.queues[end].target {
            if next == id {
                return None;
            }
            end = next;
        }
        let refs = self.process_refs(id);
        let parent = |id| self.ents[Ent::of_queue(id)].parent;
        if end == id || refs == 0 || self.process_refs(end) == 0 || parent(id) != parent(end) {
            return None;
        }
        let pid = self.queues[end].pid;
        let text = format_args!("scheduling merge with queue {pid}");
        self.say(q, cx, id, text);
        self.queues[id].target = Some(end);
        self.queues[end].refs += refs;
        Some(end)
    }

    /// Redirects a process along the chain from `id` to its `end`
    /// (`bfq_setup_merge`).
    pub(super) fn redirect(
        &mut self,
        q: &mut Core,
        cx: &mut Cx<'_>,
        task: TaskId,
        mut id: QueueId,
        end: QueueId,
    ) {
        while id != end {
            let Some(next) = self.queues[id].target else {
                return;
            };
            self.merge_step(q, cx, task, id, next);
            id = next;
        }
    }

    /// Redirects a process from one queue to the next of the chain.
    fn merge_step(
        &mut self,
        q: &mut Core,
        cx: &mut Cx<'_>,
        task: TaskId,
        id: QueueId,
        into: QueueId,
    ) {
        let pid = self.queues[into].pid as u64;
        self.say(q, cx, id, format_args!("merging with queue {pid}"));
        self.save_state(cx, id);
        self.save_state(cx, into);
        if std::mem::take(&mut self.queues[id].io_bound) {
            self.queues[into].io_bound = true;
        }
        let waker = self.queues[id].waker;
        if self.feat.shares_wakers
            && waker.is_some()
            && self.queues[into].waker.is_none()
            && waker != Some(into)
        {
            self.set_waker(into, waker);
            self.queues[into].tentative_waker = None;
        }
        self.hand_raising_over(id, into);
        let busy = self.wr_busy;
        self.say(q, cx, into, format_args!("merge_bfqqs: wr_busy {busy}"));
        self.attach(q, cx, task, true, Some(into));
        let x = &mut self.queues[into];
        x.coop = true;
        x.owner = None;
        x.pid = SHARED_PID;
        self.queues[id].owner = None;
        let group = self.ents[Ent::of_queue(id)].parent;
        if self.groups[group].last_created == Some(id) {
            self.groups[group].last_created = Some(into);
        }
        self.release_process_ref(q, cx, id);
    }

    /// `bfq_merge_bfqqs`.
    fn hand_raising_over(&mut self, id: QueueId, into: QueueId) {
        let (from, to) = (Ent::of_queue(id), Ent::of_queue(into));
        let wr = self.ents[from].wr;
        if wr == 1 {
            return;
        }
        if self.ents[to].wr == 1 {
            let x = &self.queues[id];
            let times = (x.raised_for, x.raised_at, x.interactive_at);
            let y = &mut self.queues[into];
            (y.raised_for, y.raised_at, y.interactive_at) = times;
            let busy = y.busy;
            let e = &mut self.ents[to];
            e.wr = wr;
            e.prio_changed = true;
            if busy {
                self.wr_busy += 1;
            }
        }
        let e = &mut self.ents[from];
        e.wr = 1;
        e.prio_changed = true;
        if self.queues[id].busy {
            self.wr_busy -= 1;
        }
    }

    /// Keeps what a queue knows of the only process that used it
    /// (`bfq_bfqq_save_state`).
    fn save_state(&mut self, cx: &Cx<'_>, id: QueueId) {
        let x = &self.queues[id];
        let Some(owner) = x.owner else { return };
        let e = &self.ents[Ent::of_queue(id)];
        let mut saved = Saved {
            short_think: x.short_think,
            io_bound: x.io_bound,
            io_start_ns: x.io_start_ns,
            idle_ns: x.idle_ns,
            weight: e.orig_weight,
            last_end_ns: x.last_end_ns,
            think: x.think,
            alone_ns: x.alone_ns,
            inject_limit: x.inject_limit,
            lowered: x.lowered,
            in_large_burst: x.in_large_burst,
            was_in_burst_list: self.is_in_burst_list(id),
            wr: e.wr,
            service_raised: x.service_raised,
            raised_for: x.raised_for,
            raised_at: x.raised_at,
            interactive_at: x.interactive_at,
        };
        if x.just_created && !x.in_large_burst && self.set.low_latency {
            // It was merged before it could be raised.
            saved.wr = RAISED;
            saved.raised_for = self.interactive_jiffies();
            saved.raised_at = jiffies(cx);
            saved.interactive_at = LONG_AGO;
        }
        self.context_mut(owner).saved = saved;
    }

    /// A new sync queue of a task: the queue created last takes it, now or
    /// later, if both come from one series. The queue that the task gets
    /// (`bfq_do_early_stable_merge`, `bfq_do_or_sched_stable_merge`).
    pub(super) fn merge_new(
        &mut self,
        q: &mut Core,
        cx: &mut Cx<'_>,
        task: TaskId,
        id: QueueId,
    ) -> QueueId {
        let group = self.ents[Ent::of_queue(id)].parent;
        let last = self.groups[group].last_created;
        let created = self.queues[id].created;
        let within = |last: QueueId, span: Jiffy| self.queues[last].created + span >= created;
        let same = |last: QueueId| {
            let (e, f) = (
                &self.ents[Ent::of_queue(id)],
                &self.ents[Ent::of_queue(last)],
            );
            e.parent == f.parent
                && e.class == f.class
                && self.queues[id].level == self.queues[last].level
        };
        let Some(last) = last.filter(|&l| within(l, self.set.ms(APART_MS)) && same(l)) else {
            self.groups[group].last_created = Some(id);
            return id;
        };
        if !within(last, self.set.ms(TOGETHER_MS)) {
            return id;
        }
        if !self.queueing.ignores_distance() {
            self.queues[last].refs += 1;
            self.queues[last].stable_refs += 1;
            self.context_mut(task).stable_target = Some(last);
            return id;
        }
        let Some(target) = self.set_up_merge(q, cx, id, last) else {
            return id;
        };
        if let Some(owner) = self.queues[target].owner {
            self.context_mut(owner).stably_merged = true;
        }
        self.context_mut(task).stably_merged = true;
        self.queues[id].owner = Some(task);
        self.redirect(q, cx, task, id, target);
        target
    }

    /// The time of a scheduled merge has come: it is done, unless idling for
    /// the queue is better or one side has no process any more
    /// (`bfq_setup_stable_merge`).
    pub(super) fn merge_scheduled(
        &mut self,
        q: &mut Core,
        cx: &mut Cx<'_>,
        id: QueueId,
        task: TaskId,
    ) -> Option<QueueId> {
        let with = self.context(task).stable_target?;
        let wanted =
            !self.idling_boosts(id) && self.process_refs(id) > 0 && self.process_refs(with) > 0;
        self.unschedule_stable_merge(q, cx, task);
        if !wanted {
            return None;
        }
        let target = self.set_up_merge(q, cx, id, with)?;
        self.context_mut(task).stably_merged = true;
        if let Some(owner) = self.queues[target].owner {
            self.context_mut(owner).stably_merged = true;
        }
        Some(target)
    }

    /// Every queue on the chain behind `id` expects one process less
    /// (`bfq_put_cooperator`).
    pub(super) fn put_cooperators(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId) {
        let mut at = self.queues[id].target;
        while let Some(next) = at {
            at = self.queues[next].target;
            self.put_queue(q, cx, next);
        }
    }
}
