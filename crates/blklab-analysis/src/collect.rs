// SPDX-License-Identifier: MIT OR Apache-2.0
//! From events to [`TraceStats`], in one pass.
//!
//! Phases come from the lives of bios; counts, seeks and plugging from the
//! events themselves. Memory is bound by I/O in flight, devices and processes,
//! of which there are limits: a device takes some 20 KB, a process less than 2 KB,
//! more where there are many different latencies.

use crate::distribution::Distribution;
use crate::index::Index;
use crate::lifecycle::{BioLife, DEVICES_MAX, LifeSink, Lifecycles, RequestLife};
use crate::seeks::Seeks;
use crate::stats::{
    Activity, DeviceStats, Directions, OtherDevices, Overflows, Phases, Plugs, ProcessStats,
    TraceStats, UnmatchedStats,
};
use crate::timeline::Timeline;
use blklab_trace::{Action, Event, Rwbs, TraceSink};
use blklab_types::{Dev, Op, Pid, Time};
use std::collections::BTreeMap;

/// Processes with statistics of their own, in order of their first bio. Others
/// are summed: [`TraceStats::other_processes`].
pub const PROCESSES_MAX: usize = 8192;

/// Names kept of processes that have queued nothing yet.
const NAMES_MAX: usize = 1 << 16;

/// Bytes of a name that are kept; the kernel's have 15.
const NAME_BYTES_MAX: usize = 64;

/// Computes the statistics of the trace it is given. `S` sees the same lives.
#[derive(Debug)]
pub struct StatsCollector<S = ()> {
    tracker: Lifecycles<(Lives, S)>,
    nr_events: u64,
    nr_messages: u64,
    /// Times of the earliest and the latest event.
    span: Option<(Time, Time)>,
    last_queue: Option<Time>,
    q2q: Distribution,
    devices: Vec<DeviceEvents>,
    places: Index<Dev>,
    other_devices: Option<OtherDevices>,
    overflows: Overflows,
}

/// What is counted by event, of a device.
#[derive(Debug)]
struct DeviceEvents {
    dev: Dev,
    last_queue: Option<Time>,
    q2q: Distribution,
    queued: Directions,
    nr_splits: u64,
    nr_issued: u64,
    nr_requeues: u64,
    completed_sectors: Distribution,
    q2q_seeks: Seeks,
    d2d_seeks: Seeks,
    plugs: Plugs,
    plugged_since: Option<Time>,
    /// Bios between Q and D, as far as counting shows it.
    waiting: u64,
    waiting_sum: u64,
}

impl DeviceEvents {
    fn new(dev: Dev) -> DeviceEvents {
        DeviceEvents {
            dev,
            last_queue: None,
            q2q: Distribution::default(),
            queued: Directions::default(),
            nr_splits: 0,
            nr_issued: 0,
            nr_requeues: 0,
            completed_sectors: Distribution::default(),
            q2q_seeks: Seeks::default(),
            d2d_seeks: Seeks::default(),
            plugs: Plugs::default(),
            plugged_since: None,
            waiting: 0,
            waiting_sum: 0,
        }
    }

    fn event(&mut self, e: &Event, overflows: &mut Overflows) {
        let (start, end) = (e.sector, e.sector.saturating_add(e.nr_sectors()));
        let has_data = e.bytes > 0;
        match e.action {
            Action::Queue => {
                if let Some(last) = self.last_queue.replace(e.time) {
                    self.q2q.add(e.time.since(last).ns());
                }
                direction(&mut self.queued, e.rwbs, e.bytes).add(e.bytes);
                if has_data {
                    self.q2q_seeks.add(start, end);
                }
                overflows.add(&mut self.waiting_sum, self.waiting);
                self.waiting += 1;
            }
            Action::BackMerge | Action::FrontMerge => {
                self.waiting = self.waiting.saturating_sub(1);
            }
            Action::Split => self.nr_splits += 1,
            Action::Issue if has_data => {
                self.nr_issued += 1;
                self.d2d_seeks.add(start, end);
                self.waiting = self.waiting.saturating_sub(1);
            }
            Action::Requeue => self.nr_requeues += 1,
            Action::Complete if has_data => self.completed_sectors.add(e.nr_sectors()),
            Action::Plug => {
                self.plugged_since.get_or_insert(e.time);
            }
            Action::Unplug | Action::UnplugTimer => self.unplug(e, overflows),
            _ => {}
        }
    }

