// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wakers: the queue after whose completions another queue gets its requests.

use super::Bfq;
use super::clock::now_ns;
use super::queue::Queue;
use crate::queue_id::QueueId;
use blklab_block::Cx;

/// A request so soon after a completion may be its consequence, in ns.
const SOON_NS: u64 = 4_000_000;
/// Sightings that make a waker.
const SIGHTINGS: u32 = 3;
/// Sightings count for so many times the length of idling.
const SPAN_IN_IDLES: u64 = 128;

impl Bfq {
    /// A process got a request while it had no other. Up to 5.11 the kernel looks for wakers,
    /// too, but never does anything with them.
    pub(super) fn detect_waker(&mut self, cx: &Cx<'_>, id: QueueId) {
        if !self.feat.injects_wakers {
            return;
        }
        let now = now_ns(cx);
        let Some(last) = self.last_completed else {
            return;
        };
        let x = &mut self.queues[id];
        if last == id || x.short_think || now - self.last_completion_ns >= SOON_NS {
            return;
        }
        let span = SPAN_IN_IDLES * self.set.slice_idle_ns;
        if x.tentative_waker != Some(last) || now > x.waker_since_ns + span {
            x.tentative_waker = Some(last);
            x.waker_sightings = 1;
            x.waker_since_ns = now;
        } else {
            x.waker_sightings += 1;
        }
        if x.waker_sightings == SIGHTINGS {
            x.tentative_waker = None;
            self.set_waker(id, Some(last));
        }
    }

    /// Gives a queue another waker, which keeps it first among those it wakes.
    pub(super) fn set_waker(&mut self, id: QueueId, waker: Option<QueueId>) {
        let x = &mut self.queues[id];
        let old = std::mem::replace(&mut x.waker, waker);
        if let Some(old) = old {
            let Queue { woken, .. } = &mut self.queues[old];
            woken.remove(&mut self.woken_links, id);
        }
        if let Some(new) = waker {
            let Queue { woken, .. } = &mut self.queues[new];
            woken.push(&mut self.woken_links, id);
        }
    }

    /// A queue is about to be freed: nobody is its waker, nor it anybody's.
    pub(super) fn forget_wakers(&mut self, id: QueueId) {
        self.set_waker(id, None);
        while let Some(woken) = self.queues[id].woken.first() {
            self.set_waker(woken, None);
        }
    }
}
