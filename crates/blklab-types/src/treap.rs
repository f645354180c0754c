// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ordered lists in which a place is found in logarithmic time.
//!
//! A list is a treap by position. The nodes of all lists lie in one table beside the
//! things that are listed, so any number of lists share it and nothing is allocated per
//! operation. Node priorities come from a counter through a mixing function: the shape,
//! and so the cost, is the same in every run. Neighbours are linked, so stepping is
//! constant.

use crate::table::{Id, IdVec};

/// What a node says, by which its list is searched.
pub trait Key: Copy + Default {
    /// Whether a node's key also says something of those below it.
    const SUMS: bool;

    /// Brings up to date what a node's key says of those below it, from the keys of its
    /// children.
    fn sum(&mut self, left: Option<&Self>, right: Option<&Self>);
}

/// A number alone.
impl Key for u64 {
    const SUMS: bool = false;

    #[inline]
    fn sum(&mut self, _left: Option<&u64>, _right: Option<&u64>) {}
}

/// A thing's place in the list that it is in.
#[derive(Clone, Copy, Debug)]
pub struct Node<I, K> {
    /// What it was inserted with, and says of what is below.
    pub key: K,
    prio: u64,
    parent: Option<I>,
    /// The first below it, in front of it in the list.
    pub left: Option<I>,
    /// The first below it, behind it in the list.
    pub right: Option<I>,
    prev: Option<I>,
    next: Option<I>,
}

impl<I, K: Default> Default for Node<I, K> {
    fn default() -> Node<I, K> {
        Node {
            key: K::default(),
            prio: 0,
            parent: None,
            left: None,
            right: None,
            prev: None,
            next: None,
        }
    }
}

/// The nodes of all lists, by thing.
#[derive(Clone, Debug)]
pub struct Nodes<I, K> {
    nodes: IdVec<I, Node<I, K>>,
    nr_inserted: u64,
}

impl<I, K> Default for Nodes<I, K> {
    fn default() -> Nodes<I, K> {
        Nodes {
            nodes: IdVec::default(),
            nr_inserted: 0,
        }
    }
}

impl<I: Id + PartialEq, K: Key> Nodes<I, K> {
    /// The node of a thing that is in a list.
    #[inline]
    pub fn at(&self, id: I) -> &Node<I, K> {
        &self.nodes[id]
    }

    /// The thing before one that is in a list.
    #[inline]
    pub fn prev(&self, id: I) -> Option<I> {
        self.at(id).prev
    }

    /// The thing behind one that is in a list.
    #[inline]
    pub fn next(&self, id: I) -> Option<I> {
        self.at(id).next
    }

    #[inline]
    fn at_mut(&mut self, id: I) -> &mut Node<I, K> {
        &mut self.nodes[id]
    }

    fn fresh(&mut self, id: I, key: K) {
        self.nr_inserted += 1;
        // Pseudo-random, but the same in every run.
        let mut prio = self.nr_inserted.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        prio ^= prio >> 29;
        prio = prio.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        *self.nodes.entry(id) = Node {
            key,
            prio,
            ..Node::default()
        };
    }

    fn sum(&mut self, id: I) {
        if K::SUMS {
            let node = *self.at(id);
            let mut key = node.key;
            let below = |child: Option<I>| child.map(|c| &self.at(c).key);
            key.sum(below(node.left), below(node.right));
            self.at_mut(id).key = key;
        }
    }

    /// Sums what a node's change below means for it and all above it.
    fn sum_up(&mut self, from: Option<I>) {
        if K::SUMS {
            let mut up = from;
            while let Some(id) = up {
                self.sum(id);
                up = self.at(id).parent;
            }
        }
    }
}

/// Where a thing goes: below a node that has no child on that side.
#[derive(Clone, Copy, Debug)]
pub struct Gap<I> {
    parent: Option<I>,
    left: bool,
    prev: Option<I>,
    next: Option<I>,
}

/// One list.
#[derive(Clone, Copy, Debug)]
pub struct Treap<I> {
    root: Option<I>,
    first: Option<I>,
    last: Option<I>,
}

impl<I> Default for Treap<I> {
    fn default() -> Treap<I> {
        Treap {
            root: None,
            first: None,
            last: None,
        }
    }
}

impl<I: Id + PartialEq> Treap<I> {
    /// Whether there is nothing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// The first thing.
    #[inline]
    pub fn first(&self) -> Option<I> {
        self.first
    }

    /// The last thing.
    #[inline]
    pub fn last(&self) -> Option<I> {
        self.last
    }

    /// The thing from which everything else is found by going left and right.
    #[inline]
    pub fn root(&self) -> Option<I> {
        self.root
    }

    /// The place before the first thing whose key `is_behind`, as it is for all that
    /// follow that one.
    #[inline]
    pub fn gap_before<K: Key>(&self, t: &Nodes<I, K>, is_behind: impl Fn(&K) -> bool) -> Gap<I> {
        let mut gap = Gap {
            parent: None,
            left: false,
            prev: None,
            next: None,
        };
        let mut at = self.root;
        while let Some(id) = at {
            let node = t.at(id);
            gap.parent = Some(id);
            gap.left = is_behind(&node.key);
            at = if gap.left {
                gap.next = Some(id);
                node.left
            } else {
                gap.prev = Some(id);
                node.right
            };
        }
        gap
    }

