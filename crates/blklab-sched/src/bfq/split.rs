// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of cooperation: a process gets a queue of its own again, in the
//! state in which it left its old one.

use super::Bfq;
use super::clock::Jiffy;
use super::entity::Ent;
use crate::history::ThinkTime;
use crate::queue_id::QueueId;
use blklab_block::Cx;
use blklab_block::mq::Core;
use blklab_types::TaskId;

/// What is kept of a queue for its process while that shares another.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Saved {
    pub(super) short_think: bool,
    pub(super) io_bound: bool,
    pub(super) io_start_ns: u64,
    pub(super) idle_ns: u64,
    pub(super) weight: u32,
    pub(super) last_end_ns: u64,
    pub(super) think: ThinkTime,
    pub(super) alone_ns: u64,
    pub(super) inject_limit: u32,
    pub(super) lowered: Jiffy,
    pub(super) in_large_burst: bool,
    pub(super) was_in_burst_list: bool,
    pub(super) wr: u32,
    pub(super) service_raised: i64,
    pub(super) raised_for: Jiffy,
    pub(super) raised_at: Jiffy,
    pub(super) interactive_at: Jiffy,
}

impl Bfq {
    /// The queue that a process uses: if it is shared and to be split, one of
    /// its own.
    pub(super) fn split_if_due(
        &mut self,
        q: &mut Core,
        cx: &mut Cx<'_>,
        task: TaskId,
        id: QueueId,
    ) -> QueueId {
        let x = &self.queues[id];
        if !x.coop || !x.split_coop || self.context(task).stably_merged {
            return id;
        }
        if x.in_large_burst {
            self.context_mut(task).saved.in_large_burst = true;
        }
        self.say(q, cx, id, format_args!("splitting queue"));
        if self.process_refs(id) == 1 && self.queues[id].target.is_none() {
            let pid = i64::from(cx.tasks.get(task).pid);
            let x = &mut self.queues[id];
            x.coop = false;
            x.split_coop = false;
            x.pid = pid;
            x.owner = Some(task);
            let was_busy = x.busy;
            self.restore(cx, task, id, was_busy);
            return id;
        }
        let waker = self.waker_to_inherit(id);
        self.attach(q, cx, task, true, None);
        self.put_cooperators(q, cx, id);
        self.release_process_ref(q, cx, id);
        let new = self.new_process_queue(q, cx, task, true, true);
        let saved = self.context(task).saved;
        if saved.in_large_burst || (saved.was_in_burst_list && self.burst.large) {
            self.queues[new].in_large_burst = true;
        } else if saved.was_in_burst_list {
            self.join_burst_list(new);
        }
        if waker.is_some() && self.feat.shares_wakers {
            self.set_waker(new, waker);
            self.queues[new].tentative_waker = None;
        }
        self.queues[new].owner = Some(task);
        self.restore(cx, task, new, false);
        new
    }

    /// The waker of a queue that is given up, unless that goes, too.
    fn waker_to_inherit(&self, id: QueueId) -> Option<QueueId> {
        let waker = self.queues[id].waker?;
        let refs = self.process_refs(waker);
        let mut at = self.queues[id].target;
        while let Some(next) = at {
            if next == waker && refs == 1 {
                return None;
            }
            at = self.queues[next].target;
        }
        (refs > 0).then_some(waker)
    }

    /// Gives a queue what was kept for its process.
    fn restore(&mut self, cx: &mut Cx<'_>, task: TaskId, id: QueueId, was_busy: bool) {
        let s = self.context(task).saved;
        let x = &mut self.queues[id];
        x.short_think = s.short_think;
        x.io_bound = s.io_bound;
        if self.feat.saves_all {
            x.alone_ns = s.alone_ns;
            x.inject_limit = s.inject_limit;
            x.lowered = s.lowered;
            x.io_start_ns = s.io_start_ns;
            x.idle_ns = s.idle_ns;
            x.service_raised = s.service_raised;
        }
        x.last_end_ns = s.last_end_ns;
        x.think = s.think;
        x.interactive_at = s.interactive_at;
        x.raised_at = s.raised_at;
        x.raised_for = s.raised_for;
        let e = &mut self.ents[Ent::of_queue(id)];
        e.new_weight = s.weight;
        let before = if self.set.low_latency {
            std::mem::replace(&mut e.wr, s.wr)
        } else {
            1
        };
        self.resume_raising(cx, id);
        let e = &mut self.ents[Ent::of_queue(id)];
        e.prio_changed = true;
        let after = e.wr;
        if was_busy && before == 1 && after > 1 {
            self.wr_busy += 1;
        } else if was_busy && before > 1 && after == 1 {
            self.wr_busy -= 1;
        }
    }
}
