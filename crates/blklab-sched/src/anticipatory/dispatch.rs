// SPDX-License-Identifier: MIT OR Apache-2.0
//! What goes to the dispatch list, and when nothing does.
//!
//! Source: block/as-iosched.c of 2.6.16 to 2.6.32.

use super::{ASYNC, Anticipatory, SYNC, Status};
use blklab_block::sq::Core;
use blklab_block::{Cx, RqId};
use blklab_trace::truth::Why;

/// How the running batch goes on.
enum Step {
    /// Everything waits.
    Wait,
    /// With the oldest request, which has expired.
    Oldest,
    /// With the next request.
    Next(RqId),
    /// Not at all.
    NewBatch,
}

impl Anticipatory {
    /// Everything goes: sync requests, then async ones. Returns how many.
    pub(super) fn drain(&mut self, q: &mut Core, cx: &mut Cx<'_>, now: u64) -> usize {
        self.batch.reset();
        let mut moved = 0;
        for kind in [SYNC, ASYNC] {
            // Next is lost when a front merge pushes out the only other
            // request. The kernel then leaves the rest behind and complains
            // in its log; here it goes as well.
            while let Some(rq) = self.waiting[kind].next.or(self.waiting[kind].sort.first()) {
                self.move_out(q, cx, rq);
                moved += 1;
            }
            self.waiting[kind].last_check = now;
        }
        moved
    }

    /// The next request, if it is to go now (`as_dispatch_request`).
    pub(super) fn choose(&mut self, q: &Core, cx: &mut Cx<'_>, now: u64) -> Option<RqId> {
        let sync_waits = !self.waiting[SYNC].fifo.is_empty();
        let async_waits = !self.waiting[ASYNC].fifo.is_empty();
        self.batch.note_idling(async_waits, sync_waits);
        if !sync_waits && !async_waits {
            return None;
        }
        if self.status.is_waiting() {
            self.show_wait(cx);
            return None;
        }
        if self.batch.waits_for_drain {
            cx.waits(Why::BatchChange, 0);
            return None;
        }
        let both = sync_waits && async_waits;
        let step = if both && self.batch.has_expired(now) {
            Step::NewBatch
        } else {
            self.go_on(q, cx, sync_waits && !async_waits, now)
        };
        let rq = match step {
            Step::Wait => return None,
            Step::Oldest => self.waiting[self.batch.kind].fifo.front(),
            Step::Next(rq) => self.unless_oldest_expired(Some(rq), now),
            Step::NewBatch => {
                let first = self.turn(both, sync_waits, now);
                self.unless_oldest_expired(first, now)
            }
        };
        if self.batch.waits_for_drain {
            if self.nr_dispatched > 0 {
                cx.waits(Why::BatchChange, 0);
                return None;
            }
            self.batch.begin(&self.set, now);
        }
        rq
    }

    /// The running batch goes on, or waits for its process.
    fn go_on(&mut self, q: &Core, cx: &mut Cx<'_>, only_sync: bool, now: u64) -> Step {
        let kind = self.batch.kind;
        let next = self.waiting[kind].next;
        if kind == SYNC && self.set.antic_expire > 0 {
            if self.oldest_expired(SYNC, now) {
                return Step::Oldest;
            }
            if self.should_wait(q, next, now) {
                self.start_waiting(cx, now);
                return Step::Wait;
            }
        }
        let Some(next) = next else {
            return Step::NewBatch;
        };
        if only_sync {
            self.batch.expires = now + self.set.batch_expire[SYNC];
        }
        Step::Next(next)
    }

    /// Turns to the kind whose turn it is; its first request.
    fn turn(&mut self, both: bool, sync_waits: bool, now: u64) -> Option<RqId> {
        let after_sync = self.batch.kind == SYNC;
        if sync_waits && !(both && after_sync) {
            self.batch.turn_to_sync();
        } else {
            self.batch.turn_to_async();
            let w = &self.waiting[ASYNC];
            if !self.feat.writes_begin_at_oldest && w.next.is_some() {
                return w.next;
            }
        }
        let w = &mut self.waiting[self.batch.kind];
        w.last_check = now;
        w.fifo.front()
    }

    /// The oldest request of the batch's kind if it has expired, or else the
    /// given one.
    fn unless_oldest_expired(&mut self, rq: Option<RqId>, now: u64) -> Option<RqId> {
        let kind = self.batch.kind;
        if self.oldest_expired(kind, now) {
            self.waiting[kind].fifo.front()
        } else {
            rq
        }
    }

    /// Whether the oldest request has expired, looked at once in a while
    /// (`as_fifo_expired`).
    fn oldest_expired(&mut self, kind: usize, now: u64) -> bool {
        let w = &mut self.waiting[kind];
        w.check_is_due(now, self.set.fifo_expire[kind])
            && w.fifo.front().is_some_and(|rq| now > self.info[rq].expires)
    }

    /// Moves a request to the dispatch list; its process is the one that may
    /// be waited for now (`as_move_to_dispatch`).
    pub(super) fn move_out(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        self.stop_waiting(cx);
        self.status = Status::Off;
        let info = self.info[rq];
        self.waiting[info.kind].last_sector = q.rqs[rq].end();
        if info.kind == SYNC {
            self.served = Some(info.owner);
        } else {
            self.served = None;
            self.batch.count_write();
        }
        self.served_done = false;
        let w = &mut self.waiting[info.kind];
        w.next = w.successor(&self.nodes, &q.rqs, rq);
        self.forget(q, rq);
        q.dispatch_sort(rq);
        self.processes.with(info.owner, |p| p.nr_dispatched += 1);
        self.nr_dispatched += 1;
        if self.waiting.iter().any(|w| !w.fifo.is_empty()) {
            let batch = [Why::WriteBatch, Why::ReadBatch][self.batch.kind];
            cx.waits(batch, cx.tasks.get(info.owner).pid);
        }
    }
}
