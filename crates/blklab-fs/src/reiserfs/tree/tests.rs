// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tree against a plain ordered map.

use super::super::key::{Item, Key, Object, STAT_BYTES};
use super::*;
use std::collections::BTreeMap;

#[derive(Default)]
struct Counter {
    next: u64,
    free: u64,
}

impl Blocks for Counter {
    fn take(&mut self, _near: u64) -> u64 {
        self.next += 1;
        self.next
    }

    fn free(&mut self, _block: u64) {
        self.free += 1;
    }
}

impl Tree {
    /// Every node is where its keys lead, and no leaf is too full.
    fn check(&self, n: NodeNo, parent: NodeNo, low: Key, high: Option<Key>) -> usize {
        assert_eq!(self.node(n).parent, parent);
        match &self.node(n).body {
            Body::Leaf(items) => {
                assert!(used_bytes(items) <= LEAF_BYTES);
                assert!(items.windows(2).all(|w| w[0].key < w[1].key));
                let inside = |i: &Item| i.key >= low && high.is_none_or(|h| i.key < h);
                assert!(items.iter().all(inside));
                assert!(!items.is_empty() || n == self.root);
                items.len()
            }
            Body::Inner(children) => {
                assert!(!children.is_empty() && children.len() <= MOST_CHILDREN);
                let mut sum = 0;
                for (i, (key, child)) in children.iter().enumerate() {
                    let low = if i == 0 { low } else { *key };
                    let high = children.get(i + 1).map(|c| c.0).or(high);
                    sum += self.check(*child, n, low, high);
                }
                sum
            }
        }
    }
}

fn object(number: u32) -> Object {
    Object {
        locality: number / 50,
        number,
    }
}

/// A file of some size in the tree: its stat data, and a body.
fn file(number: u32, bytes: u32) -> [Item; 2] {
    [
        Item::new(Key::stat(object(number)), STAT_BYTES),
        Item::new(Key::tail(object(number), 0), bytes),
    ]
}

#[test]
fn random_changes_agree_with_an_ordered_map() {
    let mut tree = Tree::new(0);
    let mut blocks = Counter::default();
    let mut model: BTreeMap<Key, u32> = BTreeMap::new();
    let mut state = 12345_u64;
    let mut draw = |n: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
        (state >> 33) % n
    };
    for step in 0..60_000_u32 {
        let growing = step < 20_000;
        let [stat, body] = file(draw(20_000) as u32, 8 + draw(490) as u32 * 8);
        let mut out = Changes::default();
        if draw(10) < if growing { 8 } else { 2 } {
            for item in [stat, body] {
                tree.put(item, &mut blocks, &mut out);
                model.insert(item.key, u32::from(item.bytes));
            }
        } else {
            for item in [stat, body] {
                let there = tree.remove(item.key, &mut blocks, &mut out);
                assert_eq!(there, model.remove(&item.key).is_some());
            }
        }
        if step % 1000 == 0 {
            let items = tree.check(tree.root, NONE, Key::default(), None);
            assert_eq!(items, model.len());
        }
    }
    for (key, bytes) in &model {
        assert_eq!(tree.bytes(*key), Some(*bytes));
    }
    let mut out = Changes::default();
    for key in model.keys() {
        assert!(tree.remove(*key, &mut blocks, &mut out));
    }
    assert_eq!(tree.check(tree.root, NONE, Key::default(), None), 0);
    assert_eq!(
        blocks.next, blocks.free,
        "one leaf is left, that it began with"
    );
}

#[test]
fn ascending_insertion_fills_leaves() {
    let mut tree = Tree::new(0);
    let mut blocks = Counter::default();
    for number in 0..5000 {
        for item in file(number, 400) {
            tree.put(item, &mut blocks, &mut Changes::default());
        }
    }
    let (leaves, bytes) = tree.fill();
    // 68 and 424 bytes a file: eight files and a stat data make 4004 of 4072.
    assert!(bytes * 100 > leaves * u64::from(LEAF_BYTES) * 95);
}

#[test]
fn a_change_of_size_touches_leaf_and_parent() {
    let mut tree = Tree::new(0);
    let mut blocks = Counter::default();
    for number in 0..100 {
        for item in file(number, 400) {
            tree.put(item, &mut blocks, &mut Changes::default());
        }
    }
    let mut out = Changes::default();
    let [_, smaller] = file(0, 392);
    tree.put(smaller, &mut blocks, &mut out);
    let mut path = Vec::new();
    tree.path(smaller.key, &mut path);
    path.reverse();
    assert_eq!((out.touched, out.new.len()), (path, 0));
}

#[test]
fn a_full_leaf_first_uses_its_neighbours() {
    let mut tree = Tree::new(0);
    let mut blocks = Counter::default();
    // Two leaves: the first full, the second with one item.
    for number in 0..3 {
        let [_, body] = file(number * 10, 2000);
        tree.put(body, &mut blocks, &mut Changes::default());
    }
    assert_eq!(tree.fill().0, 2);
    let mut out = Changes::default();
    let [_, body] = file(5, 1000);
    tree.put(body, &mut blocks, &mut out);
    assert!(out.new.is_empty(), "the second leaf takes an item");
    assert_eq!(out.touched.len(), 3, "both leaves and the root");
    assert_eq!(tree.check(tree.root, NONE, Key::default(), None), 4);
}
