// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests sorted by start sector (`elv_rb`), for schedulers.
//!
//! A treap whose nodes live in one table beside the requests, so any number
//! of trees (one per process in CFQ) share it and nothing is allocated per
//! request. Node priorities come from a counter through a mixing function:
//! the shape, and so the cost, is the same in every run. Neighbours are
//! linked, so stepping is constant.

use crate::RqId;
use blklab_types::IdVec;

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    sector: u64,
    prio: u64,
    parent: Option<RqId>,
    left: Option<RqId>,
    right: Option<RqId>,
    prev: Option<RqId>,
    next: Option<RqId>,
}

/// The nodes of all trees of a scheduler, by request.
#[derive(Clone, Debug, Default)]
pub struct TreeNodes {
    nodes: IdVec<RqId, Node>,
    nr_inserted: u64,
}

impl TreeNodes {
    fn at(&self, id: RqId) -> &Node {
        &self.nodes[id]
    }

    fn at_mut(&mut self, id: RqId) -> &mut Node {
        &mut self.nodes[id]
    }

    /// The request behind `id` in its tree.
    pub fn next(&self, id: RqId) -> Option<RqId> {
        self.at(id).next
    }

    /// The request before `id` in its tree.
    pub fn prev(&self, id: RqId) -> Option<RqId> {
        self.at(id).prev
    }

    /// The sector `id` was inserted with.
    pub fn sector(&self, id: RqId) -> u64 {
        self.at(id).sector
    }
}

/// One tree. Equal sectors stay in order of insertion.
#[derive(Clone, Copy, Debug, Default)]
pub struct SectorTree {
    root: Option<RqId>,
    first: Option<RqId>,
    last: Option<RqId>,
    len: u32,
}

impl SectorTree {
    /// Whether there is no request.
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Number of requests.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// The request with the lowest sector.
    pub fn first(&self) -> Option<RqId> {
        self.first
    }

    /// The request with the highest sector.
    pub fn last(&self) -> Option<RqId> {
        self.last
    }

    /// Inserts a request behind all with the same or a lower sector.
    /// Logarithmic in the size of the tree.
    pub fn insert(&mut self, t: &mut TreeNodes, id: RqId, sector: u64) {
        t.nr_inserted += 1;
        let mut prio = t.nr_inserted.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        prio ^= prio >> 29;
        prio = prio.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        *t.nodes.entry(id) = Node {
            sector,
            prio,
            ..Node::default()
        };

        let (mut parent, mut left_side) = (None, false);
        let (mut prev, mut next) = (None, None);
        let mut at = self.root;
        while let Some(p) = at {
            parent = Some(p);
            // The newest goes behind its equals.
            left_side = sector < t.at(p).sector;
            at = if left_side {
                next = Some(p);
                t.at(p).left
            } else {
                prev = Some(p);
                t.at(p).right
            };
        }
        match parent {
            None => self.root = Some(id),
            Some(p) if left_side => t.at_mut(p).left = Some(id),
            Some(p) => t.at_mut(p).right = Some(id),
        }
        let node = t.at_mut(id);
        node.parent = parent;
        node.prev = prev;
        node.next = next;
        match prev {
            Some(p) => t.at_mut(p).next = Some(id),
            None => self.first = Some(id),
        }
        match next {
            Some(n) => t.at_mut(n).prev = Some(id),
            None => self.last = Some(id),
        }
        while let Some(p) = t.at(id).parent
            && t.at(p).prio < t.at(id).prio
        {
            self.rotate_up(t, id);
        }
        self.len += 1;
    }

    /// Removes a request that is in this tree.
    pub fn remove(&mut self, t: &mut TreeNodes, id: RqId) {
        loop {
            let node = *t.at(id);
            let child = match (node.left, node.right) {
                (Some(l), Some(r)) => {
                    let up = if t.at(l).prio > t.at(r).prio { l } else { r };
                    self.rotate_up(t, up);
                    continue;
                }
                (l, r) => l.or(r),
            };
            self.replace_child(t, node.parent, id, child);
            match node.prev {
                Some(p) => t.at_mut(p).next = node.next,
                None => self.first = node.next,
            }
            match node.next {
                Some(n) => t.at_mut(n).prev = node.prev,
                None => self.last = node.prev,
            }
            break;
        }
        self.len -= 1;
    }

    /// A request that starts exactly at `sector`, the oldest of several.
    pub fn find(&self, t: &TreeNodes, sector: u64) -> Option<RqId> {
        let (mut at, mut found) = (self.root, None);
        while let Some(id) = at {
            let node = t.at(id);
            if sector <= node.sector {
                if sector == node.sector {
                    found = Some(id);
                }
                at = node.left;
            } else {
                at = node.right;
            }
        }
        found
    }

    /// The first request at or behind `sector`.
    pub fn lower_bound(&self, t: &TreeNodes, sector: u64) -> Option<RqId> {
        let (mut at, mut found) = (self.root, None);
        while let Some(id) = at {
            if sector <= t.at(id).sector {
                found = Some(id);
                at = t.at(id).left;
            } else {
                at = t.at(id).right;
            }
        }
        found
    }

    fn replace_child(
        &mut self,
        t: &mut TreeNodes,
        parent: Option<RqId>,
        old: RqId,
        new: Option<RqId>,
    ) {
        match parent {
            None => self.root = new,
            Some(p) if t.at(p).left == Some(old) => t.at_mut(p).left = new,
            Some(p) => t.at_mut(p).right = new,
        }
        if let Some(n) = new {
            t.at_mut(n).parent = parent;
        }
    }

    /// Lifts `id` above its parent.
    fn rotate_up(&mut self, t: &mut TreeNodes, id: RqId) {
        let Some(p) = t.at(id).parent else { return };
        let grand = t.at(p).parent;
        let inner = if t.at(p).left == Some(id) {
            let inner = t.at_mut(id).right.replace(p);
            t.at_mut(p).left = inner;
            inner
        } else {
            let inner = t.at_mut(id).left.replace(p);
            t.at_mut(p).right = inner;
            inner
        };
        if let Some(i) = inner {
            t.at_mut(i).parent = Some(p);
        }
        self.replace_child(t, grand, p, Some(id));
        t.at_mut(p).parent = Some(id);
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
