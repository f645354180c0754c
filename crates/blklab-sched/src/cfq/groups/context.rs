// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which queue a task's requests go to: the record of a task on the device
//! (`struct cfq_io_context`), the shared async queues, priorities, exit.

use super::Cfq;
use super::group::{GroupId, Think};
use super::queue::{Queue, QueueId};
use crate::cfq::prio::{self, NORM, QueuePrio};
use crate::cfq::{ASYNC, IS_BOUND, SYNC};
use blklab_block::sq::{Core, MayQueue};
use blklab_block::{Cx, Effect, RqId};
use blklab_types::{Bio, BioFlags, IoPrio, Pid, PrioClass, TaskId};

/// What is known of a task.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Context {
    /// It has allocated a request.
    pub(super) exists: bool,
    /// Its task has not ended.
    pub(super) alive: bool,
    /// Its async and its sync queue.
    pub(super) queues: [Option<QueueId>; 2],
    pub(super) think: Think,
    /// Priority and group when they were last looked at.
    ioprio: IoPrio,
    group: u16,
}

impl Cfq {
    /// The context of a task that has allocated a request.
    fn context(&self, task: TaskId) -> Option<&Context> {
        self.contexts.get(task).filter(|c| c.exists)
    }

    /// Whether a task has a context and has not ended.
    pub(super) fn is_alive(&self, task: TaskId) -> bool {
        self.context(task).is_some_and(|c| c.alive)
    }

    pub(super) fn queue_of(&self, task: TaskId, sync: bool) -> Option<QueueId> {
        self.context(task)?.queues[usize::from(sync)]
    }

    /// A request was allocated: binds it to a queue (`cfq_set_request`).
    pub(super) fn bind(&mut self, q: &Core, cx: &mut Cx<'_>, rq: RqId) {
        let task = q.rqs[rq].task;
        let sync = q.rqs[rq].is_sync();
        self.enter_context(q, cx, task);
        let id = self.queue_for(q, cx, task, sync);
        self.queues[id].allocated += 1;
        self.queues[id].refs += 1;
        let group = self.queues[id].group;
        self.of_rq.bind(rq, id);
        self.of_rq[rq].group = group;
    }

    /// `cfq_get_io_context`, later `check_ioprio_changed`, `check_blkcg_changed`.
    fn enter_context(&mut self, q: &Core, cx: &mut Cx<'_>, task: TaskId) {
        let ioc = cx.tasks.get(task);
        let (ioprio, group) = (ioc.ioprio, ioc.group);
        let now = self.clock.now(cx);
        let context = self.contexts.entry(task);
        if !context.exists {
            *context = Context {
                exists: true,
                alive: true,
                ioprio,
                group,
                ..Context::default()
            };
            context.think.last_end = now;
            return;
        }
        context.alive = true;
        let (new_prio, new_group) = (context.ioprio != ioprio, context.group != group);
        context.ioprio = ioprio;
        context.group = group;
        if new_prio {
            self.changed_ioprio(q, cx, task);
        }
        if new_group {
            self.change_group(q, cx, task);
        }
    }

    /// The task's priority was set: another async queue, and the sync queue
    /// takes the new one when it is next looked at (`changed_ioprio`).
    fn changed_ioprio(&mut self, q: &Core, cx: &mut Cx<'_>, task: TaskId) {
        if let Some(old) = self.contexts[task].queues[ASYNC] {
            let new = self.get_queue(q, cx, task, false);
            self.contexts[task].queues[ASYNC] = Some(new);
            self.put_queue(q, cx, old);
        }
        if let Some(id) = self.contexts[task].queues[SYNC] {
            self.queues[id].prio_changed = true;
        }
    }

    /// The task moved to another group: its queues stay behind (`changed_cgroup`).
    fn change_group(&mut self, q: &Core, cx: &mut Cx<'_>, task: TaskId) {
        for side in [ASYNC, SYNC] {
            if side == ASYNC && !self.feat.async_per_group {
                continue;
            }
            if let Some(old) = self.contexts[task].queues[side].take() {
                self.put_queue(q, cx, old);
            }
        }
    }

    /// The queue for a new request, after the merges and splits that are due.
    fn queue_for(&mut self, q: &Core, cx: &mut Cx<'_>, task: TaskId, sync: bool) -> QueueId {
        let side = usize::from(sync);
        if let Some(id) = self.contexts[task].queues[side] {
            let kept = if self.queues[id].coop && self.queues[id].split {
                self.split(q, cx, task, id)
            } else {
                Some(id)
            };
            if let Some(id) = kept {
                return match self.queues[id].new_queue {
                    Some(target) => self.follow(q, cx, task, id, target),
                    None => id,
                };
            }
        }
        let id = self.get_queue(q, cx, task, sync);
        self.contexts[task].queues[side] = Some(id);
        id
    }

    /// A queue for the requests of a task, held once more (`cfq_get_queue`): a new one,
    /// or the async one of its priority.
    fn get_queue(&mut self, q: &Core, cx: &mut Cx<'_>, task: TaskId, sync: bool) -> QueueId {
        let id = if sync {
            let group = self.group_of(cx, task);
            self.new_queue(q, cx, task, true, group)
        } else {
            self.async_queue(q, cx, task)
        };
        self.queues[id].refs += 1;
        id
    }

    fn group_of(&mut self, cx: &Cx<'_>, task: TaskId) -> GroupId {
        let group = GroupId(cx.tasks.get(task).group);
        self.groups.learn(cx.tasks, group)
    }