    /// The place behind a thing of this list, or at the head.
    #[inline]
    pub fn gap_after<K: Key>(&self, t: &Nodes<I, K>, prev: Option<I>) -> Gap<I> {
        let next = match prev {
            Some(p) => t.at(p).next,
            None => self.first,
        };
        // Of two neighbours one has room on the side of the other.
        let (parent, left) = match (prev, next) {
            (Some(p), _) if t.at(p).right.is_none() => (prev, false),
            (_, Some(_)) => (next, true),
            _ => (None, false),
        };
        Gap {
            parent,
            left,
            prev,
            next,
        }
    }

    /// Inserts a thing that is in no list at a place of this one. Logarithmic in its
    /// length.
    pub fn insert<K: Key>(&mut self, t: &mut Nodes<I, K>, id: I, key: K, gap: Gap<I>) {
        let Gap {
            parent,
            left,
            prev,
            next,
        } = gap;
        t.fresh(id, key);
        match parent {
            None => self.root = Some(id),
            Some(p) if left => t.at_mut(p).left = Some(id),
            Some(p) => t.at_mut(p).right = Some(id),
        }
        let node = t.at_mut(id);
        (node.parent, node.prev, node.next) = (parent, prev, next);
        match prev {
            Some(p) => t.at_mut(p).next = Some(id),
            None => self.first = Some(id),
        }
        match next {
            Some(n) => t.at_mut(n).prev = Some(id),
            None => self.last = Some(id),
        }
        t.sum_up(parent);
        while let Some(p) = t.at(id).parent
            && t.at(p).prio < t.at(id).prio
        {
            self.rotate_up(t, id);
        }
    }

    /// Removes a thing that is in this list.
    pub fn remove<K: Key>(&mut self, t: &mut Nodes<I, K>, id: I) {
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
            t.sum_up(node.parent);
            break;
        }
    }

    fn replace_child<K: Key>(
        &mut self,
        t: &mut Nodes<I, K>,
        parent: Option<I>,
        old: I,
        new: Option<I>,
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
    fn rotate_up<K: Key>(&mut self, t: &mut Nodes<I, K>, id: I) {
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
        t.sum(p);
        t.sum(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number, and the sum of those below and its own.
    #[derive(Clone, Copy, Debug, Default)]
    struct Sum {
        own: u64,
        all: u64,
    }

    impl Key for Sum {
        const SUMS: bool = true;

        fn sum(&mut self, left: Option<&Sum>, right: Option<&Sum>) {
            let below = |child: Option<&Sum>| child.map_or(0, |c| c.all);
            self.all = self.own + below(left) + below(right);
        }
    }

    /// Things below one, of which each is its parent's child and has a lower priority;
    /// their number and the sum of their keys.
    fn check(t: &Nodes<u32, Sum>, id: Option<u32>, parent: Option<u32>) -> (usize, u64) {
        let Some(id) = id else { return (0, 0) };
        let node = t.at(id);
        assert_eq!(node.parent, parent);
        assert!(parent.is_none_or(|p| t.at(p).prio >= node.prio));
        let (left, right) = (
            check(t, node.left, Some(id)),
            check(t, node.right, Some(id)),
        );
        let all = left.1 + node.key.own + right.1;
        assert_eq!(node.key.all, all);
        (left.0 + 1 + right.0, all)
    }

    #[test]
    fn agrees_with_vectors_and_sums_what_is_below() {
        let mut t = Nodes::default();
        let mut lists = [Treap::default(); 3];
        let mut models: [Vec<u32>; 3] = Default::default();
        let mut x = 4711_u64;
        for _ in 0..5000 {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let (id, own) = ((x >> 33) as u32 % 300, (x >> 20) % 1000);
            let nth = id as usize % 3;
            let (list, model) = (&mut lists[nth], &mut models[nth]);
            if let Some(at) = model.iter().position(|m| *m == id) {
                model.remove(at);
                list.remove(&mut t, id);
            } else {
                let at = (x >> 40) as usize % (model.len() + 1);
                let gap = list.gap_after(&t, at.checked_sub(1).map(|i| model[i]));
                list.insert(&mut t, id, Sum { own, all: own }, gap);
                model.insert(at, id);
            }
            let mut walked = Vec::new();
            let mut at = list.first();
            while let Some(id) = at {
                assert_eq!(t.at(id).prev, walked.last().copied());
                walked.push(id);
                at = t.at(id).next;
            }
            assert_eq!(walked, *model);
            assert_eq!(list.last(), model.last().copied());
            assert_eq!(list.is_empty(), model.is_empty());
            assert_eq!(check(&t, list.root(), None).0, model.len());
        }
    }

    #[test]
    fn equal_keys_stay_in_order_of_insertion() {
        let (mut t, mut list) = (Nodes::default(), Treap::default());
        let keys = [5_u64, 3, 5, 1, 3, 5];
        for (id, key) in (0_u32..).zip(keys) {
            let gap = list.gap_before(&t, |k| key < *k);
            list.insert(&mut t, id, key, gap);
        }
        let mut at = list.first();
        let walked = std::iter::from_fn(|| {
            let id = at?;
            at = t.at(id).next;
            Some(id)
        });
        assert_eq!(walked.collect::<Vec<_>>(), [3, 1, 4, 0, 2, 5]);
    }
}
