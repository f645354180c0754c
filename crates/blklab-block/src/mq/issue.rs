// SPDX-License-Identifier: MIT OR Apache-2.0
//! The driver: budgets, driver tags, and handing requests over.

use crate::mq::{Hctx, Queue, Refusal, Tags};
use crate::{Cx, Effect, List, RqId, RqState, events};
use blklab_trace::Action;
use blklab_trace::truth::{Kind, Why};

/// After this long a queue is run again that lacked a budget or whose driver
/// lacked resources (`BLK_MQ_BUDGET_DELAY`, `BLK_MQ_RESOURCE_DELAY`).
const RERUN_MS: u64 = 3;

/// What the driver said to a request (`blk_status_t` of `queue_rq`), or why it was
/// not asked (`prep_dispatch`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// It has it.
    Started,
    /// It cannot take more (`BLK_STS_RESOURCE`).
    Refused,
    /// It cannot take more, and has stopped its queues until it can
    /// (`BLK_STS_DEV_RESOURCE`).
    Stopped,
    /// It was not asked: no driver tag (`PREP_DISPATCH_NO_TAG`).
    NoTag,
    /// It was not asked: no budget (`PREP_DISPATCH_NO_BUDGET`).
    NoBudget,
}

impl Queue {
    /// Takes one from the budget of commands, where the driver has one
    /// (`blk_mq_get_dispatch_budget`, `scsi_mq_get_budget`).
    pub(crate) fn take_budget(&mut self, cx: &mut Cx<'_>) -> bool {
        let Some(budget) = self.core.limits.budget else {
            return true;
        };
        if self.budget_used >= budget {
            cx.waits(Why::DeviceFull, 0);
            return false;
        }
        self.budget_used += 1;
        true
    }

    /// Gives one back to the budget (`blk_mq_put_dispatch_budget`).
    pub(crate) fn put_budget(&mut self) {
        if self.core.limits.budget.is_some() {
            assert!(self.budget_used > 0, "a budget counts what it gave");
            self.budget_used -= 1;
        }
    }

    /// Gives a request a driver tag, if it has none (`blk_mq_get_driver_tag`).
    pub(crate) fn take_driver_tag(&mut self, id: RqId) -> bool {
        let rq = &mut self.core.rqs[id];
        if rq.tag.is_none() {
            rq.tag = self.tags.driver(rq.hctx).get(rq.cpu, None);
        }
        rq.tag.is_some()
    }

    /// Takes the driver tag of a request that also has a scheduler tag
    /// (`blk_mq_put_driver_tag`).
    pub(crate) fn put_driver_tag(&mut self, id: RqId) {
        let rq = &mut self.core.rqs[id];
        if rq.sched_tag.is_some()
            && let Some(tag) = rq.tag.take()
        {
            let (hctx, cpu) = (rq.hctx, rq.cpu);
            self.give_driver_tag(hctx, cpu, tag);
        }
    }

    /// A driver tag goes to who waits for it: tasks, and hardware queues where all have
    /// their tags in common (`blk_mq_put_tag`, `blk_mq_dispatch_wake`).
    pub(crate) fn give_driver_tag(&mut self, h: u16, cpu: u16, tag: u16) {
        let woken = self.tags.put_driver(h, cpu, tag, &mut self.wakes);
        self.core.runs_wanted |= woken;
    }

    /// The driver is called for a request that has budget and tag (`queue_rq`): D,
    /// or R if it refuses.
    fn start(&mut self, cx: &mut Cx<'_>, rq: RqId) -> Answer {
        let answer = self.asked(cx, rq);
        if answer == Answer::Started {
            self.hand_over(cx, rq);
        } else {
            self.give_back(cx, rq);
        }
        answer
    }

    /// What the driver says to a request.
    fn asked(&mut self, cx: &mut Cx<'_>, rq: RqId) -> Answer {
        let refuses = self.core.limits.refuses_above;
        if refuses.is_some_and(|n| self.device_busy >= n) {
            Answer::Refused
        } else if !self.within_byte_budget(cx, rq) {
            Answer::Stopped
        } else {
            Answer::Started
        }
    }

    /// The driver has room for a request (`blk_mq_start_request`): D.
    fn hand_over(&mut self, cx: &mut Cx<'_>, rq: RqId) {
        let request = &self.core.rqs[rq];
        assert!(request.tag.is_some(), "a command has a driver tag");
        assert!(
            !request.state.has(RqState::STARTED),
            "a request is started once"
        );
        self.device_busy += 1;
        self.core.rqs[rq].state |= RqState::STARTED;
        self.core.rqs[rq].handed_over = cx.now;
        self.core.rqs[rq].issued_on = cx.running.cpu;
        for policy in self.policies.each() {
            policy.issued(cx, rq, &self.core.rqs[rq]);
        }
        self.core.rq_event(cx, Action::Issue, Kind::Issue, rq);
        let busy = u64::from(self.device_busy);
        events::rq_truth(cx, Kind::HandOver, rq, &self.core.rqs[rq], busy);
        cx.ask(Effect::Dispatch(rq));
    }

