// SPDX-License-Identifier: MIT OR Apache-2.0
//! deadline: batches in sector order, bounded by expiry and starvation.
//!
//! Source: block/deadline-iosched.c of 2.6.16 to 4.19. Per direction a tree
//! by sector and a FIFO with expiry jiffies. A batch runs in ascending order
//! from its first request; between batches reads win, up to `writes_starved`
//! times while writes wait; a batch starts at the oldest request if that has
//! expired or if the sweep has come to its end. Sync and async play no role.
//!
//! Expiry is looked at only between batches, and there is no timer: an
//! expired request behind a plugged or full queue just waits.

use crate::direction::{BATCH, READ, Starved, WRITE};
use crate::{Build, Make, ProcessorTime, Scheduler};
use blklab_block::sq::{Core, Elevator};
use blklab_block::{Cx, List, Merge, RqId, SectorTree, TreeNodes};
use blklab_kernel::{KernelVersion, Tunable, Unit};
use blklab_types::{Bio, IdVec, Jiffies};

/// The table entry.
pub const SCHEDULER: Scheduler = Scheduler {
    name: "deadline",
    summary: "sector-ordered batches with expiry; reads before writes, within bounds",
    since: KernelVersion::v2_6(16),
    until: KernelVersion::new(5, 0),
    tunables: TUNABLES,
    changes: &[CHANGES],
    processor_time: ProcessorTime::NONE,
    make: Make::Sq(|b: &mut Build<'_>| {
        let ms = |name| b.hz.from_ms(b.tunables.get(name).unsigned_abs());
        Box::new(Deadline::new(
            Features::of(b.version),
            Settings {
                expire_jiffies: [ms("read_expire"), ms("write_expire")],
                writes_starved: b.tunables.get("writes_starved"),
                fifo_batch: b.tunables.get("fifo_batch"),
                front_merges: b.tunables.get("front_merges") != 0,
            },
        ))
    }),
};

const FIRST: KernelVersion = KernelVersion::v2_6(16);
const INT_MAX: i64 = i32::MAX as i64;

const TUNABLES: &[Tunable] = &[
    Tunable {
        name: "read_expire",
        unit: Unit::Ms,
        default: 500,
        range: (0, INT_MAX),
        since: FIRST,
        until: KernelVersion::FOREVER,
        help: "age at which the oldest read starts the next read batch",
    },
    Tunable {
        name: "write_expire",
        unit: Unit::Ms,
        default: 5000,
        range: (0, INT_MAX),
        since: FIRST,
        until: KernelVersion::FOREVER,
        help: "age at which the oldest write starts the next write batch",
    },
    Tunable {
        name: "writes_starved",
        unit: Unit::Count,
        default: 2,
        range: (-INT_MAX - 1, INT_MAX),
        since: FIRST,
        until: KernelVersion::FOREVER,
        help: "read batches that go before waiting writes",
    },
    Tunable {
        name: "front_merges",
        unit: Unit::Bool,
        default: 1,
        range: (0, 1),
        since: FIRST,
        until: KernelVersion::FOREVER,
        help: "look for requests that a bio could be put in front of",
    },
    Tunable {
        name: "fifo_batch",
        unit: Unit::Count,
        default: 16,
        range: (0, INT_MAX),
        since: FIRST,
        until: KernelVersion::FOREVER,
        help: "requests of a batch",
    },
];

const SOURCE: &str = "block/deadline-iosched.c";

