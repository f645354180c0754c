// SPDX-License-Identifier: MIT OR Apache-2.0
//! To which queue each request belongs, and what its scheduler notes with it.

use crate::queue_id::QueueId;
use blklab_block::RqId;
use blklab_types::IdVec;
use std::ops::{Index, IndexMut};

#[derive(Clone, Copy, Debug, Default)]
struct Slot<T> {
    queue: Option<QueueId>,
    note: T,
}

/// By request: its queue, and a note of the scheduler.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bound<T> {
    slots: IdVec<RqId, Slot<T>>,
}

impl<T: Copy + Default> Bound<T> {
    /// A request got its queue; its note is the default.
    pub(crate) fn bind(&mut self, rq: RqId, queue: QueueId) {
        *self.slots.entry(rq) = Slot {
            queue: Some(queue),
            note: T::default(),
        };
    }

    /// Another queue takes a request over.
    pub(crate) fn rebind(&mut self, rq: RqId, queue: QueueId) {
        self.slots[rq].queue = Some(queue);
    }

    /// A request leaves its queue for good: the queue it had, and its note.
    pub(crate) fn unbind(&mut self, rq: RqId) -> Option<(QueueId, T)> {
        let slot = std::mem::take(self.slots.get_mut(rq)?);
        Some((slot.queue?, slot.note))
    }

    /// The queue of a request that may not have gone through the scheduler.
    pub(crate) fn queue_if_any(&self, rq: RqId) -> Option<QueueId> {
        self.slots.get(rq)?.queue
    }

    /// The queue of a request that the scheduler was given.
    pub(crate) fn queue(&self, rq: RqId) -> QueueId {
        self.queue_if_any(rq)
            .expect("requests are bound before they are inserted")
    }

    /// The note of a request that may not have gone through the scheduler.
    pub(crate) fn get(&self, rq: RqId) -> Option<&T> {
        Some(&self.slots.get(rq)?.note)
    }
}

impl<T> Index<RqId> for Bound<T> {
    type Output = T;
    fn index(&self, rq: RqId) -> &T {
        &self.slots[rq].note
    }
}

impl<T> IndexMut<RqId> for Bound<T> {
    fn index_mut(&mut self, rq: RqId) -> &mut T {
        &mut self.slots[rq].note
    }
}
