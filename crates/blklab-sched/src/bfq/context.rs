// SPDX-License-Identifier: MIT OR Apache-2.0
//! What BFQ keeps per process and device (`bfq_io_cq`), and how queues come to
//! a process and go.

use super::Bfq;
use super::clock::{LONG_AGO, jiffies, now_ns};
use super::entity::{Ent, Entity};
use super::expire::Reason;
use super::group_id::GroupId;
use super::prio;
use super::queue::{Birth, Queue};
use super::split::Saved;
use crate::queue_id::QueueId;
use blklab_block::mq::Core;
use blklab_block::{Cx, RqId};
use blklab_types::{IoPrio, TaskId};

/// One process on one device (`struct bfq_io_cq`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Context {
    /// The process has made a request here and has not ended.
    pub(super) live: bool,
    /// Priority and control group when it last made a request.
    ioprio: IoPrio,
    group: u16,
    /// Its async and its sync queue.
    pub(super) queues: [Option<QueueId>; 2],
    /// Its requests, waiting and at the driver.
    pub(super) requests: u32,
    /// Queue that its own is to be merged with when that is older.
    pub(super) stable_target: Option<QueueId>,
    /// Its queue was merged for good.
    pub(super) stably_merged: bool,
    /// Its queue's state when that was merged.
    pub(super) saved: Saved,
}

impl Bfq {
    pub(super) fn context(&self, task: TaskId) -> &Context {
        &self.contexts[task]
    }

    pub(super) fn context_mut(&mut self, task: TaskId) -> &mut Context {
        &mut self.contexts[task]
    }

    /// The queue in which a request of the task would go, if there is one.
    pub(super) fn context_queue(&self, task: TaskId, sync: bool) -> Option<QueueId> {
        self.contexts.get(task)?.queues[usize::from(sync)]
    }

    /// Makes sure that the task has a context, and notices a new priority, or
    /// another control group than that of its last request: not its own, where
    /// it writes on behalf of others
    /// (`bfq_check_ioprio_change`, `bfq_bic_update_cgroup`).
    fn enter_context(&mut self, q: &mut Core, cx: &mut Cx<'_>, task: TaskId, group: u16) {
        let ioprio = cx.tasks.get(task).ioprio;
        let c = self.contexts.entry(task);
        if !c.live {
            let requests = c.requests;
            *c = Context {
                live: true,
                ioprio,
                group,
                requests,
                ..Context::default()
            };
            return;
        }
        if c.ioprio != ioprio {
            c.ioprio = ioprio;
            self.change_prio(q, cx, task);
        }
        if self.contexts[task].group != group {
            self.contexts[task].group = group;
            self.change_group(q, cx, task);
        }
    }

    /// A new priority: another async queue at once; the sync queue's weight and
    /// class follow at its next insertion.
    fn change_prio(&mut self, q: &mut Core, cx: &mut Cx<'_>, task: TaskId) {
        let [old, sync] = self.contexts[task].queues;
        if let Some(old) = old {
            let new = self.async_queue(q, cx, task);
            self.queues[new].refs += 1;
            self.attach(q, cx, task, false, Some(new));
            self.release_process_ref(q, cx, old);
        }
        if let Some(id) = sync {
            self.take_prio(q, cx, id, task);
        }
    }

    /// `bfq_set_next_ioprio_data`.
    fn take_prio(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId, task: TaskId) {
        let (class, level) = prio::of_task(cx.tasks.get(task));
        self.queues[id].new_level = level;
        let weight = prio::weight_of_level(level);
        let e = &mut self.ents[Ent::of_queue(id)];
        e.new_class = class;
        e.new_weight = weight;
        e.prio_changed = true;
        self.say(
            q,
            cx,
            id,
            format_args!("new_ioprio {level} new_weight {weight}"),
        );
    }

    /// The process changed its control group: a queue of its own goes with it,
    /// shared ones stay behind (`bfq_bic_update_cgroup`).
    fn change_group(&mut self, q: &mut Core, cx: &mut Cx<'_>, task: TaskId) {
        let number = self.contexts[task].group;
        let group = self.enter_group(cx, number);
        let [old, sync] = self.contexts[task].queues;
        if let Some(old) = old
            && self.ents[Ent::of_queue(old)].parent != group
        {
            self.attach(q, cx, task, false, None);
            self.release_process_ref(q, cx, old);
        }
        let Some(id) = sync else { return };
        if self.queues[id].target.is_none() && !self.queues[id].coop {
            if self.ents[Ent::of_queue(id)].parent != group {
                self.move_queue(q, cx, id, group);
            }
            return;
        }
        let mut at = Some(id);
        while let Some(x) = at {
            if self.ents[Ent::of_queue(x)].parent != group {
                self.put_cooperators(q, cx, id);
                self.attach(q, cx, task, true, None);
                self.release_process_ref(q, cx, id);
                return;
            }
            at = self.queues[x].target;
        }
    }

