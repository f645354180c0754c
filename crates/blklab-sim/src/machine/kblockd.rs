// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel threads that do the block layer's deferred work: without tasks
//! that share a processor they act between two events, otherwise each is a task.

use super::work::Work;
use super::{Machine, World};
use blklab_block::{Queue, QueueNo, Running};
use blklab_engine::WorkId;
use blklab_types::{IoPrio, Pid, Span, TaskId, Time};

/// Pid of the kernel thread that does the block layer's deferred work.
pub const KBLOCKD_PID: Pid = 42;

/// Its name on the multi-queue path.
pub(crate) const KBLOCKD_NAME: &str = "kworker/0:1H";

/// The thread of a processor, where it is a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kblockd {
    task: TaskId,
    /// The hardware queues that it is to run, a bit each; of one processor, whatever was asked
    /// for by the time it does.
    wanted: u64,
    /// Those that it runs.
    runs: u64,
}

impl World {
    /// Whether a task is one of the threads.
    pub(super) fn is_kblockd(&self, task: Option<TaskId>) -> bool {
        self.kblockd.iter().any(|k| Some(k.task) == task)
    }

    /// A queue asks for runs. Who runs a hardware queue is to run it again, wherever that was
    /// asked for; and a run that waits on one processor goes to the one that comes next
    /// (`__queue_work`, `mod_delayed_work_on`).
    pub(super) fn want_kblockd(&mut self, no: QueueNo) {
        if self.turns.is_none() {
            let thread = &mut self.kblockd[0];
            thread.wanted = 1;
            let task = thread.task;
            return self.wake(task);
        }
        let by = self.running.cpu;
        let queue = &mut self.disks[no.idx()].queue;
        let wanted = queue.take_runs(by);
        for h in (0..64).filter(|h| wanted >> h & 1 != 0) {
            let queue = &mut self.disks[no.idx()].queue;
            let next = usize::from(queue.kblockd_cpu(h, by));
            let runs = self.kblockd.iter().position(|k| k.runs >> h & 1 != 0);
            for thread in &mut self.kblockd {
                thread.wanted &= !(1 << h);
            }
            let thread = &mut self.kblockd[runs.unwrap_or(next)];
            thread.wanted |= 1 << h;
            let task = thread.task;
            self.wake(task);
        }
    }
}

impl Machine {
    /// Makes tasks of the threads, one for each of so many processors.
    pub(super) fn start_kblockd(&self, nr_cpus: u16) {
        for cpu in 0..nr_cpus {
            let body = kblockd_thread(self.clone(), usize::from(cpu));
            let task = if cpu == 0 {
                let prio = IoPrio::default();
                self.spawn_at(KBLOCKD_NAME, KBLOCKD_PID, prio, false, Time::ZERO, body)
            } else {
                self.spawn_kernel_thread(&format!("kworker/{cpu}:1H"), body)
            };
            let w = &mut *self.inner.world.borrow_mut();
            w.kblockd.push(Kblockd {
                task,
                wanted: 0,
                runs: 0,
            });
            w.cpus[usize::from(cpu)].set_urgent(task);
            w.allow(task, cpu, &[cpu]);
        }
    }

    /// kblockd runs.
    pub(super) fn work_due(&self, work: WorkId) {
        let work = Work::from_id(work);
        let kblockd = Running {
            task: None,
            pid: KBLOCKD_PID,
            cpu: match work {
                Work::Run(no) => self.inner.world.borrow().disks[no.idx()].kblockd_cpu,
                Work::Unplug(_) | Work::End(_) | Work::Return(_) => 0,
            },
        };
        match work {
            Work::End(cpu) => self.end_what_was_sent(cpu),
            // Whose turn it is, is looked for behind everything that is due.
            Work::Return(_) => {}
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
async fn kblockd_thread(m: Machine, cpu: usize) {
    let costs = m.inner.cpu.costs();
    let first = costs.dispatch.ns();
    let has_turns = m.has_turns();
    let take = || {
        let thread = &mut m.inner.world.borrow_mut().kblockd[cpu];
        thread.runs = std::mem::take(&mut thread.wanted);
        thread.runs
    };
    loop {
        let mut wanted = take();
        while wanted == 0 {
            m.suspend().await;
            wanted = take();
        }
        m.compute(Span(first)).await;
        if has_turns {
            m.with_queue(QueueNo::FIRST, |q, cx| q.run_taken(cx, wanted));
        } else {
            m.with_queue(QueueNo::FIRST, Queue::run_work);
        }
        let owed = m.take_owed().ns();
        m.compute(Span(owed.saturating_sub(first)) + costs.worker)
            .await;
    }
}