    /// The async queue of the task's priority, made at first use and kept
    /// (`cfq_async_queue_prio`).
    fn async_queue(&mut self, q: &Core, cx: &mut Cx<'_>, task: TaskId) -> QueueId {
        let group = if self.feat.async_per_group {
            self.group_of(cx, task)
        } else {
            GroupId::ROOT
        };
        let ioc = cx.tasks.get(task);
        let prio = match ioc.ioprio.class {
            PrioClass::None if !self.feat.async_by_nice => IoPrio {
                class: PrioClass::BestEffort,
                level: NORM,
            },
            _ => prio::of_task(ioc, true),
        };
        let slot = prio::async_slot(prio);
        if let Some(id) = self.groups[group].async_queues[slot] {
            return id;
        }
        let id = self.new_queue(q, cx, task, false, group);
        self.queues[id].refs += 1;
        self.groups[group].async_queues[slot] = Some(id);
        id
    }

    /// `cfq_find_alloc_queue`.
    fn new_queue(
        &mut self,
        q: &Core,
        cx: &mut Cx<'_>,
        task: TaskId,
        sync: bool,
        group: GroupId,
    ) -> QueueId {
        let pid = cx.tasks.get(task).pid;
        let id = self.queues.insert(Queue::new(pid, sync, group));
        self.refresh_prio(cx, id, task);
        self.say(q, cx, id, format_args!("alloced"));
        id
    }

    /// Takes the priority of `task` if the queue's is out of date
    /// (`cfq_init_prio_data`).
    pub(super) fn refresh_prio(&mut self, cx: &Cx<'_>, id: QueueId, task: TaskId) {
        let queue = &mut self.queues[id];
        if !std::mem::take(&mut queue.prio_changed) {
            return;
        }
        let prio = prio::of_task(cx.tasks.get(task), true);
        queue.prio = QueuePrio::new(IoPrio {
            level: prio.level.min(7),
            ..prio
        });
        if queue.prio.is_idle_class() {
            queue.idle_window = false;
        }
    }

    /// Whether the task may allocate a request; adjusts its queue's priority
    /// (`cfq_may_queue`).
    pub(super) fn may_allocate(&mut self, cx: &Cx<'_>, bio: &Bio) -> MayQueue {
        let task = bio.task;
        let Some(id) = self.queue_of(task, bio.is_sync()) else {
            return MayQueue::May;
        };
        self.refresh_prio(cx, id, task);
        let boosted = (self.feat.boosts_lock_holders && cx.tasks.get(task).fs_exclusive)
            || (self.feat.boosts_prio_requests && bio.flags.has(BioFlags::PRIO));
        let queue = &mut self.queues[id];
        queue.prio.boost(boosted);
        queue.turn.may_queue()
    }

    /// A task ended (`cfq_exit_io_context`, later `cfq_exit_icq`).
    pub(super) fn exit_context(&mut self, q: &mut Core, cx: &mut Cx<'_>, task: TaskId) {
        let Some(context) = self.contexts.get_mut(task).filter(|c| c.exists) else {
            return;
        };
        context.alive = false;
        for side in [ASYNC, SYNC] {
            if let Some(id) = self.contexts[task].queues[side].take() {
                self.leave(q, cx, id);
            }
        }
    }

    /// A process of a queue is gone (`cfq_exit_cfqq`).
    fn leave(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId) {
        if self.active == Some(id) {
            self.expire(q, cx, id, false);
            self.schedule_dispatch(q, cx);
        }
        self.drop_redirects(q, cx, id);
        self.put_queue(q, cx, id);
    }

    /// Drops a reference (`cfq_put_queue`).
    pub(super) fn put_queue(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId) {
        assert!(self.queues[id].refs > 0, "a reference is dropped twice");
        self.queues[id].refs -= 1;
        if self.queues[id].refs > 0 {
            return;
        }
        self.say(q, cx, id, format_args!("put_queue"));
        if self.active == Some(id) {
            self.expire(q, cx, id, false);
            self.schedule_dispatch(q, cx);
        }
        self.queues.remove(id);
    }

    /// A request is freed (`cfq_put_request`).
    pub(super) fn unbind(&mut self, q: &Core, cx: &mut Cx<'_>, rq: RqId) {
        let (id, _) = self.of_rq.unbind(rq).expect(IS_BOUND);
        assert!(self.queues[id].allocated > 0, "a request is freed twice");
        self.queues[id].allocated -= 1;
        self.put_queue(q, cx, id);
    }

    /// kblockd is to run the queue, if anybody waits (`cfq_schedule_dispatch`).
    pub(super) fn schedule_dispatch(&self, q: &Core, cx: &mut Cx<'_>) {
        if self.busy_queues > 0 {
            q.message(cx, format_args!("cfq schedule dispatch"));
            cx.ask(Effect::RunWork);
        }
    }

    /// A message about a queue, if anybody reads it.
    #[inline]
    pub(super) fn say(
        &self,
        q: &Core,
        cx: &mut Cx<'_>,
        id: QueueId,
        text: std::fmt::Arguments<'_>,
    ) {
        if cx.wants_messages() {
            self.write_message(q, cx, id, text);
        }
    }

    #[cold]
    fn write_message(&self, q: &Core, cx: &mut Cx<'_>, id: QueueId, text: std::fmt::Arguments<'_>) {
        let queue = &self.queues[id];
        let pid: Pid = queue.pid;
        if self.feat.long_messages {
            let sync = if queue.sync { 'S' } else { 'A' };
            let noidle = if queue.sync && !queue.idle_window {
                'N'
            } else {
                ' '
            };
            q.message(cx, format_args!("cfq{pid}{sync}{noidle} {text}"));
        } else {
            q.message(cx, format_args!("cfq{pid} {text}"));
        }
    }
}
