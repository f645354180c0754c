// SPDX-License-Identifier: MIT OR Apache-2.0
//! FLUSH and FUA without draining (2.6.37 and later).
//!
//! A request that asks for them takes up to three steps: flush, data, flush.
//! In 2.6.37 and 2.6.38 one such sequence runs at a time; from 2.6.39 any
//! number, and requests that wait for a flush at the same time share one.

use crate::sq::{FlushCommand, Ordered, Queue};
use crate::{Cx, Effect, RqId, RqState};
use blklab_trace::Action;
use blklab_trace::truth::Kind;
use blklab_types::{BioFlags, Jiffies, Op};
use std::collections::VecDeque;

/// Steps a request needs, as bits (`REQ_FSEQ_PREFLUSH`, `REQ_FSEQ_DATA`,
/// `REQ_FSEQ_POSTFLUSH`).
const PRE: u8 = 1;
const DATA: u8 = 2;
const POST: u8 = 4;

/// A pending flush is issued even beside running data after this many seconds
/// (`FLUSH_PENDING_TIMEOUT`).
const PENDING_TIMEOUT_S: u64 = 5;

/// State of the flush machinery of a queue (later `blk_flush_queue`).
#[derive(Debug, Default)]
pub(crate) struct FlushSeq {
    /// Requests that wait for the next flush; the first index in use is
    /// `pending_idx`, the other list is served by the flush that runs.
    waiting: [Vec<RqId>; 2],
    pending_idx: usize,
    pending_since: Jiffies,
    /// The flush command on its way.
    command: Option<RqId>,
    /// Data steps on their way.
    data_running: u32,
    /// 2.6.37: the sequence in progress: the original and its step's proxy.
    serial: Option<(RqId, RqId)>,
    /// 2.6.37: originals that wait for their turn.
    serial_wait: VecDeque<RqId>,
    /// Emptied and kept for its capacity.
    scratch: Vec<RqId>,
}

impl Queue {
    /// The steps that a request needs (`blk_flush_policy`).
    fn flush_steps(&self, rq: RqId) -> u8 {
        let (rq, limits) = (&self.core.rqs[rq], &self.core.limits);
        let mut steps = 0;
        if limits.queue.has_flush && rq.flags.has(BioFlags::FLUSH) {
            steps |= PRE;
        }
        if rq.nr_sectors > 0 {
            steps |= DATA;
        }
        if limits.queue.has_flush && rq.flags.has(BioFlags::FUA) && !limits.queue.has_fua {
            steps |= POST;
        }
        steps
    }

    /// Whether the scheduler is not asked because a flush is under way that the
    /// device cannot queue beside other commands (`queue_flush_queueable`).
    pub(crate) fn flush_holds_scheduler(&self) -> bool {
        self.core.feat.flush_holds_queue
            && self.flush.command.is_some()
            && !self.core.limits.flush_queueable
    }

    /// 2.6.39 and later: a FLUSH/FUA request enters (I; `blk_insert_flush`).
    pub(crate) fn insert_flush(&mut self, cx: &mut Cx<'_>, rq: RqId) {
        self.core.rq_event(cx, Action::Insert, Kind::Insert, rq);
        let steps = self.flush_steps(rq);
        if steps == DATA {
            self.core.queue_head.push_back(&mut self.core.rqs, rq);
            return;
        }
        self.core.rqs[rq].state |= RqState::FLUSH_SEQ;
        self.core.rqs[rq].flush_step = steps;
        self.next_flush_step(cx, rq, 0);
    }

    /// Sends a request into its next step (`blk_flush_complete_seq`); true if the
    /// dispatch list grew.
    fn next_flush_step(&mut self, cx: &mut Cx<'_>, rq: RqId, error: u16) -> bool {
        let steps = if error == 0 {
            self.core.rqs[rq].flush_step
        } else {
            0
        };
        let mut queued = false;
        if steps == 0 {
            self.core.rqs[rq].state.clear(RqState::FLUSH_SEQ);
            self.complete_event(cx, rq, error);
            self.finish_request(cx, rq, error);
        } else if steps & PRE != 0 || steps & DATA == 0 {
            let idx = self.flush.pending_idx;
            if self.flush.waiting[idx].is_empty() {
                self.flush.pending_since = cx.jiffies;
            }
            self.flush.waiting[idx].push(rq);
        } else {
            self.flush.data_running += 1;
            self.push_front(rq);
            queued = true;
        }
        self.issue_flush(cx) | queued
    }

    /// Issues one flush for everybody who waits, if it is time (`blk_kick_flush`).
    fn issue_flush(&mut self, cx: &Cx<'_>) -> bool {
        let idx = self.flush.pending_idx;
        let Some(&first) = self.flush.waiting[idx].first() else {
            return false;
        };
        if self.flush.command.is_some() {
            return false;
        }
        let deadline = self
            .flush
            .pending_since
            .plus(PENDING_TIMEOUT_S * u64::from(self.core.hz.0));
        if self.flush.data_running > 0 && cx.jiffies < deadline {
            return false;
        }
        let command = self.proxy(first, Op::Flush, false);
        self.core.rqs[command].flags = match self.core.feat.flush_command {
            FlushCommand::Write => BioFlags::SYNC | BioFlags::FLUSH,
            FlushCommand::Sync => BioFlags::SYNC,
            FlushCommand::Plain => BioFlags::NONE,
        };
        self.flush.command = Some(command);
        self.flush.pending_idx ^= 1;
        self.core.queue_head.push_back(&mut self.core.rqs, command);
        true
    }

