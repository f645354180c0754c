// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock in memory that a kernel and its keeper share: most of what they would say to
//! each other by messages stands there.
//!
//! Source: include/uapi/linux/um_timetravel.h of Linux 6.12. A page with the clock, then
//! 128 bytes for each client; the keeper is the first, the kernel the second. Only one side
//! runs at a time, and only that side writes. It is read and written as a file, since a
//! file in memory and what is mapped of it are the same.

use crate::failed::failed;
use blklab_types::Error;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// The layout that is followed.
const VERSION: u32 = 2;
/// Bytes of the clock.
const PAGE_BYTES: u64 = 4096;
/// Bytes of a client.
const CLIENT_BYTES: u64 = 128;
/// Keeper and kernel.
const CLIENTS: u16 = 2;

/// Where things stand.
mod at {
    pub(super) const VERSION: u64 = 0;
    pub(super) const LEN: u64 = 4;
    pub(super) const FREE_UNTIL: u64 = 8;
    pub(super) const CURRENT_TIME: u64 = 16;
    pub(super) const RUNNING_ID: u64 = 24;
    pub(super) const MAX_CLIENTS: u64 = 26;
    /// In a client.
    pub(super) const CAPABILITIES: u64 = 0;
    pub(super) const FLAGS: u64 = 4;
    pub(super) const REQUEST_TIME: u64 = 8;
}

/// A client that uses the memory.
const SHARES_TIME: u32 = 1;
/// A client that wants to run.
const WANTS_TO_RUN: u32 = 1;

/// Who shares the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Client {
    /// This side.
    Keeper = 0,
    /// The kernel.
    Kernel = 1,
}

impl Client {
    fn at(self, field: u64) -> u64 {
        PAGE_BYTES + u64::from(self as u16) * CLIENT_BYTES + field
    }
}

/// The clock.
#[derive(Debug)]
pub(crate) struct SharedClock {
    file: File,
}

impl SharedClock {
    /// A clock at 0 that the keeper holds.
    ///
    /// # Errors
    /// If the system has no memory.
    pub(crate) fn new() -> Result<SharedClock, Error> {
        let len = PAGE_BYTES + u64::from(CLIENTS) * CLIENT_BYTES;
        let made = memfd_create("blklab-clock", MemfdFlags::CLOEXEC);
        let fd = made.and_then(|fd| ftruncate(&fd, len).map(|()| fd));
        let clock = SharedClock {
            file: File::from(fd.map_err(|e: Errno| no_memory(&e.to_string()))?),
        };
        clock.write(at::VERSION, &VERSION.to_ne_bytes())?;
        clock.write(at::LEN, &(len as u32).to_ne_bytes())?;
        clock.write(at::MAX_CLIENTS, &CLIENTS.to_ne_bytes())?;
        let shares = SHARES_TIME.to_ne_bytes();
        clock.write(Client::Keeper.at(at::CAPABILITIES), &shares)?;
        Ok(clock)
    }

    /// The memory, for the kernel.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Whether the kernel uses it: those before 6.9 do not know it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn is_used(&self) -> Result<bool, Error> {
        let capabilities = self.u32(Client::Kernel.at(at::CAPABILITIES))?;
        Ok(capabilities & SHARES_TIME != 0)
    }

    /// How far the clock is, in ns.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn now(&self) -> Result<u64, Error> {
        self.u64(at::CURRENT_TIME)
    }

    /// When the kernel wants to run, in ns; none if it does not.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn request(&self) -> Result<Option<u64>, Error> {
        let wants = self.u32(Client::Kernel.at(at::FLAGS))? & WANTS_TO_RUN != 0;
        let time = self.u64(Client::Kernel.at(at::REQUEST_TIME))?;
        Ok(wants.then_some(time))
    }

    /// The clock is here now, and this side runs.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn set(&self, now: u64, running: Client) -> Result<(), Error> {
        self.write(at::CURRENT_TIME, &now.to_ne_bytes())?;
        self.write(at::RUNNING_ID, &(running as u16).to_ne_bytes())
    }

    /// The kernel may go on by itself before this time, in ns.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn free_until(&self, time: u64) -> Result<(), Error> {
        self.write(at::FREE_UNTIL, &time.to_ne_bytes())
    }

    fn u32(&self, at: u64) -> Result<u32, Error> {
        let mut bytes = [0; 4];
        self.read(at, &mut bytes)?;
        Ok(u32::from_ne_bytes(bytes))
    }

    fn u64(&self, at: u64) -> Result<u64, Error> {
        let mut bytes = [0; 8];
        self.read(at, &mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let read = self.file.read_exact_at(bytes, at);
        read.map_err(|e| no_memory(&e.to_string()))
    }

    fn write(&self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        let written = self.file.write_all_at(bytes, at);
        written.map_err(|e| no_memory(&e.to_string()))
    }

    /// The clock in a file.
    #[cfg(test)]
    pub(crate) fn at(file: File) -> SharedClock {
        SharedClock { file }
    }

    /// What a kernel writes: it is there, and wants to run.
    #[cfg(test)]
    pub(crate) fn as_kernel(&self, now: Option<u64>, request: Option<u64>) {
        let kernel = |field| Client::Kernel.at(field);
        self.write(kernel(at::CAPABILITIES), &SHARES_TIME.to_ne_bytes())
            .expect("memory");
        if let Some(now) = now {
            self.write(at::CURRENT_TIME, &now.to_ne_bytes())
                .expect("memory");
        }
        let flags = request.map_or(0, |_| WANTS_TO_RUN);
        self.write(kernel(at::FLAGS), &flags.to_ne_bytes())
            .expect("memory");
        let time = request.unwrap_or(0).to_ne_bytes();
        self.write(kernel(at::REQUEST_TIME), &time).expect("memory");
    }
}

fn no_memory(why: &str) -> Error {
    failed(&format!("no memory to share with the kernel: {why}"))
}

#[cfg(test)]
mod tests {
    use super::{Client, SharedClock};

    #[test]
    fn both_sides_see_what_stands_there() {
        let clock = SharedClock::new().expect("memory");
        assert!(!clock.is_used().expect("memory"));
        assert_eq!(clock.request().expect("memory"), None);
        clock.as_kernel(Some(7), Some(12));
        assert!(clock.is_used().expect("memory"));
        assert_eq!(clock.now().expect("memory"), 7);
        assert_eq!(clock.request().expect("memory"), Some(12));
        clock.set(9, Client::Kernel).expect("memory");
        assert_eq!(clock.now().expect("memory"), 9);
    }
}
