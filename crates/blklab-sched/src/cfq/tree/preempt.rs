// SPDX-License-Identifier: MIT OR Apache-2.0
//! Preemption: when a new request ends the slice of another queue, and what
//! that queue takes back.
//!
//! Taking back is a patch of January 2009, reconstructed: the thread is known,
//! its code is not.

use super::Cfq;
use super::features::Pullback;
use super::queue::QueueId;
use crate::choose::is_meta;
use blklab_block::sq::Core;
use blklab_block::{Cx, List, RqId, RqState};

impl Cfq {
    /// Whether a new request of `new`, which is not active, ends the slice of
    /// the active queue (`cfq_should_preempt`).
    pub(super) fn should_preempt(
        &mut self,
        q: &Core,
        cx: &mut Cx<'_>,
        new: QueueId,
        rq: RqId,
    ) -> bool {
        let Some(active) = self.active else {
            return false;
        };
        if self.slice_used(active, self.clock.now(cx)) {
            return true;
        }
        let (n, a, rq) = (&self.queues[new], &self.queues[active], &q.rqs[rq]);
        if n.prio.is_idle_class() {
            return false;
        }
        if a.prio.is_idle_class()
            || (rq.is_sync() && !a.sync)
            || (is_meta(rq) && a.meta_pending == 0)
            || (self.feat.rt_preempts && n.prio.is_rt() && !a.prio.is_rt())
        {
            return true;
        }
        let Some(c) = self.active_task.filter(|_| a.turn.wait_request) else {
            return false;
        };
        let close = if self.feat.cooperators {
            self.is_close(c, rq.sector)
        } else {
            let seek = self.contexts[c].seek;
            seek.is_valid() && self.distance(rq.sector) <= seek.mean
        };
        if !close || !self.feat.coop_preempt {
            return close;
        }
        if n.coop && self.busy_queues != 1 {
            return false;
        }
        let n = &mut self.queues[new];
        n.coop = true;
        n.coop_preempt = true;
        true
    }

    /// Ends the active slice and puts `new` in front (`cfq_preempt_queue`).
    pub(super) fn preempt_queue(&mut self, q: &mut Core, cx: &mut Cx<'_>, new: QueueId) {
        let pid = self.queues[new].pid;
        q.message(cx, format_args!("cfq{pid} preempt"));
        let old = self.active;
        self.expire_active(q, cx, true);
        if let Some(old) = old {
            self.pull_back(q, cx, old);
        }
        self.service_tree_add(self.clock.now(cx), new, true);
        let n = &mut self.queues[new];
        n.slice_end = 0;
        n.slice_new = true;
    }

    /// Gives a queue back what the driver has not seen of it.
    fn pull_back(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId) {
        let counts = match self.feat.pullback {
            Pullback::Off => return,
            Pullback::Full => true,
            Pullback::Minimal => false,
        };
        let mut pulled = std::mem::take(&mut self.pulled);
        let mut at = q.queue_head.front();
        while let Some(rq) = at {
            at = List::next(&q.rqs, rq);
            if self.is_revocable(q, id, rq) {
                pulled.push(rq);
            }
        }
        for rq in pulled.drain(..) {
            self.take_back(q, cx, id, rq, counts);
        }
        self.pulled = pulled;
    }

    fn is_revocable(&self, q: &Core, id: QueueId, rq: RqId) -> bool {
        let state = q.rqs[rq].state;
        let fixed = RqState::STARTED
            .with(RqState::SOFTBARRIER)
            .with(RqState::HARDBARRIER);
        state.has(RqState::SORTED) && !state.any(fixed) && self.of_rq.queue(rq) == id
    }

    fn take_back(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId, rq: RqId, counts: bool) {
        q.take_back(rq, counts);
        let queue = &mut self.queues[id];
        assert!(queue.dispatched > 0, "what is taken back left its queue");
        queue.dispatched -= 1;
        if queue.sync {
            self.sync_flight -= 1;
        }
        queue.waiting.fifo.push_back(&mut q.rqs, rq);
        if counts {
            self.count_waiting(q.rqs[rq].flags, id);
        }
        self.add_sorted(q, cx, id, rq);
    }
}
