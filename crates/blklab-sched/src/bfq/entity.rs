// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is scheduled: entities, that is queues and groups, and the service
//! trees they are in.

use super::clock::{Jiffy, LONG_AGO};
use super::group_id::GroupId;
use crate::queue_id::QueueId;
use crate::rbtree::{Low, RbTree};
use blklab_types::IdVec;
use std::ops::{Index, IndexMut};

/// Classes, best first.
pub(super) const RT: usize = 0;
pub(super) const BE: usize = 1;
pub(super) const IDLE: usize = 2;

/// Number of an entity: queues have even numbers, groups odd ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ent(pub(super) u32);

blklab_types::impl_id!(Ent(u32));

impl Ent {
    pub(super) fn of_queue(id: QueueId) -> Ent {
        Ent(id.0 * 2)
    }

    pub(super) fn of_group(id: GroupId) -> Ent {
        Ent(u32::from(id.0) * 2 + 1)
    }

    pub(super) fn queue(self) -> Option<QueueId> {
        self.0.is_multiple_of(2).then_some(QueueId(self.0 / 2))
    }

    pub(super) fn group(self) -> Option<GroupId> {
        (!self.0.is_multiple_of(2)).then_some(GroupId((self.0 / 2) as u16))
    }
}

/// A virtual time: sectors per unit of weight, in units of 2^-22. Compared by
/// the sign of the difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct VTime(pub(super) u64);

/// Bits behind the point of a virtual time.
const SHIFT: u32 = 22;

impl VTime {
    /// Whether `self` is later (`bfq_gt`).
    pub(super) fn is_after(self, other: VTime) -> bool {
        (self.0.wrapping_sub(other.0) as i64) > 0
    }

    pub(super) fn plus(self, span: u64) -> VTime {
        VTime(self.0.wrapping_add(span))
    }

    pub(super) fn since(self, earlier: VTime) -> u64 {
        self.0.wrapping_sub(earlier.0)
    }
}

impl Low for VTime {
    fn lower(self, other: VTime) -> VTime {
        if self.is_after(other) { other } else { self }
    }
}

/// Virtual time that `service` sectors take at a weight (`bfq_delta`).
pub(super) fn span(service: i64, weight: u64) -> u64 {
    ((service as u64) << SHIFT) / weight
}

/// Tree that an entity is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filed {
    No,
    /// Among those with requests.
    Active,
    /// Among those that got more than their due and went.
    Idle,
}

/// A queue or a group, as its parent schedules it (`struct bfq_entity`).
#[derive(Clone, Debug)]
pub(super) struct Entity {
    pub(super) start: VTime,
    pub(super) finish: VTime,
    /// Sectors it may use in its slot, and has used.
    pub(super) budget: i64,
    pub(super) service: i64,
    /// Weight in force, raised and not, and the one to come.
    pub(super) weight: u32,
    pub(super) orig_weight: u32,
    pub(super) new_weight: u32,
    /// Weight or class are to be looked at at the next insertion.
    pub(super) prio_changed: bool,
    pub(super) class: usize,
    pub(super) new_class: usize,
    /// Factor on the weight: above 1 it is raised (`wr_coeff`).
    pub(super) wr: u32,
    /// The tree it is in (`tree`).
    pub(super) filed: Filed,
    /// In a tree or in service, so its weight is in the sum (`on_st_or_in_serv`).
    pub(super) on_st: bool,
    /// The group it belongs to.
    pub(super) parent: GroupId,
    /// Weight by which it is counted among the weights in use.
    pub(super) counted: Option<u32>,
    /// Counted among what has pending requests.
    pub(super) pending: bool,
    /// Requests allocated for it and below.
    pub(super) allocated: u32,
}

impl Entity {
    pub(super) fn new(parent: GroupId, weight: u32, class: usize) -> Entity {
        Entity {
            start: VTime::default(),
            finish: VTime::default(),
            budget: 0,
            service: 0,
            weight,
            orig_weight: weight,
            new_weight: weight,
            prio_changed: false,
            class,
            new_class: class,
            wr: 1,
            filed: Filed::No,
            on_st: false,
            parent,
            counted: None,
            pending: false,
            allocated: 0,
        }
    }

    /// `bfq_bfqq_budget_left`.
    pub(super) fn budget_left(&self) -> i64 {
        self.budget - self.service
    }
}

/// All entities of a device, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Entities {
    slots: IdVec<Ent, Option<Entity>>,
}

impl Entities {
    pub(super) fn put(&mut self, id: Ent, entity: Entity) {
        *self.slots.entry(id) = Some(entity);
    }
}

impl Index<Ent> for Entities {
    type Output = Entity;
    fn index(&self, id: Ent) -> &Entity {
        self.slots[id].as_ref().expect("a live entity")
    }
}

impl IndexMut<Ent> for Entities {
    fn index_mut(&mut self, id: Ent) -> &mut Entity {
        self.slots[id].as_mut().expect("a live entity")
    }
}

/// The trees of one class in one group (`struct bfq_service_tree`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ServiceTree {
    pub(super) vtime: VTime,
    /// Sum of the weights of what is active, in service or in the idle tree.
    pub(super) wsum: u64,
    /// By finish time.
    pub(super) active: RbTree,
    pub(super) idle: RbTree,
}

/// How a group shares its service among its children (`struct bfq_sched_data`).
#[derive(Clone, Debug)]
pub(super) struct Sched {
    pub(super) trees: [ServiceTree; 3],
    pub(super) in_service: Option<Ent>,
    /// The child to be served next.
    pub(super) next: Option<Ent>,
    /// When the idle class was looked at last.
    pub(super) last_idle_class: Jiffy,
}

impl Sched {
    pub(super) fn new() -> Sched {
        Sched {
            trees: [ServiceTree::default(); 3],
            in_service: None,
            next: None,
            last_idle_class: LONG_AGO,
        }
    }
}
