// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bursts of new queues: a service that starts many processes at once is not
//! interactive, so its queues are not raised.

use super::Bfq;
use super::clock::{Jiffy, is_over, jiffies};
use super::entity::Ent;
use super::group_id::GroupId;
use super::links::{Chain, Links};
use crate::queue_id::QueueId;
use blklab_block::Cx;

/// Queues that make a burst a large one.
const LARGE: u32 = 8;
/// Queues created within this time belong together.
const SPAN_MS: u64 = 180;

/// The burst that runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Burst {
    pub(super) size: u32,
    pub(super) large: bool,
    last: Jiffy,
    group: Option<GroupId>,
    list: Chain,
    links: Links,
}

impl Bfq {
    /// A queue without requests so far gets one: which burst it belongs to
    /// (`bfq_handle_burst`).
    pub(super) fn note_burst(&mut self, cx: &Cx<'_>, id: QueueId) {
        let x = &self.queues[id];
        let split_lately = !is_over(cx, x.split_time + self.set.ms(10));
        if self.burst.links.holds(id) || x.in_large_burst || split_lately {
            return;
        }
        let group = self.ents[Ent::of_queue(id)].parent;
        let b = &mut self.burst;
        if is_over(cx, b.last + self.set.ms(SPAN_MS)) || b.group != Some(group) {
            b.large = false;
            self.empty_burst_list();
            let alone = self.nr_busy() == 0;
            let b = &mut self.burst;
            if alone {
                b.list.push(&mut b.links, id);
            }
            b.size = u32::from(alone);
            b.group = Some(group);
        } else if b.large {
            self.queues[id].in_large_burst = true;
        } else {
            b.size += 1;
            if b.size == LARGE {
                b.large = true;
                while let Some(member) = b.list.pop(&mut b.links) {
                    self.queues[member].in_large_burst = true;
                }
                self.queues[id].in_large_burst = true;
            } else {
                b.list.push(&mut b.links, id);
            }
        }
        self.burst.last = jiffies(cx);
    }

    fn empty_burst_list(&mut self) {
        let b = &mut self.burst;
        while b.list.pop(&mut b.links).is_some() {}
    }

    pub(super) fn is_in_burst_list(&self, id: QueueId) -> bool {
        self.burst.links.holds(id)
    }

    /// `bfq_add_to_burst`.
    pub(super) fn join_burst_list(&mut self, id: QueueId) {
        let b = &mut self.burst;
        if !b.links.holds(id) {
            b.list.push(&mut b.links, id);
        }
    }

    pub(super) fn leave_burst_list(&mut self, id: QueueId) {
        let b = &mut self.burst;
        if b.links.holds(id) {
            b.list.remove(&mut b.links, id);
        }
    }

    /// A queue is about to be freed.
    pub(super) fn free_from_burst(&mut self, id: QueueId) {
        if self.burst.links.holds(id) {
            self.leave_burst_list(id);
            if self.queues[id].owner.is_some() {
                self.burst.size = self.burst.size.saturating_sub(1);
            }
        }
    }
}
