// SPDX-License-Identifier: MIT OR Apache-2.0
//! Red-black trees of numbered things.
//!
//! Nodes live in one table per kind of thing, so a tree allocates nothing per
//! operation. The shape is visible in one rule of CFQ (which neighbour of a
//! position is looked at first), so these are the textbook algorithms that
//! Linux follows too, not just any balanced tree.
//!
//! A node may carry a value of which every node knows the lowest in its
//! subtree ([`Low`]).

const NIL: u32 = u32::MAX;

/// A value of which trees keep the minimum of every subtree; `()` is none.
pub(crate) trait Low: Copy + Default {
    /// The lower of two.
    #[must_use]
    fn lower(self, other: Self) -> Self;
}

impl Low for () {
    fn lower(self, (): ()) {}
}

#[derive(Clone, Copy, Debug)]
struct Node<L> {
    parent: u32,
    child: [u32; 2],
    red: bool,
    /// The node's own value, and the lowest in the subtree below and with it.
    own: L,
    low: L,
}

/// The nodes of all trees of one kind, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct RbNodes<L = ()> {
    nodes: Vec<Node<L>>,
}

/// Side of a parent: left 0, right 1.
const LEFT: usize = 0;
const RIGHT: usize = 1;

/// One tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RbTree {
    root: u32,
    first: u32,
    len: u32,
}

impl Default for RbTree {
    fn default() -> RbTree {
        RbTree {
            root: NIL,
            first: NIL,
            len: 0,
        }
    }
}

fn unless_nil(n: u32) -> Option<u32> {
    (n != NIL).then_some(n)
}

impl<L: Low> Node<L> {
    fn free() -> Node<L> {
        Node {
            parent: NIL,
            child: [NIL; 2],
            red: false,
            own: L::default(),
            low: L::default(),
        }
    }
}

impl<L: Low> RbNodes<L> {
    fn at(&self, n: u32) -> &Node<L> {
        &self.nodes[n as usize]
    }

    fn at_mut(&mut self, n: u32) -> &mut Node<L> {
        &mut self.nodes[n as usize]
    }

    /// The lowest value in the subtree of `n`.
    pub(crate) fn low(&self, n: u32) -> L {
        self.at(n).low
    }

    /// The left (0) or right (1) child.
    pub(crate) fn child(&self, n: u32, side: usize) -> Option<u32> {
        unless_nil(self.at(n).child[side])
    }

    /// Looks again for the lowest value in the subtree of `n`.
    fn refresh(&mut self, n: u32) {
        let mut low = self.at(n).own;
        for child in self.at(n).child {
            if child != NIL {
                low = low.lower(self.at(child).low);
            }
        }
        self.at_mut(n).low = low;
    }

    /// The same from `n` up to the root.
    fn refresh_up(&mut self, mut n: u32) {
        while n != NIL {
            self.refresh(n);
            n = self.at(n).parent;
        }
    }

    fn is_red(&self, n: u32) -> bool {
        n != NIL && self.at(n).red
    }

    /// On which side of its parent a node hangs.
    fn side(&self, parent: u32, n: u32) -> usize {
        usize::from(self.at(parent).child[RIGHT] == n)
    }

    /// The farthest node below `n` on one side.
    fn farthest(&self, mut n: u32, side: usize) -> u32 {
        while self.at(n).child[side] != NIL {
            n = self.at(n).child[side];
        }
        n
    }

    /// The neighbour of a node in its tree's order.
    fn step(&self, mut n: u32, side: usize) -> Option<u32> {
        if self.at(n).child[side] != NIL {
            return Some(self.farthest(self.at(n).child[side], 1 - side));
        }
        loop {
            let parent = self.at(n).parent;
            if parent == NIL {
                return None;
            }
            if self.at(parent).child[side] != n {
                return Some(parent);
            }
            n = parent;
        }
    }

    /// The node behind `n`.
    pub(crate) fn next(&self, n: u32) -> Option<u32> {
        self.step(n, RIGHT)
    }

    /// The node before `n`.
    pub(crate) fn prev(&self, n: u32) -> Option<u32> {
        self.step(n, LEFT)
    }
}

impl RbTree {
    /// Number of nodes.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// The node at the top.
    pub(crate) fn root(&self) -> Option<u32> {
        unless_nil(self.root)
    }

    /// The leftmost node.
    pub(crate) fn first(&self) -> Option<u32> {
        unless_nil(self.first)
    }

    /// The rightmost node.
    pub(crate) fn last<L: Low>(&self, t: &RbNodes<L>) -> Option<u32> {
        unless_nil(self.root).map(|root| t.farthest(root, RIGHT))
    }

