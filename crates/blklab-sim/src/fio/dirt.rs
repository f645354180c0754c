// SPDX-License-Identifier: MIT OR Apache-2.0
//! What somebody else has written when the load begins: dirty pages, and a head that has
//! moved to them.

use crate::Machine;
use blklab_experiment::Experiment;
use blklab_pagecache::{FileId, FsError, PageCache};
use blklab_types::Error;
use blklab_types::{IoPrio, Time};

/// The process that writes; its number is below those of the load.
const PID: u32 = 900;
/// Bytes of each of its writes.
const BLOCK_BYTES: u64 = 1 << 20;

/// A file that is written when the machine starts, and not synced.
pub(super) struct Dirt {
    file: FileId,
    bytes: u64,
}

impl Dirt {
    /// Sets its space aside, if there is to be one and the filesystem does so.
    ///
    /// # Errors
    /// If it does not fit the disk.
    pub(super) fn create(
        e: &Experiment,
        cache: &PageCache<Machine>,
    ) -> Result<Option<Dirt>, Error> {
        let bytes = e.dirty_at_start_bytes();
        if bytes == 0 {
            return Ok(None);
        }
        let file = cache.create_empty(Some(bytes));
        let file = file.map_err(|error| {
            let what = format!("dirty_at_start_mb: {} MiB: {error}", bytes >> 20);
            Error::new(what).about("dirty_at_start_mb")
        })?;
        Ok(Some(Dirt { file, bytes }))
    }

    /// Begins to write it.
    pub(super) fn start(self, m: &Machine, cache: PageCache<Machine>) {
        let body = async move {
            let fd = cache.open(self.file, false);
            let fd = fd.expect("nobody else has the file, to remove it");
            let mut at = 0;
            while at < self.bytes {
                if let Err(error) = cache.write(fd, at, BLOCK_BYTES).await {
                    // Most filesystems set no space aside: what fits is written.
                    assert_eq!(error, FsError::NoSpace, "a write that cannot fail");
                    return;
                }
                at += BLOCK_BYTES;
            }
        };
        m.spawn_at("earlier", PID, IoPrio::default(), true, Time::ZERO, body);
    }
}
