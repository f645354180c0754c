// SPDX-License-Identifier: MIT OR Apache-2.0
//! anticipatory: batches of sync and async requests in sector order, and a
//! short wait for the next request of a process that has just been served.
//!
//! Source: block/as-iosched.c of 2.6.16 to 2.6.32; removed in 2.6.33. Sync
//! and async requests have a tree by sector and a FIFO each and take turns in
//! batches; between batches the device drains. Inside a sync batch the
//! scheduler does not turn to another process's request right away: it waits
//! until the served process has had time to ask for more, if experience says
//! that it will.

mod anticipate;
mod batch;
mod dispatch;
mod process;
mod settings;
mod waiting;

use self::anticipate::Status;
use self::batch::Batch;
use self::process::Estimates;
use self::process::Processes;
use self::settings::{Features, Settings, SyncBy, TUNABLES};
use self::waiting::Waiting;
use crate::{Build, Make, ProcessorTime, Scheduler};
use blklab_block::sq::{Core, Elevator, Kick, MayQueue};
use blklab_block::{Cx, Merge, RqId, TreeNodes};
use blklab_engine::TimerId;
use blklab_kernel::KernelVersion;
use blklab_types::{Bio, IdVec, Op, TaskId};

const ASYNC: usize = 0;
const SYNC: usize = 1;

/// The tick counter at the start of a run, as in the kernel far above zero:
/// zero is long ago.
const BASE: u64 = 1 << 32;

/// The table entry.
pub const SCHEDULER: Scheduler = Scheduler {
    name: "anticipatory",
    summary: "sync and async batches in sector order; waits for a process's next read",
    since: KernelVersion::v2_6(16),
    until: KernelVersion::v2_6(33),
    tunables: TUNABLES,
    changes: &[settings::CHANGES],
    processor_time: ProcessorTime::NONE,
    make: Make::Sq(|b: &mut Build<'_>| {
        let timer = b.timers.register("antic_timer");
        let now = BASE + b.timers.jiffies().0;
        let settings = Settings::new(b);
        let processes = b.shared.kept::<Processes>();
        let feat = Features::of(b.version);
        Box::new(Anticipatory::new(feat, settings, timer, now, processes))
    }),
};

/// What the scheduler notes about a request.
#[derive(Clone, Copy, Debug, Default)]
struct Info {
    /// Sync or async.
    kind: usize,
    /// The process that counts it.
    owner: TaskId,
    /// Jiffy after which it has expired.
    expires: u64,
}

/// The scheduler's state.
#[derive(Debug)]
pub struct Anticipatory {
    feat: Features,
    set: Settings,
    timer: TimerId,
    nodes: TreeNodes,
    /// By request.
    info: IdVec<RqId, Info>,
    waiting: [Waiting; 2],
    batch: Batch,
    /// Requests that were moved to the dispatch list and have not completed.
    nr_dispatched: u32,
    status: Status,
    /// The process of the last dispatched request, if that was sync.
    served: Option<TaskId>,
    /// One of its requests has completed since.
    served_done: bool,
    /// When it did, in jiffies.
    wait_start: u64,
    processes: Processes,
    estimates: Estimates,
}

fn jiffies(cx: &Cx<'_>) -> u64 {
    cx.jiffies.0.saturating_add(BASE)
}

impl Anticipatory {
    fn new(
        feat: Features,
        set: Settings,
        timer: TimerId,
        now: u64,
        processes: Processes,
    ) -> Anticipatory {
        Anticipatory {
            feat,
            set,
            timer,
            nodes: TreeNodes::default(),
            info: IdVec::default(),
            waiting: [Waiting::default(); 2],
            batch: Batch::new(&set, now),
            nr_dispatched: 0,
            status: Status::Off,
            served: None,
            served_done: false,
            wait_start: 0,
            processes,
            estimates: Estimates::default(),
        }
    }

    fn note(&mut self, q: &Core, cx: &Cx<'_>, rq: RqId, now: u64) -> Info {
        let request = &q.rqs[rq];
        let is_sync = match self.feat.sync_by {
            SyncBy::Flag => request.is_sync(),
            SyncBy::Task => request.op == Op::Read || cx.tasks.get(request.task).sync_writes,
        };
        let kind = usize::from(is_sync);
        let info = Info {
            kind,
            owner: request.task,
            expires: now + self.set.fifo_expire[kind],
        };
        *self.info.entry(rq) = info;
        info
    }

    /// Puts a request into its tree. One that starts at the same sector goes
    /// out first, as if the new one were not there yet (`as_add_rq_rb`).
    fn insert_sorted(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let (kind, sector) = (self.info[rq].kind, q.rqs[rq].sector);
        if let Some(old) = self.waiting[kind].sort.find(&self.nodes, sector) {
            self.move_out(q, cx, old);
        }
        self.waiting[kind].sort.insert(&mut self.nodes, rq, sector);
    }

    /// A request does not wait in the scheduler any more.
    fn forget(&mut self, q: &mut Core, rq: RqId) {
        let info = self.info[rq];
        self.waiting[info.kind].remove(&mut self.nodes, &mut q.rqs, rq);
        self.processes.with(info.owner, |p| {
            p.nr_queued = p.nr_queued.saturating_sub(1);
        });
    }

    /// A request of its owner is over.
    fn release(&mut self, rq: RqId, now: u64) {
        let info = self.info[rq];
        if info.kind == SYNC {
            self.processes.with(info.owner, |p| p.completed(now));
        }
    }

