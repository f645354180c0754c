// SPDX-License-Identifier: MIT OR Apache-2.0
//! What anticipatory, CFQ and BFQ remember about a process: decaying means of its
//! think time and of the distance between its requests.
//!
//! Fixed point, 256 = 1.0, integer divisions rounding down: block/as-iosched.c
//! and block/cfq-iosched.c of 2.6.16 to 4.19 and block/bfq-iosched.c use the
//! same arithmetic.

/// Adds one sample of weight 1/8 to a decaying sum.
pub(crate) fn decay(total: u64, sample: u64) -> u64 {
    (total.wrapping_mul(7)).wrapping_add(sample.wrapping_mul(256)) / 8
}

/// A decaying mean of think times, in the unit of the samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThinkTime {
    pub(crate) samples: u64,
    pub(crate) total: u64,
    pub(crate) mean: u64,
}

impl ThinkTime {
    /// Adds a sample, cut by the caller.
    pub(crate) fn add(&mut self, think: u64) {
        self.samples = decay(self.samples, 1);
        self.total = decay(self.total, think);
        self.mean = (self.total + 128) / self.samples;
    }

    /// Whether CFQ and BFQ trust the mean: from the third sample on.
    pub(crate) fn is_valid(&self) -> bool {
        self.samples > 80
    }
}

/// A decaying mean of seek distances in sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeekDistance {
    pub(crate) samples: u64,
    pub(crate) total: u64,
    pub(crate) mean: u64,
}

impl SeekDistance {
    /// Adds a distance, cut so that one far seek does not drown the rest.
    pub(crate) fn add(&mut self, sectors: u64) {
        let slack = if self.samples <= 60 {
            2 * 1024 * 1024
        } else {
            128 * 1024
        };
        let sectors = sectors.min(self.mean.saturating_mul(4).saturating_add(slack));
        self.samples = decay(self.samples, 1);
        self.total = decay(self.total, sectors);
        self.mean = (self.total + self.samples / 2) / self.samples;
    }

    /// Whether CFQ trusts the mean.
    pub(crate) fn is_valid(&self) -> bool {
        self.samples > 80
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_run_as_the_specification_says() {
        let (mut t, mut counts, mut means) = (ThinkTime::default(), Vec::new(), Vec::new());
        for _ in 0..11 {
            t.add(0);
            counts.push(t.samples);
            means.push(t.mean);
        }
        assert_eq!(counts, [32, 60, 84, 105, 123, 139, 153, 165, 176, 186, 194]);
        assert_eq!(means[..7], [4, 2, 1, 1, 1, 0, 0]);
    }

    #[test]
    fn think_times_in_nanoseconds() {
        let mean = |samples: [u64; 3]| {
            let mut t = ThinkTime::default();
            for e in samples {
                assert!(!t.is_valid());
                t.add(e);
            }
            assert!(t.is_valid());
            (t.samples, t.total, t.mean)
        };
        let short = mean([0, 3_000_000, 3_000_000]);
        assert_eq!(short, (84, 180_000_000, 2_142_858));
        let long = mean([0, 6_000_000, 6_000_000]);
        assert_eq!(long, (84, 360_000_000, 4_285_715));
    }

    #[test]
    fn far_seeks_are_cut() {
        let mut s = SeekDistance::default();
        s.add(1 << 40);
        assert_eq!((s.samples, s.mean), (32, 2 * 1024 * 1024));
    }
}
