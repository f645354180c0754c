// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of one run: gone when it ends, or, if it was killed, when the next one
//! begins.

use crate::failed::failed;
use blklab_types::Error;
use std::fs::File;
use std::io;
use std::path::Path;
use tempfile::TempDir;

/// What the folders' names begin with.
const PREFIX: &str = "blklab-";
/// Locked by whoever works in the folder.
const OWNER: &str = "owner";

/// A folder for one run.
#[derive(Debug)]
pub(crate) struct Workplace {
    folder: TempDir,
    _owner: File,
}

impl Workplace {
    /// A new one, where the system keeps what is temporary.
    ///
    /// # Errors
    /// If there is no room.
    pub(crate) fn new() -> Result<Workplace, Error> {
        let made = Workplace::below(&std::env::temp_dir());
        made.map_err(|e| failed(&format!("no temporary folder: {e}")))
    }

    fn below(place: &Path) -> io::Result<Workplace> {
        sweep(place);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place)?;
        // It has its name only when it is locked: nobody takes it for one left over.
        let new = folder.path().join("owner.new");
        let owner = File::create(&new)?;
        owner.lock()?;
        std::fs::rename(new, folder.path().join(OWNER))?;
        Ok(Workplace {
            folder,
            _owner: owner,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders of runs that were killed.
fn sweep(place: &Path) {
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    for entry in entries {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_ours {
            continue;
        }
        let owner = File::open(entry.path().join(OWNER));
        if owner.is_ok_and(|file| file.try_lock().is_ok()) {
            // Another user's, or one that goes just now, is left alone.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{OWNER, Workplace};

    #[test]
    fn folders_of_killed_runs_go_and_those_in_use_stay() {
        let place = tempfile::tempdir().expect("a folder");
        let used = Workplace::below(place.path()).expect("a folder");
        let left = place.path().join("blklab-left");
        let others = place.path().join("blklab-other");
        for folder in [&left, &others] {
            std::fs::create_dir(folder).expect("a folder");
        }
        std::fs::write(left.join(OWNER), "").expect("a file");
        let next = Workplace::below(place.path()).expect("a folder");
        assert!(used.path().exists() && next.path().exists() && others.exists());
        assert!(!left.exists());
        let path = next.path().to_owned();
        drop(next);
        assert!(!path.exists());
    }
}
