// SPDX-License-Identifier: MIT OR Apache-2.0
//! Archives of cpio in the format "newc": what a kernel unpacks as its first files, and
//! what comes back from it.
//!
//! Source: Documentation/driver-api/early-userspace/buffer-format.rst of Linux.

use crate::failed::failed;
use blklab_types::Error;
use std::collections::BTreeSet;
use std::io::{self, Read, Write};

const MAGIC: &[u8] = b"070701";
const END: &str = "TRAILER!!!";
/// Bytes of a header.
const HEADER_BYTES: usize = 110;
/// Longest name that is read.
const NAME_MAX: usize = 4096;

/// What kinds of entries there are, as the upper bits of a mode.
mod kind {
    pub(super) const TYPE: u32 = 0o170_000;
    pub(super) const FOLDER: u32 = 0o040_000;
    pub(super) const FILE: u32 = 0o100_000;
}

/// What gets a file of an archive: its name, its size and its bytes, which need not be
/// read to the end.
pub type TakeFile<'a> = dyn FnMut(&str, u64, &mut dyn Read) -> Result<(), Error> + 'a;

/// Writes an archive.
pub(crate) struct Writer<W> {
    to: W,
    entries: u32,
    folders: BTreeSet<String>,
}

impl<W: Write> Writer<W> {
    pub(crate) fn new(to: W) -> Writer<W> {
        Writer {
            to,
            entries: 0,
            folders: BTreeSet::new(),
        }
    }

    /// Adds a folder, and those above it, unless they are there.
    ///
    /// # Errors
    /// If the archive cannot be written.
    pub(crate) fn folder(&mut self, path: &str) -> io::Result<()> {
        let path = path.trim_matches('/');
        if path.is_empty() || self.folders.contains(path) {
            return Ok(());
        }
        if let Some((above, _)) = path.rsplit_once('/') {
            self.folder(above)?;
        }
        self.folders.insert(path.to_owned());
        self.entry(path, kind::FOLDER | 0o755, &[])
    }

    /// Adds a file.
    ///
    /// # Errors
    /// If the archive cannot be written, or the file has more bytes than it can say.
    pub(crate) fn file(&mut self, path: &str, is_program: bool, bytes: &[u8]) -> io::Result<()> {
        let path = path.trim_matches('/');
        if let Some((folder, _)) = path.rsplit_once('/') {
            self.folder(folder)?;
        }
        let mode = if is_program { 0o755 } else { 0o644 };
        self.entry(path, kind::FILE | mode, bytes)
    }

    /// Ends the archive.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn end(mut self) -> io::Result<W> {
        self.entry(END, 0, &[])?;
        self.to.flush()?;
        Ok(self.to)
    }

    fn entry(&mut self, path: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
        let too_long = |_| io::Error::from(io::ErrorKind::FileTooLarge);
        let size = u32::try_from(bytes.len()).map_err(too_long)?;
        self.entries += 1;
        let name_size = path.len() as u32 + 1;
        let fields = [
            self.entries,
            mode,
            0,
            0,
            1,
            0,
            size,
            0,
            0,
            0,
            0,
            name_size,
            0,
        ];
        self.to.write_all(MAGIC)?;
        for field in fields {
            write!(self.to, "{field:08x}")?;
        }
        self.to.write_all(path.as_bytes())?;
        self.to.write_all(&[0])?;
        self.pad(HEADER_BYTES + name_size as usize)?;
        self.to.write_all(bytes)?;
        self.pad(bytes.len())
    }

    fn pad(&mut self, len: usize) -> io::Result<()> {
        self.to.write_all(&[0; 3][..padding(len)])
    }
}

/// Bytes up to a multiple of 4.
fn padding(len: usize) -> usize {
    len.next_multiple_of(4) - len
}

/// Reads the regular files of an archive: calls `file` with the name of each, its size
/// and its bytes, which need not be read to the end.
///
/// # Errors
/// If it is no archive, ends too early, or `file` fails.
pub(crate) fn read(mut from: impl Read, file: &mut TakeFile<'_>) -> Result<(), Error> {
    loop {
        let mut header = [0; HEADER_BYTES];
        from.read_exact(&mut header).map_err(|e| cut(&e))?;
        if &header[..MAGIC.len()] != MAGIC {
            return Err(damaged("an entry has no magic"));
        }
        let field = |i: usize| {
            let at = MAGIC.len() + 8 * i;
            let text = std::str::from_utf8(&header[at..at + 8]).ok();
            let number = text.and_then(|t| u32::from_str_radix(t, 16).ok());
            number.ok_or_else(|| damaged("a number of an entry is none"))
        };
        let (mode, size, name_size) = (field(1)?, field(6)?, field(11)? as usize);
        if name_size == 0 || name_size > NAME_MAX {
            return Err(damaged("the name of an entry is too long"));
        }
        let mut name = vec![0; name_size + padding(HEADER_BYTES + name_size)];
        from.read_exact(&mut name).map_err(|e| cut(&e))?;
        name.truncate(name_size - 1);
        let name = String::from_utf8(name).map_err(|_| damaged("a name is no text"))?;
        if name == END {
            return Ok(());
        }
        let mut bytes = (&mut from).take(u64::from(size));
        if mode & kind::TYPE == kind::FILE {
            file(&name, u64::from(size), &mut bytes)?;
        }
        io::copy(&mut bytes, &mut io::sink()).map_err(|e| cut(&e))?;
        if bytes.limit() > 0 {
            return Err(damaged("a file is cut off"));
        }
        let mut rest = [0; 3];
        let rest = &mut rest[..padding(size as usize)];
        from.read_exact(rest).map_err(|e| cut(&e))?;
    }
}

fn cut(e: &io::Error) -> Error {
    damaged(&format!("it ends too early: {e}"))
}

fn damaged(why: &str) -> Error {
    failed(&format!("what comes from the kernel is no archive: {why}"))
}

#[cfg(test)]
mod tests {
    use super::{Writer, read};

    #[test]
    fn what_is_written_is_read() {
        let mut writer = Writer::new(Vec::new());
        writer.file("/a/b/one", true, b"12345").expect("memory");
        writer.file("a/two", false, b"").expect("memory");
        writer.folder("/a/b").expect("memory");
        let bytes = writer.end().expect("memory");
        assert_eq!(bytes.len() % 4, 0);
        let mut files = Vec::new();
        let mut file = |name: &str, size: u64, from: &mut dyn std::io::Read| {
            let mut text = String::new();
            // One is not looked at.
            if size > 0 {
                from.read_to_string(&mut text).expect("a text");
            }
            files.push((name.to_owned(), text));
            Ok(())
        };
        read(bytes.as_slice(), &mut file).expect("an archive");
        let expected = [("a/b/one", "12345"), ("a/two", "")];
        let files: Vec<_> = files
            .iter()
            .map(|(n, t)| (n.as_str(), t.as_str()))
            .collect();
        assert_eq!(files, expected);
    }

    #[test]
    fn what_is_damaged_is_refused_wherever_it_ends() {
        let mut writer = Writer::new(Vec::new());
        writer.file("one", false, b"12345").expect("memory");
        let bytes = writer.end().expect("memory");
        for len in 0..bytes.len() - 4 {
            let ended = read(&bytes[..len], &mut |_, _, from| {
                let mut all = Vec::new();
                let _ = from.read_to_end(&mut all);
                Ok(())
            });
            assert!(ended.is_err(), "{len}");
        }
        assert!(read([b'x'; 500].as_slice(), &mut |_, _, _| Ok(())).is_err());
    }
}
