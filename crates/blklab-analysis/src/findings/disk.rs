// SPDX-License-Identifier: MIT OR Apache-2.0
//! One device in a section of a trace: its requests in the order in which it got
//! them, when it had nothing to do, how long it takes for one request.

use super::context::Context;
use super::contiguous;
pub use super::request::Request;
use super::spans::Spans;
use super::sums::is_most;
use super::waits::Wait;
use super::who_waits::Told;
use crate::lifecycle::BioLife;
use crate::spread::percentile;
use blklab_trace::{Action, Event, Rwbs};
use blklab_types::{Dev, Op, Time};

/// Requests in flight that are looked at, back from one: more than the tags of a
/// SATA or SCSI disk and of most hardware queues.
const IN_FLIGHT_SEEN: usize = 512;

/// A device from which no D and no C comes for so long at the beginning of a trace has
/// nothing to do: what it had before would have ended.
const QUIET_NS: u64 = 20_000_000;

/// A device that is not shown to end a request is taken to be busy with it for so long.
const NO_END_NS: u64 = 1_000_000_000;

/// What follows an interrupt comes within this time.
const SOON_NS: u64 = 200_000;

/// So many requests, so that the depth at which they came tells whether they were slower.
const DEPTH_SHOWN: u64 = 8;

/// Of fewer requests that came to an idle device, one that takes long may be an exception: what
/// half of all take is no less than what one takes alone.
const ALONE_MIN: usize = 3;

/// How long the device takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// Median from D to C of requests that came to an idle device: reads, writes.
    pub alone_ns: [Option<u64>; 2],
    /// Requests that these are the median of.
    pub nr_alone: [usize; 2],
    /// What 9 of 10 of all requests with data do not exceed from D to C.
    pub p90_ns: Option<u64>,
    /// Shortest from D to C of any request with data.
    pub best_ns: Option<u64>,
    /// Mean time from one C to the next while it is busy.
    pub interval_ns: Option<u64>,
    /// Others that may be at the device while a request takes no longer than alone: it works
    /// on one more at once.
    pub room: u32,
}

impl Service {
    /// What a request of this direction takes if nothing else is there: measured, or
    /// the other direction's, or the shortest of all. It never is more than what
    /// the device takes for one request when it has many.
    pub fn alone(&self, op: Option<Op>) -> Option<u64> {
        let side = usize::from(op != Some(Op::Read));
        self.alone_ns[side]
            .or(self.alone_ns[1 - side]
                .filter(|ns| Some(*ns) < self.best_ns.map(|b| b.saturating_mul(4))))
            .or(self.best_ns)
    }
}

/// What there is among the events of a device at all: who looks for one of these need not go
/// through the events where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// All flags of events and requests.
    pub flags: Rwbs,
    /// Q of bios with data.
    pub nr_data_queued: u64,
    /// C with an error.
    pub nr_errors: u64,
}

/// Whether I/O ended with an error. What a command passed through ends with is for whoever sent
/// it: a status of the device that is often expected.
pub(super) fn is_error(e: &Event) -> bool {
    e.action == Action::Complete && e.error != 0 && !e.rwbs.has(Rwbs::PC)
}

impl Shown {
    pub(super) fn event(&mut self, e: &Event) {
        self.flags = self.flags.with(e.rwbs);
        self.nr_data_queued += u64::from(e.action == Action::Queue && e.bytes > 0);
        self.nr_errors += u64::from(is_error(e));
    }
}

