// SPDX-License-Identifier: MIT OR Apache-2.0
//! Running hardware queues: from scheduler or software queues to the driver.

use crate::mq::Queue;
use crate::{Cx, List, RqId};
use blklab_trace::truth::Why;

/// What a run of a hardware queue came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ran {
    /// As far as possible.
    Done,
    /// Something went past the scheduler meanwhile: look again.
    Again,
}

/// Where kblockd runs a hardware queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// On the CPU of its thread.
    OfThread,
    /// It has no thread: on the one that the queue chooses.
    OfQueue,
}

/// The numbers below `nr`, beginning with `first`.
fn in_turn(first: u16, nr: u16) -> impl Iterator<Item = u16> {
    (first..nr).chain(0..first)
}

impl Queue {
    /// Runs a hardware queue in the present context (`blk_mq_run_hw_queue`,
    /// `blk_mq_sched_dispatch_requests`).
    pub(crate) fn run_hctx_now(&mut self, cx: &mut Cx<'_>, h: u16) {
        if self.hctxs[usize::from(h)].stopped || !self.has_pending(h) {
            return;
        }
        if self.dispatch_requests(cx, h) == Ran::Again
            && self.dispatch_requests(cx, h) == Ran::Again
        {
            self.core.run_hctx(h);
        }
    }

    /// kblockd runs the hardware queues that were asked for (`blk_mq_run_work_fn`),
    /// and inserts again what was requeued (`blk_mq_requeue_work`).
    pub fn run_work(&mut self, cx: &mut Cx<'_>) {
        let mut wanted = std::mem::take(&mut self.core.runs_wanted);
        if std::mem::take(&mut self.requeue_kicked) {
            self.insert_requeued(cx);
            wanted = u64::MAX;
        }
        self.run_hctxs(cx, wanted, Place::OfQueue);
    }

    /// The hardware queues that kblockd is to run, a bit each, where it has a thread for each
    /// processor: what was asked for until now, by this processor. Of all of a disk whose
    /// scheduler has one queue, those are its own and the ones with something in their lists.
    pub fn take_runs(&mut self, cpu: u16) -> u64 {
        let wanted = std::mem::take(&mut self.core.runs_wanted);
        let all = 0..self.hctxs.len() as u16;
        let own = self.hctx_of(cpu);
        let asked =
            all.filter(|&h| wanted >> h.min(63) & 1 != 0 && !self.is_skipped(wanted, h, own));
        let kicked = self.requeue_kicked.then_some(own);
        asked.chain(kicked).fold(0, |mask, h| mask | 1 << h.min(63))
    }

    /// The thread of kblockd on one processor runs these hardware queues, and those that it
    /// finds requeued requests for.
    pub fn run_taken(&mut self, cx: &mut Cx<'_>, taken: u64) {
        let mut wanted = taken;
        if std::mem::take(&mut self.requeue_kicked) {
            self.insert_requeued(cx);
            wanted = u64::MAX;
        }
        self.run_hctxs(cx, wanted, Place::OfThread);
    }

    /// Whether a hardware queue is none of those that a run of all is for
    /// (`blk_mq_run_hw_queues`).
    fn is_skipped(&self, wanted: u64, h: u16, own: u16) -> bool {
        let single = self.elv.as_ref().is_some_and(|e| e.is_single_queue());
        let all = wanted == u64::MAX;
        all && single && h != own && self.hctxs[usize::from(h)].dispatch.is_empty()
    }

    fn run_hctxs(&mut self, cx: &mut Cx<'_>, wanted: u64, place: Place) {
        let own = self.hctx_of(cx.running.cpu);
        let nr = self.hctxs.len() as u16;
        let first = self.first_to_run(wanted);
        for h in in_turn(first, nr) {
            let there = wanted >> h.min(63) & 1 != 0;
            if there && !self.is_skipped(wanted, h, own) {
                cx.timers.cancel(self.hctxs[usize::from(h)].delayed_run);
                if nr > 1 && place == Place::OfQueue {
                    cx.running.cpu = self.kblockd_cpu(h, own);
                }
                self.run_hctx_now(cx, h);
            }
        }
        self.push_runs(cx);
    }

    /// Each hardware queue has a work of its own, and where a scheduler has something
    /// that they share (Kyber's tokens) it is chance which of several is the first to
    /// get it: here they take turns.
    fn first_to_run(&mut self, wanted: u64) -> u16 {
        let shares = self.elv.as_ref().is_some_and(|e| !e.is_single_queue());
        if !shares || wanted.count_ones() < 2 {
            return 0;
        }
        let nr = self.hctxs.len() as u16;
        let first = in_turn(self.first_run, nr).find(|h| wanted >> h.min(&63) & 1 != 0);
        let first = first.unwrap_or_default();
        self.first_run = (first + 1) % nr;
        first
    }

    /// Whether a hardware queue has something to do (`blk_mq_hctx_has_pending`).
    fn has_pending(&self, h: u16) -> bool {
        if !self.hctxs[usize::from(h)].dispatch.is_empty() {
            return true;
        }
        match &self.elv {
            Some(elv) => elv.has_work(&self.core, h),
            None => self.next_ctx(h).is_some(),
        }
    }

    /// Whether the driver would get something if all hardware queues were run, as far
    /// as that can be told: a scheduler may have work and give none.
    pub fn would_hand_over(&self) -> bool {
        let limits = &self.core.limits;
        let takes = limits.refuses_above.is_none_or(|n| self.device_busy < n)
            && limits.budget.is_none_or(|n| self.budget_used < n);
        let has_tag = |n| self.elv.is_none() || self.tags.has_driver_tag(n);
        let mut hctxs = (0..).zip(&self.hctxs);
        takes && hctxs.any(|(n, h)| !h.stopped && has_tag(n) && self.has_pending(n))
    }

