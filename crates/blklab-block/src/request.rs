// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests and the bios in them, in one table each.

use crate::Pending;
use crate::qos::BioQos;
use blklab_types::{Bio, BioFlags, IoPrio, Jiffies, Op, Slab, TaskId, Time, impl_id};
use std::ops::{BitOrAssign, Index, IndexMut};

/// Name of a request: its slot in the table, reused after it is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RqId(pub u32);

impl_id!(RqId(u32));

impl RqId {
    /// The slot as a `usize`.
    pub fn idx(self) -> usize {
        self.0 as usize
    }
}

/// On which side a bio or request joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// Behind the request.
    Back,
    /// In front of the request.
    Front,
}

/// State flags of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RqState(u16);

impl RqState {
    /// The driver has been shown it (`REQ_STARTED`, later `RQF_STARTED`).
    pub const STARTED: RqState = RqState(1 << 0);
    /// Nothing may be sorted in front of it; never merged (`REQ_SOFTBARRIER`).
    pub const SOFTBARRIER: RqState = RqState(1 << 1);
    /// Ordered write (`REQ_HARDBARRIER`).
    pub const HARDBARRIER: RqState = RqState(1 << 2);
    /// A size or segment test failed once (`REQ_NOMERGE`).
    pub const NOMERGE: RqState = RqState(1 << 3);
    /// Was given to the scheduler (`REQ_SORTED`).
    pub const SORTED: RqState = RqState(1 << 4);
    /// Holds a slot of a request pool.
    pub const POOLED: RqState = RqState(1 << 5);
    /// Is in the merge hash.
    pub const HASHED: RqState = RqState(1 << 6);
    /// Prepared by the driver: takes no part in merging.
    pub const SPECIAL: RqState = RqState(1 << 7);
    /// Part of a barrier or flush sequence made by the block layer itself.
    pub const PROXY: RqState = RqState(1 << 8);
    /// Counted in the queue's `in_flight`.
    pub const COUNTED: RqState = RqState(1 << 9);
    /// Carries the newer of the two barrier colours (`REQ_ORDERED_COLOR`).
    pub const COLOR: RqState = RqState(1 << 10);
    /// Goes through the flush machinery (`REQ_FLUSH_SEQ`, later `RQF_FLUSH_SEQ`).
    pub const FLUSH_SEQ: RqState = RqState(1 << 11);

    /// Counted by write-back throttling.
    pub const THROTTLED_WRITE: RqState = RqState(1 << 12);
    /// The same, a discard.
    pub const THROTTLED_DISCARD: RqState = RqState(1 << 13);
    /// Out of the merge hash for a moment.
    pub const REHASHES: RqState = RqState(1 << 14);

    /// Whether all of `o` are set.
    pub fn has(self, o: RqState) -> bool {
        self.0 & o.0 == o.0
    }

    /// Whether any of `o` is set.
    pub fn any(self, o: RqState) -> bool {
        self.0 & o.0 != 0
    }

    /// Clears `o`.
    pub fn clear(&mut self, o: RqState) {
        self.0 &= !o.0;
    }

    /// The union, for tests of several flags.
    #[must_use]
    pub const fn with(self, o: RqState) -> RqState {
        RqState(self.0 | o.0)
    }
}

impl BitOrAssign for RqState {
    fn bitor_assign(&mut self, o: RqState) {
        self.0 |= o.0;
    }
}

