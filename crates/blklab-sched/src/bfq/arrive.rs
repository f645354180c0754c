// SPDX-License-Identifier: MIT OR Apache-2.0
//! A request arrives: it joins its queue, which may become busy, be raised and
//! preempt the queue in service.

use super::Bfq;
use super::clock::{has_come, is_over, jiffies, now_ns};
use super::entity::Ent;
use super::expire::Reason;
use super::prio::NORM_WEIGHT;
use super::raising::Arrival;
use crate::queue_id::QueueId;
use blklab_block::mq::Core;
use blklab_block::{Cx, RqId};

/// A request of fewer sectors may leave the device idling for more.
const SMALL_SECTORS: u32 = 32;

impl Bfq {
    /// Puts a request into its queue (`bfq_insert_request`).
    pub(super) fn insert(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let (task, sector) = (q.rqs[rq].task, q.rqs[rq].sector);
        let mut id = self.of_rq.queue(rq);
        if let Some(target) = self.find_cooperator(q, cx, id, sector, task) {
            // The request moves to the end of the chain.
            self.take_allocated(target);
            self.put_allocated(id);
            self.queues[target].refs += 1;
            self.of_rq.rebind(rq, target);
            if self.context_queue(task, true) == Some(id) {
                self.redirect(q, cx, task, id, target);
            }
            self.queues[id].just_created = false;
            self.put_queue(q, cx, id);
            id = target;
        }
        self.learn(q, cx, id, rq);
        self.add_request(q, cx, id, rq);
        let kind = usize::from(q.rqs[rq].is_sync());
        let expiry = now_ns(cx).saturating_add(self.set.fifo_expire_ns[kind]);
        self.of_rq[rq].expiry_ns = expiry;
        self.of_rq[rq].waits = true;
        self.queues[id].fifo.push_back(&mut q.rqs, rq);
        self.react(q, cx, id, rq);
    }

    /// `bfq_add_request`.
    fn add_request(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId, rq: RqId) {
        let kind = usize::from(q.rqs[rq].is_sync());
        self.say(q, cx, id, format_args!("add_request {kind}"));
        let only_one = if self.feat.counts_process_requests {
            self.context(q.rqs[rq].task).requests <= 1
        } else {
            self.queues[id].is_empty()
        };
        self.queues[id].queued[kind] += 1;
        self.queued += 1;
        let sync = self.queues[id].sync;
        if sync && only_one {
            self.first_of_process(cx, id);
        }
        if sync && self.feat.intensity_by_time {
            self.update_intensity(cx, id);
        }
        let sector = q.rqs[rq].sector;
        self.queues[id].sort.insert(&mut self.nodes, rq, sector);
        let before = self.queues[id].next;
        let next = self.choose(q, before, Some(rq), self.last_position);
        self.queues[id].next = next;
        if next != before {
            self.file_position(q, cx, id);
        }
        let wr_before = self.wr(id);
        let mut interactive = false;
        if !self.queues[id].busy {
            interactive = self.become_busy(q, cx, id, rq);
        } else {
            let silent = is_over(cx, self.queues[id].raised_at + self.set.async_idle_jiffies);
            if self.set.low_latency && wr_before == 1 && kind == 0 && silent {
                self.raise_async(id);
            }
            if next != before {
                self.follow_next(q, cx, id);
            }
        }
        if self.set.low_latency && (wr_before == 1 || self.wr(id) == 1 || interactive) {
            self.queues[id].raised_at = jiffies(cx);
        }
    }

    /// The process has no other request: what wakes it, and how long its
    /// requests take alone.
    fn first_of_process(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        self.detect_waker(cx, id);
        if self.limit_is_old(cx, id, 1000) {
            self.reset_inject_limit(cx, id);
        }
        let x = &self.queues[id];
        let measurable = self.in_driver == 0 || (x.alone_ns > 0 && self.injected.any);
        if self.in_service == Some(id) && measurable && self.limit_is_old(cx, id, 10) {
            self.injected.last_empty_ns = now_ns(cx);
            self.injected.wait_dispatch = true;
            if self.in_driver == 0 {
                self.injected.any = false;
            }
        }
    }

