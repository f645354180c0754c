// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a report needs of a trace, in one pass over its events: findings, and beside
//! them single requests, who waited how long for what, and what devices did over time.

use crate::model::PHASES;
use crate::sample::{Blame, Sample, Shown};
use blklab_analysis::bins::{Bin, Bins};
use blklab_analysis::collect::StatsCollector;
use blklab_analysis::distribution::Distribution;
use blklab_analysis::findings::Reading;
use blklab_analysis::findings::disk::{Disk, Request};
use blklab_analysis::findings::section::Section;
use blklab_analysis::findings::waits::{Ahead, Reason, Wait};
use blklab_analysis::findings::{ALL, Context, Detector, Finding, Report, Search, Whole};
use blklab_analysis::lifecycle::{BioLife, LifeSink};
use blklab_analysis::stats::TraceStats;
use blklab_analysis::timeline::{Profile, Timeline};
use blklab_trace::{Event, KernelEvent, TraceSink};
use blklab_types::{Dev, Op, Pid, Time};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Devices that are shown, in order of their first request.
const DEVICES_MAX: usize = 16;

/// Processes whose part is known by interval; further ones are one.
const PEOPLE_MAX: usize = 4096;

/// Directions of latencies.
pub(crate) const DIRECTIONS: [&str; 4] = ["read", "write", "discard", "other"];

/// Its place in [`DIRECTIONS`].
fn direction(op: Option<Op>) -> usize {
    match op {
        Some(Op::Read) => 0,
        Some(Op::Write) => 1,
        Some(Op::Discard) => 2,
        Some(Op::Flush) | None => 3,
    }
}

/// Requests of a process and what they waited for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    pub(crate) times: Distribution,
    pub(crate) phases: [u64; PHASES.len()],
}

impl Account {
    fn add(&mut self, whole_ns: u64, phases: &[u64; PHASES.len()]) {
        self.times.add(whole_ns);
        self.phases.join(*phases);
    }

    pub(crate) fn merge(&mut self, other: &Account) {
        self.times.merge(&other.times);
        self.phases.join(other.phases);
    }
}

/// What ended in an interval.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ended {
    pub(crate) requests: u64,
    pub(crate) phases: [u64; PHASES.len()],
    pub(crate) max_ns: u64,
    pub(crate) background_max_ns: u64,
    pub(crate) read_bytes: u64,
    pub(crate) write_bytes: u64,
    /// Bytes that went to the device, by process.
    pub(crate) served: BTreeMap<Pid, u64>,
    pub(crate) idle_ns: u64,
}

impl Bin for Ended {
    fn join(&mut self, other: Ended) {
        self.requests.join(other.requests);
        self.phases.join(other.phases);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.background_max_ns = self.background_max_ns.max(other.background_max_ns);
        self.read_bytes.join(other.read_bytes);
        self.write_bytes.join(other.write_bytes);
        self.served.join(other.served);
        self.idle_ns.join(other.idle_ns);
    }
}

/// What a pass over a trace gave.
#[derive(Debug)]
pub(crate) struct Gathered {
    pub(crate) report: Report,
    pub(crate) stats: TraceStats,
    pub(crate) start: Time,
    /// Waited for, and not.
    pub(crate) people: BTreeMap<Pid, [Account; 2]>,
    pub(crate) flows: BTreeMap<Dev, Bins<Ended>>,
    pub(crate) depths: BTreeMap<Dev, [Profile; 3]>,
    /// Latencies of bios, by process and [`DIRECTIONS`].
    pub(crate) bios: BTreeMap<Pid, [Distribution; 4]>,
    pub(crate) shown: Vec<Shown>,
    pub(crate) seen: u64,
    pub(crate) complete_from_ns: u64,
}

/// Sees the events of a trace.
#[derive(Debug)]
pub(crate) struct Pass {
    search: Search,
    stats: StatsCollector<Bios>,
    requests: Collector,
}

