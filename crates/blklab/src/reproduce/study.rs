// SPDX-License-Identifier: MIT OR Apache-2.0
//! Studies as data: `studies/NAME/study.toml` with the experiment files that
//! it names beside it, built into the program.

use super::measure;
use blklab_experiment::{Experiment, ExperimentError, Source, parse};
use blklab_fiostat::Ddir;
use serde::Deserialize;
use std::fmt;

/// Files of the studies, by name.
const FILES: &[(&str, &[(&str, &str)])] = &[
    (
        "ltt-2009-ssh",
        &[
            (
                "study.toml",
                include_str!("../../studies/ltt-2009-ssh/study.toml"),
            ),
            (
                "raid1.toml",
                include_str!("../../studies/ltt-2009-ssh/raid1.toml"),
            ),
            (
                "ssh.fio",
                include_str!("../../studies/ltt-2009-ssh/ssh.fio"),
            ),
        ],
    ),
    (
        "ltt-2009-patch",
        &[
            (
                "study.toml",
                include_str!("../../studies/ltt-2009-patch/study.toml"),
            ),
            (
                "disk.toml",
                include_str!("../../studies/ltt-2009-patch/disk.toml"),
            ),
            (
                "raid1.toml",
                include_str!("../../studies/ltt-2009-patch/raid1.toml"),
            ),
            (
                "ssh.fio",
                include_str!("../../studies/ltt-2009-ssh/ssh.fio"),
            ),
        ],
    ),
    (
        "cfq-quantum-2010",
        &[
            (
                "study.toml",
                include_str!("../../studies/cfq-quantum-2010/study.toml"),
            ),
            (
                "reads.toml",
                include_str!("../../studies/cfq-quantum-2010/reads.toml"),
            ),
            (
                "reads.fio",
                include_str!("../../studies/cfq-quantum-2010/reads.fio"),
            ),
        ],
    ),
];

/// Names of all studies.
pub fn names() -> Vec<&'static str> {
    FILES.iter().map(|(name, _)| *name).collect()
}

/// What a number is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Shortest run time of a job, ms.
    RuntMinMs,
    /// Longest run time of a job, ms.
    RuntMaxMs,
    /// Bytes of the group over the longest run time, 10^6 bytes per second.
    BandwidthMbS,
}

impl Metric {
    /// In words, with the unit.
    pub fn text(self) -> &'static str {
        match self {
            Metric::RuntMinMs => "runt-min ms",
            Metric::RuntMaxMs => "runt-max ms",
            Metric::BandwidthMbS => "bandwidth MB/s",
        }
    }
}

/// One published number.
#[derive(Clone, Debug)]
pub struct Number {
    /// Index of its part.
    pub part: usize,
    /// Index of its configuration in that part.
    pub variant: usize,
    /// Job group, from 0.
    pub group: u32,
    /// Reads or writes.
    pub direction: Ddir,
    /// What it is about.
    pub metric: Metric,
    /// As published.
    pub published: f64,
    /// Factor by which ours may be off.
    pub factor: f64,
    /// Whether a parameter was fitted to it.
    pub calibrated: bool,
    /// What a reader should know.
    pub remark: String,
}

/// Something that has to hold between numbers.
#[derive(Clone, Debug)]
pub struct Ordering {
    /// In words.
    pub text: String,
    /// Indices of numbers, each greater than the one before.
    pub ascending: Vec<usize>,
    /// By more than this factor.
    pub factor: f64,
}

/// An experiment of a study.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its name.
    pub name: String,
    experiment: Experiment,
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
    pub(super) fn variant(&self, i: usize) -> Result<Experiment, ExperimentError> {
        match self.experiment.variants.get(i) {
            Some(v) => self.experiment.with_variant(v),
            None => Ok(self.experiment.clone()),
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
    /// Its experiments.
    pub parts: Vec<Part>,
    /// What was published.
    pub numbers: Vec<Number>,
    /// What has to hold.
    pub orderings: Vec<Ordering>,
}

/// Why there is no such study.
#[derive(Clone, Debug)]
pub enum StudyError {
    /// No such name.
    Unknown(String),
    /// Its data are wrong: a fault in blklab.
    Broken(String, String),
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StudyError::Unknown(name) => {
                f.write_str(&blklab_experiment::no_such("experiment", name, &names()))
            }
            StudyError::Broken(name, what) => write!(f, "{name}: {what}; please report it"),
        }
    }
}

