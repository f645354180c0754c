// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel thread that does the block layer's deferred work: without tasks
//! that share a processor it acts between two events, otherwise it is a task.

use super::Machine;
use super::work::Work;
use blklab_block::{Queue, QueueNo, Running};
use blklab_engine::WorkId;
use blklab_types::{IoPrio, Pid, Span, Time};

/// Pid of the kernel thread that does the block layer's deferred work.
pub const KBLOCKD_PID: Pid = 42;

/// Its name on the multi-queue path.
pub(crate) const KBLOCKD_NAME: &str = "kworker/0:1H";

impl Machine {
    /// Makes it a task.
    pub(super) fn start_kblockd(&self) {
        let body = kblockd_thread(self.clone());
        let prio = IoPrio::default();
        let task = self.spawn_at(KBLOCKD_NAME, KBLOCKD_PID, prio, false, Time::ZERO, body);
        let mut w = self.inner.world.borrow_mut();
        w.kblockd = Some(task);
        w.cpu.set_urgent(task);
    }

    /// kblockd runs.
    pub(super) fn work_due(&self, work: WorkId) {
        let work = Work::from_id(work);
        let kblockd = Running {
            task: None,
            pid: KBLOCKD_PID,
            cpu: match work {
                Work::Run(no) => self.inner.world.borrow().disks[no.idx()].kblockd_cpu,
                Work::Unplug(_) | Work::End(_) => 0,
            },
        };
        match work {
            Work::End(cpu) => self.end_what_was_sent(cpu),
            Work::Unplug(QueueNo::ARRAY) => {
                self.inner.world.borrow_mut().running = kblockd;
                self.unplug_array();
                self.inner.world.borrow_mut().running = Running::INTERRUPT;
            }
            Work::Unplug(no) => self.interrupt_entry(no, kblockd, Queue::unplug_work),
            Work::Run(no) => self.interrupt_entry(no, kblockd, Queue::run_work),
        }
    }
}

/// The block layer's thread: runs hardware queues whenever that is asked for.
/// The time of a first request comes before it is handed over, that of others
/// and of the run itself after; a run that finds none takes as long as one of one.
async fn kblockd_thread(m: Machine) {
    let costs = m.inner.cpu.costs();
    let first = costs.dispatch.ns();
    loop {
        while !std::mem::take(&mut m.inner.world.borrow_mut().kblockd_wanted) {
            m.suspend().await;
        }
        m.compute(Span(first)).await;
        m.with_queue(QueueNo::FIRST, Queue::run_work);
        let owed = m.take_owed().ns();
        m.compute(Span(owed.saturating_sub(first)) + costs.worker)
            .await;
    }
}
