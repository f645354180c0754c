// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run with a candidate came to, by the goal and the bounds.

use crate::answer::Price;
use crate::goal::{Keep, own_calls};
use crate::step::{Candidate, Knob};
use blklab::figure::{Calls, Figure};
use blklab::job_rows::JobRow;
use blklab::statistics::{Change as Difference, Figure as Values};

/// What helps less is not combined with anything.
pub(crate) const HELPS: f64 = 1.03;

/// What one run with a candidate came to.
pub(crate) struct Trial {
    pub(crate) candidate: Candidate,
    /// What jobs got, by repetition.
    pub(crate) runs: Vec<Vec<JobRow>>,
    pub(crate) gain: f64,
    /// The same with the first seed alone.
    pub(crate) gain_once: f64,
    pub(crate) breaks: Vec<String>,
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

    pub(crate) fn difference(&self, runs: &[Vec<JobRow>]) -> Difference {
        let values = |runs: &[Vec<JobRow>]| {
            let all = runs.iter().filter_map(|rows| self.goal.value(rows));
            Values::mean(all.collect())
        };
        Difference::between(&values(self.base(runs.len())), &values(runs), true)
    }
}

impl Trial {
    /// Whether it is better and keeps to all bounds.
    pub(crate) fn keeps(&self) -> bool {
        self.breaks.is_empty() && self.gain > 0.0
    }
}
