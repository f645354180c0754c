// SPDX-License-Identifier: MIT OR Apache-2.0
//! Insertion into the scheduler or the dispatch list.

use crate::sq::Queue;
use crate::sq::core::UNMERGEABLE;
use crate::{Cx, Pending, RqId, RqState};
use blklab_trace::Action;
use blklab_trace::truth::Kind;

impl Queue {
    /// A normal request enters the scheduler (I; `ELEVATOR_INSERT_SORT` of
    /// `__elv_add_request`).
    #[inline(always)]
    pub(crate) fn insert_sorted(&mut self, cx: &mut Cx<'_>, rq: RqId) {
        self.core.rq_event(cx, Action::Insert, Kind::Insert, rq);
        self.color_request(rq);
        self.add_to_scheduler(cx, rq);
        self.run_if_requested(cx);
        self.unplug_at_threshold(cx);
    }

    /// For tests of schedulers: allocates and inserts like a bare
    /// `elv_add_request`, without merging, plug, threshold or driver run; only
    /// runs that the scheduler itself demands happen. False if there is no
    /// free request.
    #[doc(hidden)]
    pub fn insert_bare(&mut self, cx: &mut Cx<'_>, bio: &blklab_types::Bio) -> bool {
        let Some(rq) = self.get_request(cx, bio) else {
            return false;
        };
        self.core.rqs.fill(rq, &Pending::new(*bio, cx.now));
        self.core.rq_event(cx, Action::Insert, Kind::Insert, rq);
        self.add_to_scheduler(cx, rq);
        self.run_if_requested(cx);
        true
    }

    /// Everything of an insertion but its event and its consequences.
    #[inline(always)]
    pub(crate) fn add_to_scheduler(&mut self, cx: &mut Cx<'_>, rq: RqId) {
        let core = &mut self.core;
        core.rqs[rq].state |= RqState::SORTED;
        core.nr_sorted += 1;
        if !core.rqs[rq].state.any(UNMERGEABLE) {
            core.hash.add(&mut core.rqs, rq);
            if core.last_merge.is_none() {
                core.set_last_merge(Some(rq));
            }
        }
        let held = self.core.nr_held();
        self.elv.add(&mut self.core, cx, rq);
        assert_eq!(self.core.nr_held(), held, "add loses or invents requests");
    }

    /// The scheduler moves requests to the dispatch list (`elevator_dispatch_fn`):
    /// how many it says.
    #[inline(always)]
    pub(crate) fn ask_scheduler(&mut self, cx: &mut Cx<'_>, force: bool) -> usize {
        let (held, listed) = (self.core.nr_held(), self.core.queue_head.len());
        let moved = self.elv.dispatch(&mut self.core, cx, force);
        assert_eq!(
            self.core.nr_held(),
            held,
            "dispatch loses or invents requests"
        );
        assert_eq!(
            (self.core.queue_head.len() - listed) as usize,
            moved,
            "dispatch moves as many as it says"
        );
        moved
    }

    /// At the tail of the dispatch list (I; `ELEVATOR_INSERT_BACK`): the scheduler
    /// is emptied first, nothing is sorted past it, and the driver is called.
    pub(crate) fn insert_back(&mut self, cx: &mut Cx<'_>, rq: RqId) {
        self.core.rq_event(cx, Action::Insert, Kind::Insert, rq);
        self.core.rqs[rq].state |= RqState::SOFTBARRIER;
        self.drain_scheduler(cx);
        self.core.queue_head.push_back(&mut self.core.rqs, rq);
        self.remove_plug(cx);
        self.run(cx);
    }

    /// At the head of the dispatch list, without an event
    /// (`ELEVATOR_INSERT_FRONT`).
    pub(crate) fn push_front(&mut self, rq: RqId) {
        self.core.rqs[rq].state |= RqState::SOFTBARRIER;
        self.core.queue_head.push_front(&mut self.core.rqs, rq);
    }

    /// Moves every waiting request to the dispatch list in the scheduler's forced
    /// order (`elv_drain_elevator`).
    pub(crate) fn drain_scheduler(&mut self, cx: &mut Cx<'_>) {
        while self.ask_scheduler(cx, true) > 0 {}
        assert_eq!(
            self.core.nr_sorted, 0,
            "forced dispatch left requests behind"
        );
    }

    /// A request that leaves a task plug enters the scheduler (I;
    /// `ELEVATOR_INSERT_SORT_MERGE`), unless it can be appended to one that is
    /// there.
    pub(crate) fn insert_sort_merge(&mut self, cx: &mut Cx<'_>, rq: RqId) {
        self.core.rq_event(cx, Action::Insert, Kind::Insert, rq);
        if !self.insertion_merge(cx, rq) {
            self.add_to_scheduler(cx, rq);
            self.run_if_requested(cx);
        }
    }

    /// Tries `last_merge`, then the hash (`elv_attempt_insert_merge`). From 3.8 a
    /// request that grew so is itself tried as an appendix of another, and so on.
    fn insertion_merge(&mut self, cx: &mut Cx<'_>, rq: RqId) -> bool {
        let nomerges = self.core.limits.queue.nomerges;
        if nomerges >= 2 {
            return false;
        }
        if let Some(last) = self.core.last_merge
            && self.append_request(cx, last, rq)
        {
            return true;
        }
        if nomerges >= 1 {
            return false;
        }
        let (mut next, mut merged) = (rq, false);
        loop {
            let start = self.core.rqs[next].sector;
            let Some(found) = self.core.hash.find(&self.core.rqs, start, UNMERGEABLE) else {
                return merged;
            };
            if !self.append_request(cx, found, next) {
                return merged;
            }
            merged = true;
            if !self.core.feat.insertion_merge_repeats {
                return true;
            }
            next = found;
        }
    }

    fn append_request(&mut self, cx: &mut Cx<'_>, rq: RqId, next: RqId) -> bool {
        self.elv.allow_request_merge(&self.core, rq, next) && self.merge_requests(cx, rq, next)
    }
}
