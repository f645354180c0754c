// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a trace's bytes come from: a file, a pipe or standard input, each
//! opened once and read from its beginning to its end; compressed ones are
//! decompressed on the way.
//!
//! gzip (RFC 1952), Zstandard (RFC 8878) and xz are recognised by their first
//! bytes, whatever the name. Memory does not grow with the length of what
//! comes out: a frame or block that asks for more than [`MEMORY_MAX`] is
//! refused before it is allocated.

use crate::FormatError;
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use rustix::io::Errno;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most memory for decompressing all files of a trace together, in bytes.
const MEMORY_MAX: u64 = 2 << 30;
/// Most memory for one of them: a window of `zstd --long`, twice a dictionary
/// of `xz -9`.
const FILE_MEMORY_MAX: u64 = 128 << 20;

/// Which file a name stands for, however it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    dev: u64,
    ino: u64,
}

impl FileId {
    /// The file at `path`, links followed; none if there is none.
    pub fn at(path: &Path) -> Option<FileId> {
        Some(FileId::new(&path.metadata().ok()?))
    }

    fn new(meta: &Metadata) -> FileId {
        FileId {
            dev: meta.dev(),
            ino: meta.ino(),
        }
    }
}

/// The bytes of a trace.
pub struct Source {
    bytes: Box<dyn Read + Send>,
    compression: Option<Compression>,
    memory_max: u64,
    id: Option<FileId>,
    /// Another handle to it.
    file: Option<File>,
    is_file: bool,
    /// Length of the file as it is stored; 0 for a pipe.
    stored_bytes: u64,
    /// How much of that was read.
    taken_bytes: Arc<AtomicU64>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source")
            .field("id", &self.id)
            .field("compression", &self.compression)
            .finish_non_exhaustive()
    }
}

impl Source {
    /// Opens `path`; `-` is standard input.
    ///
    /// # Errors
    /// If it cannot be opened or is a folder, or its first bytes cannot be
    /// read.
    pub fn open(path: &Path) -> Result<Source, FormatError> {
        Source::one_of(1, path)
    }

    /// Opens one of the `nr_files` files of a trace.
    pub(crate) fn one_of(nr_files: usize, path: &Path) -> Result<Source, FormatError> {
        let opened = if path == Path::new("-") {
            io::stdin().as_fd().try_clone_to_owned().map(File::from)
        } else {
            crate::limit::with_room(|| File::open(path))
        };
        let file = opened.map_err(|e| FormatError::at("open", path, e))?;
        let share = MEMORY_MAX / nr_files.max(1) as u64;
        Source::within(file, share.min(FILE_MEMORY_MAX))
            .map_err(|e| FormatError::at("read", path, e))
    }

    /// The bytes of `inner`, which is no file.
    pub(crate) fn of_reader(inner: impl Read + Send + 'static) -> io::Result<Source> {
        Source::with(inner, None, FILE_MEMORY_MAX)
    }

    fn within(file: File, memory_max: u64) -> io::Result<Source> {
        let meta = file.metadata()?;
        if meta.is_dir() {
            // In the words of the system.
            return Err(io::Error::from_raw_os_error(Errno::ISDIR.raw_os_error()));
        }
        let again = file.try_clone().ok().filter(|_| meta.is_file());
        let mut source = Source::with(file, Some(&meta), memory_max)?;
        source.file = again;
        Ok(source)
    }

    fn with(
        inner: impl Read + Send + 'static,
        meta: Option<&Metadata>,
        memory_max: u64,
    ) -> io::Result<Source> {
        let taken_bytes = Arc::new(AtomicU64::new(0));
        let mut file = Counted {
            inner,
            taken_bytes: Arc::clone(&taken_bytes),
        };
        let mut head = Vec::with_capacity(HEAD_BYTES);
        file.by_ref()
            .take(HEAD_BYTES as u64)
            .read_to_end(&mut head)?;
        let compression = Compression::detect(&head);
        let whole = Cursor::new(head).chain(file);
        let bytes: Box<dyn Read + Send> = match compression {
            None => Box::new(whole),
            Some(Compression::Gzip) => Box::new(MultiGzDecoder::new(BufReader::new(whole))),
            Some(Compression::Zstd) => Box::new(Zstd::new(BufReader::new(whole), memory_max)),
            Some(Compression::Xz) => {
                let limit_kib = u32::try_from(memory_max >> 10).unwrap_or(u32::MAX);
                let inner = BufReader::new(whole);
                Box::new(XzReader::new_mem_limit(inner, true, limit_kib))
            }
        };
        Ok(Source {
            bytes,
            compression,
            memory_max,
            id: meta.map(FileId::new),
            file: None,
            is_file: meta.is_some_and(Metadata::is_file),
            stored_bytes: meta.filter(|m| m.is_file()).map_or(0, Metadata::len),
            taken_bytes,
        })
    }

    /// Whether it is a regular file: no pipe, no device.
    pub fn is_file(&self) -> bool {
        self.is_file
    }

