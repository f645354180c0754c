// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stretches of time in which something is so.

use super::sums::total;
use blklab_types::Time;

/// Stretches of time in order, none of which overlap.
#[derive(Clone, Debug, Default)]
pub struct Spans(Vec<[Time; 2]>);

impl Spans {
    /// Of stretches in any order; those that overlap are one.
    pub fn new(all: impl IntoIterator<Item = [Time; 2]>) -> Spans {
        let mut all: Vec<[Time; 2]> = all.into_iter().collect();
        all.sort_unstable();
        all.dedup_by(|next, last| {
            let overlaps = next[0] <= last[1];
            if overlaps {
                last[1] = last[1].max(next[1]);
            }
            overlaps
        });
        Spans(all)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How much of a time they take, in ns.
    pub fn within(&self, from: Time, to: Time) -> u64 {
        let first = self.0.partition_point(|[_, end]| *end <= from);
        let then = self.0[first..].iter().take_while(|[begin, _]| *begin < to);
        total(then.map(|[begin, end]| {
            let (begin, end) = ((*begin).max(from), (*end).min(to));
            end.0.saturating_sub(begin.0)
        }))
    }

    /// When the last of them ends that has ended by a time.
    pub fn last_end(&self, by: Time) -> Option<Time> {
        let nr_ended = self.0.partition_point(|[_, end]| *end <= by);
        nr_ended.checked_sub(1).map(|i| self.0[i][1])
    }

    /// Whether one of them has something of a time, its ends included.
    pub fn meet(&self, from: Time, to: Time) -> bool {
        let first = self.0.partition_point(|[_, end]| *end < from);
        self.0.get(first).is_some_and(|[begin, _]| *begin <= to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_joined_met_and_measured() {
        let spans = Spans::new([[5, 9], [1, 3], [8, 12], [20, 21]].map(|s| s.map(Time)));
        assert_eq!(spans.0, [[1, 3], [5, 12], [20, 21]].map(|s| s.map(Time)));
        let meet = |from, to| spans.meet(Time(from), Time(to));
        let ended = [2, 3, 19, 21].map(|t| spans.last_end(Time(t)));
        assert_eq!(
            ended,
            [None, Some(3), Some(12), Some(21)].map(|t| t.map(Time))
        );
        assert!(meet(3, 4) && meet(10, 11) && meet(0, 100));
        assert!(!meet(4, 4) && !meet(13, 19) && !meet(22, 30));
        for (from, to, expected) in [(0, 30, 10), (2, 6, 2), (3, 5, 0), (6, 7, 1), (9, 9, 0)] {
            assert_eq!(
                spans.within(Time(from), Time(to)),
                expected,
                "{from} to {to}"
            );
        }
    }
}
