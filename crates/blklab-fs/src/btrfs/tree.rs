// SPDX-License-Identifier: MIT OR Apache-2.0
//! B-trees of items whose blocks are copied when they change.
//!
//! An item is a key and a size. Who changes one passes through the blocks from
//! the root to a leaf; each of them that an earlier transaction owns, or that
//! has been written in this one, gets a new place first ([`Blocks::own`]).
//! A leaf that is full is divided in the middle, or at the item if that is its
//! last; a leaf that becomes a quarter full is joined to its left neighbour if
//! both fit.
//!
//! Left out: moving items to neighbours before a division.

mod remove;

/// Bytes of a block's header (`btrfs_header`).
const HEADER_BYTES: u32 = 101;
/// Bytes of a leaf per item beside its data (`btrfs_item`).
pub(super) const ITEM_BYTES: u32 = 25;
/// Bytes of a node per child (`btrfs_key_ptr`).
const POINTER_BYTES: u32 = 33;
/// Levels that a tree may have.
const MOST_LEVELS: usize = 8;

/// No block yet.
pub(super) const NO_BLOCK: u32 = u32::MAX;

/// Where tree blocks come from.
pub(super) trait Blocks {
    /// The block of a node that is about to change, whose present one is `block`
    /// (`btrfs_cow_block`).
    fn own(&mut self, block: u32, generation: u32) -> (u32, u32);

    /// A block is no longer part of a tree.
    fn release(&mut self, block: u32, generation: u32);
}

#[derive(Clone, Copy, Debug)]
#[repr(Rust, packed)]
struct Item {
    key: u64,
    size: u16,
}

#[derive(Clone, Copy, Debug)]
struct Child {
    key: u64,
    node: u32,
}

#[derive(Clone, Debug)]
enum Body {
    Leaf(Vec<Item>),
    Inner(Vec<Child>),
}

impl Body {
    fn items(&mut self) -> &mut Vec<Item> {
        match self {
            Body::Leaf(items) => items,
            Body::Inner(_) => unreachable!("items are in leaves"),
        }
    }

    fn children(&mut self) -> &mut Vec<Child> {
        match self {
            Body::Inner(children) => children,
            Body::Leaf(_) => unreachable!("a leaf has no children"),
        }
    }
}

#[derive(Clone, Debug)]
struct Node {
    /// Its page of the device.
    block: u32,
    /// The transaction that placed it.
    generation: u32,
    /// Bytes of its items.
    used: u32,
    body: Body,
}

/// From the root to a leaf: nodes, and the child taken in each (`btrfs_path`).
#[derive(Clone, Copy, Debug, Default)]
struct Path {
    at: [(u32, u32); MOST_LEVELS],
    len: usize,
}

impl Path {
    fn push(&mut self, node: u32, slot: usize) {
        self.at[self.len] = (node, slot as u32);
        self.len += 1;
    }

    fn pop(&mut self) -> Option<(u32, usize)> {
        self.len = self.len.checked_sub(1)?;
        let (node, slot) = self.at[self.len];
        Some((node, slot as usize))
    }

    fn leaf(&self) -> u32 {
        self.at[self.len - 1].0
    }
}

/// A tree.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    unused: Vec<u32>,
    root: u32,
    /// Bytes for items in a leaf.
    capacity: u32,
    /// Children of a node.
    fanout: usize,
}

impl Tree {
    /// An empty tree of blocks of so many bytes: one leaf, not yet placed.
    pub(super) fn new(block_bytes: u32) -> Tree {
        let capacity = block_bytes - HEADER_BYTES;
        let mut tree = Tree {
            nodes: Vec::new(),
            unused: Vec::new(),
            root: 0,
            capacity,
            fanout: (capacity / POINTER_BYTES) as usize,
        };
        tree.root = tree.add(Body::Leaf(Vec::new()), 0);
        tree
    }

