// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which entity is next, from the root group down: activation, repositioning
//! and deactivation with their consequences for the groups above, and service.
//! Source: block/bfq-wf2q.c.

use super::Bfq;
use super::clock::{jiffies, now_ns};
use super::entity::{Ent, Filed, IDLE, RT, span};
use super::group_id::GroupId;
use crate::queue_id::QueueId;
use blklab_block::Cx;
use blklab_block::mq::Core;

impl Bfq {
    /// An entity that is neither active nor in service becomes active. What
    /// kept its budget goes on where it stopped, if that is behind.
    fn activate_entity(&mut self, q: &mut Core, cx: &mut Cx<'_>, ent: Ent, keeps_budget: bool) {
        let vtime = self.st(ent).vtime;
        let shifted_back = keeps_budget && vtime.is_after(self.ents[ent].finish);
        let base = if shifted_back {
            self.ents[ent].finish
        } else {
            vtime
        };
        if self.ents[ent].filed == Filed::Idle {
            self.leave_idle(ent);
            let e = &mut self.ents[ent];
            e.start = if e.finish.is_after(base) {
                e.finish
            } else {
                base
            };
        } else {
            self.ents[ent].start = base;
            let weight = u64::from(self.ents[ent].weight);
            self.st_mut(ent).wsum += weight;
            self.ents[ent].on_st = true;
            if let Some(id) = ent.queue() {
                self.queues[id].refs += 1;
                let refs = self.queues[id].refs;
                self.say(q, cx, id, format_args!("get_entity: {} {refs}", super::PTR));
            }
        }
        self.track_group_activation(ent);
        self.enqueue(q, cx, ent, shifted_back);
    }

    /// An active entity, or the one in service, gets a new place.
    fn requeue_entity(&mut self, q: &mut Core, cx: &mut Cx<'_>, ent: Ent) {
        let e = &self.ents[ent];
        let (parent, service, filed) = (e.parent, e.service, e.filed);
        if self.groups[parent].sched.in_service == Some(ent) {
            self.set_finish(q, cx, ent, service);
            let e = &mut self.ents[ent];
            e.start = e.finish;
            if filed == Filed::Active {
                self.leave_active(ent);
            }
        } else {
            self.leave_active(ent);
        }
        self.enqueue(q, cx, ent, false);
    }

    fn place_entity(&mut self, q: &mut Core, cx: &mut Cx<'_>, ent: Ent, keeps_budget: bool) {
        let e = &self.ents[ent];
        let in_service = self.groups[e.parent].sched.in_service == Some(ent);
        if in_service || e.filed == Filed::Active {
            self.requeue_entity(q, cx, ent);
        } else {
            self.activate_entity(q, cx, ent, keeps_budget);
        }
    }

    /// Places an entity and, as far as they change, the groups above it; all
    /// of them if it was in service.
    fn place(
        &mut self,
        q: &mut Core,
        cx: &mut Cx<'_>,
        ent: Ent,
        keeps_budget: bool,
        was_served: bool,
        expires: bool,
    ) {
        let mut at = Some(ent);
        while let Some(ent) = at {
            self.place_entity(q, cx, ent, keeps_budget);
            let group = self.ents[ent].parent;
            if !self.update_next(q, cx, group, Some(ent), expires) && !was_served {
                break;
            }
            at = self.above(ent);
        }
    }

    /// A queue becomes active.
    pub(super) fn activate_queue(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId) {
        let keeps = std::mem::take(&mut self.queues[id].keeps_budget);
        self.place(q, cx, Ent::of_queue(id), keeps, false, false);
    }

    /// An active queue, or the one in service, gets a new place.
    pub(super) fn requeue_queue(
        &mut self,
        q: &mut Core,
        cx: &mut Cx<'_>,
        id: QueueId,
        expires: bool,
    ) {
        let was_served = self.in_service == Some(id);
        self.place(q, cx, Ent::of_queue(id), false, was_served, expires);
    }

