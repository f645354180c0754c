// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a report does not tell about its machine, as ranges and choices, and testbeds
//! drawn from them.
//!
//! A space is a file of a study (`testbeds = "FILE"` in `study.toml`). Testbeds are a
//! Latin hypercube (McKay, Beckman and Conover, Technometrics 1979): of N testbeds each
//! has another of N equal parts of every range, so that few of them cover it.

use crate::causes::Draw;
use blklab_types::Error;
use serde::{Deserialize, Serialize};
use toml::Value;

/// What is not known of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Space {
    /// Its file, as `STUDY/FILE`: studies with the same file ran on one machine.
    pub file: String,
    /// What is not known, each independent of the others.
    pub unknowns: Vec<Unknown>,
}

/// One thing that is not known.
#[derive(Clone, Debug, PartialEq)]
pub struct Unknown {
    /// Its name, in a word or two.
    pub name: String,
    /// What it is, and why the range is what it is.
    pub what: String,
    /// What it may be.
    pub values: Values,
    /// The fitted parameter, by its name in `calibration.toml`, whose published number
    /// narrowed the range.
    pub narrowed_by: Option<String>,
    /// The part of the study that it is about; none: all.
    pub part: Option<String>,
}

/// What an unknown may be.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Any number of a range.
    Range {
        /// The key of `--set`.
        key: String,
        /// Smallest value.
        low: f64,
        /// Largest value.
        high: f64,
        /// How it is covered.
        scale: Scale,
        /// Only whole numbers.
        whole: bool,
        /// What is written behind the number.
        unit: String,
    },
    /// One of some, each as likely.
    Choices(Vec<Choice>),
}

/// How a range is covered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Evenly.
    #[default]
    Linear,
    /// Evenly by its logarithm.
    Log,
}

/// One of some.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Its name in tables.
    pub name: String,
    /// Keys of `--set` and their values.
    pub set: Vec<(String, String)>,
}

/// What an unknown is on one testbed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Drawn {
    /// As tables show it.
    pub value: String,
    /// Which choice, or which third of the range.
    #[serde(skip)]
    pub class: usize,
    /// Keys of `--set` and their values.
    #[serde(skip)]
    pub set: Vec<(String, String)>,
    /// The part of the study that they are set in; none: all.
    #[serde(skip)]
    pub part: Option<String>,
}

/// One machine on which the report might have been made.
#[derive(Clone, Debug, PartialEq)]
pub struct Testbed {
    /// Its number, from 1 on, and the seed of its runs.
    pub number: u32,
    /// What each unknown is, in order of the space.
    pub drawn: Vec<Drawn>,
}

impl Testbed {
    /// Keys of `--set` and their values, in a part of the study.
    pub fn settings(&self, part: &str) -> impl Iterator<Item = &(String, String)> {
        let is_of_it = move |d: &&Drawn| d.part.as_ref().is_none_or(|p| p == part);
        self.drawn.iter().filter(is_of_it).flat_map(|d| &d.set)
    }
}

