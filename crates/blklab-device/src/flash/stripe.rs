// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stripes: units that are programmed together, each by a die of its own.
//!
//! Firmware that keeps its blocks in groups over many dies (superblocks) writes a row of
//! pages of such a group at a time. Then dies are busy at the same times: for a while no
//! read waits for a program, and then all that come wait for all of one.

use super::buffer::Ready;
use std::collections::VecDeque;

/// Units that are full and wait for others to be programmed with.
#[derive(Clone, Debug)]
pub(super) struct Stripe {
    most: usize,
    /// Oldest first.
    units: VecDeque<Ready>,
}

impl Stripe {
    /// A stripe over so many dies; over one, no unit waits.
    pub(super) fn over(dies: usize) -> Stripe {
        Stripe {
            most: dies,
            units: VecDeque::with_capacity(dies),
        }
    }

    /// Adds a unit; says whether the stripe is complete.
    pub(super) fn add(&mut self, unit: Ready) -> bool {
        self.units.push_back(unit);
        self.units.len() == self.most
    }

    /// The oldest unit that waits.
    pub(super) fn take(&mut self) -> Option<Ready> {
        self.units.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stripe_is_complete_with_a_unit_for_each_die() {
        let unit = |unit| Ready {
            unit,
            slots: 1,
            random: 0,
        };
        let mut stripe = Stripe::over(2);
        assert!(!stripe.add(unit(5)));
        assert!(stripe.add(unit(3)));
        assert_eq!(stripe.take(), Some(unit(5)), "in order");
        assert_eq!(stripe.take(), Some(unit(3)));
        assert_eq!(stripe.take(), None);
        assert!(!stripe.add(unit(1)), "the next one");
    }
}
