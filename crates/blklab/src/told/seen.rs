// SPDX-License-Identifier: MIT OR Apache-2.0
//! The I/Os of applications as a trace shows them: the bios of a call put together.

use blklab_analysis::distribution::Distribution;
use blklab_analysis::lifecycle::{BioLife, LifeSink, Lifecycles};
use blklab_trace::{Action, Event, KernelEvent, Part, TraceSink};
use blklab_types::{Dev, Op, Pid, SECTOR_BYTES, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// I/Os of a process of which some bios have ended and some may follow.
const OPEN_MAX: usize = 1024;

/// Pairs of process and device that are followed; of more, the first.
const PAIRS_MAX: usize = 1 << 12;

/// What the I/Os of a process took.
#[derive(Clone, Debug, Default)]
pub struct IoSums {
    /// From Q to C.
    pub whole: Distribution,
    /// From Q to D.
    pub queue: Distribution,
    /// From D to C.
    pub device: Distribution,
}

impl IoSums {
    /// Adds those of another.
    pub fn merge(&mut self, other: &IoSums) {
        self.whole.merge(&other.whole);
        self.queue.merge(&other.queue);
        self.device.merge(&other.device);
    }
}

/// Puts the bios of a trace together to I/Os.
#[derive(Debug)]
pub struct ApplicationIo {
    lives: Lifecycles<Joining>,
    /// On which device another lies.
    below: BTreeMap<Dev, Dev>,
    parts: BTreeSet<Part>,
}

impl ApplicationIo {
    /// For I/Os of these lengths, by direction; where an application's are not all of one length,
    /// each bio counts as one.
    pub fn new(lengths: BTreeMap<Op, u64>) -> ApplicationIo {
        ApplicationIo {
            lives: Lifecycles::new(Joining {
                lengths,
                all: BTreeMap::new(),
            }),
            below: BTreeMap::new(),
            parts: BTreeSet::new(),
        }
    }

    /// Which other parts of the kernel the trace has events of.
    pub fn parts(&self) -> &BTreeSet<Part> {
        &self.parts
    }

    /// What the I/Os of each process and direction took. Where devices lie on others, Q to C is
    /// that of the uppermost, and the parts are those of the devices with requests.
    pub fn finish(self) -> BTreeMap<(Pid, Op), IoSums> {
        let (joining, _) = self.lives.finish();
        let mut all = joining.all;
        all.values_mut().for_each(Pair::close);
        let used: Vec<Dev> = all.keys().map(|(dev, _, _)| *dev).collect();
        let is_lower = |dev: Dev| {
            let uppers = self.below.iter().filter(|(_, lower)| **lower == dev);
            uppers.into_iter().any(|(upper, _)| used.contains(upper))
        };
        let mut sums: BTreeMap<(Pid, Op), IoSums> = BTreeMap::new();
        for ((dev, pid, op), pair) in &all {
            let own = sums.entry((*pid, *op)).or_default();
            if !is_lower(*dev) {
                own.whole.merge(&pair.sums.whole);
            }
            own.queue.merge(&pair.sums.queue);
            own.device.merge(&pair.sums.device);
        }
        sums
    }
}

impl TraceSink for ApplicationIo {
    fn event(&mut self, event: &Event) {
        if event.action == Action::Remap && self.below.len() < PAIRS_MAX {
            self.below.insert(event.from_dev, event.dev);
        }
        self.lives.event(event);
    }

    fn kernel_event(&mut self, event: &KernelEvent) {
        self.parts.insert(event.point.part());
    }

    fn new_recording(&mut self) {
        self.lives.new_recording();
    }
}

/// What is gathered by device, process and direction.
#[derive(Debug)]
struct Joining {
    lengths: BTreeMap<Op, u64>,
    all: BTreeMap<(Dev, Pid, Op), Pair>,
}

#[derive(Debug, Default)]
struct Pair {
    sums: IoSums,
    /// In the order of their first end.
    open: VecDeque<Io>,
}

/// An I/O, or the part of it that has ended.
#[derive(Clone, Copy, Debug)]
struct Io {
    begin: u64,
    end: u64,
    bytes: u64,
    queue: Time,
    issue: Option<Time>,
    complete: Time,
}

impl Io {
    fn joins(&self, other: &Io, length: u64) -> bool {
        let is_beside = self.end == other.begin || other.end == self.begin;
        // They are of one call only if that had not ended when the other was queued.
        let is_meanwhile = other.queue < self.complete && self.queue < other.complete;
        is_beside && is_meanwhile && self.bytes.saturating_add(other.bytes) <= length
    }

    fn with(self, other: Io) -> Io {
        Io {
            begin: self.begin.min(other.begin),
            end: self.end.max(other.end),
            bytes: self.bytes + other.bytes,
            queue: self.queue.min(other.queue),
            issue: match (self.issue, other.issue) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
            complete: self.complete.max(other.complete),
        }
    }
}

impl Pair {
    fn add(&mut self, io: Io, length: u64) {
        let mut io = io;
        while let Some(place) = self.open.iter().position(|o| o.joins(&io, length)) {
            let other = self.open.remove(place).expect("it is there");
            io = io.with(other);
        }
        if io.bytes >= length {
            return self.ended(io);
        }
        if self.open.len() >= OPEN_MAX {
            let oldest = self.open.pop_front().expect("there are many");
            self.ended(oldest);
        }
        self.open.push_back(io);
    }

    fn ended(&mut self, io: Io) {
        self.sums.whole.add(io.complete.since(io.queue).0);
        if let Some(issue) = io.issue {
            self.sums.queue.add(issue.since(io.queue).0);
            self.sums.device.add(io.complete.since(issue).0);
        }
    }

    fn close(&mut self) {
        for io in std::mem::take(&mut self.open) {
            self.ended(io);
        }
    }
}

impl LifeSink for Joining {
    fn bio(&mut self, bio: &BioLife) {
        let (Some(complete), Some(op)) = (bio.complete, bio.op()) else {
            return;
        };
        let key = (bio.dev, bio.pid, op);
        if self.all.len() >= PAIRS_MAX && !self.all.contains_key(&key) {
            return;
        }
        let bytes = u64::from(bio.bytes);
        let io = Io {
            begin: bio.sector,
            end: bio.sector.saturating_add(bytes / SECTOR_BYTES),
            bytes,
            queue: bio.queue,
            issue: bio.issue,
            complete,
        };
        let length = self.lengths.get(&op).copied().unwrap_or(0);
        self.all.entry(key).or_default().add(io, length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(begin: u64, sectors: u64, from: u64, to: u64) -> Io {
        Io {
            begin,
            end: begin + sectors,
            bytes: sectors * 512,
            queue: Time(from),
            issue: Some(Time(from + 1)),
            complete: Time(to),
        }
    }

    #[test]
    fn bios_of_one_call_are_one() {
        let mut pair = Pair::default();
        // Three bios of a call of 24 sectors, which end in another order.
        pair.add(io(8, 8, 10, 50), 24 * 512);
        pair.add(io(16, 8, 11, 60), 24 * 512);
        assert_eq!(pair.sums.whole.count(), 0);
        pair.add(io(0, 8, 9, 90), 24 * 512);
        assert_eq!(pair.sums.whole.count(), 1);
        assert_eq!(pair.sums.whole.max(), 81);
        assert_eq!(pair.sums.queue.max(), 1);
        assert_eq!(pair.sums.device.max(), 80);
    }

    #[test]
    fn sequential_calls_stay_apart() {
        let mut pair = Pair::default();
        // The second is queued when the first has ended.
        pair.add(io(0, 4, 0, 10), 8 * 512);
        pair.add(io(4, 4, 20, 30), 8 * 512);
        pair.close();
        assert_eq!(pair.sums.whole.count(), 2);
    }
}
