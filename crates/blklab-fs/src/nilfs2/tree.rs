// SPDX-License-Identifier: MIT OR Apache-2.0
//! The blocks of a file's B-tree (fs/nilfs2/{direct,btree}.c, 2.6.32).
//!
//! The inode holds the places of up to 6 blocks, or a root of up to 3 nodes;
//! a node of 4 KiB has 255 children. Nodes are counted as full: files grow at
//! their end, and a full node hands entries to its neighbour before it splits.

/// Blocks whose places fit into the inode.
pub(super) const DIRECT_BLOCKS: u64 = 6;
/// Children of a node: 16 bytes each, behind a header.
pub(super) const NODE_CHILDREN: u64 = 255;
/// Children of the root in the inode.
const ROOT_CHILDREN: usize = 3;

/// The nodes of a file by level, lowest first, each by its number.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    levels: Vec<Vec<u32>>,
}

impl Tree {
    /// Adds the nodes that a file of so many blocks needs; `new` makes one.
    pub(super) fn grow(&mut self, blocks: u64, mut new: impl FnMut() -> u32) {
        if blocks <= DIRECT_BLOCKS {
            return;
        }
        let mut needed = blocks.div_ceil(NODE_CHILDREN) as usize;
        for level in 0.. {
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            let nodes = &mut self.levels[level];
            while nodes.len() < needed {
                nodes.push(new());
            }
            if needed <= ROOT_CHILDREN {
                return;
            }
            needed = needed.div_ceil(NODE_CHILDREN as usize);
        }
    }

    /// The nodes above a block, lowest first.
    pub(super) fn path(&self, block: u64) -> impl Iterator<Item = u32> + '_ {
        let mut at = block;
        self.levels.iter().filter_map(move |nodes| {
            at /= NODE_CHILDREN;
            nodes.get(at as usize).copied()
        })
    }

    /// All nodes, the lowest level first.
    pub(super) fn nodes(&self) -> impl Iterator<Item = u32> + '_ {
        self.levels.iter().flatten().copied()
    }

    /// Pairs of a node and the one above it, lowest level first.
    pub(super) fn edges(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.levels.windows(2).flat_map(|two| {
            let above = |i: usize| two[1].get(i / NODE_CHILDREN as usize).copied();
            let nodes = two[0].iter().enumerate();
            nodes.filter_map(move |(i, n)| Some((*n, above(i)?)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_have_no_node_and_large_ones_a_level_more() {
        let mut next = 0;
        let mut new = || {
            next += 1;
            next - 1
        };
        let mut tree = Tree::default();
        tree.grow(6, &mut new);
        assert_eq!(tree.nodes().count(), 0);
        tree.grow(7, &mut new);
        tree.grow(255 * 3, &mut new);
        assert_eq!(tree.nodes().count(), 3);
        assert_eq!(tree.path(255).collect::<Vec<_>>(), [1]);
        tree.grow(255 * 3 + 1, &mut new);
        assert_eq!(tree.nodes().count(), 5);
        assert_eq!(tree.path(255 * 3).collect::<Vec<_>>(), [3, 4]);
        assert_eq!(
            tree.edges().collect::<Vec<_>>(),
            [(0, 4), (1, 4), (2, 4), (3, 4)]
        );
    }
}
