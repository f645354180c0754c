// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trees of busy queues: which queue stands where.
//!
//! A queue's key is the time at which it may expect its turn. Each group has a
//! tree per class and type of workload; a queue's tree is chosen when it is
//! sorted, so a change of type shows at the next sorting.

use super::Cfq;
use super::group::{Class, GroupId, Kind, Place, ServiceTree, tree_of};
use super::queue::{Queue, QueueId};
use crate::cfq::SYNC;
use blklab_block::Cx;
use blklab_block::sq::Core;
use blklab_types::PrioClass;

impl Queue {
    pub(super) fn class(&self) -> Class {
        match self.prio.now.class {
            PrioClass::Idle => Class::Idle,
            PrioClass::RealTime => Class::RealTime,
            _ => Class::BestEffort,
        }
    }

    pub(super) fn kind(&self) -> Kind {
        match (self.sync, self.idle_window) {
            (false, _) => Kind::Async,
            (true, false) => Kind::SyncNoIdle,
            (true, true) => Kind::Sync,
        }
    }
}

impl Cfq {
    pub(super) fn tree(&self, place: Place) -> &ServiceTree {
        &self.groups[place.group].trees[place.tree]
    }

    pub(super) fn tree_mut(&mut self, place: Place) -> &mut ServiceTree {
        &mut self.groups[place.group].trees[place.tree]
    }

    /// The tree a queue belongs to by what it is now.
    pub(super) fn place_of(&self, id: QueueId) -> Place {
        let queue = &self.queues[id];
        Place {
            group: queue.group,
            tree: tree_of(queue.class(), queue.kind()),
        }
    }

    pub(super) fn leftmost(&self, place: Place) -> Option<QueueId> {
        self.tree(place).queues.first().map(QueueId)
    }

    fn key_before(&self, a: u64, b: u64) -> bool {
        self.clock.before(a, b)
    }

    /// Length of a slice by level: a fifth of the base more or less per level
    /// (`cfq_prio_slice`).
    pub(super) fn prio_slice(&self, sync: bool, level: u8) -> u64 {
        let base = self.set.slice[usize::from(sync)];
        let steps = 4_i64 - i64::from(level);
        base.wrapping_add((base / 5).wrapping_mul(steps as u64))
    }

    /// How much later a queue's turn comes than that of the best level
    /// (`cfq_slice_offset`).
    fn slice_offset(&self, id: QueueId) -> u64 {
        let queue = &self.queues[id];
        let best = self.prio_slice(true, 0);
        let own = self.prio_slice(queue.sync, queue.prio.now.level);
        let others = u64::from(self.groups[queue.group].nr_queues).wrapping_sub(1);
        others.wrapping_mul(best.wrapping_sub(own))
    }

    /// Key of a queue in `place`, which uses up what was left of its slice.
    fn new_key(&mut self, cx: &Cx<'_>, id: QueueId, place: Place, front: bool) -> u64 {
        let now = self.clock.now(cx);
        if self.queues[id].prio.is_idle_class() {
            let last = self.tree(place).queues.last(&self.service_nodes);
            let last = last.filter(|&n| n != id.0 && self.feat.idle_class_queues_up);
            let from = last.map_or(now, |n| self.queues[QueueId(n)].rb_key);
            return from.wrapping_add(self.clock.second() / 5);
        }
        if front {
            let first = self.leftmost(place);
            let from = first.map_or(now, |first| self.queues[first].rb_key);
            return from.wrapping_sub(self.clock.second());
        }
        let offset = self.slice_offset(id);
        let residual = std::mem::take(&mut self.queues[id].slice_resid);
        offset.wrapping_add(now).wrapping_sub(residual as u64)
    }

