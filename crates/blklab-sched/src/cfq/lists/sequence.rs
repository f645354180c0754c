// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists of queues whose order is made by insertion, and in which a place can
//! be found by value.
//!
//! The kernel walks plain lists to find the place for a queue. Here each list
//! is a [`treap`] in which every node knows the smallest value
//! below it, so the last or first element with a smaller value is found in
//! logarithmic time. All lists share one table of nodes, beside the queues;
//! nothing is allocated per operation.

use crate::queue_id::QueueId;
use blklab_types::treap::{self, Key, Node, Treap};

/// Name of an element.
type Id = QueueId;

/// The value of an element.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Value {
    own: u64,
    /// Smallest value of the element and everything below it.
    min: u64,
}

impl Key for Value {
    const SUMS: bool = true;

    fn sum(&mut self, left: Option<&Value>, right: Option<&Value>) {
        let min = |below: Option<&Value>| below.map_or(u64::MAX, |v| v.min);
        self.min = self.own.min(min(left)).min(min(right));
    }
}

/// The nodes of all lists.
pub(super) type Nodes = treap::Nodes<QueueId, Value>;

/// One list.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sequence(Treap<Id>);

impl Sequence {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn front(&self) -> Option<Id> {
        self.0.first()
    }

    pub(super) fn back(&self) -> Option<Id> {
        self.0.last()
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
        near: fn(&Node<Id, Value>) -> Option<Id>,
        far: fn(&Node<Id, Value>) -> Option<Id>,
    ) -> Option<Id> {
        let mut at = self.0.root().filter(|&r| t.at(r).key.min < limit)?;
        loop {
            let node = t.at(at);
            if let Some(n) = near(node)
                && t.at(n).key.min < limit
            {
                at = n;
            } else if node.key.own < limit {
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
        self.insert_after(t, self.back(), id, value);
    }

    /// Inserts before `before`, which is in this list, or at the tail.
    pub(super) fn insert_before(&mut self, t: &mut Nodes, before: Option<Id>, id: Id, value: u64) {
        let after = match before {
            Some(b) => t.prev(b),
            None => self.back(),
        };
        self.insert_after(t, after, id, value);
    }

    /// Inserts behind `after`, which is in this list, or at the head.
    pub(super) fn insert_after(&mut self, t: &mut Nodes, after: Option<Id>, id: Id, value: u64) {
        let gap = self.0.gap_after(t, after);
        let (own, min) = (value, value);
        self.0.insert(t, id, Value { own, min }, gap);
    }

    /// Takes an element of this list out.
    pub(super) fn remove(&mut self, t: &mut Nodes, id: Id) {
        self.0.remove(t, id);
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
            at = t.next(id);
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
