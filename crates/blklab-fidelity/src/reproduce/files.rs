// SPDX-License-Identifier: MIT OR Apache-2.0
//! Studies as files: `studies/NAME/study.toml`, with the experiments that it
//! names beside it, all built into the program. `docs/reproduce.md` describes
//! the format.

use super::space::Space;
use super::study::{
    Basis, Measure, Number, Ordering, Part, Rule, Statistic, Study, StudyError, Tolerance,
};
use super::subject::{Jobs, Subject};
use blklab::analysis::watch::BioFilter;
use blklab::metric;
use blklab_experiment::{Source, parse};
use blklab_fiostat::Ddir;
use blklab_types::Error;
use blklab_types::Op;
use serde::Deserialize;
use toml::{Table, Value};

/// Name and text.
type File = (&'static str, &'static str);

/// Files of the studies, by name.
const FILES: &[(&str, &[File])] = include!(concat!(env!("OUT_DIR"), "/studies.rs"));

/// Names of all studies.
pub fn names() -> Vec<&'static str> {
    FILES.iter().map(|(name, _)| *name).collect()
}

/// The text of a file of a study, or of its neighbour: `../NAME/FILE`.
fn text(study: &str, file: &str) -> Result<&'static str, String> {
    let (folder, file) = match file.strip_prefix("../").and_then(|p| p.split_once('/')) {
        Some(other) => other,
        None => (study, file),
    };
    let files = FILES.iter().find(|(name, _)| *name == folder);
    let mut files = files.into_iter().flat_map(|(_, files)| *files);
    let found = files.find(|(name, _)| *name == file);
    found.map(|f| f.1).ok_or_else(|| format!("no file {file}"))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStudy {
    title: String,
    source: String,
    #[serde(default)]
    differs: String,
    /// A file with what is not known of the machine.
    testbeds: Option<String>,
    /// A file with what differs from run to run.
    varies: Option<String>,
    part: Vec<RawPart>,
    /// What numbers and orderings measure unless they say otherwise.
    #[serde(default)]
    defaults: RawMeasure,
    #[serde(default)]
    number: Vec<Table>,
    #[serde(default)]
    ordering: Vec<Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPart {
    name: String,
    experiment: String,
    #[serde(default = "no_limit")]
    seeds_max: u32,
}

fn no_limit() -> u32 {
    u32::MAX
}

/// What is measured; what is not given comes from the surroundings.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMeasure {
    part: Option<String>,
    variant: Option<String>,
    group: Option<u32>,
    job: Option<String>,
    direction: Option<String>,
    sync: Option<bool>,
    sectors: Option<u32>,
    process: Option<String>,
    array: Option<bool>,
    metric: Option<String>,
}

/// Keys of [`RawMeasure`].
const MEASURE_KEYS: &[&str] = &[
    "part",
    "variant",
    "group",
    "job",
    "direction",
    "sync",
    "sectors",
    "process",
    "array",
    "metric",
];

impl RawMeasure {
    fn with_defaults(self, other: &RawMeasure) -> RawMeasure {
        let o = other.clone();
        RawMeasure {
            part: self.part.or(o.part),
            variant: self.variant.or(o.variant),
            group: self.group.or(o.group),
            job: self.job.or(o.job),
            direction: self.direction.or(o.direction),
            sync: self.sync.or(o.sync),
            sectors: self.sectors.or(o.sectors),
            process: self.process.or(o.process),
            array: self.array.or(o.array),
            metric: self.metric.or(o.metric),
        }
    }
}

/// A number beside what it measures.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawNumber {
    /// A number, or one for each of some configurations.
    published: Value,
    factor: Option<f64>,
    percent: Option<f64>,
    bound: Option<Bound>,
    calibrated: Option<String>,
    #[serde(default)]
    remark: String,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Bound {
    AtMost,
    AtLeast,
}

/// An ordering beside what it measures. Configurations are named, or described
/// by tables with the keys of a measure.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawOrdering {
    text: String,
    basis: Basis,
    #[serde(default)]
    remark: String,
    ascending: Option<Vec<Value>>,
    ratio: Option<[Value; 2]>,
    value: Option<Value>,
    equal: Option<Vec<Value>>,
    factor: Option<f64>,
    percent: Option<f64>,
    at_least: Option<f64>,
    at_most: Option<f64>,
    #[serde(default)]
    over: Statistic,
}

/// The study of a name.
///
/// # Errors
/// If there is none, or its data are wrong.
pub fn study(name: &str) -> Result<Study, StudyError> {
    let Some((name, _)) = FILES.iter().find(|(n, _)| *n == name) else {
        return Err(StudyError::Unknown(name.to_owned(), names()));
    };
    build(name).map_err(|what| StudyError::Broken((*name).to_owned(), what))
}

