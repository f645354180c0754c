// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of a queue that its scheduler sees and uses.

use crate::hash::MergeHash;
use crate::{Cx, Features, Limits, List, Requests, RqId, RqState};
use blklab_trace::truth::{Kind, NO_REQUEST, Truth};
use blklab_trace::{Action, Event, Rwbs};
use blklab_types::{Bio, BioFlags, Dev, Hz, SECTOR_BYTES, Time};

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

    /// Whether nothing waits in scheduler and dispatch list.
    pub fn nothing_waits(&self) -> bool {
        self.queue_head.is_empty() && self.nr_sorted == 0
    }

    /// Whether a bio may be merged into a request, as far as the core is
    /// concerned (`elv_rq_merge_ok` without the scheduler's hook).
    pub fn merge_ok(&self, id: RqId, bio: &Bio) -> bool {
        let rq = &self.rqs[id];
        !rq.state.any(UNMERGEABLE.or(RqState::SPECIAL))
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
        let rwbs = Rwbs::of_bio(bio.op, bio.flags);
        let event = event(action, rwbs, bio.sector, bio.nr_sectors);
        cx.event(self.dev, event);
        let pid = cx.tasks.get(bio.task).pid;
        cx.truth(
            Truth {
                time: Time::ZERO,
                kind,
                pid,
                op: bio.op,
                sync: bio.is_sync(),
                sector: bio.sector,
                nr_sectors: bio.nr_sectors,
                arg: 0,
                request: NO_REQUEST,
            },
            "",
        );
    }

    /// The bio of a partition takes its place on the disk (A): from the first
    /// partition's own sector to the disk's.
    pub(crate) fn partition_event(&self, cx: &mut Cx<'_>, bio: &Bio) {
        let Some(start) = self.limits.partition_start else {
            return;
        };
        let partition = Dev {
            minor: self.dev.minor + 1,
            ..self.dev
        };
        self.remap_event(cx, bio, partition, bio.sector.saturating_sub(start));
    }

    /// A bio comes from a sector of another device (A).
    pub(crate) fn remap_event(&self, cx: &mut Cx<'_>, bio: &Bio, from_dev: Dev, sector: u64) {
        let rwbs = Rwbs::of_bio(bio.op, bio.flags);
        let mut event = event(Action::Remap, rwbs, bio.sector, bio.nr_sectors);
        event.arg = sector;
        event.from_dev = from_dev;
        cx.event(self.dev, event);
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
        let mut event = event(action, Rwbs::of_bio(rq.op, flags), rq.sector, rq.nr_sectors);
        event.error = error;
        cx.event(self.dev, event);
    }

    /// Emits a request's truth record alone.
    pub(crate) fn rq_truth(&self, cx: &mut Cx<'_>, kind: Kind, id: RqId, arg: u64) {
        let rq = &self.rqs[id];
        let pid = cx.tasks.get(rq.task).pid;
        let record = Truth {
            time: cx.now,
            kind,
            pid,
            op: rq.op,
            sync: rq.is_sync(),
            sector: rq.sector,
            nr_sectors: rq.nr_sectors,
            arg,
            request: id.0,
        };
        cx.truth(record, "");
    }

    /// Emits an event about the queue rather than a bio.
    pub(crate) fn queue_event(&self, cx: &mut Cx<'_>, action: Action, arg: u64) {
        let mut event = event(action, Rwbs::NONE, 0, 0);
        event.arg = arg;
        cx.event(self.dev, event);
    }

    /// A message of the scheduler, as blktrace's `m` events, if anybody reads
    /// it: at most [`MESSAGE_MAX`] bytes, the rest is cut off.
    pub fn message(&self, cx: &mut Cx<'_>, text: std::fmt::Arguments<'_>) {
        if !cx.wants_messages() {
            return;
        }
        let mut line = Line {
            bytes: [0; MESSAGE_MAX],
            len: 0,
        };
        // A full line is no error: the kernel cuts messages too.
        let _ = std::fmt::Write::write_fmt(&mut line, text);
        let text = std::str::from_utf8(&line.bytes[..line.len]).unwrap_or_default();
        let mut event = event(Action::Message, Rwbs::NONE, 0, 0);
        event.time = cx.now;
        event.cpu = cx.running.cpu;
        event.dev = self.dev;
        cx.trace.message(&event, text);
        cx.truth_note(Kind::Message, 0, text);
    }
}

/// Longest message in bytes (`BLK_TN_MAX_MSG`, include/linux/blktrace_api.h).
pub const MESSAGE_MAX: usize = 128;

/// A message on its way, without the heap.
struct Line {
    bytes: [u8; MESSAGE_MAX],
    len: usize,
}

impl std::fmt::Write for Line {
    fn write_str(&mut self, s: &str) -> std::fmt::Result {
        let room = &mut self.bytes[self.len..];
        let mut n = s.len().min(room.len());
        while !s.is_char_boundary(n) {
            n -= 1;
        }
        room[..n].copy_from_slice(&s.as_bytes()[..n]);
        self.len += n;
        if n < s.len() {
            Err(std::fmt::Error)
        } else {
            Ok(())
        }
    }
}

/// States in which a request takes no more bios.
pub(crate) const UNMERGEABLE: RqState = RqState::NOMERGE
    .or(RqState::STARTED)
    .or(RqState::HARDBARRIER)
    .or(RqState::SOFTBARRIER)
    .or(RqState::FLUSH_SEQ);

fn event(action: Action, rwbs: Rwbs, sector: u64, nr_sectors: u32) -> Event {
    let bytes = u64::from(nr_sectors) * SECTOR_BYTES;
    Event {
        time: Time::ZERO,
        sector,
        arg: 0,
        bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        pid: 0,
        dev: Dev::default(),
        from_dev: Dev::default(),
        error: 0,
        cpu: 0,
        rwbs,
        action,
    }
}