    /// A proxy or the data step of a sequence completed.
    pub(crate) fn complete_sequenced(&mut self, cx: &mut Cx<'_>, rq: RqId, error: u16) {
        match self.core.feat.ordered {
            Ordered::Barrier => self.barrier_step_done(cx, rq, error),
            Ordered::FlushSerial => self.serial_step_done(cx, rq, error),
            Ordered::FlushDouble if self.flush.command == Some(rq) => {
                self.flush_command_done(cx, rq, error);
            }
            Ordered::FlushDouble => {
                self.leave_flight(cx, rq);
                self.flush.data_running -= 1;
                self.core.rqs[rq].state.clear(RqState::STARTED);
                self.core.rqs[rq].flush_step &= !DATA;
                if self.next_flush_step(cx, rq, error) {
                    cx.ask(Effect::RunWork);
                }
            }
        }
    }

    /// A flush completed (`flush_end_io`): all that it served go into their next
    /// step.
    fn flush_command_done(&mut self, cx: &mut Cx<'_>, command: RqId, error: u16) {
        self.leave_flight(cx, command);
        self.put_request(cx, command);
        self.flush.command = None;
        let served = self.flush.pending_idx ^ 1;
        let mut waiters = std::mem::take(&mut self.flush.scratch);
        std::mem::swap(&mut waiters, &mut self.flush.waiting[served]);
        let mut queued = false;
        for &rq in &waiters {
            let steps = &mut self.core.rqs[rq].flush_step;
            *steps &= if *steps & PRE != 0 { !PRE } else { !POST };
            queued |= self.next_flush_step(cx, rq, error);
        }
        waiters.clear();
        self.flush.scratch = waiters;
        if queued || self.core.feat.flush_holds_queue {
            cx.ask(Effect::RunWork);
        }
    }

    /// 2.6.37, 2.6.38: a FLUSH/FUA request goes to the front (I).
    pub(crate) fn insert_flush_serial(&mut self, cx: &mut Cx<'_>, rq: RqId) {
        self.core.rq_event(cx, Action::Insert, Kind::Insert, rq);
        self.core.rqs[rq].state |= RqState::FLUSH_SEQ;
        self.push_front(rq);
        self.unplug_at_threshold(cx);
    }

    /// The driver would see a FLUSH/FUA request (`blk_do_flush`): starts its
    /// sequence, or lets it wait for the one that runs. False if the request goes
    /// to the device as it is.
    pub(crate) fn start_flush_serial(&mut self, cx: &mut Cx<'_>, rq: RqId) -> bool {
        if self.core.feat.ordered != Ordered::FlushSerial {
            return false;
        }
        let steps = self.flush_steps(rq);
        if steps == DATA {
            self.core.rqs[rq].state.clear(RqState::FLUSH_SEQ);
            return false;
        }
        self.core.queue_head.remove(&mut self.core.rqs, rq);
        self.core.rqs[rq].flush_step = steps;
        if self.flush.serial.is_some() {
            self.flush.serial_wait.push_back(rq);
        } else {
            self.next_serial_step(cx, rq, 0);
        }
        true
    }

    /// Queues the next step of a sequence at the front (I), or ends it.
    fn next_serial_step(&mut self, cx: &mut Cx<'_>, original: RqId, error: u16) {
        let steps = if error == 0 {
            self.core.rqs[original].flush_step
        } else {
            0
        };
        if steps == 0 {
            self.flush.serial = None;
            self.core.rqs[original].state.clear(RqState::FLUSH_SEQ);
            self.complete_event(cx, original, error);
            self.finish_request(cx, original, error);
            if let Some(next) = self.flush.serial_wait.pop_front() {
                self.push_front(next);
            }
            return;
        }
        let step = steps & steps.wrapping_neg();
        let op = if step == DATA { Op::Write } else { Op::Flush };
        let fua =
            self.core.rqs[original].flags.has(BioFlags::FUA) && self.core.limits.queue.has_fua;
        let proxy = self.proxy(original, op, fua);
        self.core.rqs[original].flush_step &= !step;
        self.flush.serial = Some((original, proxy));
        self.core.rq_event(cx, Action::Insert, Kind::Insert, proxy);
        self.push_front(proxy);
    }

    fn serial_step_done(&mut self, cx: &mut Cx<'_>, proxy: RqId, error: u16) {
        self.leave_flight(cx, proxy);
        self.put_request(cx, proxy);
        if let Some((original, _)) = self.flush.serial {
            self.next_serial_step(cx, original, error);
        }
    }
}
