// SPDX-License-Identifier: MIT OR Apache-2.0
//! A block device's queue on either path.

use crate::{Cx, Gate, Pending, Requests, RqId, SleepsFor, Submit, mq, sq};
use blklab_engine::TimerId;
use blklab_trace::Counter;
use blklab_types::{Bio, Dev, Hz, TaskId};

/// A block device's queue: what tasks, timers and devices call.
pub enum Queue {
    /// Single-queue path.
    Sq(Box<sq::Queue>),
    /// Multi-queue path.
    Mq(Box<mq::Queue>),
}

/// The same call on either path.
macro_rules! on {
    ($queue:expr, $q:ident => $call:expr) => {
        match $queue {
            Queue::Sq($q) => $call,
            Queue::Mq($q) => $call,
        }
    };
}

impl Queue {
    /// All requests.
    pub fn requests(&self) -> &Requests {
        on!(self, q => &q.core().rqs)
    }

    /// Requests that the driver has.
    pub fn device_busy(&self) -> u32 {
        on!(self, q => q.device_busy())
    }

    /// Ticks per second.
    pub fn hz(&self) -> Hz {
        on!(self, q => q.core().hz)
    }

    /// Processors with a queue of their own: 1 on the single-queue path.
    pub fn nr_cpus(&self) -> u16 {
        match self {
            Queue::Sq(_) => 1,
            Queue::Mq(q) => q.core().limits.nr_cpus.max(1),
        }
    }

    /// The processor that a request is sent on to whose interrupt came to `cpu`; none if it
    /// ends there, as on the single-queue path.
    pub fn sends_on(&self, rq: RqId, cpu: u16) -> Option<u16> {
        match self {
            Queue::Sq(_) => None,
            Queue::Mq(q) => q.sends_on(rq, cpu),
        }
    }

    /// What it did that takes processor time, since this was asked last; none on the
    /// single-queue path, where nobody is charged for it.
    #[inline]
    pub fn take_work(&mut self) -> mq::Work {
        match self {
            Queue::Sq(_) => mq::Work::default(),
            Queue::Mq(q) => q.take_work(),
        }
    }

    /// Limits of groups, and what waits for them.
    pub fn gate(&self) -> &Gate {
        on!(self, q => q.gate())
    }

    /// kthrotld, the running task, submits the next bio that limits released; none if there is
    /// none.
    ///
    /// # Panics
    /// If no task runs: a bug in the caller.
    pub fn submit_released(&mut self, cx: &mut Cx<'_>) -> Option<Submit> {
        on!(self, q => q.submit_released(cx))
    }

    /// kthrotld has submitted what there was.
    pub fn end_release(&mut self, cx: &mut Cx<'_>) {
        if let Queue::Sq(q) = self {
            q.end_release(cx);
        }
    }

    /// Whether nothing waits and nothing is at the device.
    pub fn is_idle(&self) -> bool {
        on!(self, q => q.is_idle())
    }

    /// Its device.
    pub fn dev(&self) -> Dev {
        on!(self, q => q.core().dev)
    }

    /// Tells its counters, always the same ones in the same order: requests of the two
    /// pools on the single-queue path, tags on the multi-queue path.
    pub fn counters(&self, tell: impl FnMut(Counter, u32)) {
        on!(self, q => q.counters(tell));
    }

    /// What sysfs shows of the scheduler beside the tunables.
    pub fn shows(&self) -> Vec<(&'static str, String)> {
        match self {
            Queue::Sq(q) => q.elevator().shows(),
            Queue::Mq(q) => q.elevator().map(mq::Elevator::shows).unwrap_or_default(),
        }
    }

    /// Whether plugs belong to tasks (2.6.39).
    pub fn has_task_plugs(&self) -> bool {
        match self {
            Queue::Sq(q) => q.core().feat.task_plug,
            Queue::Mq(_) => true,
        }
    }

    /// Requests of one `io_submit` that are collected in a plug: more than this.
    pub fn io_submit_plugs_above(&self) -> usize {
        match self {
            Queue::Sq(_) => 0,
            Queue::Mq(_) => 2,
        }
    }

    /// Whether `io_submit` unplugs the queues of its files (2.6.33 to 2.6.38).
    pub fn io_submit_unplugs(&self) -> bool {
        match self {
            Queue::Sq(q) => q.core().feat.io_submit_unplugs,
            Queue::Mq(_) => false,
        }
    }

    /// Whether requests for reads are nearly used up; never on the multi-queue
    /// path, which tells nobody.
    pub fn read_congested(&self) -> bool {
        match self {
            Queue::Sq(q) => q.read_congested(),
            Queue::Mq(_) => false,
        }
    }

    /// Whether requests for asynchronous writes are nearly used up; never on the
    /// multi-queue path.
    pub fn write_congested(&self) -> bool {
        match self {
            Queue::Sq(q) => q.write_congested(),
            Queue::Mq(_) => false,
        }
    }

    /// A task submits a bio (Q). Its sectors lie on the device.
    pub fn submit(&mut self, cx: &mut Cx<'_>, bio: Bio) -> Submit {
        on!(self, q => q.submit(cx, bio))
    }

