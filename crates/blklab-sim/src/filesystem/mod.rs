// SPDX-License-Identifier: MIT OR Apache-2.0
//! The experiment's filesystem as the page cache takes it.

mod btrfs;
mod ext;
mod nilfs2;
mod ntfs3g;
mod reiserfs;
mod xfs;

use blklab_experiment::Experiment;
use blklab_fs::Filesystem;

/// What the files of an experiment lie on: a volume of so many sectors.
pub fn filesystem_of(e: &Experiment, sectors: u64) -> Filesystem {
    match e.filesystem.name.as_str() {
        "ext2" => Filesystem::Ext(ext::options(e, sectors, false)),
        "ext3" => Filesystem::Ext(ext::options(e, sectors, true)),
        "btrfs" | "btrfs-0.16" | "btrfs-unstable" => Filesystem::Btrfs(btrfs::options(e)),
        "nilfs2" => Filesystem::Nilfs(nilfs2::options(e)),
        "ntfs-3g" => Filesystem::Ntfs(ntfs3g::options(e)),
        "reiserfs" => Filesystem::Reiser(reiserfs::options(e)),
        "xfs" => Filesystem::Xfs(xfs::options(e)),
        _ => Filesystem::Extents,
    }
}

/// What mounting it has to say.
pub(crate) fn filesystem_notes(e: &Experiment) -> Vec<String> {
    match e.filesystem.name.as_str() {
        "xfs" => xfs::notes(e),
        _ => Vec::new(),
    }
}
