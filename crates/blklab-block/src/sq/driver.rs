// SPDX-License-Identifier: MIT OR Apache-2.0
//! The driver: its loop and its tags.

use crate::sq::{AsyncTags, Fetch, Queue};
use crate::{Cx, Effect, RqId, RqState};
use blklab_trace::truth::{Kind, Why};

impl Queue {
    /// The driver's work loop: hands requests to the device while it has room and
    /// the queue is not plugged (`scsi_request_fn`).
    pub(crate) fn run(&mut self, cx: &mut Cx<'_>) {
        let depth = self.core.limits.queue_depth;
        while !self.plugged {
            if self.core.limits.fetch == Fetch::CheckThenPeek && self.device_busy >= depth {
                cx.waits(Why::DeviceFull, 0);
                return;
            }
            let Some(rq) = self.peek(cx) else { return };
            if self.device_busy >= depth || !self.take_tag(rq) {
                cx.waits(Why::DeviceFull, 0);
                return;
            }
            self.hand_over(cx, rq);
        }
    }

    /// A request leaves the dispatch list for the device (`blkdev_dequeue_request`,
    /// from 2.6.31 on `blk_start_request`).
    #[inline(always)]
    fn hand_over(&mut self, cx: &mut Cx<'_>, rq: RqId) {
        let request = &self.core.rqs[rq];
        assert!(
            request.state.has(RqState::STARTED),
            "the device gets what D showed"
        );
        assert!(
            !request.state.has(RqState::COUNTED),
            "a request is handed over once"
        );
        self.core.queue_head.remove(&mut self.core.rqs, rq);
        if self.counts_in_flight(rq) {
            self.core.in_flight += 1;
            self.core.rqs[rq].state |= RqState::COUNTED;
        }
        self.device_busy += 1;
        self.ever_deep |= self.device_busy > 4;
        self.core.rqs[rq].handed_over = cx.now;
        self.core
            .rq_truth(cx, Kind::HandOver, rq, u64::from(self.device_busy));
        cx.ask(Effect::Dispatch(rq));
    }

    /// Flush commands are no file-system requests and are not counted
    /// (`blk_account_rq`; 2.6.36 alone counts them).
    fn counts_in_flight(&self, rq: RqId) -> bool {
        self.core.feat.flushes_count
            || !(self.core.rqs[rq].state.has(RqState::PROXY) && self.core.rqs[rq].nr_sectors == 0)
    }

    /// Takes the lowest free block-layer tag the request may have
    /// (`blk_queue_start_tag`); always true where the driver has none.
    fn take_tag(&mut self, rq: RqId) -> bool {
        let depth = self.tags.len();
        if depth == 0 {
            return true;
        }
        let sync = self.core.rqs[rq].is_sync();
        let range = match self.core.feat.async_tags {
            AsyncTags::UpperThreeQuarters if !sync => depth / 4..depth,
            AsyncTags::DepthMinusTwo if !sync && depth > 1 => {
                let limit = depth.saturating_sub(2).max(1);
                let in_flight = self
                    .tags
                    .iter()
                    .filter(|&&t| t == Some(Tagged::Async))
                    .count();
                if in_flight > limit {
                    return false;
                }
                0..limit
            }
            _ => 0..depth,
        };
        let Some(tag) = range.into_iter().find(|&t| self.tags[t].is_none()) else {
            return false;
        };
        self.tags[tag] = Some(if sync { Tagged::Sync } else { Tagged::Async });
        self.core.rqs[rq].tag = Some(tag as u16);
        true
    }

    /// `blk_queue_end_tag`.
    pub(crate) fn release_tag(&mut self, rq: RqId) {
        if let Some(tag) = self.core.rqs[rq].tag.take() {
            let holder = self.tags[usize::from(tag)].take();
            assert!(holder.is_some(), "tag {tag} is given back twice");
        }
    }
}

/// Who holds a block-layer tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tagged {
    /// A sync request.
    Sync,
    /// An asynchronous request.
    Async,
}
