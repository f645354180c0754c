// SPDX-License-Identifier: MIT OR Apache-2.0
//! Merging bios into requests and requests into each other.

use crate::mq::Queue;
use crate::mq::core::{UNMERGEABLE, is_mergeable};
use crate::{Cx, List, Merge, Pending, RqId, RqState, events};
use blklab_trace::Action;
use blklab_trace::truth::Kind;
use blklab_types::Bio;

/// Requests of a software queue that a bio is compared with, newest first
/// (`blk_bio_list_merge`).
const SOFTWARE_MERGES_MAX: usize = 8;

/// Outcome of an attempt (`bio_merge_status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// They do not lie side by side, or must not be merged.
    None,
    /// Merged.
    Done,
    /// They lie side by side, but the request would be too large.
    Refused,
}

impl Queue {
    /// Tries to merge a bio with a request that waits in the scheduler or in a
    /// software queue (`blk_mq_sched_bio_merge`); true if it was.
    pub(crate) fn merge_bio(&mut self, cx: &mut Cx<'_>, part: &Pending) -> bool {
        let cpu = cx.running.cpu;
        let Some(elv) = &self.elv else {
            let list = self.ctxs[usize::from(cpu)];
            return self.merge_in_list(cx, list, part);
        };
        let merged = if elv.merges_by_hash() {
            self.merge_in_scheduler(cx, part)
        } else {
            let list = elv.software_list(cpu, &part.bio);
            list.is_some_and(|list| self.merge_in_list(cx, list, part))
        };
        self.core.work.merges += u32::from(merged);
        merged
    }

    /// Tries the newest requests of a list (`blk_bio_list_merge`).
    fn merge_in_list(&mut self, cx: &mut Cx<'_>, list: List, part: &Pending) -> bool {
        let mut at = list.back();
        for _ in 0..SOFTWARE_MERGES_MAX {
            let Some(rq) = at else { return false };
            match self.attempt(cx, rq, part) {
                Attempt::None => at = List::prev(&self.core.rqs, rq),
                Attempt::Done => return true,
                Attempt::Refused => return false,
            }
        }
        false
    }

    /// Joins bio and request if that is possible (`blk_attempt_bio_merge`).
    pub(crate) fn attempt(&mut self, cx: &mut Cx<'_>, rq: RqId, part: &Pending) -> Attempt {
        let Some(side) = self.core.rqs[rq].side_of(&part.bio) else {
            return Attempt::None;
        };
        if !self.core.merge_ok(rq, &part.bio) {
            return Attempt::None;
        }
        if self.join(cx, rq, part, side) {
            Attempt::Done
        } else {
            Attempt::Refused
        }
    }

    /// Tries the requests that wait in the scheduler; one that grew may close the
    /// gap to its neighbour (`blk_mq_sched_try_merge`).
    fn merge_in_scheduler(&mut self, cx: &mut Cx<'_>, part: &Pending) -> bool {
        let Some((rq, side)) = self.find_merge(cx, &part.bio) else {
            return false;
        };
        if !self.join(cx, rq, part, side) {
            return false;
        }
        let elv = self.elv.as_mut().expect("asked for a scheduler's merge");
        let neighbour = match side {
            Merge::Back => elv.latter(&self.core, rq).map(|next| (rq, next)),
            Merge::Front => elv.former(&self.core, rq).map(|prev| (prev, rq)),
        };
        if let Some((first, next)) = neighbour
            && self.merge_requests(cx, first, next, true)
        {
            return true;
        }
        let elv = self.elv.as_mut().expect("a scheduler");
        elv.merged(&mut self.core, cx, rq, side);
        self.core.last_merge = Some(rq);
        true
    }

