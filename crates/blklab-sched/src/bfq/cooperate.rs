// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cooperators: queues of processes that read close to each other, which are
//! better served as one.

use super::Bfq;
use super::clock::is_over;
use super::entity::{Ent, IDLE};
use crate::queue_id::QueueId;
use blklab_block::Cx;
use blklab_block::mq::Core;
use blklab_types::{Bio, TaskId};

/// Distance in sectors within which queues are close.
const CLOSE_SECTORS: u64 = 8192;
/// Age of a queue, and time since it was split, from which a scheduled merge
/// may be done.
const STABLE_AGE_MS: u64 = 600;

/// `bfq_rq_close_to_sector`.
fn is_close(a: u64, b: u64) -> bool {
    a.abs_diff(b) <= CLOSE_SECTORS
}

impl Bfq {
    /// A queue that was served for some time without being merged stays alone
    /// (`bfq_too_late_for_merging`).
    fn is_too_late(&self, cx: &Cx<'_>, id: QueueId) -> bool {
        let x = &self.queues[id];
        x.service_busy > 0 && is_over(cx, x.first_io + self.set.merge_jiffies)
    }

    /// Files a queue by its next request, in the tree of its group
    /// (`bfq_pos_tree_add_move`).
    pub(super) fn file_position(&mut self, q: &Core, cx: &mut Cx<'_>, id: QueueId) {
        if self.queueing.ignores_distance() {
            return;
        }
        self.unfile_position(id);
        let ent = &self.ents[Ent::of_queue(id)];
        let (class, group) = (ent.class, ent.parent);
        let Some(next) = self.queues[id].next else {
            return;
        };
        if class == IDLE || self.is_too_late(cx, id) {
            return;
        }
        let sector = q.rqs[next].sector;
        let queues = &self.queues;
        let sector_of = |at: QueueId| queues[at].next.map_or(0, |rq| q.rqs[rq].sector);
        let filed = self.positions.insert(id, group, sector, sector_of);
        self.report_lookup(q, cx, sector, filed.err());
        if filed.is_ok() {
            self.queues[id].filed = Some(group);
        }
    }

    pub(super) fn unfile_position(&mut self, id: QueueId) {
        if let Some(group) = self.queues[id].filed.take() {
            self.positions.remove(id, group);
        }
    }

    fn report_lookup(&self, q: &Core, cx: &mut Cx<'_>, sector: u64, found: Option<QueueId>) {
        let pid = found.map_or(0, |id| self.queues[id].pid);
        let text = format_args!("bfq rq_pos_tree_lookup {sector}: returning {pid}");
        q.message(cx, text);
    }

    /// A queue of the group whose next request is close to a sector
    /// (`bfqq_find_close`).
    fn find_close(&self, q: &Core, cx: &mut Cx<'_>, id: QueueId, sector: u64) -> Option<QueueId> {
        let group = self.ents[Ent::of_queue(id)].parent;
        if self.positions.is_empty(group) {
            return None;
        }
        let sector_of = |at: QueueId| self.queues[at].next.map_or(0, |rq| q.rqs[rq].sector);
        let found = self
            .positions
            .closest(group, sector, sector_of, |at| is_close(at, sector));
        let exact = found.filter(|&at| sector_of(at) == sector);
        self.report_lookup(q, cx, sector, exact);
        found.filter(|&at| at != id)
    }

    /// `bfq_may_be_close_cooperator`.
    fn may_cooperate(&self, cx: &Cx<'_>, id: QueueId, other: QueueId) -> bool {
        let (x, y) = (&self.queues[id], &self.queues[other]);
        let class = |id| self.ents[Ent::of_queue(id)].class;
        !self.is_too_late(cx, other)
            && class(id) != IDLE
            && class(id) == class(other)
            && !x.is_seeky()
            && !y.is_seeky()
            && x.sync
            && y.sync
    }

    /// The queue that `id`, which gets I/O of the task at `sector`, is merged
    /// into, if there is one: the merge is prepared (`bfq_setup_cooperator`).
    pub(super) fn find_cooperator(
        &mut self,
        q: &mut Core,
        cx: &mut Cx<'_>,
        id: QueueId,
        sector: u64,
        task: TaskId,
    ) -> Option<QueueId> {
        if let Some(end) = self.end_of_chain(id) {
            return Some(end);
        }
        if self.is_stable_merge_due(cx, id, task) {
            return self.merge_scheduled(q, cx, id, task);
        }
        if self.queueing.ignores_distance() || self.is_too_late(cx, id) {
            return None;
        }
        if self.nr_busy() == 1 {
            return None;
        }
        let parent = |id| self.ents[Ent::of_queue(id)].parent;
        if let Some(served) = self.in_service
            && served != id
            && is_close(sector, self.in_serv_last_pos)
            && parent(id) == parent(served)
            && self.may_cooperate(cx, id, served)
            && let Some(target) = self.set_up_merge(q, cx, id, served)
        {
            return Some(target);
        }
        let close = self.find_close(q, cx, id, sector)?;
        if !self.may_cooperate(cx, id, close) {
            return None;
        }
        self.set_up_merge(q, cx, id, close)
    }

    fn is_stable_merge_due(&self, cx: &Cx<'_>, id: QueueId, task: TaskId) -> bool {
        let x = &self.queues[id];
        let age = self.set.ms(STABLE_AGE_MS);
        !self.queueing.ignores_distance()
            && x.sync
            && self.context(task).stable_target.is_some()
            && !x.just_created
            && is_over(cx, x.split_time + age)
            && is_over(cx, x.created + age)
    }

    /// Whether a bio may join a request: only its process's queue may hold it,
    /// which is looked for, and merged, as for a request (`bfq_allow_bio_merge`).
    pub(super) fn may_join(
        &mut self,
        q: &mut Core,
        cx: &mut Cx<'_>,
        rq: blklab_block::RqId,
        bio: &Bio,
    ) -> bool {
        if bio.is_sync() && !q.rqs[rq].is_sync() {
            return false;
        }
        let task = cx.tasks.io_context_of(bio.task);
        let Some(mut id) = self.context_queue(task, bio.is_sync()) else {
            return false;
        };
        if let Some(target) = self.find_cooperator(q, cx, id, bio.sector, task) {
            self.redirect(q, cx, task, id, target);
            id = target;
        }
        self.of_rq.queue_if_any(rq) == Some(id)
    }

    /// The waiting request that a bio could be put in front of
    /// (`bfq_request_merge`).
    pub(super) fn front_candidate(
        &mut self,
        q: &mut Core,
        cx: &mut Cx<'_>,
        bio: &Bio,
    ) -> Option<blklab_block::RqId> {
        let task = cx.tasks.io_context_of(bio.task);
        let id = self.context_queue(task, bio.is_sync())?;
        let rq = self.queues[id].sort.find(&self.nodes, bio.end())?;
        (q.merge_ok(rq, bio) && self.may_join(q, cx, rq, bio)).then_some(rq)
    }
}
