// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups on this device.

use super::Bfq;
use super::entity::{BE, Ent, Entity, Sched};
use super::group_id::GroupId;
use crate::queue_id::QueueId;
use blklab_block::Cx;
use blklab_types::IdVec;
use std::ops::{Index, IndexMut};

/// Weight of a group that was given none, and the range of weights.
const DEFAULT_WEIGHT: u32 = 100;
pub(super) const WEIGHTS: (u32, u32) = (1, 1000);

/// Async queues: eight levels of two classes, and the idle class.
pub(super) const SHARED_QUEUES: usize = 17;

/// A group with I/O on this device.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) sched: Sched,
    /// Async queues of its processes.
    pub(super) shared: [Option<QueueId>; SHARED_QUEUES],
    /// The sync queue that new ones may be merged with.
    pub(super) last_created: Option<QueueId>,
    /// Children in active trees.
    pub(super) nr_active: u32,
    /// Queues with requests, waiting or at the device (6.2).
    pub(super) nr_pending: u32,
}

impl Group {
    fn new() -> Group {
        Group {
            sched: Sched::new(),
            shared: [None; SHARED_QUEUES],
            last_created: None,
            nr_active: 0,
            nr_pending: 0,
        }
    }
}

/// The groups of a device, by number.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    slots: IdVec<GroupId, Option<Group>>,
}

impl Groups {
    pub(super) fn new() -> Groups {
        let mut slots = IdVec::default();
        *slots.entry(GroupId::ROOT) = Some(Group::new());
        Groups { slots }
    }
}

impl Index<GroupId> for Groups {
    type Output = Group;
    fn index(&self, id: GroupId) -> &Group {
        self.slots[id].as_ref().expect("a live group")
    }
}

impl IndexMut<GroupId> for Groups {
    fn index_mut(&mut self, id: GroupId) -> &mut Group {
        self.slots[id].as_mut().expect("a live group")
    }
}

impl Bfq {
    /// Makes sure that a group and those above it are known here (`bfq_bio_bfqg`).
    pub(super) fn enter_group(&mut self, cx: &Cx<'_>, number: u16) -> GroupId {
        let Some(found) = cx.tasks.group(number) else {
            return GroupId::ROOT;
        };
        let id = GroupId(number);
        if self.groups.slots.get(id).is_some_and(Option::is_some) {
            return id;
        }
        let (parent, weight) = (found.parent, found.weight.unwrap_or(DEFAULT_WEIGHT));
        let parent = self.enter_group(cx, parent);
        *self.groups.slots.entry(id) = Some(Group::new());
        let weight = weight.clamp(WEIGHTS.0, WEIGHTS.1);
        self.ents
            .put(Ent::of_group(id), Entity::new(parent, weight, BE));
        id
    }

    /// The entity above another one; none for children of the root.
    pub(super) fn above(&self, ent: Ent) -> Option<Ent> {
        let parent = self.ents[ent].parent;
        (parent != GroupId::ROOT).then(|| Ent::of_group(parent))
    }
}
