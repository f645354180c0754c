// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known about a process: its queues, its priority when last looked
//! at, and its habits. Source: block/cfq-iosched.c of 2.6.16 to 2.6.20.

use super::features::SyncFlag;
use super::queue::QueueId;
use super::{Cfq, OfRequest};
use crate::cfq::{IS_BOUND, prio};
use crate::history::{SeekDistance, ThinkTime};
use blklab_block::sq::{Core, MayQueue};
use blklab_block::{Cx, RqId};
use blklab_types::{Bio, BioFlags, IoPrio, Op, TaskId};

/// Requests in the pool for each that a queue may hold before its freed ones
/// wake nobody.
const POOL_SHARES: u32 = 4;

/// One process on this device (`struct cfq_io_context`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Context {
    /// The process lives and has been seen here.
    pub(super) alive: bool,
    /// Its queues: async, sync. Where there is one for both, it is the first.
    pub(super) queues: [Option<QueueId>; 2],
    /// Its priority when last looked at.
    ioprio: IoPrio,
    pub(super) last_end_request: u64,
    /// End of its last sync request in sectors.
    pub(super) last_request_pos: u64,
    pub(super) think: ThinkTime,
    pub(super) seek: SeekDistance,
}

impl Cfq {
    /// Whether a bio or request goes to the process's own queue.
    pub(super) fn goes_to_own(&self, op: Op, flags: BioFlags) -> bool {
        op == Op::Read || (self.feat.sync_flag == SyncFlag::Sync && flags.has(BioFlags::SYNC))
    }

    /// Whether a bio or request counts as sync.
    pub(super) fn counts_as_sync(&self, op: Op, flags: BioFlags) -> bool {
        op == Op::Read || (self.feat.sync_flag != SyncFlag::Ignored && flags.has(BioFlags::SYNC))
    }

    /// The context of a task, made if it is not there (`cfq_get_io_context`).
    pub(super) fn enter_context(&mut self, cx: &Cx<'_>, task: TaskId) -> &mut Context {
        let context = self.contexts.entry(task);
        if !context.alive {
            *context = Context {
                alive: true,
                ioprio: cx.tasks.get(task).ioprio,
                last_end_request: self.clock.now(cx),
                ..Context::default()
            };
        }
        context
    }

    /// Whether a task that did I/O is still there.
    pub(super) fn is_alive(&self, task: TaskId) -> bool {
        self.contexts.get(task).is_some_and(|c| c.alive)
    }

    /// Looks whether `ioprio_set(2)` was called: the async queue is looked up
    /// anew, the sync queue follows now or later (`changed_ioprio`).
    pub(super) fn changed_ioprio(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        let Some(context) = self.contexts.get_mut(task).filter(|c| c.alive) else {
            return;
        };
        let wanted = cx.tasks.get(task).ioprio;
        if context.ioprio == wanted {
            return;
        }
        context.ioprio = wanted;
        let [first, second] = context.queues;
        let sync_queue = if self.feat.one_queue_per_context {
            first
        } else {
            if let Some(old) = first {
                let new = self.get_queue(cx, task, false);
                self.contexts[task].queues[0] = Some(new);
                self.put_queue(cx, old);
            }
            second
        };
        if let Some(id) = sync_queue {
            self.queues[id].prio_changed = true;
            if self.feat.applies_prio_at_once {
                self.refresh_prio(cx, id, task);
            }
        }
    }

    /// Binds a new request to the queue of its task (`cfq_set_request`).
    pub(super) fn bind(&mut self, q: &Core, cx: &mut Cx<'_>, rq: RqId, bio: &Bio) {
        self.enter_context(cx, bio.task);
        self.changed_ioprio(cx, bio.task);
        let own = self.goes_to_own(bio.op, bio.flags);
        let id = self.queue_for(cx, bio.task, own);
        self.hold_queue(id);
        self.queues[id].allocated[q.rqs[rq].data_dir()] += 1;
        let sync = self.counts_as_sync(bio.op, bio.flags);
        self.of_rq.bind(rq, id);
        self.of_rq[rq] = OfRequest {
            task: bio.task,
            sync,
        };
    }

    /// A request is about to be freed (`cfq_put_request`).
    pub(super) fn unbind(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let (id, _) = self.of_rq.unbind(rq).expect(IS_BOUND);
        let allocated = &mut self.queues[id].allocated[q.rqs[rq].data_dir()];
        assert!(*allocated > 0, "a request is freed twice");
        *allocated -= 1;
        if self.feat.tunes_pool {
            let most = q.limits.nr_requests / POOL_SHARES;
            q.wake_requested = self.queues[id].allocated.map(|n| n <= most);
        }
        self.put_queue(cx, id);
    }

    /// The queue of a request that a task allocates.
    fn queue_for(&mut self, cx: &mut Cx<'_>, task: TaskId, own: bool) -> QueueId {
        let slot = usize::from(own && !self.feat.one_queue_per_context);
        if let Some(id) = self.enter_context(cx, task).queues[slot] {
            return id;
        }
        let id = self.get_queue(cx, task, own);
        self.contexts[task].queues[slot] = Some(id);
        id
    }

    /// Gives a queue the priority of the task, if it is due to be changed
    /// (`cfq_init_prio_data`).
    pub(super) fn refresh_prio(&mut self, cx: &Cx<'_>, id: QueueId, task: TaskId) {
        if std::mem::take(&mut self.queues[id].prio_changed) {
            self.change_prio(id, prio::of_task(cx.tasks.get(task), false));
            self.resort(id, false);
        }
    }

    /// Whether a task may allocate a request: once per slice even from a full
    /// pool, if its queue is waited for (`cfq_may_queue`).
    pub(super) fn may_allocate(&mut self, cx: &mut Cx<'_>, bio: &Bio) -> MayQueue {
        if self.feat.notices_prio_early {
            self.changed_ioprio(cx, bio.task);
        }
        let own = self.goes_to_own(bio.op, bio.flags);
        let Some(id) = self.find_queue(cx, bio.task, own) else {
            return MayQueue::May;
        };
        self.refresh_prio(cx, id, bio.task);
        let prio = &mut self.queues[id].prio;
        if prio.boost(cx.tasks.get(bio.task).fs_exclusive) {
            self.resort(id, false);
        }
        self.queues[id].turn.may_queue()
    }
}