impl Pass {
    /// With what is known beside the trace; at most so many requests are shown. `says_flags`:
    /// flags of writes say who waits for them.
    pub(crate) fn new(context: Context, shown_max: usize, says_flags: bool) -> Pass {
        let requests = Collector(Rc::new(RefCell::new(Requests {
            max: shown_max,
            ..Requests::default()
        })));
        let mut detectors: Vec<Box<dyn Detector>> = ALL.iter().map(|k| (k.detector)()).collect();
        detectors.push(Box::new(requests.clone()));
        let search = Search::with(detectors, context);
        Pass {
            search: if says_flags {
                search
            } else {
                search.without_flags()
            },
            stats: StatsCollector::with(Bios::default()),
            requests,
        }
    }

    pub(crate) fn finish(self, reading: Reading) -> Gathered {
        let report = self.search.finish(reading);
        let (stats, bios) = self.stats.finish_with();
        let requests = self.requests.0.take();
        let start = bios.start.unwrap_or_default();
        let (shown, seen, complete_from_ns) = match requests.sample {
            Some(sample) => sample.finish(),
            None => (Vec::new(), 0, 0),
        };
        let profiles = |mut lines: [Timeline; 3]| [0, 1, 2].map(|i| lines[i].profile());
        Gathered {
            report,
            stats,
            start,
            people: requests.people,
            flows: requests.flows,
            depths: bios
                .depths
                .into_iter()
                .map(|(dev, d)| (dev, profiles(d.lines)))
                .collect(),
            bios: bios.latencies,
            shown,
            seen,
            complete_from_ns,
        }
    }
}

impl TraceSink for Pass {
    fn event(&mut self, event: &Event) {
        let bios = self.stats.also();
        bios.now = event.time;
        let start = *bios.start.get_or_insert(event.time);
        self.requests.0.borrow_mut().start = start;
        self.search.event(event);
        self.stats.event(event);
    }

    fn message(&mut self, event: &Event, text: &str) {
        self.search.message(event, text);
        self.stats.message(event, text);
    }

    fn wants_messages(&self) -> bool {
        true
    }

    fn kernel_event(&mut self, event: &KernelEvent) {
        self.search.kernel_event(event);
    }

    fn stack(&mut self, time: Time, pid: Pid, functions: &str) {
        self.search.stack(time, pid, functions);
    }

    fn new_recording(&mut self) {
        self.search.new_recording();
        self.stats.new_recording();
    }

    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        self.search.process(time, pid, comm);
        self.stats.process(time, pid, comm);
    }
}

/// What lives of bios show.
#[derive(Debug, Default)]
struct Bios {
    start: Option<Time>,
    now: Time,
    depths: BTreeMap<Dev, Depths>,
    latencies: BTreeMap<Pid, [Distribution; 4]>,
}

/// Bios between Q and C, requests between I and C and between D and C.
#[derive(Debug, Default)]
struct Depths {
    lines: [Timeline; 3],
    waiting: u32,
    issued: u32,
}

impl Bios {
    fn depths(&mut self, dev: Dev) -> Option<&mut Depths> {
        if self.depths.len() == DEVICES_MAX && !self.depths.contains_key(&dev) {
            return None;
        }
        let start = self.start.unwrap_or_default();
        Some(self.depths.entry(dev).or_insert_with(|| {
            let mut depths = Depths::default();
            depths.lines.iter_mut().for_each(|line| line.set(start, 0));
            depths
        }))
    }
}

impl LifeSink for Bios {
    fn bio(&mut self, bio: &BioLife) {
        let Some(complete) = bio.complete else { return };
        let is_known = self.latencies.contains_key(&bio.pid);
        let pid = if is_known || self.latencies.len() < PEOPLE_MAX {
            bio.pid
        } else {
            0
        };
        let all = self.latencies.entry(pid).or_default();
        all[direction(bio.op())].add(complete.since(bio.queue).0);
    }

