// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mount options and tunables of a NILFS2 volume, with their defaults.

use crate::jbd::Barrier;
use blklab_pagecache::Atime;
use blklab_types::{BioFlags, Span};

/// A volume. Defaults are those of fs/nilfs2 of 2.6.32 and of the
/// `nilfs_cleanerd.conf` that came with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NilfsOptions {
    /// Seconds from the first change to a log with a checkpoint
    /// (`NILFS_SC_DEFAULT_TIMEOUT`).
    pub interval_s: u32,
    /// Dirty blocks above which the constructor writes files at once
    /// (`NILFS_SC_DEFAULT_WATERMARK`).
    pub watermark_blocks: u32,
    /// Seconds after which a log that was begun without a checkpoint is ended
    /// with one (`NILFS_SC_DEFAULT_SR_FREQ`).
    pub super_root_s: u32,
    /// Seconds between writes of the superblock (`NILFS_SB_FREQ`).
    pub super_block_s: u32,
    /// Blocks of a segment (8 MiB).
    pub segment_blocks: u32,
    /// Segments kept back from writers, percent.
    pub reserved_percent: u32,
    /// Whether the cleaner runs.
    pub cleaner: bool,
    /// Seconds between passes of the cleaner.
    pub cleaning_interval_s: u32,
    /// Segments that a pass cleans.
    pub segments_per_clean: u32,
    /// Seconds for which nothing that was written is cleaned.
    pub protection_s: u32,
    /// How the superblock is written.
    pub barrier: Barrier,
    /// Access times.
    pub atime: Atime,
    /// Processor time of the constructor per block of a log: finding it,
    /// its entry in the summary, its checksum (estimate, for 2.4 GHz of 2008).
    pub block_cost: Span,
}

impl Default for NilfsOptions {
    fn default() -> NilfsOptions {
        NilfsOptions {
            interval_s: 5,
            watermark_blocks: 3600,
            super_root_s: 30,
            super_block_s: 10,
            segment_blocks: 2048,
            reserved_percent: 5,
            cleaner: true,
            cleaning_interval_s: 5,
            segments_per_clean: 2,
            protection_s: 3600,
            barrier: Barrier::Drain,
            atime: Atime::Strict,
            block_cost: Span::from_us(8),
        }
    }
}

impl NilfsOptions {
    /// Flags of the superblock.
    pub(super) fn super_block_flags(&self) -> BioFlags {
        let sync = BioFlags::SYNC | BioFlags::UNPLUG;
        match self.barrier {
            Barrier::Off => sync,
            Barrier::Drain => sync | BioFlags::BARRIER,
            Barrier::FlushFua => sync | BioFlags::FLUSH | BioFlags::FUA,
        }
    }
}
