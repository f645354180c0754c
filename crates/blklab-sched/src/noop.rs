// SPDX-License-Identifier: MIT OR Apache-2.0
//! noop: first come, first served.
//!
//! Source: block/noop-iosched.c of 2.6.18, 2.6.24, 2.6.32, 3.0 and 3.7, whose
//! behaviour is the same. One FIFO; back merges come from the core's hash
//! (2.6.19), front merges only through `last_merge`; sorting happens only
//! when several requests are moved at once. Neighbours for request merges are
//! those in the FIFO, not those on the disk.

use crate::{Build, Make, ProcessorTime, Scheduler};
use blklab_block::sq::{Core, Elevator};
use blklab_block::{Cx, List, RqId};
use blklab_kernel::KernelVersion;
use blklab_trace::truth::Why;

/// The table entry.
pub const SCHEDULER: Scheduler = Scheduler {
    name: "noop",
    summary: "first come, first served; merges only",
    since: KernelVersion::v2_6(16),
    until: KernelVersion::new(5, 0),
    tunables: &[],
    changes: &[],
    processor_time: ProcessorTime::NONE,
    make: Make::Sq(|_: &mut Build<'_>| Box::new(Noop::default())),
};

/// The scheduler's state.
#[derive(Debug, Default)]
pub struct Noop {
    fifo: List,
}

impl Elevator for Noop {
    fn name(&self) -> &'static str {
        "noop"
    }

    fn has_own_merge_hash(&self) -> bool {
        false
    }

    fn add(&mut self, q: &mut Core, _: &mut Cx<'_>, rq: RqId) {
        self.fifo.push_back(&mut q.rqs, rq);
    }

    fn dispatch(&mut self, q: &mut Core, cx: &mut Cx<'_>, force: bool) -> usize {
        let Some(rq) = self.fifo.pop_front(&mut q.rqs) else {
            return 0;
        };
        if !force {
            cx.waits(Why::Order, 0);
        }
        q.dispatch_sort(rq);
        1
    }

    fn merge_requests(&mut self, q: &mut Core, _: &mut Cx<'_>, _rq: RqId, next: RqId) {
        self.fifo.remove(&mut q.rqs, next);
    }

    fn check_conservation(&self) {
        assert!(self.fifo.is_empty(), "a request is gone that waits");
    }

    fn former(&self, q: &Core, rq: RqId) -> Option<RqId> {
        List::prev(&q.rqs, rq)
    }

    fn latter(&self, q: &Core, rq: RqId) -> Option<RqId> {
        List::next(&q.rqs, rq)
    }
}