    /// The driver gives a request back for which it has no room: R
    /// (`__blk_mq_requeue_request`).
    fn give_back(&mut self, cx: &mut Cx<'_>, rq: RqId) {
        if self.core.limits.refusal == Refusal::AfterStart {
            self.core.rq_trace(cx, Action::Issue, rq);
        }
        self.put_driver_tag(rq);
        self.put_budget();
        self.core.rq_trace(cx, Action::Requeue, rq);
        cx.waits(Why::DeviceFull, 0);
    }

    /// Takes budget and tag for a request and calls the driver
    /// (`__blk_mq_try_issue_directly`; in 6.12 `blk_mq_get_budget_and_tag`,
    /// `__blk_mq_issue_directly`).
    fn issue(&mut self, cx: &mut Cx<'_>, rq: RqId) -> Answer {
        if !self.take_budget(cx) {
            return Answer::NoBudget;
        }
        if !self.take_driver_tag(rq) {
            cx.waits(Why::DeviceFull, 0);
            self.put_budget();
            return Answer::NoTag;
        }
        self.start(cx, rq)
    }

    /// A single request goes straight to the driver (`blk_mq_try_issue_directly`);
    /// if that cannot be it waits in its software queue, or in the hardware queue's
    /// list.
    pub(crate) fn issue_directly(&mut self, cx: &mut Cx<'_>, rq: RqId) {
        let h = self.core.rqs[rq].hctx;
        if self.hctx_mut(h).stopped {
            self.insert(cx, rq, false);
            return;
        }
        match self.issue(cx, rq) {
            Answer::Started => self.hctx_mut(h).was_accepted(),
            Answer::Refused | Answer::Stopped => {
                self.hctx_mut(h).was_refused();
                self.bypass(rq, false);
                self.run_hctx_now(cx, h);
            }
            Answer::NoTag | Answer::NoBudget => {
                self.insert(cx, rq, false);
                self.core.run_hctx(h);
            }
        }
    }

    /// A request of a plug goes straight to the driver
    /// (`blk_mq_request_issue_directly`); if that cannot be it waits in the
    /// hardware queue's list, and the queue is run if `runs`. False if the next
    /// ones are not to be tried.
    pub(crate) fn issue_from_plug(&mut self, cx: &mut Cx<'_>, rq: RqId, runs: bool) -> bool {
        let h = self.core.rqs[rq].hctx;
        if self.hctx_mut(h).stopped {
            self.insert(cx, rq, false);
            return true;
        }
        let answer = self.issue(cx, rq);
        match answer {
            Answer::Started => {
                self.hctx_mut(h).was_accepted();
                return true;
            }
            Answer::Refused | Answer::Stopped => self.hctx_mut(h).was_refused(),
            Answer::NoTag | Answer::NoBudget => {}
        }
        self.bypass(rq, false);
        if runs {
            self.run_hctx_now(cx, h);
        }
        false
    }

    /// The driver is handed a plug's requests, which have their tags, as a list
    /// (`queue_rqs`), and leaves those that it refuses (no event).
    pub(crate) fn issue_list(&mut self, cx: &mut Cx<'_>, list: &mut List) {
        let mut refused = List::EMPTY;
        while let Some(rq) = list.pop_front(&mut self.core.rqs) {
            if self.asked(cx, rq) == Answer::Started {
                self.hand_over(cx, rq);
            } else {
                refused.push_back(&mut self.core.rqs, rq);
            }
        }
        *list = refused;
    }

    /// Hands a list to the driver, in order, as far as that takes it
    /// (`blk_mq_dispatch_rq_list`); the rest goes behind the hardware queue's list.
    /// True if something was started and nothing is left. The first `budgeted`
    /// requests have their budget.
    pub(crate) fn send(
        &mut self,
        cx: &mut Cx<'_>,
        h: u16,
        mut list: List,
        mut budgeted: u32,
    ) -> bool {
        let mut answer = Answer::Started;
        let mut started = false;
        while let Some(rq) = list.front() {
            answer = self.send_one(cx, h, rq, budgeted > 0);
            budgeted = budgeted.saturating_sub(1);
            if answer != Answer::Started {
                break;
            }
            list.remove(&mut self.core.rqs, rq);
            started = true;
        }
        if list.is_empty() {
            self.hctx_mut(h).was_accepted();
            return started;
        }
        for _ in 0..budgeted {
            self.put_budget();
        }
        let hctx = &mut self.hctxs[usize::from(h)];
        hctx.dispatch.append(&mut self.core.rqs, &mut list);
        self.rerun(cx, h, answer);
        self.hctx_mut(h).was_refused();
        false
    }

