// SPDX-License-Identifier: MIT OR Apache-2.0
//! `queue/async_depth`: the scheduler tags that all but sync reads may take
//! (block/blk-sysfs.c, block/blk-mq.c of 7.3). It belongs to the queue from 7.0 on, and
//! each scheduler that has one sets its own default when it is chosen.

use crate::Build;
use blklab_block::mq::Core;
use blklab_kernel::{KernelVersion, Tunable, Unit};
use blklab_types::{Bio, Op};

/// The first release in which it belongs to the queue.
pub(crate) const SINCE: KernelVersion = KernelVersion::new(7, 0);

/// The name of the file.
pub(crate) const NAME: &str = "async_depth";

/// Three quarters of the tags, as Kyber and BFQ have it by default.
pub(crate) const THREE_QUARTERS: Tunable = Tunable {
    name: NAME,
    unit: Unit::Count,
    default: 192,
    range: (1, i32::MAX as i64),
    since: SINCE,
    until: KernelVersion::FOREVER,
    help: "scheduler tags for all but sync reads; 3/4 of nr_requests unless written",
};

/// What was written to it, if the release has it.
pub(crate) fn written(b: &Build<'_>) -> Option<u32> {
    let written = b.tunables.written(&[NAME]);
    written.map(|(_, n)| n.unsigned_abs() as u32)
}

/// What it shows: what was written, as far as there are so many requests, or the
/// scheduler's default, which a write to `nr_requests` scales.
pub(crate) fn of_queue(q: &Core, written: Option<u32>, default: fn(u32) -> u32) -> u32 {
    match written {
        Some(n) => n.min(q.nr_requests),
        None => scaled(q, default(q.limits.nr_requests_unwritten(true))),
    }
}

/// What a write to `nr_requests` makes of it (`blk_mq_update_nr_requests`).
fn scaled(q: &Core, depth: u32) -> u32 {
    let before = q.limits.nr_requests_unwritten(true);
    (depth * q.nr_requests / before).max(1)
}

/// What it was before the scheduler was chosen: that of the scheduler which the queue
/// has by itself, mq-deadline, or the depth of the queue.
pub(crate) fn before(q: &Core) -> u32 {
    if q.limits.scheduled_by_default {
        q.limits.nr_requests_unwritten(true)
    } else {
        q.limits.queue_depth
    }
}

/// Whether it limits a bio.
pub(crate) fn limits(bio: &Bio) -> bool {
    bio.op != Op::Read || !bio.is_sync()
}
