// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queues that work close to the head: processes that read one file together
//! (2.6.30).
//!
//! Of two close queues, one below and one above the head, the kernel takes
//! the one that would be the parent of a new leaf in its red-black tree. The
//! shape of that tree is not modelled: here it is the one below.

use super::Cfq;
use super::habits::SEEKY_SECTORS;
use super::queue::QueueId;
use blklab_block::sq::Core;
use blklab_types::TaskId;

impl Cfq {
    /// Distance of a sector from the head.
    pub(super) fn distance(&self, sector: u64) -> u64 {
        sector.abs_diff(self.last_position)
    }

    /// Whether a sector is as close to the head as the process usually seeks.
    pub(super) fn is_close(&self, task: TaskId, sector: u64) -> bool {
        let seek = self.contexts[task.idx()].seek;
        let reach = if seek.is_valid() {
            seek.mean
        } else {
            SEEKY_SECTORS
        };
        self.distance(sector) <= reach
    }

    /// Files a busy queue by the sector of its next request.
    pub(super) fn file_position(&mut self, q: &Core, queue: QueueId) {
        if !self.feat.cooperators {
            return;
        }
        self.positions.remove(&mut self.queues, queue);
        let x = &self.queues[queue];
        if x.is_idle_class() || !x.busy {
            return;
        }
        if let Some(next) = x.next {
            let (level, sector) = (x.own_prio.level, q.rqs[next].sector);
            self.positions
                .insert(&mut self.queues, queue, level, sector);
        }
    }

    /// A queue that can go on close to where the active one, which has run
    /// empty, left the head.
    pub(super) fn cooperator(&self, q: &Core, active: QueueId) -> Option<QueueId> {
        if !self.feat.cooperators {
            return None;
        }
        let task = self.active_task?;
        let level = self.queues[active].own_prio.level;
        let around = self.positions.around(level, self.last_position);
        let is_close = |c: &QueueId| {
            let next = self.queues[*c].next;
            next.is_some_and(|rq| self.is_close(task, q.rqs[rq].sector))
        };
        let close = around.into_iter().flatten().find(is_close)?;
        (!self.queues[close].coop).then_some(close)
    }
}
