// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sync or the async requests that wait: by sector, by age, and the best
//! next one.
//!
//! Source: block/as-iosched.c of 2.6.16 to 2.6.32.

use crate::choose::{Reach, nearer};
use blklab_block::{List, Requests, RqId, SectorTree, TreeNodes};

/// Sectors behind the last request within which another may still be next.
const BACK_MAX: u64 = 1024 * 1024;
/// Factor on distances backward.
const BACK_PENALTY: u64 = 2;

/// What waits of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waiting {
    pub(super) sort: SectorTree,
    pub(super) fifo: List,
    /// The best next request, kept up to date at insertions and removals.
    pub(super) next: Option<RqId>,
    /// Where the last dispatched request ended.
    pub(super) last_sector: u64,
    /// When expiry was looked at last. The kernel's zero is long ago: its
    /// counter starts high, and so does ours.
    pub(super) last_check: u64,
}

impl Waiting {
    /// The better of two to go next (`as_choose_req`).
    pub(super) fn better(&self, rqs: &Requests, a: RqId, b: RqId) -> RqId {
        let reach = Reach {
            last: self.last_sector,
            back_max: BACK_MAX,
            penalty: BACK_PENALTY,
        };
        nearer(&reach, (a, rqs[a].sector), (b, rqs[b].sector))
    }

    /// What goes next once `rq` is gone: its neighbour ahead, round the end
    /// to the lowest, or the one behind (`as_find_next_rq`).
    pub(super) fn successor(&self, nodes: &TreeNodes, rqs: &Requests, rq: RqId) -> Option<RqId> {
        let lowest = || self.sort.first().filter(|&first| first != rq);
        match (nodes.next(rq).or_else(lowest), nodes.prev(rq)) {
            (Some(a), Some(b)) => Some(self.better(rqs, a, b)),
            (a, b) => a.or(b),
        }
    }

    /// A request has come (`as_update_rq`).
    pub(super) fn offer(&mut self, rqs: &Requests, rq: RqId) {
        self.next = Some(match self.next {
            Some(next) => self.better(rqs, rq, next),
            None => rq,
        });
    }

    /// A request goes (`as_remove_queued_request`).
    pub(super) fn remove(&mut self, nodes: &mut TreeNodes, rqs: &mut Requests, rq: RqId) {
        if self.next == Some(rq) {
            self.next = self.successor(nodes, rqs, rq);
        }
        self.fifo.remove(rqs, rq);
        self.sort.remove(nodes, rq);
    }

    /// Whether it is time to look at the oldest request again.
    pub(super) fn check_is_due(&mut self, now: u64, expire: u64) -> bool {
        if now.abs_diff(self.last_check) < expire {
            return false;
        }
        self.last_check = now;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_types::{BioFlags, Jiffies, Op, TaskId};

    /// Which of two sectors goes next behind `last`, whatever their order.
    fn pick(last: u64, a: u64, b: u64) -> u64 {
        let mut rqs = Requests::default();
        let mut add = |sector| {
            let rq = rqs.alloc(Op::Read, BioFlags::NONE, TaskId(0), Jiffies(0));
            rqs[rq].sector = sector;
            rq
        };
        let (a, b) = (add(a), add(b));
        let w = Waiting {
            last_sector: last,
            ..Waiting::default()
        };
        let (x, y) = (w.better(&rqs, a, b), w.better(&rqs, b, a));
        assert_eq!(x, y);
        rqs[x].sector
    }

    #[test]
    fn a10_the_better_of_two() {
        assert_eq!(pick(10_000, 10_100, 9960), 9960, "80 is nearer than 100");
        assert_eq!(pick(10_000, 10_100, 9950), 10_100, "equal: the one ahead");
        assert_eq!(pick(10_000, 10_100, 9900), 10_100);
        assert_eq!(pick(10_000, 20_000, 9000), 9000);
        assert_eq!(pick(2_000_000, 900_000, 2_000_001), 2_000_001, "wrapped");
        assert_eq!(pick(2_000_000, 900_000, 5), 5, "both wrapped: the lower");
    }

    #[test]
    fn expiry_is_looked_at_once_per_interval() {
        let mut w = Waiting::default();
        assert!(w.check_is_due(1000, 125), "long ago at first");
        assert!(!w.check_is_due(1124, 125));
        assert!(w.check_is_due(1125, 125));
        assert!(w.check_is_due(1125, 0));
    }
}
