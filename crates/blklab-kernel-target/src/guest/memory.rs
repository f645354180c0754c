// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's memory: files that it shares.
//!
//! They are read and written as files, not mapped: while a request is looked at the
//! kernel waits for an answer, so a system call in place of a load costs little, and
//! memory that another process changes needs no unsafe code.

use crate::failed::failed;
use blklab_types::{Error, PAGE_BYTES};
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// A part of the memory.
#[derive(Debug)]
pub(crate) struct Region {
    /// First address, as descriptors give it.
    pub(crate) guest: u64,
    /// First address, as the addresses of rings count.
    pub(crate) user: u64,
    /// Bytes.
    pub(crate) size: u64,
    /// What holds it, from `offset` on.
    pub(crate) file: File,
    /// Where it begins in the file.
    pub(crate) offset: u64,
}

/// A piece of memory that a descriptor names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// First address.
    pub(crate) address: u64,
    /// Bytes.
    pub(crate) len: u32,
}

/// All of the memory that the kernel shares.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    regions: Vec<Region>,
}

impl Memory {
    /// The memory of these regions.
    ///
    /// # Errors
    /// If one runs past the last address.
    pub(crate) fn new(regions: Vec<Region>) -> Result<Memory, Error> {
        for region in &regions {
            let starts = [region.guest, region.user, region.offset];
            if starts
                .iter()
                .any(|at| at.checked_add(region.size).is_none())
            {
                return Err(wrong("memory that runs past the last address"));
            }
        }
        Ok(Memory { regions })
    }

    /// The descriptors' address of what has this one among the rings'.
    ///
    /// # Errors
    /// If nothing has.
    pub(crate) fn guest_address(&self, user: u64) -> Result<u64, Error> {
        let holds = |r: &&Region| user.checked_sub(r.user).is_some_and(|at| at < r.size);
        match self.regions.iter().find(holds) {
            Some(r) => Ok(r.guest + (user - r.user)),
            None => Err(wrong(&format!(
                "no memory at {user:#x}, where a ring is said to be"
            ))),
        }
    }

    fn place(&self, address: u64, len: usize) -> Result<(&File, u64), Error> {
        let holds = |r: &&Region| {
            let at = address.checked_sub(r.guest);
            at.is_some_and(|at| at <= r.size && r.size - at >= len as u64)
        };
        match self.regions.iter().find(holds) {
            Some(r) => Ok((&r.file, r.offset + (address - r.guest))),
            None => Err(wrong(&format!("no memory of {len} bytes at {address:#x}"))),
        }
    }

    /// Reads what is at an address.
    ///
    /// # Errors
    /// If there is no memory.
    pub(crate) fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Error> {
        let (file, at) = self.place(address, buffer.len())?;
        file.read_exact_at(buffer, at)
            .map_err(|e| wrong(&format!("memory that cannot be read: {e}")))
    }

    /// Reads data that are to be written to a disk.
    ///
    /// The memory of the kernel's own image, which lies in front, is not shared. Of it disks
    /// are given one page alone: the one of zeroes (`ZERO_PAGE`), where something is zeroed.
    ///
    /// # Errors
    /// If there is no memory.
    pub(crate) fn read_data(&self, address: u64, buffer: &mut [u8]) -> Result<(), Error> {
        let shared = self.regions.iter().map(|r| r.guest).min();
        let end = address.checked_add(buffer.len() as u64);
        if let (Some(shared), Some(end)) = (shared, end)
            && end <= shared
            && address / PAGE_BYTES == (end - 1) / PAGE_BYTES
        {
            buffer.fill(0);
            return Ok(());
        }
        self.read(address, buffer)
    }

    /// Writes to an address.
    ///
    /// # Errors
    /// If there is no memory.
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        let (file, at) = self.place(address, bytes.len())?;
        file.write_all_at(bytes, at)
            .map_err(|e| wrong(&format!("memory that cannot be written: {e}")))
    }

    /// So many bytes at an address.
    ///
    /// # Errors
    /// If there is no memory.
    pub(crate) fn array<const N: usize>(&self, address: u64) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        self.read(address, &mut bytes)?;
        Ok(bytes)
    }
}

/// The kernel said something impossible.
pub(crate) fn wrong(what: &str) -> Error {
    failed(&format!("the kernel has handed over {what}"))
}
