// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a release decides for every filesystem: the VFS above them and the block layer
//! below.

use blklab_pagecache::Atime;

blklab_kernel::features! {
    /// What differs between kernels, whatever is mounted.
    pub struct VfsFeatures {
        /// Access times if the mount asks for nothing.
        pub atime: Atime = Atime::Strict,
        /// A buffer that is written and waited for is a synchronous request
        /// (`sync_dirty_buffer`): so are commit blocks and superblocks.
        pub sync_buffers: bool = false,
        /// Writes are ordered by flush and FUA; before, by barriers that drain the queue.
        pub flush_fua: bool = false,
    }

    /// What the releases changed.
    pub(crate) const CHANGES = {
        "2.6.28": "buffers that a task waits for are written as synchronous requests",
            "fs/buffer.c" => {
            sync_buffers: true,
        }
        "2.6.30": "access times are relative by default", "fs/namespace.c" => {
            atime: Atime::Relative,
        }
        "2.6.37": "flush and FUA instead of barriers", "block/blk-flush.c" => {
            flush_fua: true,
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ext4Features, ExtFeatures, XfsFeatures};
    use blklab_kernel::KernelVersion;

    #[test]
    fn every_change_is_in_the_table() {
        let era = KernelVersion::v2_6(16)..KernelVersion::FOREVER;
        blklab_kernel::check_changes(CHANGES, era, VfsFeatures::of);
    }

    /// The tables of filesystems, which list what a release changed in each, agree.
    #[test]
    fn filesystems_agree() {
        let at_changes = CHANGES.iter().map(|c| c.release);
        for kernel in at_changes.chain([KernelVersion::v2_6(16), KernelVersion::v2_6(36)]) {
            let vfs = VfsFeatures::of(kernel);
            let ext3 = ExtFeatures::of(kernel);
            let ext4 = Ext4Features::of(kernel);
            let xfs = XfsFeatures::of(kernel);
            assert_eq!(ext3.sync_commit_block, vfs.sync_buffers, "{kernel}");
            for (atime, flush_fua) in [
                (ext3.atime, ext3.flush_fua),
                (ext4.atime, ext4.flush_fua),
                (xfs.atime, xfs.flush_fua),
            ] {
                assert_eq!((atime, flush_fua), (vfs.atime, vfs.flush_fua), "{kernel}");
            }
        }
    }
}
