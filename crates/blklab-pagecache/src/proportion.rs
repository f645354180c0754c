// SPDX-License-Identifier: MIT OR Apache-2.0
//! Floating proportions: who caused which share of recent events.
//!
//! Linux 2.6.24 to 3.5, lib/proportions.c, and from 3.6 on
//! lib/flex_proportions.c ([`Timed`]: halved by time instead). Every event counts for the party
//! that caused it and for all together; at each half period of all events
//! every party's count is halved, which a party does for itself when it is
//! next looked at. Counts here are exact; the kernel's per-CPU counters lag by
//! a few events.

use blklab_types::{Hz, Jiffies};

/// The count of all events, and the period (`prop_descriptor`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Events {
    half_shift: u32,
    total: u64,
}

/// The count of one party (`prop_local_percpu`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    events: u64,
    epoch: u64,
}

/// `log2` of the period for a dirty limit of so many pages
/// (`calc_period_shift`): the period is 4 times the limit rounded to a power
/// of two.
pub(crate) fn period_shift(dirty_pages: u64) -> u32 {
    2 + dirty_pages.saturating_sub(1).max(1).ilog2()
}

impl Events {
    /// No events yet; the period is 2 to the power of `period_shift`.
    pub(crate) fn new(period_shift: u32) -> Events {
        Events {
            half_shift: period_shift.saturating_sub(1).min(62),
            total: 0,
        }
    }

    fn half(&self) -> u64 {
        1 << self.half_shift
    }

    /// Counts `n` events of one party (`__prop_inc_percpu`).
    pub(crate) fn add(&mut self, share: &mut Share, mut n: u64) {
        while n > 0 {
            self.age(share);
            let step = n.min(self.half() - self.total % self.half());
            share.events += step;
            self.total += step;
            n -= step;
        }
    }

    /// Numerator and denominator of a party's share (`prop_fraction_percpu`).
    pub(crate) fn fraction(&self, share: &mut Share) -> (u64, u64) {
        self.age(share);
        (share.events, self.half() + self.total % self.half())
    }

    /// Halves a count once for every half period that it has not seen
    /// (`prop_norm_percpu`).
    fn age(&self, share: &mut Share) {
        let epoch = self.total >> self.half_shift;
        let missed = epoch - share.epoch;
        share.events = if missed < 64 {
            share.events >> missed
        } else {
            0
        };
        share.epoch = epoch;
    }
}

/// Seconds after which the timed counts are halved
/// (`VM_COMPLETIONS_PERIOD_LEN`).
const HALVING_S: u64 = 3;

/// Counts of parties and of all that age by time (`fprop_global`,
/// `fprop_local_percpu`). Counts age when one is looked at; while next to nothing
/// is left of the total, nothing ages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Timed {
    all: u64,
    own: Vec<u64>,
    halvings: u64,
}

impl Timed {
    /// No events yet. The total begins at 1, so that it can be divided by.
    pub(crate) fn new() -> Timed {
        Timed {
            all: 1,
            own: vec![0],
            halvings: 0,
        }
    }

    /// Counts events of a party (`__fprop_inc_percpu`).
    pub(crate) fn add(&mut self, party: usize, n: u64) {
        if self.own.len() <= party {
            self.own.resize(party + 1, 0);
        }
        self.own[party] += n;
        self.all += n;
    }

    /// Numerator and denominator of a party's share at a tick
    /// (`fprop_fraction_percpu`, `fprop_new_period`).
    pub(crate) fn fraction(&mut self, party: usize, now: Jiffies, hz: Hz) -> (u64, u64) {
        let halvings = now.0 / (HALVING_S * u64::from(hz.0));
        for _ in 0..(halvings - self.halvings).min(64) {
            if self.all <= 1 {
                break;
            }
            self.all >>= 1;
            self.own.iter_mut().for_each(|own| *own >>= 1);
        }
        self.halvings = halvings;
        let own = self.own.get(party).copied().unwrap_or_default();
        (own, self.all.max(own).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timed_counts_halve_every_three_seconds() {
        let (mut t, hz) = (Timed::new(), Hz(250));
        assert_eq!(t.fraction(0, Jiffies(0), hz), (0, 1));
        t.add(0, 1000);
        assert_eq!(t.fraction(0, Jiffies(749), hz), (1000, 1001));
        assert_eq!(t.fraction(0, Jiffies(750), hz), (500, 500));
        assert_eq!(t.fraction(0, Jiffies(750), hz), (500, 500));
        assert_eq!(t.fraction(0, Jiffies(3 * 750), hz), (125, 125));
        assert_eq!(t.fraction(0, Jiffies(1_000_000), hz), (1, 1));
    }

    #[test]
    fn a_sole_party_approaches_all_of_it() {
        assert_eq!(period_shift(26214), 16);
        let (mut all, mut one, mut idle) = (Events::new(16), Share::default(), Share::default());
        assert_eq!(all.fraction(&mut one), (0, 32768));
        all.add(&mut one, 16384);
        assert_eq!(all.fraction(&mut one), (16384, 49152));
        all.add(&mut one, 16384);
        assert_eq!(
            all.fraction(&mut one),
            (16384, 32768),
            "halved at the half period"
        );
        all.add(&mut one, 20 * 32768);
        let (num, den) = all.fraction(&mut one);
        assert!(num * 1000 > den * 999, "{num}/{den}");
        assert_eq!(all.fraction(&mut idle).0, 0);
    }

    #[test]
    fn one_by_one_is_the_same_as_all_at_once() {
        let (mut a, mut x, mut b, mut y) = Default::default();
        (a, b) = (Events { half_shift: 5, ..a }, Events { half_shift: 5, ..b });
        for n in [1, 7, 40, 200, 3] {
            a.add(&mut x, n);
            (0..n).for_each(|_| b.add(&mut y, 1));
            assert_eq!((a.fraction(&mut x), a), (b.fraction(&mut y), b));
        }
    }
}
