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

use super::disk::{Disk, Request};
use blklab_types::Pid;
use blklab_types::Time;

/// A wait is looked into if it is so many times what the device takes for a request:
/// less is what any queue costs.
pub const LONG_FACTOR: u64 = 4;

/// Requests ahead that are counted one by one; of more, so many spread evenly.
const AHEAD_SEEN: usize = 1024;

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
    /// Who is ahead from I to D, if that is long.
    pub ahead: Option<Ahead>,
    /// Who is there from D to C, if that is long.
    pub behind: Option<Ahead>,
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
    /// The device empties its cache.
    Flush,
}

impl Wait {
    /// That of the request at a place.
    pub(super) fn of(disk: &Disk, place: usize) -> Wait {
        let r = &disk.requests[place];
        let life = &r.life;
        let span = |from: Option<Time>, to: Option<Time>| match (from, to) {
            (Some(from), Some(to)) if from < to => to.since(from).0,
            _ => 0,
        };
        let mut wait = Wait {
            get_ns: span(r.queue, life.get),
            ..Wait::default()
        };
        let between = |from: Option<Time>, to: Option<Time>| match (from, to) {
            (Some(from), Some(to)) => disk.flushing_within(from, to),
            _ => 0,
        };
        if r.is_flush() {
            wait.flush_ns = span(r.start(), life.complete);
            return wait;
        }
        let on_plug = span(life.get, life.insert);
        let flushing = between(life.get, life.insert);
        match flushing * 2 > on_plug {
            true => wait.flush_ns = on_plug,
            false => wait.plug_ns = on_plug,
        }
        let (Some(issue), Some(from)) = (life.issue, r.handed_over()) else {
            return wait;
        };
        let queued = span(Some(from), Some(issue));
        wait.idle_ns = disk.idle_within(from, issue).min(queued);
        wait.ahead_ns = queued - wait.idle_ns;
        let alone = disk.service.alone(r.op()).unwrap_or(0);
        if wait.ahead_ns > LONG_FACTOR * alone.max(1) {
            let flushing = between(Some(from), Some(issue)).min(wait.ahead_ns);
            if flushing * 2 > wait.ahead_ns {
                wait.flush_ns += flushing;
                wait.ahead_ns -= flushing;
            } else {
                wait.ahead = Some(Ahead::of(disk, r, from, issue));
            }
        }
        if let (Some(complete), Some(d2c)) = (life.complete, r.d2c()) {
            wait.alone_ns = d2c.min(alone);
            wait.behind_ns = d2c - wait.alone_ns;
            if wait.behind_ns > (LONG_FACTOR - 1) * alone.max(1) {
                let flushing = between(Some(issue), Some(complete)).min(wait.behind_ns);
                if flushing * 2 > wait.behind_ns {
                    wait.flush_ns += flushing;
                    wait.behind_ns -= flushing;
                } else {
                    wait.behind = Some(Ahead::of(disk, r, issue, complete));
                }
            }
        }
        wait
    }

    /// From the beginning to C.
    pub fn whole_ns(&self) -> u64 {
        let queue = self.get_ns + self.plug_ns + self.idle_ns + self.ahead_ns;
        queue + self.alone_ns + self.behind_ns + self.flush_ns
    }

    /// Long waits behind others: why, how long, who is there.
    pub fn behind_others(&self, r: &Request) -> impl Iterator<Item = (Reason, u64, Ahead)> {
        let both = [(self.ahead, self.ahead_ns), (self.behind, self.behind_ns)];
        let reasons = both.map(|(ahead, ns)| Some((ahead?.reason(r), ns, ahead?)));
        reasons.into_iter().flatten()
    }
}

impl Ahead {
    /// Those that the device has at `from` or gets before `to`, and that are done
    /// before the one that waits.
    fn of(disk: &Disk, waiting: &Request, from: Time, to: Time) -> Ahead {
        let mut ahead = Ahead::default();
        let mut pids: Vec<(Pid, u64)> = Vec::new();
        let mut writers: Vec<(Pid, u64)> = Vec::new();
        let arrived = waiting.handed_over();
        let mut count = |other: &Request, weight: u64| {
            if other.life.number == waiting.life.number {
                return;
            }
            ahead.all += weight;
            if other.pid == waiting.pid && other.op() == waiting.op() {
                ahead.own += weight;
                return;
            }
            ahead.reads += weight * u64::from(other.is_read());
            ahead.writes += weight * u64::from(other.is_write());
            ahead.later += weight * u64::from(other.handed_over() > arrived);
            if other.is_owner_known && other.pid != waiting.pid {
                add(&mut pids, other.pid, weight);
                if other.is_write() {
                    add(&mut writers, other.pid, weight);
                }
            }
        };
        for i in disk.in_flight_at(from) {
            count(&disk.requests[i], 1);
        }
        let since = disk.issued_between(from, to);
        let step = since.len().div_ceil(AHEAD_SEEN).max(1);
        for i in since.step_by(step) {
            let other = &disk.requests[i];
            if waiting.life.issue > Some(from) || other.life.complete <= Some(to) {
                count(other, step as u64);
            }
        }
        ahead.others = most(pids);
        ahead.writers = most(writers);
        ahead
    }

    /// Why one waits that has these ahead.
    pub fn reason(&self, waiting: &Request) -> Reason {
        let others = self.all - self.own;
        if others <= self.own || others == 0 {
            return Reason::Load;
        }
        if waiting.is_read() && self.writes * 2 > others {
            return Reason::Writes;
        }
        if waiting.is_write() && self.reads * 2 > others && self.later * 2 > others {
            return Reason::LaterReads;
        }
        match self.top() {
            Some((pid, n)) if n >= STANDS_OUT * self.own.max(1) && n * 2 > others => {
                Reason::Other(pid)
            }
            _ => Reason::Load,
        }
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

fn add(all: &mut Vec<(Pid, u64)>, pid: Pid, weight: u64) {
    match all.iter_mut().find(|(p, _)| *p == pid) {
        Some((_, n)) => *n += weight,
        None => all.push((pid, weight)),
    }
}

/// The processes with most, most first.
fn most(mut all: Vec<(Pid, u64)>) -> [(Pid, u64); 4] {
    all.sort_unstable_by_key(|(pid, n)| (std::cmp::Reverse(*n), *pid));
    let mut most = [(0, 0); 4];
    for (place, other) in most.iter_mut().zip(all) {
        *place = other;
    }
    most
}
