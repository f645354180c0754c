// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is written to a disk, where it is kept.

use crate::failed::failed;
use crate::guest::{Memory, Segment};
use blklab_types::{Error, SECTOR_BYTES};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// Bytes that are moved at a time.
const STEP: usize = 1 << 16;

/// The data of a disk.
#[derive(Debug)]
pub(crate) enum Store {
    /// They are not kept: it reads as zeroes.
    Zeroes,
    /// Memory with holes, for what lies from a byte on; what lies before reads as zeroes.
    Sparse {
        /// The data, each at its place.
        file: File,
        /// That byte.
        from: u64,
    },
}

impl Store {
    /// A disk of zeroes whose data are kept in memory.
    ///
    /// # Errors
    /// If the system gives none.
    pub(crate) fn kept() -> Result<Store, Error> {
        Store::kept_from(0)
    }

    /// The same, of which only what is written from a sector on is kept.
    ///
    /// # Errors
    /// If the system gives none.
    pub(crate) fn kept_from(sector: u64) -> Result<Store, Error> {
        let made = memfd_create("blklab-disk", MemfdFlags::CLOEXEC);
        let fd = made.map_err(|e| no_memory(&e.to_string()))?;
        Ok(Store::Sparse {
            file: File::from(fd),
            from: sector.saturating_mul(SECTOR_BYTES),
        })
    }

    /// The data that are kept, from the beginning on.
    pub(crate) fn file(&self) -> Option<&File> {
        match self {
            Store::Zeroes => None,
            Store::Sparse { file, .. } => Some(file),
        }
    }

    /// Where bytes are kept, if any of them is.
    fn keeps(&self, at: u64, len: usize) -> Option<&File> {
        match self {
            Store::Sparse { file, from } if at.saturating_add(len as u64) > *from => Some(file),
            _ => None,
        }
    }

    /// Reads sectors into the kernel's memory.
    ///
    /// # Errors
    /// If that is not where the kernel says.
    pub(crate) fn read(&self, memory: &Memory, sector: u64, to: &[Segment]) -> Result<(), Error> {
        let mut buffer = [0; STEP];
        each_step(sector, to, |at, address, len| {
            let bytes = &mut buffer[..len];
            bytes.fill(0);
            if let Some(file) = self.keeps(at, len) {
                read_up_to_end(file, bytes, at)?;
            }
            memory.write(address, bytes)
        })
    }

    /// Writes sectors from the kernel's memory.
    ///
    /// # Errors
    /// If that is not where the kernel says, or the system has no memory for them.
    pub(crate) fn write(
        &self,
        memory: &Memory,
        sector: u64,
        data: &[Segment],
    ) -> Result<(), Error> {
        if let Store::Zeroes = self {
            return Ok(());
        }
        let mut buffer = [0; STEP];
        each_step(sector, data, |at, address, len| {
            let Some(file) = self.keeps(at, len) else {
                return Ok(());
            };
            let bytes = &mut buffer[..len];
            memory.read(address, bytes)?;
            let written = file.write_all_at(bytes, at);
            written.map_err(|e| no_memory(&e.to_string()))
        })
    }
}

/// Calls `f` with an offset on the disk, an address and a length for each piece.
fn each_step(
    sector: u64,
    segments: &[Segment],
    mut f: impl FnMut(u64, u64, usize) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut at = sector * SECTOR_BYTES;
    for segment in segments {
        let mut done = 0;
        while done < segment.len {
            let len = (segment.len - done).min(STEP as u32);
            f(
                at,
                segment.address.wrapping_add(u64::from(done)),
                len as usize,
            )?;
            at += u64::from(len);
            done += len;
        }
    }
    Ok(())
}

/// Reads what there is; what lies behind the end stays as it is.
fn read_up_to_end(file: &File, mut bytes: &mut [u8], mut at: u64) -> Result<(), Error> {
    while !bytes.is_empty() {
        let n = file
            .read_at(bytes, at)
            .map_err(|e| no_memory(&e.to_string()))?;
        if n == 0 {
            break;
        }
        bytes = &mut bytes[n..];
        at += n as u64;
    }
    Ok(())
}

fn no_memory(why: &str) -> Error {
    failed(&format!("no memory for a disk's data: {why}"))
}
