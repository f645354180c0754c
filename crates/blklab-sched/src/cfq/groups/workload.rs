// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which group, class and type of queue is served, and for how long.
//!
//! A group is served in turns of workloads: all its async queues, all sync
//! queues without idling, or all with idling. The type whose leftmost queue
//! has waited longest is next, for a time in proportion to its queues.

use super::Cfq;
use super::group::{Class, GroupId, Kind, Place, Saved, tree_of};
use super::queue::QueueId;
use crate::cfq::{ASYNC, SYNC};
use blklab_block::Cx;
use blklab_block::sq::Core;

/// What is being served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Serving {
    pub(super) group: Option<GroupId>,
    pub(super) class: Class,
    pub(super) kind: Kind,
    /// When the workload's time is over.
    pub(super) expires: u64,
    /// A request of the workload wanted idling (to 2.6.36).
    pub(super) wants_idling: bool,
}

impl Serving {
    pub(super) fn nothing(start: u64) -> Serving {
        Serving {
            group: None,
            class: Class::BestEffort,
            kind: Kind::Async,
            expires: start,
            wants_idling: false,
        }
    }

    /// The tree served.
    pub(super) fn place(&self) -> Option<Place> {
        let tree = tree_of(self.class, self.kind);
        self.group.map(|group| Place { group, tree })
    }
}

impl Cfq {
    /// Chooses group and workload for the next queue (`cfq_choose_cfqg`).
    pub(super) fn choose_workload(&mut self, q: &Core, cx: &mut Cx<'_>) {
        let now = self.clock.now(cx);
        self.serving.group = self.groups.first();
        let Some(group) = self.serving.group else {
            self.serving.class = Class::Idle;
            self.serving.expires = now.wrapping_add(self.clock.jiffy());
            return;
        };
        match self.groups[group].saved {
            Some(saved) => {
                self.serving.expires = now.wrapping_add(saved.left);
                self.serving.class = saved.class;
                self.serving.kind = saved.kind;
            }
            None => self.serving.expires = now.wrapping_sub(1),
        }
        self.choose_kind(q, cx, group, now);
    }

    /// `choose_wl_class_and_type`, before 3.9 `choose_service_tree`.
    fn choose_kind(&mut self, q: &Core, cx: &mut Cx<'_>, group: GroupId, now: u64) {
        let old_class = self.serving.class;
        let class = if self.nr_of_class(group, Class::RealTime) > 0 {
            Class::RealTime
        } else if self.nr_of_class(group, Class::BestEffort) > 0 {
            Class::BestEffort
        } else {
            self.serving.class = Class::Idle;
            self.serving.expires = now.wrapping_add(self.clock.jiffy());
            return;
        };
        self.serving.class = class;
        let tree = tree_of(class, self.serving.kind);
        let count = self.groups[group].trees[tree].queues.len();
        let new = class != old_class && self.feat.class_change_ends_workload;
        if !new && count > 0 && !self.clock.after(now, self.serving.expires) {
            return;
        }
        self.serving.kind = self.longest_waiting(group, class);
        let slice = self.workload_slice(group);
        if self.feat.long_messages {
            q.message(cx, format_args!("cfq workload slice:{slice}"));
        }
        self.serving.expires = now.wrapping_add(slice);
        self.serving.wants_idling = false;
    }

    /// The type whose leftmost queue has the smallest key
    /// (`cfq_choose_wl_type`, before 3.9 `cfq_choose_wl`).
    fn longest_waiting(&self, group: GroupId, class: Class) -> Kind {
        let mut best = (Kind::Async, None);
        for kind in Kind::ALL {
            let tree = tree_of(class, kind);
            let Some(first) = self.leftmost(Place { group, tree }) else {
                continue;
            };
            let key = self.queues[first].rb_key;
            if best.1.is_none_or(|b| self.clock.before(key, b)) {
                best = (kind, Some(key));
            }
        }
        best.0
    }

    /// How long the workload is served.
    fn workload_slice(&self, group: GroupId) -> u64 {
        let Serving { class, kind, .. } = self.serving;
        let count = self.groups[group].trees[tree_of(class, kind)].queues.len();
        let average = self.groups[group].busy_average[class as usize & 1];
        let busy = average.max(self.nr_of_class(group, class)).max(1);
        let share = self.group_slice(group).wrapping_mul(u64::from(count)) / u64::from(busy);
        let slice = if kind == Kind::Async {
            let all = self.set.target_latency;
            let part = all.wrapping_mul(u64::from(self.nr_async(group)));
            let slice = share.min(part / u64::from(self.busy_queues.max(1)));
            slice.wrapping_mul(self.set.slice[ASYNC]) / self.set.slice[SYNC].max(1)
        } else {
            share.max(self.set.slice_idle.wrapping_mul(2))
        };
        slice.max(self.clock.jiffy() * 2)
    }

    /// Keeps what is left of the workload's time for the group's next turn
    /// (`cfq_group_served`).
    pub(super) fn save_workload(&mut self, group: GroupId, now: u64) {
        let Serving {
            class,
            kind,
            expires,
            ..
        } = self.serving;
        self.groups[group].saved = self.clock.after(expires, now).then(|| Saved {
            left: expires.wrapping_sub(now),
            class,
            kind,
        });
    }

    /// The queue that is next in the workload served (`cfq_get_next_queue`).
    pub(super) fn get_next_queue(&self) -> Option<QueueId> {
        if self.rq_queued == 0 {
            return None;
        }
        self.leftmost(self.serving.place()?)
    }
}
