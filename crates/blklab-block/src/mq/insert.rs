// SPDX-License-Identifier: MIT OR Apache-2.0
//! Insertion into the scheduler, a software queue, or a hardware queue's list.

use crate::mq::Queue;
use crate::{Cx, Pending, RqId};
use blklab_trace::Action;
use blklab_trace::truth::Kind;
use blklab_types::Bio;

impl Queue {
    /// A request enters the scheduler, unless it can be appended to one that is
    /// there, or the software queue of its CPU (I; `blk_mq_sched_insert_request`,
    /// in 6.12 `blk_mq_insert_request`). One that the scheduler does not know goes
    /// past it (`blk_mq_sched_bypass_insert`).
    pub(crate) fn insert(&mut self, cx: &mut Cx<'_>, rq: RqId, at_head: bool) {
        if !self.is_scheduled(rq) {
            if self.elv.is_some() {
                self.bypass(rq, at_head);
            } else {
                self.insert_in_software_queue(cx, rq, at_head);
            }
            return;
        }
        let elv = self.elv.as_mut().expect("a scheduled request");
        elv.before_insert(&mut self.core, cx, rq, at_head);
        let by_hash = elv.merges_by_hash();
        if by_hash && self.insertion_merge(cx, rq) {
            return;
        }
        self.core.rq_event(cx, Action::Insert, Kind::Insert, rq);
        let elv = self.elv.as_mut().expect("a scheduled request");
        elv.add(&mut self.core, cx, rq, at_head);
        self.core.nr_sorted += 1;
        if by_hash && !at_head {
            self.core.enter_hash(rq);
        }
    }

    /// For tests of schedulers: a request of its own for a bio goes straight to
    /// insertion, without plug, bio merge and limited depth; kblockd runs the
    /// queue. False if there is no free request.
    #[doc(hidden)]
    pub fn insert_bare(&mut self, cx: &mut Cx<'_>, bio: &Bio) -> bool {
        let mut bio = *bio;
        bio.ioprio = self.priority(cx, &bio);
        bio.group = cx.tasks.group_of(&bio);
        let Some(rq) = self.get_request(cx, &bio, None) else {
            return false;
        };
        self.core.rqs.fill(rq, &Pending::new(bio, cx.now));
        let h = self.core.rqs[rq].hctx;
        self.insert(cx, rq, false);
        self.core.run_hctx(h);
        self.push_runs(cx);
        true
    }

    /// A request enters the software queue of its CPU (`__blk_mq_insert_request`).
    fn insert_in_software_queue(&mut self, cx: &mut Cx<'_>, rq: RqId, at_head: bool) {
        self.core.rq_event(cx, Action::Insert, Kind::Insert, rq);
        let cpu = usize::from(self.core.rqs[rq].cpu);
        let list = &mut self.ctxs[cpu];
        if at_head {
            list.push_front(&mut self.core.rqs, rq);
        } else {
            list.push_back(&mut self.core.rqs, rq);
        }
    }

    /// A request goes past scheduler and software queues
    /// (`blk_mq_request_bypass_insert`; no event).
    pub(crate) fn bypass(&mut self, rq: RqId, at_head: bool) {
        let h = usize::from(self.core.rqs[rq].hctx);
        let list = &mut self.hctxs[h].dispatch;
        if at_head {
            list.push_front(&mut self.core.rqs, rq);
        } else {
            list.push_back(&mut self.core.rqs, rq);
        }
    }
}
