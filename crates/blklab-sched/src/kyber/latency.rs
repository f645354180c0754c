// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latencies against their targets, and the token counts that follow from
//! them.
//!
//! The kernel keeps histograms per CPU and sums them up in the timer, before
//! anything is read; one for all is the same.

use super::domain::{DISCARD, DOMAINS, MAX_DEPTH, MEASURED, READ, WRITE};
use blklab_types::{Jiffies, Span};

/// Quarters of the target: four good buckets, four bad ones.
const BUCKETS: usize = 8;
/// The first bucket of latencies beyond the target.
const BAD: usize = 4;

/// Samples that make a percentile before its time is out.
const ENOUGH: u32 = 500;

const DISCARD_TARGET_NS: u64 = 5_000_000_000;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// From the allocation of the request.
    Total,
    /// From its hand-over to the device.
    Io,
}

type Histogram = [u32; BUCKETS];

/// All histograms.
#[derive(Clone, Debug)]
pub(super) struct Latencies {
    targets_ns: [u64; MEASURED],
    /// By domain and kind.
    histograms: [[Histogram; 2]; MEASURED],
    /// When few samples must do; shared by both kinds.
    timeout: [Option<Jiffies>; MEASURED],
    /// The last percentile of total latencies that found no congestion.
    last_p99: [Option<usize>; MEASURED],
}

/// The bucket of a latency (`add_latency_sample`).
fn bucket(latency: Span, target_ns: u64) -> usize {
    match latency.0.checked_sub(1) {
        None => 0,
        Some(ns) => (ns / (target_ns >> 2).max(1)).min(BUCKETS as u64 - 1) as usize,
    }
}

/// The bucket that holds the sample of a rank, given in percent
/// (`calculate_percentile`).
fn percentile(histogram: &Histogram, percent: u32) -> usize {
    let samples: u64 = histogram.iter().map(|&n| u64::from(n)).sum();
    let mut rank = (samples * u64::from(percent)).div_ceil(100);
    for (i, &n) in histogram[..BUCKETS - 1].iter().enumerate() {
        if u64::from(n) >= rank {
            return i;
        }
        rank -= u64::from(n);
    }
    BUCKETS - 1
}

impl Latencies {
    /// With the targets of reads and writes.
    pub(super) fn new([read, write]: [u64; 2]) -> Latencies {
        let mut targets_ns = [0; MEASURED];
        targets_ns[READ] = read;
        targets_ns[WRITE] = write;
        targets_ns[DISCARD] = DISCARD_TARGET_NS;
        Latencies {
            targets_ns,
            histograms: [[[0; BUCKETS]; 2]; MEASURED],
            timeout: [None; MEASURED],
            last_p99: [None; MEASURED],
        }
    }

    /// `add_latency_sample`.
    pub(super) fn sample(&mut self, d: usize, kind: Kind, latency: Span) {
        let bucket = bucket(latency, self.targets_ns[d]);
        self.histograms[d][kind as usize][bucket] += 1;
    }

    /// A percentile, once there are enough samples or it has taken long
    /// enough; the samples are used up (`calculate_percentile`).
    fn take_percentile(
        &mut self,
        d: usize,
        kind: Kind,
        percent: u32,
        now: Jiffies,
        hz: u64,
    ) -> Option<usize> {
        let histogram = &mut self.histograms[d][kind as usize];
        let samples: u32 = histogram.iter().sum();
        if samples == 0 {
            return None;
        }
        let timeout = *self.timeout[d].get_or_insert(now.plus(hz));
        if samples < ENOUGH && now < timeout {
            return None;
        }
        self.timeout[d] = None;
        let bucket = percentile(histogram, percent);
        *histogram = [0; BUCKETS];
        Some(bucket)
    }

