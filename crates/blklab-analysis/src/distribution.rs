// SPDX-License-Identifier: MIT OR Apache-2.0
//! A distribution of latencies: exact count, sum, smallest and largest value,
//! and percentiles from a histogram of logarithmic groups with linear steps.
//!
//! The buckets are fio's (`stat.h`): values below 128 have one each; above,
//! every power of two is divided into 64. A percentile is the middle of its
//! bucket, at most 0.8 % off. Units: whatever is put in, mostly ns.

use serde::{Serialize, Serializer};

/// Linear steps per power of two, as a power of two.
const STEP_BITS: u32 = 6;
/// fio's highest bucket: 29 groups of 64.
const BUCKET_MAX: usize = 29 * 64 - 1;

/// Percentiles that are serialised and printed: fio's default list.
pub const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// Values, counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    count: u64,
    /// The largest number there is, while there is no value.
    min: u64,
    max: u64,
    sum: u128,
    buckets: Buckets,
}

/// Buckets that are kept as a list. Most processes have values in few; all of
/// them would take 15 KB.
const LISTED_MAX: usize = 8;
/// Buckets of a page: a quarter of a power of two.
const PAGE: usize = 16;
const NR_PAGES: usize = (BUCKET_MAX + 1) / PAGE;

/// Counts by bucket. Which form it has depends on the buckets alone.
#[derive(Clone, Debug)]
enum Buckets {
    /// Those that are not empty, in order.
    Listed(Vec<(u16, u64)>),
    /// Whole pages, where any bucket is not empty.
    Paged(Box<Pages>),
}

#[derive(Clone, Debug)]
struct Pages {
    /// Where the counts of a page are, from 1; 0: it has none.
    places: [u8; NR_PAGES],
    counts: Vec<[u64; PAGE]>,
}

impl Default for Buckets {
    fn default() -> Buckets {
        Buckets::Listed(Vec::new())
    }
}

/// Pages lie in the order in which they came, which makes no difference.
impl PartialEq for Buckets {
    fn eq(&self, other: &Buckets) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Buckets {}

impl Buckets {
    #[inline]
    fn add(&mut self, bucket: usize, count: u64) {
        match self {
            Buckets::Listed(listed) => {
                let known = listed.iter_mut().find(|b| usize::from(b.0) == bucket);
                match known {
                    Some((_, counted)) => *counted += count,
                    None => self.begin(bucket, count),
                }
            }
            Buckets::Paged(pages) => pages.add(bucket, count),
        }
    }

    /// Counts the first value of a bucket that is not listed.
    #[cold]
    fn begin(&mut self, bucket: usize, count: u64) {
        let Buckets::Listed(listed) = self else {
            return self.add(bucket, count);
        };
        if listed.len() < LISTED_MAX {
            let at = listed.partition_point(|b| usize::from(b.0) < bucket);
            listed.insert(at, (bucket as u16, count));
            return;
        }
        let mut pages = Pages {
            places: [0; NR_PAGES],
            counts: Vec::new(),
        };
        for (bucket, count) in listed {
            pages.add(usize::from(*bucket), *count);
        }
        pages.add(bucket, count);
        *self = Buckets::Paged(Box::new(pages));
    }

    /// Those that are not empty, in order, with their counts.
    fn iter(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let (listed, pages) = match self {
            Buckets::Listed(listed) => (&listed[..], None),
            Buckets::Paged(pages) => (&[][..], Some(pages)),
        };
        let listed = listed.iter().map(|(b, n)| (usize::from(*b), *n));
        listed.chain(pages.into_iter().flat_map(|pages| pages.iter()))
    }
}

impl Pages {
    #[inline]
    fn add(&mut self, bucket: usize, count: u64) {
        match usize::from(self.places[bucket / PAGE]) {
            0 => self.begin(bucket, count),
            place => self.counts[place - 1][bucket % PAGE] += count,
        }
    }

    /// Counts the first value of a page.
    #[cold]
    fn begin(&mut self, bucket: usize, count: u64) {
        let mut counts = [0; PAGE];
        counts[bucket % PAGE] = count;
        self.counts.push(counts);
        self.places[bucket / PAGE] = self.counts.len() as u8;
    }

