// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of the queues that CFQ and BFQ have for processes (`struct cfq_queue`,
//! `struct bfq_queue`).

/// Name of a queue: its place in the scheduler's table, used again after it is
/// gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueId(pub(crate) u32);

blklab_types::impl_id!(QueueId(u32));
