// SPDX-License-Identifier: MIT OR Apache-2.0
//! The dispatch list: what left the scheduler and waits for the driver.

use crate::sq::core::UNMERGEABLE;
use crate::sq::{Core, Queue};
use crate::{Cx, List, RqId, RqState};
use blklab_trace::Action;
use blklab_trace::truth::Kind;

impl Core {
    /// Moves a request from the scheduler to its place in the dispatch list
    /// (`elv_dispatch_sort`): a one-way elevator that starts at the end of the last
    /// request, never past requests of the other direction or those the driver has
    /// seen.
    pub fn dispatch_sort(&mut self, rq: RqId) {
        self.leave_scheduler(rq);
        let boundary = self.end_sector;
        let (sector, dir) = (self.rqs[rq].sector, self.rqs[rq].data_dir());
        let fixed = RqState::STARTED
            .with(RqState::SOFTBARRIER)
            .with(RqState::HARDBARRIER);
        let mut at = self.queue_head.back();
        while let Some(p) = at {
            let pos = &self.rqs[p];
            if (!self.feat.sort_mixes_directions && pos.data_dir() != dir) || pos.state.any(fixed) {
                break;
            }
            if sector >= boundary {
                if pos.sector >= boundary && sector >= pos.sector {
                    break;
                }
            } else if pos.sector >= boundary || sector >= pos.sector {
                break;
            }
            at = List::prev(&self.rqs, p);
        }
        self.queue_head.insert_after(&mut self.rqs, at, rq);
    }

    /// Moves a request from the scheduler to the tail of the dispatch list
    /// (`elv_dispatch_add_tail`).
    pub fn dispatch_add_tail(&mut self, rq: RqId) {
        self.leave_scheduler(rq);
        self.end_sector = self.rqs[rq].end();
        self.boundary_rq = Some(rq);
        self.queue_head.push_back(&mut self.rqs, rq);
    }

    /// Takes a request that the driver has not seen off the dispatch list and
    /// gives it back to the scheduler, which keeps it as a waiting one. With
    /// `rehash` bios may be merged behind it again. The sweep's starting point
    /// stays.
    pub fn take_back(&mut self, rq: RqId, rehash: bool) {
        assert!(
            !self.rqs[rq].state.has(RqState::STARTED),
            "the driver has not seen what is taken back"
        );
        self.queue_head.remove(&mut self.rqs, rq);
        self.nr_sorted += 1;
        if rehash && !self.rqs[rq].state.any(UNMERGEABLE) {
            self.hash.add(&mut self.rqs, rq);
        }
    }

    #[inline(always)]
    fn leave_scheduler(&mut self, rq: RqId) {
        let end = self.rqs[rq].end();
        self.hash.remove(&mut self.rqs, rq, end);
        if self.last_merge == Some(rq) {
            self.set_last_merge(None);
        }
        self.nr_sorted -= 1;
    }
}

impl Queue {
    /// The next request for the driver, which stays first on the dispatch list
    /// until it is taken (`elv_next_request`, from 2.6.31 on `blk_peek_request`).
    /// Asks the scheduler only while that list is empty. D at first sight.
    #[inline(always)]
    pub(crate) fn peek(&mut self, cx: &mut Cx<'_>) -> Option<RqId> {
        loop {
            let head = loop {
                if let Some(head) = self.core.queue_head.front() {
                    match self.order_barriers(cx, head) {
                        Some(shown) => break shown?,
                        None => continue,
                    }
                }
                if self.flush_holds_scheduler() || self.ask_scheduler(cx, false) == 0 {
                    return None;
                }
            };
            if self.core.rqs[head].state.has(RqState::FLUSH_SEQ)
                && self.start_flush_serial(cx, head)
            {
                continue;
            }
            if !self.core.rqs[head].state.has(RqState::STARTED) {
                if self.core.rqs[head].state.has(RqState::SORTED) {
                    self.elv.activate(&mut self.core, cx, head);
                }
                self.core.rqs[head].state |= RqState::STARTED;
                self.core.rq_event(cx, Action::Issue, Kind::Issue, head);
            }
            let core = &mut self.core;
            if core.boundary_rq.is_none_or(|b| b == head) {
                core.end_sector = core.rqs[head].end();
                core.boundary_rq = None;
            }
            return Some(head);
        }
    }
}
