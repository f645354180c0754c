// SPDX-License-Identifier: MIT OR Apache-2.0
//! Intervals by the bootstrap: the runs are drawn again and again, with replacement,
//! and the interval holds the middle of what comes out.

use super::figure::Figure;
use super::student::tail_of_percentiles;
use blklab_engine::Stream;

/// The confidence of intervals and verdicts.
pub const CONFIDENCE: f64 = 0.95;

impl Figure {
    /// The 95 % interval of the value; none of fewer than two runs.
    pub fn interval(&self) -> Option<[f64; 2]> {
        own_interval(self, CONFIDENCE)
    }
}

/// Draws. More than enough for two digits.
const DRAWS: usize = 2000;

/// The interval of the ratio of two figures at a confidence, by percentiles. Few runs
/// draw too narrow an interval; the percentiles are moved outwards by as much as
/// Student's distribution is wider (T. Hesterberg, "What Teachers Should Know About the
/// Bootstrap", The American Statistician 69, 2015, section 4.2: the expanded percentile
/// interval). None if a side has fewer than two runs or is 0.
pub(crate) fn interval(
    before: &Figure,
    after: &Figure,
    is_paired: bool,
    confidence: f64,
) -> Option<[f64; 2]> {
    let fewest = before.runs().min(after.runs());
    if fewest < 2 {
        return None;
    }
    // The same figures give the same interval.
    let mut random = Stream::named(0, "bootstrap");
    let mut draw = |n: usize| -> Vec<usize> {
        let picks = (0..n).map(|_| random.below(n as u64) as usize);
        picks.collect()
    };
    let mut ratios = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        let of_before = draw(before.runs());
        let of_after = if is_paired {
            of_before.clone()
        } else {
            draw(after.runs())
        };
        let low = before.over(&of_before);
        if low <= 0.0 {
            return None;
        }
        ratios.push(after.over(&of_after) / low);
    }
    Some(middle(&mut ratios, fewest, confidence))
}

/// The interval of a figure by itself, in the same way. None of fewer than two runs.
pub(crate) fn own_interval(figure: &Figure, confidence: f64) -> Option<[f64; 2]> {
    if figure.runs() < 2 {
        return None;
    }
    let mut random = Stream::named(0, "bootstrap");
    let mut values: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let picks = (0..figure.runs()).map(|_| random.below(figure.runs() as u64) as usize);
            figure.over(&picks.collect::<Vec<usize>>())
        })
        .collect();
    Some(middle(&mut values, figure.runs(), confidence))
}

/// What the middle of some draws spans.
fn middle(values: &mut [f64], runs: usize, confidence: f64) -> [f64; 2] {
    values.sort_by(f64::total_cmp);
    let tail = tail_of_percentiles(runs, confidence);
    let cut = ((values.len() as f64 * tail) as usize).min((values.len() - 1) / 2);
    [values[cut], values[values.len() - 1 - cut]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_holds_the_ratio_as_often_as_it_says() {
        // Sums of uniform numbers: both sides have a mean of 6.
        let mut random = Stream::named(1, "test");
        let mut side = || {
            let value = |random: &mut Stream| {
                let parts = (0..12).map(|_| random.below(1 << 20) as f64 / f64::from(1 << 20));
                parts.sum::<f64>()
            };
            Figure::mean((0..6).map(|_| value(&mut random)).collect())
        };
        let trials = 300;
        let inside = (0..trials)
            .filter(|_| {
                let [low, high] = interval(&side(), &side(), false, 0.95).expect("six runs");
                (low..=high).contains(&1.0)
            })
            .count();
        let share = inside as f64 / f64::from(trials);
        assert!((0.92..=0.99).contains(&share), "{share}");
    }

    #[test]
    fn a_figure_has_an_interval_of_its_own() {
        let figure = Figure::mean(vec![9.0, 10.0, 11.0, 10.5, 9.5]);
        let [low, high] = own_interval(&figure, 0.95).expect("five runs");
        assert!((8.5..9.6).contains(&low) && (10.4..11.5).contains(&high));
        assert_eq!(own_interval(&Figure::mean(vec![1.0]), 0.95), None);
    }

    #[test]
    fn pairs_share_their_noise() {
        let noise = [1.0, 4.0, 2.0, 8.0, 3.0];
        let before = Figure::mean(noise.to_vec());
        let after = Figure::mean(noise.iter().map(|n| n * 1.1).collect());
        let [low, high] = interval(&before, &after, true, 0.95).expect("five runs");
        assert!((low - 1.1).abs() < 1e-9 && (high - 1.1).abs() < 1e-9);
        let [low, high] = interval(&before, &after, false, 0.95).expect("five runs");
        assert!(low < 0.6 && high > 2.0, "{low} to {high}");
        assert_eq!(
            interval(&Figure::mean(vec![1.0]), &after, false, 0.95),
            None
        );
        let zero = Figure::mean(vec![0.0, 0.0]);
        assert_eq!(interval(&zero, &after, false, 0.95), None);
    }
}
