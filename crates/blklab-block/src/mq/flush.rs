// SPDX-License-Identifier: MIT OR Apache-2.0
//! FLUSH and FUA: a request that asks for them takes up to three steps, flush,
//! data, flush. Requests that wait for a flush at the same time share one.
//!
//! Source: block/blk-flush.c of 5.10, 6.1 and 6.12.

use crate::mq::Queue;
use crate::{Cx, RqId, RqState};
use blklab_trace::Action;
use blklab_types::{BioFlags, Jiffies, Op};

/// Steps a request needs, as bits (`REQ_FSEQ_PREFLUSH`, `REQ_FSEQ_DATA`,
/// `REQ_FSEQ_POSTFLUSH`).
const PRE: u8 = 1;
const DATA: u8 = 2;
const POST: u8 = 4;

/// A pending flush is issued even beside running data after this many seconds
/// (`FLUSH_PENDING_TIMEOUT`).
const PENDING_TIMEOUT_S: u64 = 5;

/// Flushes of a hardware queue (`blk_flush_queue`).
#[derive(Debug, Default)]
pub(crate) struct FlushQueue {
    /// Requests that wait for the next flush, and those that the flush that runs
    /// serves (`flush_queue`).
    waiting: [Vec<RqId>; 2],
    /// Which of them waits for the next flush (`flush_pending_idx`).
    pending_idx: usize,
    /// Since when the first of those waits (`flush_pending_since`).
    pending_since: Jiffies,
    /// The flush command on its way (`flush_rq`).
    command: Option<RqId>,
    /// Data steps on their way (`flush_data_in_flight`).
    data_running: u32,
    /// Emptied and kept for its capacity.
    scratch: Vec<RqId>,
}

impl Queue {
    /// The steps that a request needs (`blk_flush_policy`, in 6.12 inside
    /// `blk_insert_flush`).
    fn flush_steps(&self, id: RqId) -> u8 {
        let (rq, limits) = (&self.core.rqs[id], &self.core.limits);
        let mut steps = 0;
        if rq.flags.has(BioFlags::FLUSH) {
            steps |= PRE;
        }
        if rq.nr_sectors > 0 {
            steps |= DATA;
        }
        if rq.flags.has(BioFlags::FUA) && !limits.queue.has_fua {
            steps |= POST;
        }
        steps
    }

    /// Whether what completes is a step of a sequence, or a flush.
    pub(crate) fn is_flush_step(&self, rq: RqId) -> bool {
        let state = self.core.rqs[rq].state;
        state.has(RqState::FLUSH_SEQ) || state.has(RqState::PROXY)
    }

    /// An ordered request enters (`blk_insert_flush`). False if it goes on like any
    /// other.
    pub(crate) fn insert_flush(&mut self, cx: &mut Cx<'_>, rq: RqId) -> bool {
        let steps = self.flush_steps(rq);
        let h = self.core.rqs[rq].hctx;
        let flags = self.core.rqs[rq].flags;
        let sent = BioFlags::FLUSH
            | if self.core.limits.queue.has_fua {
                BioFlags::NONE
            } else {
                BioFlags::FUA
            };
        self.core.rqs[rq].flags = flags.without(sent);
        let ordinary = self.core.feat.flush_data_is_ordinary;
        match steps {
            0 => self.finish(cx, rq, 0),
            DATA if ordinary => return false,
            DATA => {
                self.bypass(rq, false);
                self.run_hctx_now(cx, h);
            }
            _ => {
                self.core.rqs[rq].state |= RqState::FLUSH_SEQ;
                self.core.rqs[rq].flush_step = steps;
                if ordinary && steps & PRE == 0 {
                    self.hctx_mut(h).flush.data_running += 1;
                    return false;
                }
                self.next_flush_step(cx, rq, 0);
            }
        }
        true
    }

    /// Sends a request into its next step (`blk_flush_complete_seq`).
    fn next_flush_step(&mut self, cx: &mut Cx<'_>, rq: RqId, error: u16) {
        let h = self.core.rqs[rq].hctx;
        let steps = if error == 0 {
            self.core.rqs[rq].flush_step
        } else {
            0
        };
        if steps == 0 {
            self.end_sequence(cx, rq, error);
        } else if steps & PRE != 0 || steps & DATA == 0 {
            let flush = &mut self.hctx_mut(h).flush;
            let idx = flush.pending_idx;
            if flush.waiting[idx].is_empty() {
                flush.pending_since = cx.jiffies;
            }
            flush.waiting[idx].push(rq);
        } else {
            self.hctx_mut(h).flush.data_running += 1;
            self.requeue.push_front(&mut self.core.rqs, rq);
            self.kick_requeue(cx);
        }
        self.issue_flush(cx, h);
    }

