// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output that is never half there: a file gets its name when it is complete,
//! and only whole records are written at a time.

use crate::FormatError;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The partial files of this process. Whoever ends it at once, as a second
/// Ctrl-C does, has them removed first; whoever renames one holds the lock, so
/// that of several files all get their names or none.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn unfinished() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    // A set of paths is whole whatever its last user did.
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the partial files that are being written, before the process ends.
/// No file gets its name from then on.
pub fn remove_partial_files() {
    let mut partial = unfinished();
    for path in std::mem::take(&mut *partial) {
        let _ = fs::remove_file(path);
    }
    // Held until the process ends.
    std::mem::forget(partial);
}

/// A file on its way: `NAME.partial` until [`PartialFile::commit`] renames it
/// to `NAME`. Dropped without that, it is removed.
///
/// A write that fails half-way is taken back, so that a file that a crash
/// leaves behind ends with the last write that succeeded, which the readers of
/// this crate accept.
#[derive(Debug)]
pub struct PartialFile {
    file: File,
    path: PathBuf,
    partial: PathBuf,
    written_bytes: u64,
}

impl PartialFile {
    /// The name of `path` while it is written.
    pub fn partial_name(path: &Path) -> PathBuf {
        let mut name = path.as_os_str().to_owned();
        name.push(".partial");
        PathBuf::from(name)
    }

    /// Starts the file that will be `path`; what is there now stays until the
    /// new one is complete. What a crashed process left under the partial name
    /// is removed; a link there is removed, not followed.
    ///
    /// # Errors
    /// When the partial file cannot be created, or two are to be the same.
    pub fn create(path: &Path) -> Result<PartialFile, FormatError> {
        let partial = PartialFile::partial_name(path);
        let fail = |e| FormatError::at("create", &partial, e);
        let mut unfinished = unfinished();
        if unfinished.contains(&partial) {
            return Err(fail(io::ErrorKind::AlreadyExists.into()));
        }
        if let Ok(left) = fs::symlink_metadata(&partial)
            && (left.is_file() || left.is_symlink())
        {
            fs::remove_file(&partial).map_err(fail)?;
        }
        // O_EXCL: neither a file nor a link of somebody else is opened.
        let new = || {
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&partial)
        };
        let file = crate::limit::with_room(new).map_err(fail)?;
        unfinished.insert(partial.clone());
        Ok(PartialFile {
            file,
            path: path.to_path_buf(),
            partial,
            written_bytes: 0,
        })
    }

    /// The name it will have.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens what was written so far for reading.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn reader(&self) -> Result<File, FormatError> {
        File::open(&self.partial).map_err(|e| FormatError::at("open", &self.partial, e))
    }

    /// Bytes written so far.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Replaces the first bytes, which must have been written.
    ///
    /// # Errors
    /// When that cannot be stored.
    pub fn rewrite_start(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        assert!(bytes.len() as u64 <= self.written_bytes, "not yet written");
        self.file
            .write_all_at(bytes, 0)
            .map_err(|e| FormatError::at("write", &self.path, e))
    }

    /// Gives the file its name. Returns its length in bytes.
    ///
    /// # Errors
    /// When the data or the new name cannot be stored.
    pub fn commit(self) -> Result<u64, FormatError> {
        PartialFile::commit_all([self])
    }

    /// Gives several files their names, in this order, once all are stored.
    /// Returns their length together, in bytes.
    ///
    /// # Errors
    /// When the data or a new name cannot be stored.
    pub fn commit_all(files: impl IntoIterator<Item = PartialFile>) -> Result<u64, FormatError> {
        let files: Vec<PartialFile> = files.into_iter().collect();
        for file in &files {
            file.file
                .sync_data()
                .map_err(|e| FormatError::at("store", &file.path, e))?;
        }
        let mut unfinished = unfinished();
        let mut bytes = 0;
        let mut result = Ok(());
        for file in &files {
            result = fs::rename(&file.partial, &file.path)
                .map_err(|e| FormatError::at("rename to", &file.path, e));
            if result.is_err() {
                break;
            }
            unfinished.remove(&file.partial);
            bytes += file.written_bytes;
        }
        // Before the files are dropped, which takes the lock again.
        drop(unfinished);
        result.map(|()| bytes)
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if unfinished().remove(&self.partial) {
            // Nobody is left to be told that it could not be removed.
            let _ = fs::remove_file(&self.partial);
        }
    }
}

