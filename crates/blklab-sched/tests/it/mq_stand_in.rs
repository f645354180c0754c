// SPDX-License-Identifier: MIT OR Apache-2.0
//! The least of a multi-queue device around a scheduler: budget model, no
//! merging, no plugs, no tags.

use blklab_block::mq::{Core, Elevator, Features, Limits};
use blklab_block::{Cx, Effect, RqId, RqState};
use blklab_engine::{TimerId, Timers};
use blklab_trace::truth::{Kind, Truth};
use blklab_types::{Bio, Dev, PrioClass, TaskId};

pub(crate) struct Queue {
    core: Core,
    elv: Box<dyn Elevator>,
    in_flight: u32,
    retry: TimerId,
}

impl Queue {
    pub(crate) fn new(
        dev: Dev,
        feat: Features,
        limits: Limits,
        elv: Option<Box<dyn Elevator>>,
        timers: &mut Timers,
    ) -> Queue {
        let mut elv = elv.expect("a scheduler");
        let core = Core::new(dev, feat, limits, true, timers.hz());
        elv.depth_updated(&core);
        Queue {
            core,
            elv,
            in_flight: 0,
            retry: timers.register("hctx_run"),
        }
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    pub(crate) fn elevator(&self) -> Option<&dyn Elevator> {
        Some(&*self.elv)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.core.rqs.nr_alive() == 0
    }

    fn truth(&self, cx: &mut Cx<'_>, kind: Kind, rq: RqId) {
        let r = &self.core.rqs[rq];
        let record = Truth {
            time: cx.now,
            kind,
            pid: cx.tasks.get(r.task).pid,
            op: r.op,
            sync: r.is_sync(),
            sector: r.sector,
            nr_sectors: r.nr_sectors,
            arg: 0,
            request: rq.0,
        };
        cx.truth(record, "");
    }

    pub(crate) fn insert_bare(&mut self, cx: &mut Cx<'_>, bio: &Bio) {
        let mut bio = *bio;
        let ioc = cx.tasks.get(bio.task);
        if bio.ioprio.class == PrioClass::None {
            bio.ioprio = ioc.ioprio;
        }
        self.elv.limit_depth(&self.core, cx, &bio);
        let rqs = &mut self.core.rqs;
        let rq = rqs.alloc(bio.op, bio.flags, bio.task, cx.jiffies);
        rqs.fill(rq, &bio, cx.now);
        rqs[rq].cpu = cx.running.cpu;
        rqs[rq].allocated = cx.now;
        self.elv.prepare(&mut self.core, cx, rq);
        self.elv.before_insert(&mut self.core, cx, rq, false);
        self.truth(cx, Kind::Insert, rq);
        self.elv.add(&mut self.core, cx, rq, false);
        cx.effects.push(Effect::RunWork);
    }

    pub(crate) fn run_work(&mut self, cx: &mut Cx<'_>) {
        let budget = self.core.limits.budget.expect("the budget model");
        while self.in_flight < budget && self.elv.has_work(&self.core, 0) {
            let Some(rq) = self.elv.dispatch(&mut self.core, cx, 0) else {
                let at = cx.jiffies.plus(self.core.hz.from_ms(3));
                if !cx.timers.is_pending(self.retry) {
                    cx.timers.arm(self.retry, at);
                }
                return;
            };
            self.core.rqs[rq].state |= RqState::STARTED;
            self.core.rqs[rq].handed_over = cx.now;
            self.in_flight += 1;
            self.truth(cx, Kind::Issue, rq);
            self.truth(cx, Kind::HandOver, rq);
            cx.effects.push(Effect::Dispatch(rq));
        }
    }

    pub(crate) fn complete(&mut self, cx: &mut Cx<'_>, rq: RqId, error: u16) {
        self.truth(cx, Kind::Complete, rq);
        while let Some((bio, _)) = self.core.rqs.take_bio(rq) {
            cx.effects.push(Effect::BioDone {
                cookie: bio.cookie,
                task: bio.task,
                error,
            });
        }
        self.elv.completed(&mut self.core, cx, rq);
        self.elv.finished(&mut self.core, cx, rq);
        self.core.rqs.free(rq);
        self.in_flight -= 1;
        cx.effects.push(Effect::RunWork);
    }

    pub(crate) fn timer(&mut self, cx: &mut Cx<'_>, timer: TimerId) -> bool {
        cx.effects.push(Effect::RunWork);
        timer == self.retry || self.elv.timer(&mut self.core, cx, timer)
    }

    pub(crate) fn exit_task(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        self.elv.exit_task(&mut self.core, cx, task);
    }
}