    fn unplug(&mut self, e: &Event, overflows: &mut Overflows) {
        let Some(since) = self.plugged_since.take() else {
            return;
        };
        overflows.add(&mut self.plugs.plugged_ns, e.time.since(since).ns());
        if e.action == Action::Unplug {
            self.plugs.nr_unplugs += 1;
            overflows.add(&mut self.plugs.nr_requests, e.arg);
        } else {
            self.plugs.nr_timer_unplugs += 1;
            overflows.add(&mut self.plugs.nr_timer_requests, e.arg);
        }
    }
}

/// The amount that a bio belongs to.
fn direction(amounts: &mut Directions, rwbs: Rwbs, bytes: u32) -> &mut crate::stats::Amount {
    match rwbs.op() {
        Some(Op::Read) if bytes > 0 => &mut amounts.read,
        Some(Op::Write) if bytes > 0 => &mut amounts.write,
        Some(Op::Discard) if bytes > 0 => &mut amounts.discard,
        _ => &mut amounts.other,
    }
}

/// What is counted by life.
#[derive(Debug)]
struct Lives {
    /// In the order of the first life.
    devices: Vec<DeviceLives>,
    device_places: Index<Dev>,
    processes: Vec<ProcessLives>,
    process_places: Index<Pid>,
    /// Those beyond the limit.
    others: Option<Box<ProcessLives>>,
    /// Names of processes that have no place yet.
    names: BTreeMap<Pid, Box<str>>,
    overflows: Overflows,
}

impl Default for Lives {
    fn default() -> Lives {
        Lives {
            devices: Vec::new(),
            device_places: Index::new(DEVICES_MAX),
            processes: Vec::new(),
            process_places: Index::new(PROCESSES_MAX),
            others: None,
            names: BTreeMap::new(),
            overflows: Overflows::default(),
        }
    }
}

#[derive(Debug)]
struct DeviceLives {
    stats: DeviceStats,
    depth: Timeline,
    device_depth: Timeline,
    nr_issued: u32,
    active_since: Time,
    active_until: Option<Time>,
}

#[derive(Debug, Default)]
struct ProcessLives {
    stats: ProcessStats,
    last_queue: Option<Time>,
}

impl Lives {
    fn device(&mut self, dev: Dev) -> &mut DeviceLives {
        let place = self.device_places.place(dev);
        let place = place.expect("no more devices are followed than have places");
        if place == self.devices.len() {
            self.devices.push(DeviceLives {
                stats: DeviceStats {
                    dev,
                    ..DeviceStats::default()
                },
                depth: Timeline::default(),
                device_depth: Timeline::default(),
                nr_issued: 0,
                active_since: Time::ZERO,
                active_until: None,
            });
        }
        &mut self.devices[place]
    }

    /// The statistics of a process, and whether they are its own.
    #[inline]
    fn process(&mut self, pid: Pid) -> (&mut ProcessLives, bool) {
        let Some(place) = self.process_places.place(pid) else {
            return (self.others.get_or_insert_default(), false);
        };
        if place == self.processes.len() {
            let stats = ProcessStats {
                pid,
                comm: self.names.remove(&pid).map(String::from),
                ..ProcessStats::default()
            };
            self.processes.push(ProcessLives {
                stats,
                last_queue: None,
            });
        }
        (&mut self.processes[place], true)
    }

    fn name(&mut self, pid: Pid, comm: &str) {
        let mut end = comm.len().min(NAME_BYTES_MAX);
        while !comm.is_char_boundary(end) {
            end -= 1;
        }
        let comm = &comm[..end];
        if let Some(place) = self.process_places.known(pid) {
            self.processes[place].stats.comm = Some(comm.to_owned());
        } else if self.names.len() < NAMES_MAX || self.names.contains_key(&pid) {
            self.names.insert(pid, comm.into());
        }
    }
}

/// Adds the phases that a bio went through.
fn add_phases(phases: &mut Phases, bio: &BioLife) {
    let add = |to: &mut Distribution, from: Option<Time>, until: Option<Time>| {
        if let (Some(from), Some(until)) = (from, until) {
            to.add(until.since(from).ns());
        }
    };
    let queue = Some(bio.queue);
    let merge = bio.merge.map(|(time, _)| time);
    add(&mut phases.q2g, queue, bio.get);
    add(&mut phases.s2g, bio.sleep, bio.get);
    add(&mut phases.g2i, bio.get, bio.insert);
    add(&mut phases.q2m, queue, merge);
    add(&mut phases.i2d, bio.insert, bio.issue);
    add(&mut phases.m2d, merge, bio.issue);
    add(&mut phases.d2c, bio.issue, bio.complete);
    add(&mut phases.q2c, queue, bio.complete);
}