/// One device.
#[derive(Clone, Debug)]
pub struct Disk {
    /// Which.
    pub dev: Dev,
    /// Events by action, see [`Disk::has`].
    pub(super) nr_events: [u64; 17],
    /// What is among its events at all.
    pub shown: Shown,
    /// Its requests: those that went to the device in the order of their D, then the
    /// others in the order of their beginning.
    pub requests: Vec<Request>,
    /// How many of them went to the device.
    pub nr_issued: usize,
    /// How many of them begin where another one ends.
    pub nr_behind: usize,
    /// Bios that became no request, in order of their Q.
    pub bios: Vec<BioLife>,
    /// When it had nothing to do, in order of time, between the first D and the last
    /// C, and before a first D that comes late.
    pub idle: Vec<[Time; 2]>,
    idle_before: Vec<u64>,
    /// When it empties its cache.
    pub flushes: Spans,
    /// How long it takes.
    pub service: Service,
    /// Mean number of requests between D and C while there is one.
    pub mean_depth: f64,
    /// Time in which it had something to do, ns.
    pub busy_ns: u64,
    /// Requests between D and C at each D, by place in `requests`.
    pub depth_at_issue: Vec<u32>,
    /// D of all that went to the device, by place in `requests`.
    issues: Vec<Time>,
    /// C of those of them that ended, in order.
    ends: Vec<Time>,
    /// What each of `requests` waited for: empty until they are divided.
    pub waits: Vec<Wait>,
    /// The places of those with a long wait, in order.
    long: Vec<u32>,
    /// The first and the last event.
    pub span: [Time; 2],
    /// Places of completions that fit no request among the section's events.
    pub unknown_completions: Vec<usize>,
    /// When they were, in order.
    pub(super) unknown_ends: Vec<Time>,
    /// The scheduler, as far as its messages tell it.
    pub(super) told: Option<&'static str>,
    /// Who is taken to wait for writes whose flags do not say it.
    pub(super) who_waits: Told,
}

impl Disk {
    /// Takes the requests of a device apart. It is busy until `busy_until` with
    /// requests that went to it before the section begins.
    pub(super) fn new(
        dev: Dev,
        mut requests: Vec<Request>,
        mut bios: Vec<BioLife>,
        nr_events: [u64; 17],
        busy_until: Option<Time>,
        span: [Time; 2],
    ) -> Disk {
        requests.sort_by_key(|r| {
            let never = r.life.issue.is_none();
            (never, r.life.issue, r.start(), r.life.number)
        });
        bios.sort_by_key(|b| b.queue);
        let nr_issued = requests.partition_point(|r| r.life.issue.is_some());
        let mut disk = Disk {
            dev,
            nr_events,
            shown: Shown::default(),
            nr_behind: contiguous::mark(&mut requests),
            requests,
            nr_issued,
            bios,
            idle: Vec::new(),
            idle_before: Vec::new(),
            flushes: Spans::default(),
            service: Service::default(),
            mean_depth: 0.0,
            busy_ns: 0,
            depth_at_issue: Vec::new(),
            issues: Vec::new(),
            ends: Vec::new(),
            waits: Vec::new(),
            long: Vec::new(),
            span,
            unknown_completions: Vec::new(),
            unknown_ends: Vec::new(),
            told: None,
            who_waits: Told::default(),
        };
        disk.flushes = disk.commands_of(Request::is_flush);
        disk.count_depths();
        disk.find_idle(busy_until);
        disk.measure_service();
        disk
    }

    /// Whether the trace shows events of this kind on this device.
    pub fn has(&self, action: Action) -> bool {
        self.nr_events[action as usize] > 0
    }

