// SPDX-License-Identifier: MIT OR Apache-2.0
//! Service trees: how entities enter and leave them, and virtual time
//! (B-WF2Q+). Source: block/bfq-wf2q.c.

use super::Bfq;
use super::entity::{Ent, Filed, ServiceTree, VTime, span};
use super::group::WEIGHTS;
use super::group_id::GroupId;
use crate::rbtree::RbTree;
use blklab_block::Cx;
use blklab_block::mq::Core;

impl Bfq {
    /// The trees of an entity's class in its group.
    pub(super) fn st(&self, ent: Ent) -> &ServiceTree {
        let e = &self.ents[ent];
        &self.groups[e.parent].sched.trees[e.class]
    }

    pub(super) fn st_mut(&mut self, ent: Ent) -> &mut ServiceTree {
        let e = &self.ents[ent];
        &mut self.groups[e.parent].sched.trees[e.class]
    }

    /// The entity finishes when it has got `service` sectors from its start.
    pub(super) fn set_finish(&mut self, q: &Core, cx: &mut Cx<'_>, ent: Ent, service: i64) {
        let e = &mut self.ents[ent];
        let delta = span(service, u64::from(e.weight));
        e.finish = e.start.plus(delta);
        let (weight, start, finish) = (e.weight, e.start.0, e.finish.0);
        if let Some(id) = ent.queue() {
            let text = format_args!("calc_finish: serv {service}, w {weight}");
            self.say(q, cx, id, text);
            let text = format_args!("calc_finish: start {start}, finish {finish}, delta {delta}");
            self.say(q, cx, id, text);
        }
    }

    /// Works on one tree by finish time.
    fn insert_by_finish(&mut self, ent: Ent, pick: fn(&mut ServiceTree) -> &mut RbTree) {
        let (finish, start) = (self.ents[ent].finish, self.ents[ent].start);
        let mut tree = *pick(self.st_mut(ent));
        let mut nodes = std::mem::take(&mut self.rb);
        tree.insert(&mut nodes, ent.0, start, |at| {
            self.ents[Ent(at)].finish.is_after(finish)
        });
        self.rb = nodes;
        *pick(self.st_mut(ent)) = tree;
    }

    fn remove_from(&mut self, ent: Ent, pick: fn(&mut ServiceTree) -> &mut RbTree) {
        let mut tree = *pick(self.st_mut(ent));
        tree.remove(&mut self.rb, ent.0);
        *pick(self.st_mut(ent)) = tree;
        self.ents[ent].filed = Filed::No;
    }

    pub(super) fn enter_active(&mut self, ent: Ent) {
        self.insert_by_finish(ent, |t| &mut t.active);
        self.ents[ent].filed = Filed::Active;
        let parent = self.ents[ent].parent;
        self.groups[parent].nr_active += 1;
        if let Some(id) = ent.queue() {
            self.active.push(&mut self.active_links, id);
        }
    }

    pub(super) fn leave_active(&mut self, ent: Ent) {
        self.remove_from(ent, |t| &mut t.active);
        let parent = self.ents[ent].parent;
        let nr_active = &mut self.groups[parent].nr_active;
        assert!(*nr_active > 0, "what leaves the active tree was in it");
        *nr_active -= 1;
        if let Some(id) = ent.queue() {
            self.active.remove(&mut self.active_links, id);
        }
    }

    pub(super) fn enter_idle(&mut self, ent: Ent) {
        self.insert_by_finish(ent, |t| &mut t.idle);
        self.ents[ent].filed = Filed::Idle;
    }

    pub(super) fn leave_idle(&mut self, ent: Ent) {
        self.remove_from(ent, |t| &mut t.idle);
    }

    /// The entity's weight leaves the sum. The queue in service is let go of
    /// when it stops being that.
    pub(super) fn forget(&mut self, q: &mut Core, cx: &mut Cx<'_>, ent: Ent, in_service: bool) {
        self.ents[ent].on_st = false;
        let weight = u64::from(self.ents[ent].weight);
        let wsum = &mut self.st_mut(ent).wsum;
        assert!(
            *wsum >= weight,
            "a weight leaves the sum that it is part of"
        );
        *wsum -= weight;
        if let Some(id) = ent.queue()
            && !in_service
        {
            self.put_queue(q, cx, id);
        }
    }