/// One request.
#[derive(Clone, Debug)]
pub struct Request {
    /// First sector.
    pub sector: u64,
    /// Length in sectors.
    pub nr_sectors: u32,
    /// Physical segments.
    pub segments: u32,
    /// Direction.
    pub op: Op,
    /// Flags of the first bio.
    pub flags: BioFlags,
    /// Best priority of all bios.
    pub ioprio: IoPrio,
    /// Control group of its bios (multi-queue).
    pub group: u16,
    /// When it was made; the earlier of the two after a request merge.
    pub start_time: Jiffies,
    /// The same as an exact time (`start_time_ns`, 4.x).
    pub allocated: Time,
    /// When its task first asked for it (`alloc_time_ns`, multi-queue).
    pub wanted: Time,
    /// Task that allocated it: the submitter of its first bio.
    pub task: TaskId,
    /// State flags.
    pub state: RqState,
    /// Pool it was taken from (0 or 1).
    pub pool: u8,
    /// Block-layer tag, where the driver uses them: the driver tag.
    pub tag: Option<u16>,
    /// Scheduler tag (multi-queue).
    pub sched_tag: Option<u16>,
    /// CPU of its submitter: its software queue (multi-queue).
    pub cpu: u16,
    /// Its hardware queue (multi-queue).
    pub hctx: u16,
    /// CPU that handed it over to the driver last (multi-queue).
    pub issued_on: u16,
    /// When the driver handed it to the device.
    pub handed_over: Time,
    bio_head: Option<u32>,
    bio_tail: Option<u32>,
    pub(crate) list_prev: Option<RqId>,
    pub(crate) list_next: Option<RqId>,
    pub(crate) on_list: bool,
    pub(crate) hash_prev: Option<RqId>,
    pub(crate) hash_next: Option<RqId>,
    pub(crate) flush_step: u8,
}

impl Request {
    /// Checks that the device, which has `nr_busy` requests, can have finished it
    /// by now.
    pub(crate) fn check_finished(&self, nr_busy: u32, now: Time) {
        assert!(
            nr_busy > 0 && self.state.has(RqState::STARTED),
            "the device finishes what it has"
        );
        assert!(now >= self.handed_over, "finished before it was begun");
    }

    /// The sector after the last one.
    pub fn end(&self) -> u64 {
        self.sector + u64::from(self.nr_sectors)
    }

    /// Whether schedulers treat it as synchronous (`rq_is_sync`).
    pub fn is_sync(&self) -> bool {
        matches!(self.op, Op::Read | Op::Flush) || self.flags.has(BioFlags::SYNC)
    }

    /// On which side of it the bio lies, if on any; the back is tested first
    /// (`elv_try_merge`, later `blk_try_merge`).
    pub fn side_of(&self, bio: &Bio) -> Option<Merge> {
        if self.end() == bio.sector {
            Some(Merge::Back)
        } else if bio.end() == self.sector {
            Some(Merge::Front)
        } else {
            None
        }
    }

    /// 0 for reads, 1 for writes.
    pub fn data_dir(&self) -> usize {
        self.op.data_dir()
    }
}

#[derive(Clone, Debug)]
struct BioNode {
    pending: Pending,
    next: Option<u32>,
}

/// All requests of a queue and the bios in them. Slots are reused, so memory
/// is bound by the largest number that was alive at once.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    slots: Slab<RqId, Request>,
    bios: Slab<u32, BioNode>,
}

impl Index<RqId> for Requests {
    type Output = Request;
    fn index(&self, id: RqId) -> &Request {
        &self.slots[id]
    }
}

impl IndexMut<RqId> for Requests {
    fn index_mut(&mut self, id: RqId) -> &mut Request {
        &mut self.slots[id]
    }
}

impl Requests {
    /// A new request without bios.
    #[inline(always)]
    pub fn alloc(&mut self, op: Op, flags: BioFlags, task: TaskId, now: Jiffies) -> RqId {
        self.slots.insert(Request {
            sector: 0,
            nr_sectors: 0,
            segments: 0,
            op,
            flags,
            ioprio: IoPrio::default(),
            group: 0,
            start_time: now,
            allocated: Time::ZERO,
            wanted: Time::ZERO,
            task,
            state: RqState::default(),
            pool: 0,
            tag: None,
            sched_tag: None,
            cpu: 0,
            hctx: 0,
            issued_on: 0,
            handed_over: Time::ZERO,
            bio_head: None,
            bio_tail: None,
            list_prev: None,
            list_next: None,
            on_list: false,
            hash_prev: None,
            hash_next: None,
            flush_step: 0,
        })
    }

