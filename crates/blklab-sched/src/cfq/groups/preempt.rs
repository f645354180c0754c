// SPDX-License-Identifier: MIT OR Apache-2.0
//! Preemption: a new request of another queue ends the active one's turn.

use super::Cfq;
use super::group::Kind;
use super::queue::QueueId;
use blklab_block::sq::Core;
use blklab_block::{Cx, RqId};
use blklab_types::BioFlags;

impl Cfq {
    /// Whether a new request `rq` of the queue `new` is to be served before
    /// more of the active queue (`cfq_should_preempt`).
    pub(super) fn should_preempt(&self, q: &Core, cx: &mut Cx<'_>, new: QueueId, rq: RqId) -> bool {
        let Some(id) = self.active else {
            return false;
        };
        let (active, other) = (&self.queues[id], &self.queues[new]);
        if other.prio.is_idle_class() {
            return false;
        }
        if active.prio.is_idle_class() {
            return true;
        }
        if active.prio.is_rt() && !other.prio.is_rt() {
            return false;
        }
        let must = self.feat.must_dispatch_passes && active.turn.must_dispatch;
        if q.rqs[rq].is_sync() && !active.sync && !must {
            return true;
        }
        let related = if self.feat.parent_preempts {
            self.groups.is_descendant(active.group, other.group)
        } else {
            active.group == other.group
        };
        if !related {
            return false;
        }
        if self.slice_used(id, self.clock.now(cx)) {
            return true;
        }
        let rt = other.prio.is_rt() && !active.prio.is_rt();
        if self.feat.rt_preempts_first && rt {
            return true;
        }
        if self.seeks_beside(id, new) || self.has_boost_alone(q, id, rq) || rt {
            return true;
        }
        if self.feat.preempts_unidled && active.is_empty() && !self.should_idle(q, cx, id) {
            return true;
        }
        self.active_task.is_some()
            && active.turn.wait_request
            && self.is_close(id, q.rqs[rq].sector)
    }

    /// The active queue is idled for only as one of those without idling, and
    /// the new one is another of them.
    fn seeks_beside(&self, id: QueueId, new: QueueId) -> bool {
        let other = &self.queues[new];
        let count = other.filed.map_or(0, |place| self.tree(place).queues.len());
        self.serving.kind == Kind::SyncNoIdle
            && other.kind() == Kind::SyncNoIdle
            && self.queues[id].is_empty()
            && (self.feat.rt_preempts_first || count == 2)
    }

    /// The request is to be boosted and the active queue has none such.
    fn has_boost_alone(&self, q: &Core, id: QueueId, rq: RqId) -> bool {
        q.rqs[rq].flags.has(self.boost_flag()) && self.queues[id].prio_pending == 0
    }

    /// The flag of requests that are to go first.
    pub(super) fn boost_flag(&self) -> BioFlags {
        if self.feat.prio_flag {
            BioFlags::PRIO
        } else {
            BioFlags::META
        }
    }

    /// Ends the active queue's turn and puts `new` first in its tree
    /// (`cfq_preempt_queue`).
    pub(super) fn preempt_queue(&mut self, q: &Core, cx: &mut Cx<'_>, new: QueueId) {
        self.say(q, cx, new, format_args!("preempt"));
        let old_kind = self.active.map(|id| self.queues[id].kind());
        self.expire_active(q, cx, true);
        if self.feat.preemption_ends_workload && old_kind != Some(self.queues[new].kind()) {
            let group = self.queues[new].group;
            self.groups[group].saved = None;
        }
        self.service_tree_add(cx, new, true);
        let queue = &mut self.queues[new];
        queue.slice_end = 0;
        queue.slice_new = true;
    }
}
