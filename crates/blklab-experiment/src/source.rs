// SPDX-License-Identifier: MIT OR Apache-2.0
//! What kind of text an experiment is read from.

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
    pub fn from_path(path: &Path) -> Source {
        match path.extension().and_then(|e| e.to_str()) {
            Some("toml") => Source::Toml,
            Some("json") => Source::Json,
            _ => Source::Fio,
        }
    }
}
