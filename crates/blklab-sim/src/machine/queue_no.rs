// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers of a machine's queues, and of the work that they ask kblockd for.

use blklab_block::md::MEMBERS_MAX;
use blklab_engine::WorkId;

/// One of the machine's queues: a disk's by its number from 0, or the array's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueNo(pub(crate) u32);

impl QueueNo {
    /// The only disk, or the first member of an array.
    pub(crate) const FIRST: QueueNo = QueueNo(0);
    /// The array in front of the disks: behind the last that there can be.
    pub(crate) const ARRAY: QueueNo = QueueNo(MEMBERS_MAX);

    pub(super) fn idx(self) -> usize {
        self.0 as usize
    }

    /// kblockd is to remove the plug.
    pub(super) fn unplug_work(self) -> WorkId {
        WorkId(2 * self.0)
    }

    /// kblockd is to call the driver.
    pub(super) fn run_work(self) -> WorkId {
        WorkId(2 * self.0 + 1)
    }

    /// The queue that work is for, and whether it is to remove the plug.
    pub(super) fn of_work(work: WorkId) -> (QueueNo, bool) {
        (QueueNo(work.0 / 2), work.0.is_multiple_of(2))
    }
}
