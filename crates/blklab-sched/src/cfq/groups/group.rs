// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups (`struct cfq_group`): which is served, and for how much of
//! the time.
//!
//! Every group has a virtual time that advances by what it is charged over its
//! weight; the group that is furthest behind is next. With one group, the
//! root, this decides nothing.

use super::Cfq;
use super::queue::QueueId;
use crate::cfq::NR_ASYNC_QUEUES;
use crate::cfq::clock::Clock;
use crate::history::ThinkTime;
use crate::rbtree::{RbNodes, RbTree};
use blklab_block::TaskTable;

/// Number of a group, that of the task table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GroupId(pub(super) u16);

impl GroupId {
    pub(super) const ROOT: GroupId = GroupId(TaskTable::ROOT_GROUP);

    pub(super) fn idx(self) -> usize {
        usize::from(self.0)
    }
}

/// Class of a workload, in the kernel's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    BestEffort,
    RealTime,
    Idle,
}

/// Type of a workload inside a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Async,
    SyncNoIdle,
    Sync,
}

impl Kind {
    pub(super) const ALL: [Kind; 3] = [Kind::Async, Kind::SyncNoIdle, Kind::Sync];
}

/// Trees of a group: three of best effort, three of real time, one of the
/// idle class.
pub(super) const NR_TREES: usize = 7;

/// Index of the tree of a workload.
pub(super) fn tree_of(class: Class, kind: Kind) -> usize {
    match class {
        Class::Idle => NR_TREES - 1,
        class => class as usize * 3 + kind as usize,
    }
}

/// A tree of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) group: GroupId,
    pub(super) tree: usize,
}

/// Think time of whatever issues requests, with the time of its last end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Think {
    pub(super) time: ThinkTime,
    pub(super) last_end: u64,
}

/// Busy queues of one workload of one group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ServiceTree {
    pub(super) queues: RbTree,
    pub(super) think: Think,
}

/// What is left of a workload when another group takes over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saved {
    pub(super) left: u64,
    pub(super) class: Class,
    pub(super) kind: Kind,
}

/// A group.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) trees: [ServiceTree; NR_TREES],
    /// Busy queues.
    pub(super) nr_queues: u32,
    /// Decaying maximum of busy queues, best effort and real time.
    pub(super) busy_average: [u32; 2],
    pub(super) saved: Option<Saved>,
    /// Requests dispatched and not completed (from 2.6.36).
    pub(super) dispatched: u32,
    pub(super) think: Think,
    /// Async queues by class and level, and that of the idle class.
    pub(super) async_queues: [Option<QueueId>; NR_ASYNC_QUEUES],
    on_tree: bool,
    vdisktime: u64,
    weight: u64,
    parent: Option<GroupId>,
    leaf_weight: u64,
    /// Active children, itself included, and the sum of their weights.
    nr_active: u32,
    children_weight: u64,
    /// Share of the device, 4096 = all.
    vfraction: u64,
}

/// Fraction bits of weights and virtual times.
const SHIFT: u32 = 12;
const WEIGHT_DEFAULT: u64 = 500;
const WEIGHT_MAX: u64 = 1000;

/// The groups of a device.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    list: Vec<Group>,
    tree: RbTree,
    nodes: RbNodes,
    /// Virtual time of the group that was last known to be first.
    min_vdisktime: u64,
    /// Sum of the weights on the tree, before there was a hierarchy.
    total_weight: u64,
    hierarchical: bool,
    weight_min: u64,
    start: u64,
}

impl std::ops::Index<GroupId> for Groups {
    type Output = Group;
    fn index(&self, id: GroupId) -> &Group {
        &self.list[id.idx()]
    }
}

impl std::ops::IndexMut<GroupId> for Groups {
    fn index_mut(&mut self, id: GroupId) -> &mut Group {
        &mut self.list[id.idx()]
    }
}

impl Groups {
    pub(super) fn new(hierarchical: bool, weight_min: u32, clock: Clock) -> Groups {
        let mut groups = Groups {
            list: Vec::new(),
            tree: RbTree::default(),
            nodes: RbNodes::default(),
            min_vdisktime: 0,
            total_weight: 0,
            hierarchical,
            weight_min: u64::from(weight_min),
            start: clock.start(),
        };
        groups.add(None, WEIGHT_MAX, WEIGHT_MAX);
        groups
    }

    fn add(&mut self, parent: Option<GroupId>, weight: u64, leaf_weight: u64) {
        let think = Think {
            last_end: self.start,
            ..Think::default()
        };
        let tree = ServiceTree {
            think,
            ..ServiceTree::default()
        };
        self.list.push(Group {
            trees: [tree; NR_TREES],
            nr_queues: 0,
            busy_average: [0; 2],
            saved: None,
            dispatched: 0,
            think,
            async_queues: [None; NR_ASYNC_QUEUES],
            on_tree: false,
            vdisktime: 0,
            weight,
            parent,
            leaf_weight,
            nr_active: 0,
            children_weight: 0,
            vfraction: 0,
        });
    }

    /// Makes the groups up to one of the task table known.
    pub(super) fn learn(&mut self, tasks: &TaskTable, id: GroupId) -> GroupId {
        while self.list.len() <= id.idx() {
            let number = self.list.len() as u16;
            let group = tasks.group(number).expect("a task's group is known");
            let weight = |w: Option<u32>| {
                w.map_or(WEIGHT_DEFAULT, u64::from)
                    .clamp(self.weight_min, WEIGHT_MAX)
            };
            let (own, leaf) = (weight(group.weight), weight(group.leaf_weight));
            self.add(Some(GroupId(group.parent)), own, leaf);
        }
        id
    }

