// SPDX-License-Identifier: MIT OR Apache-2.0
//! Studies: experiments, what was published about them, what has to hold.

use super::space::Space;
use super::subject::Subject;
use blklab::analysis::watch::BioFilter;
use blklab::metric::Wanted;
use blklab_experiment::Experiment;
use blklab_types::Error;
use serde::{Deserialize, Serialize};
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

/// A figure that runs of one configuration have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Index of the part.
    pub part: usize,
    /// Index of the configuration in that part.
    pub variant: usize,
    /// Whose figure.
    pub subject: Subject,
    /// Which, in what unit.
    pub metric: Wanted,
}

/// How far ours may be from what was published.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// By this factor, either way.
    Factor(f64),
    /// By so many percent, either way.
    Percent(f64),
    /// Not above: an upper bound was published.
    AtMost,
    /// Not below.
    AtLeast,
}

impl Tolerance {
    /// The least and the largest ratio that are good enough; none where there is no bound.
    pub fn ratios(self) -> [Option<f64>; 2] {
        match self {
            Tolerance::Factor(f) => [Some(1.0 / f), Some(f)],
            Tolerance::Percent(p) => [Some(1.0 - p / 100.0), Some(1.0 + p / 100.0)],
            Tolerance::AtMost => [None, Some(1.0)],
            Tolerance::AtLeast => [Some(1.0), None],
        }
    }

    /// Whether ours over published is good enough.
    pub fn allows(self, ratio: f64) -> bool {
        match self {
            Tolerance::Factor(f) => ratio <= f && ratio * f >= 1.0,
            Tolerance::Percent(p) => (ratio - 1.0).abs() * 100.0 <= p,
            Tolerance::AtMost => ratio <= 1.0,
            Tolerance::AtLeast => ratio >= 1.0,
        }
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tolerance::Factor(factor) => write!(f, "x{factor}"),
            Tolerance::Percent(p) => write!(f, "{p} %"),
            Tolerance::AtMost => f.write_str("at most"),
            Tolerance::AtLeast => f.write_str("at least"),
        }
    }
}

/// One published number.
#[derive(Clone, Debug)]
pub struct Number {
    /// Index of what it measures.
    pub measure: usize,
    /// As published, in the unit of the metric.
    pub published: f64,
    /// How far ours may be off.
    pub tolerance: Tolerance,
    /// The parameter that was fitted to it, by its name in `calibration.toml`.
    pub calibrated: Option<String>,
    /// What a reader should know.
    pub remark: String,
}

impl Number {
    /// What it says about the model.
    pub fn kind(&self) -> Kind {
        match self.calibrated {
            Some(_) => Kind::Calibrated,
            None => Kind::Predicted,
        }
    }
}

/// Which of the values over the seeds a rule is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// The median.
    #[default]
    Median,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// Standard deviation over mean: needs several seeds.
    Cv,
}

/// What has to hold between figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// Each is more than the one before by more than this factor.
    Ascending(f64),
    /// The first over the second is within bounds.
    Ratio(f64, f64),
    /// The only one is within bounds.
    Value(f64, f64),
    /// All are equal: largest over smallest is at most this many percent above
    /// one.
    Equal(f64),
}

/// Who says that an ordering has to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// What was published: it follows from the numbers, or stands in the text.
    Published,
    /// Nobody: we expect it.
    Expected,
    /// What was published, but a measured kernel contradicts it: whether it holds
    /// says nothing about the model.
    Contradicted,
}

/// Something that has to hold between figures.
#[derive(Clone, Debug)]
pub struct Ordering {
    /// In words.
    pub text: String,
    /// Who says so.
    pub basis: Basis,
    /// What a reader should know about that; empty if the published numbers say it all.
    pub remark: String,
    /// Indices of measures.
    pub measures: Vec<usize>,
    /// Which of their values.
    pub over: Statistic,
    /// What has to hold.
    pub rule: Rule,
}

/// An experiment of a study.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// Most seeds that it is run with, for runs that take long.
    pub seeds_max: u32,
    pub(super) experiment: Experiment,
}

