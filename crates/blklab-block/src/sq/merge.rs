// SPDX-License-Identifier: MIT OR Apache-2.0
//! Merging bios into requests and requests into each other.

use crate::sq::core::UNMERGEABLE;
use crate::sq::{Core, Queue};
use crate::{Cx, Merge, Pending, RqId, RqState};
use blklab_trace::Action;
use blklab_trace::truth::Kind;
use blklab_types::Bio;

impl Queue {
    /// Tries to merge a bio with a waiting request (`__make_request`, later
    /// `blk_queue_bio`); true if it was.
    pub(crate) fn merge_bio(&mut self, cx: &mut Cx<'_>, pending: &Pending) -> bool {
        let Some((rq, side)) = self.find_merge(cx, &pending.bio) else {
            return false;
        };
        if !self.core.fits(rq, &pending.bio) {
            self.core.set_nomerge(rq);
            return false;
        }
        self.join(cx, rq, pending, side);
        self.core.count_cached_merge(rq);
        let neighbour = match side {
            Merge::Back => self.elv.latter(&self.core, rq).map(|next| (rq, next)),
            Merge::Front => self.elv.former(&self.core, rq).map(|prev| (prev, rq)),
        };
        if let Some((first, next)) = neighbour
            && self.merge_requests(cx, first, next)
        {
            return true;
        }
        self.elv.merged(&mut self.core, cx, rq, side);
        self.core.set_last_merge(Some(rq));
        true
    }

    /// The candidate for a bio: `last_merge`, then the hash, then the scheduler's
    /// front-merge lookup (`elv_merge`). One candidate is named, or none.
    fn find_merge(&mut self, cx: &mut Cx<'_>, bio: &Bio) -> Option<(RqId, Merge)> {
        let nomerges = self.core.limits.queue.nomerges;
        if nomerges >= 2 {
            return None;
        }
        if let Some(rq) = self.core.last_merge
            && self.merge_allowed(cx, rq, bio)
            && let Some(side) = self.core.rqs[rq].side_of(bio)
        {
            return Some((rq, side));
        }
        if nomerges >= 1 {
            return None;
        }
        if (self.core.feat.core_merge_hash || self.elv.has_own_merge_hash())
            && let Some(rq) = self.core.hash.find(&self.core.rqs, bio.sector, UNMERGEABLE)
            && self.merge_allowed(cx, rq, bio)
        {
            return Some((rq, Merge::Back));
        }
        let front = self.elv.find_front_merge(&self.core, cx, bio)?;
        self.merge_allowed(cx, front, bio)
            .then_some((front, Merge::Front))
    }

    /// `elv_rq_merge_ok`.
    pub(crate) fn merge_allowed(&mut self, cx: &mut Cx<'_>, rq: RqId, bio: &Bio) -> bool {
        self.core.merge_ok(rq, bio)
            && (!self.core.feat.allow_merge_hook || self.elv.allow_merge(&self.core, cx, rq, bio))
    }

    /// Puts the bio into the request, with its event (later
    /// `bio_attempt_back_merge`, `bio_attempt_front_merge`).
    pub(crate) fn join(&mut self, cx: &mut Cx<'_>, rq: RqId, pending: &Pending, side: Merge) {
        match side {
            Merge::Back => {
                self.core
                    .bio_event(cx, Action::BackMerge, Kind::BackMerge, &pending.bio);
                self.core.rqs.append(rq, pending);
                self.core.rehash(rq, u64::from(pending.bio.nr_sectors));
            }
            Merge::Front => {
                self.core
                    .bio_event(cx, Action::FrontMerge, Kind::FrontMerge, &pending.bio);
                self.core.rqs.prepend(rq, pending);
            }
        }
    }

    /// Merges `next`, which waits right behind `rq`, into it if all tests hold
    /// (`attempt_merge`). No trace event. A failure leaves no mark.
    pub(crate) fn merge_requests(&mut self, cx: &mut Cx<'_>, rq: RqId, next: RqId) -> bool {
        if !self.core.requests_fit(rq, next) {
            return false;
        }
        let (rq_end, next_end) = (self.core.rqs[rq].end(), self.core.rqs[next].end());
        let next_start = self.core.rqs[next].sector;
        self.core.rqs.absorb(rq, next);
        if self.core.rqs[next].state.has(RqState::SORTED) {
            let held = self.core.nr_held();
            self.elv.merge_requests(&mut self.core, cx, rq, next);
            assert_eq!(
                self.core.nr_held(),
                held,
                "a merge loses or invents requests"
            );
            self.core.nr_sorted -= 1;
        }
        let core = &mut self.core;
        if core.rqs[rq].state.has(RqState::HASHED) {
            core.hash.remove(&mut core.rqs, rq, rq_end);
            core.hash.add(&mut core.rqs, rq);
        }
        core.hash.remove(&mut core.rqs, next, next_end);
        core.set_last_merge(Some(rq));
        core.rq_truth(cx, Kind::RequestMerge, rq, next_start);
        core.rq_truth(cx, Kind::Absorbed, next, u64::from(rq.0));
        self.put_request(cx, next);
        true
    }
}

impl Core {
    /// Size and segment test of a bio merge (`ll_back_merge_fn`,
    /// `ll_front_merge_fn`). The seam gets no credit: pages that happen to be
    /// contiguous across it are counted on both sides.
    pub(crate) fn fits(&self, rq: RqId, bio: &Bio) -> bool {
        let rq = &self.rqs[rq];
        let limits = &self.limits.queue;
        limits.fit_together(
            bio.op,
            [rq.nr_sectors, bio.nr_sectors],
            [rq.segments, u32::from(bio.segments)],
            limits.max_sectors,
        )
    }

    /// The request takes no more bios, ever.
    pub(crate) fn set_nomerge(&mut self, rq: RqId) {
        self.rqs[rq].state |= RqState::NOMERGE;
        if self.last_merge == Some(rq) {
            self.set_last_merge(None);
        }
    }

    /// Size, segment and state tests of a request-request merge
    /// (`ll_merge_requests_fn`). The scheduler is not asked, sync flags are not
    /// compared.
    fn requests_fit(&self, rq: RqId, next: RqId) -> bool {
        let (a, b) = (&self.rqs[rq], &self.rqs[next]);
        let limits = &self.limits.queue;
        !a.state.any(UNMERGEABLE)
            && !b.state.any(UNMERGEABLE.with(RqState::SPECIAL))
            && a.end() == b.sector
            && a.op == b.op
            && limits.fit_together(
                a.op,
                [a.nr_sectors, b.nr_sectors],
                [a.segments, b.segments],
                limits.max_sectors,
            )
    }

    /// Moves a request that grew by `by` sectors at its end to its new place in the
    /// hash (`elv_rqhash_reposition`).
    fn rehash(&mut self, rq: RqId, by: u64) {
        let end = self.rqs[rq].end() - by;
        if self.rqs[rq].state.has(RqState::HASHED) {
            self.hash.remove(&mut self.rqs, rq, end);
            self.hash.add(&mut self.rqs, rq);
        }
    }
}