    /// All its steps are done (`REQ_FSEQ_DONE`): the request ends.
    fn end_sequence(&mut self, cx: &mut Cx<'_>, rq: RqId, error: u16) {
        self.core.rqs[rq].state.clear(RqState::FLUSH_SEQ);
        if self.core.rqs[rq].nr_sectors == 0 {
            self.core.rq_trace(cx, Action::Complete, rq);
        }
        self.finish(cx, rq, error);
    }

    /// Issues one flush for everybody who waits, if it is time (`blk_kick_flush`).
    fn issue_flush(&mut self, cx: &mut Cx<'_>, h: u16) {
        let timeout = PENDING_TIMEOUT_S * u64::from(self.core.hz.0);
        let flush = &mut self.hctxs[usize::from(h)].flush;
        let Some(&first) = flush.waiting[flush.pending_idx].first() else {
            return;
        };
        let overdue = cx.jiffies >= flush.pending_since.plus(timeout);
        if flush.command.is_some() || (flush.data_running > 0 && !overdue) {
            return;
        }
        flush.pending_idx ^= 1;
        let command = self.flush_command(cx, first);
        self.hctx_mut(h).flush.command = Some(command);
        self.requeue.push_back(&mut self.core.rqs, command);
        self.kick_requeue(cx);
    }

    /// A flush that borrows the tags of the first request that waits for it.
    fn flush_command(&mut self, cx: &Cx<'_>, first: RqId) -> RqId {
        let rqs = &mut self.core.rqs;
        let task = rqs[first].task;
        let id = rqs.alloc(Op::Flush, BioFlags::NONE, task, cx.jiffies);
        let (tag, sched_tag) = (rqs[first].tag, rqs[first].sched_tag);
        let (cpu, hctx) = (rqs[first].cpu, rqs[first].hctx);
        let rq = &mut rqs[id];
        rq.state |= RqState::PROXY;
        rq.tag = tag;
        rq.sched_tag = sched_tag;
        rq.cpu = cpu;
        rq.hctx = hctx;
        id
    }

    /// A flush completed, or the data step of a sequence (`mq_flush_data_end_io`).
    pub(crate) fn complete_flush_step(&mut self, cx: &mut Cx<'_>, rq: RqId, error: u16) {
        let h = self.core.rqs[rq].hctx;
        if self.hctxs[usize::from(h)].flush.command == Some(rq) {
            self.flush_done(cx, rq, error);
        } else {
            self.leave_scheduler(cx, rq);
            self.put_driver_tag(rq);
            self.hctx_mut(h).flush.data_running -= 1;
            self.core.rqs[rq].state.clear(RqState::STARTED);
            self.core.rqs[rq].flush_step &= !DATA;
            self.next_flush_step(cx, rq, error);
        }
        if std::mem::take(&mut self.hctx_mut(h).restart) {
            self.core.run_hctx(h);
        }
    }

    /// A flush completed (`flush_end_io`): all that it served go into their next
    /// step.
    fn flush_done(&mut self, cx: &mut Cx<'_>, command: RqId, error: u16) {
        let h = self.core.rqs[command].hctx;
        self.put_driver_tag(command);
        self.core.rqs[command].tag = None;
        self.core.rqs[command].sched_tag = None;
        self.core.rqs.free(command);
        let flush = &mut self.hctx_mut(h).flush;
        flush.command = None;
        let served = flush.pending_idx ^ 1;
        let mut waiters = std::mem::take(&mut flush.scratch);
        std::mem::swap(&mut waiters, &mut flush.waiting[served]);
        for &rq in &waiters {
            let steps = &mut self.core.rqs[rq].flush_step;
            *steps &= if *steps & PRE != 0 { !PRE } else { !POST };
            self.next_flush_step(cx, rq, error);
        }
        waiters.clear();
        self.hctx_mut(h).flush.scratch = waiters;
    }
}
