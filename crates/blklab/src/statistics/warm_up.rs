// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a run becomes steady.

/// Values whose mean counts as one.
const GROUP: usize = 5;

/// Batches that a recording without repetitions is divided into: few enough for each
/// to be long beside what its I/Os remember of each other.
pub const BATCHES: usize = 20;

/// How many of the values at the beginning are a warm-up: MSER-5 (K. P. White,
/// Simulation 69, 1997), which cuts where the mean of the rest is best known, at groups
/// of five. At most half of the values: none if the best cut is later, since a run that
/// never becomes steady has no warm-up; that is told apart.
pub fn warm_up(values: &[f64]) -> Option<usize> {
    let groups: Vec<f64> = values
        .chunks_exact(GROUP)
        .map(|g| g.iter().sum::<f64>() / GROUP as f64)
        .collect();
    let n = groups.len();
    // The sums of what is behind each cut, from the end.
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for cut in (0..n).rev() {
        sum += groups[cut];
        squares += groups[cut] * groups[cut];
        let rest = (n - cut) as f64;
        let spread = (squares - sum * sum / rest).max(0.0) / (rest * rest);
        // The last few agree by chance.
        if n - cut >= GROUP.max(n / 10) && spread <= best.0 {
            best = (spread, cut);
        }
    }
    (best.1 <= n / 2).then_some(best.1 * GROUP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_engine::Stream;

    fn noise(n: usize) -> Vec<f64> {
        let mut random = Stream::named(3, "noise");
        (0..n).map(|_| 100.0 + random.below(20) as f64).collect()
    }

    #[test]
    fn a_slow_start_is_cut_off() {
        let mut values = noise(1000);
        for (i, value) in values.iter_mut().enumerate().take(200) {
            *value += (200 - i) as f64;
        }
        let cut = warm_up(&values).expect("it becomes steady");
        assert!((150..=260).contains(&cut), "{cut}");
    }

    #[test]
    fn steady_values_lose_little_and_a_drift_is_told() {
        let cut = warm_up(&noise(1000)).expect("steady");
        assert!(cut <= 250, "{cut}");
        let drift: Vec<f64> = (0..1000).map(|i| f64::from(i * i)).collect();
        assert_eq!(warm_up(&drift), None);
        assert_eq!(warm_up(&[1.0, 2.0]), Some(0));
        assert_eq!(warm_up(&[]), Some(0));
    }
}