    /// The queue was not busy. Whether it counts as interactive
    /// (`bfq_bfqq_handle_idle_busy_switch`).
    fn become_busy(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId, rq: RqId) -> bool {
        let (set, jiffy) = (self.set, jiffies(cx));
        let x = &self.queues[id];
        let (idle_since, split, dispatched) = (x.budget_timeout, x.split_time, x.dispatched);
        let long_idle = dispatched == 0 && is_over(cx, idle_since + set.min_idle_jiffies);
        let in_time = now_ns(cx) <= x.last_end_ns + 3 * set.slice_idle_ns;
        let ordinary = !self.feat.raises_only_normal_weights
            || self.ents[Ent::of_queue(id)].new_weight == NORM_WEIGHT;
        let arrival = Arrival {
            interactive: !x.in_large_burst && long_idle && ordinary,
            in_burst: x.in_large_burst,
            soft_rt: !x.is_totally_seeky()
                && !x.in_large_burst
                && is_over(cx, x.soft_rt_next)
                && dispatched == 0
                && ordinary,
        };
        let alone = x.owner.is_some()
            || (self.feat.stable_merge && self.context(q.rqs[rq].task).stably_merged);
        let deserves = set.low_latency
            && (self.wr(id) > 1 || (x.sync && alone && (arrival.interactive || arrival.soft_rt)));

        let preempts = self.budget_for_activation(q, id, in_time);
        let leaves_burst = long_idle && is_over(cx, idle_since + set.ms(10_000));
        if !self.queues[id].just_created && leaves_burst {
            self.leave_burst_list(id);
            self.queues[id].in_large_burst = false;
        }
        self.queues[id].just_created = false;
        if !self.feat.intensity_by_time {
            self.count_in_time(id, in_time);
        }
        if set.low_latency {
            if split > jiffy {
                self.queues[id].split_time = jiffy - set.min_idle_jiffies - 1;
            }
            if is_over(cx, self.queues[id].split_time + set.min_idle_jiffies) {
                self.update_raising(cx, id, deserves, arrival);
            }
        }
        let x = &mut self.queues[id];
        x.busy_since = jiffy;
        x.service_busy = 0;
        x.soft_rt_update = false;
        self.enter_busy(q, cx, id);
        self.consider_preemption(q, cx, id, preempts);
        arrival.interactive
    }

    /// What came back in time goes on with the rest of its budget, and may
    /// preempt (`bfq_bfqq_update_budg_for_activation`).
    fn budget_for_activation(&mut self, q: &Core, id: QueueId, in_time: bool) -> bool {
        let ent = Ent::of_queue(id);
        let left = self.ents[ent].budget_left();
        let max = self.queues[id].max_budget;
        if self.queues[id].keeps_budget && in_time && left > 0 {
            let e = &mut self.ents[ent];
            e.budget = left.min(max);
            e.service = 0;
            return true;
        }
        let charge = self.queues[id]
            .next
            .map_or(0, |next| self.charge(q, id, next));
        let e = &mut self.ents[ent];
        e.service = 0;
        e.budget = max.max(charge);
        self.queues[id].keeps_budget = false;
        false
    }

    fn consider_preemption(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId, wants: bool) {
        let Some(served) = self.in_service else {
            return;
        };
        let may = (wants && self.wr(id) >= self.wr(served))
            || self.is_higher(id, served)
            || (self.feat.arrival_ends_useless_idling && !self.is_better_to_idle(served));
        let root = &self.groups[super::group_id::GroupId::ROOT].sched;
        if may && root.next != root.in_service {
            self.expire(q, cx, served, false, Reason::Preempted);
        }
    }

    /// A request of the queue that the device idles for ends the idling, unless
    /// it is small and more are likely to come at once (`bfq_rq_enqueued`).
    fn react(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId, rq: RqId) {
        let kind = usize::from(q.rqs[rq].is_sync());
        self.queues[id].last_end_sector = q.rqs[rq].end();
        if self.in_service != Some(id) || !self.queues[id].wait_request {
            return;
        }
        let small = self.queues[id].queued[kind] == 1 && q.rqs[rq].nr_sectors < SMALL_SECTORS;
        let timed_out = has_come(cx, self.queues[id].budget_timeout);
        if small && self.idling_boosts(id) && !timed_out {
            return;
        }
        self.queues[id].wait_request = false;
        self.cancel_idle_timer(cx);
        if timed_out {
            self.expire(q, cx, id, false, Reason::BudgetTimeout);
        }
    }
}