    /// An entity in the idle tree is forgotten.
    pub(super) fn drop_idle(&mut self, q: &mut Core, cx: &mut Cx<'_>, ent: Ent) {
        self.leave_idle(ent);
        self.forget(q, cx, ent, false);
    }

    /// Forgets the first entity whose time has passed; without active ones
    /// virtual time moves to the last one if that has passed.
    pub(super) fn forget_idle(
        &mut self,
        q: &mut Core,
        cx: &mut Cx<'_>,
        group: GroupId,
        class: usize,
    ) {
        let t = self.groups[group].sched.trees[class];
        let Some(first) = t.idle.first() else { return };
        let mut vtime = t.vtime;
        if t.active.root().is_none()
            && let Some(last) = t.idle.last(&self.rb)
            && !self.ents[Ent(last)].finish.is_after(vtime)
        {
            vtime = self.ents[Ent(last)].finish;
            self.groups[group].sched.trees[class].vtime = vtime;
        }
        if !self.ents[Ent(first)].finish.is_after(vtime) {
            self.drop_idle(q, cx, Ent(first));
        }
    }

    /// Puts a new weight and class in force; the class only if it may change.
    pub(super) fn apply_prio(
        &mut self,
        q: &mut Core,
        cx: &mut Cx<'_>,
        ent: Ent,
        may_change_class: bool,
    ) {
        if !self.ents[ent].prio_changed {
            return;
        }
        let old = (self.ents[ent].weight, self.ents[ent].class);
        self.st_mut(ent).wsum -= u64::from(old.0);
        let e = &mut self.ents[ent];
        e.orig_weight = e.new_weight.clamp(WEIGHTS.0, WEIGHTS.1);
        if may_change_class {
            e.class = e.new_class;
        }
        e.prio_changed = e.class != e.new_class;
        e.weight = e.orig_weight * e.wr;
        let (orig, weight, class, wr) = (e.orig_weight, e.weight, e.class, e.wr);
        if let Some(id) = ent.queue() {
            self.queues[id].level = super::prio::level_of_weight(orig);
            if weight != old.0 {
                self.uncount_weight(q, cx, id);
                if wr == 1 {
                    self.count_weight(id);
                }
            }
        }
        self.st_mut(ent).wsum += u64::from(weight);
        if class != old.1 {
            self.ents[ent].start = self.st(ent).vtime;
        }
    }

    /// Inserts an entity among the active ones with the budget it has. One that
    /// was shifted back, for having come back in time, is moved up to virtual
    /// time, a raised queue only a little.
    pub(super) fn enqueue(&mut self, q: &mut Core, cx: &mut Cx<'_>, ent: Ent, shifted_back: bool) {
        self.apply_prio(q, cx, ent, true);
        let budget = self.ents[ent].budget;
        self.set_finish(q, cx, ent, budget);
        let vtime = self.st(ent).vtime;
        let e = &mut self.ents[ent];
        if shifted_back && vtime.is_after(e.finish) {
            let delta = vtime.since(e.finish) / u64::from(e.wr);
            e.start = e.start.plus(delta);
            e.finish = e.finish.plus(delta);
        }
        self.enter_active(ent);
    }

    /// Virtual time does not stay behind the first entity that could start.
    pub(super) fn vtime_jump(&self, t: &ServiceTree) -> VTime {
        match t.active.root() {
            Some(root) if self.rb.low(root).is_after(t.vtime) => self.rb.low(root),
            _ => t.vtime,
        }
    }

    /// The entity with the smallest finish time among those that may start by
    /// `limit`. Below an entity that may not start the right branch is not
    /// searched once one was found further up, as in the kernel.
    pub(super) fn first_eligible(&self, t: &ServiceTree, limit: VTime) -> Option<Ent> {
        let (mut at, mut found) = (t.active.root(), None);
        while let Some(n) = at {
            if !self.ents[Ent(n)].start.is_after(limit) {
                found = Some(Ent(n));
            }
            let left = self.rb.child(n, 0);
            at = match left {
                Some(l) if !self.rb.low(l).is_after(limit) => left,
                _ if found.is_some() => None,
                _ => self.rb.child(n, 1),
            };
        }
        found
    }
}
