// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers of a machine's queues.

use blklab_types::MEMBERS_MAX;

/// One of the machine's queues: a disk's by its number from 0, or the array's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueNo(pub u32);

impl QueueNo {
    /// The only disk, or the first member of an array.
    pub const FIRST: QueueNo = QueueNo(0);
    /// The array in front of the disks: behind the last that there can be.
    pub const ARRAY: QueueNo = QueueNo(MEMBERS_MAX);

    /// The number of a disk as an index.
    pub fn idx(self) -> usize {
        self.0 as usize
    }
}
