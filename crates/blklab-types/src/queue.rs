// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings of a queue that experiments write and models read.

/// When the driver looks at the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Fetch {
    /// It takes the next request from the scheduler first and then finds the
    /// device full: SCSI, libata, cciss. One request more than the queue
    /// depth has left the scheduler.
    #[default]
    PeekThenCheck,
    /// It looks only when the device has room: the older IDE driver.
    CheckThenPeek,
}

/// Limits of a control group on what it and the groups below do in a second
/// (`io.max`); none: no limit. The kernel refuses 0, which counts as 1 here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoMax {
    /// `rbps`, in bytes per second.
    pub read_bytes_per_s: Option<u64>,
    /// `wbps`, in bytes per second.
    pub write_bytes_per_s: Option<u64>,
    /// `riops`, in I/Os per second.
    pub read_ios_per_s: Option<u64>,
    /// `wiops`, in I/Os per second.
    pub write_ios_per_s: Option<u64>,
}
