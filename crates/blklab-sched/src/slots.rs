// SPDX-License-Identifier: MIT OR Apache-2.0
//! All queues of a device, in slots that are used again.

use std::ops::{Index, IndexMut};

/// Name of a queue: its slot, reused after it is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueId(pub(crate) u32);

impl QueueId {
    /// The slot as a `usize`.
    pub(crate) fn idx(self) -> usize {
        self.0 as usize
    }
}

/// Queues by their names. Memory is bound by the largest number that there
/// was at once.
#[derive(Clone, Debug)]
pub(crate) struct Slots<Q> {
    slots: Vec<Q>,
    free: Vec<QueueId>,
}

impl<Q> Default for Slots<Q> {
    fn default() -> Slots<Q> {
        Slots {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<Q> Index<QueueId> for Slots<Q> {
    type Output = Q;
    fn index(&self, id: QueueId) -> &Q {
        &self.slots[id.idx()]
    }
}

impl<Q> IndexMut<QueueId> for Slots<Q> {
    fn index_mut(&mut self, id: QueueId) -> &mut Q {
        &mut self.slots[id.idx()]
    }
}

impl<Q> Slots<Q> {
    /// Puts a new queue into a free slot.
    pub(crate) fn put(&mut self, queue: Q) -> QueueId {
        if let Some(id) = self.free.pop() {
            self[id] = queue;
            return id;
        }
        self.slots.push(queue);
        QueueId(u32::try_from(self.slots.len() - 1).expect("queues fit 32 bits"))
    }

    /// Gives the slot of a queue back that nobody uses any more.
    pub(crate) fn give_back(&mut self, id: QueueId) {
        self.free.push(id);
    }
}
