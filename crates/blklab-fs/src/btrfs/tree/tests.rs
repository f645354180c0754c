// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trees against plain maps; blocks against plain sets.

use super::*;
use std::collections::{BTreeMap, BTreeSet};

/// Blocks in ascending order; what an earlier transaction owns is copied.
#[derive(Default)]
struct Plain {
    next: u32,
    transaction: u32,
    live: BTreeSet<u32>,
    owned: u32,
}

impl Blocks for Plain {
    fn own(&mut self, block: u32, generation: u32) -> (u32, u32) {
        if block != NO_BLOCK && generation == self.transaction {
            return (block, generation);
        }
        self.live.remove(&block);
        self.next += 1;
        self.owned += 1;
        assert!(self.live.insert(self.next));
        (self.next, self.transaction)
    }

    fn release(&mut self, block: u32, _: u32) {
        assert!(self.live.remove(&block));
    }
}

#[test]
fn items_in_ascending_order_fill_leaves() {
    let (mut tree, mut blocks) = (Tree::new(4096), Plain::default());
    for key in 0..1000 {
        tree.insert(&mut blocks, key, 185);
    }
    // 21 items to a leaf, and a root.
    assert_eq!(tree.blocks(), 1000_usize.div_ceil(21) + 1);
    assert_eq!(blocks.live.len(), tree.blocks());
}

#[test]
fn a_path_is_copied_once_in_a_transaction() {
    let (mut tree, mut blocks) = (Tree::new(4096), Plain::default());
    for key in 0..1000 {
        tree.insert(&mut blocks, key, 185);
    }
    (blocks.transaction, blocks.owned) = (1, 0);
    tree.touch(&mut blocks, 500);
    assert_eq!(blocks.owned, 2, "the root and a leaf");
    tree.touch(&mut blocks, 501);
    tree.touch(&mut blocks, 20);
    assert_eq!(blocks.owned, 3);
}

#[test]
fn it_agrees_with_a_plain_map_and_loses_no_block() {
    let (mut tree, mut blocks) = (Tree::new(4096), Plain::default());
    let mut plain = BTreeMap::new();
    let mut x = 0x2545_f491_4f6c_dd1d_u64;
    let mut draw = |n: u64| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (x >> 11) % n
    };
    for step in 0..60_000_u64 {
        let growing = step < 30_000;
        let key = draw(20_000);
        if draw(3) < if growing { 2 } else { 1 } {
            let most = if draw(4) == 0 { 3900 } else { 200 };
            let size = 26 + draw(most) as u32;
            tree.insert(&mut blocks, key, size);
            plain.insert(key, size);
        } else {
            assert_eq!(tree.remove(&mut blocks, key), plain.remove(&key).is_some());
        }
        if step % 500 == 0 {
            blocks.transaction += 1;
            let from = draw(20_000);
            let next = plain.range(from..).next().map(|(k, _)| *k);
            assert_eq!(tree.next_key(from), next);
        }
    }
    assert_eq!(blocks.live.len(), tree.blocks());
    let used: u32 = tree
        .nodes
        .iter()
        .map(|n| match &n.body {
            Body::Leaf(items) if !items.is_empty() => n.used,
            _ => 0,
        })
        .sum();
    assert_eq!(used, plain.values().sum::<u32>());
    while let Some(key) = tree.next_key(0) {
        assert!(tree.remove(&mut blocks, key));
    }
    assert_eq!((tree.blocks(), blocks.live.len()), (1, 1));
}