    /// What waits in the hardware queue's list, then what scheduler or software
    /// queues have (`__blk_mq_sched_dispatch_requests`).
    fn dispatch_requests(&mut self, cx: &mut Cx<'_>, h: u16) -> Ran {
        if self.hctxs[usize::from(h)].stopped {
            return Ran::Done;
        }
        let waiting = std::mem::take(&mut self.hctx_mut(h).dispatch);
        let had_waiting = !waiting.is_empty();
        if had_waiting {
            self.hctx_mut(h).restart = true;
            if !self.send(cx, h, waiting, 0) {
                return Ran::Done;
            }
        }
        if self.elv.is_some() {
            return self.dispatch_scheduler(cx, h);
        }
        if had_waiting || self.hctxs[usize::from(h)].dispatch_busy != 0 {
            return self.dispatch_one_by_one(cx, h);
        }
        let all = self.take_software_queues(h);
        if !all.is_empty() {
            self.send(cx, h, all, 0);
        }
        Ran::Done
    }

    /// Takes requests from the scheduler as long as the driver accepts them
    /// (`blk_mq_do_dispatch_sched`).
    fn dispatch_scheduler(&mut self, cx: &mut Cx<'_>, h: u16) -> Ran {
        loop {
            let (list, ran) = self.take_from_scheduler(cx, h);
            let went = self.send_by_hctx(cx, list);
            if went && std::mem::take(&mut self.stops_after_one) {
                if self.has_pending(h) {
                    self.core.run_hctx(h);
                }
                return Ran::Done;
            }
            if ran == Ran::Again || !went {
                return ran;
            }
        }
    }

    /// Hands over what the scheduler gave, which may be for several hardware queues
    /// (`blk_mq_dispatch_hctx_list`). True if the driver took all that was for one
    /// of them.
    fn send_by_hctx(&mut self, cx: &mut Cx<'_>, mut list: List) -> bool {
        if self.hctxs.len() == 1 {
            let nr = list.len();
            return nr > 0 && self.send(cx, 0, list, nr);
        }
        let mut went = false;
        loop {
            let rqs = &mut self.core.rqs;
            let Some(lowest) = list.iter(rqs).map(|id| rqs[id].hctx).min() else {
                return went;
            };
            let group = list.take_where(rqs, |rq| rq.hctx == lowest);
            let nr = group.len();
            went |= self.send(cx, lowest, group, nr);
        }
    }

    /// What the scheduler gives, at most until there is no driver tag
    /// (`__blk_mq_do_dispatch_sched`).
    fn take_from_scheduler(&mut self, cx: &mut Cx<'_>, h: u16) -> (List, Ran) {
        let most = if self.hctxs[usize::from(h)].dispatch_busy != 0 {
            1
        } else {
            self.core.nr_requests
        };
        let mut list = List::EMPTY;
        while list.len() < most {
            let elv = self.elv.as_ref().expect("a scheduler");
            if !elv.has_work(&self.core, h) {
                break;
            }
            if !self.hctxs[usize::from(h)].dispatch.is_empty() {
                return (list, Ran::Again);
            }
            if !self.take_budget(cx) {
                break;
            }
            let elv = self.elv.as_mut().expect("a scheduler");
            let Some(rq) = elv.dispatch(&mut self.core, cx, h) else {
                self.put_budget();
                if list.is_empty() && !cx.timers.is_pending(self.hctxs[usize::from(h)].delayed_run)
                {
                    self.run_later(cx, h);
                }
                break;
            };
            assert!(self.is_scheduled(rq), "dispatch gives what it was given");
            self.core.nr_sorted -= 1;
            self.core.leave_hash(rq);
            list.push_back(&mut self.core.rqs, rq);
            if self.core.feat.loop_stops_without_tag && !self.take_driver_tag(rq) {
                cx.waits(Why::DeviceFull, 0);
                break;
            }
        }
        (list, Ran::Done)
    }

    /// Without a scheduler, while the driver is busy: one request of each software
    /// queue in turn (`blk_mq_do_dispatch_ctx`).
    fn dispatch_one_by_one(&mut self, cx: &mut Cx<'_>, h: u16) -> Ran {
        loop {
            if !self.hctxs[usize::from(h)].dispatch.is_empty() {
                return Ran::Again;
            }
            let Some(ctx) = self.next_ctx(h) else {
                return Ran::Done;
            };
            if !self.take_budget(cx) {
                return Ran::Done;
            }
            let rq: Option<RqId> = self.ctxs[usize::from(ctx)].pop_front(&mut self.core.rqs);
            let nr_cpus = self.ctxs.len() as u16;
            self.hctx_mut(h).dispatch_from = (ctx + 1) % nr_cpus;
            let mut list = List::EMPTY;
            list.push_back(&mut self.core.rqs, rq.expect("a pending software queue"));
            if !self.send(cx, h, list, 1) {
                return Ran::Done;
            }
        }
    }

    /// The first software queue with requests, from where the last one was
    /// taken.
    fn next_ctx(&self, h: u16) -> Option<u16> {
        let from = self.hctxs[usize::from(h)].dispatch_from;
        let mut all = in_turn(from, self.ctxs.len() as u16);
        all.find(|&c| !self.ctxs[usize::from(c)].is_empty() && self.hctx_of(c) == h)
    }

    /// The requests of all software queues, CPU by CPU (`blk_mq_flush_busy_ctxs`).
    fn take_software_queues(&mut self, h: u16) -> List {
        let mut all = List::EMPTY;
        for cpu in 0..self.ctxs.len() as u16 {
            if self.hctx_of(cpu) == h {
                all.append(&mut self.core.rqs, &mut self.ctxs[usize::from(cpu)]);
            }
        }
        all
    }
}
