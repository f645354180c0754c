// SPDX-License-Identifier: MIT OR Apache-2.0
//! The waiting requests of a queue: by sector, by arrival, and the preferred
//! next one.

use super::Cfq;
use super::queue::QueueId;
use crate::choose::{Reach, better, is_meta};
use blklab_block::sq::Core;
use blklab_block::{Cx, RqId};

impl Cfq {
    /// Which of two requests is better next: sync before async, metadata
    /// before data, then the nearer to the head.
    fn choose(&self, q: &Core, a: Option<RqId>, b: Option<RqId>) -> Option<RqId> {
        let reach = Reach {
            last: self.last_position,
            back_max: self.set.back_max_sectors,
            penalty: self.set.back_penalty,
        };
        better(&q.rqs, a, b, is_meta, &reach)
    }

    /// The better of the neighbours of a waiting request; the sweep wraps
    /// around at the upper end.
    fn choose_beside(&self, q: &Core, queue: QueueId, rq: RqId) -> Option<RqId> {
        let wrapped = || self.queues[queue].sort.first().filter(|&f| f != rq);
        let behind = self.nodes.next(rq).or_else(wrapped);
        self.choose(q, behind, self.nodes.prev(rq))
    }

    /// Adds a request by its sector. One that already waits there goes out.
    pub(super) fn add_sorted(&mut self, q: &mut Core, cx: &mut Cx<'_>, queue: QueueId, rq: RqId) {
        let sector = q.rqs[rq].sector;
        while let Some(old) = self.queues[queue].sort.find(&self.nodes, sector) {
            self.move_out(q, cx, old);
        }
        let sort = &mut self.queues[queue].sort;
        sort.insert(&mut self.nodes, rq, sector);
        if !self.queues[queue].busy {
            self.become_busy(q, cx, queue);
        }
        let before = self.queues[queue].next;
        let next = self.choose(q, before, Some(rq));
        self.queues[queue].next = next;
        if next != before {
            self.file_position(q, queue);
        }
    }

    /// A front merge moved the start of a waiting request.
    pub(super) fn reposition(&mut self, q: &mut Core, cx: &mut Cx<'_>, queue: QueueId, rq: RqId) {
        self.queues[queue].sort.remove(&mut self.nodes, rq);
        self.add_sorted(q, cx, queue, rq);
    }

    /// Takes a request out of its queue.
    pub(super) fn remove(&mut self, q: &mut Core, cx: &mut Cx<'_>, queue: QueueId, rq: RqId) {
        if self.queues[queue].next == Some(rq) {
            self.queues[queue].next = self.choose_beside(q, queue, rq);
        }
        let x = &mut self.queues[queue];
        x.fifo.remove(&mut q.rqs, rq);
        x.sort.remove(&mut self.nodes, rq);
        if x.busy && x.sort.is_empty() {
            self.leave_round(q, cx, queue);
        }
        self.nr_waiting = self.nr_waiting.wrapping_sub(1);
        if is_meta(&q.rqs[rq]) {
            let x = &mut self.queues[queue];
            x.meta_pending = x.meta_pending.wrapping_sub(1);
        }
    }

    /// Moves a waiting request to its place in the dispatch list.
    pub(super) fn move_out(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let queue = self.of_rq.queue(rq);
        let pid = self.queues[queue].pid;
        q.message(cx, format_args!("cfq{pid} dispatch_insert"));
        if self.feat.next_follows_every_move {
            self.queues[queue].next = self.choose_beside(q, queue, rq);
        }
        self.remove(q, cx, queue, rq);
        let x = &mut self.queues[queue];
        x.dispatched += 1;
        if x.sync {
            self.sync_flight += 1;
        }
        q.dispatch_sort(rq);
    }

    /// The oldest request, if it is old enough to go first; looked at once
    /// per slice.
    pub(super) fn aged(&mut self, q: &Core, cx: &mut Cx<'_>, queue: QueueId) -> Option<RqId> {
        let x = &mut self.queues[queue];
        if std::mem::replace(&mut x.age_seen, true) {
            return None;
        }
        let oldest = x.fifo.front()?;
        let expiry = if self.feat.age_from_insertion {
            self.of_rq[oldest].expiry_jiffy
        } else {
            let age = u64::from(self.set.fifo_expire_jiffies[x.kind()]);
            super::since_boot(q.rqs[oldest].start_time).wrapping_add(age)
        };
        let aged = super::reached(super::now(cx), expiry).then_some(oldest);
        let shown = if aged.is_some() { "ptr" } else { "none" };
        q.message(cx, format_args!("cfq{} fifo={shown}", x.pid));
        aged
    }
}
