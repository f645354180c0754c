// SPDX-License-Identifier: MIT OR Apache-2.0
//! When garbage is collected, and by how many dies at a time.
//!
//! Programs of the host leave units behind that are to be moved; each die knows
//! its own. Without bursts a die moves what it owes before its next program. With
//! bursts nothing is moved until the drive as a whole owes so much; then dies
//! move, a few at a time, until all is moved, and no program of the host begins.
//! The write buffer takes writes meanwhile until it is full: the next ones wait
//! until the burst is over. That is the firmware of a drive that keeps a small
//! number of free blocks and stops for them when they are used up.

/// The state of collecting over all dies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Collect {
    /// Units owed at which a burst begins; 0: no bursts.
    burst_units: u64,
    /// Most dies at a time; 0: all.
    most_dies: u32,
    /// Whole units to be moved, over all dies.
    owed: u64,
    /// Dies that move data now.
    dies: u32,
    /// A burst is going on.
    bursting: bool,
    /// Dies fold.
    folding: bool,
}

impl Collect {
    pub(super) fn new(burst_units: u64, most_dies: u32) -> Collect {
        Collect {
            burst_units,
            most_dies,
            owed: 0,
            dies: 0,
            bursting: false,
            folding: false,
        }
    }

    /// So many more units are to be moved.
    pub(super) fn owe(&mut self, units: u64) {
        self.owed += units;
    }

    /// Whether a burst begins now.
    pub(super) fn begins(&mut self) -> bool {
        let begins = !self.bursting && self.burst_units > 0 && self.owed >= self.burst_units;
        self.bursting |= begins;
        begins
    }

    /// Whether a die that owes something may move it; `already`: it counts among
    /// those that do.
    pub(super) fn admits(&self, already: bool) -> bool {
        let now = self.bursting || self.burst_units == 0;
        now && (already || !self.is_limited() || self.dies < self.most_dies)
    }

    /// Whether there are never more than so many dies.
    pub(super) fn is_limited(&self) -> bool {
        self.most_dies > 0
    }

    /// No program of the host may begin.
    pub(super) fn holds_host(&self) -> bool {
        self.bursting
    }

    /// Whether dies fold what they have with one bit per cell.
    pub(super) fn folds(&self) -> bool {
        self.folding
    }

    /// Lets dies fold, or not any more; says whether that is new.
    pub(super) fn set_folds(&mut self, folds: bool) -> bool {
        std::mem::replace(&mut self.folding, folds) != folds
    }

    /// A die begins to move what it owes.
    pub(super) fn enter(&mut self) {
        self.dies += 1;
    }

    /// A die has moved all that it owed.
    pub(super) fn leave(&mut self) {
        self.dies -= 1;
    }

    /// A unit was moved; says whether that ends a burst.
    pub(super) fn moved(&mut self) -> bool {
        self.owed -= 1;
        let ends = self.bursting && self.owed == 0;
        self.bursting &= !ends;
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_begins_when_enough_is_owed_and_ends_when_nothing_is() {
        let mut collect = Collect::new(2, 1);
        collect.owe(1);
        assert!(!collect.begins() && !collect.admits(false));
        collect.owe(1);
        assert!(collect.begins() && collect.holds_host());
        assert!(!collect.begins(), "once");
        assert!(collect.admits(false));
        collect.enter();
        assert!(!collect.admits(false), "one die at a time");
        assert!(collect.admits(true));
        assert!(!collect.moved());
        collect.leave();
        assert!(collect.moved());
        assert!(!collect.holds_host());
    }

    #[test]
    fn without_bursts_dies_move_at_once_beside_the_host() {
        let mut collect = Collect::new(0, 0);
        collect.owe(100);
        assert!(!collect.begins() && collect.admits(false) && !collect.holds_host());
    }
}
