// SPDX-License-Identifier: MIT OR Apache-2.0
//! What CFQ keeps per request.

use super::queue::QueueId;
use blklab_block::RqId;

#[derive(Clone, Copy, Debug, Default)]
struct OfRequest {
    queue: Option<QueueId>,
    /// Jiffy from which the request is old.
    expiry_jiffy: u64,
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
            expiry_jiffy: 0,
        };
    }

    /// A request leaves its queue for good.
    pub(super) fn unbind(&mut self, rq: RqId) -> Option<QueueId> {
        self.slots.get_mut(rq.idx())?.queue.take()
    }

    /// The queue of a request that may not have gone through the scheduler.
    pub(super) fn queue_if_any(&self, rq: RqId) -> Option<QueueId> {
        self.slots.get(rq.idx())?.queue
    }

    /// The queue of a request that the scheduler was given.
    pub(super) fn queue(&self, rq: RqId) -> QueueId {
        self.queue_if_any(rq)
            .expect("requests are bound when they are allocated")
    }

    pub(super) fn expiry_jiffy(&self, rq: RqId) -> u64 {
        self.slots[rq.idx()].expiry_jiffy
    }

    pub(super) fn set_expiry(&mut self, rq: RqId, jiffy: u64) {
        self.slots[rq.idx()].expiry_jiffy = jiffy;
    }
}