/// Parts of a range that are told apart.
const PARTS: usize = 3;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSpace {
    unknown: Vec<RawUnknown>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawUnknown {
    name: String,
    what: String,
    key: Option<String>,
    low: Option<Value>,
    high: Option<Value>,
    scale: Option<Scale>,
    unit: Option<String>,
    choices: Option<Vec<Value>>,
    narrowed_by: Option<String>,
    part: Option<String>,
}

impl Space {
    /// Reads a space.
    ///
    /// # Errors
    /// What is wrong with it, in a line.
    pub fn parse(file: &str, text: &str) -> Result<Space, Error> {
        let located = |what: String| Error::new(what).in_file(file);
        let raw: RawSpace = toml::from_str(text).map_err(|e| located(e.to_string()))?;
        let mut unknowns: Vec<Unknown> = Vec::new();
        for raw in raw.unknown {
            let name = raw.name.clone();
            if unknowns.iter().any(|u| u.name == name) {
                return Err(located(format!("unknown '{name}' is there twice")));
            }
            let unknown =
                build(raw).map_err(|what| located(format!("unknown '{name}': {what}")))?;
            unknowns.push(unknown);
        }
        Ok(Space {
            file: file.to_owned(),
            unknowns,
        })
    }

    /// The settings of run `seed` of a study whose runs differ in this; none for run 0.
    pub fn draw(&self, seed: u64) -> Vec<(String, String)> {
        if seed == 0 {
            return Vec::new();
        }
        let drawn = self.unknowns.iter().flat_map(|unknown| {
            let mut draw = Draw::new(seed, &unknown.name, 0);
            let quantile = draw.number(0..=FINEST - 1) as f64 / FINEST as f64;
            unknown.values.at(quantile).set
        });
        drawn.collect()
    }

    /// `nr` testbeds. What one unknown is does not depend on the others.
    pub fn testbeds(&self, nr: u32, seed: u64) -> Vec<Testbed> {
        let mut beds: Vec<Testbed> = (1..=nr)
            .map(|number| Testbed {
                number,
                drawn: Vec::with_capacity(self.unknowns.len()),
            })
            .collect();
        for unknown in &self.unknowns {
            let mut draw = Draw::new(seed, &unknown.name, u64::from(nr));
            let mut strata: Vec<u32> = (0..nr).collect();
            for last in (1..strata.len()).rev() {
                let other = draw.number(0..=last as u64) as usize;
                strata.swap(last, other);
            }
            for (bed, stratum) in beds.iter_mut().zip(strata) {
                let within = draw.number(0..=FINEST - 1) as f64 / FINEST as f64;
                let quantile = (f64::from(stratum) + within) / f64::from(nr);
                bed.drawn.push(Drawn {
                    part: unknown.part.clone(),
                    ..unknown.values.at(quantile)
                });
            }
        }
        beds
    }
}

/// Steps within a part of a range.
const FINEST: u64 = 1 << 32;

fn build(raw: RawUnknown) -> Result<Unknown, String> {
    let values = match (raw.low, raw.high, raw.choices) {
        (Some(low), Some(high), None) => range(raw.key, &low, &high, raw.scale, raw.unit)?,
        (None, None, Some(all)) if raw.scale.is_none() && raw.unit.is_none() => {
            choices(raw.key.as_deref(), all)?
        }
        _ => return Err("either low and high (with scale and unit), or choices".to_owned()),
    };
    Ok(Unknown {
        name: raw.name,
        what: raw.what,
        values,
        narrowed_by: raw.narrowed_by,
        part: raw.part,
    })
}

fn range(
    key: Option<String>,
    low: &Value,
    high: &Value,
    scale: Option<Scale>,
    unit: Option<String>,
) -> Result<Values, String> {
    let number = |v: &Value| {
        let whole = v.as_integer().map(|i| i as f64);
        v.as_float().or(whole).ok_or(format!("{v} is not a number"))
    };
    let whole = low.is_integer() && high.is_integer();
    let scale = scale.unwrap_or_default();
    let (low, high) = (number(low)?, number(high)?);
    let is_range = low < high && low.is_finite() && high.is_finite();
    if !is_range || scale == Scale::Log && low <= 0.0 {
        return Err(format!("no range: {low} to {high}"));
    }
    Ok(Values::Range {
        key: key.ok_or("a range needs a key")?,
        low,
        high,
        scale,
        whole,
        unit: unit.unwrap_or_default(),
    })
}

fn choices(key: Option<&str>, all: Vec<Value>) -> Result<Values, String> {
    let text = |v: &Value| match v {
        Value::String(s) => Ok(s.clone()),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => Ok(v.to_string()),
        other => Err(format!("{other} is no value")),
    };
    let mut of = Vec::new();
    for value in all {
        of.push(match (value, key) {
            (Value::Table(mut t), None) => {
                let name = t.remove("name").and_then(|n| n.as_str().map(str::to_owned));
                let set = t.remove("set");
                let set = set.as_ref().and_then(Value::as_table);
                let (Some(name), Some(set), true) = (name, set, t.is_empty()) else {
                    return Err("a choice has a name and a table 'set'".to_owned());
                };
                let set = set.iter().map(|(k, v)| Ok((k.clone(), text(v)?)));
                Choice {
                    name,
                    set: set.collect::<Result<_, String>>()?,
                }
            }
            (value, Some(key)) => {
                let value = text(&value)?;
                Choice {
                    name: value.clone(),
                    set: vec![(key.to_owned(), value)],
                }
            }
            (_, None) => return Err("choices of values need a key".to_owned()),
        });
    }
    if of.len() < 2 {
        return Err("at least two choices".to_owned());
    }
    Ok(Values::Choices(of))
}

impl Values {
    /// The value below which this share (0 to below 1) of all lies.
    fn at(&self, quantile: f64) -> Drawn {
        match self {
            Values::Choices(all) => {
                let class = ((quantile * all.len() as f64) as usize).min(all.len() - 1);
                Drawn {
                    value: all[class].name.clone(),
                    class,
                    set: all[class].set.clone(),
                    part: None,
                }
            }
            Values::Range { key, unit, .. } => {
                let value = format!("{}{unit}", self.number_at(quantile));
                Drawn {
                    class: ((quantile * PARTS as f64) as usize).min(PARTS - 1),
                    set: vec![(key.clone(), value.clone())],
                    part: None,
                    value,
                }
            }
        }
    }

    /// A number of a range as text.
    fn number_at(&self, quantile: f64) -> String {
        let Values::Range {
            low,
            high,
            scale,
            whole,
            ..
        } = self
        else {
            unreachable!("choices have no numbers")
        };
        // Whole numbers are parts of the range, the last of which ends behind it.
        let end = if *whole { high + 1.0 } else { *high };
        let value = match scale {
            Scale::Linear => low + quantile * (end - low),
            Scale::Log => low * (end / low).powf(quantile),
        };
        if *whole {
            format!("{}", value.floor().clamp(*low, *high))
        } else {
            // A thousandth: times in us are whole numbers of ns.
            format!("{}", (value * 1e3).round() / 1e3)
        }
    }

    /// How many classes [`Drawn::class`] tells apart.
    pub fn nr_classes(&self) -> usize {
        match self {
            Values::Choices(all) => all.len(),
            Values::Range { .. } => PARTS,
        }
    }

    /// What a class is called.
    pub fn class_name(&self, class: usize) -> String {
        match self {
            Values::Choices(all) => all[class].name.clone(),
            Values::Range { unit, .. } => {
                let end = |part: usize| self.number_at(part as f64 / PARTS as f64);
                format!("{} to {}{unit}", end(class), end(class + 1))
            }
        }
    }

    /// The whole of it, in words.
    pub fn text(&self) -> String {
        match self {
            Values::Choices(all) => {
                let names: Vec<&str> = all.iter().map(|c| c.name.as_str()).collect();
                names.join(", ")
            }
            Values::Range {
                low,
                high,
                scale,
                unit,
                ..
            } => {
                let log = if *scale == Scale::Log {
                    ", by its logarithm"
                } else {
                    ""
                };
                format!("{low} to {high}{unit}{log}")
            }
        }
    }
}
