// SPDX-License-Identifier: MIT OR Apache-2.0
//! The block layer finds out at once when a scheduler or a driver breaks the
//! rules: requests are conserved in every call, the device finishes what it has.

use crate::mq_rig::MqSetup;
use crate::rig::{Setup, bio};
use blklab_block::sq::{Core, Elevator, Features, Limits, Queue};
use blklab_block::{Cx, Effect, List, QueueNo, RqId, Running, TaskTable};
use blklab_engine::Timers;
use blklab_kernel::KernelVersion;
use blklab_trace::{NullSink, Tracer};
use blklab_types::{Dev, Hz, IoPrio, Jiffies, Time};

/// How a scheduler is wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// It moves a request and says that it did not.
    Silent,
    /// It counts a request that it did not move.
    Boasting,
    /// It moves one out when one comes in, and forgets to take the new one.
    Losing,
    /// It keeps what is to go.
    Keeping,
}

struct Faulty {
    fault: Fault,
    fifo: List,
}

impl Elevator for Faulty {
    fn name(&self) -> &'static str {
        "faulty"
    }

    fn add(&mut self, q: &mut Core, _: &mut Cx<'_>, rq: RqId) {
        self.fifo.push_back(&mut q.rqs, rq);
        if self.fault == Fault::Losing {
            q.nr_sorted -= 1;
        }
    }

    fn dispatch(&mut self, q: &mut Core, _: &mut Cx<'_>, force: bool) -> usize {
        match self.fault {
            Fault::Boasting => return 1,
            Fault::Keeping if force => return 0,
            _ => {}
        }
        let Some(rq) = self.fifo.pop_front(&mut q.rqs) else {
            return 0;
        };
        q.dispatch_add_tail(rq);
        usize::from(self.fault != Fault::Silent)
    }

    fn merge_requests(&mut self, q: &mut Core, _: &mut Cx<'_>, _: RqId, next: RqId) {
        self.fifo.remove(&mut q.rqs, next);
    }

    fn former(&self, _: &Core, _: RqId) -> Option<RqId> {
        None
    }

    fn latter(&self, _: &Core, _: RqId) -> Option<RqId> {
        None
    }
}

/// Submits a write, and a barrier behind it.
fn run(fault: Fault) {
    let hz = Hz(1000);
    let mut timers = Timers::new(hz);
    let fifo = List::EMPTY;
    let elv = Box::new(Faulty { fault, fifo });
    let feat = Features::of(KernelVersion::v2_6(28));
    let mut queue = Queue::new(Dev::default(), feat, Limits::new(hz), elv, &mut timers);
    let mut tasks = TaskTable::default();
    let task = tasks.add(100, IoPrio::default());
    let mut effects: Vec<(QueueNo, Effect)> = Vec::new();
    let mut cx = Cx {
        queue: QueueNo::FIRST,
        now: Time::ZERO,
        jiffies: Jiffies(0),
        running: Running::INTERRUPT,
        timers: &mut timers,
        tasks: &mut tasks,
        trace: &mut Tracer::new(Box::new(NullSink)),
        truth: None,
        effects: &mut effects,
    };
    queue.submit(&mut cx, bio(task, "W 100+8"));
    queue.submit(&mut cx, bio(task, "WB 200+8"));
}

#[test]
#[should_panic(expected = "dispatch moves as many as it says")]
fn a_scheduler_that_does_not_say_what_it_moves() {
    run(Fault::Silent);
}

#[test]
#[should_panic(expected = "dispatch moves as many as it says")]
fn a_scheduler_that_says_what_it_does_not_move() {
    run(Fault::Boasting);
}

#[test]
#[should_panic(expected = "add loses or invents requests")]
fn a_scheduler_that_loses_a_request() {
    run(Fault::Losing);
}

#[test]
#[should_panic(expected = "forced dispatch left requests behind")]
fn a_scheduler_that_keeps_what_is_to_go() {
    run(Fault::Keeping);
}

#[test]
#[should_panic(expected = "the device finishes what it has")]
fn a_driver_that_finishes_what_it_gave_back() {
    let mut rig = Setup::default().rig();
    let task = rig.task();
    rig.submit(task, "RS 100+8");
    rig.enter(Queue::unplug);
    let rq = rig.at_device[0];
    rig.enter(|q, cx| {
        q.requeue(cx, rq);
        q.complete(cx, rq, 0);
    });
}

#[test]
#[should_panic(expected = "the device finishes what it has")]
fn the_same_on_the_multi_queue_path() {
    let mut rig = MqSetup::tags("6.1", "none", 4).rig();
    let task = rig.task();
    rig.submit(0, &bio(task, "R 100+8"));
    let rq = rig.at_device[0];
    rig.enter(|q, cx| {
        q.requeue(cx, rq);
        q.complete(cx, rq, 0);
    });
}