impl LifeSink for Lives {
    fn bio(&mut self, bio: &BioLife) {
        let device = &mut self.device(bio.dev).stats;
        add_phases(&mut device.phases, bio);
        match bio.merge {
            Some((_, crate::lifecycle::Merge::Back)) => device.nr_back_merges += 1,
            Some((_, crate::lifecycle::Merge::Front)) => device.nr_front_merges += 1,
            None => {}
        }
        if bio.complete.is_some() {
            direction(&mut device.completed, bio.rwbs, bio.bytes).add(bio.bytes);
            device.nr_errors += u64::from(bio.error != 0);
        }
        let process = &mut self.process(bio.pid).0.stats;
        add_phases(&mut process.phases, bio);
        process.nr_merges += u64::from(bio.merge.is_some());
        if bio.complete.is_some() {
            direction(&mut process.completed, bio.rwbs, bio.bytes).add(bio.bytes);
        }
    }

    fn request(&mut self, request: &RequestLife) {
        let device = &mut self.device(request.dev).stats;
        device.nr_request_merges += u64::from(request.nr_absorbed);
        device.nr_silent_merges += u64::from(request.nr_silent_merges);
        if let (Some(issue), Some(complete)) = (request.issue, request.complete) {
            device.service.add(complete.since(issue).ns());
        }
    }

    fn depth(&mut self, time: Time, dev: Dev, nr_bios: u32, nr_issued: u32) {
        let mut overflows = self.overflows;
        let device = self.device(dev);
        device.depth.set(time, nr_bios);
        device.device_depth.set(time, nr_issued);
        let before = std::mem::replace(&mut device.nr_issued, nr_issued);
        let activity = &mut device.stats.activity;
        if before == 0 && nr_issued > 0 {
            device.active_since = time;
            // A period that begins when the last one ended goes on.
            activity.nr_periods += u64::from(device.active_until != Some(time));
        } else if before > 0 && nr_issued == 0 {
            let active_ns = time.since(device.active_since).ns();
            overflows.add(&mut activity.active_ns, active_ns);
            device.active_until = Some(time);
            self.overflows = overflows;
        }
    }

    fn in_scheduler(&mut self, dev: Dev, nr_waiting: u32, overtaken: bool) {
        let scheduler = &mut self.device(dev).stats.scheduler;
        scheduler.max_waiting = scheduler.max_waiting.max(nr_waiting);
        scheduler.nr_overtaken += u64::from(overtaken);
    }
}

impl<S: LifeSink + Default> Default for StatsCollector<S> {
    fn default() -> StatsCollector<S> {
        StatsCollector::with(S::default())
    }
}

impl StatsCollector {
    /// For one trace.
    pub fn new() -> StatsCollector {
        StatsCollector::with(())
    }
}

impl<S: LifeSink> StatsCollector<S> {
    /// For one trace, whose lives `also` is given too.
    pub fn with(also: S) -> StatsCollector<S> {
        StatsCollector {
            tracker: Lifecycles::new((Lives::default(), also)),
            nr_events: 0,
            nr_messages: 0,
            span: None,
            last_queue: None,
            q2q: Distribution::default(),
            devices: Vec::new(),
            places: Index::new(DEVICES_MAX),
            other_devices: None,
            overflows: Overflows::default(),
        }
    }

    /// The other sink of lives.
    pub fn also(&mut self) -> &mut S {
        &mut self.tracker.sink().1
    }

    fn extend_span(&mut self, time: Time) {
        let (start, end) = self.span.get_or_insert((time, time));
        // Records may be out of order.
        *start = (*start).min(time);
        *end = (*end).max(time);
    }

    /// Counts an event of a device.
    fn of_device(&mut self, e: &Event) {
        let Some(place) = self.places.place(e.dev) else {
            return self.of_other_device(e);
        };
        if place == self.devices.len() {
            self.devices.push(DeviceEvents::new(e.dev));
        }
        self.devices[place].event(e, &mut self.overflows);
    }

    #[cold]
    fn of_other_device(&mut self, e: &Event) {
        let others = self.other_devices.get_or_insert_default();
        others.nr_events += 1;
        match e.action {
            Action::Queue => direction(&mut others.queued, e.rwbs, e.bytes).add(e.bytes),
            Action::Issue if e.bytes > 0 => others.nr_issued += 1,
            Action::Complete if e.bytes > 0 => others.nr_completed += 1,
            _ => {}
        }
    }

