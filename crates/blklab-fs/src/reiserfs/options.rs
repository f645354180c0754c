// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be chosen about a ReiserFS volume, and what the kernel release
//! decides (fs/reiserfs/super.c, include/linux/reiserfs_fs.h; 2.6.26).

use crate::jbd::{Barrier, DataMode};
use crate::vfs::VfsFeatures;
use blklab_pagecache::Atime;
use blklab_types::{BioFlags, PAGE_BYTES};

/// Longest tail in a leaf, bytes (`MAX_DIRECT_ITEM_LEN`).
const MOST_TAIL_BYTES: u64 = 3976;

/// Which files keep their last partial block in the tree (`tails=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tails {
    /// None (`notail`).
    Off,
    /// Files that fit into one leaf as a whole: the default.
    Small,
    /// Files below 16 KiB, if the tail is short enough for the size.
    On,
}

impl Tails {
    /// Bytes of a file's tail that go into a leaf; none if its last block
    /// stays a block. `size_bytes` is the file's size.
    pub fn tail_bytes(self, size_bytes: u64) -> Option<u64> {
        let tail = size_bytes % PAGE_BYTES;
        if tail == 0 || tail > MOST_TAIL_BYTES {
            return None;
        }
        let most = match self {
            Tails::Off => 0,
            Tails::Small if size_bytes > MOST_TAIL_BYTES => 0,
            Tails::Small => return Some(tail),
            Tails::On => match size_bytes / PAGE_BYTES {
                0 => return Some(tail),
                1 => MOST_TAIL_BYTES * 3 / 4,
                2 => MOST_TAIL_BYTES / 2,
                3 => MOST_TAIL_BYTES / 4,
                _ => 0,
            },
        };
        (tail < most).then_some(tail)
    }
}

/// A volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReiserOptions {
    /// Ordered: the data of new blocks reach the disk before the transaction
    /// that names them is committed.
    pub data: DataMode,
    /// Tails.
    pub tails: Tails,
    /// Commit blocks.
    pub barrier: Barrier,
    /// Access times.
    pub atime: Atime,
    /// Commit blocks are synchronous requests (2.6.28 and later).
    pub sync_commit_block: bool,
    /// Seconds after which a transaction is closed.
    pub max_age_s: u32,
}

impl ReiserOptions {
    /// The defaults of a release.
    pub fn new(vfs: VfsFeatures) -> ReiserOptions {
        ReiserOptions {
            data: DataMode::Ordered,
            tails: Tails::Small,
            barrier: Barrier::Off,
            atime: vfs.atime,
            sync_commit_block: vfs.sync_buffers,
            max_age_s: 30,
        }
    }

    /// Flags of the commit block.
    pub(super) fn commit_block_flags(&self) -> BioFlags {
        let sync = if self.sync_commit_block {
            BioFlags::SYNC | BioFlags::UNPLUG
        } else {
            BioFlags::NONE
        };
        match self.barrier {
            Barrier::Off => sync,
            Barrier::Drain => sync | BioFlags::BARRIER,
            Barrier::FlushFua => sync | BioFlags::FLUSH | BioFlags::FUA,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_by_the_rule_of_the_format() {
        let on = |size| Tails::On.tail_bytes(size);
        assert_eq!(on(700), Some(700));
        assert_eq!(on(5000), Some(904));
        assert_eq!(on(8000), None);
        assert_eq!(on(13000), Some(712));
        assert_eq!(on(17000), None);
        assert_eq!((on(3976), on(3977), on(4096)), (Some(3976), None, None));
        assert_eq!((on(4096 + 2981), on(4096 + 2982)), (Some(2981), None));
    }

    #[test]
    fn small_tails_are_whole_files() {
        let small = |size| Tails::Small.tail_bytes(size);
        assert_eq!((small(1), small(3976)), (Some(1), Some(3976)));
        assert_eq!((small(3977), small(5000)), (None, None));
        assert_eq!(Tails::Off.tail_bytes(1), None);
    }
}
