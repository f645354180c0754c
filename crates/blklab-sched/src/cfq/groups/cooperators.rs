// SPDX-License-Identifier: MIT OR Apache-2.0
//! Close cooperators: processes that read next to each other share one queue,
//! until their requests drift apart.

use super::Cfq;
use super::queue::QueueId;
use crate::cfq::SYNC;
use blklab_block::Cx;
use blklab_block::sq::Core;
use blklab_types::TaskId;

/// Distance in sectors within which requests are close, and beyond which a
/// mean distance is called seeking.
pub(super) const CLOSE_SECTORS: u64 = 8 * 1024;
impl Cfq {
    /// Files a queue by the position of its next request. Where another
    /// already has that position, it is left out (`cfq_prio_tree_add`).
    pub(super) fn file_position(&mut self, q: &Core, id: QueueId) {
        self.unfile_position(id);
        let queue = &self.queues[id];
        if queue.waiting.next_rq.is_none() || queue.prio.is_idle_class() {
            return;
        }
        let (level, sector) = (queue.prio.org.level, queue.waiting.next_sector(&q.rqs));
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

    /// A queue that is about to read where the head is, beside the active one
    /// (`cfq_close_cooperator`).
    pub(super) fn cooperator(&self, q: &Core, id: QueueId) -> Option<QueueId> {
        let queue = &self.queues[id];
        if (self.feat.idle_class_alone && queue.prio.is_idle_class())
            || !queue.sync
            || self.is_seeky(id)
            || self.groups[queue.group].nr_queues == 1
        {
            return None;
        }
        let found = self.closest(q, id)?;
        let other = &self.queues[found];
        let fits = other.group == queue.group
            && other.sync
            && !self.is_seeky(found)
            && other.prio.is_rt() == queue.prio.is_rt();
        fits.then_some(found)
    }

    /// The queue whose next request is nearest to the head, if it is close
    /// (`cfqq_close`).
    fn closest(&self, q: &Core, id: QueueId) -> Option<QueueId> {
        let level = self.queues[id].prio.org.level;
        self.positions.closest(
            level,
            self.last_position,
            |at| self.queues[at].waiting.next_sector(&q.rqs),
            |sector| self.is_within(id, sector, CLOSE_SECTORS),
        )
    }

    /// Whether a request of another queue is as close to the head as one of
    /// the queue itself would be (`cfq_rq_close`).
    pub(super) fn is_close(&self, id: QueueId, sector: u64) -> bool {
        self.is_within(id, sector, u64::MAX)
    }

    /// Whether a sector is as close to the head as the queue's own requests
    /// are to each other, up to a limit.
    fn is_within(&self, id: QueueId, sector: u64, limit: u64) -> bool {
        let seeks = &self.queues[id].seeks;
        let reach = if self.feat.seek_history || !seeks.is_valid() {
            CLOSE_SECTORS
        } else {
            seeks.mean.min(limit)
        };
        sector.abs_diff(self.last_position) <= reach
    }

    /// Lets the processes of one of two queues use the other, from their next
    /// requests on: those of the queue that fewer use (`cfq_setup_merge`).
    pub(super) fn plan_merge(&mut self, from: QueueId, to: QueueId) {
        if self.feat.merge_needs_processes && self.queues[to].process_refs() == 0 {
            return;
        }
        let mut target = to;
        while let Some(next) = self.queues[target].new_queue {
            if next == from {
                return;
            }
            target = next;
        }
        let users = self.queues[from].process_refs();
        let target_users = self.queues[target].process_refs();
        if users == 0 || (self.feat.merge_needs_processes && target_users == 0) {
            return;
        }
        let (from, target, users) = if target_users >= users {
            (from, target, users)
        } else {
            (target, from, target_users)
        };
        self.queues[from].new_queue = Some(target);
        self.queues[target].refs += users;
    }

    /// A process of `from` goes over to `target`, whose reference was taken
    /// when the merge was planned (`cfq_merge_cfqqs`).
    pub(super) fn follow(
        &mut self,
        q: &Core,
        cx: &mut Cx<'_>,
        task: TaskId,
        from: QueueId,
        target: QueueId,
    ) -> QueueId {
        self.say(q, cx, from, format_args!("merging with queue ptr"));
        self.contexts[task].queues[SYNC] = Some(target);
        self.queues[target].coop = true;
        self.put_queue(q, cx, from);
        target
    }

    /// A process leaves a queue that is to be broken up; the last one keeps
    /// it (`split_cfqq`).
    pub(super) fn split(
        &mut self,
        q: &Core,
        cx: &mut Cx<'_>,
        task: TaskId,
        id: QueueId,
    ) -> Option<QueueId> {
        self.say(q, cx, id, format_args!("breaking apart cfqq"));
        let pid = cx.tasks.get(task).pid;
        let queue = &mut self.queues[id];
        if queue.process_refs() == 1 {
            queue.pid = pid;
            queue.coop = false;
            queue.split = false;
            return Some(id);
        }
        self.contexts[task].queues[SYNC] = None;
        self.drop_redirects(q, cx, id);
        self.put_queue(q, cx, id);
        None
    }

    /// A process that will not follow the queue's redirections gives back the
    /// references that were taken for it (`cfq_put_cooperator`).
    pub(super) fn drop_redirects(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId) {
        let mut at = self.queues[id].new_queue;
        while let Some(queue) = at {
            if queue == id {
                break;
            }
            at = self.queues[queue].new_queue;
            self.put_queue(q, cx, queue);
        }
    }
}
