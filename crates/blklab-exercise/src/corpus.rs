// SPDX-License-Identifier: MIT OR Apache-2.0
//! What targets start from.

use crate::Target;
use std::path::{Path, PathBuf};

/// Longer samples are cut.
const BYTES_MAX: usize = 64 * 1024;

/// An input to start from.
#[derive(Clone, Debug)]
pub struct Seed {
    /// A name for its file.
    pub name: String,
    /// The input.
    pub bytes: Vec<u8>,
}

impl Seed {
    /// Files as parts of one input, divided by NUL.
    pub(crate) fn joined(name: &str, paths: &[String]) -> Seed {
        let parts: Vec<Vec<u8>> = paths.iter().map(|path| read(&root().join(path))).collect();
        Seed {
            name: name.to_owned(),
            bytes: parts.join(&0),
        }
    }
}

/// All seeds of a target, in an order that stays: its samples, its corpus
/// (`fuzz/corpora/NAME`), and what was once wrong (`fuzz/regressions/NAME`).
pub fn seeds(target: &Target) -> Vec<Seed> {
    let mut all = (target.samples)();
    for kind in ["corpora", "regressions"] {
        all.extend(in_folder(&folder_of(kind, target.name)));
    }
    assert!(!all.is_empty(), "{}: no seed", target.name);
    all
}

/// A folder of a target.
pub(crate) fn folder_of(kind: &str, name: &str) -> PathBuf {
    root().join("fuzz").join(kind).join(name)
}

/// The root of the project.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A target that starts from its corpus alone.
pub(crate) fn none() -> Vec<Seed> {
    Vec::new()
}

/// The files of folders below the project's root whose names end so; a last part `*` of a
/// folder stands for all folders there.
pub(crate) fn samples(folders: &[&str], ends: &[&str]) -> Vec<Seed> {
    let mut all = Vec::new();
    for folder in folders {
        match folder.strip_suffix("/*") {
            None => all.extend(in_folder(&root().join(folder))),
            Some(above) => {
                for inside in entries(&root().join(above)) {
                    all.extend(in_folder(&inside));
                }
            }
        }
    }
    all.retain(|seed| ends.iter().any(|end| seed.name.ends_with(end)));
    all
}

/// The files of a folder, if it is there.
fn in_folder(folder: &Path) -> Vec<Seed> {
    let files = entries(folder).into_iter().filter(|path| path.is_file());
    let seed = |path: PathBuf| {
        let below = path.strip_prefix(root()).unwrap_or(&path);
        Seed {
            name: below.display().to_string().replace('/', "_"),
            bytes: read(&path),
        }
    };
    files.map(seed).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let there = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = there
        .map(|entry| entry.expect("the project's files can be listed").path())
        .collect();
    paths.sort();
    paths
}

fn read(path: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(path).expect("the project's files can be read");
    bytes.truncate(BYTES_MAX);
    bytes
}
