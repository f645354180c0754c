// SPDX-License-Identifier: MIT OR Apache-2.0
//! mq-deadline: deadline on the multi-queue path, with priority classes.
//!
//! Source: block/mq-deadline.c of 5.10 to 7.3. One scheduler for all hardware
//! queues. Per class and direction a tree by sector and a FIFO with expiry
//! jiffies. A batch runs in ascending order; between batches reads win, up to
//! `writes_starved` times while writes wait; a batch starts at the oldest
//! request if that has expired or if the sweep has come to its end. Direction,
//! batch and starvation counts are one for all classes.
//!
//! A class is served while no higher one has anything, in the driver too,
//! except for what has waited for `prio_aging_expire`. Sync and async play no
//! role but for the depth limit. There is no timer. Zoned devices are left out.

mod features;
mod select;
mod tunables;

use crate::direction::{Starved, WRITE};
use crate::{Build, Make, ProcessorTime, Scheduler, async_depth};
use blklab_block::mq::{Core, Elevator};
use blklab_block::{Cx, List, Merge, RqId, SectorTree, TreeNodes};
use blklab_kernel::KernelVersion;
use blklab_types::{Bio, IdVec, IoPrio, Jiffies, Op, PrioClass};
use features::{AsyncDepth, Features};
use tunables::Settings;

/// Priority classes, best first: RT, BE, IDLE.
const CLASSES: usize = 3;
const BE: usize = 1;

/// The table entry.
pub const SCHEDULER: Scheduler = Scheduler {
    name: "mq-deadline",
    summary: "sector-ordered batches with expiry; reads before writes, within bounds; classes",
    since: KernelVersion::new(5, 0),
    until: KernelVersion::FOREVER,
    tunables: tunables::TUNABLES,
    changes: &[features::CHANGES],
    processor_time: ProcessorTime::MQ_DEADLINE,
    make: Make::Mq(|b: &mut Build<'_>| {
        Box::new(MqDeadline {
            feat: Features::of(b.version),
            set: Settings::new(b),
            classes: [Class::default(); CLASSES],
            heads: [List::EMPTY; CLASSES],
            nodes: TreeNodes::default(),
            infos: IdVec::default(),
            last_dir: WRITE,
            batching: 0,
            starved: Starved::default(),
            async_depth: 0,
        })
    }),
};

/// Requests of one priority class.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    sort: [SectorTree; 2],
    fifo: [List; 2],
    /// The request behind the last dispatched one (to 6.4).
    next: [Option<RqId>; 2],
    /// Where the last dispatched request began (6.5).
    latest_pos: [u64; 2],
    /// Requests inserted and not finished: also those in the driver.
    queued: u32,
}

/// What the scheduler knows of a request.
#[derive(Clone, Copy, Debug, Default)]
struct Info {
    expiry: Jiffies,
    /// Its class, once it was inserted.
    class: Option<u8>,
}

/// The scheduler's state.
#[derive(Debug)]
struct MqDeadline {
    feat: Features,
    set: Settings,
    classes: [Class; CLASSES],
    /// Requests inserted at the head, by class; the first is that of all
    /// classes where there is one list.
    heads: [List; CLASSES],
    nodes: TreeNodes,
    infos: IdVec<RqId, Info>,
    /// Direction of the last batch.
    last_dir: usize,
    /// Requests of the current batch.
    batching: u32,
    starved: Starved,
    /// Tags for all but sync reads.
    async_depth: u32,
}

impl MqDeadline {
    /// `ioprio_class_to_prio`.
    fn class_of(&self, prio: IoPrio) -> usize {
        match prio.class {
            _ if !self.feat.classes => BE,
            PrioClass::RealTime => 0,
            PrioClass::None | PrioClass::BestEffort => BE,
            PrioClass::Idle => 2,
        }
    }

    /// The class a request was inserted with.
    fn class_at_insertion(&self, rq: RqId) -> usize {
        self.infos[rq].class.map_or(BE, usize::from)
    }

    fn head_list(&mut self, class: usize) -> &mut List {
        &mut self.heads[if self.feat.one_head_list { 0 } else { class }]
    }

    /// Takes a request out of tree and FIFO; the sweep goes on behind it
    /// (`deadline_remove_request`).
    fn forget(&mut self, q: &mut Core, rq: RqId) {
        let dir = q.rqs[rq].data_dir();
        let class = self.class_at_insertion(rq);
        let class = &mut self.classes[class];
        if class.next[dir] == Some(rq) {
            class.next[dir] = self.nodes.next(rq);
        }
        class.sort[dir].remove(&mut self.nodes, rq);
        class.fifo[dir].remove(&mut q.rqs, rq);
    }
}

