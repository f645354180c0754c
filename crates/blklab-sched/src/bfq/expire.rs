// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of a service slot: what the queue is charged, its next budget, and
//! where it goes.

use super::Bfq;
use super::clock::{has_come, jiffies, now_ns};
use super::entity::Ent;
use super::settings::DEFAULT_MAX_BUDGET;
use crate::queue_id::QueueId;
use blklab_block::Cx;
use blklab_block::mq::Core;

/// Why a slot ends, with the numbers that messages show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The idle timer fired.
    TooIdle = 0,
    BudgetTimeout = 1,
    BudgetExhausted = 2,
    NoMoreRequests = 3,
    Preempted = 4,
}

/// A slot shorter than this tells nothing about speed, in us.
const SHORT_US: u64 = 1000;
/// From this length on, in us, a slow process is told by its service.
const TELLING_US: u64 = 20_000;
/// Length that a short slot counts as, in ms, rotational and not.
const SHORT_COUNTS_MS: [i64; 2] = [2, 8];
/// Slots after which budgets follow the peak rate.
const SLOTS_FOR_STATS: u32 = 194;

/// Sectors that a slot of `ms` is charged if it is charged by time.
pub(super) fn time_charge(max_budget: i64, ms: i64, whole_ms: i64) -> i64 {
    max_budget * ms.min(whole_ms) / whole_ms
}

/// The next budget of a sync queue that is not raised; none: as it is
/// (`__bfq_bfqq_recalc_budget`).
pub(super) fn next_budget(
    budget: i64,
    reason: Reason,
    in_flight: bool,
    service: i64,
    (least, most): (i64, i64),
) -> Option<i64> {
    Some(match reason {
        Reason::TooIdle if in_flight => (budget * 2).min(most),
        Reason::TooIdle if budget > 5 * least => budget - 4 * least,
        Reason::TooIdle => least,
        Reason::BudgetTimeout => (budget * 2).min(most),
        Reason::BudgetExhausted => (budget * 4).min(most),
        Reason::NoMoreRequests => service.max(least),
        Reason::Preempted => return None,
    })
}

impl Bfq {
    /// Largest budget by what is known so far (`bfq_max_budget`).
    pub(super) fn max_budget_known(&self) -> i64 {
        if self.budgets_assigned < SLOTS_FOR_STATS {
            DEFAULT_MAX_BUDGET
        } else {
            self.max_budget
        }
    }

    /// `bfq_min_budget`.
    pub(super) fn min_budget(&self) -> i64 {
        self.max_budget_known() / 32
    }

    /// Whether the slot's time is up (`bfq_bfqq_budget_timeout`).
    pub(super) fn is_timed_out(&self, cx: &Cx<'_>, id: QueueId) -> bool {
        has_come(cx, self.queues[id].budget_timeout)
    }

    /// Whether the slot may end for that: not while the device idles for the
    /// rest of a nearly used budget (`bfq_may_expire_for_budg_timeout`).
    pub(super) fn may_time_out(&self, q: &Core, cx: &mut Cx<'_>, id: QueueId) -> bool {
        let wait = self.queues[id].wait_request;
        let e = &self.ents[Ent::of_queue(id)];
        let left = e.budget_left() >= e.budget / 3;
        let over = self.is_timed_out(cx, id);
        self.say(
            q,
            cx,
            id,
            format_args!(
                "may_budget_timeout: wait_request {} left {} timeout {}",
                i32::from(wait),
                i32::from(left),
                i32::from(over)
            ),
        );
        (!wait || left) && over
    }

