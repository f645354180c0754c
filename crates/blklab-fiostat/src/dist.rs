// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latencies and queue depths by classes, and their shares.
//!
//! Source: fio 3.33, `io_u.c` and `stat.c`.

/// Completion latencies by decade-like ranges; each bucket is named by its
/// exclusive upper bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatDist {
    /// Below 2, 4, 10, 20, 50, 100, 250, 500, 750, 1000 ns.
    pub ns: [u64; 10],
    /// The same bounds in µs, from 1 µs.
    pub us: [u64; 10],
    /// The same bounds in ms, from 1 ms; then below 2000 ms, then the rest.
    pub ms: [u64; 12],
}

const BOUNDS: [u64; 11] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000, 2000];

impl LatDist {
    /// Counts one latency.
    pub fn add(&mut self, latency_ns: u64) {
        let class = |value| BOUNDS.partition_point(|&bound| bound <= value);
        match latency_ns {
            0..1_000 => self.ns[class(latency_ns)] += 1,
            1_000..1_000_000 => self.us[class(latency_ns / 1_000)] += 1,
            _ => self.ms[class(latency_ns / 1_000_000)] += 1,
        }
    }

    pub(crate) fn merge(&mut self, other: &LatDist) {
        add_all(&mut self.ns, &other.ns);
        add_all(&mut self.us, &other.us);
        add_all(&mut self.ms, &other.ms);
    }
}

/// Counts by class of a queue depth or of the size of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DepthMap(pub [u64; 7]);

impl DepthMap {
    /// Counts `n` I/Os at a queue depth: 1, 2-3, 4-7, 8-15, 16-31, 32-63, more.
    pub fn add_depth(&mut self, depth: u32, n: u64) {
        let class = depth.max(1).ilog2().min(6);
        self.0[class as usize] = self.0[class as usize].saturating_add(n);
    }

    /// Counts one batch of `n`: 0, 1-4, 5-8, 9-16, 17-32, 33-64, more.
    pub fn add_batch(&mut self, n: u32) {
        let class = [0, 4, 8, 16, 32, 64].partition_point(|&bound| bound < n);
        self.0[class] += 1;
    }

    pub(crate) fn merge(&mut self, other: &DepthMap) {
        add_all(&mut self.0, &other.0);
    }

    /// Shares of `total` in percent; what is there is at least 0.1 %.
    pub fn percent(&self, total: u64) -> [f64; 7] {
        percent_of(&self.0, total, 0.1)
    }
}

/// Shares of `total` in percent, those above zero raised to `least`.
pub(crate) fn percent_of<const N: usize>(counts: &[u64; N], total: u64, least: f64) -> [f64; N] {
    counts.map(|count| match (count, total) {
        (0, _) | (_, 0) => 0.0,
        _ => (count as f64 / total as f64 * 100.0).max(least),
    })
}

fn add_all<const N: usize>(mine: &mut [u64; N], theirs: &[u64; N]) {
    for (m, t) in mine.iter_mut().zip(theirs) {
        *m = m.saturating_add(*t);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_ranges() {
        let class_of = |latency_ns| {
            let mut dist = LatDist::default();
            dist.add(latency_ns);
            let all = [&dist.ns[..], &dist.us[..], &dist.ms[..]].concat();
            all.iter().position(|&n| n == 1)
        };
        let check =
            |latency_ns, class| assert_eq!(class_of(latency_ns), Some(class), "{latency_ns}");
        check(0, 0);
        check(1, 0);
        check(2, 1);
        check(3, 1);
        check(4, 2);
        check(999, 9);
        check(1_000, 10);
        check(1_999, 10);
        check(2_000, 11);
        check(750_000, 19);
        check(999_999, 19);
        check(1_000_000, 20);
        check(999_999_999, 29);
        check(1_000_000_000, 30);
        check(2_000_000_000, 31);
        check(u64::MAX, 31);
    }

    #[test]
    fn depth_classes() {
        let mut map = DepthMap::default();
        for (depth, class) in [
            (1, 0),
            (2, 1),
            (3, 1),
            (4, 2),
            (15, 3),
            (63, 5),
            (64, 6),
            (4096, 6),
        ] {
            let before = map.0[class];
            map.add_depth(depth, 2);
            assert_eq!(map.0[class], before + 2, "depth {depth}");
        }
    }

    #[test]
    fn batch_classes() {
        let mut map = DepthMap::default();
        for (n, class) in [
            (0, 0),
            (1, 1),
            (4, 1),
            (5, 2),
            (16, 3),
            (17, 4),
            (64, 5),
            (65, 6),
        ] {
            let before = map.0[class];
            map.add_batch(n);
            assert_eq!(map.0[class], before + 1, "batch of {n}");
        }
    }

    #[test]
    fn rare_classes_stay_visible() {
        let map = DepthMap([1, 0, 0, 0, 9_999, 0, 0]);
        assert_eq!(map.percent(10_000), [0.1, 0.0, 0.0, 0.0, 99.99, 0.0, 0.0]);
        assert_eq!(map.percent(0), [0.0; 7]);
    }
}