    /// Frees a request; its bios must have been taken.
    ///
    /// # Panics
    /// If it has bios or waits somewhere.
    #[inline]
    pub fn free(&mut self, id: RqId) {
        let rq = &self[id];
        assert!(rq.bio_head.is_none(), "a request is freed with its bios");
        assert!(!rq.on_list, "a request is freed while it waits");
        debug_assert!(!rq.state.has(RqState::HASHED), "freed while bios find it");
        self.slots.remove(id);
    }

    /// Number of requests alive.
    pub fn nr_alive(&self) -> usize {
        self.slots.len()
    }

    /// Makes a bio the first one of an empty request.
    #[inline(always)]
    pub fn fill(&mut self, id: RqId, pending: &Pending) {
        let node = self.bio_node(pending);
        let bio = &pending.bio;
        let rq = &mut self[id];
        rq.bio_head = Some(node);
        rq.bio_tail = Some(node);
        rq.sector = bio.sector;
        rq.nr_sectors = bio.nr_sectors;
        rq.segments = u32::from(bio.segments);
        rq.ioprio = bio.ioprio;
        rq.group = bio.group;
    }

    /// Appends a bio.
    pub fn append(&mut self, id: RqId, pending: &Pending) {
        let node = self.bio_node(pending);
        let tail = self[id].bio_tail.replace(node);
        match tail {
            Some(t) => self.bios[t].next = Some(node),
            None => self[id].bio_head = Some(node),
        }
        self.grow(id, &pending.bio);
    }

    /// Puts a bio in front.
    pub fn prepend(&mut self, id: RqId, pending: &Pending) {
        let node = self.bio_node(pending);
        let head = self[id].bio_head.replace(node);
        self.bios[node].next = head;
        if head.is_none() {
            self[id].bio_tail = Some(node);
        }
        self.grow(id, &pending.bio);
        self[id].sector = pending.bio.sector;
    }

    fn grow(&mut self, id: RqId, bio: &Bio) {
        let rq = &mut self[id];
        rq.nr_sectors += bio.nr_sectors;
        rq.segments += u32::from(bio.segments);
        rq.ioprio = rq.ioprio.best(bio.ioprio);
    }

    /// Moves the bios of `next`, which starts where `id` ends, to `id`.
    pub fn absorb(&mut self, id: RqId, next: RqId) {
        let (head, tail) = (self[next].bio_head.take(), self[next].bio_tail.take());
        match self[id].bio_tail {
            Some(t) => self.bios[t].next = head,
            None => self[id].bio_head = head,
        }
        if tail.is_some() {
            self[id].bio_tail = tail;
        }
        let (n, s, start, allocated, prio) = {
            let x = &self[next];
            (
                x.nr_sectors,
                x.segments,
                x.start_time,
                x.allocated,
                x.ioprio,
            )
        };
        let rq = &mut self[id];
        rq.nr_sectors += n;
        rq.segments += s;
        rq.start_time = rq.start_time.min(start);
        rq.allocated = rq.allocated.min(allocated);
        rq.ioprio = rq.ioprio.best(prio);
    }

    /// When the first bio of a request was queued; none if it has no bio.
    pub fn first_queued(&self, id: RqId) -> Option<Time> {
        self[id].bio_head.map(|bio| self.bios[bio].pending.queued)
    }

    /// What policies noted of the first bio of a request.
    pub(crate) fn first_qos(&self, id: RqId) -> BioQos {
        let first = self[id].bio_head;
        first.map_or(BioQos::default(), |bio| self.bios[bio].pending.qos)
    }

    /// Takes the first bio of a finished request.
    #[inline]
    pub fn take_bio(&mut self, id: RqId) -> Option<Pending> {
        let idx = self[id].bio_head?;
        let node = self.bios.remove(idx);
        let (pending, next) = (node.pending, node.next);
        self[id].bio_head = next;
        if next.is_none() {
            self[id].bio_tail = None;
        }
        Some(pending)
    }

    #[inline(always)]
    fn bio_node(&mut self, pending: &Pending) -> u32 {
        self.bios.insert(BioNode {
            pending: *pending,
            next: None,
        })
    }
}