    /// Walks down from the root, left where `way` says less, right where it
    /// says greater: the node where it says equal, or the last one passed.
    pub(crate) fn search<L: Low>(
        &self,
        t: &RbNodes<L>,
        mut way: impl FnMut(u32) -> std::cmp::Ordering,
    ) -> Search {
        let (mut at, mut parent, mut side) = (self.root, NIL, LEFT);
        while at != NIL {
            side = match way(at) {
                std::cmp::Ordering::Equal => return Search::Found(at),
                std::cmp::Ordering::Less => LEFT,
                std::cmp::Ordering::Greater => RIGHT,
            };
            parent = at;
            at = t.at(at).child[side];
        }
        Search::Leaf(unless_nil(parent), side)
    }

    /// Inserts `n`, which is in no tree, left of every node on its way for
    /// which `is_before` holds.
    pub(crate) fn insert<L: Low>(
        &mut self,
        t: &mut RbNodes<L>,
        n: u32,
        own: L,
        mut is_before: impl FnMut(u32) -> bool,
    ) {
        let way = |at: u32| {
            if is_before(at) {
                std::cmp::Ordering::Less
            } else {
                std::cmp::Ordering::Greater
            }
        };
        if let Search::Leaf(parent, side) = self.search(t, way) {
            self.insert_at(t, n, own, parent, side);
        }
    }

    /// Inserts `n` at a place that [`Self::search`] found.
    pub(crate) fn insert_at<L: Low>(
        &mut self,
        t: &mut RbNodes<L>,
        n: u32,
        own: L,
        parent: Option<u32>,
        side: usize,
    ) {
        if t.nodes.len() <= n as usize {
            t.nodes.resize(n as usize + 1, Node::free());
        }
        *t.at_mut(n) = Node {
            parent: parent.unwrap_or(NIL),
            child: [NIL; 2],
            red: true,
            own,
            low: own,
        };
        match parent {
            None => {
                self.root = n;
                self.first = n;
            }
            Some(p) => {
                t.at_mut(p).child[side] = n;
                if p == self.first && side == LEFT {
                    self.first = n;
                }
            }
        }
        self.len += 1;
        t.refresh_up(t.at(n).parent);
        self.repair_red(t, n);
    }

    /// After an insertion: no red node below a red one.
    fn repair_red<L: Low>(&mut self, t: &mut RbNodes<L>, mut n: u32) {
        loop {
            let mut parent = t.at(n).parent;
            if !t.is_red(parent) {
                break;
            }
            let grand = t.at(parent).parent;
            let side = t.side(grand, parent);
            let uncle = t.at(grand).child[1 - side];
            if t.is_red(uncle) {
                t.at_mut(uncle).red = false;
                t.at_mut(parent).red = false;
                t.at_mut(grand).red = true;
                n = grand;
                continue;
            }
            if t.at(parent).child[1 - side] == n {
                self.rotate(t, parent, side);
                std::mem::swap(&mut n, &mut parent);
            }
            t.at_mut(parent).red = false;
            t.at_mut(grand).red = true;
            self.rotate(t, grand, 1 - side);
        }
        let root = self.root;
        t.at_mut(root).red = false;
    }

    /// Moves `n` down to `side`; its other child takes its place.
    fn rotate<L: Low>(&mut self, t: &mut RbNodes<L>, n: u32, side: usize) {
        let up = t.at(n).child[1 - side];
        let inner = t.at(up).child[side];
        t.at_mut(n).child[1 - side] = inner;
        if inner != NIL {
            t.at_mut(inner).parent = n;
        }
        let parent = t.at(n).parent;
        self.hang(t, parent, n, up);
        t.at_mut(up).child[side] = n;
        t.at_mut(n).parent = up;
        t.refresh(n);
        t.refresh(up);
    }

    /// Puts `new` into the place of `old` below `parent`.
    fn hang<L: Low>(&mut self, t: &mut RbNodes<L>, parent: u32, old: u32, new: u32) {
        if parent == NIL {
            self.root = new;
        } else {
            let side = t.side(parent, old);
            t.at_mut(parent).child[side] = new;
        }
        if new != NIL {
            t.at_mut(new).parent = parent;
        }
    }

