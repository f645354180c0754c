// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a device, its driver and sysfs set for a queue on either path.

use blklab_types::{DiscardLimits, Op};

/// Limits of a queue, the kernel's `struct queue_limits` and what lies beside
/// it in sysfs. The rest differs by path: [`crate::sq::Limits`],
/// [`crate::mq::Limits`].
#[derive(Clone, Debug)]
pub struct QueueLimits {
    /// Largest request in sectors.
    pub max_sectors: u32,
    /// Most segments of a request.
    pub max_segments: u32,
    /// Whether the device seeks (`queue/rotational`).
    pub rotational: bool,
    /// `queue/nomerges`: 1 leaves only `last_merge`, 2 nothing.
    pub nomerges: u8,
    /// The device has a volatile write cache that must be flushed.
    pub has_flush: bool,
    /// The device writes through on request.
    pub has_fua: bool,
    /// What a discard may be; none: the device has no discards, and those that come
    /// fail.
    pub discard: Option<DiscardLimits>,
    /// First sector of the partition that bios come from (event A); none if
    /// the whole disk is used.
    pub partition_start: Option<u64>,
}

impl QueueLimits {
    /// Size and segment test of a merge (`ll_back_merge_fn`, `ll_front_merge_fn`,
    /// `ll_merge_requests_fn`): of both parts sectors and segments, and the most sectors of
    /// a request with data. Discards have a limit of their own, and their segments do not
    /// count (`blk_queue_get_max_sectors`).
    pub(crate) fn fit_together(
        &self,
        op: Op,
        [a_sectors, b_sectors]: [u32; 2],
        [a_segments, b_segments]: [u32; 2],
        max_sectors: u32,
    ) -> bool {
        if op == Op::Discard {
            let most = self.discard.map_or(0, |discard| discard.max_sectors);
            return u64::from(a_sectors) + u64::from(b_sectors) <= u64::from(most);
        }
        a_sectors + b_sectors <= max_sectors && a_segments + b_segments <= self.max_segments
    }
}