    /// The file, where it is a regular one whose bytes are read as they are.
    pub(crate) fn file(&self) -> Option<File> {
        let file = self.file.as_ref()?;
        file.try_clone()
            .ok()
            .filter(|_| self.compression.is_none() && self.is_file)
    }

    /// Which file it is, if it is one.
    pub fn id(&self) -> Option<FileId> {
        self.id
    }

    /// What shows how much of it was read.
    pub(crate) fn progress(&self) -> Progress {
        Progress {
            taken_bytes: vec![Arc::clone(&self.taken_bytes)],
            stored_bytes: self.stored_bytes,
        }
    }

    /// A decoder's error in words of ours.
    fn explain(&self, e: io::Error) -> io::Error {
        let Some(compression) = self.compression else {
            return e;
        };
        let name = compression.name();
        match e.kind() {
            // The file itself cannot be read.
            _ if e.raw_os_error().is_some() => e,
            io::ErrorKind::OutOfMemory => io::Error::new(
                e.kind(),
                format!(
                    "{name} data that need more than {} MiB to decompress; decompress them first",
                    self.memory_max >> 20
                ),
            ),
            io::ErrorKind::UnexpectedEof => io::Error::new(
                e.kind(),
                format!("the {name} data end early; the file was cut"),
            ),
            kind => io::Error::new(kind, format!("damaged {name} data: {e}")),
        }
    }
}

impl Read for Source {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.bytes.read(buf) {
            Err(e) if e.kind() != io::ErrorKind::Interrupted => Err(self.explain(e)),
            read => read,
        }
    }
}

/// How much of a trace was read, in bytes as they are stored.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    taken_bytes: Vec<Arc<AtomicU64>>,
    stored_bytes: u64,
}

impl Progress {
    /// Bytes read so far.
    pub fn taken_bytes(&self) -> u64 {
        let all = self.taken_bytes.iter();
        all.map(|n| n.load(Ordering::Relaxed)).sum()
    }

    /// Bytes there are; none if that is not known, as of a pipe.
    pub fn stored_bytes(&self) -> Option<u64> {
        Some(self.stored_bytes).filter(|n| *n > 0)
    }

    /// That of several files together.
    pub(crate) fn join(all: impl Iterator<Item = Progress>) -> Progress {
        let mut joined = Progress::default();
        for one in all {
            joined.taken_bytes.extend(one.taken_bytes);
            joined.stored_bytes += one.stored_bytes;
        }
        joined
    }
}

/// Counts what is read.
struct Counted<R> {
    inner: R,
    taken_bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.taken_bytes.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// Bytes that show how a file is compressed.
const HEAD_BYTES: usize = 6;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    Gzip,
    Zstd,
    Xz,
}

impl Compression {
    fn detect(head: &[u8]) -> Option<Compression> {
        match head {
            [0x1f, 0x8b, ..] => Some(Compression::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Compression::Zstd),
            // A skippable frame, as parallel compressors write in front.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Compression::Zstd),
            [0xfd, b'7', b'z', b'X', b'Z', 0x00] => Some(Compression::Xz),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
            Compression::Xz => "xz",
        }
    }
}

/// Frames of Zstandard, one after the other, each with its checksum compared.
struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: BufRead> Zstd<R> {
    fn new(source: R, memory_max: u64) -> Zstd<R> {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(memory_max);
        Zstd {
            source,
            decoder,
            in_frame: false,
        }
    }

    /// Begins the next frame; false at the end of the input.
    fn begin(&mut self) -> io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.reset(&mut self.source) {
                Ok(()) => {
                    self.in_frame = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skipped = u64::from(length);
                    let mut frame = self.source.by_ref().take(skipped);
                    if io::copy(&mut frame, &mut io::sink())? < skipped {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(e) => return Err(zstd_error(e)),
            }
        }
    }

    /// The frame is given out: compares its checksum, if it has one.
    fn end(&mut self) -> io::Result<()> {
        self.in_frame = false;
        let stored = self.decoder.get_checksum_from_data();
        if stored.is_some() && stored != self.decoder.get_calculated_checksum() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the checksum does not match",
            ));
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.in_frame && !self.begin()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder
                    .decode_blocks(&mut self.source, one)
                    .map_err(zstd_error)?;
            }
            let n = self.decoder.read(buf)?;
            if n > 0 {
                return Ok(n);
            }
            self.end()?;
        }
    }
}

/// An error of the decoder: what the system said, if it was that; the end of
/// the input; or too large a window.
fn zstd_error(e: FrameDecoderError) -> io::Error {
    if let FrameDecoderError::WindowSizeTooBig { .. } = e {
        return io::ErrorKind::OutOfMemory.into();
    }
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&e);
    while let Some(inner) = cause {
        if let Some(io) = inner.downcast_ref::<io::Error>() {
            return match io.raw_os_error() {
                Some(code) => io::Error::from_raw_os_error(code),
                None => io.kind().into(),
            };
        }
        cause = inner.source();
    }
    io::Error::new(io::ErrorKind::InvalidData, e.to_string())
}
