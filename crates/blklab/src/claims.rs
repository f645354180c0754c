// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a command reads and what it writes, so that it replaces neither what it reads nor what
//! belongs to a run directory.

use crate::outputs::{folder_of, is_special, real_path};
use crate::run_directory::{holds_runs, run_directory_of};
use crate::trace_file;
use blklab_formats::{PartialFile, TraceFile};
use blklab_types::Error;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Files that a command reads and writes.
#[derive(Debug, Default)]
pub struct Claims {
    /// Files that are read, by device and inode.
    read: BTreeMap<(u64, u64), PathBuf>,
    /// Files that are written, and what writes them.
    written: BTreeMap<PathBuf, String>,
}

impl Claims {
    /// A file that is read, with those that are read with it: the other files of a trace in
    /// several, all files of a folder. What is no regular file may be written as well: a
    /// terminal, or `/dev/null`.
    pub fn reads(&mut self, path: &Path) {
        if path == Path::new("-") {
            return self.reads_file(Path::new("/dev/stdin"));
        }
        if path.is_dir() {
            return self.reads_folder(path);
        }
        self.reads_file(path);
        trace_file::read_with(path)
            .iter()
            .for_each(|file| self.reads_file(file));
        if TraceFile::holds_one(folder_of(path)) {
            self.reads_folder(folder_of(path));
        }
    }

    fn reads_file(&mut self, path: &Path) {
        if let Ok(m) = path.metadata()
            && m.is_file()
        {
            let id = (m.dev(), m.ino());
            self.read.entry(id).or_insert_with(|| path.to_path_buf());
        }
    }

    /// Of run directories, and of folders of them, what a run left there; of others all.
    fn reads_folder(&mut self, folder: &Path) {
        let of_runs = holds_runs(folder);
        let is_read = |file: &Path| !of_runs || run_directory_of(file).is_some();
        for file in files_below(folder).iter().filter(|file| is_read(file)) {
            self.reads_file(file);
        }
    }

    /// A file that is written, by an option or a job. One that several jobs
    /// write together has one `writer`.
    ///
    /// # Errors
    /// If it is read, belongs to a run directory, or something else writes it, too.
    pub fn writes(&mut self, path: &Path, writer: &str) -> Result<(), Error> {
        if let Some(dir) = run_directory_of(path).or_else(|| {
            // A link is replaced, not followed; but its name may be taken for the file's.
            run_directory_of(&path.canonicalize().ok()?)
        }) {
            return Err(Error::new(format!(
                "{writer}: {} belongs to the run directory {}, and is not replaced; give another \
                 name",
                path.display(),
                dir.display()
            )));
        }
        self.writes_of_run(path, writer)
    }

    /// The same of a file that a run leaves in its own directory, where it may replace one of
    /// an earlier run.
    ///
    /// # Errors
    /// If it is read, or something else writes it, too.
    pub fn writes_of_run(&mut self, path: &Path, writer: &str) -> Result<(), Error> {
        let fail = |what: String| Err(Error::new(what));
        // A file is written under another name at first, which is free then.
        for name in [path.to_path_buf(), PartialFile::partial_name(path)] {
            if let Ok(m) = name.metadata()
                && m.is_file()
                && let Some(input) = self.read.get(&(m.dev(), m.ino()))
            {
                return fail(format!(
                    "{writer}: {} would replace {}, which this command reads",
                    path.display(),
                    input.display()
                ));
            }
        }
        if is_special(path) {
            return Ok(());
        }
        let Ok(place) = real_path(path) else {
            // What opens it says what is wrong.
            return Ok(());
        };
        match self.written.get(&place) {
            Some(other) if other != writer => fail(format!(
                "{writer} and {other} both write {}",
                path.display()
            )),
            _ => {
                self.written.insert(place, writer.to_owned());
                Ok(())
            }
        }
    }
}

/// Folders below each other that are looked into for files that are read.
const DEPTH_MAX: usize = 5;
/// Files in them.
const FILES_MAX: usize = 100_000;

/// The files in a folder and the folders below it; links are not followed.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![(folder.to_path_buf(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < DEPTH_MAX => {
                    folders.push((entry.path(), depth + 1));
                }
                Ok(kind) if kind.is_file() && files.len() < FILES_MAX => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_is_read_and_written_or_written_twice() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("job"), "x").unwrap();
        std::fs::hard_link(at("job"), at("hard")).unwrap();
        symlink("job", at("soft")).unwrap();
        let mut claims = Claims::default();
        claims.reads(&at("job"));
        for name in ["job", "hard", "soft"] {
            let error = claims.writes(&at(name), "the output").unwrap_err();
            assert!(error.what.contains("which this command reads"), "{error}");
        }
        claims.writes(&at("a"), "the output").unwrap();
        claims.writes(&at("./a"), "the output").unwrap();
        let error = claims.writes(&at("./a"), "the trace").unwrap_err();
        assert!(
            error.what.contains("the trace and the output both write"),
            "{error}"
        );
        claims.reads(Path::new("/dev/null"));
        claims.writes(Path::new("/dev/null"), "the output").unwrap();
    }
}
