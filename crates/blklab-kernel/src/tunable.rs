// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tunables: what sysfs shows of a scheduler or a queue.

use crate::KernelVersion;
use blklab_types::{Unit, shown};
use std::fmt;

/// One tunable, as data: the parser, `--help`, `blklab list tunables` and the
/// documentation read the same table.
#[derive(Clone, Copy, Debug)]
pub struct Tunable {
    /// Name of the file in sysfs.
    pub name: &'static str,
    /// Unit.
    pub unit: Unit,
    /// Default, in that unit. Defaults of times are those of 1000 ticks per
    /// second; where the kernel computes them in ticks, the scheduler does
    /// too, and other rates may differ by a rounding.
    pub default: i64,
    /// Smallest and largest value taken.
    pub range: (i64, i64),
    /// First release that has it, with this default.
    pub since: KernelVersion,
    /// First release without it, or with another default.
    pub until: KernelVersion,
    /// Effect, in a line.
    pub help: &'static str,
}

impl Tunable {
    /// In place of a default: unless something is written there is no value.
    pub const UNSET: i64 = i64::MIN;

    /// The default, if it is a value that may be written. Another one stands for
    /// "unset".
    pub fn default_value(&self) -> Option<i64> {
        (self.range.0..=self.range.1)
            .contains(&self.default)
            .then_some(self.default)
    }

    /// Whether this row is about the release.
    pub fn is_in(&self, v: KernelVersion) -> bool {
        v.is_within(self.since, self.until)
    }
}

/// Tunables of schedulers that are files of the queue, each from its release on; before,
/// those of the scheduler.
const OF_QUEUE: &[(&str, KernelVersion)] = &[("async_depth", KernelVersion::new(7, 0))];

/// Whether a tunable of a scheduler is a file of the queue in a release.
pub fn is_file_of_queue(name: &str, v: KernelVersion) -> bool {
    let mut rows = OF_QUEUE.iter();
    rows.any(|(tunable, since)| *tunable == name && v.is_from(*since))
}

/// The names that a table has in a release, in its order.
pub fn tunables_of(
    table: &'static [Tunable],
    v: KernelVersion,
) -> impl Iterator<Item = &'static Tunable> {
    table.iter().filter(move |t| t.is_in(v))
}

/// The releases in which a table has a name, in words that follow "it exists":
/// `from 2.6.29 on`, `up to 2.6.18`. None if the table never has it.
pub fn existence(table: &[Tunable], name: &str) -> Option<String> {
    let rows = || table.iter().filter(|t| t.name == name);
    let since = rows().map(|t| t.since).min()?;
    let until = rows().map(|t| t.until).max()?;
    let last = crate::releases().filter(|v| *v < until).last();
    let first = crate::releases().next();
    let begins = first.is_none_or(|first| since > first);
    Some(match (begins, until < KernelVersion::FOREVER, last) {
        (false, false, _) | (false, true, None) => "in every release".to_owned(),
        (true, true, Some(last)) => format!("from {since} to {last}"),
        (false, true, Some(last)) => format!("up to {last}"),
        (true, ..) => format!("from {since} on"),
    })
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
                write!(f, "no tunable '{}': this scheduler has none", shown(name))
            }
            TunableError::Unknown(name, valid) => {
                write!(
                    f,
                    "no tunable '{}'; valid: {}",
                    shown(name),
                    valid.join(", ")
                )
            }
            TunableError::Range(name, value, (lo, hi)) => {
                write!(f, "{name}={value} is out of range {lo}..{hi}")
            }
        }
    }
}

impl std::error::Error for TunableError {}

/// What was written to the tunables of one release; defaults elsewhere.
#[derive(Clone, Debug)]
pub struct Tunables {
    table: &'static [Tunable],
    version: KernelVersion,
    /// In the order of writing; a name appears once.
    written: Vec<(&'static str, i64)>,
}

impl Tunables {
    /// All defaults of a release.
    pub fn defaults(table: &'static [Tunable], version: KernelVersion) -> Tunables {
        Tunables {
            table,
            version,
            written: Vec::new(),
        }
    }

    /// The names of the release, in table order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        tunables_of(self.table, self.version).map(|t| t.name)
    }

    fn find(&self, name: &str) -> Option<&'static Tunable> {
        tunables_of(self.table, self.version).find(|t| t.name == name)
    }

    /// Writes one value, as to its file in sysfs: what is out of range becomes
    /// the nearest end of it. Returns what was stored.
    ///
    /// # Errors
    /// If the release has no such name.
    pub fn set(&mut self, name: &str, value: i64) -> Result<i64, TunableError> {
        let Some(t) = self.find(name) else {
            let valid = self.names().collect();
            return Err(TunableError::Unknown(name.to_owned(), valid));
        };
        let stored = value.clamp(t.range.0, t.range.1);
        self.written.retain(|(n, _)| *n != t.name);
        self.written.push((t.name, stored));
        Ok(stored)
    }

    /// The value that was written last to one of `names`, which are names of
    /// the same variable, and to which of them.
    pub fn written(&self, names: &[&str]) -> Option<(&'static str, i64)> {
        let last = self.written.iter().rev();
        last.copied().find(|(n, _)| names.contains(n))
    }

    /// The value of a tunable of the release.
    ///
    /// # Panics
    /// If the table has no such name: a bug in the scheduler.
    pub fn get(&self, name: &str) -> i64 {
        let t = self.find(name);
        let t = t.unwrap_or_else(|| panic!("no tunable {name} in {}", self.version));
        self.written(&[name]).map_or(t.default, |(_, value)| value)
    }
}
