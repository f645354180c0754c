// SPDX-License-Identifier: MIT OR Apache-2.0
//! Virtual time in nanoseconds, and the kernel's jiffies.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A point in virtual time: nanoseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than any event: "never".
    pub const MAX: Time = Time(u64::MAX);

    /// Nanoseconds since the start of the run.
    pub fn ns(self) -> u64 {
        self.0
    }

    /// The span since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// A span of `n` microseconds.
    pub const fn from_us(n: u64) -> Span {
        Span(n.saturating_mul(1_000))
    }

    /// A span of `n` milliseconds.
    pub const fn from_ms(n: u64) -> Span {
        Span(n.saturating_mul(1_000_000))
    }

    /// A span of `n` seconds.
    pub const fn from_s(n: u64) -> Span {
        Span(n.saturating_mul(1_000_000_000))
    }

    /// The span in nanoseconds.
    pub fn ns(self) -> u64 {
        self.0
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, s: Span) -> Time {
        Time(self.0.saturating_add(s.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, s: Span) {
        *self = *self + s;
    }
}

impl Sub for Time {
    type Output = Span;
    fn sub(self, earlier: Time) -> Span {
        Span(self.0 - earlier.0)
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, o: Span) -> Span {
        Span(self.0.saturating_add(o.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, o: Span) {
        *self = *self + o;
    }
}

impl fmt::Display for Time {
    /// Seconds with nine decimals, as blkparse prints them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{:09}",
            self.0 / 1_000_000_000,
            self.0 % 1_000_000_000
        )
    }
}

/// A value of the kernel's tick counter.
///
/// The counter starts at 0 with the run; only differences are visible in any
/// model, so the kernel's own large start value is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Jiffies(pub u64);

impl Jiffies {
    /// The counter `n` ticks later.
    #[must_use]
    pub fn plus(self, n: u64) -> Jiffies {
        Jiffies(self.0 + n)
    }
}

/// Ticks per second (`CONFIG_HZ`): 100, 250 or 1000 in the kernels modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hz(pub u32);

impl Hz {
    /// The tick counter at `t`: constant between ticks.
    pub fn jiffies_at(self, t: Time) -> Jiffies {
        Jiffies((u128::from(t.0) * u128::from(self.0) / 1_000_000_000) as u64)
    }

    /// The instant at which the counter becomes `j`.
    pub fn start_of(self, j: Jiffies) -> Time {
        let ns = (u128::from(j.0) * 1_000_000_000).div_ceil(u128::from(self.0));
        Time(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// Milliseconds as jiffies, rounded up (`msecs_to_jiffies`).
    pub fn from_ms(self, ms: u64) -> u64 {
        (u128::from(ms) * u128::from(self.0)).div_ceil(1000) as u64
    }
}

impl Default for Hz {
    fn default() -> Hz {
        Hz(250)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jiffies_are_floors_and_timers_start_at_ticks() {
        let hz = Hz(250);
        assert_eq!(hz.jiffies_at(Time(3_999_999)), Jiffies(0));
        assert_eq!(hz.jiffies_at(Time(4_000_000)), Jiffies(1));
        assert_eq!(hz.start_of(Jiffies(3)), Time(12_000_000));
        assert_eq!(hz.from_ms(3), 1);
        assert_eq!(Hz(1000).from_ms(3), 3);
        assert_eq!(Hz(100).from_ms(11), 2);
    }
}
