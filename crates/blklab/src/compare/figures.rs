// SPDX-License-Identifier: MIT OR Apache-2.0
//! The numbers that are compared: of the jobs and the disk of a run, or of the bios of a
//! trace. Both go by the columns of [`metric`].

use super::Options;
use crate::metric::{self, Compared, DISK, ENDED, JOBS, Metric, Pooling};
use crate::statistics::Figure;
use blklab_fiostat::LatencyHist;
use blklab_types::{Error, no_such};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// A number that is compared.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name with unit.
    pub name: String,
    /// What it is.
    pub metric: &'static Metric,
}

impl PartialEq for Column {
    fn eq(&self, other: &Column) -> bool {
        std::ptr::eq(self.metric, other.metric)
    }
}

impl Column {
    /// That of a metric.
    pub(crate) fn new(metric: &'static Metric) -> Column {
        Column {
            name: metric.column(),
            metric,
        }
    }

    /// Those that there are, of jobs and the disk or of bios.
    fn all(bios: bool) -> Vec<Column> {
        let tables = if bios { [ENDED, &[]] } else { [JOBS, DISK] };
        tables.into_iter().flatten().map(Column::new).collect()
    }

    /// The one of a name.
    ///
    /// # Errors
    /// Names those that there are.
    pub fn named(name: &str, bios: bool) -> Result<Column, Error> {
        let all = Column::all(bios);
        if let Some(found) = all.iter().find(|c| c.name == name) {
            return Ok(found.clone());
        }
        let known: Vec<&str> = all.iter().map(|c| c.name.as_str()).collect();
        Err(Error::new(no_such("metric", name, &known)))
    }

    /// The number over some runs; none if any lacks it.
    pub(crate) fn over(&self, runs: &[&RowFigures]) -> Option<Figure> {
        if runs.is_empty() {
            return None;
        }
        if let Pooling::Percentile(percentile) = self.metric.pooling {
            let all_have = runs.iter().all(|r| r.latencies.bins().next().is_some());
            let longest = |r: &RowFigures| r.values.get("clat_max_ns").copied();
            let latencies = runs
                .iter()
                .map(|r| (r.latencies.clone(), longest(r).unwrap_or(f64::INFINITY)));
            return all_have.then(|| Figure::pooled_within(percentile, latencies.collect()));
        }
        let values = runs.iter().map(|r| r.values.get(&self.name).copied());
        let values: Vec<f64> = values.collect::<Option<_>>()?;
        let is_batch = runs.iter().any(|r| r.is_batch);
        Some(match self.metric.pooling {
            Pooling::Median if is_batch => {
                Figure::median(vec![values.into_iter().fold(0.0, f64::max)])
            }
            Pooling::Median => Figure::median(values),
            Pooling::Mean | Pooling::Percentile(_) => Figure::mean(values),
        })
    }
}

/// The columns to compare of somebody.
pub(super) fn columns(key: &WhatOf, options: &Options) -> Vec<Column> {
    if !options.columns.is_empty() {
        return options.columns.clone();
    }
    let mut columns = Column::all(options.bios);
    columns.retain(|c| match c.metric.compared {
        Compared::IfAsked => false,
        Compared::Always => true,
        Compared::Transfers => key.direction != "sync",
        Compared::Syncs => key.direction == "sync",
    });
    columns
}

/// Names in one direction beyond which only groups of them are compared.
pub(super) const NAMES_MAX: usize = 8;

/// Whom numbers are about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WhatOf {
    pub(super) who: String,
    pub(super) direction: String,
}

impl WhatOf {
    fn disk() -> WhatOf {
        WhatOf {
            who: "disk".to_owned(),
            direction: String::new(),
        }
    }
}

impl fmt::Display for WhatOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.who, self.direction)
    }
}

/// The numbers of somebody in one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RowFigures {
    /// By column.
    pub(crate) values: BTreeMap<String, f64>,
    /// Latencies in ns.
    pub(crate) latencies: LatencyHist,
    /// Whether it is a batch: the maximum is that of all together.
    pub(crate) is_batch: bool,
}

/// The numbers of one run, or of one batch of a recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Source {
    pub(super) rows: Vec<(WhatOf, RowFigures)>,
}

impl Source {
    /// Whom the numbers of some runs are about, in order of their first appearance.
    pub(super) fn keys(all: &[Source]) -> Vec<WhatOf> {
        let mut keys: Vec<WhatOf> = Vec::new();
        for (key, _) in all.iter().flat_map(|s| &s.rows) {
            if !keys.contains(key) {
                keys.push(key.clone());
            }
        }
        keys
    }

    pub(super) fn row(&self, key: &WhatOf) -> Option<&RowFigures> {
        let found = self.rows.iter().find(|(k, _)| k == key);
        found.map(|(_, row)| row)
    }

    /// From the object `metrics` of a run's result.
    pub(super) fn of_run(metrics: &Value) -> Source {
        let mut rows = Vec::new();
        let jobs = metrics["jobs"].as_array();
        let jobs: Vec<&Value> = jobs.into_iter().flatten().collect();
        let is_of_names = |row: &&&Value| row["level"] != "group";
        let directions = jobs.iter().map(|row| &row["direction"]);
        let most = directions
            .map(|d| {
                let of_names = jobs.iter().filter(is_of_names);
                of_names.filter(|row| row["direction"] == *d).count()
            })
            .max();
        let by_group = most.unwrap_or(0) > NAMES_MAX;
        for row in jobs {
            if (row["level"] == "group") != by_group {
                continue;
            }
            let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
            let who = match text("job") {
                name if name.is_empty() => "all jobs".to_owned(),
                name => name,
            };
            let key = WhatOf {
                who,
                direction: text("direction"),
            };
            rows.push((key, of_json(row)));
        }
        rows.push((WhatOf::disk(), of_json(&metrics["disk"])));
        Source { rows }
    }
}

/// From a row of the object `metrics`.
pub(crate) fn of_json(row: &Value) -> RowFigures {
    let mut figures = RowFigures::default();
    for (column, value) in row.as_object().into_iter().flatten() {
        if let (Some(value), true) = (value.as_f64(), metric::find(column).is_some()) {
            figures.values.insert(column.clone(), value);
        }
    }
    let bins = row["clat_bins"].as_array().into_iter().flatten();
    for bin in bins {
        if let (Some(value), Some(count)) = (bin[0].as_u64(), bin[1].as_u64()) {
            figures.latencies.add_many(value, count);
        }
    }
    figures
}
