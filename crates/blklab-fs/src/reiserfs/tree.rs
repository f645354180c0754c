// SPDX-License-Identifier: MIT OR Apache-2.0
//! The balanced tree: which leaf holds what, and which nodes an operation
//! touches (fs/reiserfs/{fix_node,do_balan,stree}.c, 2.6.26).
//!
//! An item that does not fit into its leaf first makes the leaf's neighbours
//! take what they can; only if that saves no node, a new one comes behind,
//! and leaves are filled from the left. A leaf whose items fit into its
//! neighbours goes. A node's size is also written in its parent, so whatever
//! changes a leaf's size touches the parent.
//!
//! Left out: a tail or an item of pointers is never cut in two to fill a leaf;
//! inner nodes are halved when they overflow and joined when both fit into
//! one.

use super::key::{Item, Key, LEAF_BYTES, used_bytes};
use std::ops::Range;

/// Children of an inner node: heads of 24, keys of 16, pointers of 8 bytes.
const MOST_CHILDREN: usize = (4096 - 24 - 8) / 24 + 1;

/// A node of the tree.
pub(super) type NodeNo = u32;

/// No node.
const NONE: NodeNo = u32::MAX;

/// New nodes that one change may need.
pub(super) const MOST_NEW_NODES: u64 = 10;

#[derive(Clone, Debug)]
enum Body {
    Leaf(Vec<Item>),
    /// Children, each with the least key that leads to it.
    Inner(Vec<(Key, NodeNo)>),
}

#[derive(Clone, Debug)]
struct Node {
    block: u64,
    parent: NodeNo,
    /// Neighbours on the same level.
    left: NodeNo,
    right: NodeNo,
    body: Body,
}

/// What a change did to nodes, by their blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    /// Changed, in order of the first change; new ones included.
    pub(super) touched: Vec<u64>,
    pub(super) new: Vec<u64>,
    pub(super) freed: Vec<u64>,
}

impl Changes {
    fn touch(&mut self, block: u64) {
        if !self.touched.contains(&block) {
            self.touched.push(block);
        }
    }
}

/// Where nodes come from.
pub(super) trait Blocks {
    /// A block near another one.
    fn take(&mut self, near: u64) -> u64;
    /// A block is not needed any more.
    fn free(&mut self, block: u64);
}

/// The tree.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    unused: Vec<NodeNo>,
    root: NodeNo,
}

impl Tree {
    /// A tree of one empty leaf.
    pub(super) fn new(block: u64) -> Tree {
        let leaf = Node {
            block,
            parent: NONE,
            left: NONE,
            right: NONE,
            body: Body::Leaf(Vec::new()),
        };
        Tree {
            nodes: vec![leaf],
            unused: Vec::new(),
            root: 0,
        }
    }

    fn node(&self, n: NodeNo) -> &Node {
        &self.nodes[n as usize]
    }

    fn node_mut(&mut self, n: NodeNo) -> &mut Node {
        &mut self.nodes[n as usize]
    }

    fn items(&self, leaf: NodeNo) -> &[Item] {
        match &self.node(leaf).body {
            Body::Leaf(items) => items,
            Body::Inner(_) => unreachable!("items are in leaves"),
        }
    }

    fn items_mut(&mut self, leaf: NodeNo) -> &mut Vec<Item> {
        match &mut self.node_mut(leaf).body {
            Body::Leaf(items) => items,
            Body::Inner(_) => unreachable!("items are in leaves"),
        }
    }

    fn children(&self, n: NodeNo) -> &[(Key, NodeNo)] {
        match &self.node(n).body {
            Body::Inner(children) => children,
            Body::Leaf(_) => unreachable!("a leaf has no children"),
        }
    }

    fn children_mut(&mut self, n: NodeNo) -> &mut Vec<(Key, NodeNo)> {
        match &mut self.node_mut(n).body {
            Body::Inner(children) => children,
            Body::Leaf(_) => unreachable!("a leaf has no children"),
        }
    }

    // Looking ----------------------------------------------------------------

