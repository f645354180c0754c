// SPDX-License-Identifier: MIT OR Apache-2.0
//! Injection: requests of other queues that are dispatched while the device
//! would idle for the queue in service, as many as do not delay it.
//!
//! Up to 4.19 there was none. 4.20 began with a share of the service (d0edc2473be9); 5.2
//! measures what injection does to the queue's requests. What 5.3 and 5.4 corrected is taken to
//! have been in 5.2 already.

use super::Bfq;
use super::clock::{jiffies, now_ns};
use super::entity::Ent;
use super::habits::LARGE_SECTORS;
use crate::queue_id::QueueId;
use blklab_block::mq::Core;
use blklab_block::{Cx, RqId};

/// Which requests of others may go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Injection {
    /// None.
    None,
    /// Those of any queue, up to a multiple of what the queue in service got.
    ByService,
    /// As many as leave the queue's service times short.
    ByTime,
}

/// What was injected, and the request by which its cost is measured.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Injected {
    /// When the queue in service got a request while it had none
    /// (`last_empty_occupied_ns`).
    pub(super) last_empty_ns: u64,
    /// The next request from it is to be measured, or this one is.
    pub(super) wait_dispatch: bool,
    pub(super) waited_rq: Option<RqId>,
    /// Requests were injected since (`rqs_injected`).
    pub(super) any: bool,
    /// Sectors of other queues dispatched in the slot (`injected_service`, up to 5.1).
    pub(super) sectors: i64,
}

impl Injected {
    /// The slot ends: nothing is measured any more.
    pub(super) fn forget(&mut self) {
        self.any = false;
        self.wait_dispatch = false;
        self.waited_rq = None;
    }
}

/// Injected sectors for each of the queue in service (`inject_coeff`, in tenths of its inverse).
const INJECTED_PER_OWN: i64 = 10;

/// Limit and time alone after the end of a request whose time from its queue's
/// emptiness was `took`; none: as they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Measured {
    pub(super) limit: u32,
    pub(super) alone_ns: u64,
    /// The limit was lowered.
    pub(super) lowered: bool,
}

/// What a measurement makes of a queue's limit: with injection the time must
/// stay below one and a half of that without.
pub(super) fn measure(
    old: u32,
    alone_ns: u64,
    took_ns: u64,
    injected: bool,
    in_driver: u32,
    most_in_driver: u32,
) -> Measured {
    let mut m = Measured {
        limit: old,
        alone_ns,
        lowered: false,
    };
    if alone_ns > 0 && injected {
        let bound = (alone_ns * 3) >> 1;
        if took_ns >= bound && old > 0 {
            m.limit -= 1;
            m.lowered = true;
        } else if took_ns < bound && old <= most_in_driver {
            m.limit += 1;
        }
    }
    if (alone_ns == 0 && in_driver == 1) || took_ns < alone_ns {
        if alone_ns == 0 {
            m.limit = old.max(1);
        }
        m.alone_ns = took_ns;
    } else if !injected && in_driver == 1 {
        m.alone_ns = took_ns;
    }
    m
}

impl Bfq {
    /// `bfq_reset_inject_limit`.
    pub(super) fn reset_inject_limit(&mut self, cx: &Cx<'_>, id: QueueId) {
        self.injected.waited_rq = None;
        let x = &mut self.queues[id];
        x.alone_ns = 0;
        x.inject_limit = u32::from(!x.short_think);
        x.lowered = jiffies(cx);
    }

    /// The request that the queue waited for is done (`bfq_update_inject_limit`).
    pub(super) fn update_inject_limit(&mut self, cx: &Cx<'_>, id: QueueId) {
        let took = now_ns(cx) - self.injected.last_empty_ns;
        let x = &mut self.queues[id];
        let m = measure(
            x.inject_limit,
            x.alone_ns,
            took,
            self.injected.any,
            self.in_driver,
            self.queueing.max_in_driver(),
        );
        x.inject_limit = m.limit;
        x.alone_ns = m.alone_ns;
        if m.lowered {
            x.lowered = jiffies(cx);
        }
        self.injected.waited_rq = None;
        self.injected.any = false;
    }

    /// Whether the next request of a queue fits its budget.
    fn fits(&self, q: &Core, id: QueueId) -> bool {
        let left = self.ents[Ent::of_queue(id)].budget_left();
        self.queues[id]
            .next
            .is_some_and(|next| self.charge(q, id, next) <= left)
    }

