// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flushes that are not queued: one waits until nothing is in flight, and holds back what
//! comes behind it until it is done.
//!
//! FLUSH CACHE of SATA is no queued command (ATA8-ACS), so the driver does not send it beside
//! others, nor others beside it (Linux: `ata_std_qc_defer`, drivers/ata/libata-core.c).

use std::collections::VecDeque;

/// What is in the drive, and what waits for or behind a flush.
#[derive(Clone, Debug)]
pub(super) struct Alone {
    in_flight: u32,
    flushing: bool,
    /// Commands that wait, oldest first; whether each is a flush.
    held: VecDeque<(u32, bool)>,
}

impl Alone {
    /// For a drive that takes so many commands.
    pub(super) fn new(depth: usize) -> Alone {
        Alone {
            in_flight: 0,
            flushing: false,
            held: VecDeque::with_capacity(depth),
        }
    }

    /// Whether a command begins now; otherwise [`next`](Self::next) says when.
    pub(super) fn admits(&mut self, no: u32, is_flush: bool) -> bool {
        if self.held.is_empty() && self.fits(is_flush) {
            self.begin(is_flush);
            return true;
        }
        self.held.push_back((no, is_flush));
        false
    }

    /// A command is done.
    pub(super) fn ended(&mut self) {
        self.in_flight -= 1;
        // A flush was alone.
        self.flushing = false;
    }

    /// The next one of those that wait, if it can begin.
    pub(super) fn next(&mut self) -> Option<u32> {
        let (no, is_flush) = *self.held.front()?;
        if !self.fits(is_flush) {
            return None;
        }
        self.held.pop_front();
        self.begin(is_flush);
        Some(no)
    }

    fn fits(&self, is_flush: bool) -> bool {
        !self.flushing && (!is_flush || self.in_flight == 0)
    }

    fn begin(&mut self, is_flush: bool) {
        self.in_flight += 1;
        self.flushing = is_flush;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_waits_for_what_is_in_flight_and_holds_back_what_follows() {
        let mut alone = Alone::new(8);
        assert!(alone.admits(0, false) && alone.admits(1, false));
        assert!(!alone.admits(2, true) && !alone.admits(3, false));
        alone.ended();
        assert_eq!(alone.next(), None, "another is in flight");
        alone.ended();
        assert_eq!(alone.next(), Some(2));
        assert_eq!(alone.next(), None, "the flush is alone");
        assert!(!alone.admits(4, false));
        alone.ended();
        assert_eq!((alone.next(), alone.next()), (Some(3), Some(4)));
        assert_eq!(alone.next(), None);
        assert!(alone.admits(5, false));
    }
}
