// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ends of bios: who waited for one, and what follows.

use crate::cache::PageCache;
use crate::ops::{Host, Ops};
use crate::state::{BioWork, State};
use blklab_types::{BioKey, Op};
use std::fmt;

/// A key that names no bio in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownBio(pub BioKey);

impl fmt::Display for UnknownBio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.0.number();
        write!(
            f,
            "no bio of the page cache in flight has the key {number:#x}"
        )
    }
}

impl std::error::Error for UnknownBio {}

impl<H: Host> PageCache<H> {
    /// The end of a bio's I/O: the simulation calls it with the key in the bio's
    /// [completion](blklab_types::Completion::Submitter). Never sleeps; wakes whoever
    /// waited.
    ///
    /// # Errors
    /// A key that was not handed out, or whose bio has ended.
    pub fn end_bio(&self, bio: BioKey, failed: bool) -> Result<(), UnknownBio> {
        let work = self.with(|s| {
            s.stats.failed_bios += u64::from(failed);
            s.bios.remove(bio)
        });
        match work.ok_or(UnknownBio(bio))? {
            BioWork::Pages {
                op: Op::Read,
                file,
                run,
            } => {
                self.waking(|s, wake| s.end_read(file, &run, failed, wake));
            }
            BioWork::Pages { file, run, .. } => {
                let mut leaves_work = false;
                self.waking(|s, wake| leaves_work = self.end_pages(s, file, &run, failed, wake));
                if leaves_work {
                    self.send_workers();
                }
            }
            BioWork::Buffer { file, page } => {
                self.waking(|s, wake| s.end_buffer(file, page, failed, wake));
            }
            BioWork::Waited(task) => self.host.wake(task),
            BioWork::Group(key) => self.waking(|s, wake| self.end_of_group(s, key, failed, wake)),
            BioWork::Filesystem(io) => {
                self.waking(|s, wake| self.filesystem.end_io(s, io, failed, wake));
            }
            BioWork::Direct(key) => self.end_direct(key, failed),
        }
        if cfg!(debug_assertions) {
            self.with(State::check_pages);
        }
        Ok(())
    }
}
