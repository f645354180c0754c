// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be wrong with measurements: one line each.

use std::fmt;

/// Why there is no fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FitError {
    /// The file.
    pub file: Option<String>,
    /// Line in it, from 1.
    pub line: Option<u64>,
    /// What is wrong, and what would be right.
    pub what: String,
}

impl FitError {
    /// An error without a place.
    pub fn new(what: impl Into<String>) -> FitError {
        FitError {
            file: None,
            line: None,
            what: what.into(),
        }
    }

    /// The same error in a file.
    #[must_use]
    pub fn in_file(mut self, file: &str) -> FitError {
        self.file.get_or_insert_with(|| file.to_owned());
        self
    }

    /// The same error on a line.
    #[must_use]
    pub(crate) fn on_line(mut self, line: Option<u64>) -> FitError {
        self.line = self.line.or(line);
        self
    }
}

impl fmt::Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}:")?;
            if let Some(line) = self.line {
                write!(f, "{line}:")?;
            }
            f.write_str(" ")?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for FitError {}
