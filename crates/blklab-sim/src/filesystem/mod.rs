// SPDX-License-Identifier: MIT OR Apache-2.0
//! The experiment's filesystem as the page cache takes it.

mod btrfs;
mod ext;
mod ext4;
mod nilfs2;
mod ntfs3g;
mod reiserfs;
mod xfs;

use blklab_experiment::{Experiment, ExperimentError, FilesystemSpec};
use blklab_fs::Filesystem;
use blklab_pagecache::Atime;

/// Filesystems that the oldest kernels do not have, and the release that they
/// came with.
const SINCE: &[(&str, [u16; 3])] = &[("ext4", [2, 6, 28])];

/// Whether the kernel has the filesystem.
///
/// # Errors
/// It came later.
pub fn check_filesystem(e: &Experiment) -> Result<(), ExperimentError> {
    let name = e.filesystem.name.as_str();
    match SINCE.iter().find(|(n, _)| *n == name) {
        Some((_, since)) if e.kernel.numbers() < *since => {
            let [a, b, c] = since;
            Err(ExperimentError::new(format!(
                "kernel {} has no {name}: it came with {a}.{b}.{c}",
                e.kernel
            ))
            .about("filesystem"))
        }
        _ => Ok(()),
    }
}

/// What the files of an experiment lie on: a volume of so many sectors.
pub fn filesystem_of(e: &Experiment, sectors: u64) -> Filesystem {
    match e.filesystem.name.as_str() {
        "ext2" => Filesystem::Ext(ext::options(e, sectors, false)),
        "ext3" => Filesystem::Ext(ext::options(e, sectors, true)),
        "ext4" => Filesystem::Ext4(ext4::options(e)),
        "btrfs" | "btrfs-0.16" | "btrfs-unstable" => Filesystem::Btrfs(btrfs::options(e)),
        "nilfs2" => Filesystem::Nilfs(nilfs2::options(e)),
        "ntfs-3g" => Filesystem::Ntfs(ntfs3g::options(e)),
        "reiserfs" => Filesystem::Reiser(reiserfs::options(e)),
        "xfs" => Filesystem::Xfs(xfs::options(e)),
        _ => Filesystem::Extents(()),
    }
}

/// What mounting it has to say.
pub(crate) fn filesystem_notes(e: &Experiment) -> Vec<String> {
    match e.filesystem.name.as_str() {
        "xfs" => xfs::notes(e),
        _ => Vec::new(),
    }
}

// Options that several filesystems have -------------------------------------

/// A number; what does not fit is the default.
fn number(spec: &FilesystemSpec, key: &str, default: u32) -> u32 {
    let value = spec.number(key).and_then(|n| u32::try_from(n).ok());
    value.unwrap_or(default)
}

/// 0 or 1.
fn flag(spec: &FilesystemSpec, key: &str, default: bool) -> bool {
    spec.number(key).map_or(default, |n| n != 0)
}

/// `atime`.
fn atime(spec: &FilesystemSpec, default: Atime) -> Atime {
    match spec.option("atime") {
        Some("strict") => Atime::Strict,
        Some("relative") => Atime::Relative,
        Some("never") => Atime::Never,
        _ => default,
    }
}
