// SPDX-License-Identifier: MIT OR Apache-2.0
//! CFQ, completely fair queueing: a queue of requests per process and a slice
//! of time for each.
//!
//! Three schedulers of one name, after the structure that holds the busy
//! queues: lists by priority (2.6.16 to 2.6.21), one service tree (2.6.22 to
//! 2.6.32), and groups with a tree per workload (2.6.33 to 4.20).

mod clock;
mod groups;
mod lists;
mod prio;
mod tree;
mod tunables;
mod turn;
mod waiting;

use crate::{Build, Make, ProcessorTime, Scheduler};
use blklab_block::sq::Elevator;
use blklab_kernel::KernelVersion;

/// First release with a service tree.
const TREE: KernelVersion = KernelVersion::v2_6(22);
/// First release with groups.
const GROUPS: KernelVersion = KernelVersion::v2_6(33);

/// Index of async and sync in what there are two of.
const ASYNC: usize = 0;
const SYNC: usize = 1;

/// Async queues of a device or group (`async_cfqq`, `async_idle_cfqq`): eight
/// levels of two classes, and the idle class.
const NR_ASYNC_QUEUES: usize = 17;

/// Requests are bound to a queue when they are allocated.
const IS_BOUND: &str = "a request that is freed was bound to a queue";

/// A queue whose last request goes is served no more.
const IS_BUSY: &str = "a queue that is served or filed has requests";

/// The table entry.
pub const SCHEDULER: Scheduler = Scheduler {
    name: "cfq",
    summary: "a queue and a time slice per process, by I/O priority; idles for the next request",
    since: KernelVersion::v2_6(16),
    until: KernelVersion::new(5, 0),
    tunables: tunables::TUNABLES,
    changes: &[lists::CHANGES, tree::CHANGES, groups::CHANGES],
    processor_time: ProcessorTime::NONE,
    make: Make::Sq(build),
};

/// The scheduler of the release's era.
fn build(b: &mut Build<'_>) -> Box<dyn Elevator> {
    if !b.version.is_from(TREE) {
        Box::new(lists::Cfq::new(b))
    } else if !b.version.is_from(GROUPS) {
        Box::new(tree::Cfq::new(b))
    } else {
        Box::new(groups::Cfq::new(b))
    }
}
