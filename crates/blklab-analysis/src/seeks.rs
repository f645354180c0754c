// SPDX-License-Identifier: MIT OR Apache-2.0
//! Distances between I/Os that follow each other, as btt counts them: none
//! where the two touch or overlap; forward from the end of the first to the
//! start of the second; backward from start to start. The first counts from
//! sector 0. Units: sectors.

use crate::distribution::Distribution;
use serde::Serialize;

/// Distances, without sign.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Seeks {
    /// All of them, those of no length included.
    pub distances: Distribution,
    /// Those of no length: sequential or overlapping I/O.
    pub nr_sequential: u64,
    #[serde(skip)]
    last: (u64, u64),
}

impl Seeks {
    /// The next I/O is from `start` to before `end`.
    pub fn add(&mut self, start: u64, end: u64) {
        let (last_start, last_end) = std::mem::replace(&mut self.last, (start, end));
        let last = last_start..=last_end;
        let distance = if last.contains(&start) || last.contains(&end) {
            0
        } else if start > last_end {
            start - last_end
        } else {
            last_start - start
        };
        self.nr_sequential += u64::from(distance == 0);
        self.distances.add(distance);
    }

    /// Counts the distances of `other` too.
    pub(crate) fn merge(&mut self, other: &Seeks) {
        self.distances.merge(&other.distances);
        self.nr_sequential += other.nr_sequential;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_from_the_near_end() {
        let mut seeks = Seeks::default();
        let mut check = |start, end, distance| {
            let before = seeks.distances.sum();
            seeks.add(start, end);
            assert_eq!(seeks.distances.sum() - before, distance, "{start}..{end}");
        };
        check(100, 108, 100);
        check(108, 116, 0);
        check(200, 208, 84);
        check(100, 108, 100);
        check(104, 112, 0);
        check(0, 200, 104);
        assert_eq!((seeks.distances.count(), seeks.nr_sequential), (6, 2));
    }
}