    /// The statistics of all that was given.
    pub fn finish(self) -> TraceStats {
        let (start, end) = self.span.unwrap_or_default();
        let ((mut lives, _), unmatched) = self.tracker.finish();
        let mut all = Phases {
            q2q: self.q2q,
            ..Phases::default()
        };
        let devices: Vec<DeviceStats> = self
            .devices
            .into_iter()
            .map(|events| {
                let device = finish_device(events, &mut lives, start);
                add_device(&mut all, &device.phases);
                device
            })
            .collect();
        let mut processes: Vec<ProcessStats> = lives
            .processes
            .into_iter()
            .map(|p| p.stats)
            .filter(|p| p.queued.total().count > 0)
            .collect();
        processes.sort_by_key(|p| p.pid);
        let others = lives.others.map(|p| Box::new(p.stats));
        let events = Action::ALL.map(|a| (a.letters(), unmatched.events(a)));
        TraceStats {
            nr_events: self.nr_events,
            nr_messages: self.nr_messages,
            start_ns: start.ns(),
            end_ns: end.ns(),
            all,
            devices,
            processes,
            other_processes: others,
            other_devices: self.other_devices,
            nr_overflows: self.overflows.0 + lives.overflows.0,
            unmatched: UnmatchedStats {
                events: events.into_iter().filter(|(_, n)| *n > 0).collect(),
                unfinished_bios: unmatched.unfinished_bios,
                unfinished_requests: unmatched.unfinished_requests,
                passed_through: unmatched.passed_through,
            },
        }
    }
}

/// Joins what was counted by event and by life.
fn finish_device(events: DeviceEvents, lives: &mut Lives, start: Time) -> DeviceStats {
    let device = lives.device(events.dev);
    let activity = Activity {
        until_ns: device
            .active_until
            .map_or(0, |until| until.since(start).ns()),
        ..device.stats.activity
    };
    let mut stats = std::mem::take(&mut device.stats);
    stats.phases.q2q = events.q2q;
    let nr_queued = events.queued.total().count;
    DeviceStats {
        dev: events.dev,
        queued: events.queued,
        nr_splits: events.nr_splits,
        nr_issued: events.nr_issued,
        nr_requeues: events.nr_requeues,
        completed_sectors: events.completed_sectors,
        q2q_seeks: events.q2q_seeks,
        d2d_seeks: events.d2d_seeks,
        plugs: events.plugs,
        waiting_at_q: match nr_queued {
            0 => 0.0,
            n => events.waiting_sum as f64 / n as f64,
        },
        activity,
        depth: device.depth.profile(),
        device_depth: device.device_depth.profile(),
        ..stats
    }
}

fn add_device(all: &mut Phases, device: &Phases) {
    for (to, from) in [
        (&mut all.q2g, &device.q2g),
        (&mut all.s2g, &device.s2g),
        (&mut all.g2i, &device.g2i),
        (&mut all.q2m, &device.q2m),
        (&mut all.i2d, &device.i2d),
        (&mut all.m2d, &device.m2d),
        (&mut all.d2c, &device.d2c),
        (&mut all.q2c, &device.q2c),
    ] {
        to.merge(from);
    }
}

impl<S: LifeSink> TraceSink for StatsCollector<S> {
    fn event(&mut self, event: &Event) {
        if event.action == Action::Message {
            return self.message(event, "");
        }
        self.nr_events += 1;
        self.extend_span(event.time);
        if !event.rwbs.has(Rwbs::PC) {
            self.of_device(event);
            if event.action == Action::Queue {
                if let Some(last) = self.last_queue.replace(event.time) {
                    self.q2q.add(event.time.since(last).ns());
                }
                let (process, is_own) = self.tracker.sink().0.process(event.pid);
                let last = process.last_queue.replace(event.time);
                if let Some(last) = last.filter(|_| is_own) {
                    process.stats.phases.q2q.add(event.time.since(last).ns());
                }
                let queued = &mut process.stats.queued;
                direction(queued, event.rwbs, event.bytes).add(event.bytes);
            }
        }
        self.tracker.event(event);
    }

    fn message(&mut self, event: &Event, _: &str) {
        self.nr_messages += 1;
        self.extend_span(event.time);
    }

    fn process(&mut self, _: Time, pid: Pid, comm: &str) {
        self.tracker.sink().0.name(pid, comm);
    }
}
