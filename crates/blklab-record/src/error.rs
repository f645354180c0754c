// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why nothing can be recorded.

use std::fmt;
use std::io;
use std::path::Path;

/// One line: what failed, and what would help.
#[derive(Debug)]
pub struct RecordError(String);

impl RecordError {
    pub(crate) fn new(text: impl Into<String>) -> RecordError {
        RecordError(text.into())
    }

    /// A file of the kernel that cannot be used.
    pub(crate) fn at(doing: &str, path: &Path, e: &io::Error) -> RecordError {
        RecordError(format!("cannot {doing} {}: {e}", path.display()))
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RecordError {}

impl From<blklab_formats::FormatError> for RecordError {
    fn from(e: blklab_formats::FormatError) -> RecordError {
        RecordError(e.to_string())
    }
}
