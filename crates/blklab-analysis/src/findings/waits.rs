// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each request waited for: every nanosecond of its life in one place only.
//!
//! ```text
//! Q ──► G ──► I ─────────────► D ──────────────► C
//!   get   plug  idle | ahead     alone | behind
//! ```
//!
//! From I to D (from G, where there is no I) the device either has nothing to do, or
//! it has other requests: those that went to it since, and those it had already. From
//! D to C a request takes what it would take alone; the rest is for others that the
//! device has at the same time.

use super::request::Request;
use super::sums::{is_most, total};
use blklab_types::Pid;

/// A wait is looked into if it is so many times what the device takes for a request:
/// less is what any queue costs.
pub const LONG_FACTOR: u64 = 4;

/// A process stands out among those ahead if it has so many times as many requests
/// there as the one that waits.
pub const STANDS_OUT: u64 = 4;

/// Where the life of a request went, in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// From Q to G: for a request, a tag, a throttle behind Q.
    pub get_ns: u64,
    /// From G to I, on a plug; 0 for what waits there for a flush.
    pub plug_ns: u64,
    /// From I to D while the device has nothing to do.
    pub idle_ns: u64,
    /// From I to D while the device has something to do.
    pub ahead_ns: u64,
    /// From D to C: what it would take alone.
    pub alone_ns: u64,
    /// From D to C: the rest.
    pub behind_ns: u64,
    /// Of all this, while the device empties its cache.
    pub flush_ns: u64,
    /// Who is ahead from I to D, if that is long. Few waits are: most requests have none.
    pub ahead: Option<Box<Ahead>>,
    /// Who is there from D to C, if that is long.
    pub behind: Option<Box<Ahead>>,
    /// From D to C it takes far longer than all those at the device would one after the
    /// other.
    pub is_device_slow: bool,
    /// Who has requests from Q to G, if that is long.
    pub get: Option<Box<Ahead>>,
}

/// Requests that the device has or gets while one waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// All.
    pub all: u64,
    /// Those of the same process and direction.
    pub own: u64,
    /// Those of others that read.
    pub reads: u64,
    /// Those of others that write.
    pub writes: u64,
    /// Those of others that came later than the one that waits.
    pub later: u64,
    /// Those of which the trace does not show whose they are.
    pub unknown: u64,
    /// What all of them are for the device, in work ([`Ahead::work_of`]); the same process's and
    /// direction's; others' reads; others' writes.
    pub work: [u64; 4],
    /// The other process that has most of the work, and how much.
    pub worker: (Pid, u64),
    /// The other processes that have most of them, and how many, most first; 0 where
    /// there are fewer. Requests whose owner the trace does not show are left out.
    pub others: [(Pid, u64); 4],
    /// Those of them that write, by their writes.
    pub writers: [(Pid, u64); 4],
}

/// Why a request waits behind others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Reads wait behind writes.
    Writes,
    /// Writes wait while reads that came later are served.
    LaterReads,
    /// One process's requests wait behind many of another.
    Other(Pid),
    /// The process's own requests, or as many of each of several.
    Load,
    /// Requests of which the trace does not show whose they are.
    Unknown,
    /// Nobody: the device takes long by itself.
    Device,
}

impl Wait {
    /// From the beginning to C.
    pub fn whole_ns(&self) -> u64 {
        let in_queue = [self.get_ns, self.plug_ns, self.idle_ns, self.ahead_ns];
        let in_device = [self.alone_ns, self.behind_ns, self.flush_ns];
        total(in_queue.into_iter().chain(in_device))
    }

    /// Long waits behind others: why, how long, who is there.
    pub fn behind_others(&self, r: &Request) -> impl Iterator<Item = (Reason, u64, &Ahead)> {
        let in_queue = self.ahead.as_deref();
        let in_queue = in_queue.map(|a| (a.reason(r), self.ahead_ns, a));
        let at_device = self.behind.as_deref().map(|a| {
            if self.is_device_slow {
                (Reason::Device, self.behind_ns, a)
            } else {
                (a.reason(r), self.behind_ns, a)
            }
        });
        [in_queue, at_device].into_iter().flatten()
    }

    /// Whether one of its waits is so long that who is there was looked at.
    pub fn is_long(&self) -> bool {
        self.ahead.is_some() || self.behind.is_some() || self.get.is_some()
    }
}

/// Length at which the transfer of a request takes a device as long as its beginning: one
/// that takes less than a millisecond for a request, and one that takes more.
const WORK_BYTES: [u64; 2] = [64 << 10, 512 << 10];
const FAST_NS: u64 = 1_000_000;

impl Ahead {
    /// How much work a request of so many bytes is for a device that takes so long for one alone:
    /// 64 for an empty one, twice that for one whose transfer takes as long as its beginning.
    pub fn work_of(bytes: u64, alone_ns: u64) -> u64 {
        let each = WORK_BYTES[usize::from(alone_ns >= FAST_NS)];
        64 + bytes.saturating_mul(64) / each
    }

    /// All work.
    pub fn work(&self) -> u64 {
        self.work[0]
    }

    /// That of others.
    pub fn others_work(&self) -> u64 {
        self.work[0].saturating_sub(self.work[1])
    }

    /// The other process that has most of it.
    pub fn worker(&self) -> Option<Pid> {
        Some(self.worker.0).filter(|_| self.worker.1 > 0)
    }

    /// The other process that has most of the work and by far more than its own: large requests
    /// keep a device busy, however few they are.
    fn busiest(&self) -> Option<Pid> {
        let (pid, work) = self.worker;
        let stands_out = work >= STANDS_OUT * self.work[1].max(1);
        (stands_out && is_most(work, self.others_work())).then_some(pid)
    }

    /// Why one waits that has these ahead.
    pub fn reason(&self, waiting: &Request) -> Reason {
        let others = self.all - self.own;
        if others <= self.own || others == 0 {
            return Reason::Load;
        }
        if waiting.is_read() && is_most(self.writes, others) {
            return Reason::Writes;
        }
        let is_behind_reads = is_most(self.reads, others) && self.work[2] >= self.work[3];
        if waiting.is_write() && is_behind_reads && is_most(self.later, others) {
            return Reason::LaterReads;
        }
        match self.top() {
            Some((pid, n)) if n >= STANDS_OUT * self.own.max(1) && is_most(n, others) => {
                Reason::Other(pid)
            }
            _ if waiting.is_write() => self.busiest().map_or(self.of_many(waiting), Reason::Other),
            _ => self.of_many(waiting),
        }
    }

    /// Why one waits that has many of others ahead, of whom none stands out. Where it is known
    /// whose the one that waits is, those of nobody are not its own.
    fn of_many(&self, waiting: &Request) -> Reason {
        let others = self.all - self.own;
        if waiting.is_owner_known && is_most(self.unknown, others) {
            return Reason::Unknown;
        }
        Reason::Load
    }

    /// The other process that has most of them, and how many.
    pub fn top(&self) -> Option<(Pid, u64)> {
        Some(self.others[0]).filter(|(_, n)| *n > 0)
    }

    /// The other processes that have many of them, and how many.
    pub fn others(&self) -> impl Iterator<Item = (Pid, u64)> {
        self.others.into_iter().filter(|(_, n)| *n > 0)
    }

    /// The other processes that have many writes there, and how many.
    pub fn writers(&self) -> impl Iterator<Item = (Pid, u64)> {
        self.writers.into_iter().filter(|(_, n)| *n > 0)
    }
}
