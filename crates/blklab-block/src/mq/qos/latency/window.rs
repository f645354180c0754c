// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the bios of a window showed.

/// Latencies of bios (`latency_stat`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Latencies {
    /// On devices that do not seek: how many took as long as the target, and longer
    /// (`percentile_stats`).
    Counted { total: u64, missed: u64 },
    /// On others: their mean, and their sum as long as they are added one by one
    /// (`blk_rq_stat`).
    Averaged { total: u64, sum: u64, mean: u64 },
}

impl Latencies {
    pub(super) fn none(rotational: bool) -> Latencies {
        if rotational {
            Latencies::Averaged {
                total: 0,
                sum: 0,
                mean: 0,
            }
        } else {
            Latencies::Counted {
                total: 0,
                missed: 0,
            }
        }
    }

    /// A bio took so long (`latency_stat_record_time`).
    pub(super) fn add(&mut self, ns: u64, target_ns: u64) {
        match self {
            Latencies::Counted { total, missed } => {
                *total += 1;
                *missed += u64::from(ns >= target_ns);
            }
            Latencies::Averaged { total, sum, mean } => {
                *total += 1;
                *sum += ns;
                *mean = *sum / *total;
            }
        }
    }

    /// Those of another window belong to these, too (`latency_stat_sum`). Of means the
    /// kernel forgets the other's: what is added has its bios in its mean, not in the sum
    /// that it reads.
    pub(super) fn absorb(&mut self, other: Latencies) {
        match (self, other) {
            (
                Latencies::Counted { total, missed },
                Latencies::Counted {
                    total: n,
                    missed: m,
                },
            ) => {
                *total += n;
                *missed += m;
            }
            (Latencies::Averaged { total, mean, .. }, Latencies::Averaged { total: n, .. }) => {
                let all = *total + n;
                *mean = (*mean * *total).checked_div(all).unwrap_or(0);
                *total = all;
            }
            _ => unreachable!("a device seeks or does not"),
        }
    }

    /// Whether they keep the target (`latency_sum_ok`).
    pub(super) fn are_good(&self, target_ns: u64) -> bool {
        match *self {
            Latencies::Counted { total, missed } => missed < (total / 10).max(1),
            Latencies::Averaged { mean, .. } => mean <= target_ns,
        }
    }

    /// How many bios they are of.
    pub(super) fn total(&self) -> u64 {
        match *self {
            Latencies::Counted { total, .. } | Latencies::Averaged { total, .. } => total,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Latencies;

    #[test]
    fn a_tenth_may_miss() {
        let mut seen = Latencies::none(false);
        seen.add(1000, 1000);
        assert!(!seen.are_good(1000), "one of one");
        for _ in 0..19 {
            seen.add(999, 1000);
        }
        assert!(seen.are_good(1000), "one of twenty");
        seen.add(2000, 1000);
        assert!(!seen.are_good(1000), "two of twenty-one");
    }

    #[test]
    fn the_mean_counts_on_devices_that_seek() {
        let mut seen = Latencies::none(true);
        seen.add(500, 1000);
        seen.add(1500, 1000);
        assert!(seen.are_good(1000));
        seen.add(1003, 1000);
        assert!(!seen.are_good(1000));
        let mut sum = Latencies::none(true);
        sum.absorb(seen);
        assert_eq!(sum.total(), 3);
        assert!(sum.are_good(1000), "the kernel loses the mean");
    }
}
