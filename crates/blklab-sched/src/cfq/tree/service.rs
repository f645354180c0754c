// SPDX-License-Identifier: MIT OR Apache-2.0
//! The service tree: busy queues in the order in which they are served.
//!
//! The tree made for requests does not care what its numbers name, so queues
//! use it with their own.

use super::queue::{QueueId, Queues};
use blklab_block::{RqId, SectorTree, TreeNodes};
use blklab_types::PrioClass;

fn node(q: QueueId) -> RqId {
    RqId(q.0)
}

fn queue(id: RqId) -> QueueId {
    QueueId(id.0)
}

/// Place of a class: real time first, the idle class last.
fn rank(class: PrioClass) -> u8 {
    match class {
        PrioClass::RealTime => 0,
        PrioClass::BestEffort | PrioClass::None => 1,
        PrioClass::Idle => 2,
    }
}

/// Busy queues by class and key; equal keys in order of filing.
#[derive(Clone, Debug, Default)]
pub(super) struct ServiceTree {
    ranks: [SectorTree; 3],
    nodes: TreeNodes,
    /// Added to keys so that comparing them respects wrapping.
    bias: u64,
}

impl ServiceTree {
    /// `wraps`: keys are compared by the sign of their difference.
    pub(super) fn new(wraps: bool) -> ServiceTree {
        ServiceTree {
            bias: if wraps { 1 << 63 } else { 0 },
            ..ServiceTree::default()
        }
    }

    /// Files a queue by its class and key. It must not be filed.
    pub(super) fn insert(&mut self, queues: &mut Queues, q: QueueId) {
        let x = &mut queues[q];
        let rank = rank(x.prio.now.class);
        x.filed = Some(rank);
        let key = x.rb_key.wrapping_add(self.bias);
        self.ranks[usize::from(rank)].insert(&mut self.nodes, node(q), key);
    }

    /// Takes a queue out, if it is filed.
    pub(super) fn remove(&mut self, queues: &mut Queues, q: QueueId) {
        if let Some(rank) = queues[q].filed.take() {
            self.ranks[usize::from(rank)].remove(&mut self.nodes, node(q));
        }
    }

    /// The next to be served.
    pub(super) fn first(&self) -> Option<QueueId> {
        self.ranks.iter().find_map(SectorTree::first).map(queue)
    }

    /// The last to be served.
    pub(super) fn last(&self) -> Option<QueueId> {
        self.ranks
            .iter()
            .rev()
            .find_map(SectorTree::last)
            .map(queue)
    }
}
