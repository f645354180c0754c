// SPDX-License-Identifier: MIT OR Apache-2.0
//! First-in-first-out queues that share one store: many dies, few entries, and
//! no allocation once the store has grown to what is in flight.

use blklab_types::Slab;

/// No entry.
const NONE: u32 = u32::MAX;

/// Entries of all queues.
#[derive(Clone, Debug)]
pub(super) struct Store<T> {
    entries: Slab<u32, (T, u32)>,
}

/// One queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    head: u32,
    tail: u32,
}

impl Queue {
    pub(super) const EMPTY: Queue = Queue {
        head: NONE,
        tail: NONE,
    };

    pub(super) fn is_empty(&self) -> bool {
        self.head == NONE
    }
}

impl<T: Copy> Store<T> {
    pub(super) fn with_capacity(n: usize) -> Store<T> {
        Store {
            entries: Slab::with_capacity(n),
        }
    }

    pub(super) fn push(&mut self, queue: &mut Queue, item: T) {
        let i = self.entries.insert((item, NONE));
        match queue.tail {
            NONE => queue.head = i,
            tail => self.entries[tail].1 = i,
        }
        queue.tail = i;
    }

    /// The oldest item of a queue.
    pub(super) fn front(&self, queue: &Queue) -> Option<&T> {
        match queue.head {
            NONE => None,
            head => Some(&self.entries[head].0),
        }
    }

    pub(super) fn pop(&mut self, queue: &mut Queue) -> Option<T> {
        if queue.head == NONE {
            return None;
        }
        let (item, next) = *self.entries.remove(queue.head);
        queue.head = next;
        if next == NONE {
            queue.tail = NONE;
        }
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_keep_their_order_and_reuse_entries() {
        let mut store = Store::with_capacity(2);
        let (mut a, mut b) = (Queue::EMPTY, Queue::EMPTY);
        for i in 0..3 {
            store.push(&mut a, i);
            store.push(&mut b, 10 + i);
        }
        assert_eq!(store.pop(&mut a), Some(0));
        store.push(&mut b, 99);
        assert_eq!([1, 2].map(Some), [store.pop(&mut a), store.pop(&mut a)]);
        assert_eq!(store.pop(&mut a), None);
        let rest: Vec<i32> = std::iter::from_fn(|| store.pop(&mut b)).collect();
        assert_eq!(rest, [10, 11, 12, 99]);
        assert!(store.entries.is_empty());
        assert!(a.is_empty() && b.is_empty());
    }
}
