// SPDX-License-Identifier: MIT OR Apache-2.0
//! The I/Os of applications as a trace shows them: the bios of a call put together.

use blklab_analysis::distribution::Distribution;
use blklab_analysis::lifecycle::{BioLife, LifeSink, Lifecycles};
use blklab_trace::{Action, Event, KernelEvent, Part, Rwbs, TraceSink};
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

/// The I/Os of a process and direction, by what they are beside the length that an application's
/// have. Where that is not known, all are [`Seen::exact`].
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// As long, or parts of such a call on a device below another.
    pub exact: IoSums,
    /// Shorter, all bios of a call together.
    pub shorter: IoSums,
    /// Longer: files that are laid out, read-ahead, write-back.
    pub longer: IoSums,
    /// Of metadata of a filesystem, whatever their length.
    pub nr_metadata: u64,
}

impl Seen {
    /// Adds those of another.
    pub fn merge(&mut self, other: &Seen) {
        self.exact.merge(&other.exact);
        self.shorter.merge(&other.shorter);
        self.longer.merge(&other.longer);
        self.nr_metadata = self.nr_metadata.saturating_add(other.nr_metadata);
    }

    /// Adds those of a device that others lie on: an I/O may be several there, and is counted above.
    fn merge_lower(&mut self, other: &Seen) {
        let parts = |sums: &IoSums| IoSums {
            whole: Distribution::default(),
            ..sums.clone()
        };
        self.exact.merge(&parts(&other.exact));
        self.exact.merge(&parts(&other.shorter));
        self.longer.merge(&parts(&other.longer));
    }
}

/// Puts the bios of a trace together to I/Os.
#[derive(Debug)]
pub struct ApplicationIo {
    lives: Lifecycles<Joining>,
    /// Devices, and others on which they lie: a mirror lies on several.
    below: BTreeSet<(Dev, Dev)>,
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
            below: BTreeSet::new(),
            parts: BTreeSet::new(),
        }
    }

    /// Which other parts of the kernel the trace has events of.
    pub fn parts(&self) -> &BTreeSet<Part> {
        &self.parts
    }

    /// What the I/Os of each process and direction took. Where devices lie on others, Q to C is
    /// that of the uppermost, and the parts are those of the devices with requests.
    pub fn finish(self) -> BTreeMap<(Pid, Op), Seen> {
        let (joining, _) = self.lives.finish();
        let mut all = joining.all;
        all.values_mut().for_each(Pair::close);
        let used: BTreeSet<Dev> = all.keys().map(|(dev, _, _)| *dev).collect();
        let below = self.below.iter().filter(|(upper, _)| used.contains(upper));
        let lowers: BTreeSet<Dev> = below.map(|(_, lower)| *lower).collect();
        let mut seen: BTreeMap<(Pid, Op), Seen> = BTreeMap::new();
        for ((dev, pid, op), pair) in &all {
            let own = seen.entry((*pid, *op)).or_default();
            if lowers.contains(dev) {
                own.merge_lower(&pair.seen);
            } else {
                own.merge(&pair.seen);
            }
        }
        seen
    }
}

