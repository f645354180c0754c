// SPDX-License-Identifier: MIT OR Apache-2.0
//! Built-in scenarios: loads with parameters that reproduce published
//! experiments.
//!
//! A scenario is a fio job file made from its parameters ([`Scenario::job_text`]),
//! and for those of its jobs that are no fio jobs the program that runs in their
//! place ([`Scenario::programs`]). Sources are with each in [`ALL`].
//!
//! ```
//! use blklab_workload::scenario::Scenario;
//! let mut s = Scenario::named("dd").unwrap();
//! s.set("size", "100m").unwrap();
//! assert!(s.job_text().contains("size=104857600"));
//! assert!(s.set("size", "much").is_err());
//! ```

mod programs;
mod table;
mod text;

pub use programs::{Cat, Compile, Notification, Program, PvfsBench, PvfsMode, etc_sizes};
pub use table::ALL;

use blklab_types::{Error, shown};
use std::fmt;

/// What a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A size with a suffix k, m, g or t, in bytes.
    Size(u64, u64),
    /// A whole number.
    Number(u64, u64),
    /// One of some words.
    Word(&'static [&'static str]),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Size(low, high) => write!(f, "size, {low} to {high} bytes"),
            Kind::Number(low, high) => write!(f, "{low} to {high}"),
            Kind::Word(words) => f.write_str(&words.join(", ")),
        }
    }
}

/// A parameter of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name, as in `--set NAME=VALUE`.
    pub name: &'static str,
    /// Its default.
    pub default: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What it does.
    pub help: &'static str,
}

/// What a built-in scenario is.
#[derive(Debug, PartialEq, Eq)]
pub struct Spec {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a line or two.
    pub summary: &'static str,
    /// Where it was run and published.
    pub source: &'static str,
    /// The kernel that it ran on.
    pub kernel: &'static str,
    /// The fio that its jobs follow.
    pub fio: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// What is left out of it, for whoever reads a result.
    pub left_out: &'static str,
    /// What is left out besides, if it runs without a filesystem.
    pub left_out_on_extents: &'static str,
}

impl Spec {
    fn parameter(&self, name: &str) -> Option<&'static Parameter> {
        self.parameters.iter().find(|p| p.name == name)
    }
}

/// A scenario with values for its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    spec: &'static Spec,
    values: Vec<(&'static str, String)>,
}

impl Scenario {
    /// The scenario of that name with its defaults.
    pub fn named(name: &str) -> Option<Scenario> {
        let spec = ALL.iter().find(|s| s.name == name)?;
        Some(Scenario {
            spec,
            values: Vec::new(),
        })
    }

    /// What it is.
    pub fn spec(&self) -> &'static Spec {
        self.spec
    }

    /// Whether it has that parameter.
    pub fn has(&self, name: &str) -> bool {
        self.spec.parameter(name).is_some()
    }

    /// Sets a parameter.
    ///
    /// # Errors
    /// What it takes, in a line.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let Some(p) = self.spec.parameter(name) else {
            let names: Vec<&str> = self.spec.parameters.iter().map(|p| p.name).collect();
            let names = names.join(", ");
            return Err(Error::new(format!(
                "{} has no parameter '{}'; it has {names}",
                self.spec.name,
                shown(name)
            )));
        };
        let fits = match p.kind {
            Kind::Size(low, high) | Kind::Number(low, high) => {
                let size = matches!(p.kind, Kind::Size(..));
                number(value, size).is_some_and(|n| (low..=high).contains(&n))
            }
            Kind::Word(words) => words.contains(&value),
        };
        if !fits {
            return Err(Error::new(format!(
                "{name}={}: expected {}",
                shown(value),
                p.kind
            )));
        }
        self.values.retain(|(k, _)| *k != p.name);
        self.values.push((p.name, value.to_owned()));
        Ok(())
    }

    /// All parameters with their values, in the order of the table.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = self.spec.parameters.iter();
        all.map(|p| (p.name, self.word(p.name)))
    }

    fn word(&self, name: &'static str) -> &str {
        let set = self.values.iter().find(|(k, _)| *k == name);
        set.map_or_else(
            || self.spec.parameter(name).map_or("", |p| p.default),
            |(_, v)| v,
        )
    }

    fn number(&self, name: &'static str) -> u64 {
        let size = self
            .spec
            .parameter(name)
            .is_some_and(|p| matches!(p.kind, Kind::Size(..)));
        number(self.word(name), size).unwrap_or(0)
    }
}

/// A whole number, or a size in bytes.
fn number(text: &str, size: bool) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (digits, shift) = match lower.char_indices().last() {
        Some((i, 'k')) if size => (&lower[..i], 10),
        Some((i, 'm')) if size => (&lower[..i], 20),
        Some((i, 'g')) if size => (&lower[..i], 30),
        Some((i, 't')) if size => (&lower[..i], 40),
        _ => (lower.as_str(), 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests;
