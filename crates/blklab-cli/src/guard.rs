// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a command reads and what it writes. A command says both here before it begins, and
//! writes only to the places that it gets: so no output replaces what the command reads, what
//! belongs to a run directory, or what another option writes, under whatever name.

use anyhow::{Context as _, Result, bail};
use blklab::claims::Claims;
use blklab::outputs;
use blklab::run_directory;
use blklab::trace_file;
use std::path::{Path, PathBuf};

/// The files of a command.
#[derive(Debug, Default)]
pub(crate) struct Guard(Claims);

/// A file that a command may write.
#[derive(Debug)]
pub(crate) struct Place(PathBuf);

impl Guard {
    /// That of a command which reads these: files, traces, run directories, folders of them;
    /// `-` is standard input.
    pub(crate) fn new<P: AsRef<Path>>(read: impl IntoIterator<Item = P>) -> Guard {
        let mut guard = Guard::default();
        guard.reads(read);
        guard
    }

    /// It reads these, too.
    pub(crate) fn reads<P: AsRef<Path>>(&mut self, paths: impl IntoIterator<Item = P>) {
        paths
            .into_iter()
            .for_each(|path| self.0.reads(path.as_ref()));
    }

    /// A file that an option names, or a device or pipe.
    ///
    /// # Errors
    /// If it must not or cannot be written.
    pub(crate) fn writes(&mut self, path: &Path, option: &str) -> Result<Place> {
        self.0.writes(path, option)?;
        outputs::check_writable(path).with_context(|| option.to_owned())?;
        Ok(Place(path.to_path_buf()))
    }

    /// A file that an option names and that is renamed when it is whole: no device or pipe.
    ///
    /// # Errors
    /// If it must not or cannot be written.
    pub(crate) fn writes_whole(&mut self, path: &Path, option: &str) -> Result<Place> {
        outputs::check_replaceable(path).with_context(|| option.to_owned())?;
        self.writes(path, option)
    }

    /// A file in a folder that an option names and that may not be there yet.
    ///
    /// # Errors
    /// If it must not be written.
    pub(crate) fn writes_below(
        &mut self,
        folder: &Path,
        name: impl AsRef<Path>,
        option: &str,
    ) -> Result<Place> {
        outputs::check_folder(folder).with_context(|| option.to_owned())?;
        let path = folder.join(name);
        self.0.writes(&path, option)?;
        if path.exists() {
            outputs::check_replaceable(&path).with_context(|| option.to_owned())?;
        }
        Ok(Place(path))
    }

    /// A file in a folder, where it may be already, but with no other contents.
    ///
    /// # Errors
    /// If it must not be written.
    pub(crate) fn writes_same(
        &mut self,
        folder: &Path,
        name: impl AsRef<Path>,
        contents: &[u8],
    ) -> Result<Place> {
        let path = folder.join(name.as_ref());
        if path.exists() && std::fs::read(&path).ok().as_deref() != Some(contents) {
            bail!("{}: exists and is another file", path.display());
        }
        self.writes_below(folder, name, "--out")
    }

    /// A trace, whose name says how many files it has.
    ///
    /// # Errors
    /// If one of them must not or cannot be written.
    pub(crate) fn writes_trace(&mut self, path: &Path, option: &str) -> Result<Place> {
        outputs::check_replaceable(path).with_context(|| option.to_owned())?;
        let written = trace_file::files_of(path).into_iter();
        for file in written.chain(trace_file::replaced_by(path)) {
            self.0.writes(&file, option)?;
        }
        Ok(Place(path.to_path_buf()))
    }

    /// A log that a job names; with the run directory of its run, if it has one.
    ///
    /// # Errors
    /// If it must not be written.
    pub(crate) fn writes_log(
        &mut self,
        path: &Path,
        run_directory: Option<&Path>,
        writer: &str,
    ) -> Result<Place, blklab::types::Error> {
        match run_directory {
            Some(dir) if path.starts_with(dir) => self.0.writes_of_run(path, writer)?,
            _ => self.0.writes(path, writer)?,
        }
        Ok(Place(path.to_path_buf()))
    }

    /// All that a run leaves in its directory, where the files of an earlier run may be.
    ///
    /// # Errors
    /// If a file there is read, or is not of a run.
    pub(crate) fn writes_run(
        &mut self,
        dir: &Path,
        contents: &run_directory::Contents,
        option: &str,
    ) -> Result<()> {
        outputs::check_folder(dir).with_context(|| option.to_owned())?;
        run_directory::check(dir, contents).with_context(|| option.to_owned())?;
        for name in contents.names() {
            self.0.writes_of_run(&dir.join(name), option)?;
        }
        Ok(())
    }
}

impl Place {
    /// Its name.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes it where it is not yet.
    ///
    /// # Errors
    /// If a file with other contents came into being meanwhile, or it cannot be written.
    pub(crate) fn write_new(&self, bytes: &[u8]) -> Result<()> {
        match std::fs::read(&self.0) {
            Ok(there) if there == bytes => Ok(()),
            Ok(_) => bail!("{} exists: it is not replaced", self.0.display()),
            Err(_) => self.write(bytes),
        }
    }

    /// Writes it, whole or not at all; the folder comes into being where it is not there.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<()> {
        Ok(outputs::write_files(&[(&self.0, bytes)])?)
    }
}

/// Writes several files, all or none.
pub(crate) fn write_all<B: AsRef<[u8]>>(files: &[(Place, B)]) -> Result<()> {
    let files: Vec<(&Path, &[u8])> = files
        .iter()
        .map(|(place, bytes)| (place.path(), bytes.as_ref()))
        .collect();
    Ok(outputs::write_files(&files)?)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// What writes files. A command that used one of these would write past the guard.
    const WRITERS: [&str; 8] = [
        "write_file(",
        "fs::write(",
        "File::create",
        "OpenOptions",
        "fs::rename",
        "fs::copy",
        "fs::remove_file",
        "PartialFile",
    ];

    fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                sources(&path, found);
            } else {
                let text = std::fs::read_to_string(&path).expect("a source");
                found.push((path.display().to_string(), text));
            }
        }
    }

    #[test]
    fn only_the_guard_writes_files() {
        let mut all = Vec::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut all);
        assert!(all.len() > 30);
        for (name, text) in all.iter().filter(|(name, _)| !name.ends_with("guard.rs")) {
            for writer in WRITERS {
                let own = text.split("#[cfg(test)]").next().unwrap_or_default();
                assert!(!own.contains(writer), "{name}: {writer}…: use a Place");
            }
        }
    }
}
