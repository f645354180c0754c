// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a reader of a job file is told beside its text: what its caller chooses, and
//! the world outside, as far as the text may ask about it.

use crate::release::Release;
use crate::replay::trace::TraceEvents;
use blklab_types::{Error, ErrorKind};
use std::io::{BufRead, Cursor};

/// What a caller may choose.
#[derive(Clone, Debug, Default)]
pub struct ParseOptions {
    /// Only these sections make jobs; all if empty.
    pub sections: Vec<String>,
    /// Option lines set before the first file, as on fio's command line.
    pub template: Vec<String>,
    /// Stands for the system's entropy with `randrepeat=0`.
    pub entropy: u64,
    /// The release of fio that the jobs follow.
    pub release: Release,
    /// Messages say nothing of what the file holds but names of options: a file
    /// of a stranger named it, and it may be no job file at all.
    pub keeps_text: bool,
}

/// A file that `read_iolog` names.
pub enum Recording<'a> {
    /// fio's own log, or whatever else is no trace.
    Log(Box<dyn BufRead + 'a>),
    /// blktrace's records, whose byte layout this crate does not know.
    Trace(TraceEvents<'a>),
}

/// What a job file may ask about the world outside.
pub trait Surroundings {
    /// An environment variable.
    fn environment(&self, _name: &str) -> Option<String> {
        None
    }

    /// The text of a file to include.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read(&self, _path: &str) -> Result<String, Error> {
        Err(no_such_file())
    }

    /// Opens a log of I/Os.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn recording(&self, path: &str) -> Result<Recording<'_>, Error> {
        let text = self.read(path)?;
        Ok(Recording::Log(Box::new(Cursor::new(text))))
    }

    /// Whether the path is a directory in which files can be laid out.
    fn is_directory(&self, _path: &str) -> bool {
        true
    }

    /// Whether something other than a regular file has that name: a job of
    /// that name uses it instead of files of its own.
    fn is_device(&self, _path: &str) -> bool {
        false
    }

    /// `$pagesize`.
    fn page_size_bytes(&self) -> u64 {
        4096
    }

    /// `$mb_memory`.
    fn memory_mib(&self) -> u64 {
        1024
    }

    /// `$ncpus`.
    fn cpus(&self) -> u32 {
        1
    }
}

fn no_such_file() -> Error {
    Error::new("no such file").of_kind(ErrorKind::MissingFile)
}

/// Surroundings that are all given.
#[derive(Clone, Debug, Default)]
pub struct Fixed {
    /// Environment variables.
    pub environment: Vec<(String, String)>,
    /// Files that can be included.
    pub files: Vec<(String, String)>,
    /// Names of devices.
    pub devices: Vec<String>,
}

fn lookup(list: &[(String, String)], name: &str) -> Option<String> {
    list.iter()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.clone())
}

impl Surroundings for Fixed {
    fn environment(&self, name: &str) -> Option<String> {
        lookup(&self.environment, name)
    }

    fn read(&self, path: &str) -> Result<String, Error> {
        lookup(&self.files, path).ok_or_else(no_such_file)
    }

    fn is_device(&self, path: &str) -> bool {
        self.devices.iter().any(|device| device == path)
    }
}
