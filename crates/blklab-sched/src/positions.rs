// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queues by the position of their next request, in several trees: CFQ has one
//! per level, BFQ one per group.
//!
//! A queue whose next request changes by dispatch keeps its place; the trees
//! are searched by what their queues have now. Of two close queues on both
//! sides of the head the one is taken that would be the parent of a new leaf
//! there, so the trees have the kernel's shape. block/cfq-iosched.c, 2.6.30
//! and later (`cfq_prio_tree_lookup`, `cfqq_close`); block/bfq-iosched.c, 5.10
//! and later.

use crate::queue_id::QueueId;
use crate::rbtree::{RbNodes, RbTree, Search};
use std::cmp::Ordering;

/// The trees of a device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Positions {
    trees: Vec<RbTree>,
    nodes: RbNodes,
}

impl Positions {
    /// Files a queue by its sector, unless another has the same: that one is
    /// told. `sector_of` tells where the next request of a queue begins.
    pub(crate) fn insert(
        &mut self,
        id: QueueId,
        tree: impl Into<usize>,
        sector: u64,
        sector_of: impl Fn(QueueId) -> u64,
    ) -> Result<(), QueueId> {
        let tree = tree.into();
        if self.trees.len() <= tree {
            self.trees.resize(tree + 1, RbTree::default());
        }
        let tree = &mut self.trees[tree];
        let way = |at: u32| sector.cmp(&sector_of(QueueId(at)));
        match tree.search(&self.nodes, way) {
            Search::Found(at) => Err(QueueId(at)),
            Search::Leaf(parent, side) => {
                tree.insert_at(&mut self.nodes, id.0, (), parent, side);
                Ok(())
            }
        }
    }

    /// Takes a queue out of a tree.
    pub(crate) fn remove(&mut self, id: QueueId, tree: impl Into<usize>) {
        self.trees[tree.into()].remove(&mut self.nodes, id.0);
    }

    /// Whether no queue is filed in a tree.
    pub(crate) fn is_empty(&self, tree: impl Into<usize>) -> bool {
        self.trees.get(tree.into()).is_none_or(|t| t.len() == 0)
    }

    /// The queue whose next request is at `sector`, or else one of its
    /// neighbours if it is close.
    pub(crate) fn closest(
        &self,
        tree: impl Into<usize>,
        sector: u64,
        sector_of: impl Fn(QueueId) -> u64,
        is_close: impl Fn(u64) -> bool,
    ) -> Option<QueueId> {
        let sector_at = |at: u32| sector_of(QueueId(at));
        let tree = self.trees.get(tree.into())?;
        let parent = match tree.search(&self.nodes, |at| sector.cmp(&sector_at(at))) {
            Search::Found(at) => return Some(QueueId(at)),
            Search::Leaf(parent, _) => parent?,
        };
        if is_close(sector_at(parent)) {
            return Some(QueueId(parent));
        }
        let neighbour = match sector_at(parent).cmp(&sector) {
            Ordering::Less => self.nodes.next(parent),
            _ => self.nodes.prev(parent),
        };
        neighbour.filter(|&at| is_close(sector_at(at))).map(QueueId)
    }
}