    /// Removes `n`, which is in this tree.
    pub(crate) fn remove<L: Low>(&mut self, t: &mut RbNodes<L>, n: u32) {
        if self.first == n {
            self.first = t.next(n).unwrap_or(NIL);
        }
        self.len -= 1;
        let node = *t.at(n);
        let (child, parent, was_red);
        if node.child[LEFT] != NIL && node.child[RIGHT] != NIL {
            let heir = t.farthest(node.child[RIGHT], LEFT);
            child = t.at(heir).child[RIGHT];
            was_red = t.at(heir).red;
            let heir_parent = t.at(heir).parent;
            if heir_parent == n {
                parent = heir;
            } else {
                parent = heir_parent;
                self.hang(t, heir_parent, heir, child);
                t.at_mut(heir).child[RIGHT] = node.child[RIGHT];
                t.at_mut(node.child[RIGHT]).parent = heir;
            }
            self.hang(t, node.parent, n, heir);
            t.at_mut(heir).child[LEFT] = node.child[LEFT];
            t.at_mut(node.child[LEFT]).parent = heir;
            t.at_mut(heir).red = node.red;
        } else {
            child = if node.child[LEFT] == NIL {
                node.child[RIGHT]
            } else {
                node.child[LEFT]
            };
            parent = node.parent;
            was_red = node.red;
            self.hang(t, parent, n, child);
        }
        *t.at_mut(n) = Node::free();
        t.refresh_up(parent);
        if !was_red {
            self.repair_black(t, child, parent);
        }
    }

    /// After the removal of a black node above `n`: every way down is to pass
    /// as many black nodes as every other.
    fn repair_black<L: Low>(&mut self, t: &mut RbNodes<L>, mut n: u32, mut parent: u32) {
        while n != self.root && !t.is_red(n) {
            let side = t.side(parent, n);
            let mut sibling = t.at(parent).child[1 - side];
            if t.is_red(sibling) {
                t.at_mut(sibling).red = false;
                t.at_mut(parent).red = true;
                self.rotate(t, parent, side);
                sibling = t.at(parent).child[1 - side];
            }
            let (near, far) = (t.at(sibling).child[side], t.at(sibling).child[1 - side]);
            if !t.is_red(near) && !t.is_red(far) {
                t.at_mut(sibling).red = true;
                n = parent;
                parent = t.at(n).parent;
                continue;
            }
            if !t.is_red(far) {
                t.at_mut(near).red = false;
                t.at_mut(sibling).red = true;
                self.rotate(t, sibling, 1 - side);
                sibling = near;
            }
            t.at_mut(sibling).red = t.at(parent).red;
            t.at_mut(parent).red = false;
            let far = t.at(sibling).child[1 - side];
            if far != NIL {
                t.at_mut(far).red = false;
            }
            self.rotate(t, parent, side);
            n = self.root;
        }
        if n != NIL {
            t.at_mut(n).red = false;
        }
    }
}

/// What a walk from the root found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// The node that equals what was looked for.
    Found(u32),
    /// None: it would become a leaf below this node, on this side.
    Leaf(Option<u32>, usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    struct Least(u64);

    impl Low for Least {
        fn lower(self, other: Least) -> Least {
            Least(self.0.min(other.0))
        }
    }

    fn black_height(t: &RbNodes<Least>, n: u32) -> u32 {
        if n == NIL {
            return 1;
        }
        let node = t.at(n);
        let below = node.child.iter().filter(|&&c| c != NIL);
        let low = below.fold(node.own, |low, &c| low.lower(t.at(c).low));
        assert_eq!(node.low, low);
        for child in node.child {
            assert!(child == NIL || t.at(child).parent == n);
            assert!(!(node.red && t.is_red(child)), "red below red");
        }
        let heights = node.child.map(|c| black_height(t, c));
        assert_eq!(heights[0], heights[1]);
        heights[0] + u32::from(!node.red)
    }

    #[test]
    fn stays_sorted_and_balanced() {
        let (mut t, mut tree) = (RbNodes::<Least>::default(), RbTree::default());
        let mut keys = [0_u64; 200];
        let mut model: Vec<(u64, u64, u32)> = Vec::new();
        let mut x = 7_u64;
        for step in 0..6000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let n = (x >> 40) as u32 % 200;
            if let Some(at) = model.iter().position(|m| m.2 == n) {
                model.remove(at);
                tree.remove(&mut t, n);
            } else {
                keys[n as usize] = (x >> 20) % 61;
                model.push((keys[n as usize], step, n));
                model.sort_unstable();
                let key = keys[n as usize];
                tree.insert(&mut t, n, Least(x), |at| key < keys[at as usize]);
            }
            let (mut walked, mut at) = (Vec::new(), tree.first());
            while let Some(n) = at {
                walked.push(n);
                at = t.next(n);
            }
            assert_eq!(walked, model.iter().map(|m| m.2).collect::<Vec<_>>());
            assert_eq!(tree.last(&t), walked.last().copied());
            assert_eq!(tree.len() as usize, walked.len());
            if let [.., before, last] = walked[..] {
                assert_eq!(t.prev(last), Some(before));
            }
            black_height(&t, tree.root);
        }
    }
}
