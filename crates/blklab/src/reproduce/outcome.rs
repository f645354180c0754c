// SPDX-License-Identifier: MIT OR Apache-2.0
//! Published and ours, side by side.

use super::study::{Number, Ordering, Study};
use crate::summary::Spread;
use serde::Serialize;
use std::fmt;

/// What a published number says about the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Nothing: a parameter was fitted to it.
    Calibrated,
    /// Whether the model is right.
    Predicted,
}

/// One published number and ours.
#[derive(Clone, Debug, Serialize)]
pub struct NumberOutcome {
    /// The study.
    pub study: String,
    /// The part of the study.
    pub part: String,
    /// The configuration.
    pub variant: String,
    /// read or write.
    pub direction: &'static str,
    /// What is measured, with its unit.
    pub metric: &'static str,
    /// As published.
    pub published: f64,
    /// Ours over the seeds; none if nothing ran.
    pub ours: Option<Spread>,
    /// Our median over the published number.
    pub ratio: Option<f64>,
    /// Factor by which ours may be off.
    pub factor: f64,
    /// Whether the median is within that factor.
    pub within: bool,
    /// Calibrated or predicted.
    pub kind: Kind,
    /// What a reader should know.
    pub remark: String,
}

/// Something that has to hold between numbers.
#[derive(Clone, Debug, Serialize)]
pub struct OrderingOutcome {
    /// The study.
    pub study: String,
    /// In words.
    pub text: String,
    /// Whether it holds for our medians.
    pub holds: bool,
}

/// Totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Published numbers.
    pub numbers: usize,
    /// Those that parameters were fitted to.
    pub calibrated: usize,
    /// The others.
    pub predicted: usize,
    /// Predicted numbers within their tolerance.
    pub predicted_within: usize,
    /// Orderings required.
    pub orderings: usize,
    /// Orderings that hold.
    pub orderings_hold: usize,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} numbers: {} calibrated, {} predicted, of these {} within; {} of {} orderings hold",
            self.numbers,
            self.calibrated,
            self.predicted,
            self.predicted_within,
            self.orderings_hold,
            self.orderings
        )
    }
}

/// The outcome of some studies.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduction {
    /// Totals.
    pub summary: Summary,
    /// Number by number, in order of the studies.
    pub numbers: Vec<NumberOutcome>,
    /// Ordering by ordering.
    pub orderings: Vec<OrderingOutcome>,
}

impl Reproduction {
    /// `values`: by study and number, one value for each seed.
    pub(super) fn new(studies: &[Study], values: &[Vec<Vec<f64>>]) -> Reproduction {
        let mut all = Reproduction {
            summary: Summary::default(),
            numbers: Vec::new(),
            orderings: Vec::new(),
        };
        for (study, values) in studies.iter().zip(values) {
            let numbers: Vec<NumberOutcome> = study
                .numbers
                .iter()
                .zip(values)
                .map(|(n, values)| number(study, n, values))
                .collect();
            let orderings = study.orderings.iter().map(|o| ordering(study, o, &numbers));
            all.orderings.extend(orderings);
            all.numbers.extend(numbers);
        }
        let count = |f: fn(&NumberOutcome) -> bool| all.numbers.iter().filter(|n| f(n)).count();
        all.summary = Summary {
            numbers: all.numbers.len(),
            calibrated: count(|n| n.kind == Kind::Calibrated),
            predicted: count(|n| n.kind == Kind::Predicted),
            predicted_within: count(|n| n.kind == Kind::Predicted && n.within),
            orderings: all.orderings.len(),
            orderings_hold: all.orderings.iter().filter(|o| o.holds).count(),
        };
        all
    }
}

fn number(study: &Study, n: &Number, values: &[f64]) -> NumberOutcome {
    let part = &study.parts[n.part];
    let ours = (!values.is_empty()).then(|| Spread::of(values.to_vec()));
    let ratio = ours.map(|s| s.median / n.published);
    NumberOutcome {
        study: study.name.clone(),
        part: part.name.clone(),
        variant: part.variant_name(n.variant).to_owned(),
        direction: n.direction.name(),
        metric: n.metric.text(),
        published: n.published,
        ours,
        ratio,
        factor: n.factor,
        within: ratio.is_some_and(|r| r <= n.factor && r * n.factor >= 1.0),
        kind: if n.calibrated {
            Kind::Calibrated
        } else {
            Kind::Predicted
        },
        remark: n.remark.clone(),
    }
}

fn ordering(study: &Study, o: &Ordering, numbers: &[NumberOutcome]) -> OrderingOutcome {
    let median = |i: &usize| numbers[*i].ours.map(|s| s.median);
    let medians: Option<Vec<f64>> = o.ascending.iter().map(median).collect();
    let rises = |pair: &[f64]| pair[1] > pair[0] * o.factor;
    OrderingOutcome {
        study: study.name.clone(),
        text: o.text.clone(),
        holds: medians.is_some_and(|m| m.windows(2).all(rises)),
    }
}
