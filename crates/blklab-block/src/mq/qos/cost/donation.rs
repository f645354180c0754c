// SPDX-License-Identifier: MIT OR Apache-2.0
//! How groups give away what they do not use.
//!
//! Each donor is to have a given share of the device afterwards. The others get what is
//! left in proportion to what they have, all over the tree, so all of their shares grow by
//! one factor. That makes the share of each group above donors: what its donors keep, and
//! the rest of it times the factor. At each level, weights in use follow from the shares:
//! those that give nothing keep theirs, so that the sum of a level goes down, and a group
//! has of that sum what it has of the share above.
//!
//! Sums are those of the kernel to the last unit, with its roundings
//! (`transfer_surpluses`).

use super::shares::{WHOLE, part_up};
use super::{IoCost, Now};

/// A group that gives away.
#[derive(Clone, Copy, Debug)]
pub(super) struct Donor {
    pub(super) n: u16,
    /// Its share by weights.
    pub(super) full: u64,
    /// What it keeps of that.
    pub(super) after: u64,
}

/// A group above donors.
#[derive(Clone, Copy, Debug)]
struct Inner {
    n: u16,
    /// Its share by weights, and after the donation.
    full: u64,
    in_use: u64,
    /// What of it is its donors', and what they keep.
    giving: u64,
    kept: u64,
    /// The sum of the weights in use below it, afterwards.
    sum_below: u64,
}

impl IoCost {
    /// Donors have less in use from now on.
    pub(super) fn donate(&mut self, donors: &mut [Donor], now: Now) {
        keep_sum_below_whole(donors);
        let Some(inner) = self.inner_groups(donors) else {
            return;
        };
        for donor in donors {
            if self.group(donor.n).debt > 0 {
                continue;
            }
            let parent = self.shares.node(donor.n).parent;
            let above = find(&inner, parent.expect("the root gives nothing away"));
            let in_use = part_up(above.sum_below, donor.after, above.in_use);
            self.use_weight(donor.n, in_use, now);
        }
    }

    /// All groups above donors, each behind its parent; none if the numbers do not allow
    /// a donation.
    fn inner_groups(&self, donors: &[Donor]) -> Option<Vec<Inner>> {
        let mut inner = self.add_up(donors);
        for i in 0..inner.len() {
            let group = inner[i];
            let full = match self.shares.node(group.n).parent {
                None => WHOLE,
                Some(parent) => {
                    let above = self.shares.node(parent);
                    let share = find(&inner, parent).full;
                    part_up(share, self.shares.node(group.n).active, above.active_below)
                }
            };
            let giving = group.giving.min(full);
            let kept = group.kept.min(giving.saturating_sub(1));
            if full <= 1 || giving <= 1 || kept == 0 {
                return None;
            }
            inner[i] = Inner {
                full,
                giving,
                kept,
                ..group
            };
        }
        let root = inner.first()?;
        let others = WHOLE - root.giving.min(WHOLE - 1);
        let factor = ((WHOLE - root.kept) * WHOLE).div_ceil(others);
        for i in 0..inner.len() {
            self.share_out(&mut inner, i, factor);
        }
        Some(inner)
    }

    /// What donors below each group have and keep.
    fn add_up(&self, donors: &[Donor]) -> Vec<Inner> {
        let mut inner: Vec<Inner> = Vec::new();
        for donor in donors {
            let mut path: Vec<u16> = self.shares.above(donor.n).collect();
            path.reverse();
            for n in path {
                let at = inner.iter().position(|g| g.n == n);
                let at = at.unwrap_or_else(|| {
                    inner.push(Inner {
                        n,
                        full: WHOLE,
                        in_use: WHOLE,
                        giving: 0,
                        kept: 0,
                        sum_below: 0,
                    });
                    inner.len() - 1
                });
                inner[at].giving += donor.full;
                inner[at].kept += donor.after;
            }
        }
        inner
    }

    /// A group's share afterwards, and the sum of the weights below it.
    fn share_out(&self, inner: &mut [Inner], i: usize, factor: u64) {
        let group = inner[i];
        let node = self.shares.node(group.n);
        let Some(parent) = node.parent else {
            let keeping = WHOLE - group.giving;
            inner[i].sum_below = part_up(node.active_below, keeping, WHOLE - group.kept);
            return;
        };
        let above = *find(inner, parent);
        let in_use = part_up(factor, group.full - group.giving, WHOLE) + group.kept;
        let weight = part_up(above.sum_below, in_use, above.in_use);
        let of_donors = part_up(node.active_below, group.giving, group.full);
        let of_others = node.active_below - of_donors;
        let had = part_up(node.active, group.giving, group.full);
        let has = part_up(weight, group.kept, in_use);
        inner[i].in_use = in_use;
        inner[i].sum_below = of_others + part_up(of_donors, has, had.max(1));
    }
}

/// Those that would have more than their share keep a little less if all together would
/// keep the whole device.
fn keep_sum_below_whole(donors: &mut [Donor]) {
    let all: u64 = donors.iter().map(|d| d.after).sum();
    let is_over = |d: &Donor| d.after > d.full;
    let over: u64 = donors.iter().filter(|d| is_over(d)).map(|d| d.after).sum();
    if all < WHOLE || over == 0 {
        return;
    }
    let aim = over.saturating_sub(all - (WHOLE - 1));
    if aim > 0 {
        for donor in donors.iter_mut().filter(|d| is_over(d)) {
            donor.after = donor.after * aim / over;
        }
    }
}

fn find(inner: &[Inner], n: u16) -> &Inner {
    let found = inner.iter().find(|g| g.n == n);
    found.expect("a group above a donor is known")
}
