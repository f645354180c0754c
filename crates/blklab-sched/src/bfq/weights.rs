// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether all that want service are alike: the weights of queues with
//! requests, waiting or at the device, and the groups that have some.

use super::Bfq;
use super::entity::Ent;
use super::group_id::GroupId;
use super::queue::Queue;
use crate::queue_id::QueueId;
use blklab_block::Cx;
use blklab_block::mq::Core;

/// Queues by weight; raised ones are not counted. There are a handful of
/// weights.
#[derive(Clone, Debug, Default)]
pub(super) struct Weights {
    /// Weight and number of queues, lowest weight first.
    counts: Vec<(u32, u32)>,
}

impl Weights {
    fn add(&mut self, weight: u32) {
        match self.counts.binary_search_by_key(&weight, |c| c.0) {
            Ok(at) => self.counts[at].1 += 1,
            Err(at) => self.counts.insert(at, (weight, 1)),
        }
    }

    fn take(&mut self, weight: u32) {
        if let Ok(at) = self.counts.binary_search_by_key(&weight, |c| c.0) {
            self.counts[at].1 -= 1;
            if self.counts[at].1 == 0 {
                self.counts.remove(at);
            }
        }
    }

    /// Whether they differ.
    fn is_varied(&self) -> bool {
        self.counts.len() >= 2
    }

    fn is_lowest(&self, weight: u32) -> bool {
        self.counts.first().is_some_and(|c| c.0 == weight)
    }
}

impl Bfq {
    pub(super) fn count_weight(&mut self, id: QueueId) {
        let e = &mut self.ents[Ent::of_queue(id)];
        if e.counted.is_none() {
            e.counted = Some(e.weight);
            self.weights.add(e.weight);
            self.queues[id].refs += 1;
        }
    }

    pub(super) fn uncount_weight(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId) {
        if let Some(weight) = self.ents[Ent::of_queue(id)].counted.take() {
            self.weights.take(weight);
            self.put_queue(q, cx, id);
        }
    }

    /// Whether queues or groups differ, so that bandwidth has to be shared out
    /// with care (`bfq_asymmetric_scenario`).
    pub(super) fn is_asymmetric(&self, id: QueueId) -> bool {
        let weight = self.ents[Ent::of_queue(id)].counted;
        let spared = self.feat.spares_lowest_weight
            && weight.is_some_and(|weight| self.weights.is_lowest(weight));
        let classes = self.busy.iter().filter(|&&n| n > 0).count();
        (self.weights.is_varied() && !spared)
            || classes > 1
            || self.pending_groups > self.feat.pending_groups_allowed()
    }

    /// A group entity becomes active: up to 6.1 it counts until a queue of it
    /// has nothing left and nothing of it is to be served.
    pub(super) fn track_group_activation(&mut self, ent: Ent) {
        if self.feat.groups_count_by_queues || ent.group().is_none() {
            return;
        }
        if !std::mem::replace(&mut self.ents[ent].pending, true) {
            self.pending_groups += 1;
        }
    }

    /// A queue without requests gets one: from 6.2 its group counts.
    pub(super) fn note_pending(&mut self, id: QueueId) {
        let ent = Ent::of_queue(id);
        if !self.feat.groups_count_by_queues || std::mem::replace(&mut self.ents[ent].pending, true)
        {
            return;
        }
        let group = &mut self.groups[self.ents[ent].parent];
        group.nr_pending += 1;
        if group.nr_pending == 1 {
            self.pending_groups += 1;
        }
    }

    pub(super) fn unnote_pending(&mut self, id: QueueId) {
        let ent = Ent::of_queue(id);
        if !std::mem::take(&mut self.ents[ent].pending) {
            return;
        }
        let group = &mut self.groups[self.ents[ent].parent];
        assert!(group.nr_pending > 0, "a pending queue was counted");
        group.nr_pending -= 1;
        if group.nr_pending == 0 {
            self.pending_groups -= 1;
        }
    }

    /// A queue has neither waiting nor outstanding requests any more.
    pub(super) fn forget_pending(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId) {
        if self.feat.groups_count_by_queues {
            self.unnote_pending(id);
        } else {
            self.untrack_groups(id);
        }
        self.uncount_weight(q, cx, id);
    }

    fn untrack_groups(&mut self, id: QueueId) {
        let mut at = self.above(Ent::of_queue(id));
        while let Some(ent) = at {
            let inner = ent.group().unwrap_or(GroupId::ROOT);
            let s = &self.groups[inner].sched;
            if s.next.is_some() || s.in_service.is_some() {
                break;
            }
            if std::mem::take(&mut self.ents[ent].pending) {
                self.pending_groups -= 1;
            }
            at = self.above(ent);
        }
    }

    /// A queue has its first request, or is found to have one again.
    pub(super) fn enter_busy(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId) {
        self.say(q, cx, id, format_args!("add to busy"));
        self.activate_queue(q, cx, id);
        let ent = Ent::of_queue(id);
        self.queues[id].busy = true;
        let class = self.ents[ent].class;
        self.busy[class] = self.busy[class].wrapping_add(1);
        if self.queues[id].dispatched == 0 {
            self.note_pending(id);
            if self.wr(id) == 1 {
                self.count_weight(id);
            }
        }
        if self.wr(id) > 1 {
            self.wr_busy += 1;
        }
        if let Some(waker) = self.queues[id].waker
            && self.woken_links.holds(id)
        {
            let Queue { woken, .. } = &mut self.queues[waker];
            woken.remove(&mut self.woken_links, id);
            woken.push(&mut self.woken_links, id);
        }
    }

    /// A queue has no request and no place any more.
    pub(super) fn leave_busy(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId, expires: bool) {
        self.say(q, cx, id, format_args!("del from busy"));
        let class = self.ents[Ent::of_queue(id)].class;
        self.queues[id].busy = false;
        self.busy[class] = self.busy[class].wrapping_sub(1);
        if self.wr(id) > 1 {
            self.wr_busy -= 1;
        }
        self.deactivate_queue(q, cx, id, true, expires);
        if self.queues[id].dispatched == 0 {
            self.forget_pending(q, cx, id);
        }
    }
}
