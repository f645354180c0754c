// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists of queues that are linked through a table, newest first: entering and
//! leaving is constant.

use crate::queue_id::QueueId;
use blklab_types::IdVec;

#[derive(Clone, Copy, Debug, Default)]
struct Link {
    prev: Option<QueueId>,
    next: Option<QueueId>,
    on: bool,
}

/// The links of all lists of one kind: a queue is in at most one of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Links {
    links: IdVec<QueueId, Link>,
}

impl Links {
    /// Whether a queue is in a list.
    pub(super) fn holds(&self, id: QueueId) -> bool {
        self.links.get(id).is_some_and(|l| l.on)
    }

    /// The next older one.
    pub(super) fn next(&self, id: QueueId) -> Option<QueueId> {
        self.links[id].next
    }
}

/// One list.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chain {
    first: Option<QueueId>,
}

impl Chain {
    /// The newest.
    pub(super) fn first(self) -> Option<QueueId> {
        self.first
    }

    /// Puts a queue that is in no list of this kind in front.
    pub(super) fn push(&mut self, t: &mut Links, id: QueueId) {
        debug_assert!(!t.links.entry(id).on, "a queue is on one list at a time");
        let next = self.first.replace(id);
        if let Some(n) = next {
            t.links[n].prev = Some(id);
        }
        *t.links.entry(id) = Link {
            prev: None,
            next,
            on: true,
        };
    }

    /// Takes a queue of this list out.
    pub(super) fn remove(&mut self, t: &mut Links, id: QueueId) {
        let Link { prev, next, on } = std::mem::take(&mut t.links[id]);
        debug_assert!(on);
        match prev {
            Some(p) => t.links[p].next = next,
            None => self.first = next,
        }
        if let Some(n) = next {
            t.links[n].prev = prev;
        }
    }

    /// Takes the newest out.
    pub(super) fn pop(&mut self, t: &mut Links) -> Option<QueueId> {
        let id = self.first?;
        self.remove(t, id);
        Some(id)
    }
}
