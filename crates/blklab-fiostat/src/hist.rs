// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio's latency histogram: 29 groups of 64 buckets over 64-bit nanoseconds.
//!
//! Values below 128 have a bucket each; above that every power of two is cut
//! into 64 equal buckets, so a bucket is at most 1/64 of its value wide. Source:
//! fio's `stat.h`. Values from 2^34 ns (17 s) on share the last bucket.

use crate::rank::percentile_rank;

/// Number of buckets.
pub const BUCKETS: usize = 29 << GROUP_BITS;

const GROUP_BITS: u32 = 6;
const GROUP_LEN: u64 = 1 << GROUP_BITS;

/// The counts of one power of two.
type Group = [u64; GROUP_LEN as usize];

/// Counts of latencies by bucket. A power of two takes memory when it has a
/// value: a job has ten histograms of 15 KB, of which most are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyHist {
    /// All powers of two, or none while there is no value.
    groups: Vec<Option<Box<Group>>>,
}

const GROUPS: usize = BUCKETS >> GROUP_BITS;

impl LatencyHist {
    /// Counts one value.
    pub fn add(&mut self, value_ns: u64) {
        self.add_many(value_ns, 1);
    }

    /// Counts `n` values at once.
    pub fn add_many(&mut self, value_ns: u64, n: u64) {
        let bucket = bucket_of(value_ns);
        if self.groups.is_empty() {
            self.begin();
        }
        let group = &mut self.groups[bucket >> GROUP_BITS];
        let count = &mut group.get_or_insert_with(empty)[bucket % GROUP_LEN as usize];
        *count = count.saturating_add(n);
    }

    #[cold]
    fn begin(&mut self) {
        self.groups.resize_with(GROUPS, || None);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &LatencyHist) {
        if self.groups.is_empty() {
            self.groups.clone_from(&other.groups);
            return;
        }
        for (mine, theirs) in self.groups.iter_mut().zip(&other.groups) {
            let Some(theirs) = theirs else { continue };
            let mine = mine.get_or_insert_with(empty);
            for (mine, theirs) in mine.iter_mut().zip(theirs.iter()) {
                *mine = mine.saturating_add(*theirs);
            }
        }
    }

    /// Sets all counts to zero.
    pub fn clear(&mut self) {
        *self = LatencyHist::default();
    }

    /// Sums of so many counts at a time, by bucket: a power of two up to 64.
    pub(crate) fn columns(&self, buckets: usize) -> impl Iterator<Item = u64> {
        let groups = (0..GROUPS).map(|i| match self.groups.get(i) {
            Some(Some(group)) => &**group,
            _ => &EMPTY,
        });
        groups.flat_map(move |group| group.chunks(buckets).map(|c| c.iter().sum()))
    }

    /// Buckets that are not empty and their counts, in rising order.
    fn counts(&self) -> impl Iterator<Item = (usize, u64)> {
        let groups = self.groups.iter().enumerate();
        let used = groups.filter_map(|(i, group)| Some((i << GROUP_BITS, group.as_deref()?)));
        let counts = used.flat_map(|(first, group)| {
            let counts = group.iter().enumerate();
            counts.map(move |(i, count)| (first + i, *count))
        });
        counts.filter(|(_, count)| *count > 0)
    }

    /// Value and count of each bucket that is not empty, in rising order.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64)> {
        self.counts()
            .map(|(bucket, count)| (value_of(bucket), count))
    }

    /// The value at each percentile of a sorted list: that of the first bucket
    /// at which the running count reaches the percentile of `samples`.
    ///
    /// `samples` is the number of values summarised elsewhere; it equals the sum
    /// of the counts unless counting was switched off.
    pub fn percentiles(&self, sorted_list: &[f64], samples: u64) -> Vec<u64> {
        let mut values = Vec::with_capacity(sorted_list.len());
        let mut pending = sorted_list
            .iter()
            .map(|&p| percentile_rank(p, samples))
            .peekable();
        let mut sum = 0_u64;
        // A rank of 0 is reached by the first bucket, whatever it holds.
        for (bucket, count) in std::iter::once((0, 0)).chain(self.counts()) {
            sum = sum.saturating_add(count);
            while pending.next_if(|&rank| sum >= rank).is_some() {
                values.push(value_of(bucket));
            }
            if pending.peek().is_none() {
                break;
            }
        }
        values.resize(sorted_list.len(), 0);
        values
    }
}

const EMPTY: Group = [0; GROUP_LEN as usize];

fn empty() -> Box<Group> {
    Box::new(EMPTY)
}

/// The bucket that counts a value.
fn bucket_of(value: u64) -> usize {
    let msb = value.checked_ilog2().unwrap_or(0);
    if msb <= GROUP_BITS {
        return value as usize;
    }
    let shift = msb - GROUP_BITS;
    let first_of_group = u64::from(shift + 1) << GROUP_BITS;
    let bucket = first_of_group + ((value >> shift) & (GROUP_LEN - 1));
    (bucket as usize).min(BUCKETS - 1)
}

/// The value a bucket stands for: the middle of its range.
pub(crate) fn value_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < GROUP_LEN << 1 {
        return bucket;
    }
    let shift = (bucket >> GROUP_BITS) - 1;
    let first = 1 << (shift + u64::from(GROUP_BITS));
    first + ((bucket % GROUP_LEN) << shift) + ((1 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_one_takes_no_memory() {
        assert!(size_of::<LatencyHist>() <= 24);
        let mut hist = LatencyHist::default();
        assert!(hist.groups.is_empty());
        assert!(hist.columns(8).all(|count| count == 0));
        assert_eq!(hist.columns(8).count(), BUCKETS / 8);
        hist.merge(&LatencyHist::default());
        assert_eq!(hist, LatencyHist::default());
        hist.add(5);
        hist.merge(&LatencyHist::default());
        let mut other = LatencyHist::default();
        other.merge(&hist);
        other.add(5);
        assert_eq!(other.bins().collect::<Vec<_>>(), [(5, 2)]);
        assert_eq!(hist.bins().collect::<Vec<_>>(), [(5, 1)]);
    }

    #[test]
    fn small_values_are_exact() {
        for value in 0..128 {
            assert_eq!(value_of(bucket_of(value)), value);
        }
    }

    #[test]
    fn bucket_edges() {
        let check = |value, bucket, middle| {
            assert_eq!(bucket_of(value), bucket, "bucket of {value}");
            assert_eq!(value_of(bucket), middle, "value of {bucket}");
        };
        check(128, 128, 129);
        check(129, 128, 129);
        check(130, 129, 131);
        check(255, 191, 255);
        check(256, 192, 258);
        check(22_912, 601, 22_912);
        check((1 << 34) - 1, BUCKETS - 1, 17_112_760_320);
        check(u64::MAX, BUCKETS - 1, 17_112_760_320);
    }

    #[test]
    fn every_bucket_holds_its_own_value() {
        for bucket in 0..BUCKETS {
            assert_eq!(bucket_of(value_of(bucket)), bucket);
        }
    }

    #[test]
    fn percentile_is_the_first_bucket_that_reaches_the_rank() {
        let mut hist = LatencyHist::default();
        (1..=100).for_each(|v| hist.add(v));
        assert_eq!(
            hist.percentiles(&[1.0, 50.0, 99.0, 100.0], 100),
            [1, 50, 99, 100]
        );
        assert_eq!(hist.percentiles(&[99.5], 100), [100]);
        assert_eq!(LatencyHist::default().percentiles(&[50.0], 0), [0]);
    }
}
