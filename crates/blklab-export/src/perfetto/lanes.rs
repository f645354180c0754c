// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where slices go that overlap: slices of one track must lie within each other.

use blklab_types::Time;

/// Lanes side by side, by the time until which each is taken.
#[derive(Debug, Default)]
pub(super) struct Lanes(Vec<Time>);

impl Lanes {
    /// The lane of something that took from `start` to `end`. Given in order of their
    /// ends, no two in a lane overlap: the one chosen is that which became free last
    /// before it began.
    pub(super) fn take(&mut self, start: Time, end: Time) -> usize {
        let free = self
            .0
            .iter()
            .enumerate()
            .filter(|(_, until)| **until <= start);
        let best = free.max_by_key(|(idx, until)| (**until, usize::MAX - idx));
        match best.map(|(idx, _)| idx) {
            Some(idx) => {
                self.0[idx] = self.0[idx].max(end);
                idx
            }
            None => {
                self.0.push(end);
                self.0.len() - 1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_lies_side_by_side() {
        let mut lanes = Lanes::default();
        let mut take = |start, end| lanes.take(Time(start), Time(end));
        assert_eq!(take(0, 10), 0);
        assert_eq!(take(10, 20), 0);
        assert_eq!(take(5, 25), 1);
        // Lane 0 became free last.
        assert_eq!((take(21, 30), take(26, 31)), (0, 1));
        assert_eq!(take(29, 40), 2);
    }
}
