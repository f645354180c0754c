// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading text files that people and other files name. What a file names is a
//! regular file of limited size: nobody waits for a pipe or fills the memory
//! with `/dev/zero` because a stranger's experiment says so.

use blklab_types::Error;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// Largest experiment or job file that the command line names: 64 MiB.
pub(crate) const GIVEN_BYTES_MAX: u64 = 64 << 20;

/// Largest file that another file names, such as `job_file` and a disk's
/// description: 16 MiB.
pub const NAMED_BYTES_MAX: u64 = 16 << 20;

/// Reads a job file that an experiment names: its name for messages, and its
/// text.
pub type ReadFile<'a> = dyn Fn(&str) -> Result<(String, String), Error> + 'a;

/// Reads a text that the command line names: a regular file, a pipe, a
/// terminal; `-` is standard input.
///
/// # Errors
/// If it cannot be read, is something else, too large, or no text.
pub(crate) fn read_given(path: &Path) -> Result<String, Error> {
    if path == Path::new("-") {
        return text(io::stdin().lock(), GIVEN_BYTES_MAX);
    }
    let file = File::open(path).map_err(|e| cannot_read(&e))?;
    let kind = file.metadata().map_err(|e| cannot_read(&e))?.file_type();
    let is_endless = kind.is_block_device()
        || kind.is_char_device() && !io::IsTerminal::is_terminal(&file) && !is_null(path);
    if is_endless {
        return Err(Error::new("a device, neither a file nor a pipe"));
    }
    text(file, GIVEN_BYTES_MAX)
}

/// `/dev/null` ends at once.
fn is_null(path: &Path) -> bool {
    path == Path::new("/dev/null")
}

/// Reads a text that another file names: a regular file of at most `bytes_max`.
///
/// # Errors
/// If it cannot be read, is something else, too large, or no text.
pub fn read_named(path: &Path, bytes_max: u64) -> Result<String, Error> {
    // Opening a pipe would wait for somebody to write to it.
    let kind = path.metadata().map_err(|e| cannot_read(&e))?;
    if kind.is_dir() {
        return Err(Error::new("cannot read: Is a directory"));
    }
    if !kind.is_file() {
        return Err(Error::new("not a regular file"));
    }
    let file = File::open(path).map_err(|e| cannot_read(&e))?;
    text(file, bytes_max)
}

fn cannot_read(e: &io::Error) -> Error {
    let text = e.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    Error::new(format!("cannot read: {text}")).of_kind(e.kind().into())
}

fn text(from: impl Read, bytes_max: u64) -> Result<String, Error> {
    let mut bytes = Vec::new();
    from.take(bytes_max + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| cannot_read(&e))?;
    if bytes.len() as u64 > bytes_max {
        let what = match bytes_max >> 20 {
            0 => format!("larger than {bytes_max} bytes"),
            mib => format!("larger than {mib} MiB"),
        };
        return Err(Error::new(what));
    }
    // Some editors put a mark in front of a text.
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes.drain(..3);
    }
    String::from_utf8(bytes).map_err(|e| {
        let line = e.as_bytes()[..e.utf8_error().valid_up_to()]
            .iter()
            .filter(|&&b| b == b'\n')
            .count();
        Error {
            line: Some(line + 1),
            ..Error::new("not UTF-8 text; an experiment or job file is text")
        }
    })
}