    fn iter(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let used = self.places.iter().enumerate();
        let used = used.filter(|(_, place)| **place > 0);
        let counts = used.flat_map(|(page, place)| {
            let counts = &self.counts[usize::from(*place) - 1];
            let counts = counts.iter().enumerate();
            counts.map(move |(i, count)| (page * PAGE + i, *count))
        });
        counts.filter(|(_, count)| *count > 0)
    }
}

#[inline]
fn bucket_of(value: u64) -> usize {
    // Values of the first two groups have a bucket each.
    let shift = (value | 1 << STEP_BITS).ilog2() - STEP_BITS;
    let idx = ((shift as usize) << STEP_BITS) + (value >> shift) as usize;
    idx.min(BUCKET_MAX)
}

/// The middle of a bucket.
fn value_of(bucket: usize) -> u64 {
    if bucket < 128 {
        return bucket as u64;
    }
    let shift = (bucket >> STEP_BITS) as u32 - 1;
    let low = (1 << (shift + STEP_BITS)) + ((bucket as u64 & 63) << shift);
    low + (1 << shift >> 1)
}

impl Default for Distribution {
    fn default() -> Distribution {
        Distribution {
            count: 0,
            min: u64::MAX,
            max: 0,
            sum: 0,
            buckets: Buckets::default(),
        }
    }
}

impl Distribution {
    /// Counts a value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += u128::from(value);
        self.buckets.add(bucket_of(value), 1);
    }

    /// Counts all values of `other`.
    pub fn merge(&mut self, other: &Distribution) {
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
        for (bucket, count) in other.buckets.iter() {
            self.buckets.add(bucket, count);
        }
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Smallest value; 0 if there is none.
    pub fn min(&self) -> u64 {
        match self.count {
            0 => 0,
            _ => self.min,
        }
    }

    /// Largest value; 0 if there is none.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Sum of the values.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Mean; 0 if there is no value.
    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.sum as f64 / self.count as f64
        }
    }

    /// The value that `percent` of all values do not exceed, to the precision
    /// of the buckets and never beyond the extremes; 0 if there is none.
    pub fn percentile(&self, percent: f64) -> u64 {
        let wanted = percent / 100.0 * self.count as f64;
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter() {
            seen += count;
            if seen as f64 >= wanted {
                return value_of(bucket).clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// Buckets that are not empty: middle and count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.buckets.iter().map(|(bucket, n)| (value_of(bucket), n))
    }
}

/// The parts of a distribution that reports show.
#[derive(Serialize)]
struct Shown {
    count: u64,
    min: u64,
    mean: f64,
    max: u64,
    /// Percent and value.
    percentiles: Vec<(f64, u64)>,
}

impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let percentiles = match self.count {
            0 => Vec::new(),
            _ => PERCENTILES
                .iter()
                .map(|p| (*p, self.percentile(*p)))
                .collect(),
        };
        let shown = Shown {
            count: self.count,
            min: self.min(),
            mean: self.mean(),
            max: self.max,
            percentiles,
        };
        shown.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_those_of_fio() {
        for value in 0..128 {
            assert_eq!(
                (bucket_of(value), value_of(value as usize)),
                (value as usize, value)
            );
        }
        // Value 22800 lies in 22784..23040 of width 256, fio's bin "22912".
        assert_eq!(value_of(bucket_of(22_800)), 22_912);
        assert_eq!(bucket_of(u64::MAX), BUCKET_MAX);
        for bit in 7..33 {
            for value in [1_u64 << bit, (1 << bit) + 1, (2 << bit) - 1] {
                let middle = value_of(bucket_of(value));
                assert!(middle.abs_diff(value) * 128 <= value, "{value}: {middle}");
            }
        }
    }

    /// In one go or in parts, a distribution is the same.
    #[test]
    fn many_buckets_and_few() {
        let mut all = Distribution::default();
        let mut parts = [Distribution::default(), Distribution::default()];
        let mut values: Vec<u64> = (0..3000_u64).map(|k| k * k * 7919 % 10_000_019).collect();
        for (k, value) in values.iter().enumerate() {
            all.add(*value);
            parts[usize::from(k > 2700)].add(*value);
        }
        assert_eq!(all.buckets().map(|(_, n)| n).sum::<u64>(), 3000);
        values.sort_unstable();
        for percent in [1.0, 50.0, 99.0] {
            let exact = values[(percent * 30.0) as usize - 1];
            let shown = all.percentile(percent);
            assert!(
                shown.abs_diff(exact) * 100 <= exact,
                "{percent}: {shown} {exact}"
            );
        }
        let [first, mut second] = parts;
        assert_ne!(first, all);
        second.merge(&first);
        assert_eq!(second, all);
    }

    #[test]
    fn sums_and_percentiles() {
        let mut all = Distribution::default();
        let mut low = Distribution::default();
        let mut high = Distribution::default();
        for value in 1..=100 {
            all.add(value);
            if value <= 50 {
                low.add(value);
            } else {
                high.add(value);
            }
        }
        assert_eq!(
            (all.count(), all.min(), all.max(), all.mean()),
            (100, 1, 100, 50.5)
        );
        assert_eq!(all.percentile(50.0), 50);
        assert_eq!(all.percentile(99.0), 99);
        assert_eq!((all.percentile(0.0), all.percentile(100.0)), (1, 100));
        high.merge(&low);
        assert_eq!(high, all);
        assert_eq!(Distribution::default().percentile(50.0), 0);
    }
}
