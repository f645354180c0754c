// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be wrong with an experiment: one line each.

use blklab_fio::error::Place;
use blklab_kernel::{PatchError, TunableError, VersionError};
use blklab_types::{choices, nearest_name, push_visibly, shown};
use std::fmt;

/// Why an experiment was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentError {
    /// The file, or what else the text came from.
    pub file: Option<String>,
    /// Line in it, from 1.
    pub line: Option<usize>,
    /// The key that it is about, as `device.rpm`; empty if none.
    pub key: String,
    /// What is wrong, and what would be right.
    pub what: String,
}

impl ExperimentError {
    /// An error without a place.
    pub fn new(what: impl Into<String>) -> ExperimentError {
        ExperimentError {
            file: None,
            line: None,
            key: String::new(),
            what: what.into(),
        }
    }

    /// The same error, about `key` unless it names one already.
    #[must_use]
    pub fn about(mut self, key: impl Into<String>) -> ExperimentError {
        if self.key.is_empty() {
            self.key = key.into();
        }
        self
    }

    /// The same error, at a place in a job file unless it names a file already.
    #[must_use]
    pub fn at(mut self, place: &Place) -> ExperimentError {
        if self.file.is_none() {
            self.file = Some(place.file.clone());
            self.line = (place.line > 0).then_some(place.line as usize);
        }
        self
    }

    /// The same error, in `file` unless it names one already.
    #[must_use]
    pub fn in_file(mut self, file: &str) -> ExperimentError {
        self.file.get_or_insert_with(|| file.to_owned());
        self
    }
}

impl fmt::Display for ExperimentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write_visibly(f, file)?;
            f.write_str(":")?;
            if let Some(line) = self.line {
                write!(f, "{line}:")?;
            }
            f.write_str(" ")?;
        }
        write_visibly(f, &self.what)
    }
}

/// Names and values from files stand in messages: a line feed or an escape
/// code in them must not reach the terminal as such.
fn write_visibly(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let mut visible = String::with_capacity(text.len());
    push_visibly(&mut visible, text);
    f.write_str(&visible)
}

impl std::error::Error for ExperimentError {}

/// `no WHAT is called 'NAME'`, with the nearest and all valid names.
pub fn no_such(what: &str, name: &str, valid: &[&str]) -> String {
    let hint = match nearest_name(name, valid.iter().copied()) {
        Some(near) => format!("did you mean '{near}'? "),
        None => String::new(),
    };
    format!(
        "no {what} is called '{}'; {hint}valid: {}",
        shown(name),
        choices(name, valid)
    )
}

impl From<TunableError> for ExperimentError {
    fn from(e: TunableError) -> ExperimentError {
        let key = match &e {
            TunableError::Unknown(name, _) => name.as_str(),
            TunableError::Range(name, ..) => name,
            _ => "",
        };
        ExperimentError::new(match &e {
            TunableError::Unknown(name, valid) if !valid.is_empty() => {
                no_such("tunable", name, valid)
            }
            TunableError::Range(name, value, (low, high)) => {
                format!("{name}={value}: expected a number from {low} to {high}")
            }
            e => e.to_string(),
        })
        .about(format!("tunables.{key}"))
    }
}

impl From<PatchError> for ExperimentError {
    fn from(e: PatchError) -> ExperimentError {
        ExperimentError::new(match &e {
            PatchError::Unknown(name, valid) => no_such("patch", name, valid),
            e => e.to_string(),
        })
        .about("patches")
    }
}

impl From<VersionError> for ExperimentError {
    fn from(e: VersionError) -> ExperimentError {
        ExperimentError::new(e.to_string()).about("kernel")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_of_visible_characters() {
        let name = format!("a\n\u{1b}[31m{}", "x".repeat(100));
        let text = ExperimentError::new(no_such("key", &name, &["b"])).to_string();
        assert!(
            text.starts_with("no key is called 'a\\n\\u{1b}[31mxxx"),
            "{text}"
        );
        assert!(text.ends_with("x…'; valid: b"), "{text}");
    }

    #[test]
    fn errors_name_file_line_and_choice() {
        let mut e = ExperimentError::new(no_such("scheduler", "nop", &["noop", "cfq"]));
        e.line = Some(3);
        assert_eq!(
            e.in_file("a.toml").to_string(),
            "a.toml:3: no scheduler is called 'nop'; did you mean 'noop'? valid: noop, cfq"
        );
    }
}