    /// The scheduler, if the context or a message says which.
    pub fn scheduler<'a>(&self, context: &'a Context) -> Option<&'a str> {
        context.scheduler().or(self.told)
    }

    /// Events of a kind.
    pub fn nr(&self, action: Action) -> u64 {
        self.nr_events[action as usize]
    }

    /// The requests that went to the device, in the order in which it got them.
    pub fn issued(&self) -> &[Request] {
        &self.requests[..self.nr_issued]
    }

    /// Its requests with what each waited for.
    pub fn divided(&self) -> impl Iterator<Item = (&Request, &Wait)> {
        self.requests.iter().zip(&self.waits)
    }

    /// Those of them with a long wait ([`Wait::is_long`]): detectors that ask who was there
    /// need not go through all.
    pub fn long_waits(&self) -> impl Iterator<Item = (&Request, &Wait)> {
        let places = self.long.iter().map(|place| *place as usize);
        places.map(|place| (&self.requests[place], &self.waits[place]))
    }

    /// Those of these that somebody waits for.
    pub fn long_waits_for(&self) -> impl Iterator<Item = (&Request, &Wait)> {
        self.long_waits().filter(|(r, _)| r.is_sync)
    }

    /// Notes what each of the requests waited for.
    pub(super) fn set_waits(&mut self, waits: Vec<Wait>) {
        let long = (0_u32..).zip(&waits).filter(|(_, w)| w.is_long());
        self.long = long.map(|(place, _)| place).collect();
        self.waits = waits;
    }

    /// All that somebody waits for.
    pub fn waited_for(&self) -> impl Iterator<Item = (&Request, &Wait)> {
        self.divided().filter(|(r, _)| r.is_sync)
    }

    /// The places of the requests that went to the device after `from` and before
    /// `to`.
    pub fn issued_between(&self, from: Time, to: Time) -> std::ops::Range<usize> {
        let first = self.issues.partition_point(|d| *d <= from);
        first..self.issues.partition_point(|d| *d < to).max(first)
    }

    /// The places of the requests that were at the device at a time, latest first.
    pub fn in_flight_at(&self, time: Time) -> impl Iterator<Item = usize> + '_ {
        let upto = self.issues.partition_point(|d| *d <= time);
        let nr_ended = self.ends.partition_point(|c| *c <= time);
        let seen = (0..upto).rev().take(IN_FLIGHT_SEEN);
        let there = seen.filter(move |i| self.requests[*i].life.complete > Some(time));
        // No more are there: those before them need not be looked at.
        there.take(upto - nr_ended)
    }

    /// How much of a time it had nothing to do, in ns.
    pub fn idle_within(&self, from: Time, to: Time) -> u64 {
        if from >= to {
            return 0;
        }
        let before = |t: Time| {
            let i = self.idle.partition_point(|[begin, _]| *begin < t);
            match i.checked_sub(1) {
                None => 0,
                Some(i) => {
                    let [begin, end] = self.idle[i];
                    self.idle_before[i] + end.min(t).since(begin).0
                }
            }
        };
        before(to) - before(from)
    }

    /// How much of a wait from Q to G the device empties its cache, where the request becomes free
    /// when it has done so: no larger number of requests would help.
    pub fn flushes_before_get(&self, queue: Time, get: Time) -> Option<u64> {
        let flushing = self.flushes.within(queue, get);
        let ended = self.flushes.last_end(get);
        let is_end = ended.is_some_and(|end| get.since(end).0 <= SOON_NS);
        (is_end && is_most(flushing, get.0.saturating_sub(queue.0))).then_some(flushing)
    }

    /// How many requests end within a time of which the trace shows no D: the device had them,
    /// too.
    pub fn nr_unknown_ends(&self, from: Time, to: Time) -> u64 {
        let upto = |t: Time| self.unknown_ends.partition_point(|c| *c <= t);
        upto(to).saturating_sub(upto(from)) as u64
    }

    /// Whether a request goes to the device whose way there the trace does not show, as it does of
    /// others: what was there before it is not shown either.
    fn comes_from_unshown(&self, r: &Request) -> bool {
        let way = [Action::Queue, Action::GetRequest, Action::Insert];
        r.begins_with_issue() && !r.is_flush() && way.into_iter().any(|a| self.has(a))
    }

    /// The commands of some of its requests, from D to C.
    pub fn commands_of(&self, which: impl Fn(&Request) -> bool) -> Spans {
        let issued = self.issued().iter().filter(|r| which(r));
        Spans::new(issued.filter_map(|r| Some([r.life.issue?, r.life.complete?])))
    }

    fn count_depths(&mut self) {
        let ends = self.issued().iter();
        // In a trace whose times go back a C may come before its D.
        let ends = ends.filter_map(|r| Some(r.life.complete?.max(r.life.issue?)));
        let mut ends: Vec<Time> = ends.collect();
        ends.sort_unstable();
        let issues = self.issued().iter();
        let issues: Vec<Time> = issues.filter_map(|r| r.life.issue).collect();
        assert_eq!(issues.len(), self.nr_issued, "they went to the device");
        let (mut begun, mut ended) = (0_u32, 0_u32);
        let mut depths = Vec::with_capacity(self.nr_issued);
        for (r, issue) in self.issued().iter().zip(&issues) {
            while ends.get(ended as usize).is_some_and(|c| c <= issue) {
                ended += 1;
            }
            depths.push(begun.saturating_sub(ended));
            // One whose end is not shown says nothing about the device.
            begun += u32::from(r.life.complete.is_some());
        }
        self.depth_at_issue = depths;
        self.issues = issues;
        self.ends = ends;
    }

    fn find_idle(&mut self, busy_until: Option<Time>) {
        let start = self.span[0];
        let mut busy: Option<[Time; 2]> = busy_until.map(|until| [start, until]);
        let first = self.requests[..self.nr_issued]
            .first()
            .and_then(|r| r.life.issue);
        if let (None, Some(first)) = (busy_until, first)
            && first.since(start).0 >= QUIET_NS
        {
            busy = Some([start; 2]);
        }
        let mut in_flight_ns = 0_u128;
        let mut nr_ended = 0_u64;
        for r in &self.requests[..self.nr_issued] {
            let issue = r.life.issue.expect("it went to the device");
            let complete = match r.life.complete {
                Some(complete) => {
                    in_flight_ns += u128::from(complete.since(issue).0);
                    nr_ended += 1;
                    complete
                }
                None => self.span[1].min(Time(issue.0.saturating_add(NO_END_NS))),
            };
            match &mut busy {
                Some([_, end]) if issue <= *end => *end = (*end).max(complete),
                Some([begin, end]) => {
                    self.busy_ns += end.since(*begin).0;
                    if !self.comes_from_unshown(r) {
                        self.idle.push([*end, issue]);
                    }
                    busy = Some([issue, complete]);
                }
                None => busy = Some([issue, complete]),
            }
        }
        if let Some([begin, end]) = busy {
            self.busy_ns += end.since(begin).0;
        }
        let mut sum = 0;
        self.idle_before = self
            .idle
            .iter()
            .map(|[begin, end]| {
                let before = sum;
                sum += end.since(*begin).0;
                before
            })
            .collect();
        if nr_ended > 0 && self.busy_ns > 0 {
            self.service.interval_ns = Some(self.busy_ns / nr_ended);
            self.mean_depth = in_flight_ns as f64 / self.busy_ns as f64;
        }
    }

    fn measure_service(&mut self) {
        let mut alone: [Vec<u64>; 2] = Default::default();
        let mut best = None;
        let mut all: [Vec<u64>; 2] = Default::default();
        for (r, depth, d2c) in self.plain_commands() {
            best = Some(best.map_or(d2c, |b: u64| b.min(d2c)));
            all[usize::from(!r.is_read())].push(d2c);
            if depth == 0 {
                alone[usize::from(!r.is_read())].push(d2c);
            }
        }
        self.service.best_ns = best;
        self.service.p90_ns = percentile(90, all.concat());
        let typical_ns = all.map(|all| percentile(50, all));
        self.service.nr_alone = [alone[0].len(), alone[1].len()];
        self.service.alone_ns = alone.map(|all| percentile(50, all));
        for (side, typical) in typical_ns.into_iter().enumerate() {
            if self.service.nr_alone[side] < ALONE_MIN {
                let alone = &mut self.service.alone_ns[side];
                *alone = (*alone).min(typical);
            }
        }
        self.service.room = self.room();
    }

    /// Requests whose time from D to C tells how long the device takes: with the number of
    /// others that it had, and that time.
    fn plain_commands(&self) -> impl Iterator<Item = (&Request, u32, u64)> {
        let all = self.issued().iter().zip(&self.depth_at_issue);
        all.filter_map(|(r, depth)| {
            let is_special =
                r.flags.has(Rwbs::FUA) || r.op() == Some(Op::Discard) || r.life.nr_requeues > 0;
            let d2c = r.d2c().filter(|_| r.life.bytes > 0 && !is_special)?;
            Some((r, *depth, d2c))
        })
    }

    /// What a request takes alone, from so many that it is no chance: else the shortest of all.
    fn shown_alone(&self, op: Option<Op>) -> u64 {
        let side = usize::from(op != Some(Op::Read));
        let nr = self.service.nr_alone[side] as u64;
        let alone = self.service.alone_ns[side].filter(|_| nr >= DEPTH_SHOWN);
        alone.or(self.service.best_ns).unwrap_or(0)
    }

    /// The largest number of others at the device beside which most requests take hardly longer
    /// than alone.
    fn room(&self) -> u32 {
        // By depth: those that take hardly longer, and all.
        let mut of_depth: Vec<[u64; 2]> = Vec::new();
        for (r, depth, d2c) in self.plain_commands() {
            let (place, alone) = (depth as usize, self.shown_alone(r.op()));
            if depth == 0 || place > IN_FLIGHT_SEEN {
                continue;
            }
            if of_depth.len() < place {
                of_depth.resize(place, [0; 2]);
            }
            let [as_alone, all] = &mut of_depth[place - 1];
            *as_alone += u64::from(d2c < alone.saturating_add(alone / 2));
            *all += 1;
        }
        let mut room = 0;
        for (depth, [as_alone, all]) in (1..).zip(of_depth) {
            if all < DEPTH_SHOWN {
                continue;
            }
            if !is_most(as_alone, all) {
                break;
            }
            room = depth;
        }
        room
    }
}