    /// The next request of such a list: budget and tag (`blk_mq_prep_dispatch_rq`,
    /// `blk_mq_mark_tag_wait`), then the driver.
    fn send_one(&mut self, cx: &mut Cx<'_>, h: u16, rq: RqId, budgeted: bool) -> Answer {
        if !budgeted && !self.take_budget(cx) {
            self.put_driver_tag(rq);
            return Answer::NoBudget;
        }
        if !self.take_driver_tag(rq) {
            self.wait_for_driver_tag(h);
            cx.waits(Why::DeviceFull, 0);
            self.put_budget();
            return Answer::NoTag;
        }
        self.start(cx, rq)
    }

    /// There is no driver tag: the next request of the hardware queue that is freed runs it
    /// again. Where all have their tags in common it need not have any, and waits like a task
    /// (`blk_mq_mark_tag_wait`).
    fn wait_for_driver_tag(&mut self, h: u16) {
        if !self.core.limits.shared_tags {
            self.hctx_mut(h).restart = true;
        } else if !self.tags.driver(h).has_waiting(h) {
            let queue = self.next_wait_queue(h);
            self.tags.driver(h).wait_as_queue(queue, h);
        }
    }

    /// The wait queue for tags that the next one joins who finds none; they take turns
    /// (`bt_wait_ptr`).
    pub(crate) fn next_wait_queue(&mut self, h: u16) -> u8 {
        let hctx = self.hctx_mut(h);
        let queue = hctx.next_wait;
        hctx.next_wait = (queue + 1) % Tags::WAIT_QUEUES;
        queue
    }

    /// Who runs the queue again for what is left: the next completion, kblockd,
    /// or kblockd in a while.
    fn rerun(&mut self, cx: &mut Cx<'_>, h: u16, answer: Answer) {
        if !self.hctxs[usize::from(h)].restart {
            self.core.run_hctx(h);
        } else if matches!(answer, Answer::Refused | Answer::NoBudget) {
            self.run_later(cx, h);
        }
    }

    /// kblockd is to run a hardware queue in a while (`blk_mq_delay_run_hw_queue`).
    pub(crate) fn run_later(&mut self, cx: &mut Cx<'_>, h: u16) {
        let timer = self.hctxs[usize::from(h)].delayed_run;
        let ticks = self.core.hz.from_ms(RERUN_MS);
        cx.timers.arm(timer, cx.jiffies.plus(ticks));
    }

    pub(crate) fn hctx_mut(&mut self, h: u16) -> &mut Hctx {
        &mut self.hctxs[usize::from(h)]
    }
}

impl Hctx {
    /// The driver took what it was given (`blk_mq_update_dispatch_busy`).
    pub(crate) fn was_accepted(&mut self) {
        self.dispatch_busy = decayed(self.dispatch_busy, false);
    }

    /// The driver did not take all that it was given
    /// (`blk_mq_update_dispatch_busy`).
    pub(crate) fn was_refused(&mut self) {
        self.dispatch_busy = decayed(self.dispatch_busy, true);
    }
}

/// A mean of "busy" with weight 1/8 for the newest, in sixteenths
/// (`BLK_MQ_DISPATCH_BUSY_EWMA_WEIGHT`, `BLK_MQ_DISPATCH_BUSY_EWMA_FACTOR`).
fn decayed(old: u8, busy: bool) -> u8 {
    (7 * old + if busy { 16 } else { 0 }) / 8
}

#[cfg(test)]
mod tests {
    use super::decayed;

    #[test]
    fn vector_v9() {
        let run = |from: u8, busy: &[bool]| -> Vec<u8> {
            let mut value = from;
            let step = |b: &bool| {
                value = decayed(value, *b);
                value
            };
            busy.iter().map(step).collect()
        };
        assert_eq!(run(0, &[true; 9]), [2, 3, 4, 5, 6, 7, 8, 9, 9]);
        assert_eq!(run(9, &[false; 8]), [7, 6, 5, 4, 3, 2, 1, 0]);
        assert_eq!(run(0, &[true, false, false]), [2, 1, 0]);
    }
}