    /// The surviving request takes age and place of the absorbed one.
    fn take_place(&mut self, q: &mut Core, rq: RqId, next: RqId) {
        let kind = self.info[rq].kind;
        self.info[rq].expires = self.info[next].expires;
        self.waiting[kind].fifo.move_behind(&mut q.rqs, next, rq);
        if self.feat.merge_swaps_owners {
            let owner = self.info[rq].owner;
            self.info[rq].owner = self.info[next].owner;
            self.info[next].owner = owner;
        }
    }
}

impl Elevator for Anticipatory {
    fn name(&self) -> &'static str {
        "anticipatory"
    }

    fn add(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let now = jiffies(cx);
        let info = self.note(q, cx, rq, now);
        self.processes.with(info.owner, |p| {
            if info.kind == SYNC {
                let range = (q.rqs[rq].sector, q.rqs[rq].end());
                p.arrived(&mut self.estimates, range, now, self.set.max_think);
            }
            p.nr_queued += 1;
        });
        self.insert_sorted(q, cx, rq);
        let w = &mut self.waiting[info.kind];
        w.fifo.push_back(&mut q.rqs, rq);
        w.offer(&q.rqs, rq);
        if self.status.is_waiting() && self.ends_wait(q, Some(rq), now) {
            self.stop_waiting(cx);
        }
    }

    fn dispatch(&mut self, q: &mut Core, cx: &mut Cx<'_>, force: bool) -> usize {
        let now = jiffies(cx);
        if force {
            return self.drain(q, cx, now);
        }
        match self.choose(q, cx, now) {
            Some(rq) => {
                self.move_out(q, cx, rq);
                1
            }
            None => 0,
        }
    }

    /// The tree is chosen by direction where sync is meant: reads look among
    /// async requests and writes among sync ones, so only sync writes find
    /// anything that they fit.
    fn find_front_merge(&mut self, q: &Core, _: &mut Cx<'_>, bio: &Bio) -> Option<RqId> {
        let w = &self.waiting[bio.op.data_dir()];
        let rq = w.sort.find(&self.nodes, bio.end())?;
        q.merge_ok(rq, bio).then_some(rq)
    }

    fn merged(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId, side: Merge) {
        if side == Merge::Front {
            let kind = self.info[rq].kind;
            self.waiting[kind].sort.remove(&mut self.nodes, rq);
            self.insert_sorted(q, cx, rq);
        }
    }

    fn merge_requests(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId, next: RqId) {
        if self.info[next].expires < self.info[rq].expires {
            self.take_place(q, rq, next);
        }
        self.forget(q, next);
        self.release(next, jiffies(cx));
    }

    fn check_conservation(&self) {
        for waiting in &self.waiting {
            let waits = !waiting.fifo.is_empty() || !waiting.sort.is_empty();
            assert!(!waits, "a request is gone that waits");
            assert_eq!(waiting.next, None, "what is gone goes next");
        }
    }

    fn former(&self, _: &Core, rq: RqId) -> Option<RqId> {
        self.nodes.prev(rq)
    }

    fn latter(&self, _: &Core, rq: RqId) -> Option<RqId> {
        self.nodes.next(rq)
    }

    fn activate(&mut self, _: &mut Core, _: &mut Cx<'_>, rq: RqId) {
        self.processes.with(self.info[rq].owner, |p| {
            p.nr_dispatched = p.nr_dispatched.saturating_sub(1);
        });
    }

    fn deactivate(&mut self, _: &mut Core, _: &mut Cx<'_>, rq: RqId) {
        let owner = self.info[rq].owner;
        self.processes.with(owner, |p| p.nr_dispatched += 1);
    }

    fn completed(&mut self, _: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        let (now, info) = (jiffies(cx), self.info[rq]);
        if self.batch.waits_for_drain && self.nr_dispatched == 1 {
            self.batch
                .drained(&self.set, now, self.feat.drained_batch_gets_time);
            cx.ask(blklab_block::Effect::RunWork);
        }
        self.nr_dispatched = self.nr_dispatched.saturating_sub(1);
        if self.batch.is_new && self.batch.kind == info.kind {
            self.batch.first_completion(&self.set, now);
        }
        if self.served == Some(info.owner) {
            self.wait_start = now;
            self.served_done = true;
            if self.status == Status::ForCompletion {
                self.wait_for_next(cx, now);
                self.show_wait(cx);
            }
        }
        self.release(rq, now);
    }

    fn may_queue(&mut self, _: &Core, _: &mut Cx<'_>, bio: &Bio) -> MayQueue {
        if self.status.is_waiting() && self.served == Some(bio.task) {
            MayQueue::Must
        } else {
            MayQueue::May
        }
    }

    fn exit_task(&mut self, _: &mut Core, _: &mut Cx<'_>, task: TaskId) {
        self.processes.with(task, |p| p.exited = true);
    }

    fn timer(&mut self, _: &mut Core, cx: &mut Cx<'_>, timer: TimerId) -> bool {
        let known = timer == self.timer;
        if known {
            self.timed_out(cx);
        }
        known
    }

    fn kick(&self) -> Kick {
        self.feat.kick
    }

    fn shows(&self) -> Vec<(&'static str, String)> {
        vec![("est_time", self.estimates.text())]
    }
}
