// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of a multi-queue device that its scheduler sees and uses.

use crate::events;
use crate::hash::MergeHash;
use crate::mq::{Features, Limits};
use crate::{Cx, Merge, Requests, RqId, RqState};
use blklab_trace::Action;
use blklab_trace::truth::Kind;
use blklab_types::{Bio, Dev, Hz};

/// Requests and merge state of a device.
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
    /// Requests that may be allocated for one hardware queue.
    pub nr_requests: u32,
    /// The request merged with or inserted last.
    pub(crate) last_merge: Option<RqId>,
    /// Requests inside the scheduler.
    pub(crate) nr_sorted: u32,
    /// Requests of the scheduler by their end, for merges behind them
    /// (`elv_rqhash_find`).
    pub(crate) hash: MergeHash,
    /// Hardware queues that kblockd is to run, by bit.
    pub(crate) runs_wanted: u64,
    /// What was done since somebody asked.
    pub(crate) work: Work,
}

/// What a queue did that takes time of a processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Bios that got a request.
    pub requests: u32,
    /// Bios that the scheduler merged into one that waited.
    pub merges: u32,
}

impl Core {
    /// Empty, for a device and its scheduler, or without one.
    pub fn new(dev: Dev, feat: Features, limits: Limits, has_scheduler: bool, hz: Hz) -> Core {
        Core {
            feat,
            nr_requests: limits.nr_requests(has_scheduler),
            limits,
            hz,
            dev,
            rqs: Requests::default(),
            last_merge: None,
            nr_sorted: 0,
            hash: MergeHash::new(),
            runs_wanted: 0,
            work: Work::default(),
        }
    }

    /// Tags in one word of the bitmap of scheduler tags (`sb->shift` of
    /// lib/sbitmap.c): 64, halved while four words would not be filled.
    pub fn tags_per_word(&self) -> u32 {
        if self.limits.shared_tags {
            tags_per_word(SHARED_SCHED_TAGS)
        } else {
            tags_per_word(self.nr_requests)
        }
    }

    /// What a scheduler that asks for the number of requests is told when that
    /// has changed: up to 6.16 the number before
    /// (`blk_mq_update_nr_requests` of block/blk-mq.c stores the new one last). One
    /// that looks at the bitmap sees the new one
    /// ([`Core::tags_per_word`]).
    pub fn told_nr_requests(&self) -> u32 {
        if self.feat.tells_depth_too_early {
            self.limits.nr_requests_unwritten(true)
        } else {
            self.nr_requests
        }
    }

    /// Whether a limited depth counts all tags of the bitmap or those of each
    /// word.
    pub fn shallow_depth_is_total(&self) -> bool {
        self.feat.shallow_depth_is_total
    }

    /// kblockd is to run all hardware queues (`blk_mq_run_hw_queues`).
    pub fn run_all(&mut self) {
        self.runs_wanted = u64::MAX;
    }

    /// kblockd is to run one hardware queue (`blk_mq_run_hw_queue`).
    pub fn run_hctx(&mut self, hctx: u16) {
        self.runs_wanted |= 1 << hctx.min(63);
    }

    /// Whether a bio may be merged into a request, as far as the core is
    /// concerned (`blk_rq_merge_ok`).
    pub fn merge_ok(&self, id: RqId, bio: &Bio) -> bool {
        let rq = &self.rqs[id];
        is_mergeable(rq.state)
            && rq.op == bio.op
            && rq.ioprio == bio.ioprio
            && rq.group == bio.group
    }

    /// A message of the scheduler, as blktrace's `m` events, if anybody reads
    /// it.
    #[inline]
    pub fn message(&self, cx: &mut Cx<'_>, text: std::fmt::Arguments<'_>) {
        events::message(self.dev, cx, text);
    }

    /// Emits a request event and its truth record.
    pub(crate) fn rq_event(&self, cx: &mut Cx<'_>, action: Action, kind: Kind, id: RqId) {
        self.rq_trace(cx, action, id);
        events::rq_truth(cx, kind, id, &self.rqs[id], 0);
    }

    /// Emits a request event alone.
    pub(crate) fn rq_trace(&self, cx: &mut Cx<'_>, action: Action, id: RqId) {
        let rq = &self.rqs[id];
        events::rq_trace(self.dev, cx, action, rq, rq.flags, 0);
    }

