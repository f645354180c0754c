// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be wrong with a job file, and what is merely worth saying.
//!
//! Messages follow fio 3.33's wording where it has one, with file and line
//! added, and with the nearest option name for one that does not exist.

use blklab_types::Place;
use std::fmt;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// What, in fio's words where it has some.
    pub message: String,
    /// What would be right, if that is known.
    pub hint: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, ". {hint}"),
            None => Ok(()),
        }
    }
}

/// Why a job file was refused: everything that is wrong with one section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFileError {
    /// The problems in file order; at least one.
    pub problems: Vec<Problem>,
    /// The section that fio would drop.
    pub dropped: Option<String>,
    /// Where no section makes a job: the names of all sections of the file that
    /// could, whether they are wanted or not.
    pub no_jobs_in: Option<Vec<String>>,
}

impl JobFileError {
    pub(crate) fn at(place: &Place, message: impl Into<String>) -> Self {
        let problem = Problem {
            place: place.clone(),
            message: message.into(),
            hint: None,
        };
        JobFileError {
            problems: vec![problem],
            dropped: None,
            no_jobs_in: None,
        }
    }
}

impl fmt::Display for JobFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        match &self.dropped {
            Some(name) => write!(f, "\nfio: job {name} dropped"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for JobFileError {}

/// Something about an accepted job that its author should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Where.
    pub place: Place,
    /// The option, or the empty string.
    pub option: &'static str,
    /// What to know.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.option.is_empty() {
            write!(f, "{}: {}", self.place, self.text)
        } else {
            write!(f, "{}: {}: {}", self.place, self.option, self.text)
        }
    }
}
