// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happened to a queue in its slice, the same in every release.

use blklab_block::sq::MayQueue;

/// Flags of a queue that is, or was, served (`enum cfqq_state_flags`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turn {
    /// CFQ idles for its next request.
    pub(super) wait_request: bool,
    /// Outlives its slice for one request.
    pub(super) must_dispatch: bool,
    /// Had its allocation beyond the limit in this slice.
    pub(super) must_alloc_slice: bool,
    /// The oldest request was looked at in this slice, or, up to 2.6.21, went first
    /// in it.
    pub(super) fifo_expire: bool,
}

impl Turn {
    /// Whether its task may allocate a request: even beyond the limit while CFQ idles
    /// for it, but once per slice (`__cfq_may_queue`).
    pub(super) fn may_queue(&mut self) -> MayQueue {
        if self.wait_request && !std::mem::replace(&mut self.must_alloc_slice, true) {
            MayQueue::Must
        } else {
            MayQueue::May
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_allocation_beyond_the_limit_per_slice() {
        let mut turn = Turn::default();
        assert_eq!(turn.may_queue(), MayQueue::May);
        turn.wait_request = true;
        let said = [turn.may_queue(), turn.may_queue()];
        assert_eq!(said, [MayQueue::Must, MayQueue::May]);
        turn.must_alloc_slice = false;
        assert_eq!(turn.may_queue(), MayQueue::Must);
    }
}
