// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bio: one contiguous piece of I/O on its way to the block layer.

use crate::{Completion, IoPrio, TaskId};
use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// A block device number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dev {
    /// Major number (8 for sd, 9 for md, 104 for the first cciss controller).
    pub major: u16,
    /// Minor number (sda 0, sda1 1, sdb 16).
    pub minor: u16,
}

/// As blkparse shows it: `8,0`.
impl fmt::Display for Dev {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.major, self.minor)
    }
}

/// Direction of an I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Op {
    /// Data from the device.
    #[default]
    Read = 0,
    /// Data to the device.
    Write = 1,
    /// Blocks given up (discard, TRIM).
    Discard = 2,
    /// A cache flush without data.
    Flush = 3,
}

impl Op {
    /// 0 for reads, 1 for everything else: the kernel's `rq_data_dir`.
    pub fn data_dir(self) -> usize {
        usize::from(self != Op::Read)
    }
}

/// What a submitter says about a bio, beside its direction. One set of names
/// for all kernel versions; which of them a version knows is the block
/// layer's business.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BioFlags(pub u16);

impl BioFlags {
    /// Nothing special.
    pub const NONE: BioFlags = BioFlags(0);
    /// Somebody waits for it (writes; reads always count as sync).
    pub const SYNC: BioFlags = BioFlags(1 << 0);
    /// Unplug the queue right after submission (up to 2.6.38).
    pub const UNPLUG: BioFlags = BioFlags(1 << 1);
    /// The scheduler need not wait for more after it (2.6.30 and later).
    pub const NOIDLE: BioFlags = BioFlags(1 << 2);
    /// File-system metadata.
    pub const META: BioFlags = BioFlags(1 << 3);
    /// Boost (3.1 and later; split off from META).
    pub const PRIO: BioFlags = BioFlags(1 << 4);
    /// Read-ahead that may fail.
    pub const AHEAD: BioFlags = BioFlags(1 << 5);
    /// Ordered write (up to 2.6.36).
    pub const BARRIER: BioFlags = BioFlags(1 << 6);
    /// Flush the device's cache before the data (2.6.37 and later).
    pub const FLUSH: BioFlags = BioFlags(1 << 7);
    /// Data must be on the medium before completion.
    pub const FUA: BioFlags = BioFlags(1 << 8);
    /// More of the same follows soon (`REQ_IDLE`, 4.10 and later): with SYNC
    /// it marks direct writes, which write-back throttling lets pass. Only the
    /// multi-queue layer reads it; on the single-queue path NOIDLE says the
    /// contrary.
    pub const IDLE: BioFlags = BioFlags(1 << 9);
    /// Nobody waits for it or will soon (`REQ_BACKGROUND`, 4.10 and later):
    /// write-back by age or above the background limit, which write-back
    /// throttling holds back most. Only the multi-queue layer reads it.
    pub const BACKGROUND: BioFlags = BioFlags(1 << 10);
    /// Not to be merged with others: the front part of a split bio
    /// (multi-queue).
    pub const NOMERGE: BioFlags = BioFlags(1 << 11);

    /// Its submitter does not sleep: a bio that would need that is refused with
    /// `EAGAIN` (`REQ_NOWAIT`, multi-queue).
    pub const NOWAIT: BioFlags = BioFlags(1 << 12);

    /// Whether all flags of `other` are set.
    pub fn has(self, other: BioFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any flag of `other` is set.
    pub fn any(self, other: BioFlags) -> bool {
        self.0 & other.0 != 0
    }

    /// The set without the flags of `other`.
    #[must_use]
    pub fn without(self, other: BioFlags) -> BioFlags {
        BioFlags(self.0 & !other.0)
    }
}

impl BitOr for BioFlags {
    type Output = BioFlags;
    fn bitor(self, o: BioFlags) -> BioFlags {
        BioFlags(self.0 | o.0)
    }
}

impl BitOrAssign for BioFlags {
    fn bitor_assign(&mut self, o: BioFlags) {
        self.0 |= o.0;
    }
}

/// One bio as it is submitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bio {
    /// Direction.
    pub op: Op,
    /// Hints and ordering.
    pub flags: BioFlags,
    /// First sector on the whole disk.
    pub sector: u64,
    /// Length in sectors (0 for an empty barrier or flush).
    pub nr_sectors: u32,
    /// Runs of physically contiguous pages, each at most 64 KiB.
    pub segments: u16,
    /// Submitting task: its io context is charged.
    pub task: TaskId,
    /// Priority set on the bio itself; normally none.
    pub ioprio: IoPrio,
    /// Control group that it is charged to; 0, the root: that of its task.
    pub group: u16,
    /// Who is told that it has ended.
    pub completion: Completion,
}

impl Bio {
    /// The sector after the last one.
    pub fn end(&self) -> u64 {
        self.sector + u64::from(self.nr_sectors)
    }

    /// Whether schedulers treat it as synchronous: reads, and writes that
    /// carry the sync flag.
    pub fn is_sync(&self) -> bool {
        self.op == Op::Read || self.flags.has(BioFlags::SYNC)
    }

    /// One segment per started page, as for pages scattered in memory.
    pub fn segments_of_pages(nr_sectors: u32) -> u16 {
        u16::try_from(u64::from(nr_sectors).div_ceil(crate::PAGE_SECTORS)).unwrap_or(u16::MAX)
    }
}
