// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be wrong with an experiment: one line each.

use std::fmt;

/// Why an experiment was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentError {
    /// The file, or what else the text came from.
    pub file: Option<String>,
    /// Line in it, from 1.
    pub line: Option<usize>,
    /// What is wrong, and what would be right.
    pub what: String,
}

impl ExperimentError {
    /// An error without a place.
    pub fn new(what: impl Into<String>) -> ExperimentError {
        ExperimentError {
            file: None,
            line: None,
            what: what.into(),
        }
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
            write!(f, "{file}:")?;
            if let Some(line) = self.line {
                write!(f, "{line}:")?;
            }
            f.write_str(" ")?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for ExperimentError {}

macro_rules! from_display {
    ($($t:ty),*) => {$(
        impl From<$t> for ExperimentError {
            fn from(e: $t) -> ExperimentError {
                ExperimentError::new(e.to_string())
            }
        }
    )*};
}

from_display!(
    blklab_kernel::VersionError,
    blklab_kernel::TunableError,
    blklab_sched::SchedulerError,
    blklab_device::DeviceError
);
