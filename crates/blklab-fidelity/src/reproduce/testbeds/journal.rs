// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs that are done, in a file to which each adds a line, so that a sampling that
//! was interrupted goes on where it ended.

use blklab_types::Error;
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
#[serde(deny_unknown_fields)]
struct Line {
    /// What the run was: its experiment and what it was asked for.
    run: String,
    values: Values,
}

/// How a line begins.
const BEGIN: &str = "{\"run\":";

/// A run that is done.
#[derive(Debug)]
struct Done {
    /// The line that says so, from 1.
    line: usize,
    values: Values,
}

/// The runs that are done.
#[derive(Debug, Default)]
pub struct Journal {
    /// The file's name.
    name: String,
    done: BTreeMap<String, Done>,
    file: Option<Mutex<File>>,
}

impl Journal {
    /// That of a file, which comes into being if it is not there. A last line that is
    /// not whole is a run that was cut off, and runs again.
    ///
    /// # Errors
    /// If the file cannot be read or written, or is no journal: one line with its name and
    /// the line in it.
    pub fn open(path: &Path) -> Result<Journal, Error> {
        let name = path.display().to_string();
        let fail = |what: String, line: Option<usize>| {
            Error {
                line,
                ..Error::new(what)
            }
            .in_file(&name)
        };
        let cannot_open = |e: io::Error| fail(format!("cannot open it: {e}"), None);
        let text = match std::fs::read_to_string(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
            text => text.map_err(cannot_open)?,
        };
        let mut done = BTreeMap::new();
        let mut whole = 0;
        for (line, n) in text.split_inclusive('\n').zip(1..) {
            let Some(line) = line.strip_suffix('\n') else {
                if !line.starts_with(BEGIN) && !BEGIN.starts_with(line) {
                    return Err(fail("not a run of a testbed".to_owned(), Some(n)));
                }
                break;
            };
            let Line { run, values } = serde_json::from_str(line)
                .map_err(|e| fail(format!("not a run of a testbed: {}", reason(&e)), Some(n)))?;
            whole += line.len() as u64 + 1;
            done.insert(run, Done { line: n, values });
        }
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.map_err(cannot_open)?;
        // What was cut off goes.
        file.set_len(whole).map_err(cannot_open)?;
        Ok(Journal {
            name,
            done,
            file: Some(Mutex::new(file)),
        })
    }

    /// Runs that are done, and what each gave by what was measured.
    pub fn done(&self) -> impl Iterator<Item = (&str, &BTreeMap<String, f64>)> {
        let all = self.done.iter();
        all.map(|(run, done)| (run.as_str(), &done.values))
    }

    /// What a run gave that is done and was asked for these measures.
    ///
    /// # Errors
    /// If the file says something else of it: one line with the place.
    pub(super) fn values(&self, run: &str, asked: &[&str]) -> Result<Option<&Values>, Error> {
        let Some(Done { line, values }) = self.done.get(run) else {
            return Ok(None);
        };
        match values.keys().find(|key| !asked.contains(&key.as_str())) {
            None => Ok(Some(values)),
            Some(key) => Err(Error {
                line: Some(*line),
                ..Error::new(format!(
                    "{}: this run is asked for: {}; remove the line and it runs again",
                    blklab_types::shown(key),
                    asked.join(", ")
                ))
            }
            .in_file(&self.name)),
        }
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

/// Why a line is none, without the place in it, which says nothing to people.
fn reason(e: &serde_json::Error) -> String {
    let text = e.to_string();
    let end = text.rfind(" at line ").unwrap_or(text.len());
    text[..end].to_owned()
}
