// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long tasks of a group are held up before they return to their programs, for bios
//! that had to pass though their group was held back (`blkcg_add_delay`,
//! `blkcg_scale_delay` of block/blk-cgroup.c; the same in 5.10, 6.1, 6.12 and 7.3).

use blklab_types::{Span, Time};

/// Longer than this no system call is held up.
const MOST: Span = Span::from_ms(250);

/// What was added up is looked at again after so long.
const ROUND: Span = Span::from_ms(1000);

/// What a group's bios were faster than they should have been, less what its tasks have
/// been held up for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeldUp {
    /// `delay_nsec`.
    owed_ns: u64,
    /// The same when the round began, less what that one took off (`last_delay`).
    owed_then_ns: u64,
    /// How often the group had been asked for less than one bio then (`last_use`).
    delays_then: u32,
    /// `delay_start`.
    round_began: Time,
}

impl HeldUp {
    /// A bio was faster by so much.
    pub(super) fn add(&mut self, faster_ns: u64, delays: u32, now: Time) {
        self.forget(delays, now);
        self.owed_ns += faster_ns;
    }

    /// What is owed.
    pub(super) fn owed_ns(&self) -> u64 {
        self.owed_ns
    }

    /// How long a task is held up now.
    pub(super) fn of_now(&mut self, delays: u32, now: Time) -> Span {
        if delays == 0 {
            return Span::ZERO;
        }
        self.forget(delays, now);
        Span(self.owed_ns).min(MOST)
    }

    /// Once in a round, what was owed at its beginning is taken off, as far as the round
    /// was long enough; at least half of it if the group may have more bios than then.
    fn forget(&mut self, delays: u32, now: Time) {
        if now <= self.round_began + ROUND {
            return;
        }
        let lasted = now.since(self.round_began).ns();
        let mut off = self.owed_then_ns.min(lasted);
        if delays < self.delays_then {
            off = off.max(self.owed_then_ns / 2);
        }
        self.owed_ns = self.owed_ns.saturating_sub(off);
        self.owed_then_ns = self.owed_ns;
        self.delays_then = delays;
        self.round_began = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time(n * 1_000_000)
    }

    #[test]
    fn a_system_call_is_held_up_for_all_that_is_owed_up_to_a_quarter_of_a_second() {
        let mut h = HeldUp::default();
        h.add(3_000_000, 1, ms(10));
        h.add(4_000_000, 1, ms(20));
        assert_eq!(h.of_now(0, ms(30)), Span::ZERO, "it is not asked for less");
        assert_eq!(h.of_now(1, ms(30)), Span::from_ms(7));
        h.add(600_000_000, 1, ms(40));
        assert_eq!(h.of_now(1, ms(50)), MOST);
    }

    /// A round takes off what was owed when it began, but no more than it was long.
    #[test]
    fn what_is_owed_is_forgotten_a_round_later() {
        let mut h = HeldUp::default();
        h.add(100_000_000, 2, ms(10));
        assert_eq!(
            h.of_now(2, ms(1010)),
            Span::from_ms(100),
            "the first round begins"
        );
        assert_eq!(h.of_now(2, ms(2010)), Span::from_ms(100), "it is not over");
        h.add(5_000_000, 2, ms(2011));
        assert_eq!(h.of_now(2, ms(2012)), Span::from_ms(5));
    }

    #[test]
    fn at_least_half_is_forgotten_once_the_group_may_have_more() {
        let mut h = HeldUp::default();
        h.add(9_000_000_000, 2, ms(10));
        assert_eq!(h.of_now(2, ms(1010)), MOST);
        // 9 s are owed; a second of them is taken off, or half of them.
        let mut other = h;
        other.of_now(2, ms(2011));
        assert_eq!(other.owed_ns, 7_999_000_000);
        h.of_now(1, ms(2011));
        assert_eq!(h.owed_ns, 4_500_000_000);
    }
}