impl std::error::Error for StudyError {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStudy {
    title: String,
    source: String,
    #[serde(default)]
    differs: String,
    part: Vec<RawPart>,
    number: Vec<RawNumber>,
    #[serde(default)]
    ordering: Vec<RawOrdering>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPart {
    name: String,
    experiment: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawNumber {
    part: String,
    #[serde(default)]
    variant: String,
    #[serde(default)]
    group: u32,
    direction: String,
    metric: Metric,
    published: f64,
    #[serde(default = "two")]
    factor: f64,
    #[serde(default)]
    calibrated: bool,
    #[serde(default)]
    remark: String,
}

fn two() -> f64 {
    2.0
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawOrdering {
    text: String,
    part: String,
    #[serde(default)]
    group: u32,
    direction: String,
    metric: Metric,
    ascending: Vec<String>,
    #[serde(default = "one")]
    factor: f64,
}

fn one() -> f64 {
    1.0
}

/// The study of a name.
///
/// # Errors
/// If there is none, or its data are wrong.
pub fn study(name: &str) -> Result<Study, StudyError> {
    let Some((name, files)) = FILES.iter().find(|(n, _)| *n == name) else {
        return Err(StudyError::Unknown(name.to_owned()));
    };
    let broken = |what: String| StudyError::Broken((*name).to_owned(), what);
    let text = |file: &str| {
        let found = files.iter().find(|(f, _)| *f == file);
        found
            .map(|(_, text)| *text)
            .ok_or_else(|| format!("no file {file}"))
    };
    let raw = text("study.toml").map_err(broken)?;
    let raw: RawStudy = toml::from_str(raw).map_err(|e| broken(e.to_string()))?;
    let read = |file: &str| {
        let text = text(file).map_err(ExperimentError::new)?;
        Ok((format!("{name}/{file}"), text.to_owned()))
    };
    let mut study = Study {
        name: (*name).to_owned(),
        title: raw.title,
        source: raw.source,
        differs: raw.differs,
        parts: Vec::new(),
        numbers: Vec::new(),
        orderings: Vec::new(),
    };
    for p in raw.part {
        let text = text(&p.experiment).map_err(broken)?;
        let experiment = parse(&p.experiment, Source::Toml, text, &read);
        let mut experiment = experiment.map_err(|e| broken(e.to_string()))?;
        // Messages are not to look for a file on this machine.
        experiment.file.clear();
        study.parts.push(Part {
            name: p.name,
            experiment,
        });
    }
    for n in raw.number {
        let number = study.number(n).map_err(broken)?;
        study.numbers.push(number);
    }
    for o in raw.ordering {
        let ordering = study.ordering(o).map_err(broken)?;
        study.orderings.push(ordering);
    }
    Ok(study)
}

impl Study {
    /// The numbers about one configuration, with their indices.
    pub(super) fn numbers_of(
        &self,
        part: usize,
        variant: usize,
    ) -> impl Iterator<Item = (usize, &Number)> {
        let all = self.numbers.iter().enumerate();
        all.filter(move |(_, n)| (n.part, n.variant) == (part, variant))
    }

    /// Indices of a part and of a configuration in it.
    fn place(&self, part: &str, variant: &str) -> Result<(usize, usize), String> {
        let p = self.parts.iter().position(|p| p.name == part);
        let p = p.ok_or_else(|| format!("no part '{part}'"))?;
        let mut all = 0..self.parts[p].nr_variants();
        let v = all.find(|v| self.parts[p].variant_name(*v) == variant);
        let v = v.ok_or_else(|| format!("no variant '{variant}' in part '{part}'"))?;
        Ok((p, v))
    }

    fn number(&self, n: RawNumber) -> Result<Number, String> {
        let (part, variant) = self.place(&n.part, &n.variant)?;
        let direction = direction(&n.direction)?;
        if n.published <= 0.0 || n.factor < 1.0 {
            return Err("published is not above 0, or factor below 1".to_owned());
        }
        Ok(Number {
            part,
            variant,
            group: n.group,
            direction,
            metric: n.metric,
            published: n.published,
            factor: n.factor,
            calibrated: n.calibrated,
            remark: n.remark,
        })
    }

    fn ordering(&self, o: RawOrdering) -> Result<Ordering, String> {
        let direction = direction(&o.direction)?;
        let index = |variant: &String| {
            let (part, variant) = self.place(&o.part, variant)?;
            let wanted = (part, variant, o.group, o.metric);
            let found = self.numbers.iter().position(|n| {
                (n.part, n.variant, n.group, n.metric) == wanted && n.direction == direction
            });
            found.ok_or_else(|| format!("ordering '{}' names no number", o.text))
        };
        Ok(Ordering {
            ascending: o.ascending.iter().map(index).collect::<Result<_, _>>()?,
            text: o.text,
            factor: o.factor,
        })
    }
}

fn direction(name: &str) -> Result<Ddir, String> {
    measure::direction(name).ok_or_else(|| format!("no direction '{name}'"))
}