    /// The candidate for a bio: `last_merge`, then the hash, then the scheduler's
    /// front-merge lookup (`elv_merge`).
    fn find_merge(&mut self, cx: &mut Cx<'_>, bio: &Bio) -> Option<(RqId, Merge)> {
        if let Some(rq) = self.core.last_merge
            && self.merge_allowed(cx, rq, bio)
            && let Some(side) = self.core.rqs[rq].side_of(bio)
        {
            return Some((rq, side));
        }
        if self.core.limits.queue.nomerges >= 1 {
            return None;
        }
        if let Some(rq) = self.core.hash.find(&self.core.rqs, bio.sector, UNMERGEABLE)
            && self.merge_allowed(cx, rq, bio)
        {
            return Some((rq, Merge::Back));
        }
        let elv = self.elv.as_mut()?;
        let front = elv.find_front_merge(&mut self.core, cx, bio)?;
        self.merge_allowed(cx, front, bio)
            .then_some((front, Merge::Front))
    }

    /// `elv_bio_merge_ok`.
    fn merge_allowed(&mut self, cx: &mut Cx<'_>, rq: RqId, bio: &Bio) -> bool {
        self.core.merge_ok(rq, bio)
            && match &mut self.elv {
                Some(elv) => elv.allow_merge(&mut self.core, cx, rq, bio),
                None => true,
            }
    }

    /// Puts the bio into the request, with its event (M, F;
    /// `bio_attempt_back_merge`, `bio_attempt_front_merge`). If the request would
    /// be too large it takes no more bios, ever (`req_set_nomerge`).
    fn join(&mut self, cx: &mut Cx<'_>, rq: RqId, part: &Pending, side: Merge) -> bool {
        let bio = &part.bio;
        let core = &mut self.core;
        if !core.fits(rq, side, bio) {
            core.rqs[rq].state |= RqState::NOMERGE;
            if core.last_merge == Some(rq) {
                core.last_merge = None;
            }
            return false;
        }
        let mut part = *part;
        let first = core.rqs.first_qos(rq);
        for policy in self.policies.each() {
            policy.merged(cx, &core.rqs[rq], first, &mut part);
        }
        match side {
            Merge::Back => {
                events::bio_event(core.dev, cx, Action::BackMerge, Kind::BackMerge, bio);
                core.unhash(rq);
                core.rqs.append(rq, &part);
                core.rehash(rq);
            }
            Merge::Front => {
                events::bio_event(core.dev, cx, Action::FrontMerge, Kind::FrontMerge, bio);
                core.rqs.prepend(rq, &part);
            }
        }
        true
    }

    /// Tries to append a request that is about to be inserted to waiting ones
    /// (`elv_attempt_insert_merge`); true if it is gone.
    pub(crate) fn insertion_merge(&mut self, cx: &mut Cx<'_>, rq: RqId) -> bool {
        let nomerges = self.core.limits.queue.nomerges;
        if nomerges >= 2 || !is_mergeable(self.core.rqs[rq].state) {
            return false;
        }
        if let Some(last) = self.core.last_merge
            && self.merge_requests(cx, last, rq, false)
        {
            return true;
        }
        if nomerges >= 1 {
            return false;
        }
        let (mut next, mut merged) = (rq, false);
        loop {
            let start = self.core.rqs[next].sector;
            let found = self.core.hash.find(&self.core.rqs, start, UNMERGEABLE);
            match found {
                Some(found) if self.merge_requests(cx, found, next, merged) => {
                    merged = true;
                    next = found;
                }
                _ => return merged,
            }
        }
    }

    /// Merges `next`, which lies right behind `rq`, into it if all tests hold
    /// (`attempt_merge`; M of what disappears).
    fn merge_requests(&mut self, cx: &mut Cx<'_>, rq: RqId, next: RqId, next_waits: bool) -> bool {
        if rq == next || !self.core.requests_fit(rq, next) {
            return false;
        }
        let core = &mut self.core;
        let next_start = core.rqs[next].sector;
        core.rq_trace(cx, Action::BackMerge, next);
        core.unhash(rq);
        core.unhash(next);
        core.rqs.absorb(rq, next);
        if let Some(elv) = &mut self.elv {
            elv.merge_requests(core, cx, rq, next, next_waits);
            core.nr_sorted -= u32::from(next_waits);
        }
        core.rehash(rq);
        core.last_merge = Some(rq);
        events::rq_truth(cx, Kind::RequestMerge, rq, &core.rqs[rq], next_start);
        events::rq_truth(cx, Kind::Absorbed, next, &core.rqs[next], u64::from(rq.0));
        self.free_request(cx, next);
        true
    }
}
