// SPDX-License-Identifier: MIT OR Apache-2.0
//! CFQ, completely fair queueing: a queue of requests per process and a slice
//! of time for each.
//!
//! Three schedulers of one name, after the structure that holds the busy
//! queues: lists by priority (2.6.16 to 2.6.21), one service tree (2.6.22 to
//! 2.6.32), and groups with a tree per workload (2.6.33 to 4.20).

mod choose;
mod lists;
mod prio;
mod tunables;

use crate::{Build, Scheduler};
use blklab_kernel::KernelVersion;

/// The table entry.
pub const SCHEDULER: Scheduler = Scheduler {
    name: "cfq",
    summary: "time slices per process, by priority; waits for the next request of a process",
    since: KernelVersion::v2_6(16),
    until: KernelVersion::v2_6(22),
    tunables: tunables::TUNABLES,
    build: |b: &mut Build<'_>| Box::new(lists::Cfq::new(b)),
};
