// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that a command writes: which it may, and how they appear whole.
//!
//! - What a job file names lies below the folder that the run writes to, links
//!   followed, unless the user allows other places: people run strangers' jobs.
//! - A file that a job file names replaces only what blklab or fio wrote
//!   ([`is_replaceable`]). What the command line names replaces any file.
//! - No file is read and written by one command, and none is written twice.
//! - What a run left in its run directory is replaced by another run there, by nothing else.
//! - A file appears under its name when it is whole, and takes the place of a
//!   link instead of following it.

use blklab_formats::{FormatError, PartialFile};
use blklab_types::Error;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};

/// Why a job file may not write a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotThere {
    /// It would not lie below this folder.
    Elsewhere(String),
    /// Another reason, in words.
    Other(String),
}

impl fmt::Display for NotThere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotThere::Elsewhere(folder) => write!(f, "not below {folder}"),
            NotThere::Other(what) => f.write_str(what),
        }
    }
}

/// The file that a job file calls `name`, below `folder`.
///
/// # Errors
/// If it would lie elsewhere and `anywhere` is not set, or would replace a file
/// that neither blklab nor fio wrote.
pub fn named_in_job(folder: &Path, name: &str, anywhere: bool) -> Result<PathBuf, NotThere> {
    let path = folder.join(name);
    if path.file_name().is_none() {
        return Err(NotThere::Other("not the name of a file".to_owned()));
    }
    if !anywhere {
        let below = match real_folder(&path) {
            Ok(real) => real_path(folder).map(|folder| real.starts_with(folder)),
            // A way back out of a folder that is not there.
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        };
        let within = if folder == Path::new("") || folder == Path::new(".") {
            "the working folder".to_owned()
        } else {
            folder.display().to_string()
        };
        match below {
            Ok(true) => {}
            Ok(false) => {
                return Err(NotThere::Elsewhere(within));
            }
            Err(e) => return Err(NotThere::Other(e.to_string())),
        }
    }
    match is_replaceable(&path) {
        Ok(true) => Ok(path),
        Ok(false) => Err(NotThere::Other(format!(
            "{} exists, and neither blklab nor fio wrote it: it is not replaced",
            path.display()
        ))),
        Err(e) => Err(NotThere::Other(format!(
            "cannot read {}: {e}",
            path.display()
        ))),
    }
}

/// The folder of a path, links followed.
fn real_folder(path: &Path) -> io::Result<PathBuf> {
    real_path(folder_of(path))
}

/// The folder that a file lies in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    }
}

/// A path without links and `..`. Its end may not exist yet.
pub(crate) fn real_path(path: &Path) -> io::Result<PathBuf> {
    let mut missing = Vec::new();
    let mut there = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    while there.symlink_metadata().is_err() {
        match there.components().next_back() {
            Some(Component::Normal(name)) => missing.push(name.to_owned()),
            _ => return Err(io::Error::from(io::ErrorKind::NotFound)),
        }
        there = folder_of(there);
    }
    let mut real = if missing.is_empty() && !there.is_dir() {
        // A link at the end is not followed: it would be replaced.
        let folder = there.parent().unwrap_or(Path::new(""));
        let name = there.file_name().unwrap_or_default();
        real_path(folder)?.join(name)
    } else {
        there.canonicalize()?
    };
    real.extend(missing.iter().rev());
    Ok(real)
}

/// Bytes of an existing file that tell who wrote it.
pub(crate) const HEAD_BYTES: u64 = 4096;

/// First words of files that blklab and fio write.
const HEADS: [&[u8]; 5] = [
    b"# resolved by blklab ",
    b"; resolved by blklab ",
    b"fio version 2 iolog\n",
    b"fio version 3 iolog\n",
    b"\x89blkev\r\n",
];

/// Whether a file may take this name: there is none, it is empty, or it begins
/// as what blklab or fio writes: an iolog, a log of numbers, a run directory's
/// experiment, job file, result or trace.
///
/// # Errors
/// If it cannot be read.
pub fn is_replaceable(path: &Path) -> io::Result<bool> {
    match path.symlink_metadata() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(e) => return Err(e),
        Ok(m) if !m.is_file() => return Ok(false),
        Ok(_) => {}
    }
    let mut head = Vec::new();
    let file = std::fs::File::open(path)?;
    file.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(head.is_empty()
        || HEADS.iter().any(|h| head.starts_with(h))
        || is_log(&head)
        || is_result(&head))
}