    fn add(&mut self, body: Body, used: u32) -> u32 {
        let node = Node {
            block: NO_BLOCK,
            generation: 0,
            used,
            body,
        };
        if let Some(i) = self.unused.pop() {
            self.nodes[i as usize] = node;
            return i;
        }
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    fn node(&mut self, i: u32) -> &mut Node {
        &mut self.nodes[i as usize]
    }

    /// Blocks of the tree.
    #[cfg(test)]
    pub(super) fn blocks(&self) -> usize {
        self.nodes.len() - self.unused.len()
    }

    /// Passes through the nodes towards a key, from the root on
    /// (`btrfs_search_slot`).
    fn walk(&self, key: u64, mut visit: impl FnMut(u32, usize) -> bool) {
        let mut at = self.root;
        loop {
            match &self.nodes[at as usize].body {
                Body::Leaf(_) => {
                    visit(at, 0);
                    return;
                }
                Body::Inner(children) => {
                    let slot = slot_of(children, key);
                    if !visit(at, slot) {
                        return;
                    }
                    at = children[slot].node;
                }
            }
        }
    }

    /// The first block on the way to a key for which `cached` is false.
    pub(super) fn cold(&self, key: u64, cached: impl Fn(u64) -> bool) -> Option<u64> {
        let mut cold = None;
        self.walk(key, |node, _| {
            let block = self.nodes[node as usize].block;
            if block != NO_BLOCK && !cached(u64::from(block)) {
                cold = Some(u64::from(block));
            }
            cold.is_none()
        });
        cold
    }

    /// The block of the leaf that a key belongs to, and those of up to `most`
    /// leaves behind it under the same node.
    pub(super) fn leaves(&self, key: u64, most: usize) -> Vec<u64> {
        let mut blocks = Vec::new();
        let mut above = None;
        self.walk(key, |node, slot| {
            match &self.nodes[node as usize].body {
                Body::Inner(_) => above = Some((node, slot)),
                Body::Leaf(_) if above.is_none() => blocks.push(node),
                Body::Leaf(_) => {}
            }
            true
        });
        if let Some((node, slot)) = above
            && let Body::Inner(children) = &self.nodes[node as usize].body
        {
            blocks.extend(children[slot..].iter().take(most + 1).map(|c| c.node));
        }
        let block = |n: u32| self.nodes[n as usize].block;
        let placed = blocks.into_iter().map(block).filter(|b| *b != NO_BLOCK);
        placed.map(u64::from).collect()
    }

    /// The first key at or after `key` (`btrfs_next_leaf`).
    pub(super) fn next_key(&self, key: u64) -> Option<u64> {
        let mut turn = None;
        let mut found = None;
        self.walk(key, |node, slot| {
            match &self.nodes[node as usize].body {
                Body::Inner(children) => {
                    turn = children.get(slot + 1).map(|c| c.node).or(turn);
                }
                Body::Leaf(items) => {
                    let at = items.partition_point(|i| i.key < key);
                    found = items.get(at).map(|i| i.key);
                }
            }
            true
        });
        found.or_else(|| self.first_key(turn?))
    }

    /// The first item at or after a key, with its size.
    pub(super) fn next_item(&self, key: u64) -> Option<(u64, u32)> {
        let key = self.next_key(key)?;
        let mut size = 0;
        self.walk(key, |node, _| {
            if let Body::Leaf(items) = &self.nodes[node as usize].body {
                let at = items.partition_point(|i| i.key < key);
                size = items.get(at).map_or(0, |i| u32::from(i.size));
            }
            true
        });
        Some((key, size))
    }

    /// The places of all blocks.
    pub(super) fn all_blocks(&self) -> Vec<u64> {
        let placed = self.nodes.iter().filter(|n| n.block != NO_BLOCK);
        placed.map(|n| u64::from(n.block)).collect()
    }

    fn first_key(&self, node: u32) -> Option<u64> {
        match &self.nodes[node as usize].body {
            Body::Leaf(items) => items.first().map(|i| i.key),
            Body::Inner(children) => self.first_key(children.first()?.node),
        }
    }

    /// The way to a key, all of its blocks owned.
    fn own_path(&mut self, blocks: &mut impl Blocks, key: u64) -> Path {
        let mut path = Path::default();
        self.walk(key, |node, slot| {
            path.push(node, slot);
            true
        });
        for (node, _) in path.at.iter().take(path.len) {
            self.own(blocks, *node);
        }
        path
    }

    fn own(&mut self, blocks: &mut impl Blocks, node: u32) {
        let n = self.node(node);
        (n.block, n.generation) = blocks.own(n.block, n.generation);
    }

    /// Something in the item of a key changes, but not its size.
    pub(super) fn touch(&mut self, blocks: &mut impl Blocks, key: u64) {
        self.own_path(blocks, key);
    }

    /// Puts an item of so many bytes, its header included, into the tree
    /// (`btrfs_insert_empty_items`); an item of that key is replaced.
    pub(super) fn insert(&mut self, blocks: &mut impl Blocks, key: u64, size: u32) {
        let size = size.min(self.capacity);
        let mut path = self.own_path(blocks, key);
        let leaf = path.leaf();
        let capacity = self.capacity;
        let n = self.node(leaf);
        let items = n.body.items();
        let slot = items.partition_point(|i| i.key < key);
        if let Some(item) = items.get(slot).copied().filter(|i| i.key == key) {
            n.used -= u32::from(item.size);
            items.remove(slot);
        }
        if n.used + size > capacity {
            let (right, first) = self.divide(blocks, leaf, slot, size);
            self.add_child(blocks, &mut path, first, right);
            return self.put(blocks, key, size);
        }
        let items = self.node(leaf).body.items();
        items.insert(
            slot,
            Item {
                key,
                size: size as u16,
            },
        );
        self.node(leaf).used += size;
    }

    /// Puts an item into a leaf that was just divided; if it still does not
    /// fit, divides again.
    fn put(&mut self, blocks: &mut impl Blocks, key: u64, size: u32) {
        self.insert(blocks, key, size);
    }

    /// Moves the part of a leaf from about its middle on into a new leaf to the
    /// right (`split_leaf`); an item to come at its end or beginning stands alone.
    fn divide(
        &mut self,
        blocks: &mut impl Blocks,
        leaf: u32,
        slot: usize,
        size: u32,
    ) -> (u32, u64) {
        let half = self.capacity / 2;
        let full = self.capacity;
        let n = self.node(leaf);
        let items = n.body.items();
        let bytes = |items: &[Item]| items.iter().map(|i| u32::from(i.size)).sum::<u32>();
        let mut at = items.len();
        if slot < items.len() {
            let mut sum = 0;
            at = items
                .iter()
                .position(|i| {
                    sum += u32::from(i.size);
                    sum > half
                })
                .unwrap_or(0)
                .max(1);
            // A large item: it goes where there is room, or between both.
            let room_left = bytes(&items[..at]) + size <= full;
            let room_right = bytes(&items[at..]) + size <= full;
            if slot <= at && !room_left || slot > at && !room_right {
                at = slot;
            }
        }
        let moved = items.split_off(at.min(items.len()));
        let gone = bytes(&moved);
        n.used -= gone;
        items.shrink_to_fit();
        let last = items.last().map_or(0, |i| i.key);
        let first = moved.first().map_or(last + 1, |i| i.key);
        let right = self.add(Body::Leaf(moved), gone);
        self.own(blocks, right);
        (right, first)
    }

    /// Adds a node to the right of the one that a path ends in (`insert_ptr`;
    /// `split_node` if that is too much for the node above).
    fn add_child(&mut self, blocks: &mut impl Blocks, path: &mut Path, key: u64, node: u32) {
        path.pop();
        let Some((above, slot)) = path.pop() else {
            let left = Child {
                key: 0,
                node: self.root,
            };
            self.root = self.add(Body::Inner(vec![left, Child { key, node }]), 0);
            return self.own(blocks, self.root);
        };
        let fanout = self.fanout;
        let children = self.node(above).body.children();
        children.insert(slot + 1, Child { key, node });
        if children.len() <= fanout {
            return;
        }
        // The last one fills nodes in order, others divide in the middle.
        let at = if slot + 2 == children.len() {
            children.len() - 1
        } else {
            children.len() / 2
        };
        let moved = children.split_off(at);
        let first = moved[0].key;
        let right = self.add(Body::Inner(moved), 0);
        self.own(blocks, right);
        path.push(above, slot);
        self.add_child(blocks, path, first, right);
    }
}

fn slot_of(children: &[Child], key: u64) -> usize {
    children.partition_point(|c| c.key <= key).saturating_sub(1)
}

#[cfg(test)]
mod tests;
