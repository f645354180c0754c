// SPDX-License-Identifier: MIT OR Apache-2.0
//! Use of the disks below the files of a run.

/// Use of a disk during the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskUtil {
    /// Device name.
    pub name: String,
    /// Its counters.
    pub own: DiskCounters,
    /// Means over the devices below a stacked one (md, dm); the utilisation
    /// is the largest of any.
    pub aggregate: Option<DiskCounters>,
}

/// What a disk did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskCounters {
    /// Reads completed.
    pub read_ios: u64,
    /// Writes completed.
    pub write_ios: u64,
    /// Reads merged.
    pub read_merges: u64,
    /// Writes merged.
    pub write_merges: u64,
    /// Time spent by reads, ms.
    pub read_ticks_ms: u64,
    /// Time spent by writes, ms.
    pub write_ticks_ms: u64,
    /// Time weighted by I/Os in progress, ms.
    pub in_queue_ms: u64,
    /// Time with I/O in progress in percent of the run.
    pub util_percent: f64,
}
