// SPDX-License-Identifier: MIT OR Apache-2.0
//! Published and ours, side by side.

use super::study::{Basis, Kind, Measure, Number, Ordering, Rule, Statistic, Study};
use blklab::analysis::Spread;
use serde::Serialize;
use std::fmt;

/// What was measured, and ours.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// The study.
    pub study: String,
    /// The part of the study, if it has several, and the configuration in it.
    pub configuration: String,
    /// Whose: read, write, of a job; bios of a trace.
    pub subject: String,
    /// What is measured.
    pub metric: &'static str,
    /// Its unit; 1 for counts and shares.
    pub unit: &'static str,
    /// Ours over the seeds; none if nothing ran.
    pub ours: Option<Spread>,
    /// How many seeds ran.
    pub runs: usize,
}

/// One published number and ours.
#[derive(Clone, Debug, Serialize)]
pub struct NumberOutcome {
    /// What it is about.
    #[serde(flatten)]
    pub measured: Measured,
    /// As published.
    pub published: f64,
    /// Our median over the published number.
    pub ratio: Option<f64>,
    /// How far ours may be off, in words.
    pub tolerance: String,
    /// The same as the least and the largest ratio; none where there is no bound.
    pub allowed: [Option<f64>; 2],
    /// Whether the median is that near.
    pub within: bool,
    /// Calibrated or predicted.
    pub kind: Kind,
    /// The parameter that was fitted to it.
    pub parameter: Option<String>,
    /// What a reader should know.
    pub remark: String,
}

/// Something that has to hold between figures.
#[derive(Clone, Debug, Serialize)]
pub struct OrderingOutcome {
    /// The study.
    pub study: String,
    /// In words.
    pub text: String,
    /// Who says that it has to hold.
    pub basis: Basis,
    /// What a reader should know about that.
    pub remark: String,
    /// The quotient, figure or deviation in percent that is compared; of an
    /// ascending order its smallest step as a factor.
    pub value: Option<f64>,
    /// Least and most that it may be; none where there is no bound.
    pub expected: [Option<f64>; 2],
    /// Whether it holds; none if there were too few runs to tell.
    pub holds: Option<bool>,
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
    /// Orderings that were published.
    #[serde(flatten)]
    pub orderings: Tally,
    /// Orderings that we expect and nobody published.
    pub expected: Tally,
    /// Published orderings that a measured kernel contradicts.
    pub contradicted: Tally,
}

/// How many of some orderings hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// All of them.
    pub orderings: usize,
    /// Those that hold.
    pub orderings_hold: usize,
    /// Those that need more runs than there were.
    pub orderings_undecided: usize,
}

impl Tally {
    fn new(all: &[OrderingOutcome], basis: Basis) -> Tally {
        let wanted = || all.iter().filter(|o| o.basis == basis);
        Tally {
            orderings: wanted().count(),
            orderings_hold: wanted().filter(|o| o.holds == Some(true)).count(),
            orderings_undecided: wanted().filter(|o| o.holds.is_none()).count(),
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.orderings_hold, self.orderings)?;
        match self.orderings_undecided {
            0 => Ok(()),
            n => write!(f, " ({n} need more runs)"),
        }
    }
}

impl Summary {
    /// Whether nothing that was published is off.
    pub fn is_good(&self) -> bool {
        let o = self.orderings;
        self.predicted_within == self.predicted
            && o.orderings_hold + o.orderings_undecided == o.orderings
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} numbers: {} calibrated, {} predicted, of these {} within; {} published orderings hold",
            self.numbers, self.calibrated, self.predicted, self.predicted_within, self.orderings
        )?;
        if self.expected.orderings > 0 {
            write!(f, "; of ours {}", self.expected)?;
        }
        if self.contradicted.orderings > 0 {
            let n = self.contradicted;
            write!(f, "; of those that a measured kernel contradicts {n}")?;
        }
        Ok(())
    }
}

/// What a study is.
#[derive(Clone, Debug, Serialize)]
pub struct About {
    /// Its name.
    pub name: String,
    /// In a line.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// What is known to be different here.
    pub differs: String,
}

/// The outcome of some studies.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduction {
    /// The studies, in their order.
    pub studies: Vec<About>,
    /// Totals.
    pub summary: Summary,
    /// Number by number, in order of the studies.
    pub numbers: Vec<NumberOutcome>,
    /// Figures that orderings compare and nobody published.
    pub unpublished: Vec<Measured>,
    /// Ordering by ordering.
    pub orderings: Vec<OrderingOutcome>,
}

