// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading experiment files and fio job files.

use crate::raw::RawExperiment;
use crate::{Experiment, ExperimentError, Workload};
use std::path::Path;

/// What kind of text a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// An experiment in TOML.
    Toml,
    /// An experiment in JSON.
    Json,
    /// A fio job file.
    Fio,
}

impl Source {
    /// By the end of the file's name: `.toml`, `.json`, anything else is a
    /// fio job file.
    pub fn of(path: &Path) -> Source {
        match path.extension().and_then(|e| e.to_str()) {
            Some("toml") => Source::Toml,
            Some("json") => Source::Json,
            _ => Source::Fio,
        }
    }
}

/// Largest file read: 64 MiB.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Reads an experiment or job file. `-` is standard input with a job file.
///
/// # Errors
/// If it cannot be read or is not what its name says.
pub fn load(path: &Path) -> Result<Experiment, ExperimentError> {
    let shown = path.display().to_string();
    let text = read(path).map_err(|e| e.in_file(&shown))?;
    parse(&shown, Source::of(path), &text, &|relative| {
        let file = path.parent().unwrap_or(Path::new("")).join(relative);
        read(&file).map_err(|e| e.in_file(&file.display().to_string()))
    })
}

fn read(path: &Path) -> Result<String, ExperimentError> {
    use std::io::Read as _;
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin()
            .lock()
            .take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut bytes)
            .map(|_| bytes)
    } else {
        std::fs::File::open(path).and_then(|f| {
            let mut bytes = Vec::new();
            f.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        })
    }
    .map_err(|e| ExperimentError::new(format!("cannot read: {e}")))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(ExperimentError::new(
            "larger than 64 MiB, which no experiment is",
        ));
    }
    String::from_utf8(bytes).map_err(|e| {
        let line = e.as_bytes()[..e.utf8_error().valid_up_to()]
            .iter()
            .filter(|&&b| b == b'\n')
            .count();
        ExperimentError {
            file: None,
            line: Some(line + 1),
            what: "not UTF-8 text; an experiment or job file is text".into(),
        }
    })
}

/// Makes an experiment of a text. `read_file` reads a job file that it names.
///
/// # Errors
/// If the text is not an experiment: with the line.
pub fn parse(
    name: &str,
    source: Source,
    text: &str,
    read_file: &dyn Fn(&str) -> Result<String, ExperimentError>,
) -> Result<Experiment, ExperimentError> {
    let stem = Path::new(name)
        .file_stem()
        .map_or(name, |s| s.to_str().unwrap_or(name));
    let raw: RawExperiment = match source {
        Source::Fio => {
            let workload = Workload::Fio {
                name: name.to_owned(),
                text: text.to_owned(),
            };
            return Ok(Experiment::new(stem, workload));
        }
        Source::Toml => toml::from_str(text).map_err(|e| ExperimentError {
            file: Some(name.to_owned()),
            line: e.span().map(|span| {
                1 + text.as_bytes()[..span.start.min(text.len())]
                    .iter()
                    .filter(|&&b| b == b'\n')
                    .count()
            }),
            what: one_line(e.message()),
        })?,
        Source::Json => serde_json::from_str(text).map_err(|e| {
            let message = e.to_string();
            let what = message
                .rsplit_once(" at line ")
                .map_or(message.as_str(), |(m, _)| m);
            ExperimentError {
                file: Some(name.to_owned()),
                line: (e.line() > 0).then(|| e.line()),
                what: one_line(what),
            }
        })?,
    };
    raw.resolve(stem, read_file).map_err(|e| e.in_file(name))
}

fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}
