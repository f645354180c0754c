// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ordered writes as barriers that drain the queue (2.6.16 to 2.6.36).
//!
//! A barrier goes to the tail of the dispatch list behind everything that
//! waits. When it comes to the head it is taken off and replaced by proxies:
//! a flush, the write itself, a flush. Each is shown to the driver when
//! everything before it has completed; the original finishes last.

use crate::sq::{Ordered, Queue};
use crate::{Cx, RqId, RqState};
use blklab_trace::Action;
use blklab_trace::truth::Kind;
use blklab_types::{BioFlags, Op};

/// Stages of a sequence, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Drain,
    PreFlush,
    Write,
    PostFlush,
    Done,
}

/// The sequence in progress, and the colour that tells requests inserted
/// after a barrier from those before it.
#[derive(Debug, Default)]
pub(crate) struct BarrierSeq {
    running: Option<Running>,
    /// `ordcolor`.
    color: bool,
}

#[derive(Debug)]
struct Running {
    original: RqId,
    /// Colour of requests older than the barrier.
    old_color: bool,
    pre: Option<RqId>,
    write: Option<RqId>,
    post: Option<RqId>,
    error: u16,
}

impl Running {
    /// `blk_ordered_cur_seq`.
    fn current(&self, drained: bool) -> Stage {
        if !drained {
            Stage::Drain
        } else if self.pre.is_some() {
            Stage::PreFlush
        } else if self.write.is_some() {
            Stage::Write
        } else if self.post.is_some() {
            Stage::PostFlush
        } else {
            Stage::Done
        }
    }

    /// `blk_ordered_req_seq`.
    fn stage_of(&self, rq: RqId, color: bool) -> Stage {
        if self.pre == Some(rq) {
            Stage::PreFlush
        } else if self.write == Some(rq) {
            Stage::Write
        } else if self.post == Some(rq) {
            Stage::PostFlush
        } else if color == self.old_color {
            Stage::Drain
        } else {
            Stage::Done
        }
    }
}

impl Queue {
    pub(crate) fn barriers_supported(&self) -> bool {
        self.core.limits.ordered_writes
    }

    /// Marks a request with the current colour.
    pub(crate) fn color_request(&mut self, rq: RqId) {
        if self.barrier.color {
            self.core.rqs[rq].state |= RqState::COLOR;
        }
    }

    /// A barrier request goes behind everything that waits.
    pub(crate) fn insert_barrier(&mut self, cx: &mut Cx<'_>, rq: RqId) {
        self.color_request(rq);
        self.barrier.color = !self.barrier.color;
        self.core.rqs[rq].state |= RqState::HARDBARRIER;
        self.core.end_sector = self.core.rqs[rq].end();
        self.core.boundary_rq = Some(rq);
        self.insert_back(cx, rq);
    }

    /// What the driver may see of the head of the dispatch list (`blk_do_ordered`):
    /// a request, nothing for now (`Some(None)`), or another look (`None`) because
    /// the head changed.
    pub(crate) fn order_barriers(&mut self, cx: &mut Cx<'_>, head: RqId) -> Option<Option<RqId>> {
        if self.core.feat.ordered != Ordered::Barrier {
            return Some(Some(head));
        }
        if self.barrier.running.is_none() {
            if !self.core.rqs[head].state.has(RqState::HARDBARRIER) {
                return Some(Some(head));
            }
            self.start_barrier(cx, head);
            return None;
        }
        let drained = self.core.in_flight == 0;
        let running = self.barrier.running.as_ref()?;
        let color = self.core.rqs[head].state.has(RqState::COLOR);
        let (stage, current) = (running.stage_of(head, color), running.current(drained));
        // Proxies wait for their turn; the write proxy itself is in flight
        // while its own stage is current.
        if stage == Stage::Drain || stage <= current {
            if stage == Stage::Write && self.core.rqs[head].nr_sectors == 0 {
                self.core.queue_head.remove(&mut self.core.rqs, head);
                self.barrier_step_done(cx, head, 0);
                return None;
            }
            return Some(Some(head));
        }
        Some(None)
    }

    /// The barrier came to the head: it is replaced by its proxies, which enter in
    /// reverse (I each; `start_ordered`).
    fn start_barrier(&mut self, cx: &mut Cx<'_>, original: RqId) {
        self.core.queue_head.remove(&mut self.core.rqs, original);
        let old_color = self.core.rqs[original].state.has(RqState::COLOR);
        let empty = self.core.rqs[original].nr_sectors == 0;
        let flush = self.core.limits.queue.has_flush;
        let fua = flush && self.core.limits.queue.has_fua;
        let post = (flush && !fua && !empty).then(|| self.proxy(original, Op::Flush, false));
        let write = (!empty || !self.core.feat.empty_barrier_is_flush)
            .then(|| self.proxy(original, Op::Write, fua));
        let pre = flush.then(|| self.proxy(original, Op::Flush, false));
        for rq in [post, write, pre].into_iter().flatten() {
            self.core.rq_event(cx, Action::Insert, Kind::Insert, rq);
            self.push_front(rq);
        }
        self.barrier.running = Some(Running {
            original,
            old_color,
            pre,
            write,
            post,
            error: 0,
        });
        if pre.is_none() && write.is_none() {
            self.finish_barrier(cx);
        }
    }

    /// A request that stands for a step of `original`: a flush without data,
    /// or its data without its bios.
    pub(crate) fn proxy(&mut self, original: RqId, op: Op, fua: bool) -> RqId {
        let (task, flags) = (self.core.rqs[original].task, self.core.rqs[original].flags);
        let start_time = self.core.rqs[original].start_time;
        let flags = match op {
            Op::Flush => BioFlags::SYNC,
            _ if fua => flags.without(BioFlags::BARRIER | BioFlags::FLUSH) | BioFlags::FUA,
            _ => flags.without(BioFlags::BARRIER | BioFlags::FLUSH | BioFlags::FUA),
        };
        let rq = self.core.rqs.alloc(op, flags, task, start_time);
        if op != Op::Flush {
            let (sector, nr_sectors, segments) = {
                let o = &self.core.rqs[original];
                (o.sector, o.nr_sectors, o.segments)
            };
            let p = &mut self.core.rqs[rq];
            (p.sector, p.nr_sectors, p.segments) = (sector, nr_sectors, segments);
        }
        self.core.rqs[rq].state |= RqState::PROXY;
        rq
    }

    /// A proxy completed, or, empty, was passed over (`blk_ordered_complete_seq`).
    pub(crate) fn barrier_step_done(&mut self, cx: &mut Cx<'_>, rq: RqId, error: u16) {
        self.leave_flight(cx, rq);
        self.put_request(cx, rq);
        let Some(running) = self.barrier.running.as_mut() else {
            return;
        };
        for step in [&mut running.pre, &mut running.write, &mut running.post] {
            if *step == Some(rq) {
                *step = None;
            }
        }
        if error != 0 {
            running.error = error;
        }
        if running.current(true) == Stage::Done {
            self.finish_barrier(cx);
        }
    }

    /// All steps are done: the original completes with its bios.
    fn finish_barrier(&mut self, cx: &mut Cx<'_>) {
        let Some(Running {
            original, error, ..
        }) = self.barrier.running.take()
        else {
            return;
        };
        self.complete_event(cx, original, error);
        self.finish_request(cx, original, error);
    }
}