    /// Length of the slot in ms as far as it counts, and whether the process is
    /// slow (`bfq_bfqq_is_slow`).
    fn speed(&self, q: &Core, cx: &mut Cx<'_>, id: QueueId, compensates: bool) -> (i64, bool) {
        let x = &self.queues[id];
        if !x.sync {
            return (0, false);
        }
        let end = if compensates {
            self.idling.since_ns
        } else {
            now_ns(cx)
        };
        let us = end.saturating_sub(self.slot_start_ns) / 1000;
        let seeky = x.is_seeky();
        if us < SHORT_US {
            return (SHORT_COUNTS_MS[usize::from(self.rotational)], seeky);
        }
        let slow = if us > TELLING_US {
            self.ents[Ent::of_queue(id)].service < self.max_budget / 2
        } else {
            seeky
        };
        self.say(
            q,
            cx,
            id,
            format_args!("bfq_bfqq_is_slow: slow {}", i32::from(slow)),
        );
        ((us / 1000) as i64, slow)
    }

    /// Slow processes, and such that used their time up, pay for the time
    /// (`bfq_bfqq_charge_time`).
    fn charge_time(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId, ms: i64) {
        let by_time = time_charge(self.max_budget, ms, self.set.charge_span_ms);
        let e = &mut self.ents[Ent::of_queue(id)];
        let whole = by_time.max(e.service);
        e.budget = e.budget.max(whole);
        let more = whole - e.service;
        self.served(q, cx, id, more);
    }

    /// Ends the slot of the queue in service. `compensates`: the time spent
    /// idling is not the queue's (`bfq_bfqq_expire`).
    pub(super) fn expire(
        &mut self,
        q: &mut Core,
        cx: &mut Cx<'_>,
        id: QueueId,
        compensates: bool,
        reason: Reason,
    ) {
        let ent = Ent::of_queue(id);
        let (ms, slow) = self.speed(q, cx, id, compensates);
        let e = &self.ents[ent];
        let rest = e.budget_left() >= e.budget / 3;
        if e.wr == 1 && (slow || (reason == Reason::BudgetTimeout && rest)) {
            self.charge_time(q, cx, id, ms);
        }
        let e = &self.ents[ent];
        let lazy = reason == Reason::TooIdle && e.service <= 2 * e.budget / 10;
        if !self.feat.intensity_by_time && lazy {
            self.queues[id].io_bound = false;
        }
        if self.set.low_latency && self.wr(id) == 1 {
            self.queues[id].raised_at = jiffies(cx);
        }
        if self.set.low_latency && self.queues[id].is_empty() {
            self.note_soft_rt(cx, id);
        }
        let x = &self.queues[id];
        let (dispatched, short) = (x.dispatched, i32::from(x.short_think));
        self.say(
            q,
            cx,
            id,
            format_args!(
                "expire ({}, slow {}, num_disp {dispatched}, short_ttime {short})",
                reason as u8,
                i32::from(slow)
            ),
        );
        self.injected.forget();
        self.recalc_budget(q, cx, id, reason);
        let mut above = self.above(ent);
        if self.close_slot(q, cx, id, reason) {
            return;
        }
        if !self.queues[id].busy
            && !matches!(reason, Reason::BudgetTimeout | Reason::BudgetExhausted)
        {
            self.queues[id].keeps_budget = true;
        } else {
            self.ents[ent].service = 0;
        }
        while let Some(group) = above {
            self.ents[group].service = 0;
            above = self.above(group);
        }
    }

    /// From when on the next requests of the queue are soft real-time, if
    /// nothing of it is at the device (`bfq_bfqq_softrt_next_start`).
    fn note_soft_rt(&mut self, cx: &Cx<'_>, id: QueueId) {
        let interactive = self.wr(id) == super::settings::RAISED;
        if self.queues[id].dispatched > 0 {
            self.queues[id].soft_rt_update = true;
        } else if !(self.feat.interactive_is_no_soft_rt && interactive) {
            self.queues[id].soft_rt_next = self.soft_rt_next_start(cx, id);
        }
    }