    /// A stacked device passes a bio on, from its own sector (A).
    pub fn submit_from(&mut self, cx: &mut Cx<'_>, bio: Bio, from: Option<(Dev, u64)>) -> Submit {
        on!(self, q => q.submit_from(cx, bio, from))
    }

    /// A task that slept for a request goes on.
    pub fn resume(&mut self, cx: &mut Cx<'_>, pending: Pending) -> Submit {
        on!(self, q => q.resume(cx, pending))
    }

    /// What a task sleeps for whose submission said that it does.
    pub fn sleeps_for(&self, task: TaskId) -> SleepsFor {
        match self {
            Queue::Sq(_) => SleepsFor::Request,
            Queue::Mq(q) => q.sleeps_for(task),
        }
    }

    /// The device finished a request.
    pub fn complete(&mut self, cx: &mut Cx<'_>, rq: RqId, error: u16) {
        on!(self, q => q.complete(cx, rq, error));
    }

    /// A task ended: its io context goes.
    pub fn exit_task(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        on!(self, q => q.exit_task(cx, task));
    }

    /// The task starts to collect requests. Calls nest. Nothing before 2.6.39.
    pub fn start_plug(&mut self, task: TaskId) {
        on!(self, q => q.start_plug(task));
    }

    /// The same for a task that will submit about `nr_ios` requests.
    pub fn start_plug_for(&mut self, task: TaskId, nr_ios: u32) {
        match self {
            Queue::Sq(q) => q.start_plug(task),
            Queue::Mq(q) => q.start_plug_for(task, nr_ios),
        }
    }

    /// The task stops collecting.
    pub fn finish_plug(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        on!(self, q => q.finish_plug(cx, task));
    }

    /// The task is about to sleep for I/O.
    pub fn flush_plug_to_sleep(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        on!(self, q => q.flush_plug_to_sleep(cx, task));
    }

    /// A task slept in `balance_dirty_pages`.
    pub fn dirty_wait(&mut self, cx: &mut Cx<'_>) {
        match self {
            Queue::Sq(_) => {}
            Queue::Mq(q) => q.dirty_wait(cx.jiffies),
        }
    }

    /// Somebody waits for I/O: the queue's plug goes (before 2.6.39).
    pub fn unplug(&mut self, cx: &mut Cx<'_>) {
        match self {
            Queue::Sq(q) => q.unplug(cx),
            Queue::Mq(_) => {}
        }
    }

    /// kblockd is to remove the plug.
    pub fn unplug_work(&mut self, cx: &mut Cx<'_>) {
        match self {
            Queue::Sq(q) => q.unplug_work(cx),
            Queue::Mq(_) => unreachable!("the multi-queue path asks for runs only"),
        }
    }

    /// kblockd is to call the driver.
    pub fn run_work(&mut self, cx: &mut Cx<'_>) {
        on!(self, q => q.run_work(cx));
    }

    /// The hardware queues that kblockd is to run, a bit each, where it has a thread for each
    /// processor; who asked is on this one.
    pub fn take_runs(&mut self, cpu: u16) -> u64 {
        match self {
            Queue::Sq(_) => unreachable!("the single-queue path has one kblockd"),
            Queue::Mq(q) => q.take_runs(cpu),
        }
    }

    /// Where kblockd runs what is asked for on a CPU, if it has no thread for each: each of
    /// several hardware queues goes to its own place from there.
    pub fn kblockd_begins_on(&mut self, by: u16) -> u16 {
        match self {
            Queue::Mq(q) if q.has_one_hctx() => q.kblockd_cpu(0, by),
            _ => by,
        }
    }

    /// Where kblockd runs a hardware queue that is asked for on a CPU.
    pub fn kblockd_cpu(&mut self, hctx: u16, by: u16) -> u16 {
        match self {
            Queue::Sq(_) => by,
            Queue::Mq(q) => q.kblockd_cpu(hctx, by),
        }
    }

    /// The thread of kblockd on the running processor runs these.
    pub fn run_taken(&mut self, cx: &mut Cx<'_>, taken: u64) {
        match self {
            Queue::Sq(_) => unreachable!("the single-queue path has one kblockd"),
            Queue::Mq(q) => q.run_taken(cx, taken),
        }
    }

    /// The timer registered last: all that lie between that of the queue
    /// registered before and this one are the queue's.
    pub fn last_timer(&self) -> TimerId {
        match self {
            Queue::Sq(q) => q.unplug_timer_id(),
            Queue::Mq(q) => q.last_timer(),
        }
    }

    /// One of the queue's or its scheduler's timers fired.
    pub fn timer(&mut self, cx: &mut Cx<'_>, timer: TimerId) {
        let known = match self {
            Queue::Sq(q) if timer == q.unplug_timer_id() => {
                q.unplug_timeout(cx);
                true
            }
            Queue::Sq(q) => q.elevator_timer(cx, timer),
            Queue::Mq(q) => q.timer(cx, timer),
        };
        debug_assert!(known, "a timer without an owner");
    }
}