    fn depth(&mut self, time: Time, dev: Dev, nr_bios: u32, nr_issued: u32) {
        if let Some(d) = self.depths(dev) {
            d.issued = nr_issued;
            let held = d.issued + d.waiting;
            for (line, value) in d.lines.iter_mut().zip([nr_bios, held, nr_issued]) {
                line.set(time, value);
            }
        }
    }

    fn in_scheduler(&mut self, dev: Dev, nr_waiting: u32, _: bool) {
        let now = self.now;
        if let Some(d) = self.depths(dev) {
            d.waiting = nr_waiting;
            d.lines[1].set(now, d.issued + d.waiting);
        }
    }
}

/// Gathers requests while a [`Search`] goes through a trace.
#[derive(Clone, Debug)]
struct Collector(Rc<RefCell<Requests>>);

#[derive(Debug, Default)]
struct Requests {
    max: usize,
    start: Time,
    people: BTreeMap<Pid, [Account; 2]>,
    flows: BTreeMap<Dev, Bins<Ended>>,
    sample: Option<Sample>,
    nr_alone: u64,
}

impl Detector for Collector {
    fn section(&mut self, section: &Section, _: &Context) {
        let mut gathered = self.0.borrow_mut();
        for disk in &section.disks {
            gathered.disk(disk);
        }
    }

    fn finish(&mut self, _: &Whole<'_>) -> Vec<Finding> {
        Vec::new()
    }
}

impl Requests {
    fn disk(&mut self, disk: &Disk) {
        for (i, r) in disk.requests.iter().enumerate() {
            self.request(disk, r, disk.waits.get(i));
        }
        for bio in &disk.bios {
            self.bio(bio);
        }
        self.idle(disk);
    }

    fn flow(&mut self, dev: Dev) -> Option<&mut Bins<Ended>> {
        if self.flows.len() == DEVICES_MAX && !self.flows.contains_key(&dev) {
            return None;
        }
        let start = self.start;
        Some(self.flows.entry(dev).or_insert_with(|| Bins::new(start)))
    }

    /// The process that `pid` is counted as.
    fn counted_as(&self, pid: Pid) -> Pid {
        let is_known = self.people.contains_key(&pid);
        if is_known || self.people.len() < PEOPLE_MAX {
            pid
        } else {
            0
        }
    }

    fn request(&mut self, disk: &Disk, r: &Request, wait: Option<&Wait>) {
        let Some(start) = r.start() else { return };
        let phases = wait.map_or([0; PHASES.len()], phases);
        let pid = if r.is_owner_known { r.pid } else { 0 };
        let counted = self.counted_as(pid);
        let whole = r.whole();
        if let Some(whole) = whole {
            let side = usize::from(!r.is_sync);
            self.people.entry(counted).or_default()[side].add(whole, &phases);
        }
        let bytes = r.life.bytes;
        if let Some(flow) = self.flow(disk.dev) {
            if let (Some(complete), Some(whole)) = (r.life.complete, whole) {
                let ended = flow.at(complete);
                if r.is_sync {
                    ended.requests += 1;
                    ended.phases.join(phases);
                    ended.max_ns = ended.max_ns.max(whole);
                } else {
                    ended.background_max_ns = ended.background_max_ns.max(whole);
                }
                match r.op() {
                    Some(Op::Read) => ended.read_bytes.join(bytes),
                    Some(Op::Write) => ended.write_bytes.join(bytes),
                    _ => {}
                }
            }
            if let Some(issue) = r.life.issue {
                flow.at(issue)
                    .served
                    .entry(counted)
                    .or_default()
                    .join(bytes);
            }
        }
        let shown = Shown {
            number: r.life.number,
            dev: disk.dev,
            pid,
            flags: r.flags,
            sector: r.life.sector,
            sectors: r.sectors(),
            nr_bios: r.life.nr_bios,
            is_sync: r.is_sync,
            start,
            get: r.life.get,
            insert: r.life.insert,
            issue: r.life.issue,
            complete: r.life.complete,
            phases,
            ahead: wait.map_or(Blame::default(), |w| blame(r, w.ahead.as_deref(), false)),
            behind: wait.map_or(Blame::default(), |w| {
                blame(r, w.behind.as_deref(), w.is_device_slow)
            }),
        };
        self.show(shown);
    }

