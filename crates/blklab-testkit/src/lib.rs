// SPDX-License-Identifier: MIT OR Apache-2.0
//! For tests: where measured data and tools are, and what a test left out
//! because they are not there.
//!
//! Large measurements lie outside the repository, in the folder that
//! `BLKLAB_SHARED` names or in `shared` beside the repository. A test that
//! finds nothing there says so and passes, with [`skipped`]: the line reaches
//! the terminal although cargo hides what tests that pass print, and is kept in the
//! file that `BLKLAB_SKIPS` names, from which `scripts/test.sh` makes its
//! summary. With `BLKLAB_REQUIRE_SHARED=1` data that are not there are a
//! failure instead: evidence cannot vanish unnoticed.

mod blktrace;

pub use blktrace::Blktrace;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Names the folder with measured data.
pub const SHARED: &str = "BLKLAB_SHARED";
/// Set to 1, what is not in that folder is a failure.
pub const REQUIRE_SHARED: &str = "BLKLAB_REQUIRE_SHARED";
/// Names a file that gets a line for each thing that a test left out.
pub const SKIPS: &str = "BLKLAB_SKIPS";

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Small files of the repository's test data, as they are: what each is, who asks knows.
///
/// # Panics
/// If they cannot be read.
pub fn samples() -> Vec<PathBuf> {
    const BYTES_MAX: u64 = 64 * 1024;
    let files = |folder: PathBuf| {
        let entries = std::fs::read_dir(folder).expect("test data can be listed");
        entries.map(|entry| entry.expect("test data can be listed").path())
    };
    let folders = files(root().join("testdata")).filter(|path| path.is_dir());
    let is_small = |path: &PathBuf| {
        let metadata = path.metadata().expect("test data can be read");
        metadata.is_file() && metadata.len() <= BYTES_MAX
    };
    let mut all: Vec<PathBuf> = folders.flat_map(files).filter(is_small).collect();
    all.sort();
    all
}

/// A file or folder among the measured data, as `truth-legacy/cases`; none, which
/// the test's output says, if it is not there.
///
/// # Panics
/// If it is not there and `BLKLAB_REQUIRE_SHARED` is 1.
pub fn shared(path: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(SHARED);
    let required = std::env::var_os(REQUIRE_SHARED).is_some_and(|v| v == "1");
    match find(folder, path, required) {
        Found::There(found) => Some(found),
        Found::Skip(why) => {
            skipped(&why);
            None
        }
        Found::Missing(why) => panic!("{why}"),
    }
}

/// Says that the running test leaves something out, and why.
pub fn skipped(why: &str) {
    let thread = std::thread::current();
    let line = format!("skipped: {}: {why}\n", thread.name().unwrap_or("a test"));
    // Not by a macro, whose output cargo hides if the test passes.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(file) = std::env::var_os(SKIPS) {
        let mut file = std::fs::File::options()
            .append(true)
            .create(true)
            .open(file)
            .expect("the file that BLKLAB_SKIPS names can be written");
        file.write_all(line.as_bytes())
            .expect("the file that BLKLAB_SKIPS names can be written");
    }
}

/// Whether a program is installed; the test's output says so if not.
pub fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
    if !there {
        skipped(&format!("{name} is not installed"));
    }
    there
}

/// What became of a search for measured data.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    There(PathBuf),
    Skip(String),
    Missing(String),
}

fn find(folder: Option<OsString>, path: &str, required: bool) -> Found {
    let (folder, name) = match folder {
        Some(folder) => (PathBuf::from(folder), SHARED),
        None => (root().join("../shared"), "../shared"),
    };
    let found = folder.join(path);
    match (found.exists(), required) {
        (true, _) => Found::There(found),
        (false, false) => Found::Skip(format!("no {path} in {name}")),
        (false, true) => Found::Missing(format!(
            "no {path} in {}, which {REQUIRE_SHARED}=1 demands",
            folder.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_that_are_demanded_are_a_failure_where_they_are_missing() {
        let here = || Some(root().into_os_string());
        let manifest = root().join("Cargo.toml");
        assert_eq!(find(here(), "Cargo.toml", true), Found::There(manifest));
        assert_eq!(
            find(here(), "no/such", false),
            Found::Skip("no no/such in BLKLAB_SHARED".to_owned())
        );
        let Found::Missing(why) = find(here(), "no/such", true) else {
            panic!("found");
        };
        assert!(why.starts_with("no no/such in /"), "{why}");
        assert!(why.ends_with(", which BLKLAB_REQUIRE_SHARED=1 demands"));
    }

    #[test]
    fn a_program_is_looked_for_where_the_shell_does() {
        assert!(has_program("sh"));
    }
}