    /// `bfq_bfqq_move`.
    fn move_queue(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId, group: GroupId) {
        let ent = Ent::of_queue(id);
        self.queues[id].refs += 1;
        if self.in_service == Some(id) {
            self.expire(q, cx, id, false, Reason::Preempted);
        }
        let pending = self.ents[ent].pending;
        if pending {
            self.unnote_pending(id);
        }
        if self.queues[id].busy {
            self.deactivate_queue(q, cx, id, false, false);
        } else if self.ents[ent].on_st {
            self.drop_idle(q, cx, ent);
        }
        let old = self.ents[ent].parent;
        if self.groups[old].last_created == Some(id) {
            self.groups[old].last_created = None;
        }
        let allocated = self.ents[ent].allocated;
        let mut above = self.above(ent);
        while let Some(e) = above {
            self.ents[e].allocated -= allocated;
            above = self.above(e);
        }
        self.ents[ent].parent = group;
        above = self.above(ent);
        while let Some(e) = above {
            self.ents[e].allocated += allocated;
            above = self.above(e);
        }
        if pending {
            self.note_pending(id);
        }
        if self.queues[id].busy {
            self.file_position(q, cx, id);
            self.activate_queue(q, cx, id);
        }
        if self.in_service.is_none() && self.in_driver == 0 {
            self.schedule_dispatch(q, cx);
        }
        self.put_queue(q, cx, id);
    }

    /// Binds a request to the queue of its task (`bfq_init_rq`).
    pub(super) fn bind(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        if self.of_rq.queue_if_any(rq).is_some() {
            return;
        }
        let (task, sync) = (q.rqs[rq].task, q.rqs[rq].is_sync());
        let group = q.rqs[rq].group;
        self.enter_context(q, cx, task, group);
        let id = match self.context_queue(task, sync) {
            Some(id) => self.split_if_due(q, cx, task, id),
            None => self.new_process_queue(q, cx, task, sync, false),
        };
        self.take_allocated(id);
        self.queues[id].refs += 1;
        self.contexts[task].requests += 1;
        self.of_rq.bind(rq, id);
        let refs = self.queues[id].refs;
        self.say(
            q,
            cx,
            id,
            format_args!("get_request {0}: bfqq {0}, {refs}", super::PTR),
        );
        if self.queues[id].target.is_none() && self.process_refs(id) == 1 {
            self.queues[id].owner = Some(task);
        }
        if self.queues[id].just_created && (self.burst.size > 0 || self.nr_busy() == 0) {
            self.note_burst(cx, id);
        }
    }

    /// Gives a process its first queue of a kind, or one instead of a queue
    /// that it shared (`bfq_get_queue`).
    pub(super) fn new_process_queue(
        &mut self,
        q: &mut Core,
        cx: &mut Cx<'_>,
        task: TaskId,
        sync: bool,
        after_split: bool,
    ) -> QueueId {
        if !sync {
            let id = self.async_queue(q, cx, task);
            self.queues[id].refs += 1;
            self.attach(q, cx, task, false, Some(id));
            return id;
        }
        let id = self.make_queue(q, cx, task, true);
        self.queues[id].refs += 1;
        let id = if after_split || !self.feat.stable_merge {
            id
        } else {
            self.merge_new(q, cx, task, id)
        };
        self.attach(q, cx, task, true, Some(id));
        if after_split {
            self.queues[id].split_time = jiffies(cx);
        }
        id
    }

    /// `bfq_init_bfqq`.
    fn make_queue(&mut self, q: &Core, cx: &mut Cx<'_>, task: TaskId, sync: bool) -> QueueId {
        let ioc = cx.tasks.get(task);
        let (pid, (class, level)) = (i64::from(ioc.pid), prio::of_task(ioc));
        let weight = prio::weight_of_level(level);
        let text = format_args!("bfq0A new_ioprio {level} new_weight {weight}");
        q.message(cx, text);
        let group = self.enter_group(cx, self.contexts[task].group);
        let lowered = if self.feat.new_limit_is_young {
            jiffies(cx)
        } else {
            LONG_AGO
        };
        let id = self.queues.insert(Queue::new(Birth {
            pid,
            sync,
            level,
            max_budget: 2 * self.max_budget_known() / 3,
            jiffy: jiffies(cx),
            now_ns: now_ns(cx),
            lowered,
        }));
        let ent = Ent::of_queue(id);
        self.ents.put(ent, Entity::new(group, weight, class));
        self.ents[ent].prio_changed = true;
        self.say(q, cx, id, format_args!("allocated"));
        id
    }

