// SPDX-License-Identifier: MIT OR Apache-2.0
//! The extent tree of a file (fs/ext4/extents.c): four extents in the inode,
//! else leaves of 340, and index blocks above more than four of them.
//!
//! Leaves are as full as a file that grows at its end makes them.

use super::Ext4;
use super::inode::Inode;
use blklab_pagecache::Extents;

/// Extents, or pointers to blocks of them, in an inode.
const IN_INODE: u64 = 4;
/// The same in a block.
const IN_BLOCK: u64 = 340;
/// Longest extent in blocks.
const EXTENT_BLOCKS: u64 = 32768;

/// Leaves and index blocks that so many extents need.
fn blocks_for(extents: u64) -> (u64, u64) {
    if extents <= IN_INODE {
        return (0, 0);
    }
    let leaves = extents.div_ceil(IN_BLOCK);
    let nodes = if leaves <= IN_INODE {
        0
    } else {
        leaves.div_ceil(IN_BLOCK)
    };
    (leaves, nodes)
}

/// Extents of a file: long runs take several.
fn nr_extents(extents: &Extents) -> u64 {
    extents.runs().len() as u64 + extents.pages() / EXTENT_BLOCKS
}

impl Inode {
    /// The leaf that points to a page.
    pub(super) fn leaf(&self, extents: &Extents, page: u64) -> Option<u64> {
        let nth = extents.index_of(page) / IN_BLOCK as usize;
        let leaf = self.leaves.get(nth).or(self.leaves.last());
        leaf.copied()
    }
}

impl Ext4 {
    /// Gives the tree the blocks that it needs now (`ext4_ext_create_new_leaf`,
    /// `ext4_ext_split`, `ext4_ext_grow_indepth`). Returns the new ones; None if
    /// the volume is full.
    pub(super) fn grow_tree(&mut self, inode: &mut Inode, extents: &Extents) -> Option<Vec<u64>> {
        let (leaves, nodes) = blocks_for(nr_extents(extents));
        let mut new = Vec::new();
        while (inode.leaves.len() as u64) < leaves {
            let block = self.take_meta(inode, extents)?;
            inode.leaves.push(block);
            new.push(block);
        }
        while (inode.nodes.len() as u64) < nodes {
            let block = self.take_meta(inode, extents)?;
            inode.nodes.push(block);
            new.push(block);
        }
        Some(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_extents_fit_the_inode() {
        assert_eq!(blocks_for(4), (0, 0));
        assert_eq!(blocks_for(5), (1, 0));
        assert_eq!(blocks_for(341), (2, 0));
        assert_eq!(blocks_for(4 * 340 + 1), (5, 1));
        let mut long = Extents::default();
        long.append(0, 5 * EXTENT_BLOCKS);
        assert_eq!(nr_extents(&long), 6);
    }
}
