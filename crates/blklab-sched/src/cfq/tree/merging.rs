// SPDX-License-Identifier: MIT OR Apache-2.0
//! Merging: a bio in front of a request, and two requests.

use super::Cfq;
use blklab_block::sq::Core;
use blklab_block::{Cx, RqId};
use blklab_types::Bio;

impl Cfq {
    /// A waiting request of the submitter's queue behind the bio
    /// (`cfq_find_rq_fmerge`).
    pub(super) fn front_candidate(&self, q: &Core, bio: &Bio) -> Option<RqId> {
        let id = self.queue_of(bio.task, bio.is_sync())?;
        self.queues[id].waiting.front_merge(&self.nodes, q, bio)
    }

    /// `rq` absorbed `next`. Up to 2.6.31 it keeps its place by arrival: the
    /// start times are equal by then (`cfq_merged_requests`).
    pub(super) fn absorb(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId, next: RqId) {
        let (id, of_next) = (self.of_rq.queue(rq), self.of_rq.queue(next));
        let earlier = self.of_rq[next].fifo_time;
        if self.feat.age_from_insertion
            && id == of_next
            && self.clock.before(earlier, self.of_rq[rq].fifo_time)
        {
            self.of_rq[rq].fifo_time = earlier;
            self.queues[id]
                .waiting
                .fifo
                .move_behind(&mut q.rqs, next, rq);
        }
        self.remove_request(q, cx, of_next, next);
    }
}