blklab_kernel::features! {
    /// What changed between releases.
    struct Features {
        /// A batch goes on past gaps between requests (2.6.28).
        batch_crosses_gaps: bool = false,
        /// A batch without a next request starts at the oldest request, and every
        /// choice of a first request resets the batch count (2.6.24). Before, it
        /// starts at the lowest sector, and a continued sweep keeps the count.
        restart_at_oldest: bool = false,
        /// Several requests may start at the same sector (3.1). Before, the older
        /// one is dispatched when the second arrives.
        keeps_equal_sectors: bool = false,
        /// A request expires in the very jiffy of its expiry (3.8), not after it.
        expires_at_equality: bool = false,
    }

    /// What changed, release by release.
    const CHANGES = {
        "2.6.24": "a batch without a next request starts at the oldest one, not the lowest sector",
            SOURCE => {
            restart_at_oldest: true,
        }
        "2.6.28": "a batch goes on past gaps between requests", SOURCE => {
            batch_crosses_gaps: true,
        }
        "3.1": "several requests may start at the same sector", SOURCE => {
            keeps_equal_sectors: true,
        }
        "3.8": "a request expires in the very jiffy of its expiry, not after it", SOURCE => {
            expires_at_equality: true,
        }
    };
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    expire_jiffies: [u64; 2],
    writes_starved: i64,
    fifo_batch: i64,
    front_merges: bool,
}

/// The scheduler's state.
#[derive(Debug)]
pub struct Deadline {
    feat: Features,
    set: Settings,
    sort: [SectorTree; 2],
    nodes: TreeNodes,
    fifo: [List; 2],
    /// Expiry by request.
    expiry: IdVec<RqId, Jiffies>,
    /// The request behind the last dispatched one; at most one side is set.
    next: [Option<RqId>; 2],
    /// Requests of the current batch.
    batching: i64,
    starved: Starved,
    last_sector: u64,
}

impl Deadline {
    fn new(feat: Features, set: Settings) -> Deadline {
        Deadline {
            feat,
            set,
            sort: [SectorTree::default(); 2],
            nodes: TreeNodes::default(),
            fifo: [List::EMPTY; 2],
            expiry: IdVec::default(),
            next: [None; 2],
            batching: 0,
            starved: Starved::default(),
            last_sector: 0,
        }
    }

    /// `deadline_add_rq_rb`.
    fn insert_sorted(&mut self, q: &mut Core, rq: RqId) {
        let (dir, sector) = (q.rqs[rq].data_dir(), q.rqs[rq].sector);
        self.sort[dir].insert(&mut self.nodes, rq, sector);
        if self.feat.keeps_equal_sectors {
            return;
        }
        // The older of two that start at the same sector goes out, as if the
        // newer one were not there yet.
        if let Some(old) = self.nodes.prev(rq)
            && self.nodes.sector(old) == sector
        {
            let behind = self.nodes.next(rq);
            self.move_out(q, old, behind);
        }
    }

    /// Takes a request out of tree and FIFO; the sweep goes on behind it
    /// (`deadline_remove_request`).
    fn forget(&mut self, q: &mut Core, rq: RqId) {
        let dir = q.rqs[rq].data_dir();
        if self.next[dir] == Some(rq) {
            self.next[dir] = self.nodes.next(rq);
        }
        self.sort[dir].remove(&mut self.nodes, rq);
        self.fifo[dir].remove(&mut q.rqs, rq);
    }

    /// To the tail of the dispatch list; the sweep goes on at `next`
    /// (`deadline_move_request`).
    fn move_out(&mut self, q: &mut Core, rq: RqId, next: Option<RqId>) {
        let dir = q.rqs[rq].data_dir();
        self.next = [None; 2];
        self.next[dir] = next;
        self.last_sector = q.rqs[rq].end();
        self.forget(q, rq);
        q.dispatch_add_tail(rq);
    }

    fn dispatch_one(&mut self, q: &mut Core, rq: RqId) {
        self.batching = self.batching.saturating_add(1);
        let behind = self.nodes.next(rq);
        self.move_out(q, rq, behind);
    }

    /// `deadline_check_fifo`.
    fn expired(&self, head: RqId, now: Jiffies) -> bool {
        let expiry = self.expiry[head];
        if self.feat.expires_at_equality {
            now >= expiry
        } else {
            now > expiry
        }
    }

