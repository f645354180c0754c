// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tree of weights: which share of the device each group has.
//!
//! A group has a weight while it is active, and of that it has in use what it does not
//! give away. Sums of both are kept at each group above; a group above has in use the
//! part of its own weight that its children have of theirs.

/// The whole device, and a weight of one (`WEIGHT_ONE`).
pub(super) const WHOLE: u64 = 1 << 16;

/// `n` times `part` of `whole`, rounded up.
pub(super) fn part_up(n: u64, part: u64, whole: u64) -> u64 {
    let exact = (u128::from(n) * u128::from(part)).div_ceil(u128::from(whole));
    u64::try_from(exact).unwrap_or(u64::MAX)
}

/// A group's parts of the device, in parts of [`WHOLE`] (`hweight_active`,
/// `hweight_inuse`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// By the weights of active groups.
    pub(super) full: u64,
    /// By what they have in use.
    pub(super) in_use: u64,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) parent: Option<u16>,
    weight: u64,
    /// The weight, while it is active; else 0.
    pub(super) active: u64,
    /// What it has in use of that.
    pub(super) in_use: u64,
    /// The same before it changed last.
    pub(super) in_use_before: u64,
    /// Sums over the groups below.
    pub(super) active_below: u64,
    pub(super) in_use_below: u64,
    /// The share as it was worked out last, and for which generation of weights.
    known: Option<(u64, Share)>,
}

/// The weights of all groups.
#[derive(Debug)]
pub(super) struct Shares {
    nodes: Vec<Node>,
    /// Weights were committed so often (`hweight_gen`).
    generation: u64,
    /// They changed since (`weights_updated`).
    changed: bool,
}

impl Shares {
    /// Groups by number with their parents and weights; nobody is active.
    pub(super) fn new(groups: impl Iterator<Item = (Option<u16>, u32)>) -> Shares {
        let node = |(parent, weight): (Option<u16>, u32)| Node {
            parent,
            weight: u64::from(weight) * WHOLE,
            active: 0,
            in_use: 0,
            in_use_before: 0,
            active_below: 0,
            in_use_below: 0,
            known: None,
        };
        Shares {
            nodes: groups.map(node).collect(),
            generation: 0,
            changed: false,
        }
    }

    pub(super) fn node(&self, n: u16) -> &Node {
        &self.nodes[usize::from(n)]
    }

