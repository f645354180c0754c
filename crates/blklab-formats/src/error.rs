// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong with a trace file as a whole. Damage inside a file is
//! not an error but a number in [`ReadCounts`](crate::ReadCounts).

use crate::sums::Sums;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a trace cannot be written or read.
#[derive(Debug)]
#[non_exhaustive]
pub enum FormatError {
    /// The system refused.
    Io {
        /// What was being done, with the name of the file.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// The input is something else.
    Unrecognised {
        /// File or stream.
        input: String,
        /// What it would begin with.
        expected: &'static str,
        /// What it begins with.
        found: String,
    },
    /// The input is of a kind that has no events.
    Foreign {
        /// File or stream.
        input: String,
        /// What it seems to be.
        what: &'static str,
        /// What to do instead.
        instead: &'static str,
        /// The sums that it has in place of I/Os.
        sums: Option<Box<Sums>>,
    },
    /// It is a trace, and nothing is in it.
    Empty {
        /// File or stream.
        input: String,
    },
    /// The format is known, this version of it is not.
    Version {
        /// File or stream.
        input: String,
        /// The format.
        format: &'static str,
        /// The version it has.
        found: u32,
        /// The versions that can be read, in words.
        supported: &'static str,
    },
    /// The header of the file is damaged, so the rest has no meaning.
    Header {
        /// File or stream.
        input: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A text that describes the rest makes no sense.
    Metadata {
        /// File or stream.
        input: String,
        /// The line, 0 where there is none.
        line: u32,
        /// What is wrong there.
        problem: String,
    },
    /// Only a part of a trace that is a folder.
    Folder {
        /// File or stream.
        input: String,
    },
    /// The events are not those that something else says they are.
    OtherEvents {
        /// File or stream.
        input: String,
        /// The digest of the events that are wanted.
        wanted: u64,
        /// The digest of those that are there.
        found: u64,
        /// What says which are wanted.
        by: String,
    },
    /// A CPU has a file twice, as it is and compressed.
    TwoFiles {
        /// The CPU.
        cpu: u16,
        /// Its files.
        files: [PathBuf; 2],
    },
    /// More CPUs than a trace can have files for.
    TooManyCpus {
        /// The number asked for.
        nr_cpus: u32,
        /// The limit.
        limit: u32,
    },
}

impl FormatError {
    pub(crate) fn io(doing: impl Into<String>, source: io::Error) -> FormatError {
        FormatError::Io {
            doing: doing.into(),
            source,
        }
    }

    pub(crate) fn at(verb: &str, path: &Path, source: io::Error) -> FormatError {
        FormatError::io(format!("{verb} {}", path.display()), source)
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FormatError::Io { doing, source } => write!(f, "cannot {doing}: {source}"),
            FormatError::Unrecognised {
                input,
                expected,
                found,
            } => write!(f, "{input}: begins with {found}, expected {expected}"),
            FormatError::Foreign {
                input,
                what,
                instead,
                ..
            } => write!(f, "{input}: no trace; it seems to be {what}: {instead}"),
            FormatError::Empty { input } => write!(
                f,
                "{input}: an empty trace: nothing was recorded, or its files were cut"
            ),
            FormatError::Version {
                input,
                format,
                found,
                supported,
            } => write!(
                f,
                "{input}: {format} version {found} is not supported, only {supported}"
            ),
            FormatError::Header { input, problem } => {
                write!(f, "{input}: damaged header: {problem}")
            }
            FormatError::Metadata {
                input,
                line: 0,
                problem,
            } => write!(f, "{input}: {problem}"),
            FormatError::Metadata {
                input,
                line,
                problem,
            } => write!(f, "{input}:{line}: {problem}"),
            FormatError::Folder { input } => write!(
                f,
                "{input}: a file of an LTTng trace, which is a folder with a file 'metadata': give that"
            ),
            FormatError::OtherEvents {
                input,
                wanted,
                found,
                by,
            } => write!(
                f,
                "{input}: these are not the events of the run: their digest is {found:016x}, and \
                 {by} says {wanted:016x}; put the run's own events back, or run its experiment \
                 again (the file by itself can be read as a trace)"
            ),
            FormatError::TwoFiles {
                cpu,
                files: [one, other],
            } => write!(
                f,
                "CPU {cpu} has two files, {} and {}: remove one",
                one.display(),
                other.display()
            ),
            FormatError::TooManyCpus { nr_cpus, limit } => {
                write!(
                    f,
                    "trace with {nr_cpus} CPUs: no Linux has more than {limit}"
                )
            }
        }
    }
}

impl std::error::Error for FormatError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            FormatError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
