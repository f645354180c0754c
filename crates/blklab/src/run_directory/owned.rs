// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which files of a run directory are a run's own: nothing but another run replaces them.

use super::{DEVICE, EVENTS, EXPERIMENT, HEADING, JOB, RESULT, is_run};
use crate::outputs::{HEAD_BYTES, folder_of, is_log};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Digits of the names of copies of logs and traces.
const COPY_DIGITS: usize = 16;

/// The run directory to which a file belongs that is there: as its experiment, job, result or
/// trace, as a file that describes its device, as a copy of what it replays, or as a log of its
/// jobs.
pub fn run_directory_of(file: &Path) -> Option<PathBuf> {
    file.symlink_metadata().ok()?;
    let folder = folder_of(file).canonicalize().ok()?;
    let real = folder.join(file.file_name()?);
    let dir = folder.ancestors().find(|dir| is_of_blklab(dir))?;
    let name = real.strip_prefix(dir).expect("it is below its ancestor");
    let is_own = [EXPERIMENT, JOB, RESULT, EVENTS]
        .map(Path::new)
        .contains(&name)
        || name.starts_with(DEVICE)
        || is_copy(name)
        || is_log(&head(&real));
    is_own.then(|| shown(dir))
}

/// Whether a folder has the experiment of a run in it, not one that a person wrote.
fn is_of_blklab(dir: &Path) -> bool {
    is_run(dir) && head(&dir.join(EXPERIMENT)).starts_with(format!("#{HEADING}").as_bytes())
}

/// Whether a name is that of a copy: of a log or a trace that is replayed.
fn is_copy(name: &Path) -> bool {
    let stem = name.file_stem().and_then(|s| s.to_str()).unwrap_or("/");
    let is_digest = stem.len() == COPY_DIGITS && stem.bytes().all(|b| b.is_ascii_hexdigit());
    is_digest && name.extension().is_some_and(|e| e == "blk" || e == "iolog")
}

/// The beginning of a file; nothing of what is no file or cannot be read.
fn head(path: &Path) -> Vec<u8> {
    let mut head = Vec::new();
    if path.is_file()
        && let Ok(file) = File::open(path)
    {
        // What was read until then is enough.
        let _ = file.take(HEAD_BYTES).read_to_end(&mut head);
    }
    head
}

/// A folder's path from the working folder, if it is below that.
fn shown(dir: &Path) -> PathBuf {
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    match here
        .ok()
        .and_then(|here| Some(dir.strip_prefix(here).ok()?.to_path_buf()))
    {
        Some(below) if below.as_os_str().is_empty() => PathBuf::from("."),
        Some(below) => below,
        None => dir.to_path_buf(),
    }
}
