// SPDX-License-Identifier: MIT OR Apache-2.0
//! Busy queues by the position of their next request, one tree per level.
//!
//! A queue whose next request changes by dispatch keeps its place; the trees
//! are searched by what their queues have now. Of two close queues on both
//! sides of the head the one is taken that would be the parent of a new leaf
//! there, so the trees have the kernel's shape. block/cfq-iosched.c, 2.6.30
//! and later (`cfq_prio_tree_lookup`, `cfqq_close`).

use super::rbtree::{RbNodes, RbTree, Search};
use super::slots::QueueId;
use std::cmp::Ordering;

const LEVELS: usize = 8;

/// The trees of a device.
#[derive(Clone, Debug, Default)]
pub(super) struct Positions {
    levels: [RbTree; LEVELS],
    nodes: RbNodes,
}

impl Positions {
    /// Files a queue by its sector; false if another has the same. `sector_of`
    /// tells where the next request of a queue begins.
    pub(super) fn insert(
        &mut self,
        id: QueueId,
        level: u8,
        sector: u64,
        sector_of: impl Fn(QueueId) -> u64,
    ) -> bool {
        let tree = &mut self.levels[usize::from(level)];
        let way = |at: u32| sector.cmp(&sector_of(QueueId(at)));
        match tree.search(&self.nodes, way) {
            Search::Found(_) => false,
            Search::Leaf(parent, side) => {
                tree.insert_at(&mut self.nodes, id.0, parent, side);
                true
            }
        }
    }

    /// Takes a queue out of the tree of a level.
    pub(super) fn remove(&mut self, id: QueueId, level: u8) {
        self.levels[usize::from(level)].remove(&mut self.nodes, id.0);
    }

    /// The queue whose next request is at `sector`, or else one of its
    /// neighbours if it is close.
    pub(super) fn closest(
        &self,
        level: u8,
        sector: u64,
        sector_of: impl Fn(QueueId) -> u64,
        is_close: impl Fn(u64) -> bool,
    ) -> Option<QueueId> {
        let of = |at: u32| sector_of(QueueId(at));
        let tree = &self.levels[usize::from(level)];
        let parent = match tree.search(&self.nodes, |at| sector.cmp(&of(at))) {
            Search::Found(at) => return Some(QueueId(at)),
            Search::Leaf(parent, _) => parent?,
        };
        if is_close(of(parent)) {
            return Some(QueueId(parent));
        }
        let neighbour = match of(parent).cmp(&sector) {
            Ordering::Less => self.nodes.next(parent),
            _ => self.nodes.prev(parent),
        };
        neighbour.filter(|&at| is_close(of(at))).map(QueueId)
    }
}