impl Elevator for MqDeadline {
    fn name(&self) -> &'static str {
        "mq-deadline"
    }

    fn limit_depth(&mut self, q: &Core, _: &mut Cx<'_>, bio: &Bio) -> Option<u32> {
        if bio.op == Op::Read {
            return None;
        }
        match self.feat.async_depth {
            AsyncDepth::Absent => None,
            AsyncDepth::OfWord | AsyncDepth::Total | AsyncDepth::OfQueue => Some(self.async_depth),
            AsyncDepth::ScaledToWord => {
                let bits = u64::from(self.async_depth) * u64::from(q.tags_per_word());
                Some(bits.div_ceil(u64::from(q.nr_requests)) as u32)
            }
        }
    }

    fn min_shallow_depth(&self, _: &Core) -> Option<u32> {
        match self.feat.async_depth {
            AsyncDepth::Absent => None,
            AsyncDepth::OfWord | AsyncDepth::OfQueue => Some(self.async_depth),
            AsyncDepth::ScaledToWord | AsyncDepth::Total => Some(1),
        }
    }

    fn depth_updated(&mut self, q: &Core) {
        let nr_requests = q.told_nr_requests();
        let written = self.set.async_depth;
        self.async_depth = match self.feat.async_depth {
            AsyncDepth::OfQueue => async_depth::of_queue(q, written, |all| all),
            AsyncDepth::OfWord => written.unwrap_or((3 * nr_requests / 4).max(1)),
            _ => written.unwrap_or(nr_requests),
        };
    }

    fn prepare(&mut self, _: &mut Core, _: &mut Cx<'_>, rq: RqId) {
        *self.infos.entry(rq) = Info::default();
    }

    fn before_insert(&mut self, q: &mut Core, _: &mut Cx<'_>, rq: RqId, _: bool) {
        let class = self.class_of(q.rqs[rq].ioprio);
        let info = &mut self.infos[rq];
        if info.class.is_none() {
            info.class = Some(class as u8);
            self.classes[class].queued += 1;
        }
    }

    fn add(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId, at_head: bool) {
        let (dir, sector) = (q.rqs[rq].data_dir(), q.rqs[rq].sector);
        let class = self.class_at_insertion(rq);
        if at_head {
            self.infos[rq].expiry = cx.jiffies;
            self.head_list(class).push_front(&mut q.rqs, rq);
            return;
        }
        self.infos[rq].expiry = cx.jiffies.plus(self.set.expire_jiffies[dir]);
        let class = &mut self.classes[class];
        class.sort[dir].insert(&mut self.nodes, rq, sector);
        class.fifo[dir].push_back(&mut q.rqs, rq);
    }

    fn dispatch(&mut self, q: &mut Core, cx: &mut Cx<'_>, _: u16) -> Option<RqId> {
        self.next_request(q, cx)
    }

    fn has_work(&self, _: &Core, _: u16) -> bool {
        self.classes
            .iter()
            .flat_map(|c| &c.fifo)
            .chain(&self.heads)
            .any(|l| !l.is_empty())
    }

    fn find_front_merge(&mut self, _: &mut Core, _: &mut Cx<'_>, bio: &Bio) -> Option<RqId> {
        if !self.set.front_merges {
            return None;
        }
        let class = self.class_of(bio.ioprio);
        self.classes[class].sort[bio.op.data_dir()].find(&self.nodes, bio.end())
    }

    fn merged(&mut self, q: &mut Core, _: &mut Cx<'_>, rq: RqId, side: Merge) {
        if side == Merge::Front {
            let (dir, sector) = (q.rqs[rq].data_dir(), q.rqs[rq].sector);
            let class = self.class_at_insertion(rq);
            let sort = &mut self.classes[class].sort[dir];
            sort.remove(&mut self.nodes, rq);
            sort.insert(&mut self.nodes, rq, sector);
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
        if !next_waits {
            return;
        }
        let (dir, class) = (q.rqs[rq].data_dir(), self.class_at_insertion(rq));
        let earlier = self.infos[next].expiry;
        if earlier < self.infos[rq].expiry {
            self.infos[rq].expiry = earlier;
            self.classes[class].fifo[dir].move_behind(&mut q.rqs, next, rq);
        }
        self.forget(q, next);
    }

    fn check_conservation(&self) {
        let gone = "a request is gone that waits";
        assert!(self.heads.iter().all(List::is_empty), "{gone}");
        for class in &self.classes {
            assert!(class.fifo.iter().all(List::is_empty), "{gone}");
            assert!(class.sort.iter().all(SectorTree::is_empty), "{gone}");
            assert_eq!(class.queued, 0, "a request is gone that its class counts");
        }
    }

    fn former(&self, _: &Core, rq: RqId) -> Option<RqId> {
        self.nodes.prev(rq)
    }

    fn latter(&self, _: &Core, rq: RqId) -> Option<RqId> {
        self.nodes.next(rq)
    }

    fn is_single_queue(&self) -> bool {
        self.feat.runs_as_one
    }

    fn finished(&mut self, _: &mut Core, _: &mut Cx<'_>, rq: RqId) {
        if let Some(class) = self.infos[rq].class.take() {
            let queued = &mut self.classes[usize::from(class)].queued;
            assert!(*queued > 0, "a class counts what was inserted");
            *queued -= 1;
        }
    }
}
