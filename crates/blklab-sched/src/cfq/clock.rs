// SPDX-License-Identifier: MIT OR Apache-2.0
//! What CFQ reads the time from: up to 4.7 the tick counter, from 4.8
//! nanoseconds (`ktime_get_ns`).

use blklab_block::Cx;
use blklab_types::Jiffies;

/// The counter at the start of a run. The kernel's is large too: some rules
/// look at times before the start, and 0 means "never".
const START_JIFFIES: u64 = 1 << 32;
const START_NS: u64 = 4_294 * 1_000_000_000;

/// A clock of one of the two units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    ns: bool,
    hz: u64,
}

impl Clock {
    pub(super) fn new(ns: bool, hz: u32) -> Clock {
        let hz = u64::from(hz).max(1);
        Clock { ns, hz }
    }

    /// Whether the unit is the nanosecond.
    pub(super) fn is_ns(self) -> bool {
        self.ns
    }

    /// Its value at the start of a run.
    pub(super) fn start(self) -> u64 {
        if self.ns { START_NS } else { START_JIFFIES }
    }

    /// Its value now.
    pub(super) fn now(self, cx: &Cx<'_>) -> u64 {
        if self.ns {
            START_NS.saturating_add(cx.now.0)
        } else {
            self.at(cx.jiffies)
        }
    }

    /// Its value at a tick of the run.
    pub(super) fn at(self, jiffies: Jiffies) -> u64 {
        debug_assert!(!self.ns, "the unit is the tick");
        START_JIFFIES.wrapping_add(jiffies.0)
    }

    /// The tick of the run at which it has a value, for timers.
    pub(super) fn jiffies(self, value: u64) -> Jiffies {
        debug_assert!(!self.ns, "the unit is the tick");
        Jiffies(value.saturating_sub(START_JIFFIES))
    }

    /// A second in its unit.
    pub(super) fn second(self) -> u64 {
        if self.ns { 1_000_000_000 } else { self.hz }
    }

    /// One tick in its unit.
    pub(super) fn jiffy(self) -> u64 {
        if self.ns { 1_000_000_000 / self.hz } else { 1 }
    }

    /// Whether `a` lies before `b` (`time_before`). Ticks are compared so that
    /// the counter may wrap.
    pub(super) fn before(self, a: u64, b: u64) -> bool {
        if self.ns {
            a < b
        } else {
            (a.wrapping_sub(b) as i64) < 0
        }
    }

    /// Whether `a` lies behind `b` (`time_after`).
    pub(super) fn after(self, a: u64, b: u64) -> bool {
        self.before(b, a)
    }

    /// Whether `due` has come (`time_after_eq`).
    pub(super) fn reached(self, now: u64, due: u64) -> bool {
        !self.before(now, due)
    }
}

#[cfg(test)]
mod tests {
    use super::Clock;
    use blklab_types::Jiffies;

    #[test]
    fn ticks_are_compared_across_the_end_of_the_counter() {
        let c = Clock::new(false, 250);
        assert!(c.before(u64::MAX, 3) && c.after(3, u64::MAX));
        assert!(c.reached(7, 7) && !c.before(7, 7));
        assert_eq!(c.jiffies(c.at(Jiffies(12))), Jiffies(12));
        assert_eq!((c.second(), c.jiffy()), (250, 1));
    }

    #[test]
    fn nanoseconds_do_not_wrap() {
        let c = Clock::new(true, 250);
        assert!(c.before(3, u64::MAX));
        assert_eq!((c.second(), c.jiffy()), (1_000_000_000, 4_000_000));
    }
}
