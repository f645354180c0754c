// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flushing the disk's cache (`blkdev_issue_flush`), and which fsync does it.
//!
//! The flush is an empty bio that somebody waits for. What becomes of it is up to
//! the block layer: a disk without a volatile cache never sees it.

use crate::cache::PageCache;
use crate::features::DeviceFlush;
use crate::file::FileId;
use crate::ops::Host;
use crate::state::BioWork;
use blklab_types::{BioFlags, Op};

impl<H: Host> PageCache<H> {
    /// Submits an empty bio with these flags and waits for it. That a device does
    /// not support it is no error.
    pub async fn issue_flush(&self, flags: BioFlags) {
        let me = self.host.current();
        let bio = self.with(|s| s.bios.insert(BioWork::Waited(me)));
        self.submit_sectors(Op::Write, flags, 0, 0, bio).await;
        let pending = || self.with(|s| s.bios.is_in_flight(bio));
        while pending() {
            self.host.unplug();
            if pending() {
                self.host.suspend_for_io().await;
            }
        }
    }

    /// The flush at the end of fsync, of files that do not lie on a filesystem
    /// with a step of its own: block devices, files on ext2, and files on
    /// `extents`, which stands for a filesystem without a journal, too
    /// (`generic_file_fsync`).
    pub(crate) fn fsync_flush(&self, id: FileId) -> DeviceFlush {
        let features = &self.config.features;
        if self.with(|s| s.file(id).is_device) {
            return features.device_flush;
        }
        if self.traits_of(id).flushes_on_fsync && features.file_flush {
            DeviceFlush::Together
        } else {
            DeviceFlush::Never
        }
    }
}
