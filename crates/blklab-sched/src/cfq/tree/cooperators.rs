// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queues that work close to the head: processes that read one file together
//! (2.6.30).

use super::Cfq;
use super::habits::SEEKY_SECTORS;
use super::queue::QueueId;
use blklab_block::sq::Core;
use blklab_types::TaskId;

impl Cfq {
    /// Distance of a sector from the head (`cfq_dist_from_last`).
    pub(super) fn distance(&self, sector: u64) -> u64 {
        sector.abs_diff(self.last_position)
    }

    /// Whether a sector is as close to the head as the process usually seeks
    /// (`cfq_rq_close`).
    pub(super) fn is_close(&self, task: TaskId, sector: u64) -> bool {
        let seek = self.contexts[task].seek;
        let reach = if seek.is_valid() {
            seek.mean
        } else {
            SEEKY_SECTORS
        };
        self.distance(sector) <= reach
    }

    /// Files a busy queue by the sector of its next request (`cfq_prio_tree_add`).
    pub(super) fn file_position(&mut self, q: &Core, id: QueueId) {
        self.unfile_position(id);
        let queue = &self.queues[id];
        if !self.feat.cooperators || queue.prio.is_idle_class() || !queue.on_rr {
            return;
        }
        let Some(next) = queue.waiting.next_rq else {
            return;
        };
        let (level, sector) = (queue.prio.org.level, q.rqs[next].sector);
        let queues = &self.queues;
        let sector_of = |at: QueueId| queues[at].waiting.next_sector(&q.rqs);
        if self.positions.insert(id, level, sector, sector_of).is_ok() {
            self.queues[id].close_level = Some(level);
        }
    }

    pub(super) fn unfile_position(&mut self, id: QueueId) {
        if let Some(level) = self.queues[id].close_level.take() {
            self.positions.remove(id, level);
        }
    }

    /// A queue that can go on close to where the active one, which has run
    /// empty, left the head (`cfq_close_cooperator`).
    pub(super) fn cooperator(&self, q: &Core, active: QueueId) -> Option<QueueId> {
        if !self.feat.cooperators {
            return None;
        }
        let task = self.active_task?;
        let close = self.positions.closest(
            self.queues[active].prio.org.level,
            self.last_position,
            |at| self.queues[at].waiting.next_sector(&q.rqs),
            |sector| self.is_close(task, sector),
        )?;
        (!self.queues[close].coop).then_some(close)
    }
}