    /// The token counts that follow `depth` (`kyber_timer_fn`).
    pub(super) fn scale(
        &mut self,
        mut depth: [u32; DOMAINS],
        now: Jiffies,
        hz: u64,
    ) -> [u32; DOMAINS] {
        let mut congested = false;
        for d in 0..MEASURED {
            let p90 = self.take_percentile(d, Kind::Io, 90, now, hz);
            congested |= p90.is_some_and(|p| p >= BAD);
        }
        for d in 0..MEASURED {
            let mut p99 = self.take_percentile(d, Kind::Total, 99, now, hz);
            if congested {
                p99 = p99.or(self.last_p99[d]);
                self.last_p99[d] = None;
            } else if p99.is_some() {
                self.last_p99[d] = p99;
            }
            let Some(p99) = p99 else { continue };
            if congested || p99 >= BAD {
                depth[d] = (depth[d] * (p99 as u32 + 1) / 4).clamp(1, MAX_DEPTH[d]);
            }
        }
        depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K5.
    #[test]
    fn buckets_are_quarters_of_the_target() {
        for (ns, at) in [
            (0, 0),
            (1, 0),
            (500_000, 0),
            (500_001, 1),
            (2_000_000, 3),
            (2_000_001, 4),
            (3_500_000, 6),
            (3_500_001, 7),
            (100_000_000, 7),
        ] {
            assert_eq!(bucket(Span(ns), 2_000_000), at, "{ns}");
        }
        for (ns, at) in [(1, 0), (4, 3), (9, 7)] {
            assert_eq!(bucket(Span(ns), 3), at, "{ns}");
        }
    }

    /// K6.
    #[test]
    fn percentiles_are_ranks() {
        let h = [100, 200, 100, 50, 30, 10, 5, 5];
        assert_eq!((percentile(&h, 90), percentile(&h, 99)), (3, 6));
        assert_eq!(percentile(&[0, 0, 0, 0, 0, 0, 0, 3], 90), 7);
    }

    const FULL: [u32; DOMAINS] = MAX_DEPTH;

    /// Samples of one tick, and the bucket they are all in, if any; too few
    /// to count where there are ten.
    struct Tick {
        read_io: Option<usize>,
        read_total: Option<usize>,
        write_io: Option<usize>,
        write_total: Option<usize>,
        few_writes: bool,
        depths: [u32; 3],
        last_p99: [Option<usize>; 3],
    }

    /// K7.
    #[test]
    fn depths_are_scaled_by_quarters() {
        let tick = |read: [Option<usize>; 2], write: [Option<usize>; 2], write_depth| Tick {
            read_io: read[0],
            read_total: read[1],
            write_io: write[0],
            write_total: write[1],
            few_writes: false,
            depths: [256, write_depth, 64],
            last_p99: [None; 3],
        };
        let ticks = [
            tick([Some(7), Some(7)], [Some(0), Some(1)], 64),
            Tick {
                few_writes: true,
                ..tick([Some(5), Some(5)], [None, None], 64)
            },
            Tick {
                last_p99: [Some(3), Some(2), None],
                ..tick([Some(0), Some(3)], [Some(0), Some(2)], 64)
            },
            tick([None, None], [Some(4), None], 48),
            Tick {
                last_p99: [None, Some(6), None],
                ..tick([None, None], [Some(0), Some(6)], 84)
            },
            Tick {
                last_p99: [None, Some(7), None],
                ..tick([None, None], [Some(0), Some(7)], 128)
            },
        ];
        let mut l = Latencies::new([2_000_000, 10_000_000]);
        let mut depth = FULL;
        for (i, t) in ticks.iter().enumerate() {
            let filled = [
                (READ, Kind::Io, t.read_io),
                (READ, Kind::Total, t.read_total),
                (WRITE, Kind::Io, t.write_io),
                (WRITE, Kind::Total, t.write_total),
            ];
            for (d, kind, at) in filled {
                if let Some(at) = at {
                    l.histograms[d][kind as usize][at] += 5000;
                }
            }
            if t.few_writes {
                l.histograms[WRITE] = [[10, 0, 0, 0, 0, 0, 0, 0]; 2];
            }
            depth = l.scale(depth, Jiffies(100 * i as u64), 1000);
            assert_eq!(depth[..3], t.depths, "tick {}", i + 1);
            assert_eq!(l.last_p99, t.last_p99, "tick {}", i + 1);
        }
    }

    /// K8: a read of 1 ms each 10 ms, ticks each 100 ms.
    #[test]
    fn slow_sampling() {
        let mut l = Latencies::new([2_000_000, 10_000_000]);
        let sum = |h: &Histogram| h.iter().sum::<u32>();
        let (mut completion, mut cleared) = (5_500_000_u64, Vec::new());
        for tick in (105..=6105).step_by(100) {
            while completion < tick * 1_000_000 {
                for kind in [Kind::Total, Kind::Io] {
                    l.sample(READ, kind, Span::from_ms(1));
                }
                completion += 10_000_000;
            }
            let before = l.histograms[READ];
            l.scale(FULL, Jiffies(tick), 1000);
            for kind in [Kind::Io, Kind::Total] {
                let i = kind as usize;
                if sum(&l.histograms[READ][i]) == 0 {
                    cleared.push((tick, kind, sum(&before[i])));
                }
            }
            let timeout = match tick {
                105..=1004 => Some(1105),
                1105..=2104 => Some(2105),
                5005 => None,
                5105..=6104 => Some(6105),
                _ => continue,
            };
            assert_eq!(l.timeout[READ], timeout.map(Jiffies), "at {tick}");
        }
        assert_eq!(
            cleared,
            [
                (1105, Kind::Io, 110),
                (2105, Kind::Io, 100),
                (3105, Kind::Io, 100),
                (4105, Kind::Io, 100),
                (5005, Kind::Total, 500),
                (6105, Kind::Io, 200),
            ]
        );
    }
}
