// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of a queue that its scheduler sees and uses.

use crate::events;
use crate::hash::MergeHash;
use crate::sq::{Features, Limits};
use crate::{Cx, List, Requests, RqId, RqState};
use blklab_trace::Action;
use blklab_trace::truth::Kind;
use blklab_types::{Bio, BioFlags, Dev, Hz};

/// Requests, dispatch list and merge state of a queue.
pub struct Core {
    /// What the kernel version does.
    pub feat: Features,
    /// Limits of the queue and its driver.
    pub limits: Limits,
    /// Ticks per second.
    pub hz: Hz,
    /// The device, as traces name it.
    pub dev: Dev,
    /// All requests.
    pub rqs: Requests,
    /// The dispatch list: requests that left the scheduler.
    pub queue_head: List,
    /// The request merged with or inserted last; changed with
    /// `set_last_merge`.
    pub last_merge: Option<RqId>,
    /// Bios that joined `last_merge` since it is that.
    pub(crate) cached_merges: u32,
    /// Requests inside the scheduler.
    pub nr_sorted: u32,
    /// Requests the driver took off the dispatch list and has not finished.
    pub in_flight: u32,
    /// Set by a scheduler hook that wants the driver called when it returns.
    pub run_requested: bool,
    /// Set by a scheduler that wants tasks woken that sleep for a request:
    /// the first of each pool, when a request is freed.
    pub wake_requested: [bool; 2],
    pub(crate) end_sector: u64,
    pub(crate) boundary_rq: Option<RqId>,
    pub(crate) hash: MergeHash,
}

/// Direction without flags, as request events showed up to 2.6.38: only the
/// two lowest bits of the request's flags are passed on, direction and the
/// bit that read-ahead sets.
const OLD_RQ_FLAGS: BioFlags = BioFlags::AHEAD;

impl Core {
    pub(crate) fn new(dev: Dev, feat: Features, limits: Limits, hz: Hz) -> Core {
        Core {
            feat,
            limits,
            hz,
            dev,
            rqs: Requests::default(),
            queue_head: List::EMPTY,
            last_merge: None,
            cached_merges: 0,
            nr_sorted: 0,
            in_flight: 0,
            run_requested: false,
            wake_requested: [false; 2],
            end_sector: 0,
            boundary_rq: None,
            hash: MergeHash::new(),
        }
    }

    /// Requests in scheduler and dispatch list: no call of the scheduler changes
    /// their number.
    pub(crate) fn nr_held(&self) -> u32 {
        self.nr_sorted + self.queue_head.len()
    }

    /// Whether nothing waits in scheduler and dispatch list.
    pub fn nothing_waits(&self) -> bool {
        self.queue_head.is_empty() && self.nr_sorted == 0
    }

    /// Whether a bio may be merged into a request, as far as the core is
    /// concerned (`elv_rq_merge_ok` without the scheduler's hook).
    pub fn merge_ok(&self, id: RqId, bio: &Bio) -> bool {
        let rq = &self.rqs[id];
        !rq.state.any(UNMERGEABLE.with(RqState::SPECIAL))
            && rq.op == bio.op
            && !self.cached_merges_used_up(id)
            && !(self.feat.failfast_blocks_merge
                && (bio.flags.has(BioFlags::AHEAD) || rq.flags.has(BioFlags::AHEAD)))
    }

    /// From now on bios are tried with this request first.
    pub(crate) fn set_last_merge(&mut self, rq: Option<RqId>) {
        if self.last_merge != rq {
            self.last_merge = rq;
            self.cached_merges = 0;
        }
    }

    /// A bio joins a request.
    pub(crate) fn count_cached_merge(&mut self, rq: RqId) {
        if self.last_merge == Some(rq) {
            self.cached_merges = self.cached_merges.saturating_add(1);
        }
    }

    /// Whether the request is `last_merge` and took as many bios as it may
    /// (patch `cached_merge_limit`).
    fn cached_merges_used_up(&self, rq: RqId) -> bool {
        self.last_merge == Some(rq)
            && self
                .limits
                .cached_merge_limit
                .is_some_and(|limit| self.cached_merges >= limit)
    }

    /// Emits a bio event and its truth record.
    pub(crate) fn bio_event(&self, cx: &mut Cx<'_>, action: Action, kind: Kind, bio: &Bio) {
        events::bio_event(self.dev, cx, action, kind, bio);
    }

    /// The bio of a partition takes its place on the disk (A).
    pub(crate) fn partition_event(&self, cx: &mut Cx<'_>, bio: &Bio) {
        if let Some(start) = self.limits.queue.partition_start {
            events::partition_event(self.dev, cx, bio, start);
        }
    }

    /// A bio comes from a sector of another device (A).
    pub(crate) fn remap_event(&self, cx: &mut Cx<'_>, bio: &Bio, from_dev: Dev, sector: u64) {
        events::remap_event(self.dev, cx, bio, from_dev, sector);
    }

    /// Emits a request event and its truth record.
    pub(crate) fn rq_event(&self, cx: &mut Cx<'_>, action: Action, kind: Kind, id: RqId) {
        self.rq_trace(cx, action, id, 0);
        self.rq_truth(cx, kind, id, 0);
    }

    /// Emits a request event alone.
    pub(crate) fn rq_trace(&self, cx: &mut Cx<'_>, action: Action, id: RqId, error: u16) {
        let rq = &self.rqs[id];
        let flags = if self.feat.rq_events_show_flags {
            rq.flags
        } else {
            BioFlags(rq.flags.0 & OLD_RQ_FLAGS.0)
        };
        events::rq_trace(self.dev, cx, action, rq, flags, error);
    }

    /// Emits a request's truth record alone.
    pub(crate) fn rq_truth(&self, cx: &mut Cx<'_>, kind: Kind, id: RqId, arg: u64) {
        events::rq_truth(cx, kind, id, &self.rqs[id], arg);
    }

    /// Emits an event about the queue rather than a bio.
    pub(crate) fn queue_event(&self, cx: &mut Cx<'_>, action: Action, arg: u64) {
        events::queue_event(self.dev, cx, action, arg);
    }

    /// A message of the scheduler, as blktrace's `m` events, if anybody reads
    /// it.
    #[inline]
    pub fn message(&self, cx: &mut Cx<'_>, text: std::fmt::Arguments<'_>) {
        events::message(self.dev, cx, text);
    }
}

/// States in which a request takes no more bios.
pub(crate) const UNMERGEABLE: RqState = RqState::NOMERGE
    .with(RqState::STARTED)
    .with(RqState::HARDBARRIER)
    .with(RqState::SOFTBARRIER)
    .with(RqState::FLUSH_SEQ);
