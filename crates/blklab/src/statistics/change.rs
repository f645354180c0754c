// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a figure changed from one side to the other.

use super::bootstrap::{CONFIDENCE, interval};
use super::figure::Figure;
use super::student::probability;
use blklab_analysis::metric::Aim;
use serde::Serialize;

/// How a figure changed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// On the side that is compared with.
    pub before: f64,
    /// On the other.
    pub after: f64,
    /// The second over the first; none if that is 0.
    pub ratio: Option<f64>,
    /// Ends of the ratio's interval; none if a side has only one run.
    pub interval: Option<[f64; 2]>,
    /// The probability that sides which do not differ are as far apart; none if a side
    /// has only one run.
    pub probability: Option<f64>,
    /// The same, corrected for the other comparisons by [`adjust`].
    pub adjusted: Option<f64>,
}

/// What a change comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A change for the better.
    Better,
    /// A change for the worse.
    Worse,
    /// A change of something that is neither.
    Higher,
    /// A change of something that is neither.
    Lower,
    /// None that these runs show.
    NoDifference,
    /// Exactly the same in all runs.
    Same,
    /// One run of a side says nothing about the noise.
    OneRun,
    /// Apart by the same in all runs: runs that do not vary say nothing about the noise.
    NoSpread,
}

impl Verdict {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Higher => "higher",
            Verdict::Lower => "lower",
            Verdict::NoDifference => "no difference shown",
            Verdict::Same => "the same",
            Verdict::OneRun => "one value",
            Verdict::NoSpread => "not judged",
        }
    }
}

impl Change {
    /// Of a figure from one side to the other. In pairs, the runs of both sides
    /// stand in the same order.
    pub fn between(before: &Figure, after: &Figure, is_paired: bool) -> Change {
        let (b, a) = (before.value(), after.value());
        let values = [before, after].map(|side| to_be_tested(side.each()));
        // Latencies and rates vary in proportion: their logarithms are tested.
        let probability = match &values {
            [Some(b), Some(a)] => probability(b, a, is_paired),
            _ => probability(before.each(), after.each(), is_paired),
        };
        Change {
            before: b,
            after: a,
            ratio: (b > 0.0).then(|| a / b),
            interval: interval(before, after, is_paired, CONFIDENCE),
            probability,
            adjusted: probability,
        }
    }

    /// Whether all runs are as far apart: then there is nothing to judge by.
    fn has_no_spread(&self) -> bool {
        match self.interval {
            Some([low, high]) => high - low <= f64::EPSILON * high.abs(),
            None => self.probability == Some(0.0),
        }
    }

    /// What it comes to: a change if it is improbable without one, and its interval is
    /// on one side of none.
    pub fn verdict(&self, aim: Aim) -> Verdict {
        let Some(adjusted) = self.adjusted else {
            return if self.before == self.after {
                Verdict::Same
            } else {
                Verdict::OneRun
            };
        };
        let is_beside_one = self
            .interval
            .is_none_or(|[low, high]| low > 1.0 || high < 1.0);
        match self.after.total_cmp(&self.before) {
            std::cmp::Ordering::Equal if adjusted >= 1.0 => Verdict::Same,
            _ if self.has_no_spread() => Verdict::NoSpread,
            _ if adjusted >= 1.0 - CONFIDENCE || !is_beside_one => Verdict::NoDifference,
            std::cmp::Ordering::Equal => Verdict::NoDifference,
            std::cmp::Ordering::Greater => match aim {
                Aim::Higher => Verdict::Better,
                Aim::Lower => Verdict::Worse,
                Aim::None => Verdict::Higher,
            },
            std::cmp::Ordering::Less => match aim {
                Aim::Higher => Verdict::Worse,
                Aim::Lower => Verdict::Better,
                Aim::None => Verdict::Lower,
            },
        }
    }
}

/// Logarithms, if all values have one.
fn to_be_tested(values: &[f64]) -> Option<Vec<f64>> {
    let logarithm = |v: &f64| (*v > 0.0).then(|| v.ln());
    values.iter().map(logarithm).collect()
}

/// Corrects probabilities for the number of comparisons that were made together, so
/// that of changes which are none 95 of 100 such sets show not a single one
/// (S. Holm, Scandinavian Journal of Statistics 6, 1979).
pub fn adjust<'a>(changes: impl IntoIterator<Item = &'a mut Change>) {
    let changes = changes.into_iter();
    let tested = changes.filter(|c| c.probability.is_some());
    let mut tested: Vec<&mut Change> = tested.collect();
    let p = |c: &Change| c.probability.unwrap_or(1.0);
    tested.sort_by(|a, b| p(a).total_cmp(&p(b)));
    let mut least: f64 = 0.0;
    let all = tested.len();
    for (i, change) in tested.into_iter().enumerate() {
        least = least.max(p(change) * (all - i) as f64).min(1.0);
        change.adjusted = Some(least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(before: &[f64], after: &[f64]) -> Change {
        let (b, a) = (before.to_vec(), after.to_vec());
        Change::between(&Figure::mean(b), &Figure::mean(a), false)
    }

    #[test]
    fn verdicts() {
        let faster = change(&[10.0, 10.1, 9.9, 10.0], &[20.0, 20.1, 19.9, 20.0]);
        assert_eq!(faster.verdict(Aim::Higher), Verdict::Better);
        assert_eq!(faster.verdict(Aim::Lower), Verdict::Worse);
        assert_eq!(faster.verdict(Aim::None), Verdict::Higher);
        let noise = change(&[10.0, 14.0, 8.0, 12.0], &[11.0, 13.0, 9.0, 12.5]);
        assert_eq!(noise.verdict(Aim::Lower), Verdict::NoDifference);
        let one = change(&[10.0], &[20.0, 21.0]);
        assert_eq!(one.verdict(Aim::Lower), Verdict::OneRun);
        assert_eq!((one.ratio, one.interval), (Some(2.05), None));
        assert_eq!(change(&[3.0], &[3.0]).verdict(Aim::Lower), Verdict::Same);
        let same = change(&[3.0, 4.0], &[3.0, 4.0]);
        assert_eq!(same.verdict(Aim::Lower), Verdict::Same);
        let fixed = change(&[3.0, 3.0], &[2.0, 2.0]);
        assert_eq!(fixed.verdict(Aim::Lower), Verdict::NoSpread);
        let from_nothing = change(&[0.0, 0.0, 0.0], &[5.0, 5.1, 5.2]);
        assert_eq!(from_nothing.ratio, None);
        assert_eq!(from_nothing.verdict(Aim::Lower), Verdict::Worse);
    }

    #[test]
    fn many_comparisons_need_more() {
        let p = |p: f64| Change {
            before: 1.0,
            after: 2.0,
            ratio: Some(2.0),
            interval: Some([1.5, 2.5]),
            probability: Some(p),
            adjusted: Some(p),
        };
        let mut all = [p(0.04), p(0.001), p(0.03), p(0.02)];
        adjust(&mut all);
        let adjusted = all.map(|c| c.adjusted.unwrap_or_default());
        assert_eq!(adjusted, [0.06, 0.004, 0.06, 0.06]);
        assert_eq!(all[1].verdict(Aim::Lower), Verdict::Worse);
        assert_eq!(all[0].verdict(Aim::Lower), Verdict::NoDifference);
        adjust([]);
    }
}
