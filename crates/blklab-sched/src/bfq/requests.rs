// SPDX-License-Identifier: MIT OR Apache-2.0
//! What BFQ notes of a request.

use super::Bfq;
use blklab_block::RqId;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OfRequest {
    /// From then on the request is old, in ns.
    pub(super) expiry_ns: u64,
    /// In its queue.
    pub(super) waits: bool,
    /// Counted among those at the driver.
    pub(super) started: bool,
}

impl Bfq {
    /// Whether a request is in a queue of BFQ.
    pub(super) fn waits(&self, rq: RqId) -> bool {
        self.of_rq.get(rq).is_some_and(|of| of.waits)
    }
}