fn build(name: &str) -> Result<Study, String> {
    let raw: RawStudy = toml::from_str(text(name, "study.toml")?).map_err(|e| e.to_string())?;
    let mut study = Study {
        name: name.to_owned(),
        title: raw.title,
        source: raw.source,
        differs: raw.differs,
        space: raw.testbeds.map(|file| space(name, &file)).transpose()?,
        varies: raw.varies.map(|file| space(name, &file)).transpose()?,
        parts: Vec::new(),
        measures: Vec::new(),
        numbers: Vec::new(),
        orderings: Vec::new(),
    };
    let catalogue = blklab_sim::catalogue();
    let read = |file: &str| {
        let text = text(name, file).map_err(Error::new)?;
        Ok((format!("{name}/{file}"), text.to_owned()))
    };
    for p in raw.part {
        let text = text(name, &p.experiment)?;
        let experiment = parse(&p.experiment, Source::Toml, text, &read, &catalogue);
        let mut experiment = experiment.map_err(|e| e.to_string())?;
        // Messages are not to look for a file on this machine.
        experiment.file.clear();
        study.parts.push(Part {
            name: p.name,
            seeds_max: p.seeds_max,
            experiment,
        });
    }
    study.check_parts()?;
    for table in raw.number {
        let (of, rest) = split(table, &raw.defaults)?;
        let rest = from_table(rest)?;
        study.add_numbers(&of, rest)?;
    }
    for table in raw.ordering {
        let (of, rest) = split(table, &raw.defaults)?;
        let rest = from_table(rest)?;
        study.add_ordering(&of, rest)?;
    }
    Ok(study)
}

impl Study {
    /// Refuses unknowns of parts that are not there; what differs from run to run is so in
    /// all parts.
    fn check_parts(&self) -> Result<(), String> {
        let is_there = |name: &String| self.parts.iter().any(|p| p.name == *name);
        let check = |space: &Option<Space>, is_allowed: &dyn Fn(&String) -> bool| {
            let unknowns = space.iter().flat_map(|s| &s.unknowns);
            let mut of_parts = unknowns.filter_map(|u| u.part.as_ref());
            match of_parts.find(|part| !is_allowed(part)) {
                Some(part) => Err(format!("an unknown of part '{part}', which is not there")),
                None => Ok(()),
            }
        };
        check(&self.space, &is_there)?;
        check(&self.varies, &|_| false)
    }
}

/// What is not known of the machine, from a file of a study or of its neighbour.
fn space(study: &str, file: &str) -> Result<Space, String> {
    let text = text(study, file)?;
    let own = || format!("{study}/{file}");
    let path = file.strip_prefix("../").map_or_else(own, str::to_owned);
    Space::parse(&path, text).map_err(|e| e.to_string())
}

fn from_table<'de, T: Deserialize<'de>>(table: Table) -> Result<T, String> {
    Value::Table(table)
        .try_into()
        .map_err(|e: toml::de::Error| e.to_string())
}

/// What a table measures, and the rest of it.
fn split(table: Table, defaults: &RawMeasure) -> Result<(RawMeasure, Table), String> {
    let is_of_measure = |(key, _): &(String, Value)| MEASURE_KEYS.contains(&key.as_str());
    let (of, rest): (Vec<_>, Vec<_>) = table.into_iter().partition(is_of_measure);
    let of: RawMeasure = from_table(of.into_iter().collect())?;
    Ok((of.with_defaults(defaults), rest.into_iter().collect()))
}

fn as_number(v: &Value) -> Result<f64, String> {
    let whole = v.as_integer().map(|i| i as f64);
    let found = v.as_float().or(whole);
    found.ok_or_else(|| format!("{v} is not a number"))
}

impl Study {
    /// Indices of a part and of a configuration in it.
    fn place(&self, part: &str, variant: &str) -> Result<(usize, usize), String> {
        let p = self.parts.iter().position(|p| p.name == part);
        let p = p.ok_or_else(|| format!("no part '{part}'"))?;
        let mut all = 0..self.parts[p].nr_variants();
        let v = all.find(|v| self.parts[p].variant_name(*v) == variant);
        let v = v.ok_or_else(|| format!("no variant '{variant}' in part '{part}'"))?;
        Ok((p, v))
    }

    /// Where a configuration stands among those of its part.
    fn order_of(&self, of: &RawMeasure, variant: &str) -> Option<usize> {
        let wanted = |p: &&Part| of.part.as_ref().is_none_or(|name| *name == p.name);
        let part = self.parts.iter().find(wanted)?;
        (0..part.nr_variants()).find(|v| part.variant_name(*v) == variant)
    }

