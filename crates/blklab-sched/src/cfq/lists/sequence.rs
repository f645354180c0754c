// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists of queues whose order is made by insertion, and in which a place can
//! be found by value.
//!
//! The kernel walks plain lists to find the place for a queue. Here each list
//! is a treap by position in which every node knows the smallest value below
//! it, so the last or first element with a smaller value is found in
//! logarithmic time. All lists share one table of nodes, beside the queues;
//! nothing is allocated per operation.

use crate::queue_id::QueueId;
use blklab_types::IdVec;

/// Name of an element.
type Id = QueueId;

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    value: u64,
    /// Smallest value of the node and everything below it.
    min: u64,
    prio: u64,
    parent: Option<Id>,
    left: Option<Id>,
    right: Option<Id>,
    prev: Option<Id>,
    next: Option<Id>,
}

/// The nodes of all lists.
#[derive(Clone, Debug, Default)]
pub(super) struct Nodes {
    nodes: IdVec<QueueId, Node>,
    nr_inserted: u64,
}

impl Nodes {
    fn at(&self, id: Id) -> &Node {
        &self.nodes[id]
    }

    fn at_mut(&mut self, id: Id) -> &mut Node {
        &mut self.nodes[id]
    }

    /// The element before `id`.
    pub(super) fn prev(&self, id: Id) -> Option<Id> {
        self.at(id).prev
    }

    fn min_of(&self, id: Option<Id>) -> u64 {
        id.map_or(u64::MAX, |i| self.at(i).min)
    }

    fn update_min(&mut self, id: Id) {
        let n = *self.at(id);
        let below = self.min_of(n.left).min(self.min_of(n.right));
        self.at_mut(id).min = n.value.min(below);
    }

    fn fresh(&mut self, id: Id, value: u64) {
        self.nr_inserted += 1;
        // Pseudo-random, but the same in every run.
        let mut prio = self.nr_inserted.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        prio ^= prio >> 29;
        prio = prio.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        *self.nodes.entry(id) = Node {
            value,
            min: value,
            prio,
            ..Node::default()
        };
    }
}

/// One list.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sequence {
    root: Option<Id>,
    first: Option<Id>,
    last: Option<Id>,
}

impl Sequence {
    pub(super) fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    pub(super) fn front(&self) -> Option<Id> {
        self.first
    }

    pub(super) fn back(&self) -> Option<Id> {
        self.last
    }

    /// The last element whose value is less than `limit`.
    pub(super) fn last_below(&self, t: &Nodes, limit: u64) -> Option<Id> {
        self.search(t, limit, |n| n.right, |n| n.left)
    }

    /// The first element whose value is less than `limit`.
    pub(super) fn first_below(&self, t: &Nodes, limit: u64) -> Option<Id> {
        self.search(t, limit, |n| n.left, |n| n.right)
    }

    /// Looks on the `near` side of every node first.
    fn search(
        &self,
        t: &Nodes,
        limit: u64,
        near: fn(&Node) -> Option<Id>,
        far: fn(&Node) -> Option<Id>,
    ) -> Option<Id> {
        let mut at = self.root.filter(|&r| t.at(r).min < limit)?;
        loop {
            let node = t.at(at);
            if let Some(n) = near(node)
                && t.at(n).min < limit
            {
                at = n;
            } else if node.value < limit {
                return Some(at);
            } else {
                at = far(node)?;
            }
        }
    }

    pub(super) fn push_front(&mut self, t: &mut Nodes, id: Id, value: u64) {
        self.insert_after(t, None, id, value);
    }

    pub(super) fn push_back(&mut self, t: &mut Nodes, id: Id, value: u64) {
        self.insert_after(t, self.last, id, value);
    }

    /// Inserts before `before`, which is in this list, or at the tail.
    pub(super) fn insert_before(&mut self, t: &mut Nodes, before: Option<Id>, id: Id, value: u64) {
        let after = match before {
            Some(b) => t.prev(b),
            None => self.last,
        };
        self.insert_after(t, after, id, value);
    }