    /// Takes an entity out of the active ones or of service; false if it was
    /// in neither.
    fn deactivate_entity(
        &mut self,
        q: &mut Core,
        cx: &mut Cx<'_>,
        ent: Ent,
        may_idle: bool,
    ) -> bool {
        if !self.ents[ent].on_st {
            return false;
        }
        let (parent, service) = (self.ents[ent].parent, self.ents[ent].service);
        let in_service = self.groups[parent].sched.in_service == Some(ent);
        self.set_finish(q, cx, ent, service);
        if in_service {
            self.groups[parent].sched.in_service = None;
        } else {
            self.ents[ent].service = 0;
        }
        match self.ents[ent].filed {
            Filed::Active => self.leave_active(ent),
            Filed::Idle if !in_service => self.leave_idle(ent),
            _ => {}
        }
        if may_idle && self.ents[ent].finish.is_after(self.st(ent).vtime) {
            self.enter_idle(ent);
        } else {
            self.forget(q, cx, ent, in_service);
        }
        true
    }

    /// A queue leaves the active ones, and with it the groups that have no
    /// other child to serve.
    pub(super) fn deactivate_queue(
        &mut self,
        q: &mut Core,
        cx: &mut Cx<'_>,
        id: QueueId,
        mut may_idle: bool,
        expires: bool,
    ) {
        let mut at = Some(Ent::of_queue(id));
        while let Some(ent) = at {
            let (group, above) = (self.ents[ent].parent, self.above(ent));
            if !self.deactivate_entity(q, cx, ent, may_idle) {
                return;
            }
            if self.groups[group].sched.next == Some(ent) {
                self.update_next(q, cx, group, None, expires);
            }
            at = above;
            let s = &self.groups[group].sched;
            if s.next.is_some() || s.in_service.is_some() {
                break;
            }
            may_idle = true;
        }
        while let Some(ent) = at {
            self.requeue_entity(q, cx, ent);
            let group = self.ents[ent].parent;
            if !self.update_next(q, cx, group, Some(ent), expires) && !expires {
                break;
            }
            at = self.above(ent);
        }
    }

    /// Looks again for the next child of a group, where `changed` may have
    /// become it. Whether the group's own place may have to change.
    fn update_next(
        &mut self,
        q: &mut Core,
        cx: &mut Cx<'_>,
        group: GroupId,
        changed: Option<Ent>,
        expires: bool,
    ) -> bool {
        let before = self.groups[group].sched.next;
        let direct = match (changed, before) {
            (Some(new), None) => Some(new),
            (Some(new), Some(old)) if new != old => {
                let (n, o) = (&self.ents[new], &self.ents[old]);
                let vtime = self.groups[group].sched.trees[n.class].vtime;
                let wins =
                    n.class == o.class && !n.start.is_after(vtime) && o.finish.is_after(n.finish);
                wins.then_some(new)
            }
            _ => None,
        };
        let next = match direct {
            Some(new) => Some(new),
            None => self.look_up_next(q, cx, group, expires),
        };
        let mut changes = false;
        if let Some(next) = next {
            let shrank = self.set_group_budget(group, self.ents[next].budget);
            changes = before.is_none() || shrank;
        }
        self.groups[group].sched.next = next;
        changes
    }

    /// A group asks for what its next child asks for. Whether that is less
    /// than before.
    fn set_group_budget(&mut self, group: GroupId, budget: i64) -> bool {
        if group == GroupId::ROOT {
            return false;
        }
        let e = &mut self.ents[Ent::of_group(group)];
        std::mem::replace(&mut e.budget, budget) > budget
    }

    /// The child that is next by class and finish time. Every fifth of a second
    /// the idle class is looked at first.
    fn look_up_next(
        &mut self,
        q: &mut Core,
        cx: &mut Cx<'_>,
        group: GroupId,
        expires: bool,
    ) -> Option<Ent> {
        let mut from = RT;
        let s = &mut self.groups[group].sched;
        if jiffies(cx) > s.last_idle_class + self.set.idle_class_jiffies {
            if s.trees[IDLE].active.root().is_some() {
                from = IDLE;
            }
            s.last_idle_class = jiffies(cx);
        }
        let frozen = s.in_service.is_some() && !expires;
        for class in from..=IDLE {
            let t = self.groups[group].sched.trees[class];
            if t.active.root().is_none() {
                continue;
            }
            let limit = self.vtime_jump(&t);
            if !frozen && limit.is_after(t.vtime) {
                self.groups[group].sched.trees[class].vtime = limit;
                self.forget_idle(q, cx, group, class);
            }
            return self.first_eligible(&t, limit);
        }
        None
    }

