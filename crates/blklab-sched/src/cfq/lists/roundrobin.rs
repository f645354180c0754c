// SPDX-License-Identifier: MIT OR Apache-2.0
//! The round-robin lists: where a busy queue stands, and which is next.
//!
//! Best effort has a list per level; what is being served is in the current
//! list, together with real time; best-effort queues with requests in flight
//! and the idle class have a list each. Source: block/cfq-iosched.c of 2.6.16
//! to 2.6.20.
//!
//! Known difference: when three or more real-time queues stand in the current
//! list at a preemption that re-files it, the kernel's loop (2.6.17, 2.6.18)
//! does not end; here each queue is re-filed once.

use super::Cfq;
use super::features::Filing;
use super::queue::QueueId;
use super::sequence::{Nodes, Sequence};
use super::settings::LEVELS;
use crate::cfq::IS_BUSY;
use blklab_types::PrioClass;

/// Slot of a list in [`RoundRobin`]: it keeps its queues when it changes its
/// role.
pub(super) type Home = u8;

/// What a list is for. Levels are roles 0 to 7.
const CURRENT: usize = 8;
const BUSY: usize = 9;
const IDLE: usize = 10;
/// Holds the old current list while it is filed anew.
const SPARE: usize = 11;
const ROLES: usize = 12;

/// Value of a new queue where that decides its place; 0 if it was served.
const NEW: u64 = 1;

/// The lists and the cursor over the levels.
#[derive(Debug)]
pub(super) struct RoundRobin {
    nodes: Nodes,
    lists: [Sequence; ROLES],
    /// Slot of the list that has each role.
    slot: [Home; ROLES],
    /// Queues on all lists.
    pub(super) busy_queues: u32,
    /// Levels that are looked at next: from, and up to and including.
    cursor: u8,
    cursor_end: u8,
}

impl RoundRobin {
    pub(super) fn new() -> RoundRobin {
        RoundRobin {
            nodes: Nodes::default(),
            lists: [Sequence::default(); ROLES],
            slot: std::array::from_fn(|i| i as Home),
            busy_queues: 0,
            cursor: 0,
            cursor_end: 0,
        }
    }

    fn list(&self, role: usize) -> &Sequence {
        &self.lists[usize::from(self.slot[role])]
    }

    fn front(&self, role: usize) -> Option<QueueId> {
        self.list(role).front()
    }

    fn remove(&mut self, id: QueueId, home: Home) {
        self.lists[usize::from(home)].remove(&mut self.nodes, id);
    }

    /// The next level that has queues: 0; 0, 1; 0, 1, 2; and so on, so better
    /// levels come more often. Its list becomes the current one, which is
    /// empty. False if there is none (`cfq_get_next_prio_level`).
    fn next_level(&mut self) -> bool {
        let mut wrapped = false;
        let level = loop {
            let levels = self.cursor..=self.cursor_end;
            if let Some(p) = levels
                .into_iter()
                .find(|&p| !self.list(p.into()).is_empty())
            {
                break p;
            }
            self.cursor = 0;
            self.cursor_end += 1;
            if self.cursor_end == LEVELS {
                self.cursor_end = 0;
                if wrapped {
                    return false;
                }
                wrapped = true;
            }
        };
        self.slot.swap(usize::from(level), CURRENT);
        self.cursor = level + 1;
        if self.cursor > self.cursor_end {
            self.cursor_end = self.cursor;
            self.cursor = 0;
        }
        if self.cursor_end == LEVELS {
            (self.cursor, self.cursor_end) = (0, 0);
        }
        true
    }

    /// The next queue that is neither idle class nor, if `busy_too` does not
    /// allow it, has requests in flight.
    pub(super) fn next(&mut self, busy_too: bool) -> Option<QueueId> {
        if !self.list(CURRENT).is_empty() || self.next_level() {
            return self.front(CURRENT);
        }
        self.front(BUSY).filter(|_| busy_too)
    }