    /// Inserts behind `after`, which is in this list, or at the head.
    pub(super) fn insert_after(&mut self, t: &mut Nodes, after: Option<Id>, id: Id, value: u64) {
        t.fresh(id, value);
        let next = match after {
            Some(a) => t.at_mut(a).next.replace(id),
            None => self.first.replace(id),
        };
        match next {
            Some(n) => t.at_mut(n).prev = Some(id),
            None => self.last = Some(id),
        }
        let node = t.at_mut(id);
        (node.prev, node.next) = (after, next);
        // Of two neighbours one has room on the side of the other.
        let parent = match (after, next) {
            (Some(a), _) if t.at(a).right.is_none() => {
                t.at_mut(a).right = Some(id);
                Some(a)
            }
            (_, Some(n)) => {
                t.at_mut(n).left = Some(id);
                Some(n)
            }
            _ => {
                self.root = Some(id);
                None
            }
        };
        t.at_mut(id).parent = parent;
        let mut up = parent;
        while let Some(p) = up {
            t.update_min(p);
            up = t.at(p).parent;
        }
        while let Some(p) = t.at(id).parent
            && t.at(p).prio < t.at(id).prio
        {
            self.rotate_up(t, id);
        }
    }

    /// Takes an element of this list out.
    pub(super) fn remove(&mut self, t: &mut Nodes, id: Id) {
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
            let mut up = node.parent;
            while let Some(p) = up {
                t.update_min(p);
                up = t.at(p).parent;
            }
            break;
        }
    }

    fn replace_child(&mut self, t: &mut Nodes, parent: Option<Id>, old: Id, new: Option<Id>) {
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
    fn rotate_up(&mut self, t: &mut Nodes, id: Id) {
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
        t.update_min(p);
        t.update_min(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(t: &Nodes, s: &Sequence) -> Vec<Id> {
        let mut ids = Vec::new();
        let mut at = s.front();
        while let Some(id) = at {
            ids.push(id);
            at = t.at(id).next;
        }
        ids
    }

    #[test]
    fn agrees_with_a_vector() {
        let (mut t, mut s) = (Nodes::default(), Sequence::default());
        let mut model: Vec<(Id, u64)> = Vec::new();
        let mut x = 4711_u64;
        for _ in 0..6000 {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let id = QueueId((x >> 33) as u32 % 200);
            let value = (x >> 20) % 11;
            if let Some(at) = model.iter().position(|m| m.0 == id) {
                model.remove(at);
                s.remove(&mut t, id);
            } else {
                let at = (x >> 40) as usize % (model.len() + 1);
                match x % 4 {
                    0 => {
                        s.push_front(&mut t, id, value);
                        model.insert(0, (id, value));
                    }
                    1 => {
                        s.push_back(&mut t, id, value);
                        model.push((id, value));
                    }
                    2 => {
                        let before = model.get(at).map(|m| m.0);
                        s.insert_before(&mut t, before, id, value);
                        model.insert(at, (id, value));
                    }
                    _ => {
                        let after = at.checked_sub(1).map(|i| model[i].0);
                        s.insert_after(&mut t, after, id, value);
                        model.insert(at, (id, value));
                    }
                }
            }
            assert_eq!(walk(&t, &s), model.iter().map(|m| m.0).collect::<Vec<_>>());
            assert_eq!(s.back(), model.last().map(|m| m.0));
            assert_eq!(s.is_empty(), model.is_empty());
            for limit in [0, 3, 7, u64::MAX] {
                let below = |m: &&(Id, u64)| m.1 < limit;
                assert_eq!(
                    s.first_below(&t, limit),
                    model.iter().find(below).map(|m| m.0)
                );
                assert_eq!(
                    s.last_below(&t, limit),
                    model.iter().rev().find(below).map(|m| m.0)
                );
            }
        }
    }
}
