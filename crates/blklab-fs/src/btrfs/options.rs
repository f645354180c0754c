// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a btrfs does: of which time it is, and how it is mounted.

use crate::jbd::Barrier;
use blklab_pagecache::Atime;
use blklab_types::{BioFlags, PAGE_BYTES, Span};

/// 16 KiB.
const EARLY_SUPER_PAGES: [u64; 1] = [(16 << 10) / PAGE_BYTES];
/// 64 KiB, 64 MiB, 256 GiB.
const SUPER_PAGES: [u64; 3] = [
    (64 << 10) / PAGE_BYTES,
    (64 << 20) / PAGE_BYTES,
    (256 << 30) / PAGE_BYTES,
];

/// A volume. [`BtrfsOptions::of_0_16`] and its neighbours give the defaults of
/// a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BtrfsOptions {
    /// Pages of a tree block: 1 in 2008, 4 from 2013 on.
    pub node_pages: u32,
    /// Every tree block is written twice, in two chunks.
    pub metadata_dup: bool,
    /// Bytes of the largest file that lies in a leaf.
    pub max_inline_bytes: u32,
    /// Checksums of data lie in a tree of their own; in the file's tree up to
    /// 0.16.
    pub checksum_tree: bool,
    /// fsync writes a log tree (0.17 and later); else it is a full commit.
    pub log_tree: bool,
    /// Seconds between commits.
    pub commit_s: u32,
    /// Dirty metadata below which the flusher leaves it alone, bytes.
    pub metadata_dirty_bytes: u64,
    /// Part of the dirty metadata that a pass of the flusher leaves alone
    /// because it will change again soon, percent.
    pub kept_back_percent: u32,
    /// Free space that data is packed into, bytes.
    pub data_cluster_bytes: u64,
    /// The same for tree blocks.
    pub metadata_cluster_bytes: u64,
    /// One superblock at 16 KiB, as up to December 2008; else one at 64 KiB
    /// with copies at 64 MiB and 256 GiB.
    pub early_superblock: bool,
    /// How the superblock is written.
    pub barrier: Barrier,
    /// Access times.
    pub atime: Atime,
    /// Bios that may wait for the submit thread before who writes out sleeps.
    pub queued_bios: u32,
    /// Threads that compute checksums.
    pub workers: u32,
    /// Processor time of a checksum of a page (estimate, 2.4 GHz of 2008).
    pub checksum_cost: Span,
    /// Processor time of a change in a tree (estimate, likewise).
    pub change_cost: Span,
}

impl BtrfsOptions {
    /// btrfs 0.16 of August 2008.
    pub fn of_0_16() -> BtrfsOptions {
        BtrfsOptions {
            node_pages: 1,
            metadata_dup: true,
            max_inline_bytes: 3899,
            checksum_tree: false,
            log_tree: false,
            commit_s: 30,
            metadata_dirty_bytes: 32 << 20,
            kept_back_percent: 0,
            data_cluster_bytes: 2 << 20,
            metadata_cluster_bytes: 64 << 10,
            early_superblock: true,
            barrier: Barrier::Drain,
            atime: Atime::Strict,
            queued_bios: 256,
            workers: 1,
            checksum_cost: Span::from_us(8),
            change_cost: Span::from_us(8),
        }
    }

    /// The development tree of August 2008: finer locks and a better
    /// allocator, which the specification puts as half the processor time and
    /// half the rewriting of tree blocks.
    pub fn of_unstable() -> BtrfsOptions {
        let old = BtrfsOptions::of_0_16();
        BtrfsOptions {
            kept_back_percent: 50,
            change_cost: Span(old.change_cost.0 / 2),
            ..old
        }
    }

    /// btrfs as it is made and mounted today.
    pub fn today() -> BtrfsOptions {
        let old = BtrfsOptions::of_unstable();
        BtrfsOptions {
            node_pages: 4,
            max_inline_bytes: 2048,
            checksum_tree: true,
            log_tree: true,
            early_superblock: false,
            barrier: Barrier::FlushFua,
            atime: Atime::Relative,
            ..old
        }
    }

    /// Pages of the device at which the superblock and its copies lie.
    pub(super) fn super_pages(&self) -> &'static [u64] {
        if self.early_superblock {
            &EARLY_SUPER_PAGES
        } else {
            &SUPER_PAGES
        }
    }

    /// Flags of a superblock.
    pub(super) fn super_flags(&self, first: bool) -> BioFlags {
        let sync = BioFlags::SYNC | BioFlags::UNPLUG;
        match self.barrier {
            Barrier::Off => sync,
            _ if !first => sync,
            Barrier::Drain => sync | BioFlags::BARRIER,
            Barrier::FlushFua => sync | BioFlags::FLUSH | BioFlags::FUA,
        }
    }
}