    /// The groups above one, from its parent to the root.
    pub(super) fn above(&self, n: u16) -> impl Iterator<Item = u16> + '_ {
        std::iter::successors(self.node(n).parent, move |&n| self.node(n).parent)
    }

    /// A group becomes active, with what it had in use when it left.
    pub(super) fn activate(&mut self, n: u16) {
        let node = &mut self.nodes[usize::from(n)];
        node.known = None;
        let weight = node.weight;
        let in_use = match node.in_use_before {
            0 => weight,
            before => before,
        };
        self.set(n, weight, in_use);
        self.commit();
    }

    /// It is not any more.
    pub(super) fn deactivate(&mut self, n: u16) {
        self.set(n, 0, 0);
    }

    /// What an active group has in use changes, 1 at least and its weight at most; shares
    /// follow when that is committed.
    pub(super) fn use_weight(&mut self, n: u16, in_use: u64) {
        let active = self.node(n).active;
        self.set(n, active, in_use);
    }

    /// `__propagate_weights`.
    fn set(&mut self, n: u16, active: u64, in_use: u64) {
        let (mut active, mut in_use) = (active, in_use.min(active).max(1));
        let node = &mut self.nodes[usize::from(n)];
        node.in_use_before = node.in_use;
        if (active, in_use) == (node.active, node.in_use) {
            return;
        }
        let mut at = n;
        while let Some(parent) = self.node(at).parent {
            let node = &mut self.nodes[usize::from(at)];
            let (old_active, old_in_use) = (node.active, node.in_use);
            (node.active, node.in_use) = (active, in_use);
            let above = &mut self.nodes[usize::from(parent)];
            above.active_below = above.active_below + active - old_active;
            above.in_use_below = above.in_use_below + in_use - old_in_use;
            (active, in_use) = match above.active_below {
                0 => (0, 0),
                sum => (above.weight, part_up(above.weight, above.in_use_below, sum)),
            };
            if (active, in_use) == (above.active, above.in_use) {
                break;
            }
            at = parent;
        }
        self.changed = true;
    }

    /// Shares follow the weights as they are now (`commit_weights`).
    pub(super) fn commit(&mut self) {
        self.generation += u64::from(std::mem::take(&mut self.changed));
    }

    /// A group's share as of the last commit (`current_hweight`).
    pub(super) fn share(&mut self, n: u16) -> Share {
        let generation = self.generation;
        if let Some((of, share)) = self.node(n).known
            && of == generation
        {
            return share;
        }
        let share = self.worked_out(n);
        let share = Share {
            full: share.full.max(1),
            in_use: share.in_use.max(1),
        };
        self.nodes[usize::from(n)].known = Some((generation, share));
        share
    }

    fn worked_out(&self, n: u16) -> Share {
        let node = self.node(n);
        let Some(parent) = node.parent else {
            return Share {
                full: WHOLE,
                in_use: WHOLE,
            };
        };
        let share = self.worked_out(parent);
        let above = self.node(parent);
        if above.active_below == 0 || above.in_use_below == 0 {
            return share;
        }
        Share {
            full: share.full * node.active / above.active_below.max(node.active),
            in_use: share.in_use * node.in_use / above.in_use_below.max(node.in_use),
        }
    }

    /// The share that a group would have with its whole weight in use, all else as it is
    /// (`current_hweight_max`).
    pub(super) fn largest(&self, n: u16) -> u64 {
        let (mut at, mut share, mut in_use) = (n, WHOLE, self.node(n).active);
        while let Some(parent) = self.node(at).parent {
            let above = self.node(parent);
            let sum = above.in_use_below + in_use - self.node(at).in_use;
            share = share * in_use / sum.max(1);
            in_use = part_up(above.active, sum, above.active_below.max(1));
            at = parent;
        }
        share.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 above 2 and 3, and 4; weights 200, 100, 300, 100.
    fn tree() -> Shares {
        let groups = [
            (None, 100),
            (Some(0), 200),
            (Some(1), 100),
            (Some(1), 300),
            (Some(0), 100),
        ];
        Shares::new(groups.into_iter())
    }

    fn full(shares: &mut Shares, n: u16) -> u64 {
        shares.share(n).full
    }

    #[test]
    fn shares_are_products_of_levels() {
        let mut shares = tree();
        shares.activate(4);
        assert_eq!(full(&mut shares, 4), WHOLE);
        shares.activate(2);
        shares.activate(3);
        let third = WHOLE / 3;
        assert_eq!(full(&mut shares, 4), third);
        assert_eq!(full(&mut shares, 2), 2 * WHOLE / 3 / 4);
        assert_eq!(full(&mut shares, 3), 2 * WHOLE / 3 * 3 / 4);
        shares.deactivate(4);
        assert_eq!(full(&mut shares, 2), 2 * WHOLE / 3 / 4, "not committed");
        shares.commit();
        assert_eq!(full(&mut shares, 2), WHOLE / 4);
    }

    #[test]
    fn what_is_not_used_goes_to_others() {
        let mut shares = tree();
        for n in [2, 3, 4] {
            shares.activate(n);
        }
        // Half of a's and b's weights: the group above them has half in use, too.
        shares.use_weight(2, 50 * WHOLE);
        shares.use_weight(3, 150 * WHOLE);
        shares.commit();
        assert_eq!(shares.share(4).in_use, WHOLE / 2);
        assert_eq!(shares.share(4).full, WHOLE / 3);
        assert_eq!(shares.share(2).in_use, WHOLE / 2 / 4);
        assert_eq!(shares.largest(2), WHOLE * 100 / 250 * 125 / 225);
        // It leaves and comes back with what it had in use.
        shares.deactivate(2);
        shares.activate(2);
        assert_eq!(shares.node(2).in_use, 50 * WHOLE);
    }
}
