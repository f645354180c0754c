// SPDX-License-Identifier: MIT OR Apache-2.0
//! Write-back throttling in the chain of a queue's policies.

use super::wbt::{Wbt, WbtAdmit};
use super::{Admission, Policy};
use crate::qos::WbtClass;
use crate::{Cx, Pending, Request, RqId, RqState, SleepsFor};
use blklab_engine::TimerId;
use blklab_types::{Jiffies, Op, TaskId};

impl Policy for Wbt {
    /// Who sleeps is counted when it is woken.
    fn throttle(
        &mut self,
        cx: &mut Cx<'_>,
        part: &mut Pending,
        _wakes: &mut Vec<TaskId>,
    ) -> Admission {
        match self.try_admit(cx.timers, &part.bio) {
            WbtAdmit::Untracked => Admission::Goes,
            WbtAdmit::Tracked(class) => {
                part.qos.class = Some(class);
                Admission::Goes
            }
            WbtAdmit::Sleeps(class) => {
                part.qos.class = Some(class);
                Admission::Sleeps
            }
        }
    }

    fn refused(&mut self, cx: &mut Cx<'_>, part: &Pending, wakes: &mut Vec<TaskId>) {
        if let Some(class) = part.qos.class {
            Wbt::freed(self, cx.timers, class, wakes);
        }
    }

    fn issued(&mut self, cx: &Cx<'_>, id: RqId, rq: &Request) {
        Wbt::issued(self, cx.now, rq.op, id);
    }

    fn requeued(&mut self, id: RqId) {
        Wbt::requeued(self, id);
    }

    fn completed(&mut self, cx: &Cx<'_>, rq: &Request) {
        Wbt::completed(self, rq.op, cx.now.since(rq.handed_over));
    }

    /// It no longer counts a request (`wbt_done`).
    fn freed(&mut self, cx: &mut Cx<'_>, id: RqId, rq: &Request, wakes: &mut Vec<TaskId>) {
        if rq.op == Op::Read {
            self.read_freed(cx.jiffies, id);
        } else if rq.state.has(RqState::THROTTLED_WRITE) {
            Wbt::freed(self, cx.timers, WbtClass::Background, wakes);
        } else if rq.state.has(RqState::THROTTLED_DISCARD) {
            Wbt::freed(self, cx.timers, WbtClass::Discard, wakes);
        }
    }

    fn dirty_wait(&mut self, jiffies: Jiffies) {
        Wbt::dirty_wait(self, jiffies);
    }

    fn timer(&mut self, cx: &mut Cx<'_>, timer: TimerId, wakes: &mut Vec<TaskId>) -> bool {
        let is_ours = self.timer_id() == timer;
        if is_ours {
            Wbt::timer(self, cx.now, cx.timers, wakes);
        }
        is_ours
    }

    fn sleeps_for(&self) -> SleepsFor {
        SleepsFor::WriteBack
    }
}