    /// Puts the next queue into service, with the groups above it.
    pub(super) fn take_next(&mut self, q: &mut Core, cx: &mut Cx<'_>) -> Option<QueueId> {
        if self.nr_busy() == 0 {
            return None;
        }
        let mut group = GroupId::ROOT;
        let ent = loop {
            let ent = self.groups[group].sched.next?;
            self.groups[group].sched.in_service = Some(ent);
            let Some(inner) = ent.group() else {
                self.leave_active(ent);
                break ent;
            };
            // A group with other active children stays, so that it may be next
            // again.
            if self.groups[inner].nr_active == 1 {
                self.leave_active(ent);
            }
            group = inner;
        };
        let mut at = Some(ent);
        while let Some(e) = at {
            let group = self.ents[e].parent;
            if !self.update_next(q, cx, group, None, false) {
                break;
            }
            at = self.above(e);
        }
        ent.queue()
    }

    /// A queue got service.
    pub(super) fn served(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId, sectors: i64) {
        let raised = self.wr(id) > 1;
        let x = &mut self.queues[id];
        if x.service_busy == 0 {
            x.first_io = jiffies(cx);
        }
        if raised {
            x.service_raised += sectors;
        }
        x.service_busy += sectors;
        let mut at = Some(Ent::of_queue(id));
        while let Some(ent) = at {
            self.ents[ent].service += sectors;
            let (group, class) = (self.ents[ent].parent, self.ents[ent].class);
            let t = self.st_mut(ent);
            t.vtime = t.vtime.plus(span(sectors, t.wsum));
            self.forget_idle(q, cx, group, class);
            at = self.above(ent);
        }
        self.say(q, cx, id, format_args!("bfqq_served {sectors} secs"));
    }

    /// Nothing is in service any more. Whether the queue is gone.
    pub(super) fn end_service(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId) -> bool {
        self.queues[id].wait_request = false;
        self.cancel_idle_timer(cx);
        self.in_service = None;
        let mut at = Some(Ent::of_queue(id));
        while let Some(ent) = at {
            let group = self.ents[ent].parent;
            self.groups[group].sched.in_service = None;
            at = self.above(ent);
        }
        if self.ents[Ent::of_queue(id)].on_st {
            return false;
        }
        self.put_queue(q, cx, id)
    }

    /// Whether a queue goes before another one: by class, then by weight, or by
    /// the weights of their groups.
    pub(super) fn is_higher(&self, a: QueueId, b: QueueId) -> bool {
        let (x, y) = (Ent::of_queue(a), Ent::of_queue(b));
        let (ex, ey) = (&self.ents[x], &self.ents[y]);
        if ex.class != ey.class {
            return ex.class < ey.class;
        }
        if ex.parent == ey.parent {
            return ex.weight > ey.weight;
        }
        let weight = |ent: Ent| self.ents[self.above(ent).unwrap_or(ent)].weight;
        weight(x) > weight(y)
    }

    /// Busy queues of all classes.
    pub(super) fn nr_busy(&self) -> u32 {
        self.busy.iter().fold(0, |sum, &n| sum.wrapping_add(n))
    }

    /// Factor on a queue's weight.
    pub(super) fn wr(&self, id: QueueId) -> u32 {
        self.ents[Ent::of_queue(id)].wr
    }

    /// Sets the clocks of a slot that begins.
    pub(super) fn begin_slot(&mut self, q: &mut Core, cx: &mut Cx<'_>) -> Option<QueueId> {
        let next = self.take_next(q, cx);
        self.in_service = next;
        let id = next?;
        self.budgets_assigned = (self.budgets_assigned * 7 + 256) / 8;
        let jiffy = jiffies(cx);
        let soft_rt = self.queues[id].raised_for == self.set.soft_rt_jiffies;
        let wr = self.wr(id);
        let e = &self.ents[Ent::of_queue(id)];
        let (budget, factor) = (e.budget, i64::from(e.weight / e.orig_weight));
        let x = &mut self.queues[id];
        x.age_seen = false;
        if x.raised_at < jiffy && wr > 1 && soft_rt && x.budget_timeout < jiffy {
            // The time without service does not count as raised.
            if x.budget_timeout > x.raised_at {
                x.raised_at += jiffy - x.budget_timeout;
            } else {
                x.raised_at = jiffy;
            }
        }
        let factor = if soft_rt { 1 } else { factor };
        x.budget_timeout = jiffy.saturating_add(self.set.timeout_jiffies.saturating_mul(factor));
        self.slot_start_ns = now_ns(cx);
        self.in_serv_last_pos = 0;
        self.injected.sectors = 0;
        let text = format_args!("set_in_service_queue, cur-budget = {budget}");
        self.say(q, cx, id, text);
        Some(id)
    }
}