/// Whether a text is a log of fio: numbers between commas and blanks.
pub(crate) fn is_log(head: &[u8]) -> bool {
    let line = head.split(|b| *b == b'\n').next().unwrap_or_default();
    let Ok(line) = std::str::from_utf8(line) else {
        return false;
    };
    let number = |word: &str| {
        let digits = word.strip_prefix("0x").unwrap_or(word);
        !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit())
    };
    // Of a long row only the beginning is here.
    let mut words: Vec<&str> = line.split(", ").collect();
    if line.len() == head.len() {
        words.pop();
    }
    words.len() >= 3 && words.into_iter().all(number)
}

/// Whether a text begins as the result of a run directory.
fn is_result(head: &[u8]) -> bool {
    let mark: &[u8] = b"\"fio version\": \"blklab-";
    head.starts_with(b"{") && head.windows(mark.len()).any(|w| w == mark)
}

/// Whether there is something that is neither file nor folder: a device or a
/// pipe, which is written to, never replaced.
pub(crate) fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| !m.is_file() && !m.is_dir())
}

/// Writes a file under a temporary name and renames it.
///
/// # Errors
/// If it cannot be written: nothing is left under its name.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    if is_special(path) {
        let opened = OpenOptions::new().write(true).open(path);
        return opened
            .and_then(|mut f| f.write_all(bytes))
            .map_err(|e| Error::new(format!("cannot write {}: {e}", path.display())));
    }
    fill_file(path, format!("write {}", path.display()), |file| {
        file.write_all(bytes)
    })
}

/// Writes several files under temporary names and renames them when all are whole. Folders come
/// into being where they are not there.
///
/// # Errors
/// If one cannot be written: nothing is left under its name or another's, and no new folder.
pub fn write_files(files: &[(&Path, &[u8])]) -> Result<(), Error> {
    let mut made = Vec::new();
    let written = files
        .iter()
        .try_for_each(|(path, _)| make_folders(folder_of(path), &mut made))
        .and_then(|()| write_all(files));
    if written.is_err() {
        // Those within others first; what has something in it stays.
        for folder in made.iter().rev() {
            let _ = std::fs::remove_dir(folder);
        }
    }
    written
}

fn write_all(files: &[(&Path, &[u8])]) -> Result<(), Error> {
    let failed = |e: FormatError| Error::new(e.to_string());
    let mut partial = Vec::new();
    for (path, bytes) in files {
        if is_special(path) {
            write_file(path, bytes)?;
            continue;
        }
        let doing = format!("write {}", path.display());
        let file = filled(path, doing, |file| file.write_all(bytes));
        partial.push(file.map_err(failed)?);
    }
    PartialFile::commit_all(partial).map(drop).map_err(failed)
}

/// Makes a folder with those above it, and notes which are new.
fn make_folders(folder: &Path, made: &mut Vec<PathBuf>) -> Result<(), Error> {
    if folder.symlink_metadata().is_ok() {
        return Ok(());
    }
    make_folders(folder_of(folder), made)?;
    make_folder(folder)?;
    made.push(folder.to_path_buf());
    Ok(())
}

/// Has a file filled under a temporary name and renames it.
///
/// # Errors
/// If what is being done fails: nothing is left under the file's name.
pub(crate) fn fill_file(
    path: &Path,
    doing: String,
    fill: impl FnOnce(&mut PartialFile) -> io::Result<()>,
) -> Result<(), Error> {
    let written = filled(path, doing, fill).and_then(|file| file.commit().map(drop));
    written.map_err(|e| Error::new(e.to_string()))
}

/// A file under a temporary name, filled.
fn filled(
    path: &Path,
    doing: String,
    fill: impl FnOnce(&mut PartialFile) -> io::Result<()>,
) -> Result<PartialFile, FormatError> {
    let mut file = PartialFile::create(path)?;
    fill(&mut file).map_err(|source| FormatError::Io { doing, source })?;
    Ok(file)
}