    /// The group that is furthest behind (`cfq_get_next_cfqg`).
    pub(super) fn first(&mut self) -> Option<GroupId> {
        let first = self.tree.first()?;
        let vdisktime = self.list[first as usize].vdisktime;
        if (vdisktime.wrapping_sub(self.min_vdisktime) as i64) > 0 {
            self.min_vdisktime = vdisktime;
        }
        u16::try_from(first).ok().map(GroupId)
    }

    /// Whether `below` is `above` or lies below it.
    pub(super) fn is_descendant(&self, below: GroupId, above: GroupId) -> bool {
        let mut at = Some(below);
        while let Some(group) = at {
            if group == above {
                return true;
            }
            at = self[group].parent;
        }
        false
    }

    /// A queue of the group became busy; `delay` is the lead of the others if
    /// it was idle before (`cfq_group_notify_queue_add`).
    pub(super) fn queue_added(&mut self, id: GroupId, delay: u64) {
        self[id].nr_queues += 1;
        if self[id].on_tree {
            return;
        }
        self[id].vdisktime = match self.tree.last(&self.nodes) {
            Some(last) => self.list[last as usize].vdisktime.wrapping_add(delay),
            None => self.min_vdisktime,
        };
        self.activate(id);
    }

    /// A queue of the group is not busy any more (`cfq_group_notify_queue_del`).
    pub(super) fn queue_removed(&mut self, id: GroupId) {
        self[id].nr_queues -= 1;
        if self[id].nr_queues == 0 {
            self.deactivate(id);
            self[id].saved = None;
        }
    }

    /// The group used `charge` of the device.
    pub(super) fn charge(&mut self, id: GroupId, charge: u64) {
        if !self[id].on_tree {
            return;
        }
        let group = &self[id];
        let (num, den) = if self.hierarchical {
            (u128::from(charge) << (2 * SHIFT), group.vfraction)
        } else {
            let scaled = u128::from(charge) << SHIFT;
            (scaled * u128::from(WEIGHT_DEFAULT), group.weight)
        };
        let add = (num / u128::from(den.max(1))) as u64;
        self.deactivate(id);
        self[id].vdisktime = self[id].vdisktime.wrapping_add(add);
        self.activate(id);
    }

    /// The group's part of the target latency.
    pub(super) fn slice(&self, id: GroupId, target: u64) -> u64 {
        let group = &self[id];
        if self.hierarchical {
            target.wrapping_mul(group.vfraction) >> SHIFT
        } else {
            target.wrapping_mul(group.weight) / self.total_weight.max(1)
        }
    }

    fn activate(&mut self, id: GroupId) {
        let key = self[id].vdisktime.wrapping_sub(self.min_vdisktime) as i64;
        let (list, min) = (&self.list, self.min_vdisktime);
        self.tree
            .insert(&mut self.nodes, u32::from(id.0), (), |at| {
                key < list[at as usize].vdisktime.wrapping_sub(min) as i64
            });
        self[id].on_tree = true;
        self.total_weight += self[id].weight;
        if self.hierarchical {
            self.share(id);
        }
    }

    /// Counts the group as active along its path to the root and computes its
    /// share: at each level its weight over those of its active siblings
    /// (`cfq_group_service_tree_add`).
    fn share(&mut self, id: GroupId) {
        let group = &mut self[id];
        group.nr_active += 1;
        group.children_weight += group.leaf_weight;
        let mut newly_active = group.nr_active == 1;
        let mut share = (1_u64 << SHIFT) * group.leaf_weight / group.children_weight.max(1);
        let (mut weight, mut up) = (group.weight, group.parent);
        while let Some(id) = up {
            let parent = &mut self[id];
            if newly_active {
                parent.nr_active += 1;
                parent.children_weight += weight;
                newly_active = parent.nr_active == 1;
            }
            share = share * weight / parent.children_weight.max(1);
            weight = parent.weight;
            up = parent.parent;
        }
        self[id].vfraction = share.max(1);
    }

    fn deactivate(&mut self, id: GroupId) {
        if !std::mem::take(&mut self[id].on_tree) {
            return;
        }
        self.tree.remove(&mut self.nodes, u32::from(id.0));
        self.total_weight -= self[id].weight;
        if !self.hierarchical {
            return;
        }
        let group = &mut self[id];
        group.nr_active -= 1;
        group.children_weight -= group.leaf_weight;
        let mut inactive = group.nr_active == 0;
        let (mut weight, mut up) = (group.weight, group.parent);
        while inactive && let Some(id) = up {
            let parent = &mut self[id];
            parent.nr_active -= 1;
            parent.children_weight -= weight;
            inactive = parent.nr_active == 0;
            weight = parent.weight;
            up = parent.parent;
        }
    }
}

impl Cfq {
    /// How far behind the last group one that becomes busy starts
    /// (`CFQ_IDLE_DELAY`).
    pub(super) fn group_delay(&self) -> u64 {
        if self.clock.is_ns() && self.iops_mode() {
            self.hz / 5
        } else {
            self.clock.second() / 5
        }
    }

    /// Whether groups are charged by requests (`iops_mode`).
    pub(super) fn iops_mode(&self) -> bool {
        self.feat.iops_mode && self.set.slice_idle == 0 && self.hw_tag != 0
    }

    /// The part of the target latency that a group has (`cfq_group_slice`).
    pub(super) fn group_slice(&self, id: GroupId) -> u64 {
        self.groups.slice(id, self.set.target_latency)
    }
}
