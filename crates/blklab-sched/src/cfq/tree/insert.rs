// SPDX-License-Identifier: MIT OR Apache-2.0
//! A new request: its place in its queue, what it tells of its process, and what it does
//! to the slice that runs.

use super::Cfq;
use super::queue::QueueId;
use blklab_block::sq::Core;
use blklab_block::{Cx, RqId};
use blklab_types::BioFlags;

impl Cfq {
    /// A request enters its queue (`cfq_insert_request`).
    pub(super) fn insert(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let id = self.of_rq.queue(rq);
        let pid = self.queues[id].pid;
        q.message(cx, format_args!("cfq{pid} insert_request"));
        self.refresh_prio(cx, id, q.rqs[rq].task);
        self.add_sorted(q, cx, id, rq);
        let age = u64::from(self.set.fifo_expire_jiffies[usize::from(q.rqs[rq].is_sync())]);
        self.of_rq[rq].fifo_time = self.clock.now(cx).wrapping_add(age);
        self.queues[id].waiting.fifo.push_back(&mut q.rqs, rq);
        self.request_enqueued(q, cx, id, rq);
    }

    /// What a new request tells of its process, and does to the slice that runs
    /// (`cfq_rq_enqueued`).
    fn request_enqueued(&mut self, q: &mut Core, cx: &mut Cx<'_>, id: QueueId, rq: RqId) {
        let task = q.rqs[rq].task;
        self.count_waiting(q.rqs[rq].flags, id);
        self.note_think(cx, task);
        self.note_seek(q, task, rq);
        self.update_idle_window(q, cx, id, task);
        self.contexts[task].last_request_pos = q.rqs[rq].end();
        if self.active == Some(id) {
            if self.queues[id].turn.wait_request {
                self.awaited_came(q, cx, id, rq);
            }
        } else if self.should_preempt(q, cx, id, rq) {
            self.preempt_queue(q, cx, id);
            q.run_requested = true;
        }
    }

    /// One more request waits.
    pub(super) fn count_waiting(&mut self, flags: BioFlags, id: QueueId) {
        self.rq_queued = self.rq_queued.wrapping_add(1);
        if flags.has(BioFlags::META) {
            let queue = &mut self.queues[id];
            queue.meta_pending = queue.meta_pending.wrapping_add(1);
        }
    }
}
