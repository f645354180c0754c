// SPDX-License-Identifier: MIT OR Apache-2.0
//! The waiting requests of a queue, the same in every release: by sector, by age, and
//! the one that is next.

use blklab_block::sq::Core;
use blklab_block::{List, Requests, RqId, SectorTree, TreeNodes};
use blklab_types::Bio;

/// Requests that wait in a queue (`sort_list`, `fifo`, `next_rq` of
/// `struct cfq_queue`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waiting {
    /// By sector.
    pub(super) sort: SectorTree,
    /// By age.
    pub(super) fifo: List,
    /// The preferred next one.
    pub(super) next_rq: Option<RqId>,
}

impl Waiting {
    /// Whether no request waits.
    pub(super) fn is_empty(&self) -> bool {
        self.sort.is_empty()
    }

    /// The device has no request any more: none waits.
    pub(super) fn check_conservation(&self) {
        assert!(
            self.sort.is_empty() && self.fifo.is_empty(),
            "a request is gone that waits in a queue"
        );
    }

    /// Who may follow a request (`cfq_find_next_rq`): the one behind it, from the
    /// upper end on the first, and the one before it.
    pub(super) fn neighbours(&self, nodes: &TreeNodes, rq: RqId) -> [Option<RqId>; 2] {
        let first = || self.sort.first().filter(|&first| first != rq);
        [nodes.next(rq).or_else(first), nodes.prev(rq)]
    }

    /// Where the preferred next one begins; 0 if there is none.
    pub(super) fn next_sector(&self, rqs: &Requests) -> u64 {
        self.next_rq.map_or(0, |rq| rqs[rq].sector)
    }

    /// Takes a request out.
    pub(super) fn remove(&mut self, nodes: &mut TreeNodes, rqs: &mut Requests, rq: RqId) {
        self.fifo.remove(rqs, rq);
        self.sort.remove(nodes, rq);
    }

    /// The request that a bio fits in front of (`cfq_find_rq_fmerge`).
    pub(super) fn front_merge(&self, nodes: &TreeNodes, q: &Core, bio: &Bio) -> Option<RqId> {
        let rq = self.sort.find(nodes, bio.end())?;
        q.merge_ok(rq, bio).then_some(rq)
    }
}