    /// The leaf where a key belongs.
    fn leaf(&self, key: Key) -> NodeNo {
        let mut n = self.root;
        while let Body::Inner(children) = &self.node(n).body {
            let after = children.partition_point(|(k, _)| *k <= key);
            n = children[after.saturating_sub(1)].1;
        }
        n
    }

    /// The block of the leaf where a key belongs.
    pub(super) fn leaf_block(&self, key: Key) -> u64 {
        self.node(self.leaf(key)).block
    }

    /// The blocks from the root to the leaf of a key (`search_by_key`).
    pub(super) fn path(&self, key: Key, out: &mut Vec<u64>) {
        let mut n = self.root;
        loop {
            out.push(self.node(n).block);
            let Body::Inner(children) = &self.node(n).body else {
                return;
            };
            let after = children.partition_point(|(k, _)| *k <= key);
            n = children[after.saturating_sub(1)].1;
        }
    }

    fn position(&self, leaf: NodeNo, key: Key) -> Result<usize, usize> {
        self.items(leaf).binary_search_by_key(&key, |i| i.key)
    }

    /// Bytes of an item, if it is there.
    pub(super) fn bytes(&self, key: Key) -> Option<u32> {
        let leaf = self.leaf(key);
        let at = self.position(leaf, key).ok()?;
        Some(u32::from(self.items(leaf)[at].bytes))
    }

    /// The key behind all items of the leaf of a key, if there is one.
    pub(super) fn next_leaf_key(&self, key: Key) -> Option<Key> {
        let right = self.node(self.leaf(key)).right;
        (right != NONE).then(|| self.items(right).first().map(|i| i.key))?
    }

    /// Leaves behind that of a key under the same parent, as long as they
    /// begin with the same object; at most so many, the key's own first.
    pub(super) fn siblings(&self, key: Key, most: usize, out: &mut Vec<u64>) {
        let leaf = self.leaf(key);
        out.push(self.node(leaf).block);
        let parent = self.node(leaf).parent;
        if parent == NONE {
            return;
        }
        let children = self.children(parent);
        let at = self.index_in_parent(leaf);
        let rest = children.iter().skip(at + 1).take(most.saturating_sub(1));
        let same = rest.take_while(|(k, _)| k.object == key.object);
        out.extend(same.map(|(_, n)| self.node(*n).block));
    }

    /// The nodes that have to be in memory to add so many bytes to the leaf of
    /// a key: its path, and its neighbours if they would be used.
    pub(super) fn needed_to_grow(&self, key: Key, more_bytes: u32, out: &mut Vec<u64>) {
        self.path(key, out);
        let leaf = self.leaf(key);
        if used_bytes(self.items(leaf)) + more_bytes > LEAF_BYTES {
            self.neighbours(leaf, out);
        }
    }

    /// The same to take bytes away.
    pub(super) fn needed_to_shrink(&self, key: Key, fewer_bytes: u32, out: &mut Vec<u64>) {
        self.path(key, out);
        let leaf = self.leaf(key);
        let left = used_bytes(self.items(leaf)).saturating_sub(fewer_bytes);
        if left <= self.free_beside(leaf) {
            self.neighbours(leaf, out);
        }
    }

    /// The blocks of a leaf's neighbours (`get_neighbors`).
    fn neighbours(&self, leaf: NodeNo, out: &mut Vec<u64>) {
        for n in [self.node(leaf).left, self.node(leaf).right] {
            if n != NONE {
                out.push(self.node(n).block);
            }
        }
    }

    fn free_beside(&self, leaf: NodeNo) -> u32 {
        let free = |n: NodeNo| match n {
            NONE => 0,
            n => LEAF_BYTES.saturating_sub(used_bytes(self.items(n))),
        };
        free(self.node(leaf).left) + free(self.node(leaf).right)
    }

    /// Leaves, and bytes used in them.
    #[cfg(test)]
    pub(super) fn fill(&self) -> (u64, u64) {
        let mut leaf = self.leaf(Key::default());
        let (mut leaves, mut bytes) = (0, 0);
        while leaf != NONE {
            leaves += 1;
            bytes += u64::from(used_bytes(self.items(leaf)));
            leaf = self.node(leaf).right;
        }
        (leaves, bytes)
    }

