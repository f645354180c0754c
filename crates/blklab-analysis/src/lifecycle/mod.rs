// SPDX-License-Identifier: MIT OR Apache-2.0
//! From events to the lives of bios and requests.
//!
//! A trace does not say which request an event belongs to: events are matched
//! by device, direction and position, as blkparse and btt do.
//!
//! ```text
//! bio      Q ──► S* ──► G ──────────┐
//! bio      Q ─────────► M or F ──┐  │ begins a request
//!                        joins ──▼──▼
//! request                        I ──► D ──► C
//!                                ▲     │
//!                                └─ R ◄┘
//! ```
//!
//! Rules, for events of one device and one direction (reads, writes,
//! discards; events without data are a class of their own):
//! - G takes the bio that was queued at its sector, S marks it as waiting.
//! - M joins the bio to the waiting request that ends where the bio starts,
//!   F to the one that starts where the bio ends.
//! - Kernels from 5.11 show the merge of two requests as an M or F with the
//!   place of the one that vanishes. Older ones show nothing: such a request
//!   is found when D shows a range that contains it.
//! - X divides a bio; each part lives on with the Q of the whole.
//! - C completes the request at its sector, or its front part; devices without
//!   requests (md, dm) complete bios directly.
//! - A trace may begin late or have holes. An event that fits nothing counts
//!   as unmatched; G, I and D still begin a request, without bios, so that what
//!   follows is matched.
//!
//! Memory is bound by the I/O in flight, and by [`IN_FLIGHT_MAX`] in traces whose
//! completions are missing; [`DEVICES_MAX`] devices are followed. Commands passed through to the device
//! have no position and are left out.

mod device;
mod position;
mod sectors;
mod slab;
mod table;
#[cfg(test)]
mod tests;
mod track;

pub use track::Lifecycles;

use blklab_trace::{Action, Rwbs};
use blklab_types::{Dev, Op, Pid, SECTOR_BYTES, Time};

/// Bios and requests followed at a time, of all devices: up to some 600 MB. When a
/// trace has more, whose completion it does not show, all are given up and
/// reported as unfinished.
pub const IN_FLIGHT_MAX: usize = 1 << 20;

/// Devices followed, in order of their first event. Events of further ones are
/// counted, see [`Unmatched::beyond_devices`].
pub const DEVICES_MAX: usize = 4096;

/// Bios that a request may have: twice what the largest request of any kernel
/// has room for. What is merged beyond that counts as unmatched.
pub const REQUEST_BIOS_MAX: u32 = 16_384;

/// How a bio came into its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// Behind what was there.
    Back,
    /// In front of it.
    Front,
}

/// The life of one bio, or of one part of a split bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BioLife {
    /// The device.
    pub dev: Dev,
    /// Who queued it.
    pub pid: Pid,
    /// Direction and flags as queued.
    pub rwbs: Rwbs,
    /// First sector.
    pub sector: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// Q.
    pub queue: Time,
    /// The first S: no request was free.
    pub sleep: Option<Time>,
    /// G, for the bio that began a request.
    pub get: Option<Time>,
    /// M or F.
    pub merge: Option<(Time, Merge)>,
    /// The last I of the request it began.
    pub insert: Option<Time>,
    /// The last D of its request.
    pub issue: Option<Time>,
    /// C.
    pub complete: Option<Time>,
    /// Positive errno, 0 for success.
    pub error: u16,
    /// Whether it is a part of a split bio.
    pub is_part: bool,
    /// The number of its request; see [`RequestLife::number`].
    pub request: Option<u64>,
}

impl BioLife {
    /// What it does, as far as the flags say.
    pub fn op(&self) -> Option<Op> {
        self.rwbs.op()
    }

    /// Whether somebody waits for it: reads, and writes with the sync flag.
    pub fn is_sync(&self) -> bool {
        self.op() == Some(Op::Read) || self.rwbs.has(Rwbs::SYNC)
    }

    /// Whether somebody waits for its data: likewise, without read-ahead and what has none.
    pub fn is_waited_for(&self) -> bool {
        let reads = self.op() == Some(Op::Read) && !self.rwbs.has(Rwbs::AHEAD);
        self.bytes > 0 && (reads || self.rwbs.has(Rwbs::SYNC))
    }
}

