// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading experiment files and fio job files.

use crate::input::{GIVEN_BYTES_MAX, NAMED_BYTES_MAX, ReadFile, read_given, read_named};
use crate::locate::{line_at, line_of_key};
use crate::raw::{RawDevice, RawExperiment};
use crate::source::Source;
use crate::{Catalogue, DeviceSpec, Experiment, Workload};
use blklab_types::{Error, no_such};
use serde::de::DeserializeOwned;
use std::path::Path;

/// Reads an experiment or job file. `-` is standard input with a job file; the
/// name of a built-in scenario is that, unless there is such a file. It chooses
/// from the models of the catalogue.
///
/// # Errors
/// If it cannot be read or is not what its name says.
pub fn load(path: &Path, catalogue: &Catalogue) -> Result<Experiment, Error> {
    if path == Path::new("-") {
        let text = read_given(path).map_err(|e| e.in_file("standard input"))?;
        return Ok(job_file("stdin", "standard input", text));
    }
    let shown = path.display().to_string();
    if !path.exists()
        && let Ok(e) = Experiment::of_scenario(&shown, catalogue)
    {
        return Ok(e);
    }
    let text = read_given(path).map_err(|e| e.in_file(&shown))?;
    let read = |relative: &str| {
        let file = path.parent().unwrap_or(Path::new("")).join(relative);
        let name = file.display().to_string();
        match read_named(&file, NAMED_BYTES_MAX) {
            Ok(text) => Ok((name, text)),
            Err(e) => Err(e.in_file(&name)),
        }
    };
    parse(&shown, Source::from_path(path), &text, &read, catalogue)
}

/// Makes an experiment of a text. `read_file` reads a job file that it names.
///
/// # Errors
/// If the text is not an experiment: with the line.
pub fn parse(
    name: &str,
    source: Source,
    text: &str,
    read_file: &ReadFile<'_>,
    catalogue: &Catalogue,
) -> Result<Experiment, Error> {
    let stem = Path::new(name)
        .file_stem()
        .map_or(name, |s| s.to_str().unwrap_or(name));
    let raw: RawExperiment = match source {
        Source::Fio => return Ok(job_file(stem, name, text.to_owned())),
        _ if text.trim().is_empty() => {
            return Err(Error::new(
                "the file is empty; an experiment has a workload: 'processes', 'job' or 'job_file'",
            )
            .in_file(name));
        }
        Source::Toml => from_toml(text),
        Source::Json => from_json(text),
    }
    .map_err(|e| e.in_file(name))
    .and_then(|raw| match format_of(source, text) {
        None | Some(FORMAT) => Ok(raw),
        Some(other) => Err(at_key_in(other_format(other), text, source).in_file(name)),
    })
    .map_err(|e| match format_of(source, text) {
        // What is unknown may be what a later format has.
        Some(other) if other > FORMAT => at_key_in(other_format(other), text, source).in_file(name),
        _ => e,
    })?;
    raw.resolve(name, stem, read_file, catalogue)
        .map_err(|e| at_key_in(e, text, source).in_file(name))
}

/// Reads a file that describes a device: a table `[device]` as experiments have it.
///
/// # Errors
/// If it cannot be read or is no such file: with the line.
pub fn load_device(path: &Path, catalogue: &Catalogue) -> Result<DeviceSpec, Error> {
    let shown = path.display().to_string();
    let read = || {
        let text = read_named(path, NAMED_BYTES_MAX)?;
        let raw: RawDevice = from_toml(&text)?;
        match format_of(Source::Toml, &text) {
            None | Some(FORMAT) => {}
            Some(other) => return Err(at_key_in(other_format(other), &text, Source::Toml)),
        }
        let device = raw.resolve(&shown, catalogue);
        device.map_err(|e| at_key_in(e, &text, Source::Toml))
    };
    read().map_err(|e| e.in_file(&shown))
}

/// The format of experiment files that is read and written.
pub const FORMAT: u32 = 1;

/// The format that a file says it has.
fn format_of(source: Source, text: &str) -> Option<u32> {
    let format = match source {
        Source::Toml => text
            .parse::<toml::Table>()
            .ok()?
            .get("format")?
            .as_integer(),
        Source::Json => {
            let value: serde_json::Value = serde_json::from_str(text).ok()?;
            value.get("format")?.as_i64()
        }
        Source::Fio => None,
    };
    u32::try_from(format?).ok()
}

fn other_format(format: u32) -> Error {
    let what = format!("format {format} of experiment files; this blklab reads format {FORMAT}");
    Error::new(what).about("format")
}

fn job_file(id: &str, name: &str, text: String) -> Experiment {
    let workload = Workload::Fio {
        name: name.to_owned(),
        text,
    };
    Experiment {
        file: name.to_owned(),
        ..Experiment::new(id, workload)
    }
}

fn from_toml<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let of_toml = |e: &toml::de::Error, path: &str| Error {
        line: e.span().map(|span| line_at(text, span.start)),
        ..Error::new(in_words(e.message(), path))
    };
    let document = toml::Deserializer::parse(text).map_err(|e| of_toml(&e, ""))?;
    serde_path_to_error::deserialize(document)
        .map_err(|e| of_toml(e.inner(), &e.path().to_string()))
}

fn from_json(text: &str) -> Result<RawExperiment, Error> {
    let of_json = |e: &serde_json::Error, path: &str| {
        let message = e.to_string();
        let what = message
            .rsplit_once(" at line ")
            .map_or(message.as_str(), |(m, _)| m);
        Error {
            line: (e.line() > 0).then(|| e.line()),
            ..Error::new(in_words(what, path))
        }
    };
    let mut document = serde_json::Deserializer::from_str(text);
    let raw = serde_path_to_error::deserialize(&mut document)
        .map_err(|e| of_json(e.inner(), &e.path().to_string()))?;
    document.end().map_err(|e| of_json(&e, ""))?;
    Ok(raw)
}

/// A deserialiser's message in one line: where in the file, and for an unknown
/// key the nearest one.
fn in_words(message: &str, path: &str) -> String {
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let (what, path) = match (message.split_once(' '), quoted.split_first()) {
        (Some(("unknown", rest)), Some((name, valid))) if !valid.is_empty() => {
            let kind = match rest.split_once(' ') {
                Some(("field", _)) => "key",
                _ => "value",
            };
            let parent = match path.strip_suffix(name) {
                Some(parent) => parent.trim_end_matches('.'),
                None => path,
            };
            (no_such(kind, name, valid), parent)
        }
        _ => (message.clone(), path),
    };
    match path {
        "" | "." => what,
        path => format!("{path}: {what}"),
    }
}

/// An error with the line of its key in the text of an experiment file, if the key
/// is there.
fn at_key_in(mut error: Error, text: &str, source: Source) -> Error {
    if error.line.is_none() && !error.key.is_empty() {
        error.line = line_of_key(text, source, &error.key);
    }
    error
}

impl Experiment {
    /// An error of this experiment, with the file that it was read from and the line of
    /// the key that it is about.
    #[must_use]
    pub fn locate(&self, error: Error) -> Error {
        if error.file.is_some() || self.file.is_empty() {
            return error;
        }
        let path = Path::new(&self.file);
        let located = match Source::from_path(path) {
            Source::Fio => error,
            source => match read_named(path, GIVEN_BYTES_MAX) {
                Ok(text) => at_key_in(error, &text, source),
                Err(_) => error,
            },
        };
        located.in_file(&self.file)
    }
}
