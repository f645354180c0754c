// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests sorted by start sector (`elv_rb`), for schedulers.
//!
//! Any number of trees (one per process in CFQ) share one table of nodes beside the
//! requests ([`treap`]); nothing is allocated per request.

use crate::RqId;
use blklab_types::treap::{self, Treap};

/// The nodes of all trees of a scheduler, by request.
#[derive(Clone, Debug, Default)]
pub struct TreeNodes(treap::Nodes<RqId, u64>);

impl TreeNodes {
    /// The request behind `id` in its tree.
    pub fn next(&self, id: RqId) -> Option<RqId> {
        self.0.next(id)
    }

    /// The request before `id` in its tree.
    pub fn prev(&self, id: RqId) -> Option<RqId> {
        self.0.prev(id)
    }

    /// The sector `id` was inserted with.
    pub fn sector(&self, id: RqId) -> u64 {
        self.0.at(id).key
    }
}

/// One tree. Equal sectors stay in order of insertion.
#[derive(Clone, Copy, Debug, Default)]
pub struct SectorTree {
    treap: Treap<RqId>,
    len: u32,
}

impl SectorTree {
    /// Whether there is no request.
    pub fn is_empty(&self) -> bool {
        self.treap.is_empty()
    }

    /// Number of requests.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// The request with the lowest sector.
    pub fn first(&self) -> Option<RqId> {
        self.treap.first()
    }

    /// The request with the highest sector.
    pub fn last(&self) -> Option<RqId> {
        self.treap.last()
    }

    /// Inserts a request behind all with the same or a lower sector.
    /// Logarithmic in the size of the tree.
    pub fn insert(&mut self, t: &mut TreeNodes, id: RqId, sector: u64) {
        let gap = self.treap.gap_before(&t.0, |other| sector < *other);
        self.treap.insert(&mut t.0, id, sector, gap);
        self.len += 1;
    }

    /// Removes a request that is in this tree.
    pub fn remove(&mut self, t: &mut TreeNodes, id: RqId) {
        self.treap.remove(&mut t.0, id);
        self.len -= 1;
    }

    /// A request that starts exactly at `sector`, the oldest of several.
    pub fn find(&self, t: &TreeNodes, sector: u64) -> Option<RqId> {
        let found = self.lower_bound(t, sector)?;
        (t.sector(found) == sector).then_some(found)
    }

    /// The first request at or behind `sector`.
    pub fn lower_bound(&self, t: &TreeNodes, sector: u64) -> Option<RqId> {
        let (mut at, mut found) = (self.treap.root(), None);
        while let Some(id) = at {
            let node = t.0.at(id);
            at = if sector <= node.key {
                found = Some(id);
                node.left
            } else {
                node.right
            };
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_sorted_vector() {
        let (mut t, mut tree) = (TreeNodes::default(), SectorTree::default());
        let mut model: Vec<(u64, u64, RqId)> = Vec::new();
        let mut x = 12345_u64;
        for step in 0..4000_u64 {
            x = x
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let id = RqId((x >> 33) as u32 % 300);
            if let Some(at) = model.iter().position(|m| m.2 == id) {
                model.remove(at);
                tree.remove(&mut t, id);
            } else {
                let sector = (x >> 20) % 97;
                model.push((sector, step, id));
                model.sort_unstable();
                tree.insert(&mut t, id, sector);
            }
            let mut walked = Vec::new();
            let mut at = tree.first();
            while let Some(id) = at {
                walked.push(id);
                at = t.next(id);
            }
            assert_eq!(walked, model.iter().map(|m| m.2).collect::<Vec<_>>());
            assert_eq!(tree.len() as usize, model.len());
            assert_eq!(tree.last(), model.last().map(|m| m.2));
            let probe = x % 97;
            assert_eq!(
                tree.find(&t, probe),
                model.iter().find(|m| m.0 == probe).map(|m| m.2)
            );
            assert_eq!(
                tree.lower_bound(&t, probe),
                model.iter().find(|m| m.0 >= probe).map(|m| m.2)
            );
        }
    }
}
