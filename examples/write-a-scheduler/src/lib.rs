// SPDX-License-Identifier: MIT OR Apache-2.0
//! SSTF, shortest seek time first: the request nearest to the last one goes
//! next, unless the oldest has been passed over too often.
//!
//! docs/write-a-scheduler.md explains it line by line.

use blklab::scheduler::{
    Bio, Build, Core, Cx, Elevator, KernelVersion, List, Make, Merge, ProcessorTime, RqId,
    Scheduler, Schedulers, SectorTree, TreeNodes, Tunable, Unit,
};

/// The table entry.
pub const SCHEDULER: Scheduler = Scheduler {
    name: "sstf",
    summary: "shortest seek time first; the oldest is passed over a bounded number of times",
    since: KernelVersion::new(5, 0),
    until: KernelVersion::FOREVER,
    tunables: &[Tunable {
        name: "patience",
        unit: Unit::Count,
        default: 64,
        range: (0, 1_000_000),
        since: KernelVersion::new(5, 0),
        until: KernelVersion::FOREVER,
        help: "how often the oldest request may be passed over; 0: first come, first served",
    }],
    changes: &[],
    processor_time: ProcessorTime::NONE,
    make: Make::Mq(|b: &mut Build<'_>| {
        Box::new(Sstf {
            patience: b.tunables.get("patience"),
            ..Sstf::default()
        })
    }),
};

/// The schedulers of blklab, and this one.
pub fn schedulers() -> Schedulers {
    static OWN: [Scheduler; 1] = [SCHEDULER];
    Schedulers::with(&OWN)
}

#[derive(Default)]
struct Sstf {
    patience: i64,
    /// How often the oldest request has been passed over.
    passed: i64,
    /// Where the last request ended: where the head is.
    position: u64,
    /// What waits, by sector and by age.
    tree: SectorTree,
    nodes: TreeNodes,
    fifo: List,
    /// Inserted at the head of the queue: these go first.
    urgent: List,
}

impl Sstf {
    fn nearest(&self) -> Option<RqId> {
        let Some(above) = self.tree.lower_bound(&self.nodes, self.position) else {
            return self.tree.last();
        };
        let below = self.nodes.prev(above);
        let distance = |rq| self.nodes.sector(rq).abs_diff(self.position);
        Some(
            below
                .filter(|&b| distance(b) < distance(above))
                .unwrap_or(above),
        )
    }

    fn choose(&mut self, q: &mut Core) -> Option<RqId> {
        let oldest = self.fifo.front()?;
        let nearest = self.nearest().filter(|_| self.passed < self.patience);
        let rq = nearest.unwrap_or(oldest);
        self.passed = if rq == oldest { 0 } else { self.passed + 1 };
        self.remove(q, rq);
        Some(rq)
    }

    fn remove(&mut self, q: &mut Core, rq: RqId) {
        self.tree.remove(&mut self.nodes, rq);
        self.fifo.remove(&mut q.rqs, rq);
    }
}

impl Elevator for Sstf {
    fn name(&self) -> &'static str {
        SCHEDULER.name
    }

    fn add(&mut self, q: &mut Core, _: &mut Cx<'_>, rq: RqId, at_head: bool) {
        if at_head {
            self.urgent.push_front(&mut q.rqs, rq);
            return;
        }
        self.tree.insert(&mut self.nodes, rq, q.rqs[rq].sector);
        self.fifo.push_back(&mut q.rqs, rq);
    }

    fn has_work(&self, _: &Core, _: u16) -> bool {
        !self.urgent.is_empty() || !self.fifo.is_empty()
    }

    fn dispatch(&mut self, q: &mut Core, _: &mut Cx<'_>, _: u16) -> Option<RqId> {
        let rq = match self.urgent.pop_front(&mut q.rqs) {
            Some(rq) => rq,
            None => self.choose(q)?,
        };
        self.position = q.rqs[rq].end();
        Some(rq)
    }

    fn find_front_merge(&mut self, _: &mut Core, _: &mut Cx<'_>, bio: &Bio) -> Option<RqId> {
        self.tree.find(&self.nodes, bio.end())
    }

    fn former(&self, _: &Core, rq: RqId) -> Option<RqId> {
        self.nodes.prev(rq)
    }

    fn latter(&self, _: &Core, rq: RqId) -> Option<RqId> {
        self.nodes.next(rq)
    }

    fn merged(&mut self, q: &mut Core, _: &mut Cx<'_>, rq: RqId, side: Merge) {
        if side == Merge::Front {
            self.tree.remove(&mut self.nodes, rq);
            self.tree.insert(&mut self.nodes, rq, q.rqs[rq].sector);
        }
    }

    fn merge_requests(
        &mut self,
        q: &mut Core,
        _: &mut Cx<'_>,
        rq: RqId,
        next: RqId,
        next_waits: bool,
    ) {
        if next_waits {
            // Together they are as old as the older one.
            if q.rqs[rq].allocated == q.rqs[next].allocated {
                self.fifo.move_behind(&mut q.rqs, next, rq);
            }
            self.remove(q, next);
        }
    }
}
