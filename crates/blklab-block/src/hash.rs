// SPDX-License-Identifier: MIT OR Apache-2.0
//! The back-merge hash: waiting requests by the sector after their end.

use crate::{Requests, RqId, RqState};

const BUCKETS: usize = 1024;

/// Chains with the newest entry in front, as in block/elevator.c: among
/// requests with the same end the one added or re-keyed last is found.
#[derive(Clone, Debug)]
pub(crate) struct MergeHash {
    heads: Vec<Option<RqId>>,
}

impl MergeHash {
    pub(crate) fn new() -> MergeHash {
        MergeHash {
            heads: vec![None; BUCKETS],
        }
    }

    fn bucket(end: u64) -> usize {
        ((end >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize
    }

    #[inline]
    pub(crate) fn add(&mut self, rqs: &mut Requests, id: RqId) {
        debug_assert!(!rqs[id].state.has(RqState::HASHED));
        let bucket = Self::bucket(rqs[id].end());
        let next = self.heads[bucket].replace(id);
        if let Some(n) = next {
            rqs[n].hash_prev = Some(id);
        }
        let rq = &mut rqs[id];
        rq.hash_prev = None;
        rq.hash_next = next;
        rq.state |= RqState::HASHED;
    }

    /// Takes a request out; `end` is the end it was added with.
    #[inline]
    pub(crate) fn remove(&mut self, rqs: &mut Requests, id: RqId, end: u64) {
        if !rqs[id].state.has(RqState::HASHED) {
            return;
        }
        let (prev, next) = (rqs[id].hash_prev.take(), rqs[id].hash_next.take());
        match prev {
            Some(p) => rqs[p].hash_next = next,
            None => {
                debug_assert_eq!(self.heads[Self::bucket(end)], Some(id), "wrong chain");
                self.heads[Self::bucket(end)] = next;
            }
        }
        if let Some(n) = next {
            rqs[n].hash_prev = prev;
        }
        rqs[id].state.clear(RqState::HASHED);
    }

    /// The newest request that ends at `end` and has none of `refuse` set.
    pub(crate) fn find(&self, rqs: &Requests, end: u64, refuse: RqState) -> Option<RqId> {
        let mut at = self.heads[Self::bucket(end)];
        while let Some(id) = at {
            let rq = &rqs[id];
            if rq.end() == end && !rq.state.any(refuse) {
                return Some(id);
            }
            at = rq.hash_next;
        }
        None
    }
}
