// SPDX-License-Identifier: MIT OR Apache-2.0
//! none: requests go from the software queues to the driver.

use crate::{Make, ProcessorTime, Scheduler};
use blklab_kernel::KernelVersion;

/// The table entry.
pub const SCHEDULER: Scheduler = Scheduler {
    name: "none",
    summary: "no scheduler: first come, first served per CPU",
    since: KernelVersion::new(5, 0),
    until: KernelVersion::FOREVER,
    tunables: &[],
    changes: &[],
    processor_time: ProcessorTime::NONE,
    make: Make::None,
};
