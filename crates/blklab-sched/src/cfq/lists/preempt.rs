// SPDX-License-Identifier: MIT OR Apache-2.0
//! Preemption: a sync request takes the disk away from another queue.
//! Source: block/cfq-iosched.c of 2.6.16 to 2.6.20.

use super::Cfq;
use super::features::Preemption;
use super::queue::QueueId;
use blklab_block::sq::Core;
use blklab_block::{Cx, RqId};
use blklab_types::BioFlags;

impl Cfq {
    /// Whether a sync request of a queue that is not active takes the disk
    /// away from the active one. As only the active queue is ever waited for,
    /// in effect only the idle class loses it (`cfq_should_preempt`).
    pub(super) fn should_preempt(&self, q: &Core, new: QueueId, rq: RqId) -> bool {
        let new = &self.queues[new];
        if new.prio.is_idle_class() {
            return false;
        }
        let Some(active) = self.active.map(|a| &self.queues[a]) else {
            return self.feat.preemption == Preemption::ExpiresItself;
        };
        if active.prio.is_idle_class() {
            return true;
        }
        if !new.turn.wait_request || new.slice_resid < self.set.slice_idle_jiffies {
            return false;
        }
        let meta =
            self.feat.metadata && q.rqs[rq].flags.has(BioFlags::META) && active.meta_pending == 0;
        !active.is_sync() || meta
    }

    /// Ends the active slice, and starts one of a queue or puts it in front
    /// (`cfq_preempt_queue`).
    pub(super) fn preempt_queue(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        match self.feat.preemption {
            Preemption::ExpiresItself | Preemption::TakesOver => {
                self.refile_current();
                self.grant_half_slice(cx, id);
                if self.feat.preemption == Preemption::ExpiresItself {
                    self.expire(cx, id, true);
                } else {
                    self.expire_active(cx, true);
                }
                self.set_active_queue(cx, Some(id));
            }
            Preemption::NextInLine => {
                self.expire_active(cx, true);
                self.move_to_front(id);
                self.grant_half_slice(cx, id);
            }
        }
    }

    /// A queue that preempts without a slice left gets half a slice, which
    /// its activation takes away again.
    fn grant_half_slice(&mut self, cx: &Cx<'_>, id: QueueId) {
        let half = (self.prio_to_slice(id) as i64 / 2) as u64;
        let queue = &mut self.queues[id];
        if queue.slice_resid == 0 {
            queue.slice_resid = half;
        }
        queue.slice_end = self.clock.now(cx).wrapping_add(queue.slice_resid);
    }
}
