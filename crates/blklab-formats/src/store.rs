// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bytes of a file, anywhere in it, and numbers in either byte order.

use crate::FormatError;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;

/// Most that is held in memory of a pipe or a compressed file.
const MEMORY_MAX: u64 = 1 << 30;

/// A file, or what came out of a pipe.
#[derive(Debug)]
pub(crate) enum Store {
    File(File),
    Memory(Vec<u8>),
}

impl Store {
    /// All that `inner` has.
    pub(crate) fn of_reader(inner: impl Read, name: &str) -> Result<Store, FormatError> {
        let mut bytes = Vec::new();
        let read = inner.take(MEMORY_MAX + 1).read_to_end(&mut bytes);
        read.map_err(|e| FormatError::io(format!("read {name}"), e))?;
        if bytes.len() as u64 > MEMORY_MAX {
            let text = "more than 1 GiB in a pipe or compressed: give the file itself";
            let error = io::Error::new(io::ErrorKind::OutOfMemory, text);
            return Err(FormatError::io(format!("read {name}"), error));
        }
        Ok(Store::Memory(bytes))
    }

    /// How many bytes there are.
    pub(crate) fn len(&self) -> io::Result<u64> {
        Ok(match self {
            Store::File(file) => file.metadata()?.len(),
            Store::Memory(all) => all.len() as u64,
        })
    }

    /// Up to `len` bytes from `at` on, into `buf`; fewer at the end.
    pub(crate) fn read(&self, at: u64, len: usize, buf: &mut Vec<u8>) -> io::Result<()> {
        buf.clear();
        match self {
            Store::File(file) => {
                buf.resize(len, 0);
                let mut done = 0;
                while done < len {
                    match file.read_at(&mut buf[done..], at.saturating_add(done as u64)) {
                        Ok(0) => break,
                        Ok(n) => done += n,
                        Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                        Err(e) => return Err(e),
                    }
                }
                buf.truncate(done);
            }
            Store::Memory(all) => {
                let start = usize::try_from(at).unwrap_or(usize::MAX).min(all.len());
                let end = start.saturating_add(len).min(all.len());
                buf.extend_from_slice(&all[start..end]);
            }
        }
        Ok(())
    }
}

/// The order of the bytes in a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) big_endian: bool,
}

impl Order {
    pub(crate) fn u16(self, bytes: &[u8]) -> Option<u16> {
        let bytes = *bytes.first_chunk()?;
        Some(if self.big_endian {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        })
    }

    pub(crate) fn u32(self, bytes: &[u8]) -> Option<u32> {
        let bytes = *bytes.first_chunk()?;
        Some(if self.big_endian {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        })
    }

    pub(crate) fn u64(self, bytes: &[u8]) -> Option<u64> {
        let bytes = *bytes.first_chunk()?;
        Some(if self.big_endian {
            u64::from_be_bytes(bytes)
        } else {
            u64::from_le_bytes(bytes)
        })
    }

    /// A number of 1, 2, 4 or 8 bytes.
    pub(crate) fn number(self, bytes: &[u8]) -> Option<u64> {
        match bytes.len() {
            1 => Some(bytes[0].into()),
            2 => self.u16(bytes).map(u64::from),
            4 => self.u32(bytes).map(u64::from),
            8 => self.u64(bytes),
            _ => None,
        }
    }
}
