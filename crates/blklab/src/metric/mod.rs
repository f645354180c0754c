// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics: each number that is made of a run has a row in one of the tables here,
//! with its name, unit, source and formula, which way it is better, and what several runs
//! make of it. The table and the CSV of `blklab run`,
//! the JSON object `metrics`, comparisons, studies and measured cases take theirs from here.
//!
//! ```
//! use blklab::metric;
//!
//! // A unit of the same kind may be asked for in the name.
//! let runtime = metric::find("runt_max_s").expect("a metric");
//! assert_eq!(runtime.metric.column(), "runt_max_ms");
//! assert_eq!(runtime.unit.text(), "s");
//! assert_eq!(runtime.convert(1500.0), 1.5);
//! assert!(metric::find("runt_max_mib_s").is_none());
//! ```

mod bios;
mod disk;
mod ended;
mod jobs;

pub use bios::BIOS;
pub use blklab_analysis::metric::{Aim, Pooling, Unit};
pub use disk::{DISK, DiskNumbers};
pub use ended::{ENDED, EndedBios};
pub use jobs::{FIO, JOBS, Numbers};

use blklab_analysis::watch::BioFigures;
use std::fmt;

/// A number that is made of a run.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name without unit: `clat_p99`.
    pub key: &'static str,
    /// Unit of its values.
    pub unit: Unit,
    /// Which way it is better.
    pub aim: Aim,
    /// How the values of several runs make one.
    pub pooling: Pooling,
    /// When runs are compared by it.
    pub compared: Compared,
    /// In words.
    pub title: &'static str,
    /// What it is made of, and how.
    pub source: Source,
}

/// When runs are compared by a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// If it is asked for.
    IfAsked,
    /// Always.
    Always,
    /// Where bytes move, unless others are asked for.
    Transfers,
    /// For calls of fsync and its kin, which move no bytes, unless others are asked for.
    Syncs,
}

/// What a metric is made of.
#[derive(Clone, Copy)]
pub enum Source {
    /// fio's statistics of some jobs with I/O in a direction, or with calls of
    /// fsync and its kin.
    Jobs(fn(&Numbers) -> Option<f64>),
    /// The same, whether or not they have I/O in that direction.
    Program(fn(&Numbers) -> Option<f64>),
    /// Counters of the disks and phases of all bios.
    Disk(fn(&DiskNumbers) -> f64),
    /// Lives of some bios and requests.
    Bios(fn(&BioFigures) -> Option<f64>),
    /// Bios of a process that ended in a stretch of a trace.
    Ended(fn(&EndedBios) -> Option<f64>),
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl Source {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Source::Jobs(_) => "jobs with I/O",
            Source::Program(_) => "jobs",
            Source::Disk(_) => "disks",
            Source::Bios(_) | Source::Ended(_) => "bios of the trace",
        }
    }
}

impl Metric {
    /// A row by which runs are compared only if it is asked for.
    const fn new(
        key: &'static str,
        unit: Unit,
        aim: Aim,
        pooling: Pooling,
        title: &'static str,
        source: Source,
    ) -> Metric {
        Metric {
            key,
            unit,
            aim,
            pooling,
            compared: Compared::IfAsked,
            title,
            source,
        }
    }

    /// The same, with another rule for comparisons.
    const fn compared(self, compared: Compared) -> Metric {
        Metric { compared, ..self }
    }

    /// Its name with the unit of its values, as in the header of CSV.
    pub fn column(&self) -> String {
        match self.unit.suffix() {
            "" => self.key.to_owned(),
            suffix => format!("{}_{suffix}", self.key),
        }
    }

    /// Whether it is made of bios of the trace, not of jobs.
    pub fn is_of_bios(&self) -> bool {
        matches!(self.source, Source::Bios(_))
    }