    /// The async queue of the task's group and priority, made at first use and
    /// kept (`bfq_async_queue_prio`).
    fn async_queue(&mut self, q: &Core, cx: &mut Cx<'_>, task: TaskId) -> QueueId {
        let group = self.enter_group(cx, self.contexts[task].group);
        let slot = prio::shared_slot(cx.tasks.get(task));
        if let Some(id) = self.groups[group].shared[slot] {
            return id;
        }
        let id = self.make_queue(q, cx, task, false);
        self.queues[id].refs += 1;
        self.groups[group].shared[slot] = Some(id);
        id
    }

    /// A process has another queue, or none. The one it had is no longer its
    /// own, and a merge that was scheduled with the new one is off
    /// (`bic_set_bfqq`).
    pub(super) fn attach(
        &mut self,
        q: &mut Core,
        cx: &mut Cx<'_>,
        task: TaskId,
        sync: bool,
        queue: Option<QueueId>,
    ) {
        let old = std::mem::replace(&mut self.contexts[task].queues[usize::from(sync)], queue);
        if let Some(old) = old
            && self.queues[old].owner == Some(task)
            && queue != Some(old)
        {
            self.queues[old].owner = None;
        }
        if queue.is_some() && self.context(task).stable_target == queue {
            self.unschedule_stable_merge(q, cx, task);
        }
    }

    pub(super) fn unschedule_stable_merge(&mut self, q: &mut Core, cx: &mut Cx<'_>, task: TaskId) {
        if let Some(target) = self.context_mut(task).stable_target.take() {
            self.queues[target].stable_refs -= 1;
            self.put_queue(q, cx, target);
        }
    }

    /// A request more for a queue and the groups above it.
    pub(super) fn take_allocated(&mut self, id: QueueId) {
        let mut at = Some(Ent::of_queue(id));
        while let Some(ent) = at {
            self.ents[ent].allocated += 1;
            at = self.above(ent);
        }
    }

    pub(super) fn put_allocated(&mut self, id: QueueId) {
        let mut at = Some(Ent::of_queue(id));
        while let Some(ent) = at {
            self.ents[ent].allocated -= 1;
            at = self.above(ent);
        }
    }

    /// A process does not use a queue any more (`bfq_release_process_ref`).
    pub(super) fn release_process_ref(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId) {
        let x = &self.queues[id];
        if x.busy && x.is_empty() && self.in_service != Some(id) {
            self.leave_busy(q, cx, id, false);
        }
        let group = self.ents[Ent::of_queue(id)].parent;
        if self.groups[group].last_created == Some(id) {
            self.groups[group].last_created = None;
        }
        self.put_queue(q, cx, id);
    }

    /// One holder less; the last one frees the queue. Whether it is gone
    /// (`bfq_put_queue`).
    pub(super) fn put_queue(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId) -> bool {
        let refs = self.queues[id].refs;
        self.say(q, cx, id, format_args!("put_queue: {} {refs}", super::PTR));
        assert!(self.queues[id].refs > 0, "a reference is dropped twice");
        self.queues[id].refs -= 1;
        if refs > 1 {
            return false;
        }
        self.free_from_burst(id);
        self.forget_wakers(id);
        self.unfile_position(id);
        if self.last_completed == Some(id) {
            self.last_completed = None;
        }
        self.queues.remove(id);
        true
    }

    /// A process ended (`bfq_exit_icq`).
    pub(super) fn exit(&mut self, q: &mut Core, cx: &mut Cx<'_>, task: TaskId) {
        if !self.contexts.get(task).is_some_and(|c| c.live) {
            return;
        }
        self.unschedule_stable_merge(q, cx, task);
        self.contexts[task].live = false;
        for sync in [true, false] {
            let Some(id) = self.context_queue(task, sync) else {
                continue;
            };
            self.attach(q, cx, task, sync, None);
            if self.in_service == Some(id) {
                self.close_slot(q, cx, id, Reason::BudgetTimeout);
                self.schedule_dispatch(q, cx);
            }
            let refs = self.queues[id].refs;
            self.say(q, cx, id, format_args!("exit_bfqq: {}, {refs}", super::PTR));
            self.put_cooperators(q, cx, id);
            self.release_process_ref(q, cx, id);
        }
    }
}
