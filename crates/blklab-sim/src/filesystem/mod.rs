// SPDX-License-Identifier: MIT OR Apache-2.0
//! The experiment's filesystem as the page cache takes it.

mod ext;
mod ntfs3g;
mod reiserfs;

use blklab_experiment::Experiment;
use blklab_fs::Filesystem;

/// What the files of an experiment lie on: a volume of so many sectors.
pub fn filesystem_of(e: &Experiment, sectors: u64) -> Filesystem {
    match e.filesystem.name.as_str() {
        "ext2" => Filesystem::Ext(ext::options(e, sectors, false)),
        "ext3" => Filesystem::Ext(ext::options(e, sectors, true)),
        "ntfs-3g" => Filesystem::Ntfs(ntfs3g::options(e)),
        "reiserfs" => Filesystem::Reiser(reiserfs::options(e)),
        _ => Filesystem::Extents,
    }
}
