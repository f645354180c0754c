// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run with a candidate came to, by the goal and the bounds.

use crate::answer::Price;
use crate::goal::{Keep, own_calls};
use crate::step::{Candidate, Knob};
use blklab::figure::{Calls, Figure};
use blklab::job_rows::JobRow;
use blklab::statistics::{Change as Difference, Figure as Values, Verdict, adjust};

/// What helps less is not combined with anything.
pub(crate) const HELPS: f64 = 1.03;

/// A candidate with fewer steps is preferred to one that is better by less.
pub(crate) const AS_GOOD: f64 = 1.05;

/// What one run with a candidate came to.
pub(crate) struct Trial {
    pub(crate) candidate: Candidate,
    /// What jobs got, by repetition.
    pub(crate) runs: Vec<Vec<JobRow>>,
    pub(crate) gain: f64,
    /// The same with the first seed alone.
    pub(crate) gain_once: f64,
    pub(crate) breaks: Vec<String>,
    /// The round in which it got all seeds; none: it did not.
    pub(crate) round: Option<u32>,
}

/// What trials are judged by.
pub(crate) struct Judge {
    pub(crate) goal: Figure,
    pub(crate) keeps: Vec<Keep>,
    /// The runs without a change, by repetition.
    pub(crate) base: Vec<Vec<JobRow>>,
    pub(crate) others: Vec<String>,
}

/// The best first; of two that are alike the one with fewer steps, and of these the one that
/// no application has to know of.
pub(crate) fn sort(trials: &mut [Trial]) {
    let asks = |t: &Trial| {
        let mut steps = t.candidate.steps.iter();
        steps.any(|s| matches!(s.knob, Knob::Job(_)))
    };
    // Gains within two per cent count as the same.
    let gain = |t: &Trial| (t.gain.max(1e-9).ln() / 1.02f64.ln()).round() as i64;
    trials.sort_by_key(|t| {
        let is_out = !t.keeps();
        (is_out, -gain(t), t.candidate.steps.len(), asks(t))
    });
}

/// The mean of a figure over runs; none if one has none.
pub(crate) fn mean(figure: &Figure, runs: &[Vec<JobRow>]) -> Option<f64> {
    let values: Option<Vec<f64>> = runs.iter().map(|rows| figure.value(rows)).collect();
    let values = values.filter(|v| !v.is_empty())?;
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

/// Whether it is surely better: a load that is the same with each seed is what it is.
pub(crate) fn is_sure(verdict: Verdict, gain: f64) -> bool {
    verdict == Verdict::Better || verdict == Verdict::NoSpread && gain > HELPS
}

impl Judge {
    /// The runs without a change beside so many with one.
    fn base(&self, runs: usize) -> &[Vec<JobRow>] {
        &self.base[..runs.min(self.base.len())]
    }

    pub(crate) fn judge(&self, candidate: Candidate, runs: Vec<Vec<JobRow>>) -> Trial {
        let base = self.base(runs.len());
        let gain = |base: &[Vec<JobRow>], runs: &[Vec<JobRow>]| match (
            mean(&self.goal, base),
            mean(&self.goal, runs),
        ) {
            (Some(before), Some(after)) => self.goal.gain(before, after),
            _ => 0.0,
        };
        let breaks = self.keeps.iter().filter(|keep| {
            let (before, after) = (mean(&keep.figure, base), mean(&keep.figure, &runs));
            !keep.holds(before, after)
        });
        Trial {
            breaks: breaks.map(Keep::to_string).collect(),
            candidate,
            gain: gain(base, &runs),
            gain_once: gain(&base[..1], &runs[..1]),
            runs,
            round: None,
        }
    }

    /// What others pay: bandwidth, and latency where they wait; and the calls that the job of
    /// the goal makes no more.
    pub(crate) fn prices(&self, runs: &[Vec<JobRow>]) -> Vec<Price> {
        let base = self.base(runs.len());
        let figures = self.others.iter().flat_map(|job| {
            ["bandwidth", "clat_p99"].map(|key| Figure::of_job(key, Calls::Main, job))
        });
        let own = own_calls(&self.goal, &self.base[0]);
        let price = |figure: Figure| {
            let before = mean(&figure, base)?;
            let after = mean(&figure, runs);
            Some(Price {
                figure: figure.to_string(),
                before: figure.text(before),
                after: after.map_or("none".to_owned(), |after| figure.text(after)),
                gain: after.map(|after| figure.gain(before, after)),
            })
        };
        own.into_iter().chain(figures).filter_map(price).collect()
    }

    /// The figure of runs on one side and on the other, seed by seed.
    pub(crate) fn between(&self, one: &[Vec<JobRow>], other: &[Vec<JobRow>]) -> Difference {
        let values = |runs: &[Vec<JobRow>]| {
            let all = runs.iter().filter_map(|rows| self.goal.value(rows));
            Values::mean(all.collect())
        };
        Difference::between(&values(one), &values(other), true)
    }

    /// What each comes to beside the experiment as it is. Those that got all seeds in one round
    /// are corrected for their number.
    pub(crate) fn differences(&self, trials: &[Trial]) -> Vec<Difference> {
        let difference = |t: &Trial| self.between(self.base(t.runs.len()), &t.runs);
        let mut all: Vec<Difference> = trials.iter().map(difference).collect();
        let mut rounds: Vec<u32> = trials.iter().filter_map(|t| t.round).collect();
        rounds.sort_unstable();
        rounds.dedup();
        for round in rounds {
            let own = all.iter_mut().zip(trials);
            let own = own.filter(|(_, t)| t.round == Some(round));
            adjust(own.map(|(difference, _)| difference));
        }
        all
    }

    /// Ends of an interval of the figure as how many times better they are.
    pub(crate) fn gains(&self, [low, high]: [f64; 2]) -> [f64; 2] {
        let [a, b] = [self.goal.gain(1.0, low), self.goal.gain(1.0, high)];
        [a.min(b), a.max(b)]
    }

    /// The figure with a trial, for people.
    pub(crate) fn text(&self, trial: &Trial) -> String {
        let value = mean(&self.goal, &trial.runs);
        value.map_or("none".to_owned(), |value| self.goal.text(value))
    }
}

impl Trial {
    /// Whether it is better and keeps to all bounds.
    pub(crate) fn keeps(&self) -> bool {
        self.breaks.is_empty() && self.gain > 0.0
    }

    /// The same, with all seeds since a round.
    pub(crate) fn in_round(self, round: u32) -> Trial {
        Trial {
            round: Some(round),
            ..self
        }
    }
}
