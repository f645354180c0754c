// SPDX-License-Identifier: MIT OR Apache-2.0
//! What BFQ keeps per request.

use crate::slots::QueueId;
use blklab_block::RqId;

#[derive(Clone, Copy, Debug, Default)]
struct OfRequest {
    queue: Option<QueueId>,
    /// From then on the request is old, in ns.
    expiry_ns: u64,
    /// In its queue.
    waits: bool,
    /// Counted among those at the driver.
    started: bool,
}

/// By request.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestTable {
    slots: Vec<OfRequest>,
}

impl RequestTable {
    /// A request got its queue.
    pub(super) fn bind(&mut self, rq: RqId, queue: QueueId) {
        if self.slots.len() <= rq.idx() {
            self.slots.resize(rq.idx() + 1, OfRequest::default());
        }
        self.slots[rq.idx()] = OfRequest {
            queue: Some(queue),
            ..OfRequest::default()
        };
    }

    /// Another queue takes a request over.
    pub(super) fn rebind(&mut self, rq: RqId, queue: QueueId) {
        self.slots[rq.idx()].queue = Some(queue);
    }

    /// A request leaves its queue for good; whether it was at the driver.
    pub(super) fn unbind(&mut self, rq: RqId) -> Option<(QueueId, bool)> {
        let slot = std::mem::take(self.slots.get_mut(rq.idx())?);
        Some((slot.queue?, slot.started))
    }

    /// The queue of a request that may not have gone through the scheduler.
    pub(super) fn queue_if_any(&self, rq: RqId) -> Option<QueueId> {
        self.slots.get(rq.idx())?.queue
    }

    /// The queue of a request that the scheduler was given.
    pub(super) fn queue(&self, rq: RqId) -> QueueId {
        self.queue_if_any(rq)
            .expect("requests are bound before they are inserted")
    }

    pub(super) fn expiry_ns(&self, rq: RqId) -> u64 {
        self.slots[rq.idx()].expiry_ns
    }

    pub(super) fn set_expiry_ns(&mut self, rq: RqId, at: u64) {
        self.slots[rq.idx()].expiry_ns = at;
    }

    pub(super) fn waits(&self, rq: RqId) -> bool {
        self.slots.get(rq.idx()).is_some_and(|s| s.waits)
    }

    pub(super) fn set_waits(&mut self, rq: RqId, waits: bool) {
        self.slots[rq.idx()].waits = waits;
    }

    pub(super) fn set_started(&mut self, rq: RqId) {
        self.slots[rq.idx()].started = true;
    }
}