    /// A queue whose request goes out while the one in service, which is empty,
    /// is waited for (`bfq_choose_bfqq_for_injection`).
    pub(super) fn choose_injected(
        &mut self,
        q: &Core,
        cx: &Cx<'_>,
        id: QueueId,
    ) -> Option<QueueId> {
        match self.feat.injection {
            Injection::None => None,
            Injection::ByService => self.choose_by_service(q, id),
            Injection::ByTime => self.choose_by_time(q, cx, id),
        }
    }

    /// While one that seeks is in service on a device without seeks that queues commands
    /// (`bfq_bfqq_injectable`), the newest active queue whose request fits its budget.
    fn choose_by_service(&self, q: &Core, id: QueueId) -> Option<QueueId> {
        let queues = self.queueing.may_queue();
        let suits = self.queues[id].is_seeky() && self.wr(id) == 1 && !self.rotational && queues;
        let most = INJECTED_PER_OWN * self.ents[Ent::of_queue(id)].service;
        if !suits || self.injected.sectors >= most {
            return None;
        }
        let mut at = self.active.first();
        while let Some(c) = at {
            if !self.queues[c].is_empty() && self.fits(q, c) {
                return Some(c);
            }
            at = self.active_links.next(c);
        }
        None
    }

    fn choose_by_time(&mut self, q: &Core, cx: &Cx<'_>, id: QueueId) -> Option<QueueId> {
        let x = &self.queues[id];
        let (waker, woken) = (x.waker, x.woken.first());
        let own = x
            .owner
            .and_then(|task| Some((task, self.context_queue(task, false)?)));
        if let Some((task, own)) = own
            && self.queues[own].busy
            && self.queues[own].next.is_some_and(|n| q.rqs[n].task == task)
            && self.fits(q, own)
        {
            return Some(own);
        }
        if let Some(waker) = waker
            && self.feat.injects_wakers
            && self.queues[waker].busy
            && self.fits(q, waker)
        {
            return Some(waker);
        }
        if let Some(woken) = woken
            && self.feat.injects_woken
            && self.queues[woken].busy
            && self.fits(q, woken)
        {
            return Some(woken);
        }
        let raised = self.wr(id) > 1;
        if !self.idling_boosts(id) && (!raised || self.wr_busy > 1 || !self.queues[id].short_think)
        {
            return self.choose_other(q, cx, id);
        }
        None
    }

    /// The newest active queue that may be injected, within the limit.
    fn choose_other(&mut self, q: &Core, cx: &Cx<'_>, id: QueueId) -> Option<QueueId> {
        let x = &self.queues[id];
        let any = self.wr(id) == 1 || !x.short_think;
        let mut limit = x.inject_limit;
        // The kernel adds nanoseconds to jiffies here: hardly ever true.
        let idled = self
            .idling
            .since
            .saturating_add_unsigned(self.set.slice_idle_ns);
        if limit == 0 && x.alone_ns == 0 && x.wait_request && idled <= jiffies(cx) {
            limit = 1;
        }
        if self.in_driver >= limit {
            return None;
        }
        let mut at = self.active.first();
        while let Some(c) = at {
            at = self.active_links.next(c);
            if self.queues[c].is_empty() || !(any || self.wr(c) > 1) || !self.fits(q, c) {
                continue;
            }
            let large = !self.rotational
                && self.queues[c]
                    .next
                    .is_some_and(|n| q.rqs[n].nr_sectors >= LARGE_SECTORS);
            let fine = if self.feat.large_injected_only_alone {
                !large || self.in_driver == 0
            } else {
                limit = if large {
                    limit.min(1)
                } else {
                    self.queues[id].inject_limit
                };
                self.in_driver < limit
            };
            if fine {
                self.injected.any = true;
                return Some(c);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn limits_follow_measurements() {
        let first = measure(0, 0, 5 * MS, false, 1, 4);
        let known = |limit, alone_ns, lowered| Measured {
            limit,
            alone_ns,
            lowered,
        };
        assert_eq!(first, known(1, 5 * MS, false));
        let faster = measure(1, 5 * MS, 7_400_000, true, 2, 1);
        assert_eq!(faster, known(2, 5 * MS, false));
        let full = measure(2, 5 * MS, 7_400_000, true, 2, 1);
        assert_eq!(full, known(2, 5 * MS, false));
        let slower = measure(1, 5 * MS, 7_500_000, true, 2, 1);
        assert_eq!(slower, known(0, 5 * MS, true));
    }
}
