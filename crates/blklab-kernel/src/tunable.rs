// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tunables: what sysfs shows of a scheduler or a queue.

use crate::KernelVersion;
use std::fmt;

/// Unit in which sysfs shows a tunable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A plain number.
    Count,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
    /// KiB.
    KiB,
    /// 0 or 1.
    Bool,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unit::Count => "count",
            Unit::Ms => "ms",
            Unit::Us => "us",
            Unit::KiB => "KiB",
            Unit::Bool => "0|1",
        })
    }
}

/// One tunable, as data: the parser, `--help`, `blklab list tunables` and the
/// documentation read the same table.
#[derive(Clone, Copy, Debug)]
pub struct Tunable {
    /// Name of the file in sysfs.
    pub name: &'static str,
    /// Unit.
    pub unit: Unit,
    /// Default, in that unit.
    pub default: i64,
    /// Smallest and largest value taken.
    pub range: (i64, i64),
    /// First release that has it.
    pub since: KernelVersion,
    /// Effect, in a line.
    pub help: &'static str,
}

/// Why a tunable was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TunableError {
    /// No tunable of that name; the list of valid names.
    Unknown(String, Vec<&'static str>),
    /// The value is outside the range.
    Range(&'static str, i64, (i64, i64)),
}

impl fmt::Display for TunableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TunableError::Unknown(name, valid) if valid.is_empty() => {
                write!(f, "no tunable '{name}': this scheduler has none")
            }
            TunableError::Unknown(name, valid) => {
                write!(f, "no tunable '{name}'; valid: {}", valid.join(", "))
            }
            TunableError::Range(name, value, (lo, hi)) => {
                write!(f, "{name}={value} is out of range {lo}..{hi}")
            }
        }
    }
}

impl std::error::Error for TunableError {}

/// Values for a table of tunables, defaults where nothing was set.
#[derive(Clone, Debug)]
pub struct Tunables {
    table: &'static [Tunable],
    values: Vec<i64>,
}

impl Tunables {
    /// All defaults.
    pub fn defaults(table: &'static [Tunable]) -> Tunables {
        Tunables {
            table,
            values: table.iter().map(|t| t.default).collect(),
        }
    }

    /// Sets one value.
    ///
    /// # Errors
    /// If the name is unknown on `version` or the value out of range.
    pub fn set(
        &mut self,
        version: KernelVersion,
        name: &str,
        value: i64,
    ) -> Result<(), TunableError> {
        let Some(idx) = self
            .table
            .iter()
            .position(|t| t.name == name && t.since <= version)
        else {
            let valid = self
                .table
                .iter()
                .filter(|t| t.since <= version)
                .map(|t| t.name);
            return Err(TunableError::Unknown(name.to_owned(), valid.collect()));
        };
        let t = &self.table[idx];
        if value < t.range.0 || value > t.range.1 {
            return Err(TunableError::Range(t.name, value, t.range));
        }
        self.values[idx] = value;
        Ok(())
    }

    /// The value of a tunable of the table.
    ///
    /// # Panics
    /// If the table has no such name: a bug in the scheduler.
    pub fn get(&self, name: &str) -> i64 {
        let idx = self.table.iter().position(|t| t.name == name);
        self.values[idx.unwrap_or_else(|| panic!("no tunable {name} in the table"))]
    }

    /// Names and values in table order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Tunable, i64)> + '_ {
        self.table.iter().zip(self.values.iter().copied())
    }
}
