// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many scheduler tags requests may take: async ones and sync writes leave
//! room for sync reads, and each queue and group its share.

use super::Bfq;
use super::entity::{Ent, Entity};
use super::prio::LEVELS;
use crate::queue_id::QueueId;
use blklab_block::Cx;
use blklab_block::mq::Core;
use blklab_types::{Bio, Op};

/// Depths while no raised queue is busy and while one is, each async and sync
/// write (`bfq_update_depths`).
pub(super) fn depths(whole: u32) -> [[u32; 2]; 2] {
    [
        [(whole / 2).max(1), (whole * 3 / 4).max(1)],
        [(whole * 3 / 16).max(1), (whole * 6 / 16).max(1)],
    ]
}

/// The part of a limit that goes with a weight among others, rounded.
fn share(limit: u64, weight: u64, sum: u64) -> u64 {
    (limit * weight + sum / 2) / sum
}

impl Bfq {
    /// The depth for a bio; none: no limit (`bfq_limit_depth`).
    pub(super) fn depth_for(&self, q: &Core, cx: &mut Cx<'_>, bio: &Bio) -> Option<u32> {
        let whole = if q.shallow_depth_is_total() {
            q.nr_requests
        } else {
            q.tags_per_word()
        };
        let sync = bio.is_sync();
        let unlimited = sync && bio.op == Op::Read;
        let mut depth = 0;
        let mut limit = u64::from(q.nr_requests);
        if !unlimited {
            depth = depths(whole)[usize::from(self.wr_busy > 0)][usize::from(sync)];
            limit = limit * u64::from(depth) / u64::from(whole);
        }
        if self.feat.limits_allocation
            && let Some(id) = self.context_queue(bio.task, sync)
            && self.is_over_limit(q, cx, id, limit)
        {
            depth = 1;
        }
        let (wr_busy, sync) = (self.wr_busy, i32::from(sync));
        let name = "bfq_limit_depth";
        q.message(
            cx,
            format_args!("bfq [{name}] wr_busy {wr_busy} sync {sync} depth {depth}"),
        );
        (depth > 0).then_some(depth)
    }

    /// Whether a queue, or a group that it is in, has all the requests that it
    /// may have by weight (`bfqq_request_over_limit`).
    fn is_over_limit(&self, q: &Core, cx: &mut Cx<'_>, id: QueueId, limit: u64) -> bool {
        self.limit_at(q, cx, id, Ent::of_queue(id), 0, limit)
            .is_none()
    }

    /// The limit of an entity, or none if it or one above it has reached that.
    /// Inactive ones have no limit.
    fn limit_at(
        &self,
        q: &Core,
        cx: &mut Cx<'_>,
        id: QueueId,
        ent: Ent,
        level: u32,
        whole: u64,
    ) -> Option<u64> {
        if !self.ents[ent].on_st {
            return Some(u64::MAX);
        }
        let limit = match self.above(ent) {
            Some(above) => self.limit_at(q, cx, id, above, level + 1, whole)?,
            None => whole,
        };
        let Entity {
            weight,
            class,
            parent,
            allocated,
            ..
        } = self.ents[ent];
        let trees = &self.groups[parent].sched.trees;
        let sum = if level > 0 {
            trees[class].wsum
        } else {
            let sums = trees[..=class].iter();
            sums.fold(0, |sum, t| sum * u64::from(LEVELS) + t.wsum)
        };
        if limit == u64::MAX || sum == 0 {
            return Some(limit);
        }
        let limit = share(limit, u64::from(weight), sum);
        if u64::from(allocated) >= limit {
            self.say(
                q,
                cx,
                id,
                format_args!(
                    "too many requests: allocated {allocated} limit {limit} level {level}"
                ),
            );
            return None;
        }
        Some(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_of_the_specification() {
        assert_eq!(depths(16), [[8, 12], [3, 6]]);
        assert_eq!(depths(64), [[32, 48], [12, 24]]);
        assert_eq!(depths(1), [[1, 1], [1, 1]]);
    }
}