    // Changing ---------------------------------------------------------------

    /// Puts an item in, or gives one that is there another size
    /// (`reiserfs_insert_item`, `reiserfs_paste_into_item`).
    pub(super) fn put(&mut self, item: Item, blocks: &mut impl Blocks, out: &mut Changes) {
        let leaf = self.leaf(item.key);
        let place = self.position(leaf, item.key);
        let items = self.items_mut(leaf);
        let smaller = match place {
            Ok(at) => {
                let smaller = items[at].bytes > item.bytes;
                items[at] = item;
                smaller
            }
            Err(at) => {
                items.insert(at, item);
                false
            }
        };
        self.resized(leaf, out);
        if smaller {
            self.shrink(leaf, blocks, out);
        } else if used_bytes(self.items(leaf)) > LEAF_BYTES {
            self.overflow(leaf, blocks, out);
        }
    }

    /// Takes an item out (`reiserfs_delete_item`, `reiserfs_cut_from_item`).
    /// Returns whether it was there.
    pub(super) fn remove(&mut self, key: Key, blocks: &mut impl Blocks, out: &mut Changes) -> bool {
        let leaf = self.leaf(key);
        let Ok(at) = self.position(leaf, key) else {
            return false;
        };
        self.items_mut(leaf).remove(at);
        self.resized(leaf, out);
        self.shrink(leaf, blocks, out);
        true
    }

    /// A node's size is in its parent, too.
    fn resized(&self, n: NodeNo, out: &mut Changes) {
        out.touch(self.node(n).block);
        if self.node(n).parent != NONE {
            out.touch(self.node(self.node(n).parent).block);
        }
    }

    /// A leaf holds more than it can (`fix_nodes`, insertion).
    fn overflow(&mut self, leaf: NodeNo, blocks: &mut impl Blocks, out: &mut Changes) {
        let (left, right) = (self.node(leaf).left, self.node(leaf).right);
        let items = self.items(leaf);
        let n = items.len();
        let to_left = self.fits_left(left, items);
        let to_right = self.fits_right(right, items);
        let nodes = |run: Range<usize>| nr_leaves(&items[run.start.min(run.end)..run.end]);
        let none = nodes(0..n);
        let by_left = nodes(to_left..n);
        let by_right = nodes(0..n - to_right);
        let by_both = nodes(to_left..(n - to_right).max(to_left));
        let (use_left, use_right) = if by_both < by_left && by_both < by_right {
            (true, true)
        } else if by_left == none && by_right == none {
            (false, false)
        } else {
            (by_left <= by_right, by_left > by_right)
        };
        if use_left {
            self.shift_left(left, leaf, to_left, out);
        }
        if use_right {
            let rest = to_right.min(self.items(leaf).len());
            self.shift_right(leaf, right, rest, out);
        }
        let mut at = leaf;
        while used_bytes(self.items(at)) > LEAF_BYTES {
            let keep = first_leaf(self.items(at));
            let near = self.node(at).block;
            let rest = self.items_mut(at).split_off(keep);
            let first = rest[0].key;
            let new = self.new_node(blocks.take(near), Body::Leaf(rest), out);
            self.link_behind(at, new);
            self.add_child(at, first, new, blocks, out);
            self.resized(at, out);
            self.resized(new, out);
            at = new;
        }
        if self.items(leaf).is_empty() {
            self.drop_node(leaf, blocks, out);
        }
    }

    /// Items from the front that a left neighbour can take.
    fn fits_left(&self, left: NodeNo, items: &[Item]) -> usize {
        if left == NONE {
            return 0;
        }
        let mut before = self.items(left).last();
        let mut room = LEAF_BYTES - used_bytes(self.items(left)).min(LEAF_BYTES);
        let mut count = 0;
        for item in items {
            let cost = item.cost(before);
            if cost > room {
                break;
            }
            room -= cost;
            before = Some(item);
            count += 1;
        }
        count
    }

