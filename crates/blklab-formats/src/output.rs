// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output that is never half there: a file gets its name when it is complete,
//! and only whole records are written at a time.

use crate::FormatError;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file on its way: `NAME.partial` until [`PartialFile::commit`] renames it
/// to `NAME`. Dropped without that, it stays under its partial name with
/// everything written so far, which the readers of this crate accept.
///
/// A write that fails half-way is taken back, so that the file ends with the
/// last write that succeeded.
#[derive(Debug)]
pub struct PartialFile {
    file: File,
    path: PathBuf,
    partial: PathBuf,
    written_bytes: u64,
}

impl PartialFile {
    /// Starts the file that will be `path`; what is there now stays until the
    /// new one is complete.
    ///
    /// # Errors
    /// When the partial file cannot be created.
    pub fn create(path: &Path) -> Result<PartialFile, FormatError> {
        let mut name = path.as_os_str().to_owned();
        name.push(".partial");
        let partial = PathBuf::from(name);
        let file = File::create(&partial).map_err(|e| FormatError::at("create", &partial, e))?;
        Ok(PartialFile {
            file,
            path: path.to_path_buf(),
            partial,
            written_bytes: 0,
        })
    }

    /// Bytes written so far.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Gives the file its name. Returns its length in bytes.
    ///
    /// # Errors
    /// When the data or the new name cannot be stored.
    pub fn commit(self) -> Result<u64, FormatError> {
        self.file
            .sync_data()
            .map_err(|e| FormatError::at("store", &self.partial, e))?;
        fs::rename(&self.partial, &self.path)
            .map_err(|e| FormatError::at("rename to", &self.path, e))?;
        Ok(self.written_bytes)
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
                Err(e)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Bytes gathered before they go to the file.
const BUFFER_BYTES: usize = 128 * 1024;

/// A buffer that passes on whole records and keeps the first error.
#[derive(Debug)]
pub(crate) struct Output<W> {
    inner: W,
    /// Where the current record goes.
    pub(crate) buf: Vec<u8>,
    error: Option<io::Error>,
}

impl<W: Write> Output<W> {
    pub(crate) fn new(inner: W) -> Output<W> {
        Output {
            inner,
            buf: Vec::with_capacity(BUFFER_BYTES + BUFFER_BYTES / 4),
            error: None,
        }
    }

    /// The current record is complete.
    #[inline]
    pub(crate) fn end_record(&mut self) {
        if self.buf.len() >= BUFFER_BYTES {
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
    fn an_interrupted_file_keeps_its_partial_name() {
        let dir = tempfile::tempdir().unwrap();
        let mut f = PartialFile::create(&dir.path().join("t")).unwrap();
        f.write_all(b"half").unwrap();
        drop(f);
        assert!(!dir.path().join("t").exists());
        assert_eq!(fs::read(dir.path().join("t.partial")).unwrap(), b"half");
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
