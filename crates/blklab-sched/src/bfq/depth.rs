// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many scheduler tags requests may take: async ones and sync writes leave
//! room for sync reads, and each queue and group its share.

use super::Bfq;
use super::entity::{Ent, Entity};
use super::prio::LEVELS;
use crate::async_depth;
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

/// The smallest of them.
fn least(whole: u32) -> u32 {
    depths(whole)
        .into_iter()
        .flatten()
        .fold(whole.max(1), u32::min)
}

/// The same of `queue/async_depth` (`bfq_depth_updated`).
fn depths_of_queue(async_depth: u32) -> [[u32; 2]; 2] {
    [
        [(async_depth * 2 / 3).max(1), async_depth],
        [(async_depth / 4).max(1), (async_depth / 2).max(1)],
    ]
}

/// What a request may have before shares are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    /// Tags, of all or of a word.
    depth: u32,
    /// Requests that queues and groups have shares of.
    share_of: u64,
}

impl Limits {
    /// Sync reads may have all requests. Where depths are those of a word they
    /// follow the bitmap, otherwise the number of requests that the scheduler
    /// was told.
    fn allowed(bfq: &Bfq, q: &Core, sync: bool, op: Op) -> Limits {
        let is_read = sync && op == Op::Read;
        let raised = usize::from(bfq.wr_busy > 0);
        let depth_of = |whole| {
            let all = if bfq.feat.limits_are_of_queue {
                depths_of_queue(bfq.async_depth(q))
            } else {
                depths(whole)
            };
            all[raised][usize::from(sync)]
        };
        if q.shallow_depth_is_total() {
            let depth = if is_read {
                q.nr_requests
            } else {
                depth_of(q.told_nr_requests())
            };
            let share_of = u64::from(depth);
            return Limits { depth, share_of };
        }
        let all = u64::from(q.nr_requests);
        if is_read {
            return Limits {
                depth: 0,
                share_of: all,
            };
        }
        let word = q.tags_per_word();
        let depth = depth_of(word);
        Limits {
            depth,
            share_of: all * u64::from(depth) / u64::from(word),
        }
    }
}

/// The part of a limit that goes with a weight among others, rounded.
fn share(limit: u64, weight: u64, sum: u64) -> u64 {
    (limit * weight + sum / 2) / sum
}

impl Bfq {
    /// What the limits are parts of: `queue/async_depth`, but until that or `nr_requests` is
    /// written what it was before BFQ was chosen (`bfq_init_queue` makes the limits before
    /// it sets its own).
    fn async_depth(&self, q: &Core) -> u32 {
        let written = self.set.async_depth;
        // The number that the queue has, written once more, is no change.
        let is_unchanged = q.nr_requests == q.limits.nr_requests_unwritten(true);
        if written.is_none() && is_unchanged {
            return async_depth::before(q);
        }
        async_depth::of_queue(q, written, |all| all * 3 / 4)
    }

    /// The smallest depth that a bio may get: where queues and groups have shares, one tag
    /// (`bfq_depth_updated`).
    pub(super) fn least_depth(&self, q: &Core) -> u32 {
        if self.feat.limits_allocation {
            1
        } else {
            least(q.tags_per_word())
        }
    }

    /// The depth for a bio; none: no limit (`bfq_limit_depth`).
    pub(super) fn depth_for(&self, q: &Core, cx: &mut Cx<'_>, bio: &Bio) -> Option<u32> {
        let sync = bio.is_sync();
        let limits = Limits::allowed(self, q, sync, bio.op);
        let is_over = self.feat.limits_allocation
            && self
                .context_queue(cx.tasks.io_context_of(bio.task), sync)
                .is_some_and(|id| self.is_over_limit(q, cx, id, limits.share_of));
        let depth = if is_over { 1 } else { limits.depth };
        let (wr_busy, sync) = (self.wr_busy, i32::from(sync));
        let name = "bfq_limit_depth";
        q.message(
            cx,
            format_args!("bfq [{name}] wr_busy {wr_busy} sync {sync} depth {depth}"),
        );
        let has_limit = if q.shallow_depth_is_total() {
            depth < q.nr_requests
        } else {
            depth > 0
        };
        has_limit.then_some(depth)
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
        assert_eq!([64, 16, 4, 1].map(least), [12, 3, 1, 1]);
        assert_eq!(depths_of_queue(48), [[32, 48], [12, 24]]);
        assert_eq!(depths_of_queue(62), [[41, 62], [15, 31]]);
        assert_eq!(depths_of_queue(1), [[1, 1], [1, 1]]);
    }
}
