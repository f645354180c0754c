// SPDX-License-Identifier: MIT OR Apache-2.0
//! Doubly linked lists of requests, linked through the requests themselves
//! (`queuelist`): a request is on at most one list at a time.

use crate::{Request, Requests, RqId};

/// Head of a list. Copies nothing and allocates nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct List {
    head: Option<RqId>,
    tail: Option<RqId>,
    len: u32,
}

impl List {
    /// An empty list.
    pub const EMPTY: List = List {
        head: None,
        tail: None,
        len: 0,
    };

    /// First element.
    pub fn front(&self) -> Option<RqId> {
        self.head
    }

    /// Last element.
    pub fn back(&self) -> Option<RqId> {
        self.tail
    }

    /// Number of elements.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The element behind `id`.
    pub fn next(rqs: &Requests, id: RqId) -> Option<RqId> {
        rqs[id].list_next
    }

    /// The element before `id`.
    pub fn prev(rqs: &Requests, id: RqId) -> Option<RqId> {
        rqs[id].list_prev
    }

    /// Inserts `id` behind `after`, or at the head.
    #[inline]
    pub fn insert_after(&mut self, rqs: &mut Requests, after: Option<RqId>, id: RqId) {
        debug_assert!(!rqs[id].on_list, "a request is on one list at a time");
        let next = match after {
            Some(a) => rqs[a].list_next.replace(id),
            None => self.head.replace(id),
        };
        match next {
            Some(n) => rqs[n].list_prev = Some(id),
            None => self.tail = Some(id),
        }
        let rq = &mut rqs[id];
        rq.list_prev = after;
        rq.list_next = next;
        rq.on_list = true;
        self.len += 1;
    }

    /// Appends.
    pub fn push_back(&mut self, rqs: &mut Requests, id: RqId) {
        self.insert_after(rqs, self.tail, id);
    }

    /// Prepends.
    pub fn push_front(&mut self, rqs: &mut Requests, id: RqId) {
        self.insert_after(rqs, None, id);
    }

    /// Takes `id`, which must be on this list, off it.
    #[inline]
    pub fn remove(&mut self, rqs: &mut Requests, id: RqId) {
        debug_assert!(rqs[id].on_list, "the request is on no list");
        let (prev, next) = (rqs[id].list_prev.take(), rqs[id].list_next.take());
        match prev {
            Some(p) => rqs[p].list_next = next,
            None => self.head = next,
        }
        match next {
            Some(n) => rqs[n].list_prev = prev,
            None => self.tail = prev,
        }
        rqs[id].on_list = false;
        self.len -= 1;
    }

    /// Takes the first element off.
    #[inline]
    pub fn pop_front(&mut self, rqs: &mut Requests) -> Option<RqId> {
        let id = self.head?;
        self.remove(rqs, id);
        Some(id)
    }

    /// Puts `id` into the place of `old`, which leaves the list.
    pub fn replace(&mut self, rqs: &mut Requests, old: RqId, id: RqId) {
        let before = rqs[old].list_prev;
        self.remove(rqs, old);
        self.insert_after(rqs, before, id);
    }

    /// Moves `id` to the place right behind `after`; both are on this list.
    pub fn move_behind(&mut self, rqs: &mut Requests, after: RqId, id: RqId) {
        self.remove(rqs, id);
        self.insert_after(rqs, Some(after), id);
    }

    /// The elements in order.
    pub fn iter<'a>(&self, rqs: &'a Requests) -> impl Iterator<Item = RqId> + use<'a> {
        std::iter::successors(self.head, |&id| List::next(rqs, id))
    }

    /// Takes the elements that a test picks off, in their order.
    #[must_use]
    pub fn take_where(&mut self, rqs: &mut Requests, test: impl Fn(&Request) -> bool) -> List {
        let mut taken = List::EMPTY;
        let mut at = self.head;
        while let Some(id) = at {
            at = List::next(rqs, id);
            if test(&rqs[id]) {
                self.remove(rqs, id);
                taken.push_back(rqs, id);
            }
        }
        taken
    }

    /// Sorts by a key; what is equal stays in order. By insertion from the end:
    /// for lists of a few dozen that are mostly sorted already.
    pub fn sort_by_key<K: Ord>(&mut self, rqs: &mut Requests, key: impl Fn(&Request) -> K) {
        let mut old = std::mem::take(self);
        while let Some(id) = old.pop_front(rqs) {
            let mut at = self.tail;
            while let Some(p) = at
                && key(&rqs[p]) > key(&rqs[id])
            {
                at = List::prev(rqs, p);
            }
            self.insert_after(rqs, at, id);
        }
    }

    /// Moves all elements of `other` behind those of this list, in constant
    /// time.
    pub fn append(&mut self, rqs: &mut Requests, other: &mut List) {
        let Some(first) = other.head.take() else {
            return;
        };
        match self.tail {
            Some(last) => {
                rqs[last].list_next = Some(first);
                rqs[first].list_prev = Some(last);
            }
            None => self.head = Some(first),
        }
        self.tail = other.tail.take();
        self.len += std::mem::take(&mut other.len);
    }
}