impl Reproduction {
    /// `values`: by study and measure, one value for each seed.
    pub(super) fn new(studies: &[Study], values: &[Vec<Vec<f64>>]) -> Reproduction {
        let about = |s: &Study| About {
            name: s.name.clone(),
            title: s.title.clone(),
            source: s.source.clone(),
            differs: s.differs.clone(),
        };
        let mut all = Reproduction {
            studies: studies.iter().map(about).collect(),
            summary: Summary::default(),
            numbers: Vec::new(),
            unpublished: Vec::new(),
            orderings: Vec::new(),
        };
        for (study, values) in studies.iter().zip(values) {
            let numbers = study.numbers.iter();
            all.numbers
                .extend(numbers.map(|n| number(study, n, &values[n.measure])));
            let unpublished = study.measures.iter().zip(values).enumerate();
            let unpublished = unpublished
                .filter(|(i, _)| study.numbers.iter().all(|n| n.measure != *i))
                .map(|(_, (m, values))| measured(study, m, values));
            all.unpublished.extend(unpublished);
            let orderings = study.orderings.iter();
            all.orderings
                .extend(orderings.map(|o| ordering(study, o, values)));
        }
        let count = |f: fn(&NumberOutcome) -> bool| all.numbers.iter().filter(|n| f(n)).count();
        all.summary = Summary {
            numbers: all.numbers.len(),
            calibrated: count(|n| n.kind == Kind::Calibrated),
            predicted: count(|n| n.kind == Kind::Predicted),
            predicted_within: count(|n| n.kind == Kind::Predicted && n.within),
            orderings: Tally::new(&all.orderings, Basis::Published),
            expected: Tally::new(&all.orderings, Basis::Expected),
            contradicted: Tally::new(&all.orderings, Basis::Contradicted),
        };
        all
    }
}

pub(super) fn measured(study: &Study, m: &Measure, values: &[f64]) -> Measured {
    Measured {
        study: study.name.clone(),
        configuration: study.configuration(m.part, m.variant),
        subject: m.subject.text(),
        metric: m.metric.metric.title,
        unit: m.metric.unit.text(),
        ours: (!values.is_empty()).then(|| Spread::new(values.to_vec())),
        runs: values.len(),
    }
}

fn number(study: &Study, n: &Number, values: &[f64]) -> NumberOutcome {
    let measured = measured(study, &study.measures[n.measure], values);
    let ratio = measured.ours.map(|s| s.median / n.published);
    NumberOutcome {
        measured,
        published: n.published,
        ratio,
        tolerance: n.tolerance.to_string(),
        allowed: n.tolerance.ratios(),
        within: ratio.is_some_and(|r| n.tolerance.allows(r)),
        kind: n.kind(),
        parameter: n.calibrated.clone(),
        remark: n.remark.clone(),
    }
}

/// Fewest runs that say something about a deviation.
const CV_RUNS_MIN: usize = 3;

/// One number for the values of all seeds; none if there are too few.
fn statistic(over: Statistic, values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let spread = Spread::new(values.to_vec());
    Some(match over {
        Statistic::Median => spread.median,
        Statistic::Min => spread.min,
        Statistic::Max => spread.max,
        Statistic::Cv if values.len() < CV_RUNS_MIN => return None,
        Statistic::Cv => {
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let squares = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
            (squares / (n - 1.0)).sqrt() / mean
        }
    })
}

pub(super) fn ordering(study: &Study, o: &Ordering, values: &[Vec<f64>]) -> OrderingOutcome {
    let figures = o.measures.iter().map(|i| statistic(o.over, &values[*i]));
    let figures: Option<Vec<f64>> = figures.collect();
    let value = figures.map(|f| compared(o.rule, &f));
    let (low, high) = match o.rule {
        Rule::Ascending(factor) => (factor, f64::INFINITY),
        Rule::Ratio(low, high) | Rule::Value(low, high) => (low, high),
        Rule::Equal(percent) => (0.0, percent),
    };
    let holds = value.map(|v| match o.rule {
        Rule::Ascending(factor) => v > factor,
        _ => (low..=high).contains(&v),
    });
    // What did not run at all does not hold.
    let ran = o.measures.iter().all(|i| !values[*i].is_empty());
    OrderingOutcome {
        study: study.name.clone(),
        text: o.text.clone(),
        basis: o.basis,
        remark: o.remark.clone(),
        value: value.filter(|v| v.is_finite()),
        expected: [low, high].map(|b| b.is_finite().then_some(b)),
        holds: if ran { holds } else { Some(false) },
    }
}

/// What a rule compares with its bounds.
fn compared(rule: Rule, figures: &[f64]) -> f64 {
    match rule {
        Rule::Ascending(_) => {
            let steps = figures.windows(2).map(|pair| pair[1] / pair[0]);
            steps.fold(f64::INFINITY, f64::min)
        }
        Rule::Ratio(..) => figures[0] / figures[1],
        Rule::Value(..) => figures[0],
        Rule::Equal(_) => {
            let high = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let low = figures.iter().copied().fold(f64::INFINITY, f64::min);
            (high / low - 1.0) * 100.0
        }
    }
}