impl TraceSink for ApplicationIo {
    fn event(&mut self, event: &Event) {
        if event.action == Action::Remap && self.below.len() < PAIRS_MAX {
            self.below.insert((event.from_dev, event.dev));
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
    seen: Seen,
    /// Length of an I/O in bytes, 0 if they have several.
    length: u64,
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
    fn add(&mut self, io: Io) {
        let length = self.length;
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
        let sums = if self.length == 0 || io.bytes == self.length {
            &mut self.seen.exact
        } else if io.bytes < self.length {
            &mut self.seen.shorter
        } else {
            &mut self.seen.longer
        };
        sums.whole.add(io.complete.since(io.queue).0);
        if let Some(issue) = io.issue {
            sums.queue.add(issue.since(io.queue).0);
            sums.device.add(io.complete.since(issue).0);
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
        let length = self.lengths.get(&op).copied().unwrap_or(0);
        let pair = self.all.entry(key).or_default();
        pair.length = length;
        if bio.rwbs.has(Rwbs::META) {
            pair.seen.nr_metadata = pair.seen.nr_metadata.saturating_add(1);
            return;
        }
        let bytes = u64::from(bio.bytes);
        pair.add(Io {
            begin: bio.sector,
            end: bio.sector.saturating_add(bytes / SECTOR_BYTES),
            bytes,
            queue: bio.queue,
            issue: bio.issue,
            complete,
        });
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

    /// For I/Os of so many sectors.
    fn pair(sectors: u64) -> Pair {
        Pair {
            length: sectors * 512,
            ..Pair::default()
        }
    }

    #[test]
    fn bios_of_one_call_are_one() {
        let mut pair = pair(24);
        // Three bios of a call of 24 sectors, which end in another order.
        pair.add(io(8, 8, 10, 50));
        pair.add(io(16, 8, 11, 60));
        assert_eq!(pair.seen.exact.whole.count(), 0);
        pair.add(io(0, 8, 9, 90));
        assert_eq!(pair.seen.exact.whole.count(), 1);
        assert_eq!(pair.seen.exact.whole.max(), 81);
        assert_eq!(pair.seen.exact.queue.max(), 1);
        assert_eq!(pair.seen.exact.device.max(), 80);
    }

    #[test]
    fn what_lies_below_another_device_is_counted_there() {
        let dev = |major, minor| Dev { major, minor };
        let (mirror, halves) = (dev(9, 0), [dev(8, 0), dev(8, 16)]);
        let mut all = ApplicationIo::new(BTreeMap::from([(Op::Write, 4096)]));
        let mut send = |us: u64, action: Action, dev: Dev, from_dev: Dev| {
            all.event(&Event {
                bytes: 4096,
                sector: 8,
                rwbs: Rwbs::WRITE,
                action,
                from_dev,
                ..Event::message(Time(us * 1000), 0, 7, dev)
            });
        };
        send(1, Action::Queue, mirror, mirror);
        for half in halves {
            send(2, Action::Remap, half, mirror);
            send(3, Action::Queue, half, half);
            send(5, Action::Issue, half, half);
        }
        for half in halves {
            send(9, Action::Complete, half, half);
        }
        send(10, Action::Complete, mirror, mirror);
        let seen = all.finish();
        let own = &seen[&(7, Op::Write)].exact;
        assert_eq!((own.whole.count(), own.whole.max()), (1, 9_000));
        assert_eq!((own.device.count(), own.device.max()), (2, 4_000));
    }

    #[test]
    fn sequential_calls_stay_apart() {
        let mut pair = pair(8);
        // The second is queued when the first has ended.
        pair.add(io(0, 4, 0, 10));
        pair.add(io(4, 4, 20, 30));
        pair.close();
        assert_eq!(pair.seen.shorter.whole.count(), 2);
    }

    #[test]
    fn each_is_kept_by_its_length() {
        let mut pair = pair(8);
        pair.add(io(0, 8, 0, 10));
        pair.add(io(100, 16, 0, 20));
        pair.add(io(200, 4, 0, 30));
        pair.close();
        let longest = |sums: &IoSums| (sums.whole.count(), sums.whole.max());
        assert_eq!(longest(&pair.seen.exact), (1, 10));
        assert_eq!(longest(&pair.seen.longer), (1, 20));
        assert_eq!(longest(&pair.seen.shorter), (1, 30));
        // Below another device short ones are parts of calls, which are counted above.
        let mut lower = Seen::default();
        lower.merge_lower(&pair.seen);
        assert_eq!(lower.exact.whole.count(), 0);
        assert_eq!(lower.exact.device.count(), 2);
        assert_eq!(lower.longer.device.count(), 1);
    }
}