    /// A bio that became no request: of a device without a queue, or of which the
    /// trace shows no more.
    fn bio(&mut self, bio: &BioLife) {
        // Behind all numbers that requests have.
        self.nr_alone += 1;
        let number = u64::MAX - self.nr_alone;
        if let (Some(complete), Some(flow)) = (bio.complete, self.flow(bio.dev)) {
            let ended = flow.at(complete);
            let whole = complete.since(bio.queue).0;
            if bio.is_sync() {
                ended.requests += 1;
                ended.max_ns = ended.max_ns.max(whole);
            } else {
                ended.background_max_ns = ended.background_max_ns.max(whole);
            }
            match bio.op() {
                Some(Op::Read) => ended.read_bytes.join(bio.bytes.into()),
                Some(Op::Write) => ended.write_bytes.join(bio.bytes.into()),
                _ => {}
            }
        }
        self.show(Shown {
            number,
            dev: bio.dev,
            pid: bio.pid,
            flags: bio.rwbs,
            sector: bio.sector,
            sectors: u64::from(bio.bytes) / 512,
            nr_bios: 1,
            is_sync: bio.is_sync(),
            start: bio.queue,
            get: bio.get,
            insert: bio.insert,
            issue: bio.issue,
            complete: bio.complete,
            phases: [0; PHASES.len()],
            ahead: Blame::default(),
            behind: Blame::default(),
        });
    }

    fn show(&mut self, shown: Shown) {
        let (start, max) = (self.start, self.max);
        let sample = self.sample.get_or_insert_with(|| Sample::new(start, max));
        sample.add(shown);
    }

    /// Time in which the device had nothing to do while a request waited that went to
    /// it afterwards.
    fn idle(&mut self, disk: &Disk) {
        let issued = disk.issued();
        // The earliest hand-over of those from each place on.
        let mut earliest: Vec<Option<Time>> = vec![None; issued.len() + 1];
        for (i, r) in issued.iter().enumerate().rev() {
            let own = r.handed_over();
            earliest[i] = match (own, earliest[i + 1]) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
        let gaps: Vec<[Time; 2]> = disk
            .idle
            .iter()
            .filter_map(|[from, to]| {
                let next = issued.partition_point(|r| r.life.issue < Some(*to));
                let waits_since = earliest[next]?;
                Some([waits_since.max(*from), *to]).filter(|[a, b]| a < b)
            })
            .collect();
        if let Some(flow) = self.flow(disk.dev) {
            for gap in gaps {
                flow.over(gap, |ended, ns| ended.idle_ns += ns);
            }
        }
    }
}

fn phases(w: &Wait) -> [u64; PHASES.len()] {
    [
        w.get_ns,
        w.plug_ns,
        w.idle_ns,
        w.ahead_ns,
        w.alone_ns,
        w.behind_ns,
        w.flush_ns,
    ]
}

/// Whom a request waited behind, if that was long.
fn blame(r: &Request, ahead: Option<&Ahead>, is_device_slow: bool) -> Blame {
    let Some(ahead) = ahead else {
        return Blame::default();
    };
    let reason = if is_device_slow {
        Reason::Device
    } else {
        ahead.reason(r)
    };
    let top = ahead.top().map(|(pid, _)| pid);
    let (reason, pid) = match reason {
        Reason::Writes => (1, top),
        Reason::LaterReads => (2, top),
        Reason::Other(pid) => (3, Some(pid)),
        Reason::Load => (4, top),
        Reason::Unknown => (0, None),
        Reason::Device => (5, None),
    };
    Blame {
        reason,
        pid: pid.unwrap_or(0),
        requests: ahead.all,
    }
}