    fn add_measure(&mut self, of: RawMeasure) -> Result<usize, String> {
        let only = (self.parts.len() == 1).then(|| self.parts[0].name.clone());
        let part = of.part.or(only).ok_or("no 'part'")?;
        let (part, variant) = self.place(&part, &of.variant.unwrap_or_default())?;
        let metric = of.metric.ok_or("no 'metric'")?;
        let metric = metric::find(&metric).ok_or_else(|| format!("no metric '{metric}'"))?;
        let dir = of.direction.as_deref().map(direction).transpose()?;
        let subject = if metric.metric.is_of_bios() {
            Subject::Bios(BioFilter {
                op: dir.map(|d| match d {
                    Ddir::Read => Op::Read,
                    Ddir::Write => Op::Write,
                    Ddir::Trim => Op::Discard,
                }),
                sync: of.sync,
                sectors: of.sectors,
                process: of.process,
                array: of.array.unwrap_or(false),
            })
        } else {
            let jobs = Jobs {
                group: of.group,
                section: of.job,
            };
            Subject::Jobs(jobs, dir.ok_or("no 'direction'")?)
        };
        Ok(self.measure(Measure {
            part,
            variant,
            subject,
            metric,
        }))
    }

    fn add_numbers(&mut self, of: &RawMeasure, n: RawNumber) -> Result<(), String> {
        let tolerance = match (n.factor, n.percent, n.bound) {
            (Some(f), None, None) if f >= 1.0 => Tolerance::Factor(f),
            (None, Some(p), None) if p >= 0.0 => Tolerance::Percent(p),
            (None, None, Some(Bound::AtMost)) => Tolerance::AtMost,
            (None, None, Some(Bound::AtLeast)) => Tolerance::AtLeast,
            (None, None, None) => Tolerance::Factor(2.0),
            _ => return Err("one of factor (from 1), percent (from 0), bound".to_owned()),
        };
        let mut all: Vec<(Option<String>, f64)> = Vec::new();
        match &n.published {
            Value::Table(by_variant) => {
                for (variant, value) in by_variant {
                    all.push((Some(variant.clone()), as_number(value)?));
                }
                // A table has no order; that of the experiment is meant.
                let order = |v: &Option<String>| self.order_of(of, v.as_deref()?);
                all.sort_by_key(|(variant, _)| order(variant));
            }
            value => all.push((of.variant.clone(), as_number(value)?)),
        }
        for (variant, published) in all {
            if published <= 0.0 {
                return Err(format!("published {published} is not above 0"));
            }
            let measure = self.add_measure(RawMeasure {
                variant,
                ..of.clone()
            })?;
            if self.numbers.iter().any(|n| n.measure == measure) {
                return Err("two numbers measure the same".to_owned());
            }
            self.numbers.push(Number {
                measure,
                published,
                tolerance,
                calibrated: n.calibrated.clone(),
                remark: n.remark.clone(),
            });
        }
        Ok(())
    }

    /// What a name of a configuration, or a table in its place, measures.
    fn reference(&mut self, of: &RawMeasure, to: Value) -> Result<usize, String> {
        let to = match to {
            Value::String(variant) => RawMeasure {
                variant: Some(variant),
                ..RawMeasure::default()
            },
            Value::Table(table) => from_table(table)?,
            other => return Err(format!("{other} names no configuration")),
        };
        self.add_measure(to.with_defaults(of))
    }

    fn add_ordering(&mut self, of: &RawMeasure, o: RawOrdering) -> Result<(), String> {
        let bounds = (
            o.at_least.unwrap_or(f64::NEG_INFINITY),
            o.at_most.unwrap_or(f64::INFINITY),
        );
        let is_bound = o.at_least.is_some() || o.at_most.is_some();
        let (rule, to) = match (o.ascending, o.ratio, o.value, o.equal) {
            (Some(all), None, None, None) if !is_bound && o.percent.is_none() => {
                (Rule::Ascending(o.factor.unwrap_or(1.0)), all)
            }
            (None, Some(pair), None, None) if is_bound => {
                (Rule::Ratio(bounds.0, bounds.1), pair.to_vec())
            }
            (None, None, Some(one), None) if is_bound => {
                (Rule::Value(bounds.0, bounds.1), vec![one])
            }
            (None, None, None, Some(all)) if !is_bound => {
                let percent = o.percent.ok_or("equal: no 'percent'")?;
                (Rule::Equal(percent), all)
            }
            _ => return Err(format!("ordering '{}' is none", o.text)),
        };
        let measures = to.into_iter().map(|to| self.reference(of, to));
        let measures = measures.collect::<Result<_, _>>()?;
        self.orderings.push(Ordering {
            text: o.text,
            basis: o.basis,
            remark: o.remark,
            measures,
            over: o.over,
            rule,
        });
        Ok(())
    }
}

fn direction(name: &str) -> Result<Ddir, String> {
    let found = Ddir::ALL.into_iter().find(|d| d.name() == name);
    found.ok_or_else(|| format!("no direction '{name}'"))
}
