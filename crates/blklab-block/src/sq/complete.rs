// SPDX-License-Identifier: MIT OR Apache-2.0
//! Completion, requeueing, and the end of a request.

use crate::sq::Queue;
use crate::{Cx, RqId, RqState};
use blklab_trace::Action;
use blklab_trace::truth::Kind;

impl Queue {
    /// The device finished a request. In the kernel's order: C, the bios,
    /// the scheduler, the pool, and then the driver looks for more.
    ///
    /// # Panics
    /// If the device does not have it: a bug in the caller.
    pub fn complete(&mut self, cx: &mut Cx<'_>, rq: RqId, error: u16) {
        self.leave_device(cx, rq);
        self.complete_event(cx, rq, error);
        self.release_tag(rq);
        let state = self.core.rqs[rq].state;
        if state.has(RqState::PROXY) || state.has(RqState::FLUSH_SEQ) {
            self.complete_sequenced(cx, rq, error);
        } else {
            self.finish_request(cx, rq, error);
        }
        self.run_after_completion(cx);
    }

    fn leave_device(&mut self, cx: &Cx<'_>, rq: RqId) {
        self.core.rqs[rq].check_finished(self.device_busy, cx.now);
        self.device_busy -= 1;
    }

    /// The C event of a request.
    #[inline(always)]
    pub(crate) fn complete_event(&mut self, cx: &mut Cx<'_>, rq: RqId, error: u16) {
        self.core.rq_trace(cx, Action::Complete, rq, error);
        self.core
            .rq_truth(cx, Kind::Complete, rq, u64::from(self.device_busy));
    }

    /// Ends the bios of a request, tells the scheduler, frees it
    /// (`end_that_request_last`, later `blk_finish_request`).
    #[inline(always)]
    pub(crate) fn finish_request(&mut self, cx: &mut Cx<'_>, rq: RqId, error: u16) {
        while let Some(pending) = self.core.rqs.take_bio(rq) {
            pending.end(cx, error);
        }
        self.leave_flight(cx, rq);
        self.put_request(cx, rq);
    }

    /// Accounting at the end of a request's stay at the device
    /// (`elv_completed_request`).
    #[inline(always)]
    pub(crate) fn leave_flight(&mut self, cx: &mut Cx<'_>, rq: RqId) {
        let state = self.core.rqs[rq].state;
        if state.has(RqState::COUNTED) {
            assert!(self.core.in_flight > 0, "in_flight counts what left");
            self.core.in_flight -= 1;
            self.core.rqs[rq].state.clear(RqState::COUNTED);
            if state.has(RqState::SORTED) {
                self.elv.completed(&mut self.core, cx, rq);
            }
        }
    }

    fn run_after_completion(&mut self, cx: &mut Cx<'_>) {
        if self.core.limits.completion_unplugs {
            self.remove_plug(cx);
        }
        self.core.run_requested = false;
        if self.core.feat.task_plug || !self.core.nothing_waits() {
            self.run(cx);
        }
    }

    /// The device refused a request: R, and back to the head of the list
    /// (`blk_requeue_request`, `elv_requeue_request`). It gets a second D when it
    /// is looked at again.
    pub fn requeue(&mut self, cx: &mut Cx<'_>, rq: RqId) {
        self.core.rq_trace(cx, Action::Requeue, rq, 0);
        self.leave_device(cx, rq);
        self.release_tag(rq);
        let state = self.core.rqs[rq].state;
        if state.has(RqState::COUNTED) {
            self.core.in_flight -= 1;
        }
        if state.has(RqState::SORTED) {
            self.elv.deactivate(&mut self.core, cx, rq);
        }
        self.core.rqs[rq]
            .state
            .clear(RqState::STARTED.with(RqState::COUNTED));
        self.core.rqs[rq].state |= RqState::SPECIAL;
        self.core.rq_event(cx, Action::Insert, Kind::Insert, rq);
        self.push_front(rq);
    }
}
