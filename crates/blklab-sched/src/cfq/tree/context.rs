// SPDX-License-Identifier: MIT OR Apache-2.0
//! What CFQ keeps per process and device: its queues and its habits
//! (`cfq_io_context`), and how queues come to a process and go.

use super::Cfq;
use super::queue::{Queue, QueueId};
use crate::cfq::IS_BOUND;
use crate::cfq::prio::{self, QueuePrio};
use crate::history::{SeekDistance, ThinkTime};
use blklab_block::sq::{Core, MayQueue};
use blklab_block::{Cx, IoContext, RqId};
use blklab_types::{Bio, BioFlags, IoPrio, PrioClass, TaskId};

/// One process on one device.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Context {
    /// The process has made a request here and has not ended.
    pub(super) alive: bool,
    /// Priority when it last made a request.
    ioprio: IoPrio,
    /// Its async and its sync queue.
    pub(super) queues: [Option<QueueId>; 2],
    /// Jiffy of its last sync completion, at first of its first request.
    pub(super) last_end_request: u64,
    /// End of its last request.
    pub(super) last_request_pos: u64,
    pub(super) think: ThinkTime,
    pub(super) seek: SeekDistance,
}

/// Place of the async queue for a process; an unset class counts as level 4.
fn async_slot(ioc: &IoContext) -> usize {
    prio::async_slot(match ioc.ioprio.class {
        PrioClass::None => IoPrio {
            class: PrioClass::BestEffort,
            level: prio::NORM,
        },
        _ => ioc.ioprio,
    })
}

impl Cfq {
    /// What is known of a task, if it has made requests.
    pub(super) fn context(&self, task: TaskId) -> Option<&Context> {
        self.contexts.get(task).filter(|c| c.alive)
    }

    /// The queue in which a bio of the task would go, if there is one.
    pub(super) fn queue_of(&self, task: TaskId, sync: bool) -> Option<QueueId> {
        self.context(task)?.queues[usize::from(sync)]
    }

    /// Makes sure that the task has a context, and notices a new priority
    /// (`cfq_get_io_context`).
    fn enter_context(&mut self, q: &mut Core, cx: &mut Cx<'_>, task: TaskId) {
        let ioprio = cx.tasks.get(task).ioprio;
        let c = self.contexts.entry(task);
        if !c.alive {
            *c = Context {
                alive: true,
                ioprio,
                last_end_request: self.clock.now(cx),
                ..Context::default()
            };
        } else if c.ioprio != ioprio {
            c.ioprio = ioprio;
            self.changed_ioprio(q, cx, task);
        }
    }

    /// A new priority: the shared queue of that priority, and the sync queue
    /// will look its priority up. Where nobody has made that shared queue yet
    /// the kernel finds the process's old one and keeps it in its place
    /// (`cfq_find_alloc_queue`) (`changed_ioprio`).
    fn changed_ioprio(&mut self, q: &mut Core, cx: &mut Cx<'_>, task: TaskId) {
        let [old_async, sync] = self.contexts[task].queues;
        if let Some(old) = old_async {
            let slot = async_slot(cx.tasks.get(task));
            let new = self.async_queues[slot].unwrap_or(old);
            self.keep_async(slot, new);
            self.queues[new].refs += 1;
            self.contexts[task].queues[0] = Some(new);
            self.put_queue(q, cx, old);
        }
        if let Some(sync) = sync {
            self.queues[sync].prio_changed = true;
        }
    }

    /// Binds a new request to the queue of its task (`cfq_set_request`).
    pub(super) fn bind(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let (task, sync) = (q.rqs[rq].task, q.rqs[rq].is_sync());
        self.enter_context(q, cx, task);
        let id = self.queue_for(q, cx, task, sync);
        self.queues[id].refs += 1;
        self.of_rq.bind(rq, id);
    }

    /// The queue of a request that a task allocates.
    fn queue_for(&mut self, q: &Core, cx: &mut Cx<'_>, task: TaskId, sync: bool) -> QueueId {
        let side = usize::from(sync);
        if let Some(id) = self.contexts[task].queues[side] {
            return id;
        }
        let id = self.get_queue(q, cx, task, sync);
        self.contexts[task].queues[side] = Some(id);
        id
    }