/// Refuses a name that no file can be written under: in a folder that is
/// missing or not writable, or of a folder.
///
/// # Errors
/// Says which it is.
pub fn check_writable(path: &Path) -> Result<(), Error> {
    let fail = |what: String| Err(Error::new(what));
    if is_special(path) {
        return Ok(());
    }
    if path.is_dir() {
        return fail(format!("{} is a folder; give a file", path.display()));
    }
    let folder = folder_of(path);
    if !folder.is_dir() {
        return fail(format!("the folder {} does not exist", folder.display()));
    }
    probe(folder)
}

/// As [`check_writable`], for files that are renamed when they are complete:
/// no device or pipe.
///
/// # Errors
/// Says what is wrong.
pub fn check_replaceable(path: &Path) -> Result<(), Error> {
    if is_special(path) {
        return Err(Error::new(format!(
            "{} is not a regular file",
            path.display()
        )));
    }
    check_writable(path)
}

/// Refuses a name that no folder can have or get.
///
/// # Errors
/// If it is that of a file, or the folder above cannot be written to.
pub fn check_folder(dir: &Path) -> Result<(), Error> {
    let fail = |what: String| Err(Error::new(what));
    let mut there = dir;
    while there.symlink_metadata().is_err() {
        there = folder_of(there);
    }
    match (there.is_dir(), there == dir) {
        (true, _) => probe(there),
        (false, true) => fail(format!("{} is a file; give a folder", dir.display())),
        (false, false) => fail(format!(
            "cannot make the folder {}: {} is a file",
            dir.display(),
            there.display()
        )),
    }
}

/// Makes a folder, with those above it.
///
/// # Errors
/// If it cannot be made.
pub fn make_folder(dir: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(dir)
        .map_err(|e| Error::new(format!("cannot make the folder {}: {e}", dir.display())))
}

/// Whether files can be made in a folder.
fn probe(folder: &Path) -> Result<(), Error> {
    let probe = folder.join(format!(".blklab-{}.partial", std::process::id()));
    let made = OpenOptions::new().write(true).create_new(true).open(&probe);
    let made = made.and_then(|_| std::fs::remove_file(&probe));
    made.map_err(|e| {
        Error::new(format!(
            "cannot write to the folder {}: {e}",
            folder.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_job_writes_below_its_folder() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        std::fs::create_dir_all(home.join("sub")).unwrap();
        symlink(dir.path(), home.join("out")).unwrap();
        symlink("sub", home.join("in")).unwrap();
        let at = |name: &str, anywhere| named_in_job(&home, name, anywhere);
        for name in ["x", "sub/x", "in/x", "sub/../x", "new/x"] {
            assert_eq!(at(name, false), Ok(home.join(name)), "{name}");
        }
        let absolute = home.join("sub/x").display().to_string();
        assert!(at(&absolute, false).is_ok());
        for name in [
            "../x",
            "/x",
            "out/x",
            "sub/../../x",
            "new/../../x",
            "out/home/../x",
        ] {
            let error = at(name, false).unwrap_err().to_string();
            assert!(error.contains("not below"), "{name}: {error}");
        }
        assert!(at("../x", true).is_ok());
        assert!(at("..", true).is_err());
    }

    #[test]
    fn only_our_files_and_fios_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let check = |text: &[u8], expected: bool| {
            let path = dir.path().join("x");
            std::fs::write(&path, text).unwrap();
            let shown = String::from_utf8_lossy(text);
            assert_eq!(is_replaceable(&path).unwrap(), expected, "{shown}");
        };
        check(b"", true);
        check(b"fio version 2 iolog\na add\n", true);
        check(b"12, 4567, 0, 4096, 0\n13, 1, 1, 512, 0x2001\n", true);
        check(b"100, 0, 4096, 0, 0, 12", true);
        check(b"{\n  \"fio version\": \"blklab-0.1.0\",\n", true);
        check(b"# resolved by blklab 0.1.0\n", true);
        check(b"1,2,3,4\n", false);
        check(b"name, size, date\n", false);
        check(b"root:x:0:0\n", false);
        check(b"{\"a\": 1}", false);
        check(b"\xff\xfe\n", false);
        assert!(is_replaceable(&dir.path().join("gone")).unwrap());
        assert!(!is_replaceable(dir.path()).unwrap());
        symlink("gone", dir.path().join("link")).unwrap();
        assert!(!is_replaceable(&dir.path().join("link")).unwrap());
    }
}