    /// Of some jobs; none if they have none, or for a metric of something else.
    pub fn of_jobs(&self, n: &Numbers) -> Option<f64> {
        match self.source {
            Source::Jobs(f) if n.jobs > 0 => f(n),
            Source::Program(f) => f(n),
            _ => None,
        }
    }

    /// Of the disks of a run; none for a metric of something else.
    pub fn of_disk(&self, n: &DiskNumbers) -> Option<f64> {
        match self.source {
            Source::Disk(f) => Some(f(n)),
            _ => None,
        }
    }

    /// Of some bios; none if they have none, or for a metric of something else.
    pub fn of_bios(&self, f: &BioFigures) -> Option<f64> {
        match self.source {
            Source::Bios(of) => of(f),
            _ => None,
        }
    }

    /// Of the bios of a process in a stretch of a trace; none if there are none, or for a
    /// metric of something else.
    pub fn of_ended(&self, bios: &EndedBios) -> Option<f64> {
        match self.source {
            Source::Ended(of) => of(bios),
            _ => None,
        }
    }
}

/// A metric, and the unit that its values are wanted in.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The metric.
    pub metric: &'static Metric,
    /// The unit.
    pub unit: Unit,
}

impl Wanted {
    /// A value of the metric in the wanted unit.
    pub fn convert(&self, value: f64) -> f64 {
        self.metric.unit.convert(value, self.unit)
    }
}

impl PartialEq for Wanted {
    fn eq(&self, other: &Wanted) -> bool {
        (self.metric.key, self.unit) == (other.metric.key, other.unit)
    }
}

impl Eq for Wanted {}

/// All metrics of runs; those of [`ENDED`], which only comparisons have, are named as they
/// are.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    [JOBS, FIO, DISK, BIOS].into_iter().flatten()
}

/// The metric of a name with a unit: its own, or one of the same kind.
pub fn find(name: &str) -> Option<Wanted> {
    let wanted = |metric: &'static Metric| {
        let rest = name.strip_prefix(metric.key)?;
        let suffix = match rest.strip_prefix('_') {
            Some(suffix) => suffix,
            None if rest.is_empty() => "",
            None => return None,
        };
        let unit = Unit::ALL.into_iter().find(|u| u.suffix() == suffix)?;
        let unit = match suffix {
            "" if metric.unit.suffix().is_empty() => metric.unit,
            "" => return None,
            _ => unit,
        };
        let same_kind = unit.converts_to(metric.unit);
        same_kind.then_some(Wanted { metric, unit })
    };
    all().find_map(wanted)
}

/// The metric with this key, in its own unit.
pub fn named(key: &str) -> Option<&'static Metric> {
    all().find(|m| m.key == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_found_by_its_column() {
        for metric in all() {
            let same = all().filter(|m| m.key == metric.key).count();
            assert_eq!(same, 1, "{}", metric.key);
            let found = find(&metric.column()).expect("its column");
            let expected = (metric.key, metric.unit);
            assert_eq!((found.metric.key, found.unit), expected);
            assert!(!metric.title.is_empty(), "{}", metric.key);
            assert!(named(metric.key).is_some(), "{}", metric.key);
        }
        assert!(named("clat_p98").is_none());
        for wrong in [
            "",
            "ios_s",
            "runt_max",
            "runt_max_",
            "runt_maxi_ms",
            "clat_p50_kib_s",
        ] {
            assert!(find(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_time_is_better_shorter_and_a_rate_higher() {
        for metric in all().chain(ENDED) {
            let expected = match metric.unit {
                Unit::Ns | Unit::Us | Unit::Ms | Unit::S => Aim::Lower,
                Unit::BytesPerS | Unit::KibPerS | Unit::MbPerS | Unit::MibPerS | Unit::PerS => {
                    Aim::Higher
                }
                Unit::One | Unit::Bytes | Unit::Sectors | Unit::Percent => continue,
            };
            let is_gap = metric.key == "q2q_median";
            assert!(metric.aim == expected || is_gap, "{}", metric.key);
        }
    }
}
