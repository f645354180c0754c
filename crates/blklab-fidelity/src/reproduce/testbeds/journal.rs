// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs that are done, in a file to which each adds a line, so that a sampling that
//! was interrupted goes on where it ended.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// What a run gave, by what is measured.
pub(super) type Values = BTreeMap<String, f64>;

/// One line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    /// What the run was: its experiment and what it was asked for.
    run: String,
    values: Values,
}

/// The runs that are done.
#[derive(Debug, Default)]
pub struct Journal {
    done: BTreeMap<String, Values>,
    file: Option<Mutex<File>>,
}

impl Journal {
    /// That of a file, which comes into being if it is not there. A last line that is
    /// not whole is a run that was cut off, and runs again.
    ///
    /// # Errors
    /// If the file cannot be read or written, or is no journal: the message names the
    /// line.
    pub fn open(path: &Path) -> io::Result<Journal> {
        let text = match std::fs::read_to_string(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
            text => text?,
        };
        let mut done = BTreeMap::new();
        let mut whole = 0;
        for (i, line) in text.split_inclusive('\n').enumerate() {
            let Some(line) = line.strip_suffix('\n') else {
                break;
            };
            let parsed: Result<Line, _> = serde_json::from_str(line);
            let Ok(Line { run, values }) = parsed else {
                let what = format!("line {}: not a run of a testbed", i + 1);
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            };
            whole += line.len() as u64 + 1;
            done.insert(run, values);
        }
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        // What was cut off goes.
        file.set_len(whole)?;
        Ok(Journal {
            done,
            file: Some(Mutex::new(file)),
        })
    }

    /// What a run gave that is done.
    pub(super) fn values(&self, run: &str) -> Option<&Values> {
        self.done.get(run)
    }

    /// A run is done.
    pub(super) fn add(&self, run: &str, values: &Values) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let line = Line {
            run: run.to_owned(),
            values: values.clone(),
        };
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&text)
    }
}
