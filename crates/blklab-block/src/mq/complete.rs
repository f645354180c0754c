// SPDX-License-Identifier: MIT OR Apache-2.0
//! Completion, requeueing, and the end of a request.

use crate::mq::Queue;
use crate::{Cx, Effect, Pending, RqId, RqState, events};
use blklab_trace::Action;
use blklab_trace::truth::Kind;
use blklab_types::Completion;

impl Queue {
    /// The device finished a request (`blk_mq_complete_request`,
    /// `blk_mq_end_request`). In the kernel's order: C (`blk_update_request`), the
    /// bios, statistics, the scheduler, tags, and the hardware queue is run if
    /// something waited for this.
    ///
    /// # Panics
    /// If the device does not have it: a bug in the caller.
    pub fn complete(&mut self, cx: &mut Cx<'_>, rq: RqId, error: u16) {
        self.leave_device(cx, rq);
        let request = &self.core.rqs[rq];
        let (dev, flags) = (self.core.dev, request.flags);
        events::rq_trace(dev, cx, Action::Complete, request, flags, error);
        let busy = u64::from(self.device_busy);
        events::rq_truth(cx, Kind::Complete, rq, &self.core.rqs[rq], busy);
        for policy in self.policies.each() {
            policy.completed(cx, &self.core.rqs[rq]);
        }
        if self.is_flush_step(rq) {
            self.complete_flush_step(cx, rq, error);
        } else {
            self.finish(cx, rq, error);
        }
        if self.core.limits.budget.is_some() {
            self.core.run_all();
        }
        self.push_runs(cx);
    }

    fn leave_device(&mut self, cx: &Cx<'_>, rq: RqId) {
        self.core.rqs[rq].check_finished(self.device_busy, cx.now);
        self.device_busy -= 1;
        self.put_budget();
    }

    /// Ends the bios of a request (`blk_update_request`), and the request
    /// (`__blk_mq_end_request`).
    pub(crate) fn finish(&mut self, cx: &mut Cx<'_>, rq: RqId, error: u16) {
        while let Some(done) = self.core.rqs.take_bio(rq) {
            self.leave_policies(cx, &done);
            self.end_bio(cx, &done, error);
        }
        if self.is_scheduled(rq)
            && let Some(elv) = &mut self.elv
        {
            elv.completed(&mut self.core, cx, rq);
        }
        self.free_request(cx, rq);
    }

    /// Finishes a bio or a part of one, which says so when it is whole
    /// (`bio_endio`, `bio_chain_endio`).
    pub(crate) fn end_bio(&mut self, cx: &mut Cx<'_>, pending: &Pending, error: u16) {
        let Completion::Split { chain } = pending.bio.completion else {
            return pending.end(cx, error);
        };
        if let Some((whole, error)) = self.chains.end(chain, error) {
            whole.end(cx, error);
        }
    }

    /// The data of an ordered request are done: for the scheduler the request is,
    /// though a flush may follow. Else it could wait for requests that wait for
    /// the flush (`blk_mq_finish_request`, block/blk-mq.c, 6.6 and later).
    pub(crate) fn leave_scheduler(&mut self, cx: &mut Cx<'_>, rq: RqId) {
        if self.is_scheduled(rq)
            && let Some(elv) = &mut self.elv
        {
            elv.completed(&mut self.core, cx, rq);
            elv.finished(&mut self.core, cx, rq);
            self.core.rqs[rq].state.clear(RqState::POOLED);
        }
    }

    /// Frees a request whose bios are gone: the scheduler forgets it, its tags go
    /// to who waits for them (`blk_mq_free_request`).
    pub(crate) fn free_request(&mut self, cx: &mut Cx<'_>, id: RqId) {
        if self.is_scheduled(id)
            && let Some(elv) = &mut self.elv
        {
            elv.finished(&mut self.core, cx, id);
        }
        for policy in self.policies.each() {
            policy.freed(cx, id, &self.core.rqs[id], &mut self.wakes);
        }
        let rq = &mut self.core.rqs[id];
        let (cpu, h) = (rq.cpu, rq.hctx);
        let (tag, sched_tag) = (rq.tag.take(), rq.sched_tag.take());
        if let Some(tag) = tag {
            self.give_driver_tag(h, cpu, tag);
        }
        if let (Some(tag), Some(tags)) = (sched_tag, self.tags.sched(h)) {
            tags.put(cpu, tag, &mut self.wakes);
        }
        if std::mem::take(&mut self.hctx_mut(h).restart) {
            self.core.run_hctx(h);
        }
        self.core.rqs.free(id);
        self.push_wakes(cx);
    }

    /// A bio that policies have seen ended (`rq_qos_done_bio`).
    fn leave_policies(&mut self, cx: &mut Cx<'_>, done: &Pending) {
        for policy in self.policies.each() {
            policy.bio_done(cx, done, &mut self.wakes);
        }
        self.push_wakes(cx);
    }

    /// The driver gives a request back that it had started
    /// (`blk_mq_requeue_request`): R. kblockd inserts it again, before all others.
    pub fn requeue(&mut self, cx: &mut Cx<'_>, rq: RqId) {
        self.leave_device(cx, rq);
        self.put_driver_tag(rq);
        self.core.rq_trace(cx, Action::Requeue, rq);
        self.core.rqs[rq].state.clear(RqState::STARTED);
        for policy in self.policies.each() {
            policy.requeued(rq);
        }
        if self.is_scheduled(rq)
            && let Some(elv) = &mut self.elv
        {
            elv.requeued(&mut self.core, cx, rq);
        }
        self.requeue_later(cx, rq);
    }

    /// kblockd is to insert a request again (`blk_mq_add_to_requeue_list`).
    pub(crate) fn requeue_later(&mut self, cx: &mut Cx<'_>, rq: RqId) {
        let rqs = &mut self.core.rqs;
        if self.core.feat.requeue_at_tail {
            self.requeue.push_back(rqs, rq);
        } else {
            self.requeue.push_front(rqs, rq);
        }
        self.kick_requeue(cx);
    }

    /// kblockd is to look at what was requeued (`blk_mq_kick_requeue_list`).
    pub(crate) fn kick_requeue(&mut self, cx: &mut Cx<'_>) {
        self.requeue_kicked = true;
        cx.ask(Effect::RunWork);
    }

    /// kblockd inserts what was requeued (`blk_mq_requeue_work`).
    pub(crate) fn insert_requeued(&mut self, cx: &mut Cx<'_>) {
        let mut list = std::mem::take(&mut self.requeue);
        while let Some(rq) = list.pop_front(&mut self.core.rqs) {
            if self.is_flush_step(rq) {
                self.bypass(rq, true);
            } else {
                self.insert(cx, rq, true);
            }
        }
    }
}
