// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of settings: read from texts, kept in an experiment, written.

use super::amount::{amount, parse_size};
use super::{Access, Form, Home, Setting};
use crate::{Catalogue, Cgroup, Experiment};
use blklab_kernel::{KernelVersion, Tunable};
use blklab_types::{Error, Unit, shown};
use serde_json::{Value, json};

impl Setting {
    /// Writes a text to it, as to its file in the kernel of the experiment.
    ///
    /// # Errors
    /// If that has no such setting, or it does not take the value.
    pub fn set(&self, e: &mut Experiment, value: &str, catalogue: &Catalogue) -> Result<(), Error> {
        let Some(row) = self.row_in(e.kernel) else {
            let what = format!("{}: {}", self.name(), self.absence(e.kernel));
            return Err(Error::new(what).about(self.key()));
        };
        self.write(e, row, value, catalogue)
    }

    /// Why a kernel does not have it.
    pub(crate) fn absence(&self, kernel: KernelVersion) -> String {
        match self.elsewhere {
            "" => format!(
                "kernel {kernel} does not have it; it exists {}",
                self.exists()
            ),
            elsewhere => format!("kernel {kernel}: {elsewhere}"),
        }
    }

    /// Writes a text to the file of a control group.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn write_to(&self, g: &mut Cgroup, text: &str) -> Result<(), String> {
        match self.access {
            Access::GroupText { set, .. } => set(g, text),
            Access::GroupNumber { set, .. } => {
                let words: Vec<&str> = text.split_whitespace().collect();
                let number = match words[..] {
                    [number] | ["default", number] => number.parse().ok(),
                    _ => None,
                };
                let (low, high) = self.widest().range;
                match number.filter(|n| (low..=high).contains(&i64::from(*n))) {
                    Some(number) => set(g, number),
                    None => {
                        let name = self.name();
                        return Err(format!(
                            "{name} = {}: expected a number from {low} to {high}",
                            shown(text)
                        ));
                    }
                }
                Ok(())
            }
            _ => unreachable!("{} is no file of a control group", self.name()),
        }
    }

    /// What the file of a control group holds.
    pub(crate) fn text_of(&self, g: &Cgroup) -> Option<String> {
        match self.access {
            Access::GroupText { get, .. } => get(g),
            Access::GroupNumber { get, .. } => Some(get(g)?.to_string()),
            _ => None,
        }
    }

    /// Refuses what was written to the file of a control group and the kernel does
    /// not have or take.
    pub(crate) fn check_in(&self, g: &Cgroup, kernel: KernelVersion) -> Result<(), String> {
        let Some(text) = self.text_of(g) else {
            return Ok(());
        };
        let Some(row) = self.row_in(kernel) else {
            return Err(format!("{}: {}", self.name(), self.absence(kernel)));
        };
        let (low, high) = row.range;
        match self.access {
            Access::GroupNumber { get, .. }
                if get(g).is_some_and(|n| !(low..=high).contains(&i64::from(n))) =>
            {
                let name = self.name();
                Err(format!(
                    "{name} = {text}: expected a number from {low} to {high} in kernel {kernel}"
                ))
            }
            _ => Ok(()),
        }
    }

    /// Writes what an experiment file says. Whether the kernel has it, and takes
    /// the value, is for [`Experiment::check`] to say: another may be chosen.
    pub(crate) fn set_in_file(
        &self,
        e: &mut Experiment,
        value: &str,
        catalogue: &Catalogue,
    ) -> Result<(), Error> {
        self.write(e, self.widest(), value, catalogue)
    }

    /// Writes what an experiment file says in the finer unit of the field.
    pub(crate) fn set_fine_in_file(&self, e: &mut Experiment, value: &str) -> Result<(), Error> {
        let name = self.fine_name.unwrap_or_default();
        let number = amount(name, Unit::Count, value).map_err(|err| err.about(self.key()))?;
        self.check_range(self.widest(), number.div_euclid(self.per_unit))?;
        self.put(e, Some(number));
        Ok(())
    }

    /// The last releases have the widest range.
    fn widest(&self) -> &Tunable {
        self.rows()
            .last()
            .expect("a row has a first range of releases")
    }

    fn write(
        &self,
        e: &mut Experiment,
        row: &Tunable,
        value: &str,
        catalogue: &Catalogue,
    ) -> Result<(), Error> {
        let about = |err: Error| err.about(self.key());
        match self.access {
            Access::Text { set, .. } => set(e, value, catalogue).map_err(about),
            Access::Number { .. } => {
                let number = self.parse(row, value).map_err(about)?;
                self.put(e, Some(number));
                Ok(())
            }
            Access::Tunable => {
                let number = amount(self.name(), row.unit, value).map_err(about)?;
                replace(&mut e.tunables, self.name(), number);
                Ok(())
            }
            Access::Param => {
                replace(&mut e.device.params, self.name(), value.to_owned());
                e.default_scheduler(catalogue);
                Ok(())
            }
            Access::MountOption => {
                self.check_text(value).map_err(about)?;
                replace(&mut e.filesystem.options, self.name(), value.to_owned());
                Ok(())
            }
            Access::GroupNumber { .. } | Access::GroupText { .. } => {
                unreachable!("{} is written in a group", self.name())
            }
        }
    }

    /// Refuses a text that an option of a filesystem does not take.
    pub(crate) fn check_text(&self, value: &str) -> Result<(), Error> {
        let (low, high) = self.widest().range;
        let (is_good, expected) = match self.form {
            Form::Choice(words) => (words.contains(&value), format!("one of {}", self.takes())),
            // They stand in a command of a shell.
            Form::Text => {
                let is_plain = |c: char| c.is_ascii_alphanumeric() || "=,.+^_-/@ ".contains(c);
                let is_good = !value.trim().is_empty() && value.chars().all(is_plain);
                (is_good, "words of letters, digits and =,.+^_-/@".to_owned())
            }
            _ => (
                value.parse().is_ok_and(|n| (low..=high).contains(&n)),
                format!("a number from {}", self.takes()),
            ),
        };
        if is_good {
            return Ok(());
        }
        let what = format!("{}={}: expected {expected}", self.name(), shown(value));
        Err(Error::new(what))
    }

    /// The value of a text, in the unit of the field.
    fn parse(&self, row: &Tunable, value: &str) -> Result<i64, Error> {
        let name = self.name();
        let number = match self.form {
            Form::Size => return self.parse_in_range(row, value),
            Form::Words(words) => match words.iter().find(|(word, _)| *word == value) {
                Some((_, number)) => *number,
                None => {
                    let number = value.parse().ok();
                    let low_to_high = row.range.0..=row.range.1;
                    number.filter(|n| low_to_high.contains(n)).ok_or_else(|| {
                        Error::new(format!(
                            "{name}={}: expected '{}' or '{}'",
                            shown(value),
                            words[0].0,
                            words[1].0
                        ))
                    })?
                }
            },
            Form::OneOf(whose, valid) => {
                let number = amount(name, row.unit, value)?;
                if !valid.contains(&number) {
                    let words: Vec<String> = valid.iter().map(i64::to_string).collect();
                    let (last, others) = words.split_last().expect("a choice has values");
                    return Err(Error::new(format!(
                        "{name}={number}: {whose} {} or {last}",
                        others.join(", ")
                    )));
                }
                number
            }
            Form::Number | Form::Text | Form::Choice(_) => amount(name, row.unit, value)?,
        };
        self.check_range(row, number)?;
        Ok(number * self.per_unit)
    }

    fn parse_in_range(&self, row: &Tunable, value: &str) -> Result<i64, Error> {
        let bytes = i64::try_from(parse_size(value)?).unwrap_or(i64::MAX);
        let (low, high) = row.range;
        if !(low..=high).contains(&(bytes / self.per_unit)) {
            return Err(Error::new(format!(
                "{}={}: expected a size from {}m to {}g",
                self.name(),
                shown(value),
                low >> 10,
                high >> 20
            )));
        }
        Ok(bytes)
    }

    fn check_range(&self, row: &Tunable, number: i64) -> Result<(), Error> {
        let (low, high) = row.range;
        if (low..=high).contains(&number) {
            return Ok(());
        }
        let name = self.name();
        let what = format!("{name}={number}: expected a number from {low} to {high}");
        Err(Error::new(what).about(self.key()))
    }

    fn put(&self, e: &mut Experiment, value: Option<i64>) {
        if let Access::Number { set, .. } = self.access {
            set(e, value);
        }
    }

    /// What was set of a number, in the unit of the field; none if nothing was.
    pub fn stored(&self, e: &Experiment) -> Option<i64> {
        match self.access {
            Access::Number { get, .. } => get(e),
            Access::Tunable => given(&e.tunables, self.name()).copied(),
            _ => None,
        }
    }

    /// The text that was given to a parameter or an option.
    fn given_text<'e>(&self, e: &'e Experiment) -> Option<&'e str> {
        let given_texts = match self.access {
            Access::Param => &e.device.params,
            Access::MountOption => &e.filesystem.options,
            _ => return None,
        };
        given(given_texts, self.name()).map(String::as_str)
    }

    /// Forgets what was set.
    pub(crate) fn clear(&self, e: &mut Experiment) {
        self.put(e, None);
    }

    /// Whether something was set that the kernel does not have, and that would
    /// make a difference if it had.
    pub(crate) fn is_absent(&self, e: &Experiment) -> bool {
        let stored = self.stored(e);
        self.matters
            && stored.is_some()
            && stored != self.without
            && self.row_in(e.kernel).is_none()
    }

    /// Refuses a value that other releases take, and this one does not.
    pub fn check(&self, e: &Experiment) -> Result<(), Error> {
        if let (Home::Filesystem, Some(text)) = (self.home, self.given_text(e)) {
            return self.check_text(text).map_err(|err| err.about(self.key()));
        }
        // The kernel takes the nearest value that a tunable can have.
        if self.home == Home::Scheduler {
            return Ok(());
        }
        match (self.stored(e), self.row_in(e.kernel)) {
            (Some(value), Some(row)) => {
                let number = value.div_euclid(self.per_unit);
                let in_kernel = |err: Error| Error {
                    what: format!("{} in kernel {}", err.what, e.kernel),
                    ..err
                };
                self.check_range(row, number).map_err(in_kernel)
            }
            _ => Ok(()),
        }
    }

    /// Where experiment files have it: `queue.nomerges`.
    pub(crate) fn key(&self) -> String {
        match self.home.table() {
            "" => self.name().to_owned(),
            table => format!("{table}.{}", self.name()),
        }
    }

    /// Its name and value in a saved experiment: what was set, what it comes to, or
    /// the default that all releases have. None where the kernel chooses, or does
    /// not have it.
    pub(crate) fn saved(
        &self,
        e: &Experiment,
        catalogue: &Catalogue,
    ) -> Option<(&'static str, Value)> {
        let row = self.row_in(e.kernel)?;
        match self.access {
            // Empty is what says nothing, as a file does that leaves it out.
            Access::Text { get, .. } => {
                return Some(get(e))
                    .filter(|text| !text.is_empty())
                    .map(|text| (self.name(), json!(text)));
            }
            Access::Tunable => return Some((self.name(), json!(self.stored(e)?))),
            Access::MountOption => return Some((self.name(), json!(self.given_text(e)?))),
            Access::Param => {
                let default = Some(self.default_doc).filter(|text| !text.is_empty());
                let text = self.given_text(e).or(default)?;
                return Some((self.name(), json!(text)));
            }
            Access::Number { .. } => {}
            Access::GroupNumber { .. } | Access::GroupText { .. } => return None,
        }
        let in_range = |n: &i64| (row.range.0..=row.range.1).contains(&n.div_euclid(self.per_unit));
        let default = || {
            let default = row.default_value().filter(|_| self.is_for_ever());
            default.map(|n| n * self.per_unit)
        };
        let value = match self.effective {
            Some(effective) => effective(e, catalogue).filter(in_range),
            None => self.stored(e).or_else(default),
        }?;
        let name = self.fine_name.unwrap_or(self.name());
        Some((
            name,
            match self.form {
                Form::Words(words) => {
                    let word = words.iter().find(|(_, n)| *n == value);
                    json!(word.map(|(word, _)| word))
                }
                Form::Size => json!(value.to_string()),
                _ if row.unit == blklab_kernel::Unit::Bool => json!(value != 0),
                _ => json!(value),
            },
        ))
    }
}

/// The value of that name.
fn given<'v, T>(values: &'v [(String, T)], name: &str) -> Option<&'v T> {
    let found = values.iter().rev().find(|(key, _)| key == name);
    found.map(|(_, value)| value)
}

/// Gives a name another value.
fn replace<T>(values: &mut Vec<(String, T)>, name: &str, value: T) {
    values.retain(|(key, _)| key != name);
    values.push((name.to_owned(), value));
}