impl Write for PartialFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.file.write_all(bytes) {
            Ok(()) => {
                self.written_bytes += bytes.len() as u64;
                Ok(())
            }
            Err(e) => {
                // Best effort: a cut record at the end would be read as such.
                let _ = self.file.set_len(self.written_bytes);
                let named = format!("{}: {e}", self.path.display());
                Err(io::Error::new(e.kind(), named))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Bytes gathered before they go to the file.
const BUFFER_BYTES: usize = 128 * 1024;
/// The same for each of many files, at least.
const BUFFER_BYTES_MIN: usize = 4096;
/// For the files of all CPUs together.
const SHARED_BYTES: usize = 16 << 20;

/// A buffer that passes on whole records and keeps the first error.
#[derive(Debug)]
pub(crate) struct Output<W> {
    inner: W,
    /// Where the current record goes.
    pub(crate) buf: Vec<u8>,
    /// Bytes gathered before they are written.
    buffer_bytes: usize,
    error: Option<io::Error>,
}

impl<W: Write> Output<W> {
    pub(crate) fn new(inner: W) -> Output<W> {
        Output {
            inner,
            buf: Vec::new(),
            buffer_bytes: BUFFER_BYTES,
            error: None,
        }
    }

    /// It is one of `nr_outputs` that are written together: they share the
    /// memory.
    pub(crate) fn share(&mut self, nr_outputs: usize) {
        let share = SHARED_BYTES / nr_outputs.max(1);
        self.buffer_bytes = share.clamp(BUFFER_BYTES_MIN, BUFFER_BYTES);
    }

    /// The current record is complete.
    #[inline]
    pub(crate) fn end_record(&mut self) {
        if self.buf.len() >= self.buffer_bytes {
            self.write_out();
        }
    }

    #[cold]
    pub(crate) fn write_out(&mut self) {
        if self.error.is_none()
            && let Err(e) = self.inner.write_all(&self.buf)
        {
            self.error = Some(e);
        }
        self.buf.clear();
    }

    /// Writes the rest and returns the file, or the first error.
    pub(crate) fn finish(mut self, what: &str) -> Result<W, FormatError> {
        self.write_out();
        let flushed = self.inner.flush();
        match self.error.map_or(flushed, Err) {
            Ok(()) => Ok(self.inner),
            Err(e) => Err(FormatError::io(format!("write {what}"), e)),
        }
    }
}

/// The first `max_bytes` of `text`, fewer where a character would be cut.
pub(crate) fn prefix(text: &str, max_bytes: usize) -> &str {
    let mut end = text.len().min(max_bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_name_only_when_complete() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        fs::write(&path, b"old").unwrap();
        let mut f = PartialFile::create(&path).unwrap();
        f.write_all(b"new data").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(f.commit().unwrap(), 8);
        assert_eq!(fs::read(&path).unwrap(), b"new data");
        assert!(!dir.path().join("t.partial").exists());
    }

    #[test]
    fn a_file_that_is_given_up_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        let mut f = PartialFile::create(&path).unwrap();
        f.write_all(b"half").unwrap();
        let error = PartialFile::create(&path).map(drop).unwrap_err();
        assert!(error.to_string().contains("t.partial"), "{error}");
        drop(f);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        PartialFile::create(&path).unwrap().commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
    }

    #[test]
    fn a_link_under_the_partial_name_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("t"), dir.path().join("other"));
        fs::write(&other, b"precious").unwrap();
        std::os::unix::fs::symlink(&other, dir.path().join("t.partial")).unwrap();
        let mut f = PartialFile::create(&path).unwrap();
        f.write_all(b"new").unwrap();
        f.commit().unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"precious");
        assert_eq!(fs::read(&path).unwrap(), b"new");
        fs::create_dir(dir.path().join("u.partial")).unwrap();
        let error = PartialFile::create(&dir.path().join("u")).map(drop);
        assert!(error.unwrap_err().to_string().contains("u.partial"));
    }

    #[test]
    fn the_start_is_rewritten_in_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        let mut f = PartialFile::create(&path).unwrap();
        f.write_all(b"oldxrest").unwrap();
        f.rewrite_start(b"new").unwrap();
        f.write_all(b"!").unwrap();
        assert_eq!(f.commit().unwrap(), 9);
        assert_eq!(fs::read(&path).unwrap(), b"newxrest!");
    }

    /// Takes `room` bytes, then is full.
    struct Full {
        room: usize,
    }

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.room == 0 {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            let n = bytes.len().min(self.room);
            self.room -= n;
            Ok(n)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn prefixes_are_whole_characters() {
        assert_eq!(prefix("aéb", 1), "a");
        assert_eq!(prefix("aéb", 2), "a");
        assert_eq!(prefix("aéb", 3), "aé");
        assert_eq!(prefix("aéb", 9), "aéb");
    }

    #[test]
    fn the_first_error_is_kept() {
        let mut out = Output::new(Full { room: 10 });
        for _ in 0..3 {
            out.buf.extend_from_slice(&[0; BUFFER_BYTES]);
            out.end_record();
        }
        assert!(out.buf.is_empty(), "memory stays bounded after an error");
        let error = out.finish("x").map(|_| ()).unwrap_err();
        assert!(matches!(error, FormatError::Io { source, .. }
            if source.kind() == io::ErrorKind::StorageFull));
    }
}
