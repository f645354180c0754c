// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known about a process: its queues, its priority when last looked
//! at, and its habits. Source: block/cfq-iosched.c of 2.6.16 to 2.6.20.

use super::Cfq;
use super::features::{DepthRule, SyncFlag};
use super::queue::QueueId;
use crate::cfq::prio;
use crate::history::{SeekDistance, ThinkTime};
use blklab_block::Cx;
use blklab_block::sq::MayQueue;
use blklab_types::{Bio, BioFlags, IoPrio, Op, TaskId};

/// Mean distance in sectors from which a process is seeky.
const SEEKY_SECTORS: u64 = 128 * 1024;

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
    last_request_pos: u64,
    think: ThinkTime,
    seek: SeekDistance,
}

impl Context {
    pub(super) fn is_seeky(&self) -> bool {
        self.seek.mean > SEEKY_SECTORS
    }

    pub(super) fn is_known_seeky(&self) -> bool {
        self.seek.is_valid() && self.is_seeky()
    }
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

    /// Think time, seek distance and idle window at a sync request
    /// (`cfq_update_io_thinktime`, `cfq_update_io_seektime`, `cfq_update_idle_window`).
    pub(super) fn learn(&mut self, cx: &Cx<'_>, id: QueueId, task: TaskId, sector: u64, end: u64) {
        let context = &mut self.contexts[task];
        let elapsed = self.clock.now(cx).wrapping_sub(context.last_end_request);
        context
            .think
            .add(elapsed.min(2 * self.set.slice_idle_jiffies));
        if self.feat.seek_stats {
            context.seek.add(sector.abs_diff(context.last_request_pos));
        }
        context.last_request_pos = end;
        let too_deep = match self.feat.depth_rule {
            DepthRule::None => false,
            DepthRule::AllQueues => self.hw_tag,
            DepthRule::SeekyProcesses => self.hw_tag && context.is_seeky(),
        };
        let idle = self.set.slice_idle_jiffies;
        let window = if !context.alive || idle == 0 || too_deep {
            Some(false)
        } else {
            context
                .think
                .is_valid()
                .then_some(context.think.mean <= idle)
        };
        if let Some(window) = window {
            self.queues[id].idle_window = window;
        }
    }
}
