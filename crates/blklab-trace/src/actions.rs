// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets of kinds of events.

use crate::Action;
use std::fmt;

/// A set of kinds of events: those that a recorder writes down, or those that a
/// trace has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Actions(u32);

impl Actions {
    /// No kind.
    pub const NONE: Actions = Actions(0);
    /// Every kind.
    pub const ALL: Actions = Actions((1 << (Action::ALL.len() + 1)) - 2);

    /// These kinds.
    pub const fn new(actions: &[Action]) -> Actions {
        let mut all = Actions::NONE;
        let mut i = 0;
        while i < actions.len() {
            all = all.with(actions[i]);
            i += 1;
        }
        all
    }

    /// The set with one more.
    #[must_use]
    pub const fn with(self, action: Action) -> Actions {
        Actions(self.0 | 1 << action as u8)
    }

    /// Whether `action` is one of them.
    pub const fn has(self, action: Action) -> bool {
        self.0 >> action as u8 & 1 != 0
    }

    /// One bit for each kind, at the place of its code.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The set of these bits; others than those of kinds are dropped.
    pub const fn from_bits(bits: u32) -> Actions {
        Actions(bits & Actions::ALL.0)
    }

    /// The kinds, in the order of their codes.
    pub fn iter(self) -> impl Iterator<Item = Action> {
        Action::ALL.into_iter().filter(move |a| self.has(*a))
    }
}

/// Every kind: what does not say what it leaves out has all.
impl Default for Actions {
    fn default() -> Actions {
        Actions::ALL
    }
}

/// blkparse's letters.
impl fmt::Debug for Actions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters: Vec<&str> = self.iter().map(Action::letters).collect();
        f.write_str(&letters.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets() {
        let some = Actions::new(&[Action::Queue, Action::Complete]);
        assert!(some.has(Action::Queue) && !some.has(Action::Issue));
        assert_eq!(format!("{some:?}"), "Q C");
        assert_eq!(Actions::from_bits(some.bits()), some);
        assert_eq!(Actions::from_bits(u32::MAX), Actions::ALL);
        assert_eq!(Actions::ALL.iter().count(), Action::ALL.len());
        assert_eq!(Actions::NONE.iter().count(), 0);
    }
}