impl Part {
    /// Configurations; at least one.
    pub fn nr_variants(&self) -> usize {
        self.experiment.variants.len().max(1)
    }

    /// Name of a configuration; empty if there is only one.
    pub fn variant_name(&self, i: usize) -> &str {
        let v = self.experiment.variants.get(i);
        v.map_or("", |v| &v.name)
    }

    /// The experiment in one configuration.
    #[cfg(test)]
    pub(super) fn variant(&self, i: usize) -> Result<Experiment, Error> {
        self.variant_on(i, &[])
    }

    /// The experiment in one configuration on a machine with these settings; those of
    /// the configuration itself prevail.
    pub(super) fn variant_on(
        &self,
        i: usize,
        settings: &[(String, String)],
    ) -> Result<Experiment, Error> {
        let catalogue = &blklab_sim::catalogue();
        let mut machine = self.experiment.clone();
        for (key, value) in settings {
            // Which scheduler ran is a setting of no table.
            if key == "scheduler" {
                machine.choose_scheduler(value, catalogue)?;
            } else {
                machine.set(key, value, catalogue)?;
            }
        }
        match self.experiment.variants.get(i) {
            Some(v) => machine.with_variant(v, catalogue),
            None => Ok(machine),
        }
    }
}

/// A published experiment.
#[derive(Clone, Debug)]
pub struct Study {
    /// Its name.
    pub name: String,
    /// What it shows, in a line.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// What the model leaves out that matters here.
    pub differs: String,
    /// What is not known of its machine, if that was written down as ranges.
    pub space: Option<Space>,
    /// What differs from run to run on one machine, if more than the moment at which its
    /// jobs start: seeds draw it.
    pub varies: Option<Space>,
    /// Its experiments.
    pub parts: Vec<Part>,
    /// What its runs are asked for.
    pub measures: Vec<Measure>,
    /// What was published.
    pub numbers: Vec<Number>,
    /// What has to hold.
    pub orderings: Vec<Ordering>,
}

impl Study {
    /// What a configuration is called: the part of the study, if it has several, and
    /// the variant.
    pub fn configuration(&self, part: usize, variant: usize) -> String {
        let part = &self.parts[part];
        match (self.parts.len(), part.variant_name(variant)) {
            (_, "") => part.name.clone(),
            (1, variant) => variant.to_owned(),
            (_, variant) => format!("{} {variant}", part.name),
        }
    }

    /// The index of a measure, which is added if it is new.
    pub(super) fn measure(&mut self, m: Measure) -> usize {
        let found = self.measures.iter().position(|o| *o == m);
        found.unwrap_or_else(|| {
            self.measures.push(m);
            self.measures.len() - 1
        })
    }

    /// The measures of one configuration, with their indices.
    pub(super) fn measures_of(
        &self,
        part: usize,
        variant: usize,
    ) -> impl Iterator<Item = (usize, &Measure)> {
        let all = self.measures.iter().enumerate();
        all.filter(move |(_, m)| (m.part, m.variant) == (part, variant))
    }

    /// Filters of the bios that one configuration is asked about.
    pub(super) fn filters_of(&self, part: usize, variant: usize) -> Vec<BioFilter> {
        let mut filters: Vec<BioFilter> = Vec::new();
        for (_, m) in self.measures_of(part, variant) {
            if let Subject::Bios(f) = &m.subject
                && !filters.contains(f)
            {
                filters.push(f.clone());
            }
        }
        filters
    }
}

/// Why there is no such study.
#[derive(Clone, Debug)]
pub enum StudyError {
    /// No such name; the valid ones.
    Unknown(String, Vec<&'static str>),
    /// Its data are wrong: a fault in blklab.
    Broken(String, String),
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StudyError::Unknown(name, valid) => {
                f.write_str(&blklab_types::no_such("experiment", name, valid))
            }
            StudyError::Broken(name, what) => write!(f, "{name}: {what}; please report it"),
        }
    }
}

impl std::error::Error for StudyError {}
