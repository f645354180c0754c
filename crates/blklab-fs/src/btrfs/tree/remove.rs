// SPDX-License-Identifier: MIT OR Apache-2.0
//! Taking items and nodes out of a tree.

use super::{Blocks, Body, NO_BLOCK, Path, Tree};

impl Tree {
    /// Takes an item out (`btrfs_del_items`). Returns whether it was there.
    pub(in crate::btrfs) fn remove(&mut self, blocks: &mut impl Blocks, key: u64) -> bool {
        let mut path = self.own_path(blocks, key);
        let leaf = path.leaf();
        let quarter = self.capacity / 4;
        let n = self.node(leaf);
        let items = n.body.items();
        let slot = items.partition_point(|i| i.key < key);
        let Some(item) = items.get(slot).copied().filter(|i| i.key == key) else {
            return false;
        };
        items.remove(slot);
        n.used -= u32::from(item.size);
        let (empty, small) = (items.is_empty(), n.used < quarter);
        if empty {
            self.drop_node(blocks, &mut path);
        } else if small {
            self.join(blocks, &mut path);
        }
        true
    }

    /// Takes the node that a path ends in out of the tree, unless it is the root
    /// (`btrfs_del_leaf`).
    fn drop_node(&mut self, blocks: &mut impl Blocks, path: &mut Path) {
        let node = path.leaf();
        path.pop();
        let Some((above, slot)) = path.pop() else {
            self.node(node).body = Body::Leaf(Vec::new());
            return;
        };
        self.give_up(blocks, node);
        let children = self.node(above).body.children();
        children.remove(slot);
        match (children.len(), path.len) {
            (0, _) => {
                path.push(above, slot);
                self.drop_node(blocks, path);
            }
            (1, 0) => {
                // The root has one child, which is the root from now on.
                let child = children[0].node;
                self.give_up(blocks, above);
                self.root = child;
            }
            _ => {}
        }
    }

    /// A node is no longer part of the tree.
    fn give_up(&mut self, blocks: &mut impl Blocks, node: u32) {
        let n = self.node(node);
        let block = std::mem::replace(&mut n.block, NO_BLOCK);
        n.body = Body::Leaf(Vec::new());
        let generation = n.generation;
        self.unused.push(node);
        blocks.release(block, generation);
    }

    /// Moves the items of the leaf that a path ends in to its left neighbour, if
    /// there is one with room (`push_leaf_left`).
    fn join(&mut self, blocks: &mut impl Blocks, path: &mut Path) {
        let Some((above, slot)) = path.len.checked_sub(2).map(|i| path.at[i]) else {
            return;
        };
        let leaf = path.leaf();
        if slot == 0 {
            return;
        }
        let left = self.node(above).body.children()[slot as usize - 1].node;
        let used = self.nodes[leaf as usize].used;
        if self.nodes[left as usize].used + used > self.capacity {
            return;
        }
        self.own(blocks, left);
        let items = std::mem::take(self.node(leaf).body.items());
        let n = self.node(left);
        n.used += used;
        n.body.items().extend(items);
        self.node(leaf).used = 0;
        self.drop_node(blocks, path);
    }

    /// Releases all blocks; the tree is empty then.
    pub(in crate::btrfs) fn clear(&mut self, blocks: &mut impl Blocks) {
        for n in self.nodes.iter().filter(|n| n.block != NO_BLOCK) {
            blocks.release(n.block, n.generation);
        }
        self.nodes.clear();
        self.unused.clear();
        self.root = self.add(Body::Leaf(Vec::new()), 0);
    }
}