    /// The request that continues the current batch, if it may go on.
    fn continue_batch(&mut self, q: &Core) -> Option<RqId> {
        let rq = self.next[WRITE].or(self.next[READ])?;
        if !self.feat.batch_crosses_gaps && self.last_sector != q.rqs[rq].sector {
            self.batching = self.batching.saturating_add(self.set.fifo_batch);
        }
        (self.batching < self.set.fifo_batch).then_some(rq)
    }

    fn first_of_batch(&mut self, dir: usize, now: Jiffies) -> Option<RqId> {
        let head = self.fifo[dir].front()?;
        let expired = self.expired(head, now);
        if self.feat.restart_at_oldest {
            self.batching = 0;
            return if expired {
                Some(head)
            } else {
                self.next[dir].or(Some(head))
            };
        }
        if !expired && self.next[dir].is_some() {
            return self.next[dir];
        }
        self.batching = 0;
        if expired {
            Some(head)
        } else {
            self.sort[dir].first()
        }
    }
}

impl Elevator for Deadline {
    fn name(&self) -> &'static str {
        "deadline"
    }

    fn add(&mut self, q: &mut Core, cx: &mut Cx<'_>, rq: RqId) {
        self.insert_sorted(q, rq);
        let dir = q.rqs[rq].data_dir();
        *self.expiry.entry(rq) = cx.jiffies.plus(self.set.expire_jiffies[dir]);
        self.fifo[dir].push_back(&mut q.rqs, rq);
    }

    fn dispatch(&mut self, q: &mut Core, cx: &mut Cx<'_>, force: bool) -> usize {
        let rq = self.continue_batch(q).or_else(|| {
            let most = self.set.writes_starved;
            let dir = self.starved.choose_direction(&self.fifo, most)?;
            self.first_of_batch(dir, cx.jiffies)
        });
        match rq {
            Some(rq) => {
                if !force {
                    cx.waits(BATCH[q.rqs[rq].data_dir()], 0);
                }
                self.dispatch_one(q, rq);
                1
            }
            None => 0,
        }
    }

    fn find_front_merge(&mut self, q: &Core, _: &mut Cx<'_>, bio: &Bio) -> Option<RqId> {
        if !self.set.front_merges {
            return None;
        }
        let rq = self.sort[bio.op.data_dir()].find(&self.nodes, bio.end())?;
        q.merge_ok(rq, bio).then_some(rq)
    }

    fn merged(&mut self, q: &mut Core, _: &mut Cx<'_>, rq: RqId, side: Merge) {
        if side == Merge::Front {
            let dir = q.rqs[rq].data_dir();
            self.sort[dir].remove(&mut self.nodes, rq);
            self.insert_sorted(q, rq);
        }
    }

    fn merge_requests(&mut self, q: &mut Core, _: &mut Cx<'_>, rq: RqId, next: RqId) {
        let dir = q.rqs[rq].data_dir();
        let earlier = self.expiry[next];
        if earlier < self.expiry[rq] {
            self.expiry[rq] = earlier;
            self.fifo[dir].move_behind(&mut q.rqs, next, rq);
        }
        self.forget(q, next);
    }

    fn check_conservation(&self) {
        for dir in [READ, WRITE] {
            let waits = !self.fifo[dir].is_empty() || !self.sort[dir].is_empty();
            assert!(!waits, "a request is gone that waits");
        }
        assert_eq!(self.next, [None; 2], "the sweep goes on at what is gone");
    }

    fn former(&self, _: &Core, rq: RqId) -> Option<RqId> {
        self.nodes.prev(rq)
    }

    fn latter(&self, _: &Core, rq: RqId) -> Option<RqId> {
        self.nodes.next(rq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_in_the_table() {
        let era = KernelVersion::v2_6(16)..KernelVersion::new(5, 0);
        blklab_kernel::check_changes(CHANGES, era, Features::of);
    }
}