    /// Items from the back that a right neighbour can take.
    fn fits_right(&self, right: NodeNo, items: &[Item]) -> usize {
        if right == NONE {
            return 0;
        }
        let theirs = self.items(right);
        let used = used_bytes(theirs);
        let mut sum = 0;
        let mut count = 0;
        // From the back: what an item costs is known when its neighbour is.
        for at in (0..items.len()).rev() {
            let behind = items.get(at + 1).or(theirs.first());
            let joined = behind.map_or(0, |b| b.cost(None) - b.cost(Some(&items[at])));
            sum += items[at].cost(None) - joined;
            if used + sum > LEAF_BYTES {
                break;
            }
            count += 1;
        }
        count
    }

    /// `leaf_shift_left`.
    fn shift_left(&mut self, left: NodeNo, leaf: NodeNo, count: usize, out: &mut Changes) {
        if count == 0 || left == NONE {
            return;
        }
        let items = self.items_mut(leaf);
        let moved: Vec<Item> = items.drain(..count).collect();
        let first = items.first().map(|i| i.key);
        self.items_mut(left).extend(moved);
        if let Some(first) = first {
            self.set_first_key(leaf, first, out);
        }
        self.resized(left, out);
        self.resized(leaf, out);
    }

    /// `leaf_shift_right`.
    fn shift_right(&mut self, leaf: NodeNo, right: NodeNo, count: usize, out: &mut Changes) {
        if count == 0 || right == NONE {
            return;
        }
        let items = self.items_mut(leaf);
        let moved = items.split_off(items.len() - count);
        let first = moved[0].key;
        self.items_mut(right).splice(0..0, moved);
        self.set_first_key(right, first, out);
        self.resized(leaf, out);
        self.resized(right, out);
    }

    /// A leaf has become smaller: its items go to the neighbours if they fit
    /// there (`dc_check_balance_leaf`).
    fn shrink(&mut self, leaf: NodeNo, blocks: &mut impl Blocks, out: &mut Changes) {
        if leaf == self.root {
            return;
        }
        let (left, right) = (self.node(leaf).left, self.node(leaf).right);
        let items = self.items(leaf);
        let n = items.len();
        if used_bytes(items) > self.free_beside(leaf) {
            return;
        }
        let to_left = self.fits_left(left, items);
        let to_right = self.fits_right(right, items);
        let (a, b) = if to_left == n {
            (n, 0)
        } else if to_right == n {
            (0, n)
        } else if to_left + to_right >= n {
            (to_left, n - to_left)
        } else {
            return;
        };
        self.shift_left(left, leaf, a, out);
        self.shift_right(leaf, right, b, out);
        self.drop_node(leaf, blocks, out);
    }

    // Nodes ------------------------------------------------------------------

    fn new_node(&mut self, block: u64, body: Body, out: &mut Changes) -> NodeNo {
        let node = Node {
            block,
            parent: NONE,
            left: NONE,
            right: NONE,
            body,
        };
        out.new.push(block);
        out.touch(block);
        match self.unused.pop() {
            Some(n) => {
                *self.node_mut(n) = node;
                n
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as NodeNo - 1
            }
        }
    }

    fn link_behind(&mut self, n: NodeNo, new: NodeNo) {
        let right = self.node(n).right;
        self.node_mut(new).left = n;
        self.node_mut(new).right = right;
        self.node_mut(n).right = new;
        if right != NONE {
            self.node_mut(right).left = new;
        }
    }

    fn index_in_parent(&self, n: NodeNo) -> usize {
        let children = self.children(self.node(n).parent);
        let at = children.iter().position(|(_, c)| *c == n);
        at.expect("a node is among the children of its parent")
    }

    /// The least key of a node has changed: so has what leads to it.
    fn set_first_key(&mut self, n: NodeNo, key: Key, out: &mut Changes) {
        let parent = self.node(n).parent;
        if parent == NONE {
            return;
        }
        let at = self.index_in_parent(n);
        out.touch(self.node(parent).block);
        self.children_mut(parent)[at].0 = key;
        if at == 0 {
            self.set_first_key(parent, key, out);
        }
    }

