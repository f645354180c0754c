// SPDX-License-Identifier: MIT OR Apache-2.0
//! CFQ, completely fair queueing: a queue of requests per process and a slice
//! of time for each.
//!
//! Three schedulers of one name, after the structure that holds the busy
//! queues: lists by priority (2.6.16 to 2.6.21), one service tree (2.6.22 to
//! 2.6.32), and groups with a tree per workload (2.6.33 to 4.20).

mod choose;
mod prio;
mod tree;
mod tunables;

use crate::{Build, Scheduler};
use blklab_block::sq::Elevator;
use blklab_kernel::KernelVersion;

/// The table entry.
pub(crate) const SCHEDULER: Scheduler = Scheduler {
    name: "cfq",
    summary: "a queue and a time slice per process, by I/O priority; idles for the next request",
    since: KernelVersion::v2_6(22),
    until: KernelVersion::v2_6(33),
    tunables: tunables::TUNABLES,
    build,
};

/// The scheduler of the release's era.
fn build(b: &mut Build<'_>) -> Box<dyn Elevator> {
    Box::new(tree::Cfq::new(b))
}