    /// Puts a busy queue where it belongs, or first with `front`
    /// (`cfq_service_tree_add`).
    pub(super) fn service_tree_add(&mut self, cx: &Cx<'_>, id: QueueId, front: bool) {
        let moved = self.isolate(id);
        let place = self.place_of(id);
        let key = self.new_key(cx, id, place, front);
        let old = self.queues[id].filed;
        if old.is_some() {
            if old == Some(place) && key == self.queues[id].rb_key {
                return;
            }
            self.remove_from_tree(id);
        }
        let mut tree = self.tree(place).queues;
        let mut nodes = std::mem::take(&mut self.service_nodes);
        tree.insert(&mut nodes, id.0, (), |at| {
            self.key_before(key, self.queues[QueueId(at)].rb_key)
        });
        self.service_nodes = nodes;
        self.tree_mut(place).queues = tree;
        let queue = &mut self.queues[id];
        queue.rb_key = key;
        queue.filed = Some(place);
        if (old.is_none() && !front) || moved {
            let delay = self.group_delay();
            self.groups.queue_added(place.group, delay);
        }
    }

    fn remove_from_tree(&mut self, id: QueueId) {
        if let Some(place) = self.queues[id].filed.take() {
            let tree = &mut self.groups[place.group].trees[place.tree];
            tree.queues.remove(&mut self.service_nodes, id.0);
        }
    }

    /// Without group isolation, sync queues without idling are served in the
    /// root group and go back when CFQ idles for them again. True if the
    /// queue changed its group (`cfq_service_tree_add`).
    fn isolate(&mut self, id: QueueId) -> bool {
        if self.set.group_isolation {
            return false;
        }
        let queue = &self.queues[id];
        let target = match (queue.kind(), queue.isolated_from) {
            (Kind::SyncNoIdle, _) if queue.group != GroupId::ROOT => GroupId::ROOT,
            (Kind::Sync, Some(own)) => own,
            _ => return false,
        };
        let was_sorted = queue.filed.is_some();
        let old = queue.group;
        if was_sorted {
            self.remove_from_tree(id);
            self.groups.queue_removed(old);
        }
        let queue = &mut self.queues[id];
        queue.isolated_from = (target == GroupId::ROOT).then_some(old);
        queue.group = target;
        was_sorted
    }

    /// A queue has something to dispatch (`cfq_add_cfqq_rr`).
    pub(super) fn add_queue_rr(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId) {
        self.say(q, cx, id, format_args!("add_to_rr"));
        self.queues[id].on_rr = true;
        self.busy_queues += 1;
        self.busy_sync_queues += u32::from(self.queues[id].sync);
        self.resort(q, cx, id);
    }

    /// A queue has nothing more to dispatch and its slice is over
    /// (`cfq_del_cfqq_rr`).
    pub(super) fn del_queue_rr(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId) {
        self.say(q, cx, id, format_args!("del_from_rr"));
        self.queues[id].on_rr = false;
        let group = self.queues[id].group;
        self.remove_from_tree(id);
        self.unfile_position(id);
        self.groups.queue_removed(group);
        assert!(self.busy_queues > 0, "a queue that stops being busy was");
        self.busy_queues -= 1;
        self.busy_sync_queues -= u32::from(self.queues[id].sync);
    }

    /// Sorts a queue anew if it is busy (`cfq_resort_rr_list`).
    pub(super) fn resort(&mut self, q: &Core, cx: &Cx<'_>, id: QueueId) {
        if self.queues[id].on_rr {
            self.service_tree_add(cx, id, false);
            self.file_position(q, id);
        }
    }

    /// Busy queues of a class in a group (`cfq_group_busy_queues_wl`).
    pub(super) fn nr_of_class(&self, group: GroupId, class: Class) -> u32 {
        let trees = &self.groups[group].trees;
        match class {
            Class::Idle => trees[tree_of(class, Kind::Async)].queues.len(),
            class => {
                let counts = Kind::ALL.map(|kind| trees[tree_of(class, kind)].queues.len());
                counts.iter().sum()
            }
        }
    }

    /// Busy async queues of a group, the idle class left out
    /// (`cfqg_busy_async_queues`).
    pub(super) fn nr_async(&self, group: GroupId) -> u32 {
        let trees = &self.groups[group].trees;
        trees[tree_of(Class::RealTime, Kind::Async)].queues.len()
            + trees[tree_of(Class::BestEffort, Kind::Async)].queues.len()
    }

    /// The base of sync slices, never 0.
    pub(super) fn sync_slice(&self) -> u64 {
        self.set.slice[SYNC].max(1)
    }
}