    /// `__bfq_bfqq_recalc_budget`.
    fn recalc_budget(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId, reason: Reason) {
        let ent = Ent::of_queue(id);
        let least = self.min_budget();
        let raised = self.wr(id) > 1;
        let x = &self.queues[id];
        let mut b = if raised { 2 * least } else { x.max_budget };
        let (sync, seeky, in_flight) = (x.sync, x.is_seeky(), x.dispatched > 0);
        let (budget, left) = (self.ents[ent].budget, self.ents[ent].budget_left());
        self.say(
            q,
            cx,
            id,
            format_args!("recalc_budg: last budg {budget}, budg left {left}"),
        );
        self.say(
            q,
            cx,
            id,
            format_args!("recalc_budg: last max_budg {b}, min budg {least}"),
        );
        self.say(
            q,
            cx,
            id,
            format_args!(
                "recalc_budg: sync {}, seeky {}",
                i32::from(sync),
                i32::from(seeky)
            ),
        );
        if !sync {
            b = self.max_budget;
        } else if !raised {
            let bounds = (least, self.max_budget);
            let service = self.ents[ent].service;
            match next_budget(b, reason, in_flight, service, bounds) {
                Some(next) => b = next,
                None => return,
            }
        }
        if self.budgets_assigned >= SLOTS_FOR_STATS && self.set.user_max_budget == 0 {
            b = b.min(self.max_budget);
        }
        self.queues[id].max_budget = b;
        let next = self.queues[id].next;
        if let Some(next) = next {
            let charge = self.charge(q, id, next);
            self.ents[ent].budget = b.max(charge);
        }
        let sectors = next.map_or(0, |next| q.rqs[next].nr_sectors);
        let budget = self.ents[ent].budget;
        self.say(
            q,
            cx,
            id,
            format_args!("head sect: {sectors}, new budget {budget}"),
        );
    }

    /// Takes the queue out of service to where it belongs now. Whether it is
    /// gone (`__bfq_bfqq_expire`).
    pub(super) fn close_slot(
        &mut self,
        q: &mut Core,
        cx: &mut Cx<'_>,
        id: QueueId,
        reason: Reason,
    ) -> bool {
        if self.queues[id].coop && self.queues[id].is_seeky() {
            self.queues[id].split_coop = true;
        }
        let empty = self.queues[id].is_empty();
        if empty && !(reason == Reason::Preempted && self.is_idling_needed(id)) {
            if self.queues[id].dispatched == 0 {
                self.queues[id].budget_timeout = jiffies(cx);
            }
            self.leave_busy(q, cx, id, true);
        } else {
            self.requeue_queue(q, cx, id, true);
            if !empty {
                self.file_position(q, cx, id);
            }
        }
        self.end_service(q, cx, id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: (i64, i64) = (512, 16384);

    #[test]
    fn budgets_follow_the_reasons() {
        let mut b = 10922;
        let mut seen = Vec::new();
        for _ in 0..6 {
            b = next_budget(b, Reason::TooIdle, false, 0, BOUNDS).unwrap();
            seen.push(b);
        }
        assert_eq!(seen, [8874, 6826, 4778, 2730, 682, 512]);
        b = 1000;
        seen.clear();
        for _ in 0..3 {
            b = next_budget(b, Reason::BudgetExhausted, false, 0, BOUNDS).unwrap();
            seen.push(b);
        }
        assert_eq!(seen, [4000, 16000, 16384]);
        let budget = |reason, service| next_budget(10922, reason, false, service, BOUNDS);
        assert_eq!(budget(Reason::BudgetTimeout, 0), Some(16384));
        assert_eq!(budget(Reason::NoMoreRequests, 8), Some(512));
        assert_eq!(budget(Reason::NoMoreRequests, 3000), Some(3000));
        assert_eq!(budget(Reason::Preempted, 3000), None);
        let in_flight = next_budget(1000, Reason::TooIdle, true, 0, BOUNDS);
        assert_eq!(in_flight, Some(2000));
    }

    #[test]
    fn slow_slots_pay_for_their_time() {
        assert_eq!(time_charge(16384, 23, 125), 3014);
        assert_eq!(time_charge(16384, 200, 125), 16384);
    }
}