    /// The next queue of the idle class.
    pub(super) fn next_idle_class(&self) -> Option<QueueId> {
        self.front(IDLE)
    }

    /// The first queue in the order of a forced dispatch.
    pub(super) fn first_forced(&self) -> Option<QueueId> {
        let levels = 0..usize::from(LEVELS);
        let mut roles = levels.chain([BUSY, CURRENT, IDLE]);
        roles.find_map(|role| self.front(role))
    }
}

impl Cfq {
    /// A queue got its first request (`cfq_add_cfqq_rr`).
    pub(super) fn add_queue_rr(&mut self, id: QueueId) {
        self.rr.busy_queues += 1;
        self.file(id, false);
    }

    /// A queue lost its last request (`cfq_del_cfqq_rr`).
    pub(super) fn del_queue_rr(&mut self, id: QueueId) {
        let home = self.queues[id].filed.take().expect(IS_BUSY);
        self.rr.remove(id, home);
        assert!(self.rr.busy_queues > 0, "a queue that stops being busy was");
        self.rr.busy_queues -= 1;
    }

    /// Files a queue anew, if it is on a list (`cfq_resort_rr_list`).
    pub(super) fn resort(&mut self, id: QueueId, preempted: bool) {
        if let Some(home) = self.queues[id].filed.take() {
            self.rr.remove(id, home);
            self.file(id, preempted);
        }
    }

    /// Files a queue that is on no list.
    fn file(&mut self, id: QueueId, preempted: bool) {
        let queue = &self.queues[id];
        let role = match queue.prio.now.class {
            PrioClass::RealTime => CURRENT,
            PrioClass::Idle => IDLE,
            _ if queue.nr_on_dispatch() > 0 => BUSY,
            _ => usize::from(queue.prio.now.level.min(LEVELS - 1)),
        };
        let home = self.rr.slot[role];
        let value = match self.feat.filing {
            Filing::NewFirst => u64::from(queue.is_new),
            Filing::ServiceHead | Filing::ServiceBeforeLast => queue.service_last,
        };
        let jumps = preempted || queue.is_new;
        let list = &mut self.rr.lists[usize::from(home)];
        let nodes = &mut self.rr.nodes;
        match self.feat.filing {
            Filing::NewFirst if jumps => {
                // The last of the new ones in front, if there is any.
                let before = match list.first_below(nodes, NEW) {
                    Some(served) => nodes.prev(served),
                    None => list.back(),
                };
                list.insert_before(nodes, before, id, value);
            }
            Filing::NewFirst => list.push_back(nodes, id, value),
            Filing::ServiceHead if preempted || role == BUSY => list.push_front(nodes, id, value),
            Filing::ServiceBeforeLast if preempted => {
                let last = list.back();
                list.insert_before(nodes, last, id, value);
            }
            Filing::ServiceBeforeLast if role == BUSY => list.push_back(nodes, id, value),
            _ => {
                // Behind the last that was served before it, or never.
                let after = list.last_below(nodes, value.max(1));
                list.insert_after(nodes, after, id, value);
            }
        }
        self.queues[id].filed = Some(home);
    }

    /// Files everything in the current list as preempted.
    pub(super) fn refile_current(&mut self) {
        self.rr.slot.swap(CURRENT, SPARE);
        while let Some(id) = self.rr.front(SPARE) {
            self.resort(id, true);
        }
    }

    /// Moves a queue to the head of the current list.
    pub(super) fn move_to_front(&mut self, id: QueueId) {
        let home = self.queues[id].filed.expect(IS_BUSY);
        self.rr.remove(id, home);
        let slot = self.rr.slot[CURRENT];
        let value = u64::from(self.queues[id].is_new);
        self.rr.lists[usize::from(slot)].push_front(&mut self.rr.nodes, id, value);
        self.queues[id].filed = Some(slot);
    }
}