    /// A queue for the requests of a task, held once more (`cfq_get_queue`): a new one,
    /// or the async one of its priority.
    fn get_queue(&mut self, q: &Core, cx: &mut Cx<'_>, task: TaskId, sync: bool) -> QueueId {
        let id = if sync {
            self.new_queue(q, cx, task, true)
        } else {
            self.async_queue(q, cx, task)
        };
        self.queues[id].refs += 1;
        id
    }

    /// `cfq_find_alloc_queue`.
    fn new_queue(&mut self, q: &Core, cx: &mut Cx<'_>, task: TaskId, sync: bool) -> QueueId {
        let ioc = cx.tasks.get(task);
        let (pid, prio) = (ioc.pid, prio::of_task(ioc, self.feat.policy_counts));
        let id = self.queues.insert(Queue::new(pid, sync, prio));
        q.message(cx, format_args!("cfq{pid} alloced"));
        id
    }

    /// The async queue of the task's priority, made at first use and kept
    /// (`cfq_async_queue_prio`).
    fn async_queue(&mut self, q: &Core, cx: &mut Cx<'_>, task: TaskId) -> QueueId {
        let slot = async_slot(cx.tasks.get(task));
        let id = match self.async_queues[slot] {
            Some(id) => id,
            None => self.new_queue(q, cx, task, false),
        };
        self.keep_async(slot, id);
        id
    }

    fn keep_async(&mut self, slot: usize, id: QueueId) {
        if self.async_queues[slot].replace(id).is_none() {
            self.queues[id].refs += 1;
        }
    }

    /// One holder less; the last one frees the queue (`cfq_put_queue`).
    pub(super) fn put_queue(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId) {
        let queue = &mut self.queues[id];
        assert!(queue.refs > 0, "a reference is dropped twice");
        queue.refs -= 1;
        if queue.refs > 0 {
            return;
        }
        q.message(cx, format_args!("cfq{} put_queue", queue.pid));
        if self.active == Some(id) {
            self.expire_active(q, cx, false);
            self.schedule_dispatch(q, cx);
        }
        self.queues.remove(id);
    }

    /// A request is about to be freed (`cfq_put_request`).
    pub(super) fn unbind(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let (id, _) = self.of_rq.unbind(rq).expect(IS_BOUND);
        self.put_queue(q, cx, id);
    }

    /// A process ended: it lets go of its queues, the async one first
    /// (`cfq_exit_io_context`).
    pub(super) fn exit_context(&mut self, q: &mut Core, cx: &mut Cx<'_>, task: TaskId) {
        let Some(c) = self.contexts.get_mut(task).filter(|c| c.alive) else {
            return;
        };
        c.alive = false;
        for id in std::mem::take(&mut c.queues).into_iter().flatten() {
            if self.active == Some(id) {
                self.expire_active(q, cx, false);
                self.schedule_dispatch(q, cx);
            }
            self.put_queue(q, cx, id);
        }
    }

    /// Looks the priority up again after a change (`cfq_init_prio_data`).
    pub(super) fn refresh_prio(&mut self, cx: &Cx<'_>, id: QueueId, task: TaskId) {
        let queue = &mut self.queues[id];
        if !std::mem::take(&mut queue.prio_changed) {
            return;
        }
        queue.prio = QueuePrio::new(prio::of_task(cx.tasks.get(task), self.feat.policy_counts));
        if queue.prio.is_idle_class() {
            queue.idle_window = false;
        }
    }

    /// Whether a task may allocate: beyond the limit once per slice, while
    /// CFQ idles for its queue (`cfq_may_queue`).
    pub(super) fn may_allocate(&mut self, cx: &Cx<'_>, bio: &Bio) -> MayQueue {
        let sync = if self.feat.reads_allocate_as_sync {
            bio.is_sync()
        } else {
            bio.flags.has(BioFlags::SYNC)
        };
        let Some(id) = self.queue_of(bio.task, sync) else {
            return MayQueue::May;
        };
        self.refresh_prio(cx, id, bio.task);
        let queue = &mut self.queues[id];
        queue.prio.boost(cx.tasks.get(bio.task).fs_exclusive);
        queue.turn.may_queue()
    }
}