    /// Takes a request out of the merge hash, if it is in it (`elv_rqhash_del`).
    pub(crate) fn unhash(&mut self, rq: RqId) {
        if self.rqs[rq].state.has(RqState::HASHED) {
            let end = self.rqs[rq].end();
            self.hash.remove(&mut self.rqs, rq, end);
            self.rqs[rq].state |= RqState::REHASHES;
        }
    }

    /// Puts a request that grew back into the merge hash (`elv_rqhash_reposition`).
    pub(crate) fn rehash(&mut self, rq: RqId) {
        if self.rqs[rq].state.has(RqState::REHASHES) {
            self.rqs[rq].state.clear(RqState::REHASHES);
            self.hash.add(&mut self.rqs, rq);
        }
    }

    /// A request has entered the scheduler: bios may join it from now on
    /// (`elv_rqhash_add`).
    pub(crate) fn enter_hash(&mut self, rq: RqId) {
        if is_mergeable(self.rqs[rq].state) {
            self.hash.add(&mut self.rqs, rq);
            self.last_merge.get_or_insert(rq);
        }
    }

    /// A request leaves the scheduler: nothing joins it any more.
    pub(crate) fn leave_hash(&mut self, rq: RqId) {
        self.unhash(rq);
        self.rqs[rq].state.clear(RqState::REHASHES);
        if self.last_merge == Some(rq) {
            self.last_merge = None;
        }
    }

    /// Size and segment test of a bio merge (`ll_back_merge_fn`,
    /// `ll_front_merge_fn`).
    pub(crate) fn fits(&self, id: RqId, side: Merge, bio: &Bio) -> bool {
        let rq = &self.rqs[id];
        let start = match side {
            Merge::Back => rq.sector,
            Merge::Front => bio.sector,
        };
        self.limits.queue.fit_together(
            bio.op,
            [rq.nr_sectors, bio.nr_sectors],
            [rq.segments, u32::from(bio.segments)],
            self.max_sectors_at(start),
        )
    }

    /// State, size and segment tests of a request-request merge (`attempt_merge`,
    /// `ll_merge_requests_fn`).
    pub(crate) fn requests_fit(&self, rq: RqId, next: RqId) -> bool {
        let (a, b) = (&self.rqs[rq], &self.rqs[next]);
        is_mergeable(a.state)
            && is_mergeable(b.state)
            && a.end() == b.sector
            && a.op == b.op
            && a.ioprio == b.ioprio
            && a.group == b.group
            && self.limits.queue.fit_together(
                a.op,
                [a.nr_sectors, b.nr_sectors],
                [a.segments, b.segments],
                self.max_sectors_at(a.sector),
            )
    }

    /// Longest request that starts at a sector (`blk_rq_get_max_sectors`).
    fn max_sectors_at(&self, sector: u64) -> u32 {
        let (most, chunk) = (self.limits.queue.max_sectors, self.limits.chunk_sectors);
        if chunk == 0 {
            return most;
        }
        most.min((u64::from(chunk) - sector % u64::from(chunk)) as u32)
    }
}

/// Scheduler tags for which a set that hardware queues have in common has room
/// (`MAX_SCHED_RQ`), however many are used: words are as large as for all of them.
pub(super) const SHARED_SCHED_TAGS: u32 = 2048;

/// See [`Core::tags_per_word`].
pub(crate) fn tags_per_word(depth: u32) -> u32 {
    let mut shift = 6;
    while depth >= 4 && shift > 0 && (4 << shift) > depth {
        shift -= 1;
    }
    1 << shift
}

/// Whether a request may take bios or be taken by another (`rq_mergeable`).
pub(crate) fn is_mergeable(state: RqState) -> bool {
    !state.any(UNMERGEABLE)
}

/// States in which a request takes no more bios (`RQF_NOMERGE_FLAGS`).
pub(crate) const UNMERGEABLE: RqState = RqState::NOMERGE
    .with(RqState::STARTED)
    .with(RqState::FLUSH_SEQ)
    .with(RqState::SPECIAL);

#[cfg(test)]
mod tests {
    use super::tags_per_word;

    #[test]
    fn words_of_the_specification() {
        for (depth, word) in [(256, 64), (128, 32), (64, 16), (62, 8), (32, 8), (16, 4)] {
            assert_eq!(tags_per_word(depth), word, "{depth}");
        }
    }
}
