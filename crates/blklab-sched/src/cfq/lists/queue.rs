// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queues of requests, how they are found, and how long they live.
//!
//! A queue is found by its key, the process or "async", and the priority it
//! was made with. Processes and requests hold references; the last one takes
//! the queue along. Source: block/cfq-iosched.c of 2.6.16 to 2.6.20.

use super::Cfq;
use super::roundrobin::Home;
use crate::cfq::prio::{self, QueuePrio};
use crate::cfq::turn::Turn;
use crate::cfq::waiting::Waiting;
use blklab_block::Cx;
use blklab_types::{IoPrio, Pid, PrioClass, TaskId};

pub(super) use crate::queue_id::QueueId;

/// Requests of one process, or async requests of several (`struct cfq_queue`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queue {
    /// The process; none if the queue is async.
    pub(super) owner: Option<TaskId>,
    /// Processes and requests that hold it.
    refs: u32,
    /// Requests that wait.
    pub(super) waiting: Waiting,
    pub(super) meta_pending: u32,
    /// Requests allocated: reads, writes.
    pub(super) allocated: [u32; 2],
    /// Requests on the dispatch list or at the device: async, sync.
    pub(super) on_dispatch: [u32; 2],
    pub(super) slice_end: u64,
    pub(super) slice_resid: u64,
    /// When it was served last; 0: never.
    pub(super) service_last: u64,
    pub(super) prio: QueuePrio,
    /// The list it is on, while it has requests that wait.
    pub(super) filed: Option<Home>,
    pub(super) turn: Turn,
    pub(super) idle_window: bool,
    pub(super) prio_changed: bool,
    /// No slice of it has ended yet.
    pub(super) is_new: bool,
    /// Order of creation, and neighbours among the async queues made with the
    /// same priority, newest first.
    made: u64,
    newer: Option<QueueId>,
    older: Option<QueueId>,
}

impl Queue {
    /// Made for a process, not for async requests.
    pub(super) fn is_class_sync(&self) -> bool {
        self.owner.is_some()
    }

    /// The same, or with sync requests in flight.
    pub(super) fn is_sync(&self) -> bool {
        self.is_class_sync() || self.on_dispatch[1] > 0
    }

    pub(super) fn nr_on_dispatch(&self) -> u32 {
        self.on_dispatch[0] + self.on_dispatch[1]
    }
}

/// Newest async queue by class and level of its original priority.
pub(super) type AsyncQueues = [[Option<QueueId>; 8]; 3];

fn slot_of(p: IoPrio) -> (usize, usize) {
    let class = match p.class {
        PrioClass::RealTime => 0,
        PrioClass::None | PrioClass::BestEffort => 1,
        PrioClass::Idle => 2,
    };
    (class, usize::from(p.level.min(7)))
}

impl Cfq {
    /// Pid of a queue's process; 0 of an async one.
    pub(super) fn pid_of(&self, cx: &Cx<'_>, id: QueueId) -> Pid {
        self.queues[id].owner.map_or(0, |t| cx.tasks.get(t).pid)
    }

    /// The queue that the lookup finds for requests of a task
    /// (`cfq_find_cfq_hash`).
    pub(super) fn find_queue(&self, cx: &Cx<'_>, task: TaskId, own: bool) -> Option<QueueId> {
        let wanted = cx.tasks.get(task).ioprio;
        let unset = wanted.class == PrioClass::None;
        if unset && !self.feat.unset_prio_finds_any {
            return None;
        }
        if own {
            let id = self.own_queue(task)?;
            return (unset || self.queues[id].prio.org == wanted).then_some(id);
        }
        if unset {
            let newest = self.async_queues.iter().flatten().flatten();
            return newest.copied().max_by_key(|&id| self.queues[id].made);
        }
        let (class, level) = slot_of(wanted);
        // Not every level of the idle class exists.
        self.async_queues[class][level].filter(|&id| self.queues[id].prio.org == wanted)
    }