/// The life of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLife {
    /// Counts requests of the trace, from 0.
    pub number: u64,
    /// The device.
    pub dev: Dev,
    /// Who began it.
    pub pid: Pid,
    /// Direction and flags at the latest event.
    pub rwbs: Rwbs,
    /// First sector, at the end of merging.
    pub sector: u64,
    /// Length, at the end of merging.
    pub bytes: u64,
    /// G.
    pub get: Option<Time>,
    /// The last I.
    pub insert: Option<Time>,
    /// The last D.
    pub issue: Option<Time>,
    /// The last C.
    pub complete: Option<Time>,
    /// Positive errno of the first C that failed.
    pub error: u16,
    /// Bios in it.
    pub nr_bios: u32,
    /// Bios merged behind.
    pub nr_back_merges: u32,
    /// Bios merged in front.
    pub nr_front_merges: u32,
    /// Requests it absorbed.
    pub nr_absorbed: u32,
    /// Those of them whose merge the trace does not show.
    pub nr_silent_merges: u32,
    /// Times it was given back.
    pub nr_requeues: u32,
}

impl RequestLife {
    /// The sector behind its last one; the largest number there is where a trace names
    /// sectors that no device has.
    pub fn end(&self) -> u64 {
        self.sector.saturating_add(self.bytes / SECTOR_BYTES)
    }
}

/// Who wants to know.
///
/// Lives are given when they end; those that have not ended when the trace
/// does come last, with what is known.
pub trait LifeSink {
    /// A bio is done.
    fn bio(&mut self, bio: &BioLife) {
        let _ = bio;
    }

    /// A request is done; its bios were given just before.
    fn request(&mut self, request: &RequestLife) {
        let _ = request;
    }

    /// So many bios of `dev` are now between Q and C, so many requests between
    /// D and C.
    fn depth(&mut self, time: Time, dev: Dev, nr_bios: u32, nr_issued: u32) {
        let _ = (time, dev, nr_bios, nr_issued);
    }

    /// So many requests of `dev` are now between I and D. `overtaken`: one has
    /// just been issued after another that came later.
    fn in_scheduler(&mut self, dev: Dev, nr_waiting: u32, overtaken: bool) {
        let _ = (dev, nr_waiting, overtaken);
    }
}

/// Nobody wants to know.
impl LifeSink for () {}

/// A list of bios: tests and small traces.
impl LifeSink for Vec<BioLife> {
    fn bio(&mut self, bio: &BioLife) {
        self.push(*bio);
    }
}

/// A list of requests: tests and small traces.
impl LifeSink for Vec<RequestLife> {
    fn request(&mut self, request: &RequestLife) {
        self.push(*request);
    }
}

/// Two sinks behind one tracker.
impl<A: LifeSink, B: LifeSink> LifeSink for (A, B) {
    #[inline(always)]
    fn bio(&mut self, bio: &BioLife) {
        self.0.bio(bio);
        self.1.bio(bio);
    }

    #[inline(always)]
    fn request(&mut self, request: &RequestLife) {
        self.0.request(request);
        self.1.request(request);
    }

    #[inline(always)]
    fn depth(&mut self, time: Time, dev: Dev, nr_bios: u32, nr_issued: u32) {
        self.0.depth(time, dev, nr_bios, nr_issued);
        self.1.depth(time, dev, nr_bios, nr_issued);
    }

    #[inline(always)]
    fn in_scheduler(&mut self, dev: Dev, nr_waiting: u32, overtaken: bool) {
        self.0.in_scheduler(dev, nr_waiting, overtaken);
        self.1.in_scheduler(dev, nr_waiting, overtaken);
    }
}

/// What could not be matched, or not be seen to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unmatched {
    by_action: [u64; Action::ALL.len()],
    /// Bios without C at the end of the trace.
    pub unfinished_bios: u64,
    /// Requests without C at the end of the trace.
    pub unfinished_requests: u64,
    /// Events of commands passed through.
    pub passed_through: u64,
    /// Events of devices beyond the first [`DEVICES_MAX`].
    pub beyond_devices: u64,
}

impl Unmatched {
    /// Events of `action` that fit no bio or request.
    pub fn events(&self, action: Action) -> u64 {
        self.by_action[action as usize - 1]
    }

    /// All events that fit nothing.
    pub fn nr_events(&self) -> u64 {
        self.by_action.iter().sum()
    }

    fn count(&mut self, action: Action) {
        self.by_action[action as usize - 1] += 1;
    }
}