    /// A new node stands behind another one of its level.
    fn add_child(
        &mut self,
        behind: NodeNo,
        key: Key,
        new: NodeNo,
        blocks: &mut impl Blocks,
        out: &mut Changes,
    ) {
        let parent = self.node(behind).parent;
        if parent == NONE {
            let near = self.node(behind).block;
            let children = vec![(Key::default(), behind), (key, new)];
            let root = self.new_node(blocks.take(near), Body::Inner(children), out);
            self.node_mut(behind).parent = root;
            self.node_mut(new).parent = root;
            self.root = root;
            return;
        }
        let at = self.index_in_parent(behind);
        self.node_mut(new).parent = parent;
        out.touch(self.node(parent).block);
        let children = self.children_mut(parent);
        children.insert(at + 1, (key, new));
        if children.len() > MOST_CHILDREN {
            let moved = children.split_off(MOST_CHILDREN.div_ceil(2));
            let (first, near) = (moved[0].0, self.node(parent).block);
            let nodes: Vec<NodeNo> = moved.iter().map(|(_, n)| *n).collect();
            let half = self.new_node(blocks.take(near), Body::Inner(moved), out);
            for n in nodes {
                self.node_mut(n).parent = half;
            }
            self.link_behind(parent, half);
            self.add_child(parent, first, half, blocks, out);
        }
    }

    /// An empty node goes.
    fn drop_node(&mut self, n: NodeNo, blocks: &mut impl Blocks, out: &mut Changes) {
        let Node {
            block,
            parent,
            left,
            right,
            ..
        } = *self.node(n);
        let at = if parent == NONE {
            0
        } else {
            self.index_in_parent(n)
        };
        self.unlink(n, left, right);
        blocks.free(block);
        out.freed.push(block);
        self.unused.push(n);
        if parent == NONE {
            return;
        }
        out.touch(self.node(parent).block);
        let children = self.children_mut(parent);
        children.remove(at);
        match children.first().map(|(k, _)| *k) {
            None => self.drop_node(parent, blocks, out),
            Some(first) => {
                if at == 0 {
                    self.set_first_key(parent, first, out);
                }
                self.join_inner(parent, blocks, out);
            }
        }
    }

    fn unlink(&mut self, n: NodeNo, left: NodeNo, right: NodeNo) {
        if left != NONE {
            self.node_mut(left).right = right;
        }
        if right != NONE {
            self.node_mut(right).left = left;
        }
        self.node_mut(n).parent = NONE;
    }

    /// An inner node has lost a child: joins a neighbour of the same parent if
    /// both fit into one; a root with one child goes.
    fn join_inner(&mut self, n: NodeNo, blocks: &mut impl Blocks, out: &mut Changes) {
        if n == self.root {
            if let [(_, only)] = *self.children(n) {
                let block = self.node(n).block;
                self.node_mut(only).parent = NONE;
                self.root = only;
                blocks.free(block);
                out.freed.push(block);
                self.unused.push(n);
            }
            return;
        }
        let (left, right) = (self.node(n).left, self.node(n).right);
        let parent = self.node(n).parent;
        let fits = |a: NodeNo, b: NodeNo| {
            a != NONE
                && b != NONE
                && self.node(a).parent == parent
                && self.node(b).parent == parent
                && self.children(a).len() + self.children(b).len() <= MOST_CHILDREN
        };
        let (to, from) = if fits(left, n) {
            (left, n)
        } else if fits(n, right) {
            (n, right)
        } else {
            return;
        };
        let moved = std::mem::take(self.children_mut(from));
        for (_, child) in &moved {
            self.node_mut(*child).parent = to;
        }
        self.children_mut(to).extend(moved);
        out.touch(self.node(to).block);
        self.drop_node(from, blocks, out);
    }
}

/// Items that fit into one leaf.
fn first_leaf(items: &[Item]) -> usize {
    let (mut before, mut sum) = (None, 0);
    for (i, item) in items.iter().enumerate() {
        sum += item.cost(before);
        if sum > LEAF_BYTES {
            return i.max(1);
        }
        before = Some(item);
    }
    items.len()
}

/// Leaves that items need.
fn nr_leaves(mut items: &[Item]) -> usize {
    let mut leaves = 0;
    while !items.is_empty() {
        items = &items[first_leaf(items)..];
        leaves += 1;
    }
    leaves
}

#[cfg(test)]
mod tests;