    /// The queue that was made for a task, whatever its priority.
    pub(super) fn own_queue(&self, task: TaskId) -> Option<QueueId> {
        let context = self.contexts.get(task)?;
        let made_for = |id: &QueueId| self.queues[*id].owner == Some(task);
        context.queues.into_iter().flatten().find(made_for)
    }

    /// The queue of the lookup, or a new one, held once more (`cfq_get_queue`).
    pub(super) fn get_queue(&mut self, cx: &mut Cx<'_>, task: TaskId, own: bool) -> QueueId {
        let id = match self.find_queue(cx, task, own) {
            Some(id) => id,
            None => self.new_queue(cx, task, own),
        };
        self.queues[id].refs += 1;
        id
    }

    fn new_queue(&mut self, cx: &mut Cx<'_>, task: TaskId, own: bool) -> QueueId {
        self.nr_made += 1;
        let deep = self.feat.depth_rule == super::features::DepthRule::AllQueues && self.hw_tag;
        let queue = Queue {
            owner: own.then_some(task),
            // Enough to preempt with.
            slice_resid: 2 * self.set.slice_idle_jiffies,
            idle_window: !deep,
            is_new: true,
            made: self.nr_made,
            ..Queue::default()
        };
        let id = self.queues.insert(queue);
        self.set_prio(id, prio::of_task(cx.tasks.get(task), false));
        if !own {
            self.link_async(id);
        }
        id
    }

    /// One more holder.
    pub(super) fn hold_queue(&mut self, id: QueueId) {
        self.queues[id].refs += 1;
    }

    /// One holder less; the last one frees the queue (`cfq_put_queue`).
    pub(super) fn put_queue(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        assert!(self.queues[id].refs > 0, "a reference is dropped twice");
        self.queues[id].refs -= 1;
        if self.queues[id].refs > 0 {
            return;
        }
        if self.active == Some(id) {
            self.expire(cx, id, false);
        }
        if !self.queues[id].is_class_sync() {
            self.unlink_async(id);
        }
        self.queues.remove(id);
    }

    /// Gives a queue an original priority, and takes a boost away.
    pub(super) fn set_prio(&mut self, id: QueueId, p: IoPrio) {
        let p = IoPrio {
            level: p.level.min(7),
            ..p
        };
        let queue = &mut self.queues[id];
        queue.prio = QueuePrio::new(p);
        if p.class == PrioClass::Idle {
            queue.idle_window = false;
        }
    }

    /// The same for a queue in use, which may be async.
    pub(super) fn change_prio(&mut self, id: QueueId, p: IoPrio) {
        let shared = !self.queues[id].is_class_sync();
        if shared {
            self.unlink_async(id);
        }
        self.set_prio(id, p);
        if shared {
            self.link_async(id);
        }
    }

    /// Puts an async queue among those of its priority, by age.
    fn link_async(&mut self, id: QueueId) {
        let (class, level) = slot_of(self.queues[id].prio.org);
        let made = self.queues[id].made;
        let (mut newer, mut older) = (None, self.async_queues[class][level]);
        while let Some(o) = older
            && self.queues[o].made > made
        {
            (newer, older) = (Some(o), self.queues[o].older);
        }
        match newer {
            Some(n) => self.queues[n].older = Some(id),
            None => self.async_queues[class][level] = Some(id),
        }
        if let Some(o) = older {
            self.queues[o].newer = Some(id);
        }
        let queue = &mut self.queues[id];
        (queue.newer, queue.older) = (newer, older);
    }

    fn unlink_async(&mut self, id: QueueId) {
        let (class, level) = slot_of(self.queues[id].prio.org);
        let (newer, older) = (self.queues[id].newer, self.queues[id].older);
        match newer {
            Some(n) => self.queues[n].older = older,
            None => self.async_queues[class][level] = older,
        }
        if let Some(o) = older {
            self.queues[o].newer = newer;
        }
    }
}
