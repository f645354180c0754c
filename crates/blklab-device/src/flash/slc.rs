// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of the flash that is written with one bit per cell first (SLC cache).
//!
//! A unit that finds room in the cache is programmed in `slc_program_us`. Later
//! it is folded: read, and programmed with all bits per cell on the same die,
//! which is when it costs what garbage collection takes. Dies fold after
//! `fold_idle_ms` without a write, until the next one comes. When the cache is
//! full a drive either programs all bits at once (`slc_when_full=direct`) or makes
//! each unit wait until another one is folded (`fold`).

use super::buffer::Ready;
use blklab_types::{Span, Time};
use std::collections::VecDeque;

/// The cache of a drive as its parameters describe it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlcSpec {
    /// Units that have room.
    pub(super) units: u64,
    /// Units without room wait for folding.
    pub(super) waits: bool,
    /// Time without writes after which folding begins.
    pub(super) idle: Span,
    /// It is full at the begin.
    pub(super) full: bool,
}

/// Where a unit goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goes {
    /// Into the cache.
    Slc,
    /// Past it.
    Past,
    /// It waits until something is folded.
    Waits,
}

/// The state of a cache.
#[derive(Clone, Debug)]
pub(super) struct Slc {
    spec: SlcSpec,
    free: u64,
    /// Units that wait for room, oldest first.
    waiting: VecDeque<Ready>,
    last_write: Time,
    /// A wake-up for the end of the idle time is on its way.
    timer: bool,
}

impl Slc {
    pub(super) fn new(spec: SlcSpec, buffer_units: usize) -> Slc {
        Slc {
            spec,
            free: if spec.full { 0 } else { spec.units },
            waiting: VecDeque::with_capacity(buffer_units),
            last_write: Time::ZERO,
            timer: false,
        }
    }

    /// Units in the cache at the begin.
    pub(super) fn filled_units(spec: &SlcSpec) -> u64 {
        if spec.full { spec.units } else { 0 }
    }

    /// A write has come. If the end of the idle time is to be watched, when.
    pub(super) fn written(&mut self, now: Time) -> Option<Time> {
        self.last_write = now;
        let watch = self.spec.units > 0 && !self.timer;
        self.timer |= watch;
        watch.then_some(now + self.spec.idle)
    }

    /// The wake-up is there: whether the drive is idle; if not, when to look again.
    pub(super) fn is_idle(&mut self, now: Time) -> Result<(), Time> {
        let idle_from = self.last_write + self.spec.idle;
        if now < idle_from {
            return Err(idle_from);
        }
        self.timer = false;
        Ok(())
    }

    /// Finds a place for a unit.
    pub(super) fn place(&mut self, ready: Ready) -> Goes {
        if self.spec.units == 0 {
            Goes::Past
        } else if self.free > 0 {
            self.free -= 1;
            Goes::Slc
        } else if self.spec.waits {
            self.waiting.push_back(ready);
            Goes::Waits
        } else {
            Goes::Past
        }
    }

    /// A unit is folded: the one that waits longest has its place.
    pub(super) fn folded(&mut self) -> Option<Ready> {
        let next = self.waiting.pop_front();
        self.free += u64::from(next.is_none());
        next
    }

    /// Units wait for folding.
    pub(super) fn is_waited_for(&self) -> bool {
        !self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slc(units: u64, waits: bool) -> Slc {
        let spec = SlcSpec {
            units,
            waits,
            idle: Span(100),
            full: false,
        };
        Slc::new(spec, 4)
    }

    const UNIT: Ready = Ready {
        unit: 7,
        slots: 2,
        random: 0,
    };

    #[test]
    fn units_go_past_a_full_cache_or_wait() {
        let mut direct = slc(1, false);
        assert_eq!(
            [Goes::Slc, Goes::Past],
            [direct.place(UNIT), direct.place(UNIT)]
        );
        assert_eq!(direct.folded(), None);
        assert_eq!(direct.place(UNIT), Goes::Slc, "there is room again");
        let mut fold = slc(1, true);
        assert_eq!(
            [Goes::Slc, Goes::Waits],
            [fold.place(UNIT), fold.place(UNIT)]
        );
        assert!(fold.is_waited_for());
        assert_eq!(fold.folded(), Some(UNIT));
        assert_eq!(fold.place(UNIT), Goes::Waits, "the other has the place");
        assert_eq!(slc(0, true).place(UNIT), Goes::Past, "there is no cache");
    }

    #[test]
    fn a_drive_is_idle_some_time_after_its_last_write() {
        let mut slc = slc(1, false);
        assert_eq!(slc.written(Time(10)), Some(Time(110)));
        assert_eq!(slc.written(Time(50)), None, "it is watched already");
        assert_eq!(slc.is_idle(Time(110)), Err(Time(150)));
        assert_eq!(slc.is_idle(Time(150)), Ok(()));
        assert_eq!(slc.written(Time(200)), Some(Time(300)));
    }
}
