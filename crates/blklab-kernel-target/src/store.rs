// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is written to a disk, where it is kept.

use crate::failed::failed;
use crate::guest::{Memory, Segment};
use blklab_types::{Error, SECTOR_BYTES};
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

/// Bytes that are moved at a time.
const STEP: usize = 1 << 16;
/// Bytes that are kept or not, whole: a page of memory.
const PAGE: usize = 4096;
/// Memory that the data of a disk may take.
const KEPT_MAX: u64 = 4 << 30;
/// Bytes written between two looks at how much memory that took.
const LOOK_AFTER: u64 = 64 << 20;

/// The data of a disk.
#[derive(Debug)]
pub(crate) enum Store {
    /// They are not kept: it reads as zeroes.
    Zeroes,
    /// Memory with holes.
    Sparse(Kept),
}

/// Data in memory, from a byte on; what lies before reads as zeroes. Pages of zeroes take
/// none.
#[derive(Debug)]
pub(crate) struct Kept {
    /// The data, each at its place.
    file: File,
    /// That byte.
    from: u64,
    /// Bytes written since its size was looked at.
    unseen: Cell<u64>,
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
        Ok(Store::Sparse(Kept {
            file: File::from(fd),
            from: sector.saturating_mul(SECTOR_BYTES),
            unseen: Cell::new(0),
        }))
    }

    /// The data that are kept, from the beginning on.
    pub(crate) fn file(&self) -> Option<&File> {
        match self {
            Store::Zeroes => None,
            Store::Sparse(kept) => Some(&kept.file),
        }
    }

    /// Where bytes are kept, if any of them is.
    fn keeps(&self, at: u64, len: usize) -> Option<&Kept> {
        match self {
            Store::Sparse(kept) if at.saturating_add(len as u64) > kept.from => Some(kept),
            _ => None,
        }
    }

    /// Memory that the data take.
    pub(crate) fn kept_bytes(&self) -> u64 {
        /// What the system counts in.
        const BLOCK: u64 = 512;
        let metadata = self.file().and_then(|file| file.metadata().ok());
        metadata.map_or(0, |m| m.blocks().saturating_mul(BLOCK))
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
            if let Some(kept) = self.keeps(at, len) {
                read_up_to_end(&kept.file, bytes, at)?;
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
            let Some(kept) = self.keeps(at, len) else {
                return Ok(());
            };
            let bytes = &mut buffer[..len];
            memory.read_data(address, bytes)?;
            kept.write(at, bytes)
        })
    }

    /// Forgets sectors: they read as zeroes.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn discard(&self, sector: u64, nr_sectors: u32) -> Result<(), Error> {
        let Store::Sparse(kept) = self else {
            return Ok(());
        };
        kept.forget(sector * SECTOR_BYTES, u64::from(nr_sectors) * SECTOR_BYTES)
    }
}

impl Kept {
    /// Writes bytes, those of zeroes as holes.
    fn write(&self, mut at: u64, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            let len = run(at, bytes);
            let (now, rest) = bytes.split_at(len);
            if is_zero(now) {
                self.forget(at, len as u64)?;
            } else {
                self.grow(len as u64)?;
                let written = self.file.write_all_at(now, at);
                written.map_err(|e| no_memory(&e.to_string()))?;
            }
            bytes = rest;
            at += len as u64;
        }
        Ok(())
    }

    fn forget(&self, at: u64, len: u64) -> Result<(), Error> {
        if len == 0 {
            return Ok(());
        }
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let made = fallocate(&self.file, hole, at, len);
        made.map_err(|e| no_memory(&e.to_string()))
    }

    /// Refuses more than may be kept.
    fn grow(&self, len: u64) -> Result<(), Error> {
        let unseen = self.unseen.get() + len;
        self.unseen.set(unseen);
        if unseen < LOOK_AFTER {
            return Ok(());
        }
        self.unseen.set(0);
        let blocks = self.file.metadata().map_or(0, |m| m.blocks());
        if blocks.saturating_mul(512) <= KEPT_MAX {
            return Ok(());
        }
        let most = KEPT_MAX >> 30;
        Err(no_memory(&format!(
            "more than {most} GiB of it were written (zeroes take none: zero_buffers=1 in the job)"
        )))
    }
}

/// Bytes from `at` on that are all zero, in whole pages, or not.
fn run(at: u64, bytes: &[u8]) -> usize {
    let to_page = PAGE - (at % PAGE as u64) as usize;
    let first = to_page.min(bytes.len());
    let zero = is_zero(&bytes[..first]);
    let rest = bytes[first..].chunks(PAGE);
    let same = rest.take_while(|page| is_zero(page) == zero);
    first + same.map(<[u8]>::len).sum::<usize>()
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|b| *b == 0)
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

#[cfg(test)]
mod tests {
    use super::{PAGE, Store};

    #[test]
    fn pages_of_zeroes_and_what_is_discarded_take_no_memory() {
        let Store::Sparse(kept) = Store::kept().expect("memory") else {
            panic!("it is kept");
        };
        let mut bytes = vec![0; 3 * PAGE];
        bytes[PAGE..2 * PAGE].fill(7);
        // Not at the beginning of a page.
        kept.write(1 << 30, &bytes).expect("it is written");
        kept.write((1 << 20) + 512, &bytes).expect("it is written");
        let store = Store::Sparse(kept);
        assert_eq!(store.kept_bytes(), 3 * PAGE as u64);
        let mut read = vec![1; 3 * PAGE];
        let file = store.file().expect("it is kept");
        super::read_up_to_end(file, &mut read, (1 << 20) + 512).expect("it is read");
        assert_eq!(read[..2 * PAGE], bytes[..2 * PAGE]);
        store.discard((1 << 30) / 512, 24).expect("it is forgotten");
        assert_eq!(store.kept_bytes(), 2 * PAGE as u64);
    }
}
